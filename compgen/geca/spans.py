"""Spans: the n-grams that may be cut out, and where each of them stands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges
from compgen.geca.arrays import Hashes
from compgen.geca.corpus import MARKERS, Corpus


@dataclass(frozen=True)
class Spans:
    """The eligible spans of a corpus, numbered from 1: by length, then by the alphabet.

    Attributes:
        at: for each number of tokens, from 1: the span that begins at each position of the corpus; 0 if none does.
        example: a position of the corpus at which each span begins; entry 0 is unused.
        lengths: tokens of each span; entry 0 is unused.
    """

    at: list[NDArray[np.int32]]
    example: Ints
    lengths: Ints

    @classmethod
    def of(cls, corpus: Corpus, longest: int, limit: int | None) -> "Spans":
        """All spans of 1 to `longest` tokens that stand at most `limit` times in the data.

        Occurrences are counted as the reference does: in all examples, too long ones and copies included, and each
        position of an overlap for itself. A span is inside a source or inside a target.
        """
        tokens = corpus.tokens
        room = _room(corpus)
        weights = np.repeat(corpus.copies, np.diff(corpus.starts))
        at, examples, lengths = [], [np.zeros(1, dtype=np.int64)], [np.zeros(1, dtype=np.int64)]
        ids = np.zeros(len(tokens), dtype=np.int64)
        size, count = 1, 1  # spans of the last length, and all numbered so far
        for length in range(1, longest + 1):
            begins = np.flatnonzero(room >= length)
            if not len(begins):
                break
            keys = ids[begins] * len(corpus.words) + tokens[begins + length - 1]
            values, first, inverse = _unique(keys, size * len(corpus.words))
            ids[begins], size = inverse, len(values)
            numbers = np.zeros(len(values), dtype=np.int32)
            seen = np.bincount(inverse, weights=weights[begins], minlength=len(values))
            eligible = np.flatnonzero(seen <= (np.inf if limit is None else limit))
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
    """Tokens from each position to the end of its side; 0 at a marker."""
    ends = np.where(corpus.tokens < MARKERS, np.arange(len(corpus.tokens)), np.iinfo(np.int64).max)
    ends = np.minimum.accumulate(ends[::-1])[::-1]
    result: Ints = ends - np.arange(len(ends))
    return result


def _unique(keys: Ints, bound: int) -> tuple[Ints, Ints, Ints]:
    """np.unique with first positions and inverse; by counting where the keys, all below `bound`, are few."""
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

    Attributes:
        span, example: of each entry.
        first, count: its occurrences, as a range of `positions`.
        positions: where occurrences begin, in the corpus.
        sides: 1 if it stands in the source, 2 in the target, 3 in both.
        start, stop: the range of entries that belong to its example.
    """

    span: Ints
    example: Ints
    first: Ints
    count: Ints
    positions: Ints
    sides: NDArray[np.uint8]
    start: Ints
    stop: Ints

    @classmethod
    def of(cls, corpus: Corpus, spans: Spans, examples: Ints) -> "Entries":
        """The entries of some examples, given in ascending order."""
        row, where = ranges(corpus.starts[examples], np.diff(corpus.starts)[examples])
        found, begins, owner = [], [], []
        for place in spans.at:
            numbers = place[where]
            here = np.flatnonzero(numbers)
            found.append(numbers[here].astype(np.int64))
            begins.append(where[here])
            owner.append(row[here])
        span, begin, owning = np.concatenate(found), np.concatenate(begins), np.concatenate(owner)
        # Positions ascend within a span, so a stable sort by example and span leaves them in order.
        order = np.argsort(owning * (len(spans) + 1) + span, kind="stable")
        span, begin, owning = span[order], begin[order], owning[order]
        new = np.ones(len(span), dtype=bool)
        new[1:] = (span[1:] != span[:-1]) | (owning[1:] != owning[:-1])
        keep = _disjoint(begin, spans.lengths[span], new)
        span, begin, owning, new = span[keep], begin[keep], owning[keep], new[keep]
        first = np.flatnonzero(new)
        count = np.diff(np.append(first, len(span)))
        target = begin > corpus.separators[examples][owning]
        sides = np.zeros(len(first), dtype=np.uint8)
        if len(first):
            sides |= np.where(np.logical_and.reduceat(target, first), 0, 1).astype(np.uint8)
            sides |= np.where(np.logical_or.reduceat(target, first), 2, 0).astype(np.uint8)
        order = np.lexsort((spans.lengths[span[first]], begin[first]))
        first, count, sides = first[order], count[order], sides[order]
        owning = owning[first]
        start, stop = (np.searchsorted(owning, owning, side=side) for side in ("left", "right"))
        return cls(span[first], examples[owning], first, count, begin, sides, start, stop)

    def after(self, entry: Ints, position: Ints) -> Ints:
        """Where each entry stands for the first time after a position; -1 if it does not."""
        place, stop = self.first[entry], self.first[entry] + self.count[entry]
        while (late := (place < stop) & (self.positions[np.minimum(place, len(self.positions) - 1)] <= position)).any():
            place = place + late
        return np.where(place < stop, self.positions[np.minimum(place, len(self.positions) - 1)], -1)

    def find(self, example: Ints, span: Ints) -> Ints:
        """The entries of some (example, span), each of which must be there."""
        width = int(self.span.max()) + 1
        keys = self.example * width + self.span
        order = np.argsort(keys)
        return order[np.searchsorted(keys, example * width + span, sorter=order)]

    def types(self, corpus: Corpus, spans: Spans) -> list[Hashes]:
        """Which token types of its example each entry holds: bits of one or more 64-bit words."""
        lengths = spans.lengths[self.span]
        owner, offset = ranges(np.zeros(len(lengths), dtype=np.int64), lengths)
        pair = self.example[owner] * len(corpus.words) + corpus.tokens[self.positions[self.first][owner] + offset]
        values, rank = np.unique(pair, return_inverse=True)
        examples = values // len(corpus.words)
        local = (np.arange(len(values)) - np.searchsorted(examples, examples))[rank]
        words = []
        begins = np.cumsum(lengths) - lengths
        for word in range(int(local.max(initial=0)) // 64 + 1):
            bits = np.where(local // 64 == word, np.uint64(1) << (local % 64).astype(np.uint64), np.uint64(0))
            words.append(np.bitwise_or.reduceat(bits, begins) if len(begins) else np.zeros(0, dtype=np.uint64))
        return words


def _disjoint(begin: Ints, length: Ints, new: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of the occurrences of each span (which starts where `new`), those taken from left to right without overlap."""
    keep = np.ones(len(begin), dtype=bool)
    clash = np.zeros(len(begin), dtype=bool)
    clash[1:] = ~new[1:] & (begin[1:] < begin[:-1] + length[:-1])
    if not clash.any():
        return keep
    # Only spans with a clash somewhere are gone through, all at the same time: one step takes one occurrence of each.
    group = np.cumsum(new) - 1
    rows = np.flatnonzero(np.isin(group, group[clash]))
    keep[rows] = False
    last = np.append(np.flatnonzero(new)[1:], len(begin))[group]
    taken = rows[new[rows]]
    while len(taken):
        keep[taken] = True
        following = taken + 1
        limit, free = last[taken], begin[taken] + length[taken]
        while True:
            late = (following < limit) & (begin[np.minimum(following, len(begin) - 1)] < free)
            if not late.any():
                break
            following[late] += 1
        taken = following[following < limit]
    return keep
