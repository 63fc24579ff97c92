"""How much of a test set is in the training data already: whole examples, and tokens that stand together.

These are the analyses of Andreas (2020), "Good-Enough Compositional Data Augmentation", end of section 4: a method
that generalises should bring the statistics of training data and test set together without making the test itself.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from compgen.data.examples import Dataset
from compgen.errors import DataError

SIGNATURE = "examples:distinct,both-sides|co-occurrence:types,unordered,with-itself,within-side"
_SIDES = ("source", "target")
_AT_ONCE = 10_000_000  # ordered pairs held in memory together: about 80 MB


@dataclass(frozen=True)
class Overlap:
    """What of a test set was found in training data.

    Attributes:
        examples: distinct (source, target) in the test set.
        shared_examples: those of them that are training examples, with the same source and the same target.
        cooccurrences: unordered pairs of token types that stand together in the source, or together in the target, of
            some test example. Any type that occurs stands together with itself.
        shared_cooccurrences: those of them that do so in some training example too, on whichever side.
    """

    examples: int
    shared_examples: int
    cooccurrences: int
    shared_cooccurrences: int

    @property
    def example_overlap(self) -> float:
        """Full example overlap, a share of the distinct test examples."""
        return self.shared_examples / self.examples

    @property
    def cooccurrence_overlap(self) -> float:
        """Token co-occurrence overlap, a share of the test set's pairs of types."""
        return self.shared_cooccurrences / self.cooccurrences

    def to_dict(self) -> dict[str, Any]:
        """All figures and the signature, for JSON."""
        shares = {"example_overlap": self.example_overlap, "cooccurrence_overlap": self.cooccurrence_overlap}
        return asdict(self) | shares | {"signature": SIGNATURE}


def overlap(test: Dataset, train: Dataset) -> Overlap:
    """What of `test` is in `train`, which may be original and synthetic examples together: `original + synthetic`.

    All examples of both are looked at, whatever their splits.

    Raises:
        DataError: the test set holds no token, so that there is nothing to look for.
    """
    sides = _sides(test)
    if sides.is_empty():
        raise DataError("found no tokens in the test set, expected some to look for in the training data")
    types = sides.select("token").unique().with_row_index("type")
    wanted = pl.concat(_pairs(sides, types)).unique()
    missing = wanted
    for found in _pairs(_sides(train), types):
        missing = missing.join(found, on="pair", how="anti")
    return Overlap(*_examples(test, train), wanted.height, wanted.height - missing.height)


def _examples(test: Dataset, train: Dataset) -> tuple[int, int]:
    """How many distinct examples are in `test`, and how many of them in `train` too."""
    ours, theirs = (dataset.frame.select(_SIDES).unique() for dataset in (test, train))
    return ours.height, ours.height + theirs.height - pl.concat([ours, theirs]).n_unique()


def _sides(dataset: Dataset) -> pl.DataFrame:
    """The tokens of all sources and targets: columns `side`, a number for each, and `token`."""
    columns = [dataset.frame.select(token=side) for side in _SIDES]
    return pl.concat(columns).with_row_index("side").explode("token").drop_nulls()


def _pairs(sides: pl.DataFrame, types: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The pairs of `types` that stand in one side, in parts of bounded size: a column `pair`, distinct in its part.

    A token that is not in `types` is in no pair, so training data cost no more than what they share with the test set.
    """
    known = sides.join(types, on="token")
    # Sides that differ in order and number of their tokens alone have one set of types.
    sets = known.group_by("side").agg(pl.col("type").unique().sort()).select("type").unique()
    part = (pl.col("type").list.len().cast(pl.Int64) ** 2).cum_sum() // _AT_ONCE
    for rows in sets.with_columns(part=part).partition_by("part"):
        pairs = rows.select(one="type", other="type").explode("one").explode("other")
        one, other = pl.col("one").cast(pl.UInt64), pl.col("other")
        # Two columns in one: Polars finds the distinct numbers of a column several times faster than distinct rows.
        yield pairs.filter(one <= other).select(pair=one * 2**32 + other).unique()
