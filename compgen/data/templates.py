"""Templates: what examples of one kind have in common. Selection and measures of diversity use them."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import SIDES, Dataset
from compgen.data.ragged import Ints, cut
from compgen.data.unimorph import is_analysis, split_tags
from compgen.errors import DataError

_CELLS = 1 << 24  # of a table of examples by tokens, at most

BLANK = "\x1f"  # which no token has: it joins tokens, and stands for a copied token in a template


def tags(dataset: Dataset) -> pl.Series:
    """Return the tags of the source of each example of inflection, in order.

    Raises:
        DataError: a source has none.
    """
    found = []
    for source in dataset.frame["source"].to_list():
        letters, named = split_tags(source)
        if not named:
            raise DataError(
                f"found the source {' '.join(letters)!r} without a tag, expected words of inflection; for other data "
                "give --template shape, length or template (a column), or choose --by random, highloss or lowloss"
            )
        found.append(" ".join(named))
    return pl.Series("template", found, dtype=pl.String)


def lengths(dataset: Dataset) -> pl.Series:
    """Return the number of tokens of each source."""
    return dataset.frame["source"].list.len().alias("template")


def shapes(dataset: Dataset) -> pl.Series:
    """Return the target of each example, with a blank (BLANK) for each token that is in the source too.

    Of sentences, return the source.
    """
    sources, targets = (dataset.frame[side] for side in SIDES)
    if not (targets.list.len() > 0).any():
        return sources.list.join(BLANK).alias("template")
    sides = [side.explode().drop_nulls() for side in (sources, targets)]  # an empty list may be a missing value
    numbers = pl.concat(sides).cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    lengths = [side.list.len().to_numpy().astype(np.int64) for side in (sources, targets)]
    of_source, of_target = (np.repeat(np.arange(len(each)), each) for each in lengths)
    source, target = np.split(numbers, [len(of_source)])
    shared = _among(of_target, target, of_source, source)
    blanked = pl.select(pl.when(pl.Series(shared)).then(pl.lit(BLANK)).otherwise(sides[1])).to_series()
    return cut(blanked, lengths[1]).list.join(" ").alias("template")


def _among(rows: Ints, numbers: Ints, known_rows: Ints, known: Ints) -> NDArray[np.bool_]:
    """Whether each number is known in its row. Rows ascend; a table of many rows and numbers is made piece by piece."""
    size = 1 + max((int(some.max()) for some in (numbers, known) if len(some)), default=0)
    count = 1 + max((int(some[-1]) for some in (rows, known_rows) if len(some)), default=0)
    step, found = min(count, max(1, _CELLS // size)), np.zeros(len(rows), dtype=bool)
    for first in range(0, count, step):
        here, there = (slice(*np.searchsorted(some, (first, first + step))) for some in (rows, known_rows))
        table = np.zeros((step, size), dtype=bool)
        table[known_rows[there] - first, known[there]] = True
        found[here] = table[rows[here] - first, numbers[here]]
    return found


def usual(dataset: Dataset) -> pl.Series:
    """Return tags if all sources are the letters of a lemma and tags, else shapes."""
    for source in dataset.frame["source"].to_list():
        if not is_analysis(source):
            return shapes(dataset)
    return tags(dataset)
