"""What several commands share: the arguments that mean the same everywhere, and the consoles.

Nothing heavy is imported here: `compgen --help` must answer at once.
"""

import functools
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.tsv, .jsonl, .parquet, .scan or .txt, each perhaps .gz; without a suffix: words of UniMorph), "
        "- for standard input, or NAME/SPLIT of a known data set, e.g. scan/jump.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    str | None, typer.Option("--split", metavar="S", help="Only this split of DATA, e.g. train.", show_default=False)
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**64 - 1, help="Fixes everything that is drawn.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with an interrupted training; the result is the same.")
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT", help="Where to write; the suffix chooses the format; - for standard output."
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="F",
        help="Format of OUT: tsv, jsonl, scan, text or parquet. Without it, OUT's suffix decides; jsonl for -.",
        show_default=False,
    ),
]


def need_torch(what: str) -> None:
    """Say at once, and say how to mend it, if torch is not installed.

    Raises:
        UserError: it is not.
    """
    from compgen.errors import UserError

    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        raise UserError(f"{what} needs torch: pip install 'compgen[train]'") from error


@functools.cache
def console() -> "Console":
    """The console for talk: progress, warnings, notes. It is standard error; results go to standard output."""
    from rich.console import Console

    return Console(stderr=True)
