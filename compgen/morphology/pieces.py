"""The pieces that words of inflection are written with: grapheme clusters, and tags.

A word is a row of the numbers of its pieces, from 1 on, filled up with 0 to a rectangle with others. It is spelled as
tokens only where someone asks for them: words of equal tokens are told from others without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.ragged import lists_of_rectangle
from compgen.data.random import Purpose, stream

Numbers = NDArray[np.unsignedinteger[Any]]
Random = NDArray[np.uint64]

_BASE, _SIDE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)  # odd, so that products lose nothing


@dataclass(frozen=True)
class Pieces:
    """How clusters and tags are spelled, which have numbers from 1 on; 0 fills up rows of them, and is no token.

    Attributes:
        names: the tokens by their numbers, from 1 on, too.
        tokens: those of each cluster and tag, filled up with 0, (1 + clusters and tags, most of one).
        factor, term: what the tokens of each do to the key of those before it, (1 + clusters and tags).
    """

    names: pl.Series
    tokens: Numbers
    factor: Random
    term: Random

    @classmethod
    def of(cls, spellings: Sequence[Sequence[str]]) -> "Pieces":
        """Those that are spelled like this, distinct, in the order of their numbers."""
        names = list(dict.fromkeys(token for spelling in spellings for token in spelling))
        token = numbers(names)
        tokens = rectangle([[], *([token[name] for name in spelling] for spelling in spellings)], len(names))
        random = stream(Purpose.SIGNATURES, 0).bit_generator.random_raw(1 + len(names))
        factor, term = np.ones(len(tokens), np.uint64), np.zeros(len(tokens), np.uint64)
        for column in tokens.T:
            factor = np.where(column, factor * _BASE, factor)
            term = np.where(column, term * _BASE + random[column], term)
        return cls(pl.Series(["", *names]), tokens, factor, term)

    def keys(self, source: Numbers, target: Numbers) -> Random:
        """A number for each pair of sequences, the same for those of equal tokens and hardly for others, (pairs).

        A polynomial of random numbers of the tokens, modulo 2^64, by Horner's rule, all tokens of a piece at once.
        """
        sides = []
        for side in (source, target):
            keys = np.zeros(len(side), dtype=np.uint64)
            for column in side.T:
                pieces = column.astype(np.intp)
                keys *= self.factor.take(pieces)
                keys += self.term.take(pieces)
            sides.append(keys)
        return sides[0] * _SIDE + sides[1]

    def lists(self, blocks: list[Numbers]) -> pl.Series:
        """The lists of tokens that rows of clusters and tags are spelled as, block after block."""
        spelled = [self._spelled(rows) for rows in blocks]
        width = max(rows.shape[1] for rows in spelled)
        tokens = np.zeros((sum(map(len, spelled)), width), dtype=self.tokens.dtype)
        for rows, place in zip(spelled, np.cumsum([0, *map(len, spelled)]), strict=False):
            tokens[place : place + len(rows), : rows.shape[1]] = rows
        return lists_of_rectangle(self.names, tokens, np.count_nonzero(tokens, axis=1))

    def _spelled(self, rows: Numbers) -> Numbers:
        """Rows of clusters and tags as their tokens, filled up with 0 like them."""
        if self.tokens.shape[1] == 1:
            return rows  # tokens are numbered in the order of what they spell
        filled = rows != 0
        pieces, of_row = rows[filled], np.count_nonzero(filled, axis=1)
        lengths = np.count_nonzero(self.tokens, axis=1).take(pieces)
        start = np.append(0, np.cumsum(lengths))
        before = start[np.append(0, np.cumsum(of_row))]
        spelled = np.zeros((len(rows), np.diff(before).max()), dtype=self.tokens.dtype)
        # Where the first token of each goes; then, of those that have more, the second, and so on.
        place = start[:-1] + np.repeat(np.arange(len(rows)) * spelled.shape[1] - before[:-1], of_row)
        for number, column in enumerate(self.tokens.T):
            spelled.reshape(-1)[place + number] = column.take(pieces)
            longer = np.flatnonzero(lengths > number + 1)
            pieces, place, lengths = pieces[longer], place[longer], lengths[longer]
        return spelled


def numbers(names: Sequence[str]) -> dict[str, int]:
    """From 1 on: 0 fills up rows, wherever the program counts tokens or clusters here."""
    return {name: number for number, name in enumerate(names, start=1)}


def rectangle(rows: list[list[int]], largest: int) -> Numbers:
    """Rows of numbers, filled up with 0 to the longest, of a type that is good for the largest there may be."""
    width = max(map(len, rows))
    return np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.min_scalar_type(largest))
