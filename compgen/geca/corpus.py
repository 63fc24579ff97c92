"""A dataset as integers: distinct examples, one after another, and the spans that may be cut out of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from compgen.data.examples import Dataset, check_sides
from compgen.data.ragged import Ints, ranges
from compgen.errors import DataError
from compgen.geca.arrays import Tokens

BEGIN, SEPARATOR, END = 0, 1, 2  # <s>, between source and target, </s>; a span holds none of them
MARKERS = 3


@dataclass(frozen=True)
class Corpus:
    """Distinct examples, each as BEGIN source SEPARATOR target END.

    Token ids follow the alphabet, so that nothing computed from them depends on the order of the examples.

    Attributes:
        tokens: all examples, one after another.
        starts: where each begins, and one entry more: where the last one ends.
        separators: where the separator of each is.
        copies: how often each example stands in the data.
        words: the text of each token id; those of the markers are empty.
        skipped: how many examples, copies not counted, are too long to be recombined.
        longest: the most tokens, source and target together, that an example to be recombined may have.
    """

    tokens: Tokens
    starts: Ints
    separators: Ints
    copies: Ints
    words: pl.Series
    longest: int

    @classmethod
    def of(cls, dataset: Dataset, longest: int) -> "Corpus":
        """The corpus of all examples of a dataset, whatever their split.

        Raises:
            DataError: there is no example, or some have a source or target only and others have both.
        """
        frame = dataset.frame.group_by("source", "target", maintain_order=True).len()
        if frame.is_empty():
            raise DataError("GECA: found no example, expected some to recombine")
        check_sides(frame, "GECA")
        sources, targets = (frame[side].list.len().to_numpy().astype(np.int64) for side in ("source", "target"))
        words = pl.concat([frame["source"].explode(), frame["target"].explode()]).drop_nulls().unique().sort()
        codes = pl.Enum(words)
        starts = np.concatenate([[0], np.cumsum(sources + targets + MARKERS)])
        tokens = np.empty(starts[-1], dtype=np.int32)
        tokens[starts[:-1]] = BEGIN
        separators = starts[:-1] + 1 + sources
        tokens[separators] = SEPARATOR
        tokens[starts[1:] - 1] = END
        for side, first, lengths in (("source", starts[:-1] + 1, sources), ("target", separators + 1, targets)):
            filled = frame[side].filter(frame[side].list.len() > 0).explode()
            tokens[ranges(first, lengths)[1]] = filled.cast(codes).to_physical().to_numpy().astype(np.int32) + MARKERS
        texts = pl.concat([pl.Series([""] * MARKERS, dtype=pl.String), words.alias("")])
        return cls(tokens, starts, separators, frame["len"].to_numpy().astype(np.int64), texts, longest)

    def __len__(self) -> int:
        return len(self.separators)

    @property
    def paired(self) -> bool:
        """Whether the examples are pairs; otherwise they are sentences."""
        return bool(self.tokens[self.separators[0] + 1] != END)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each example, source and target together."""
        return np.diff(self.starts) - MARKERS

    @cached_property
    def short(self) -> Ints:
        """The examples that are short enough to be recombined."""
        return np.flatnonzero(self.lengths <= self.longest)

    @property
    def skipped(self) -> int:
        """How many distinct examples are too long to be recombined."""
        return len(self) - len(self.short)
