"""`compgen data`: see which data sets there are and what is in one, compare two, and write one to a file."""

import functools
import operator
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli import compositional
from compgen.cli import split as split_data
from compgen.cli.common import (
    DataArgument,
    FormatOption,
    OutOption,
    ShortestOption,
    SplitOption,
    console,
    load_split,
    output,
    usual_split,
    writable_format,
)
from compgen.record import named

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.overlap import Overlap
    from compgen.morphology.analyses import Stems

app = typer.Typer(no_args_is_help=True, help="Data sets: list the known ones, look into any, compare, convert, divide.")
app.add_typer(split_data.app, name="split")
app.command("divergence")(compositional.divergence)


@app.command("list")
def list_() -> None:
    """List the known data sets, with the number of examples in each split, or the file that has to be downloaded.

    Example: compgen data list
    """
    from rich.table import Table

    from compgen.data.catalog import DATASETS
    from compgen.data.downloads import VARIABLE

    table = Table("data set", "examples", "new in test", box=None, pad_edge=False)
    for column in table.columns[:2]:
        column.no_wrap = True
    for name, known in DATASETS.items():
        for split, (_, novelty) in known.splits.items():
            # At most this wide, so that 80 columns leave some to the last.
            table.add_row(f"{name}/{split}", textwrap.fill(_sizes_or_need(f"{name}/{split}"), 34), novelty)
    output().print(table)
    output().print(
        f"\nWhat a data set needs is looked for in the folder that {VARIABLE} names. To hear where to get it: "
        "compgen data show NAME",
    )
    for name, known in DATASETS.items():
        output().print(f"\n{name}: {known.description}. {known.citation}.")


@app.command()
def show(
    data: DataArgument,
    split: SplitOption = None,
    count: Annotated[int, typer.Option("-n", min=0, metavar="N", help="How many examples to print.")] = 10,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=2**64 - 1,
            help="Draw the examples at random, by this seed; else the first.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print a few examples and the statistics of a data set.

    Example: compgen data show scan/jump --split test -n 3 --seed 1
    """
    dataset = load_split(data, split)
    frame = dataset.frame
    count = min(count, frame.height)
    rows = frame.head(count) if seed is None else frame.sample(count, seed=seed)
    for source, target, name in rows.select("source", "target", "split").iter_rows():
        typer.echo("\t".join([" ".join(source), " ".join(target), name]))
    typer.echo()
    for label, value in _statistics(dataset):
        typer.echo(f"{label:<18}{value}")


@app.command()
def write(
    data: DataArgument,
    out: OutOption,
    split: SplitOption = None,
    format: FormatOption = None,
    swap: Annotated[
        bool, typer.Option("--swap", help="Make each source the target and each target the source.")
    ] = False,
) -> None:
    """Write a data set to a file, in the format that the file's suffix or --format names.

    Example: compgen data write scan/jump --split train -o jump-train.tsv
    """
    from compgen.data.formats import write_dataset

    format = writable_format(out, format, data)
    dataset = load_split(data, split)
    write_dataset(dataset.swapped() if swap else dataset, out, format)
    if str(out) != "-":
        console().print(f"{out}: {_sizes(dataset)}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def cogs(
    data: DataArgument,
    to: Annotated[str, typer.Option("--to", metavar="FORM", help="The form to convert to: lf or variable-free.")],
    out: OutOption,
    split: SplitOption = None,
    format: FormatOption = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave a target as it is if it cannot be converted; otherwise that is an error."),
    ] = False,
) -> None:
    """Convert targets of COGS: predictions in the variable-free form (Qiu et al. 2022) to logical forms, or back.

    Sources are the sentences, which tell the variables; variable `x _ 1` of the published files is one token, x_1. The
    logical form of a single noun or verb cannot be told.

    Example: compgen data cogs predicted.tsv --to lf --keep -o logical.tsv
    """
    from compgen.data.cogs_forms import converted
    from compgen.data.formats import write_dataset

    format = writable_format(out, format, data)
    dataset, kept = converted(
        load_split(data, split, answers=True), to, "standard input" if data == "-" else data, keep
    )
    write_dataset(dataset, out, format)
    console().print(f"{len(dataset) - kept:,} targets converted, {kept:,} kept", highlight=False)


@app.command()
def overlap(
    data: DataArgument,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="S", help="The split of DATA to look for; by default test, or the only one."),
    ] = None,
    train: Annotated[
        str | None, typer.Option("--train", metavar="DATA", help="Training data to look in; by default DATA itself.")
    ] = None,
    train_split: Annotated[
        list[str] | None,
        typer.Option(
            "--train-split",
            metavar="S",
            help="The split of the training data, by default train, or the only one; may be repeated.",
        ),
    ] = None,
    augmented: Annotated[
        list[str] | None,
        typer.Option("--augmented", metavar="DATA", help="Look in this and the training data too; may be repeated."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one a row, in place of a table.")] = False,
) -> None:
    """Print how much of a test set is in the training data, and in training and augmented data together.

    Example overlap: the share of distinct test examples, source and target, that are training examples.
    Co-occurrence overlap: the share of pairs of tokens standing together in a source, or in a target, of the test set
    that stand together in training. The first row is the training data alone; each --augmented has a row of its own.

    Example: compgen data overlap scan/jump --augmented augmented.jsonl
    """
    from compgen.data.catalog import load
    from compgen.errors import UserError
    from compgen.evaluation.overlap import overlap as measure

    more = augmented or []
    if [data, train, *more].count("-") > 1:
        raise UserError("standard input (-) can be read only once: give files")
    tested = load(data)
    trained = tested if train is None or named(train) == named(data) else load(train)
    wanted = usual_split(tested, "test") if split is None else split
    seen = train_split or [usual_split(trained, "train")]
    if trained is tested and wanted in seen:
        raise UserError(f"{data}: the split {wanted!r} would be compared with itself: give --train, or other splits")
    test = tested.split(wanted)
    known = functools.reduce(operator.add, map(trained.split, seen))
    rows: list[tuple[str | None, Overlap]] = [(None, measure(test, known))]
    rows += [(name, measure(test, known + load(name))) for name in more]
    asked = {"data": data, "split": wanted, "train": train or data, "train_split": ",".join(seen)}
    if json:
        from json import dumps

        for name, found in rows:
            typer.echo(dumps(asked | {"augmented": name} | found.to_dict()))
        return
    _print_overlaps(rows, "|".join(f"{name}:{value}" for name, value in asked.items()))


@app.command()
def stems(
    data: DataArgument,
    split: Annotated[
        str | None, typer.Option("--split", metavar="S", help="The split of DATA; by default train, or the only one.")
    ] = None,
    augmented: Annotated[
        str | None,
        typer.Option("--augmented", metavar="DATA", help="Add the first of these to DATA, more and more of them."),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            "--size",
            min=0,
            metavar="K",
            help="How many of the augmented examples to add; may be repeated. By default 0, 128, 512, 2048, 10000, "
            "as far as there are as many.",
            show_default=False,
        ),
    ] = None,
    shortest: ShortestOption = 3,
    language: Annotated[
        str | None,
        typer.Option("--harmony", metavar="LANGUAGE", help="Count vowels out of harmony, as turkish or as finnish."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one a size, in place of tables.")] = False,
) -> None:
    """Print how far stems tell affixes and tags, in inflections and with augmented ones added (theorem 1).

    Mutual information is empirical, in bits; beside it stands what it comes to by chance, if one side is permuted, and
    the share of what chance leaves room for (0 independent, 1 determined, - where it leaves none: where each stem is of
    one example, whole stems say nothing, but their last characters do). See Samir and Silfverberg (2023).

    Example: compgen data stems sigmorphon/turkish --split train-low --augmented more.tsv --harmony turkish
    """
    from compgen.data.catalog import load
    from compgen.errors import UserError
    from compgen.morphology.analyses import SIZES
    from compgen.morphology.analyses import stems as look

    if data == augmented == "-":
        raise UserError("standard input (-) can be read only once: give files")
    dataset = load(data)
    wanted = usual_split(dataset, "train") if split is None else split
    more = None if augmented is None else load(augmented)
    available = 0 if more is None else len(more)
    if max(size or [0]) > available:
        raise UserError(
            f"--size {max(size or [0]):,}: expected at most {available:,}, as many augmented examples as there are"
        )
    rows = look(dataset.split(wanted), more, size or SIZES, shortest, language)
    if not json:
        _print_stems(rows)
        return
    from dataclasses import asdict
    from json import dumps

    for row in rows:
        dependences = [{"of": of, "and": other} | asdict(found) for (of, other), found in row.dependences.items()]
        asked = {"data": data, "split": wanted, "with": augmented, "shortest": shortest}
        typer.echo(dumps(asked | asdict(row) | {"dependences": dependences}, ensure_ascii=False))


def _print_stems(rows: "list[Stems]") -> None:
    """Two tables: a row for each size, and a row for each size and pair of variables."""
    from rich.table import Table

    sizes = Table("augmented", "examples", "no stem", "stems", "commonest tags", "", box=None, pad_edge=False)
    pairs = Table("augmented", "of", "and", "bits", "by chance", "adjusted", box=None, pad_edge=False)
    if any(row.harmony for row in rows):
        sizes.add_column("out of harmony")
    for row in rows:
        counts = [f"{count:,}" for count in (row.augmented, row.examples, row.stemless, row.stems)]
        vowels = [f"{row.harmony.violations:,} of {row.harmony.judged:,}"] if row.harmony else []
        sizes.add_row(*counts, row.tags, f"{row.tags_share:.1%}", *vowels)
        for (of, other), found in row.dependences.items():
            adjusted = "-" if found.adjusted is None else f"{found.adjusted:.3f}"
            pairs.add_row(counts[0], of, other, f"{found.bits:.3f}", f"{found.chance:.3f}", adjusted)
    for table in (sizes, pairs):
        output().print(table)
        output().print()


def _print_overlaps(rows: "list[tuple[str | None, Overlap]]", asked: str) -> None:
    """The table, a row for each (augmented data, overlap), and what was asked for with the metrics' signature."""
    from rich.table import Table
    from rich.text import Text

    from compgen.evaluation.overlap import SIGNATURE

    table = Table("looked in", "example overlap", "co-occurrence overlap", box=None, pad_edge=False)
    for name, found in rows:
        table.add_row(
            Text("train" if name is None else f"train + {name}"),
            f"{found.example_overlap:.4f} ({found.shared_examples:,} of {found.examples:,})",
            f"{found.cooccurrence_overlap:.4f} ({found.shared_cooccurrences:,} of {found.cooccurrences:,})",
        )
    output().print(table)
    output().print(f"{asked}|{SIGNATURE}", markup=False)


def _sizes_or_need(name: str) -> str:
    from compgen.data.catalog import load
    from compgen.data.downloads import MissingFileError
    from compgen.errors import DataError

    try:
        return _sizes(load(name))
    except MissingFileError as error:
        return f"needs {error.name}"
    except DataError:
        return "cannot be read; see show"


def _sizes(dataset: "Dataset") -> str:
    return ", ".join(f"{name} {count:,}" for name, count in dataset.splits.items())


def _statistics(dataset: "Dataset") -> list[tuple[str, str]]:
    """What `show` prints below the examples, as (label, value)."""
    rows = [("examples", _sizes(dataset)), ("distinct", _sizes(dataset.unique()))]
    for side in ("source", "target"):
        lengths = dataset.frame[side].list.len().to_list()
        words = dataset.frame[side].explode().drop_nulls().n_unique()
        rows.append((f"{side} length", f"mean {sum(lengths) / len(lengths):.1f}, max {max(lengths)}"))
        rows.append((f"{side} vocabulary", f"{words:,}"))
    return rows
