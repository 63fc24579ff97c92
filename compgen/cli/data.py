"""`compgen data`: see which data sets there are and what is in one, and write one to a file."""

from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import DataArgument, FormatOption, OutOption, SplitOption, console

if TYPE_CHECKING:
    from compgen.data.examples import Dataset

app = typer.Typer(no_args_is_help=True, help="Data sets: list the known ones, look into any, convert to other formats.")


@app.command("list")
def list_() -> None:
    """List the known data sets, with the number of examples in each split.

    Example: compgen data list
    """
    from rich.console import Console
    from rich.table import Table

    from compgen.data.catalog import DATASETS, load

    table = Table("data set", "examples", "new in test", box=None, pad_edge=False)
    for column in table.columns[:2]:
        column.no_wrap = True
    for name, known in DATASETS.items():
        for split, (_, novelty) in known.splits.items():
            table.add_row(f"{name}/{split}", _sizes(load(f"{name}/{split}")), novelty)
    output = Console()
    output.print(table)
    for name, known in DATASETS.items():
        output.print(f"\n{name}: {known.description}. {known.citation}.", highlight=False)


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
    dataset = _load(data, split)
    frame = dataset.frame
    rows = frame.head(count) if seed is None else frame.sample(min(count, frame.height), seed=seed)
    for source, target, name in rows.select("source", "target", "split").iter_rows():
        typer.echo("\t".join([" ".join(source), " ".join(target), name]))
    typer.echo()
    for label, value in _statistics(dataset):
        typer.echo(f"{label:<18}{value}")


@app.command()
def write(data: DataArgument, out: OutOption, split: SplitOption = None, format: FormatOption = None) -> None:
    """Write a data set to a file, in the format that the file's suffix or --format names.

    Example: compgen data write scan/jump --split train -o jump-train.tsv
    """
    from compgen.data.formats import write_dataset

    dataset = _load(data, split)
    write_dataset(dataset, out, format)
    if str(out) != "-":
        console().print(f"{out}: {_sizes(dataset)}", highlight=False, markup=False, soft_wrap=True)


def _load(data: str, split: str | None) -> "Dataset":
    from compgen.data.catalog import load

    dataset = load(data)
    return dataset if split is None else dataset.split(split)


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
