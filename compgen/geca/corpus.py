"""A dataset as integers: distinct examples, one after another."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from compgen.data.examples import Dataset
from compgen.data.ragged import Ints, ranges
from compgen.geca.arrays import Tokens

BEGIN, SEPARATOR, END = 0, 1, 2  # <s>, ## between source and target, </s>; no span contains one
MARKERS = 3
USUAL, COVERED = 100, 0.9  # default of `longest`: so many tokens, or what this share of the examples needs,
LONGEST = 1000  # but no more: an example of 10,000 different tokens has 50 million fragments of two spans


def usual_longest(lengths: Ints) -> int:
    """Return the default of `longest`, which is limited because work grows with the square of an example's length."""
    return min(max(USUAL, int(np.quantile(lengths, COVERED, method="higher"))), LONGEST)


def all_longer(lengths: Ints, longest: int) -> str:
    """Return a message for data without an example that is short enough."""
    return f"no example has {longest:,} tokens or fewer (the shortest has {lengths.min():,}): raise --longest"


@dataclass(frozen=True)
class Corpus:
    """Distinct examples, each as BEGIN source SEPARATOR target END.

    Token ids are in alphabetical order, so that hashes do not depend on the order of the examples.
    """

    tokens: Tokens  # of all examples, one after another
    starts: Ints  # where each example begins, and the end of the last
    separators: Ints  # the position of each example's separator
    copies: Ints  # how often each example occurs in the data
    words: pl.Series  # the text of each token id; empty for markers
    longest: int  # the most tokens, source and target together, of an example to recombine

    @classmethod
    def of(cls, dataset: Dataset, longest: int | None) -> "Corpus":
        """Return the corpus of all examples of a dataset; without `longest`, that is `usual_longest`."""
        frame = dataset.frame.group_by("source", "target", maintain_order=True).len()
        sources, targets = (frame[side].list.len().to_numpy().astype(np.int64) for side in ("source", "target"))
        words = pl.concat([frame["source"].explode(), frame["target"].explode()]).drop_nulls().unique().sort()
        codes = pl.Enum(words)
        starts = np.concatenate([[0], np.cumsum(sources + targets + MARKERS)])
        separators = starts[:-1] + 1 + sources
        tokens = np.empty(starts[-1], dtype=np.int32)
        tokens[starts[:-1]], tokens[separators], tokens[starts[1:] - 1] = BEGIN, SEPARATOR, END
        for side, first, lengths in (("source", starts[:-1] + 1, sources), ("target", separators + 1, targets)):
            filled = frame[side].filter(frame[side].list.len() > 0).explode()
            tokens[ranges(first, lengths)[1]] = filled.cast(codes).to_physical().to_numpy().astype(np.int32) + MARKERS
        texts = pl.concat([pl.Series([""] * MARKERS, dtype=pl.String), words.alias("")])
        longest = usual_longest(sources + targets) if longest is None else longest
        return cls(tokens, starts, separators, frame["len"].to_numpy().astype(np.int64), texts, longest)

    def __len__(self) -> int:
        return len(self.separators)

    @property
    def paired(self) -> bool:
        """Whether the examples are pairs, not sentences."""
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
