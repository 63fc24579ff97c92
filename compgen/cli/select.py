"""`cgen select`: which of many synthetic examples to train on."""

import time
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from compgen.cli.common import (
    LEARNT,
    DataArgument,
    FormatOption,
    OutOption,
    SeedOption,
    load_split,
    say,
    say_remarks,
    writable_format,
)
from compgen.cli.options import option, with_options
from compgen.errors import UserError
from compgen.record import named, write_record

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from compgen.data.examples import Dataset


class Options(BaseModel):
    """The options of `cgen select`."""

    out: OutOption
    count: int = option(..., "How many.", "-n", ge=1, metavar="N")
    by: str = option(
        "umt+loss",
        "random; umt or emt (diverse: templates are drawn uniformly, or as often as they occur); highloss or lowloss "
        "(what MODEL finds least or most probable); umt+loss, emt+loss (both: the least probable example of each "
        "template drawn).",
        metavar="STRATEGY",
    )
    model: str | None = option(None, "For losses: a predictor, trained on the original examples.", metavar="MODEL")
    template: Literal["tags", "shape", "length", "template"] | None = option(
        None,
        "What selected examples should differ in: tags (of inflection), shape (the target without what it shares with "
        "the source), length (of the source), or template: that column of DATA, which JSON lines and Parquet can have, "
        "and GECA's examples do. By default tags, or shape where there are none.",
        metavar="T",
    )
    split: list[str] = option(LEARNT, "The split of DATA to select from.", metavar="S")
    seed: SeedOption = 0
    format: FormatOption = None


@with_options
def select(candidates: DataArgument, options: Options) -> None:
    """Select N of the synthetic examples in DATA, of any augmenter, to train on beside the original ones.

    Uncertain and diverse examples teach more than random ones (Samir and Silfverberg 2023), where they are right. For
    tests that are longer than training, --by umt --template length takes as many long ones as short ones.

    Example: cgen select more.jsonl -n 512 --by umt+loss --model original.pt -o chosen.jsonl
    """
    from compgen.augmenters import selection
    from compgen.data.formats import write_dataset

    _check_strategy(options)
    format = writable_format(options.out, options.format, candidates, options.model)
    began = time.monotonic()
    dataset = load_split(candidates, options.split)
    given = None if options.template is None else _templates(dataset, candidates, options.template)
    # An error now, not after computing losses.
    templates = selection.templates_of(dataset, options.count, options.by, given)
    losses = None if options.model is None else _losses(options.model, dataset)
    chosen = selection.select(dataset, options.count, options.by, templates=templates, losses=losses, seed=options.seed)
    write_dataset(chosen, options.out, format)
    asked = {"data": named(candidates), "n": options.count, "by": options.by, "model": named(options.model)}
    asked |= options.model_dump(include={"template", "split", "seed"})
    write_record(options.out, asked | {"candidates": len(dataset), "seconds": round(time.monotonic() - began, 1)})
    say(f"{len(chosen):,} of {len(dataset):,} examples by {options.by}")


def _check_strategy(options: Options) -> None:
    """Raise UserError for an unknown strategy, or for an option that the strategy does not use."""
    from compgen.augmenters.selection import STRATEGIES

    if options.by not in STRATEGIES:
        raise UserError(f"--by {options.by}: expected one of {', '.join(STRATEGIES)}")
    strategy = STRATEGIES[options.by]
    if strategy.sign and options.model is None:
        raise UserError(f"--by {options.by} needs a --model")
    if not strategy.sign and options.model is not None:
        raise UserError(f"--by {options.by} uses no losses: leave out --model")
    if options.template is not None and strategy.alpha is None:
        raise UserError(f"--by {options.by} uses no templates: leave out --template")


def _templates(dataset: "Dataset", name: str, kind: str) -> "pl.Series":
    """The templates of a kind; of the column `template`, as text."""
    from compgen.data import templates

    if kind != "template":
        return {"tags": templates.tags, "length": templates.lengths, "shape": templates.shapes}[kind](dataset)
    found: pl.Series | None = dataset.frame.get_column("template", default=None)
    if found is None or found.has_nulls() or found.dtype.is_nested():
        raise UserError(f"{name}: expected a `template` with every example, as JSON lines and Parquet can have")
    return found.cast(str)


def _losses(model: str, dataset: "Dataset") -> "NDArray[np.float64]":
    """The loss of each example under a predictor."""
    from compgen.api import Predictor
    from compgen.progress import Progress

    predictor = Predictor.load(model)
    say_remarks(model, predictor, dataset.frame["source"].to_list())
    with Progress("losses", len(dataset)) as progress:
        return predictor.losses(dataset, watch=progress.update)
