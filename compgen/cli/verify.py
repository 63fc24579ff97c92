"""`compgen verify`: does a bundle give here what it gave where it was made?"""

from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import TrustOption, console, output

if TYPE_CHECKING:
    from rich.table import Table

    from compgen.trained.verification import Verified


def verify(
    model: Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle folder, or the name of a shipped bundle.")],
    provider: Annotated[
        str, typer.Option(help="Of ONNX Runtime: cpu, cuda, or auto: the CPU, and CUDA where it works.")
    ] = "auto",
    trust_code: TrustOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one a runtime, in place of a table.")] = False,
) -> None:
    """Draw a bundle's golden draws again with every runtime that is here, and compare.

    A bundle holds draws (a predictor's: answers) as they were where it was exported. The same tokens must come from
    ONNX Runtime's step and loop, from the C++ runner's own step and graph where it is built, and with --trust-code from
    TorchScript; log-probabilities may differ by rounding. The exit code is 2 if a runtime gives something else.

    Example: compgen verify recomb2
    """
    from dataclasses import asdict
    from json import dumps

    from compgen.errors import BundleError
    from compgen.trained.verification import verify_bundle

    rows, notes = verify_bundle(model, provider, trust_code=trust_code)
    if json:
        for row in rows:
            typer.echo(dumps(asdict(row) | {"passed": row.passed}))
    else:
        output().print(_table(rows))
    for note in notes:
        console().print(f"left out: {note}", highlight=False, markup=False)
    failed = [row for row in rows if not row.passed]
    if failed:
        what = failed[0].problem or f"{failed[0].equal} of {failed[0].samples} samples are the golden ones"
        if failed[0].equal == failed[0].samples and not failed[0].problem:
            what = f"log-probabilities differ by {failed[0].largest:.1e}"
        raise BundleError(f"{model}: {', '.join(row.runtime for row in failed)}: not what was exported: {what}")


def _table(rows: "list[Verified]") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("runtime", no_wrap=True)
    for heading in ("samples", "equal"):
        table.add_column(heading, justify="right")
    table.add_column("first difference", no_wrap=True)
    table.add_column("log-probability", justify="right")
    table.add_column("samples/s", justify="right")
    for row in rows:
        counts = (f"{row.samples:,}", f"{row.equal:,}", row.first or "none", f"±{row.largest:.1e}", f"{row.rate:,.0f}")
        table.add_row(row.runtime, *(counts if not row.problem else (f"{row.samples:,}", "", "cannot run", "", "")))
    return table
