"""The pieces of words of inflection: grapheme clusters and tags.

Words are rows of the numbers of their pieces, from 1 on, padded with 0. They are spelled as tokens only in the end:
before, equal words are recognised by keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.padding import padded
from compgen.data.ragged import lists_of_rectangle
from compgen.data.random import Purpose, stream

Numbers = NDArray[np.unsignedinteger[Any]]
Random = NDArray[np.uint64]

_BASE, _SIDE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)  # odd, so that products lose nothing


@dataclass(frozen=True)
class Pieces:
    """The spelling of each piece, as numbers of tokens; both pieces and tokens are numbered from 1."""

    names: pl.Series  # the text of each token
    tokens: Numbers  # of each piece, (1 + pieces, longest), padded with 0
    factor: Random  # (1 + pieces): appending a piece changes a key to key * factor + term
    term: Random

    @classmethod
    def of(cls, spellings: Sequence[Sequence[str]]) -> "Pieces":
        """Number distinct pieces that are spelled like this."""
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
        """Return a hash of the tokens of each pair of rows, (pairs): a polynomial modulo 2^64, by Horner's rule."""
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
        """Spell blocks of rows as lists of tokens, block after block."""
        spelled = [self._spelled(rows) for rows in blocks]
        width = max(rows.shape[1] for rows in spelled)
        tokens = np.zeros((sum(map(len, spelled)), width), dtype=self.tokens.dtype)
        for rows, place in zip(spelled, np.cumsum([0, *map(len, spelled)]), strict=False):
            tokens[place : place + len(rows), : rows.shape[1]] = rows
        return lists_of_rectangle(self.names, tokens, np.count_nonzero(tokens, axis=1))

    def _spelled(self, rows: Numbers) -> Numbers:
        """Turn rows of pieces to rows of tokens."""
        if self.tokens.shape[1] == 1:
            return rows  # each piece is a token, and has its number
        filled = rows != 0
        pieces, of_row = rows[filled], np.count_nonzero(filled, axis=1)
        lengths = np.count_nonzero(self.tokens, axis=1).take(pieces)
        start = np.append(0, np.cumsum(lengths))
        before = start[np.append(0, np.cumsum(of_row))]
        spelled = np.zeros((len(rows), np.diff(before).max()), dtype=self.tokens.dtype)
        # The place of each piece's first token; then, for longer pieces, of the second, and so on.
        place = start[:-1] + np.repeat(np.arange(len(rows)) * spelled.shape[1] - before[:-1], of_row)
        for number, column in enumerate(self.tokens.T):
            spelled.reshape(-1)[place + number] = column.take(pieces)
            longer = np.flatnonzero(lengths > number + 1)
            pieces, place, lengths = pieces[longer], place[longer], lengths[longer]
        return spelled


def numbers(names: Sequence[str]) -> dict[str, int]:
    """Number from 1."""
    return {name: number for number, name in enumerate(names, start=1)}


def rectangle(rows: list[list[int]], largest: int) -> Numbers:
    """Pad rows of numbers with 0; the type has room for the `largest`."""
    return padded(rows).astype(np.min_scalar_type(largest))
