"""`compgen augment`: data in, more data out."""

from pathlib import Path
from typing import Annotated

import typer

from compgen.cli.common import DataArgument, FormatOption, ResumeOption, SeedOption, console, need_torch
from compgen.cli.sample import FiltersOption, NgramOption, filter_names

app = typer.Typer(
    no_args_is_help=True, help="Make more examples from those in DATA, by one of the families of methods."
)


@app.command()
def recombine(
    data: DataArgument,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Where to write the new examples.")],
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 400,
    config: Annotated[
        str, typer.Option("--config", metavar="C", help="A shipped configuration, or a TOML file.")
    ] = "recombine_small",
    split: Annotated[str, typer.Option("--split", metavar="S", help="The split of DATA to learn from.")] = "train",
    filters: FiltersOption = ("novel,unique",),  # type: ignore[assignment]
    ngram: NgramOption = None,
    seed: SeedOption = 0,
    resume: ResumeOption = False,
    format: FormatOption = None,
) -> None:
    """Train a recombination network on DATA and sample it: `train`, then `sample`, in one go.

    The checkpoint stays beside OUT (OUT.pt), to be exported and sampled again.

    Example: compgen augment recombine pairs.tsv -n 400 -o more.tsv
    """
    from compgen.api import Recombination
    from compgen.data.catalog import load
    from compgen.data.formats import FORMATS, format_of, write_dataset
    from compgen.errors import ExhaustedError, UserError

    need_torch("training")
    names = filter_names(filters or [], rare=(ngram,))
    if str(out) == "-":
        raise UserError("the generator is kept beside OUT: give the name of a file")
    if format is None:
        format = format_of(out)  # an error now, not after training
    elif format not in FORMATS:
        raise UserError(f"no format {format!r}: expected one of {', '.join(FORMATS)}")
    checkpoint = out.with_name(out.name + ".pt")
    augmenter = Recombination(config, checkpoint, seed=seed).fit(load(data).split(split), resume=resume)
    try:
        samples = augmenter.sample(count, seed, filters=names, ngram=ngram or 1)
    except ExhaustedError as error:
        raise ExhaustedError(f"{error}; the generator is {checkpoint}, for other filters") from error
    write_dataset(samples, out, format)
    console().print(f"{len(samples):,} examples in {out}; the generator is {checkpoint}", highlight=False, markup=False)
