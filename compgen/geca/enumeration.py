"""Every (template, fragment) of some examples, as numbers: the hot loop.

A fragment is a set of spans that share no token type; all occurrences of each are replaced by a gap, and gaps are
numbered in the order in which they first occur. What is left is the template.

The reference's search numbers gaps by any of their occurrences: it takes one span after another, each where it stands
behind the last. So "a b ## B A" has both numberings of (a, A) and (b, B), and shares one of them with "b a ## B A".

The hash of a template is a polynomial modulo 2^64, so a piece of an example contributes a difference of two prefix
sums, scaled by how far it has moved to the left: work in proportion to the gaps, not to the tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges
from compgen.errors import UserError
from compgen.geca.arrays import BASE, INVERSE, Hashes, Tokens, mix, powers
from compgen.geca.corpus import MARKERS, Corpus
from compgen.geca.spans import Entries, Spans

CHUNK = 1 << 18  # rows worked on together: what fits a processor's cache
TOKENS = 1 << 22  # of windows that are read together
MAX_TOKENS = 1 << 20  # of an example
MAX_SPANS = 15  # of a fragment


@dataclass(frozen=True)
class Rows:
    """Some (template, fragment) pairs. Each belongs to one example, since examples are distinct.

    Attributes:
        template: hash of the template, gaps included.
        fragment: the numbers of its spans in the order of the gaps, packed by `Packing`.
        environment: hash of the template's environment; the template itself if that is the environment.
        example: number in the corpus.
        sides: 1 if some gap is in the source, 2 in the target, 3 if there is one in each.
    """

    template: Hashes
    fragment: Hashes
    environment: Hashes
    example: Ints
    sides: NDArray[np.uint8]


@dataclass(frozen=True)
class Packing:
    """Span numbers of a fragment in one 64-bit number: exact, so fragments cannot collide."""

    bits: int
    count: int

    @classmethod
    def of(cls, spans: int, count: int) -> "Packing":
        """For fragments of up to `count` of a number of spans.

        Raises:
            UserError: they do not fit.
        """
        bits = max(1, int(spans).bit_length())
        if bits * count > 64:
            raise UserError(
                f"GECA: {spans:,} different spans, of which a fragment may have {count}: expected at most "
                f"{2 ** (64 // count) - 1:,}; lower the frequency limit, the length of spans, or their number"
            )
        return cls(bits, count)

    def pack(self, spans: Ints) -> Hashes:
        """Span numbers (rows, gaps) to fragments."""
        shifts = np.arange(spans.shape[1], dtype=np.uint64) * np.uint64(self.bits)
        packed: Hashes = np.bitwise_or.reduce(spans.astype(np.uint64) << shifts, axis=1)
        return packed

    def unpack(self, fragments: Hashes) -> Ints:
        """Fragments to span numbers (rows, count), 0 after the last."""
        shifts = np.arange(self.count, dtype=np.uint64) * np.uint64(self.bits)
        mask = np.uint64(2**self.bits - 1)
        return ((fragments[:, None] >> shifts) & mask).astype(np.int64)


@dataclass(frozen=True)
class Occurrences:
    """The gaps of some rows in their examples, from left to right.

    Attributes:
        row: which row each belongs to, ascending.
        position: where it begins in the corpus.
        gap: its number.
        length: how many tokens it replaces.
        firsts: the first occurrence of each row.
    """

    row: Ints
    position: Ints
    gap: Ints
    length: Ints
    firsts: Ints

    @classmethod
    def of(cls, entries: Entries, spans: Spans, members: Ints) -> "Occurrences":
        """Occurrences of the spans of each row of `members` (rows, gaps); -1 stands for none."""
        rows, gaps = members.shape
        flat = members.ravel()
        row, which = ranges(entries.first[flat], np.where(flat >= 0, entries.count[flat], 0))
        position, length = entries.positions[which], spans.lengths[entries.span[flat]][row]
        gap = row % gaps
        row //= gaps
        if gaps > 1:
            origin = position.min(initial=0)
            span = int(position.max(initial=0) - origin) + 1
            order = np.argsort(row * span + (position - origin))
            row, position, gap, length = row[order], position[order], gap[order], length[order]
        return cls(row, position, gap, length, np.searchsorted(row, np.arange(rows)))


class Enumerator:
    """Enumerates the (template, fragment) pairs of a corpus."""

    def __init__(
        self, corpus: Corpus, spans: Spans, count: int, window: int | None, renumber: bool, salt: int = 0
    ) -> None:
        """Fragments of up to `count` spans; environments of `window` tokens around each gap, or whole templates.

        With `renumber`, a fragment comes with each numbering of gaps that the reference's search meets, and with a few
        that it misses: when it replaces a span of several tokens on the left as well, it goes on so many places too far
        to the right. What is composed is the same, as other numberings have those gaps. `salt` chooses the hash; no
        result depends on it, unless two things had the same one.

        Raises:
            UserError: the spans are too many for that, or an example is too long.
        """
        self.corpus, self.spans, self.renumber, self.salt = corpus, spans, renumber, salt
        longest = int(corpus.lengths[corpus.short].max(initial=0))
        if longest >= MAX_TOKENS or count > MAX_SPANS:
            raise UserError(f"GECA: expected examples of less than {MAX_TOKENS:,} tokens, and up to {MAX_SPANS} spans")
        self.packing = Packing.of(len(spans), count)
        self.window = None if window is None else min(window, longest + MARKERS)  # all there is
        numbers = np.arange(len(corpus.words) + count, dtype=np.uint64)
        self.values = mix(mix(numbers + np.uint64(salt * 2**32)) + BASE)  # of a token; behind them, of a gap
        width = int(np.diff(corpus.starts).max()) + 1
        self.powers, self.inverse = powers(BASE, width), powers(INVERSE, width)
        self.local = np.arange(len(corpus.tokens)) - np.repeat(corpus.starts[:-1], np.diff(corpus.starts))
        self.prefix = np.zeros(len(corpus.tokens) + 1, dtype=np.uint64)
        np.cumsum(self.values[corpus.tokens] * self.powers[self.local], out=self.prefix[1:])

    @property
    def gaps(self) -> Tokens:
        """The pseudo-tokens of the gaps."""
        return np.arange(len(self.corpus.words), len(self.values), dtype=np.int32)

    def rows(self, examples: Ints) -> Iterator[Rows]:
        """All pairs of some examples (ascending), a chunk at a time."""
        entries = Entries.of(self.corpus, self.spans, examples)
        if not len(entries.span):
            return
        types = entries.types(self.corpus, self.spans) if self.packing.count > 1 else []
        for start in range(0, len(entries.span), CHUNK):
            members = np.arange(start, min(start + CHUNK, len(entries.span)))[:, None]
            first = entries.positions[entries.first[members[:, 0]]]
            yield from self._descend(entries, types, members, [word[members[:, 0]] for word in types], first)

    def _descend(
        self, entries: Entries, types: list[Hashes], members: Ints, taken: list[Hashes], reached: Ints
    ) -> Iterator[Rows]:
        """The pairs of some fragments (rows, gaps of entries), and of those with more spans behind them.

        `taken` are the token types of each fragment; `reached` is how far the search has come, for `renumber`.
        """
        yield self._hashed(entries, members)
        if members.shape[1] == self.packing.count:
            return
        last = members[:, -1]
        first = entries.start[last] if self.renumber else last + 1
        counts = entries.stop[last] - first
        bounds = np.searchsorted(np.cumsum(counts), np.arange(CHUNK, counts.sum() + CHUNK, CHUNK), side="left")
        for start, stop in zip([0, *(bounds + 1)], [*(bounds + 1), len(last)], strict=True):
            part = slice(start, min(stop, len(last)))
            row, child = ranges(first[part], counts[part])
            clash = np.zeros(len(row), dtype=bool)
            for word, had in zip(types, taken, strict=True):
                clash |= (word[child] & had[part][row]) != 0
            row, child = row[~clash], child[~clash]
            where = entries.after(child, reached[part][row]) if self.renumber else reached[:0]
            if self.renumber:
                row, child, where = row[where >= 0], child[where >= 0], where[where >= 0]
            if len(row):
                grown = np.concatenate([members[part][row], child[:, None]], axis=1)
                union = [word[child] | had[part][row] for word, had in zip(types, taken, strict=True)]
                yield from self._descend(entries, types, grown, union, where)

    def _hashed(self, entries: Entries, members: Ints) -> Rows:
        example = entries.example[members[:, 0]]
        gaps = Occurrences.of(entries, self.spans, members)
        template = self.template_hashes(example, gaps)
        environment = template
        if self.window is not None:
            environment = self._environment_hashes(example, gaps)
        return Rows(
            template,
            self.packing.pack(entries.span[members]),
            environment,
            example,
            np.bitwise_or.reduce(entries.sides[members], axis=1),
        )

    def template_hashes(self, example: Ints, gaps: Occurrences) -> Hashes:
        """The hash of what is left of each row's example."""
        starts, ends = self.corpus.starts[example], self.corpus.starts[example + 1]
        origin = self.prefix[starts]
        moved = np.cumsum(gaps.length - 1)
        before = moved - (gaps.length - 1)
        before -= before[gaps.firsts][gaps.row]
        after = before + gaps.length - 1
        base = origin[gaps.row]
        begin, end = gaps.position, gaps.position + gaps.length
        pieces = (self.prefix[begin] - base) * self.inverse[before] - (self.prefix[end] - base) * self.inverse[after]
        pieces += self.values[len(self.corpus.words) + gaps.gap] * self.powers[begin - starts[gaps.row] - before]
        last = np.append(gaps.firsts[1:], len(gaps.row)) - 1
        total = np.add.reduceat(pieces, gaps.firsts) + (self.prefix[ends] - origin) * self.inverse[after[last]]
        return mix(total)

    def windows(self, example: Ints, gaps: Occurrences, index: Ints) -> Tokens:
        """The template's tokens around some of the gaps (gaps, 2 window + 1); -1 beyond its edges."""
        assert self.window is not None
        tokens, pseudo = self.corpus.tokens, self.gaps
        result = np.full((len(index), 2 * self.window + 1), -1, dtype=np.int32)
        result[:, self.window] = pseudo[gaps.gap[index]]
        row = gaps.row[index]
        start, stop = self.corpus.starts[example[row]], self.corpus.starts[example[row] + 1]
        for direction in (-1, 1):
            neighbour = index + direction
            at = gaps.position[index] + (-1 if direction < 0 else gaps.length[index])
            for step in range(1, self.window + 1):
                inside = np.clip(neighbour, 0, len(gaps.row) - 1)
                edge = gaps.position[inside] + (gaps.length[inside] - 1 if direction < 0 else 0)
                gap = (neighbour == inside) & (gaps.row[inside] == row) & (edge == at)
                there = (at >= start) & (at < stop)
                token = np.where(gap, pseudo[gaps.gap[inside]], tokens[np.clip(at, 0, len(tokens) - 1)])
                result[:, self.window + direction * step] = np.where(there, token, -1)
                at = at + direction * np.where(gap, gaps.length[inside], 1)
                neighbour = np.where(gap, neighbour + direction, neighbour)
        return result

    def _environment_hashes(self, example: Ints, gaps: Occurrences) -> Hashes:
        assert self.window is not None
        width = 2 * self.window + 1
        weights = powers(BASE, width)
        each = np.empty(len(gaps.row), dtype=np.uint64)
        for index in np.array_split(np.arange(len(each)), 1 + len(each) * width // TOKENS):
            around = self.windows(example, gaps, index)
            values = np.where(around >= 0, self.values[around], np.uint64(0))
            each[index] = mix((values * weights).sum(axis=1, dtype=np.uint64))
        rank = np.arange(len(gaps.row)) - gaps.firsts[gaps.row]
        return mix(np.add.reduceat(each * self.powers[rank], gaps.firsts))
