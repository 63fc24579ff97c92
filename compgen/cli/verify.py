"""`cgen verify`: does a bundle give here what it gave where it was exported?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from compgen.cli.common import JsonOption, say, show, show_json, table
from compgen.cli.options import argument, option, with_options
from compgen.errors import BundleError
from compgen.progress import rate

if TYPE_CHECKING:
    from compgen.trained.verification import Verified


@with_options
def verify(
    model: Annotated[str, argument("BUNDLE", "A bundle folder, or the name of a shipped bundle.")],
    provider: str = option("auto", "Run ONNX Runtime on cpu, cuda, or auto: the CPU, and CUDA too where it works."),
    trust_code: bool = option(
        False, "Also run the bundle's TorchScript, which is code. The rest of a bundle is only data."
    ),
    json: JsonOption = False,
) -> None:
    """Repeat a bundle's golden draws with every installed runtime, and compare the results.

    A bundle holds draws (for a predictor, answers) that were recorded at export. ONNX Runtime's step and loop, the C++
    runner's own step and graph if it is built, and TorchScript with --trust-code must give the same tokens;
    log-probabilities may differ by rounding. The exit code is 2 if a runtime gives anything else.

    Example: cgen verify recomb2
    """
    from compgen.trained.verification import verify_bundle

    rows, notes = verify_bundle(model, provider, trust_code=trust_code)
    if json:
        for row in rows:
            show_json(asdict(row) | {"passed": row.passed})
    else:
        headings = ("runtime", "samples", "equal", "first difference", "log-probability", "samples/s")
        show(table(headings, map(_cells, rows), whole=4, words=1))
    for note in notes:
        say(f"left out: {note}")
    failed = [row for row in rows if not row.passed]
    if failed:
        wrong = [row for row in failed if not row.problem] or failed
        runtimes = ", ".join(row.runtime for row in wrong)
        what = "cannot be run here" if wrong[0].problem else "not what was exported"
        raise BundleError(f"{model}: {runtimes}: {what}: {_difference(wrong[0])}")


def _cells(row: "Verified") -> list[str]:
    if row.problem:
        return [row.runtime, f"{row.samples:,}", "", "cannot run"]
    counts = [f"{row.samples:,}", f"{row.equal:,}", str(row.first or "none")]
    return [row.runtime, *counts, f"±{row.largest:.1e}", rate(row.rate)]


def _difference(row: "Verified") -> str:
    if row.problem:
        return row.problem
    if row.equal < row.samples:
        return f"{row.equal} of {row.samples} samples are the golden ones"
    return f"log-probabilities differ by {row.largest:.1e}"
