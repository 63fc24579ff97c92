"""What several commands share: arguments and options that mean the same everywhere, printing, and checks.

Nothing heavy is imported here: `--help` must answer at once.
"""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compgen.cli.options import at_most
from compgen.data.content import name_of
from compgen.data.named import USUALLY, Columns
from compgen.errors import UserError, printable
from compgen.files import check_apart, check_writable, is_stream, require_folder
from compgen.record import RECORD, named, record_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from compgen.data.examples import Dataset

LAST_SEED = 2**64 - 1
LEARNT = ["train"]  # the splits that commands learn from by default

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table (.tsv, .csv, .jsonl, .json, .parquet...), a UniMorph file, a folder of Parquet files, - for "
        "standard input, or a known data set as NAME/SPLIT, e.g. scan/jump.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    list[str] | None,
    typer.Option("--split", metavar="S", help="Use only this split of DATA, e.g. train. May be repeated."),
]
LearnOption = Annotated[
    list[str],
    typer.Option("--split", metavar="S", help="Learn from this split of DATA. May be repeated."),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, callback=at_most(LAST_SEED), help="Seed of all random choices.")
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Output file, in the format of its suffix; or a folder, or - for standard output.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="F",
        help="Format of OUT, if its suffix does not say: tsv, csv, jsonl, json, parquet, scan, text, unimorph or "
        "folder.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one setting of the configuration. May be repeated. --set '?' lists the settings.",
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted training run. The result is the same.")
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust-code",
        help="Let --runtime torchscript run the code in the bundle. The rest of a bundle is only data.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one line of JSON per row instead of a table.")]


def output() -> "Console":
    """The console for results: standard output. Lines are not cut where it is not a terminal."""
    from rich.console import Console

    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 10_000)


def called() -> str:
    """The command as it was called."""
    return shlex.join(["cgen", *sys.argv[1:]])


def say(text: object) -> None:
    """Print a note for people to standard error, with tabs as spaces and without control characters."""
    print(printable(text).expandtabs(), file=sys.stderr)


def show(*parts: object) -> None:
    """Print results, tables or text, to standard output."""
    for part in parts:
        output().print(part, markup=False, emoji=False)


def show_json(row: dict[str, Any]) -> None:
    """Print a line of JSON to standard output."""
    print(json.dumps(row))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    *,
    whole: int = 0,
    words: int | None = None,
) -> "Table":
    """Build a table without lines.

    Args:
        columns: headings.
        rows: the cells of each row; where there are fewer than columns, the rest stay empty.
        title: a line above it.
        whole: how many columns, from the left, are never broken into lines.
        words: how many columns, from the left, are words; the others are aligned right. By default none is.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, heading in enumerate(columns):
        right = words is not None and number >= words
        made.add_column(heading, no_wrap=number < whole, overflow="fold", justify="right" if right else "left")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return made


def signature(options: dict[str, Any], *more: str) -> str:
    """Return a signature: the options that are set, as NAME:VALUE, joined with further parts by `|`."""
    return "|".join([*(f"{name}:{value}" for name, value in options.items() if value is not None), *more])


def need_torch(what: str) -> None:
    """Raise UserError, which says how to install it, if torch is not installed."""
    from compgen.trained.architectures import require_torch

    require_torch(f"{what} needs torch: pip install 'compgen[train]'")


def check_together(refused: Mapping[str, object]) -> None:
    """Raise UserError with the first message of options that exclude each other whose condition is true."""
    for message, wrong in refused.items():
        if wrong:
            raise UserError(message)


def check_input_once(*data: str | None) -> None:
    """Raise UserError if standard input is named more than once."""
    if data.count("-") > 1:
        raise UserError("standard input (-) can be read only once: give files")


def check_order(model: str, data: str) -> None:
    """Raise UserError if DATA is a model and MODEL is none: they have changed places."""
    if _is_model(data) and not _is_model(model):
        raise UserError(f"{model}: not a model, and {data} is one: the model comes first, then the data")


def _is_model(name: str) -> bool:
    """Whether a name is that of a model: what training wrote, a bundle, or a bundle that comes with compgen."""
    from compgen.runtime.bundle import resolve
    from compgen.runtime.manifest import MANIFEST
    from compgen.trained.architectures import is_saved

    try:
        return is_saved(Path(name)) or (resolve(Path(name)) / MANIFEST).is_file()
    except UserError:
        return False


def load_split(
    data: str, splits: list[str] | None, answers: bool = False, columns: Columns = USUALLY, blanks: bool = False
) -> "Dataset":
    """Load DATA, or some splits of it, and say which splits of a file are left out.

    `answers`, `columns` and `blanks` as for `read_dataset`.
    """
    from compgen.data.catalog import load

    dataset = load(data, answers=answers, columns=columns, blanks=blanks)
    return part_of(data, dataset, *dict.fromkeys(splits)) if splits else dataset


def load_augmented(*data: str) -> "Dataset":
    """Load augmented examples; of data with several splits `train` alone, as the others are probably for tests."""
    from compgen.data.catalog import load
    from compgen.data.examples import COLUMNS, Dataset, joined

    check_input_once(*data)
    parts = [(name, load(name)) for name in data]
    train = (part if len(part.splits) < 2 else part_of(name, part, "train") for name, part in parts)
    return joined(Dataset(part.frame.select(COLUMNS)) for part in train)


def part_of(data: str, dataset: "Dataset", *names: str) -> "Dataset":
    """Return some splits of DATA, and say which splits of a file are left out."""
    part = dataset.split(*names)
    if len(part) < len(dataset) and (data == "-" or Path(data).exists()):
        left = ", ".join(f"{count:,} of {name}" for name, count in dataset.splits.items() if name not in names)
        say(f"{name_of(data)}: {len(part):,} examples of split {', '.join(names)}; left out: {left}")
    return part


def load_usual(data: str, split: str | None, usual: str, columns: Columns = USUALLY) -> "tuple[Dataset, str]":
    """Load one split of DATA, by default the usual one; return it with its name."""
    from compgen.data.catalog import load

    dataset = load(data, columns=columns)
    split = usual_split(dataset, usual) if split is None else split
    return dataset.split(split), split


def load_both(data: str, train: str | None) -> "tuple[Dataset, Dataset]":
    """Load data to test on and data to train on: the very same object if both are one file."""
    from compgen.data.catalog import load

    tested = load(data)
    return tested, tested if train is None or named(train) == named(data) else load(train)


def usual_split(dataset: "Dataset", usual: str) -> str:
    """The split that a command reads if none is named: the usual one, or the only one."""
    return usual if len(dataset.splits) > 1 else next(iter(dataset.splits))


def write_out(dataset: "Dataset", out: Path, format: str | None = None, record: dict[str, Any] | None = None) -> None:
    """Write a dataset to OUT, as `write_dataset` does, and remark on the columns that have no place there."""
    from compgen.data.formats import remark_left_out, write_dataset

    write_dataset(dataset, out, format, record)
    remark_left_out(dataset, out, format)


def check_out(out: Path, format: str | None, *read: str | Path | None) -> None:
    """Check, before any work, that OUT can be written in a known format and is none of the files that are read.

    The suffix decides if there is no --format; .txt stands for two formats: the examples decide which.
    """
    from compgen.data.downloads import check_not_downloaded
    from compgen.data.folder import check_folder
    from compgen.data.formats import FOLDER, NAMES, format_of

    if format is not None and format not in NAMES:
        raise UserError(f"no format {format!r}: expected one of {', '.join(NAMES)}")
    if str(out) == "-":
        if format == FOLDER:
            require_folder(out)
        return
    if out.name.endswith(RECORD):
        raise UserError(f"{out}: names that end in {RECORD} are for records beside files: choose another name")
    check_apart(out, *read)
    check_not_downloaded(out)
    chosen = format or format_of(out)
    if chosen == FOLDER:
        check_folder(out)
    else:
        check_writable(out)
    if not is_stream(out):
        check_apart(record_of(out), *read)
        check_writable(record_of(out))
