"""`compgen export`: from a checkpoint to a bundle that runs without torch, verified against the checkpoint."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import console, need_torch

if TYPE_CHECKING:
    from rich.table import Table

    from compgen.runtime.manifest import Parity


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A checkpoint that `compgen train` wrote (.pt).")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="The bundle's folder; a bundle already there is replaced. Default: exported/ and MODEL's name.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            "--samples", min=10, max=10**6, metavar="N", help="How many samples to verify with; at batch 1 a tenth."
        ),
    ] = 1000,
    torchscript: Annotated[
        bool | None,
        typer.Option(
            "--torchscript/--no-torchscript",
            help="Keep the TorchScript file in the bundle. Default: yes, but for --int8, which has none.",
            show_default=False,
        ),
    ] = None,
    int8: Annotated[
        bool,
        typer.Option(
            "--int8",
            help="Large weight matrices in 8-bit integers: faster on a CPU, and an approximation. A sample is still a "
            "function of its address, but not always the sample that the checkpoint has there.",
        ),
    ] = False,
) -> None:
    """Export a checkpoint to a bundle, which samples without torch: ONNX and TorchScript, or the rules of a grammar.

    The export verifies itself: the same samples are drawn in PyTorch, TorchScript and ONNX Runtime. In float64 they
    must be identical; in float32 each that differs must be a draw that rounding decides. Else nothing is written.
    A Transformer is exported to ONNX alone, and its answers to made-up sources are compared. A grammar has no graphs:
    its bundle holds rules and arrays, whose samples are compared with the checkpoint's.
    With --int8 the bundle is compared with itself, in batches of several sizes, and its distance from the checkpoint
    is measured.

    Example: compgen export recomb2.pt -o exported/mine
    """
    import time

    need_torch("exporting")
    from compgen.export.bundle_writer import export as write
    from compgen.export.verify import at_batches

    folder = out or Path("exported") / model.stem
    began = time.monotonic()
    manifest = write(model, folder, batches=at_batches(samples), torchscript=torchscript, int8=int8)
    console().print(parity_table(manifest.parity, manifest.against))
    if manifest.approximation is not None:
        console().print(manifest.approximation.sentence(), highlight=False)
    size = sum(entry.size for entry in manifest.files.values())
    console().print(f"{size / 1e6:.1f} MB, verified, in {time.monotonic() - began:.0f} s", highlight=False)
    typer.echo(folder)


def parity_table(parity: "Iterable[Parity]", against: str = "PyTorch in float64") -> "Table":
    """A table of what was compared, and with what, for people."""
    from rich.table import Table

    table = Table(title=f"Sequences compared with {against}", title_justify="left", box=None, pad_edge=False)
    for heading in ("runtime", "dtype"):
        table.add_column(heading, no_wrap=True)
    for heading in ("batch", "samples", "tokens", "differing", "by rounding", "distance"):
        table.add_column(heading, justify="right")
    for row in parity:
        counts = (row.batch, row.samples, row.tokens, row.differing, row.explained)
        distance = f"{row.largest:.1e}" if row.differing else ""
        table.add_row(row.runtime, row.dtype, *(f"{count:,}" for count in counts), distance)
    return table
