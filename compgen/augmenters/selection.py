"""Which synthetic examples to train on: diverse ones, uncertain ones, or both (Samir and Silfverberg 2023, 4.2).

A template is what examples are to differ in: of inflection the tags, of others whatever names their kind. Strategies:

- `random`: all examples are alike.
- `umt`, `emt`: a template is drawn, uniformly (alpha = 0) or as often as it occurs (alpha = 1), then an example of it.
- `highloss`, `lowloss`: those that a predictor finds least, or most probable.
- `umt+loss`, `emt+loss`: a template is drawn as before, then its least probable example.

Nothing is taken twice: a template that is used up is drawn no more. The paper writes the probability of an example as
that of its template; what it describes, and what is done here, is to draw templates.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.ragged import Ints, runs
from compgen.data.random import Purpose, Stream, stream
from compgen.data.unimorph import split_tags
from compgen.errors import DataError, UserError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Strategy:
    """How examples are chosen.

    Attributes:
        alpha: templates are drawn from p^alpha, p being how often they occur; None: at templates it does not look.
        sign: 1: the least probable examples are taken first; -1: the most probable; 0: losses do not matter.
    """

    alpha: float | None = None
    sign: int = 0


STRATEGIES = {
    "random": Strategy(),
    "umt": Strategy(0.0),
    "emt": Strategy(1.0),
    "highloss": Strategy(None, 1),
    "lowloss": Strategy(None, -1),
    "umt+loss": Strategy(0.0, 1),
    "emt+loss": Strategy(1.0, 1),
}


def tags(dataset: Dataset) -> pl.Series:
    """The template of examples of inflection: the tags of the source, in their order.

    Raises:
        DataError: a source has none.
    """
    found = []
    for source in dataset.frame["source"].to_list():
        letters, named = split_tags(source)
        if not named:
            raise DataError(
                f"found the source {' '.join(letters)!r} without a tag, expected words of inflection; for other data "
                "name the column that holds each example's template (--template)"
            )
        found.append(" ".join(named))
    return pl.Series("template", found, dtype=pl.String)


def templates_of(
    candidates: Dataset, count: int, strategy: str, templates: pl.Series | None = None
) -> pl.Series | None:
    """The templates that `select` will look at, None if at none; raises what it would, losses apart."""
    size = len(candidates)
    if strategy not in STRATEGIES:
        raise UserError(f"no strategy {strategy!r}: expected one of {', '.join(STRATEGIES)}")
    if count < 1:
        raise UserError(f"found a count of {count}, expected 1 or more")
    if count > size:
        raise DataError(f"{count:,} examples cannot be selected of {size:,} candidates")
    if STRATEGIES[strategy].alpha is None:
        return None
    column = tags(candidates) if templates is None else templates
    if len(column) != size:
        raise UserError(f"{size:,} candidates have {len(column):,} templates")
    return column


def select(
    candidates: Dataset,
    count: int,
    strategy: str = "umt+loss",
    *,
    templates: pl.Series | None = None,
    losses: Floats | None = None,
    seed: int = 0,
) -> Dataset:
    """`count` of the candidates by a strategy, in the order in which they were taken.

    Args:
        candidates: synthetic examples, of any augmenter.
        count: how many.
        strategy: one of STRATEGIES.
        templates: of each candidate; by default its tags.
        losses: of each candidate, for the strategies that look at them (`Predictor.losses`).
        seed: fixes what is drawn.

    Raises:
        UserError: no such strategy, losses that are missing or not as many as candidates, or a count below 1.
        DataError: there are fewer candidates than `count`, or they have no tags and no templates are given.
    """
    size = len(candidates)
    column = templates_of(candidates, count, strategy, templates)
    how = STRATEGIES[strategy]
    if how.sign and (losses is None or len(losses) != size):
        found = "none" if losses is None else f"{len(losses):,}"
        raise UserError(f"{strategy} needs a loss of each of the {size:,} candidates: found {found}")
    random = stream(Purpose.SELECTION, seed)
    order = random.permutation(size)  # ties, too, are broken at random
    if losses is not None and how.sign:
        order = order[np.argsort(-how.sign * losses[order], kind="stable")]
    if column is not None and how.alpha is not None:
        numbers = column.rank("dense").to_numpy().astype(np.int64) - 1
        order = _by_template(numbers, order, count, how.alpha, random)
    return Dataset(candidates.frame[order[:count]])


def _by_template(templates: Ints, order: Ints, count: int, alpha: float, random: Stream) -> Ints:
    """Draw templates (numbers from 0) from p^alpha, and take the first of each in `order` that is not taken yet."""
    sizes = np.bincount(templates)
    queues = order[np.argsort(templates[order], kind="stable")]  # template by template, each in order
    starts = np.cumsum(sizes) - sizes
    taken = np.zeros(len(sizes), dtype=np.int64)
    found: list[Ints] = []
    missing = count
    while missing:
        weight = np.where(taken < sizes, sizes.astype(np.float64) ** alpha, 0.0)
        drawn = random.choice(len(sizes), size=missing, p=weight / weight.sum())
        # Drawing on and passing over what is used up is drawing from what is not.
        place = taken[drawn] + _earlier(drawn)
        kept = place < sizes[drawn]
        found.append(queues[starts[drawn[kept]] + place[kept]])
        taken = np.minimum(taken + np.bincount(drawn, minlength=len(sizes)), sizes)
        missing -= int(kept.sum())
    return np.concatenate(found)


def _earlier(values: Ints) -> Ints:
    """How many equal values stand before each."""
    order = np.argsort(values, kind="stable")
    first, length = runs(values[order])
    earlier = np.empty(len(values), dtype=np.int64)
    earlier[order] = np.arange(len(values)) - np.repeat(first, length)
    return earlier
