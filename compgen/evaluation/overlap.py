"""The overlap of a test set with training data: whole examples, and pairs of tokens that occur together.

These are the analyses of Andreas (2020), "Good-Enough Compositional Data Augmentation", end of section 4: augmentation
should bring the statistics of training data closer to the test set without generating the test examples.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from compgen.data.examples import SIDES, Dataset
from compgen.errors import DataError

SIGNATURE = "examples:distinct,both-sides|co-occurrence:types,unordered,with-itself,within-side"
_AT_ONCE = 10_000_000  # ordered pairs in memory: about 80 MB


@dataclass(frozen=True)
class Overlap:
    """How much of a test set is in the training data.

    Attributes:
        examples: the number of distinct (source, target) in the test set.
        shared_examples: how many of them are training examples, too.
        cooccurrences: the number of distinct unordered pairs of token types within a side of a test example; a type
            makes a pair with itself.
        shared_cooccurrences: how many of them are within a side of a training example, too.
    """

    examples: int
    shared_examples: int
    cooccurrences: int
    shared_cooccurrences: int

    @property
    def example_overlap(self) -> float:
        """The share of the distinct test examples that are training examples."""
        return self.shared_examples / self.examples

    @property
    def cooccurrence_overlap(self) -> float:
        """The share of the test set's pairs of types that occur in training."""
        return self.shared_cooccurrences / self.cooccurrences

    def to_dict(self) -> dict[str, Any]:
        """All figures and the signature, for JSON."""
        shares = {"example_overlap": self.example_overlap, "cooccurrence_overlap": self.cooccurrence_overlap}
        return asdict(self) | shares | {"signature": SIGNATURE}


def overlap(test: Dataset, train: Dataset) -> Overlap:
    """Measure the overlap of all splits of `test` with all of `train`, e.g. `original + synthetic`.

    Raises:
        DataError: the test set has no tokens.
    """
    sides = _sides(test)
    if sides.is_empty():
        raise DataError("found no tokens in the test set, expected some to look for in the training data")
    ours, theirs = (dataset.frame.select(SIDES).unique() for dataset in (test, train))
    shared = ours.height + theirs.height - pl.concat([ours, theirs]).n_unique()
    types = sides.select("token").unique().with_row_index("type")
    wanted = pl.concat(_pairs(sides, types)).unique()
    missing = wanted
    for found in _pairs(_sides(train), types):
        missing = missing.join(found, on="pair", how="anti")
    return Overlap(ours.height, shared, wanted.height, wanted.height - missing.height)


def _sides(dataset: Dataset) -> pl.DataFrame:
    """The tokens of all sources and targets: columns `side` (its number) and `token`."""
    columns = [dataset.frame.select(token=side) for side in SIDES]
    return pl.concat(columns).with_row_index("side").explode("token").drop_nulls()


def _pairs(sides: pl.DataFrame, types: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The pairs of `types` within a side, in parts of bounded size: a column `pair`, distinct within its part.

    Tokens that are not in `types` are dropped first, so training data cost only what they share with the test set.
    """
    known = sides.join(types, on="token")
    sets = known.group_by("side").agg(pl.col("type").unique().sort()).select("type").unique()
    part = (pl.col("type").list.len().cast(pl.Int64) ** 2).cum_sum() // _AT_ONCE
    for rows in sets.with_columns(part=part).partition_by("part"):
        pairs = rows.select(one="type", other="type").explode("one").explode("other")
        one, other = pl.col("one").cast(pl.UInt64), pl.col("other")
        # Both in one number: Polars finds distinct numbers several times faster than distinct rows.
        yield pairs.filter(one <= other).select(pair=one * 2**32 + other).unique()
