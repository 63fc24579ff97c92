"""Spans: the n-grams that may be cut out (Andreas 2020, equation 1), and where each of them occurs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges
from compgen.geca.arrays import Hashes
from compgen.geca.corpus import MARKERS, Corpus


@dataclass(frozen=True)
class Spans:
    """The eligible spans of a corpus, numbered from 1 by length, then alphabetically."""

    at: list[NDArray[np.int32]]  # for each length from 1, the span that begins at each position; 0 if none does
    example: Ints  # a position of the corpus at which each span begins; entry 0 is unused
    lengths: Ints  # tokens of each span; entry 0 is unused

    @classmethod
    def of(cls, corpus: Corpus, longest: int, limit: int | None) -> "Spans":
        """Find all spans of 1 to `longest` tokens that occur at most `limit` times in the data.

        A span lies in one side. Occurrences are counted as in the reference: copies and examples that are too long
        count, and so do occurrences that overlap.
        """
        tokens = corpus.tokens
        room = _room(corpus)
        weights = np.repeat(corpus.copies, np.diff(corpus.starts))
        at, examples, lengths = [], [np.zeros(1, dtype=np.int64)], [np.zeros(1, dtype=np.int64)]
        ids = np.zeros(len(tokens), dtype=np.int64)  # of the n-gram that begins at each position
        size, count = 1, 1  # n-grams of the last length, and spans numbered so far
        for length in range(1, longest + 1):
            begins = np.flatnonzero(room >= length)
            if not len(begins):
                break
            keys = ids[begins] * len(corpus.words) + tokens[begins + length - 1]
            values, first, inverse = _unique(keys, size * len(corpus.words))
            ids[begins], size = inverse, len(values)
            seen = np.bincount(inverse, weights=weights[begins], minlength=len(values))
            eligible = np.flatnonzero(seen <= (np.inf if limit is None else limit))
            numbers = np.zeros(len(values), dtype=np.int32)
            numbers[eligible] = np.arange(count, count + len(eligible))
            count += len(eligible)
            place = np.zeros(len(tokens), dtype=np.int32)
            place[begins] = numbers[inverse]
            at.append(place)
            examples.append(begins[first[eligible]])
            lengths.append(np.full(len(eligible), length))
        return cls(at, np.concatenate(examples), np.concatenate(lengths))

    def __len__(self) -> int:
        return len(self.lengths) - 1


def _room(corpus: Corpus) -> Ints:
    """Return the number of tokens from each position to the end of its side; 0 at a marker."""
    ends = np.where(corpus.tokens < MARKERS, np.arange(len(corpus.tokens)), np.iinfo(np.int64).max)
    ends = np.minimum.accumulate(ends[::-1])[::-1]
    result: Ints = ends - np.arange(len(ends))
    return result


def _unique(keys: Ints, bound: int) -> tuple[Ints, Ints, Ints]:
    """np.unique with first positions and inverse; by counting if the bound of the keys is small."""
    if bound > 4 * len(keys) + 1000:
        values, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return values, first, inverse
    first_of = np.full(bound, -1, dtype=np.int64)
    first_of[keys[::-1]] = np.arange(len(keys))[::-1]
    values = np.flatnonzero(first_of >= 0)
    rank = np.zeros(bound, dtype=np.int64)
    rank[values] = np.arange(len(values))
    return values, first_of[values], rank[keys]


@dataclass(frozen=True)
class Entries:
    """Each span of each of some examples once, with its occurrences, which do not overlap.

    Entries are in the order of their first occurrence in the corpus, so those of an example are together.
    """

    span: Ints
    example: Ints
    first: Ints  # of its occurrences, a range of `positions`
    count: Ints
    positions: Ints  # where occurrences begin in the corpus
    sides: NDArray[np.uint8]  # 1 if it occurs in the source, 2 in the target, 3 in both
    start: Ints  # the entries of its example are start .. stop - 1
    stop: Ints

    @classmethod
    def of(cls, corpus: Corpus, spans: Spans, examples: Ints) -> "Entries":
        """Return the entries of some examples, given in ascending order."""
        row, where = ranges(corpus.starts[examples], np.diff(corpus.starts)[examples])
        here = [np.flatnonzero(place[where]) for place in spans.at]
        span = np.concatenate([place[where[some]] for place, some in zip(spans.at, here, strict=True)]).astype(np.int64)
        begin, owning = (np.concatenate([values[some] for some in here]) for values in (where, row))
        # Positions ascend within a span, so a stable sort by example and span keeps them in order.
        order = np.argsort(owning * (len(spans) + 1) + span, kind="stable")
        span, begin, owning = span[order], begin[order], owning[order]
        new = np.ones(len(span), dtype=bool)
        new[1:] = (span[1:] != span[:-1]) | (owning[1:] != owning[:-1])
        keep = _disjoint(begin, spans.lengths[span], new)
        span, begin, owning, new = span[keep], begin[keep], owning[keep], new[keep]
        first = np.flatnonzero(new)
        count = np.diff(np.append(first, len(span)))
        sides = np.where(begin > corpus.separators[examples][owning], 2, 1).astype(np.uint8)
        sides = np.bitwise_or.reduceat(sides, first) if len(first) else sides
        order = np.lexsort((spans.lengths[span[first]], begin[first]))
        first, count, sides = first[order], count[order], sides[order]
        owning = owning[first]
        start, stop = (np.searchsorted(owning, owning, side=side) for side in ("left", "right"))
        return cls(span[first], examples[owning], first, count, begin, sides, start, stop)

    def after(self, entry: Ints, position: Ints) -> Ints:
        """Return the first occurrence of each entry after a position; -1 if there is none."""
        place, stop, last = self.first[entry], (self.first + self.count)[entry], len(self.positions) - 1
        while (late := (place < stop) & (self.positions[np.minimum(place, last)] <= position)).any():
            place = place + late
        return np.where(place < stop, self.positions[np.minimum(place, last)], -1)

    def find(self, example: Ints, span: Ints) -> Ints:
        """Return the entries of pairs (example, span), which must exist."""
        keys, order, width = self._keys
        return order[np.searchsorted(keys, example * width + span)]

    @cached_property
    def _keys(self) -> tuple[Ints, Ints, int]:
        """Each entry's example * width + span, ascending; the entries in that order; and width."""
        width = int(self.span.max()) + 1
        keys = self.example * width + self.span
        order = np.argsort(keys)
        return keys[order], order, width

    def types(self, corpus: Corpus, spans: Spans) -> list[Hashes]:
        """Return the set of token types of each entry, as bits of one or more 64-bit words, numbered per example."""
        lengths = spans.lengths[self.span]
        owner, offset = ranges(np.zeros(len(lengths), dtype=np.int64), lengths)
        pair = self.example[owner] * len(corpus.words) + corpus.tokens[self.positions[self.first][owner] + offset]
        values, rank = np.unique(pair, return_inverse=True)
        examples = values // len(corpus.words)
        local = (np.arange(len(values)) - np.searchsorted(examples, examples))[rank]
        begins = np.cumsum(lengths) - lengths
        words = []
        for word in range(int(local.max()) // 64 + 1):
            bits = np.where(local // 64 == word, np.uint64(1) << (local % 64).astype(np.uint64), np.uint64(0))
            words.append(np.bitwise_or.reduceat(bits, begins))
        return words


def _disjoint(begin: Ints, length: Ints, new: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which occurrences remain when those of each span are taken from left to right without overlap.

    A span's occurrences follow one another; `new` is set at the first.
    """
    clash = np.zeros(len(begin), dtype=bool)
    clash[1:] = ~new[1:] & (begin[1:] < begin[:-1] + length[:-1])
    keep = np.ones(len(begin), dtype=bool)
    if not clash.any():
        return keep
    # Only spans with a clash are gone through, all at the same time: each step takes one occurrence of each span.
    group = np.cumsum(new) - 1
    rows = np.flatnonzero(np.isin(group, group[clash]))
    keep[rows] = False
    last = np.append(np.flatnonzero(new)[1:], len(begin))[group]
    taken = rows[new[rows]]
    while len(taken):
        keep[taken] = True
        following, limit, free = taken + 1, last[taken], begin[taken] + length[taken]
        while (late := (following < limit) & (begin[np.minimum(following, len(begin) - 1)] < free)).any():
            following += late
        taken = following[following < limit]
    return keep
