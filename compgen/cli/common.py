"""What several commands share: the arguments that mean the same everywhere, and the consoles.

Nothing heavy is imported here: `compgen --help` must answer at once.
"""

import functools
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from compgen.data.examples import Dataset
    from compgen.trained.predictor import Predictor

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
LearnOption = Annotated[str, typer.Option("--split", metavar="S", help="The split of DATA to learn from.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one value of the configuration; may be repeated."),
]
CslOption = Annotated[
    str,
    typer.Option(
        "--config",
        metavar="C",
        help="Settings as published for csl_scan, csl_cogs, csl_geoquery or csl_smcalflow; csl, for other pairs; "
        "csl_scan_companions, beyond the paper; or a TOML file.",
    ),
]
SeedRulesOption = Annotated[
    str | None,
    typer.Option(
        "--seed-rules",
        metavar="R",
        help="Rules to begin with: matches (what sources and targets share), companions (words that are in the same "
        "examples), inflections (forms of target words, by word alignment), smcalflow (what its programs copy), a file "
        "of them, 'source ### target' a line, or none; by default what the configuration says.",
        show_default=False,
    ),
]
TargetsOption = Annotated[
    str | None,
    typer.Option(
        "--targets",
        metavar="G",
        help="A grammar of well-formed targets: geoquery or cogs (shipped), smcalflow (by the brackets in DATA), a "
        "file, 'LHS => token ##NAME' a line, or none; by default what the configuration says.",
        show_default=False,
    ),
]
UniformOption = Annotated[
    bool, typer.Option("--uniform", help="All rules that fit somewhere alike; else by learned probabilities.")
]
ShortestOption = Annotated[
    int,
    typer.Option(
        "--shortest", min=1, help="Characters (code points) of a stretch of lemma and form that counts as stem."
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT", help="Where to write; the suffix chooses the format; - for standard output."
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust-code",
        help="Let --runtime torchscript run the code in the bundle, which can do whatever its author liked. All else "
        "in a bundle is data, and opening it runs nothing.",
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

    return Console(stderr=True, soft_wrap=True)


def output() -> "Console":
    """The console for tables of results, which go to standard output: whole where it is no terminal."""
    from rich.console import Console

    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 10_000)


def load_split(data: str, split: str | None, answers: bool = False) -> "Dataset":
    """DATA, or one split of it. What a file has of other splits is easily forgotten, so that it is said.

    `answers` as for `read_dataset`.
    """
    from compgen.data.catalog import load

    dataset = load(data, answers=answers)
    if split is None:
        return dataset
    part = dataset.split(split)
    if len(part) < len(dataset) and (data == "-" or Path(data).exists()):
        left = ", ".join(f"{count:,} of {name}" for name, count in dataset.splits.items() if name != split)
        said = f"{data}: {len(part):,} examples of split {split}; left out: {left}"
        console().print(said, markup=False, highlight=False)
    return part


def usual_split(dataset: "Dataset", usual: str) -> str:
    """The split that a command looks at where none is named: the usual one, or the only one."""
    return usual if len(dataset.splits) > 1 else next(iter(dataset.splits))


def writable_format(out: Path, format: str | None, *read: str | Path | None) -> str | None:
    """--format, if OUT, its suffix and --format are ones that can be written: an error now, not after the work.

    Nor may OUT be a file that is read.
    """
    from compgen.data.downloads import check_not_downloaded
    from compgen.data.formats import FORMATS, format_of
    from compgen.errors import UserError
    from compgen.files import check_apart, check_writable, is_stream
    from compgen.record import record_of

    if str(out) != "-":
        check_apart(out, *read)
        check_not_downloaded(out)
        check_writable(out)
        if not is_stream(out):
            check_writable(record_of(out))
    if format is None:
        if str(out) != "-":
            format_of(out)
        return None  # the suffix .txt stands for one of two formats, which the examples decide
    if format not in FORMATS:
        raise UserError(f"no format {format!r}: expected one of {', '.join(FORMATS)}")
    return format


def say_remarks(model: str, predictor: "Predictor", sources: list[list[str]]) -> None:
    """Say what a predictor cannot read of its sources."""
    for remark in predictor.remarks(sources):
        console().print(f"{model}: {remark}", highlight=False, markup=False)
