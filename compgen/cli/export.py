"""`cgen export`: from a checkpoint to a bundle that runs without torch, verified against the checkpoint."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel

from compgen.cli.common import need_torch, say, table
from compgen.cli.options import argument, option, with_options

if TYPE_CHECKING:
    from rich.table import Table

    from compgen.runtime.manifest import Parity


class Options(BaseModel):
    """The options of `cgen export`."""

    folder: Path | None = option(
        None,
        "Write the bundle to this folder, replacing any bundle there. By default, exported/ plus MODEL's name.",
        "--output",
        "-o",
        metavar="FOLDER",
    )
    samples: int = option(
        1000, "Verify with N samples; at batch size 1, with a tenth of them.", ge=10, le=10**6, metavar="N"
    )
    torchscript: bool | None = option(
        None,
        "Also write TorchScript, which takes nearly half of the time. By default yes, except with --int8, which has "
        "none.",
    )
    int8: bool = option(
        False,
        "Store large weight matrices of a generator or a Transformer as 8-bit integers. This is faster on a CPU (for "
        "a Transformer, only in the C++ runner) but approximate: the sample at an address is always the same, but may "
        "differ from the checkpoint's.",
    )


@with_options
def export(
    model: Annotated[Path, argument("MODEL", "A checkpoint (.pt) or a grammar (.grammar) that `cgen train` wrote.")],
    options: Options,
) -> None:
    """Export a checkpoint to a bundle, which runs without torch: ONNX and TorchScript, or the rules of a grammar.

    The export verifies itself by drawing the same samples in PyTorch, TorchScript and ONNX Runtime. In float64 they
    must be identical; in float32, only draws that rounding decides may differ. Otherwise, nothing is written.
    A Transformer is exported to ONNX alone, and its answers to made-up sources are compared. A grammar has no graphs:
    its bundle holds rules and arrays, and its samples are compared with the checkpoint's.
    With --int8, the bundle is compared with itself in batches of several sizes, and its distance from the checkpoint
    is measured.

    Example: cgen export recomb2.pt -o exported/mine
    """
    need_torch("exporting")
    from rich.console import Console

    from compgen.export.bundle_writer import export as write
    from compgen.export.verify import at_batches

    folder, began = options.folder or Path("exported") / model.stem, time.monotonic()
    batches = at_batches(options.samples)
    manifest = write(model, folder, batches=batches, torchscript=options.torchscript, int8=options.int8)
    Console(stderr=True, soft_wrap=True).print(parity_table(manifest.parity, manifest.against))
    if manifest.approximation is not None:
        say(manifest.approximation.sentence(manifest.kind))
    size = sum(entry.size for entry in manifest.files.values())
    say(f"{size / 1e6:.1f} MB, verified, in {time.monotonic() - began:.0f} s")
    print(folder)


def parity_table(parity: "Iterable[Parity]", against: str = "PyTorch in float64") -> "Table":
    """Build a table of what was compared with what."""
    headings = ("runtime", "dtype", "batch", "samples", "tokens", "differing", "by rounding", "distance")
    rows = []
    for row in parity:
        counts = (row.batch, row.samples, row.tokens, row.differing, row.explained)
        distance = f"{row.largest:.1e}" if row.differing else ""
        rows.append([row.runtime, row.dtype, *(f"{count:,}" for count in counts), distance])
    return table(headings, rows, f"Sequences compared with {against}", whole=2, words=2)
