"""Concatenation: two examples one after the other are a third (Jia and Liang 2016, rule "concat-2").

What GECA's table 2 calls "+ concat".
"""

from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from compgen.augmenters.base import MOST, PAIRS, SENTENCES, Augmenter, Options, Shown
from compgen.data.examples import SIDES, TOKENS, Dataset
from compgen.data.random import Purpose, Stream, stream
from compgen.data.vocabulary import SPECIALS, why_not_data
from compgen.errors import ExhaustedError, UserError
from compgen.progress import Watch

LISTED = 1_000_000  # up to so many pairs are all listed and shuffled; of more, so many at a time are drawn


class ConcatOptions(Options):
    """How two examples are put together."""

    separator: str = Field(
        "|",
        description="Put this token between the two examples; empty for none.",
        json_schema_extra={"metavar": "TOKEN"},
    )


def first_numbers(below: int, count: int, random: Stream) -> NDArray[np.int64]:
    """Return `count` distinct numbers below `below` in random order; a smaller count gives the first of them."""
    if below <= LISTED:
        return random.permutation(below)[:count]
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        drawn = np.concatenate([found, random.integers(below, size=LISTED)])
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return found[:count]


class Concat(Augmenter[ConcatOptions]):
    """Join two examples into one, on both sides (Jia and Liang 2016, concat-2)."""

    name = "concat"
    options_type = ConcatOptions
    takes = frozenset({PAIRS, SENTENCES})
    columns: ClassVar[dict[str, Any]] = {"first": pl.Int64, "second": pl.Int64}
    usual = 1000
    example = "cgen augment concat pairs.tsv -n 500 -o more.tsv"

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Take the distinct examples of a dataset."""
        separator = self.options.separator
        if separator in SPECIALS:
            raise UserError(f"separator {separator}: models and vocabularies give it a meaning of their own")
        if separator and separator.split() != [separator]:
            raise UserError(f"separator {separator!r}: expected one token, without spaces")
        if why := why_not_data(separator):
            raise UserError(f"separator {separator!r}: expected a token of data: it {why}")
        rows = dataset.frame.select("source", "target").with_row_index("row")
        self.examples = rows.unique(["source", "target"], keep="first", maintain_order=True).sort("source", "target")

    def no_more(self) -> str:
        """That each pair of examples was taken."""
        return f"{len(self.examples):,} distinct examples have no more pairs"

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """The two examples that a sample is put together from."""
        self.require_row(sample, *self.columns)
        return [self.shown(part, sample[part]) for part in self.columns]

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:  # noqa: ARG002
        """The concatenations of `count` distinct pairs of examples; the two of a pair may be the same.

        Two pairs may read alike where there is no separator, or where it occurs in the data. The columns `first` and
        `second` are the rows of the two in the training data.
        """
        size = len(self.examples)
        assert count is not None, "`usual` says how many"
        if count > size**2 > MOST:  # nobody meant to have all of them
            raise ExhaustedError(f"concat: {size:,} distinct examples give {size**2:,} pairs, fewer than {count:,}")
        pairs = first_numbers(size**2, min(count, size**2), stream(Purpose.CONCATENATION, seed))
        one, two = (self.examples[part] for part in np.divmod(pairs, size))
        between = pl.lit([self.options.separator] if self.options.separator else [], dtype=TOKENS)
        sides = (
            pl.when(pl.col(side).list.len() > 0)  # the target of a sentence stays empty
            .then(pl.concat_list(side, between, f"second {side}"))
            .otherwise(pl.col(side))
            for side in SIDES
        )
        both = one.hstack(two.select(pl.all().name.prefix("second ")))
        return both.select(*sides, first=pl.col("row").cast(pl.Int64), second=pl.col("second row").cast(pl.Int64))
