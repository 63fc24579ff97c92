"""Every (template, fragment) of some examples, as numbers: the hot loop (`definition.rows` in plain Python).

Gaps are numbered by first occurrence. With `renumber` they are numbered as the reference's search meets them: it takes
one span after another, each at any occurrence behind the last. So "a b ## B A" has two numberings of (a, A) and (b, B),
and shares one of them with "b a ## B A".

The hash of a template is a polynomial modulo 2^64. A piece of an example contributes a difference of two prefix sums,
scaled by how far the piece has moved to the left, so hashing takes time in proportion to gaps, not to tokens:

    hash(template) = sum over pieces of (prefix[end] - prefix[begin]) BASE^-moved
                   + sum over gaps of value(gap) BASE^(place - moved)

An occurrence ends one piece and begins the next. What it adds to both sums is known in advance, but for a factor that
depends on how far the occurrences before it have moved it; see `Cuts`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import polars as pl

from compgen.data.ragged import Ints, ranges
from compgen.errors import UserError
from compgen.geca.arrays import BASE, INVERSE, Hashes, Tokens, mix, powers
from compgen.geca.corpus import MARKERS, Corpus
from compgen.geca.spans import Entries, Spans

CHUNK = 1 << 18  # rows processed together: they fit a processor's cache
TOKENS = 1 << 22  # of windows read together
MAX_TOKENS = 1 << 20  # of an example
MAX_SPANS = 15  # of a fragment


def ahead(hashed: Callable[[Ints], pl.DataFrame], chunks: Iterable[Ints]) -> Iterator[pl.DataFrame]:
    """Yield `hashed` of each chunk, in order, while as many threads as Polars has work on the next ones.

    They run at the same time because numpy releases Python's lock.
    """
    threads = pl.thread_pool_size()
    waiting: deque[Future[pl.DataFrame]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(hashed, chunk))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass(frozen=True)
class Packing:
    """Packs the span numbers of a fragment into one 64-bit number without loss."""

    bits: int
    count: int

    @classmethod
    def of(cls, spans: int, count: int) -> "Packing":
        """Make a packing for fragments of up to `count` out of `spans` different spans."""
        bits = max(1, int(spans).bit_length())
        if bits * count > 64:
            raise UserError(
                f"GECA: {spans:,} different spans and up to {count} of them in a fragment: expected at most "
                f"{2 ** (64 // count) - 1:,} spans; lower the frequency limit, the length of spans, or their number"
            )
        return cls(bits, count)

    def pack(self, spans: Ints) -> Hashes:
        """Pack span numbers (rows, gaps) into fragments (rows)."""
        shifts = np.arange(spans.shape[1], dtype=np.uint64) * np.uint64(self.bits)
        packed: Hashes = np.bitwise_or.reduce(spans.astype(np.uint64) << shifts, axis=1)
        return packed

    def unpack(self, fragments: Hashes) -> Ints:
        """Unpack fragments (rows) to span numbers (rows, count), 0 after the last."""
        shifts = np.arange(self.count, dtype=np.uint64) * np.uint64(self.bits)
        mask = np.uint64(2**self.bits - 1)
        return ((fragments[:, None] >> shifts) & mask).astype(np.int64)


@dataclass(frozen=True)
class Occurrences:
    """The gaps of some rows in their examples, from left to right."""

    row: Ints  # of each gap, ascending
    position: Ints  # where it begins in the corpus
    gap: Ints  # its number
    length: Ints  # tokens that it replaces
    firsts: Ints  # the first gap of each row

    @classmethod
    def of(cls, entries: Entries, spans: Spans, members: Ints) -> "Occurrences":
        """Return all occurrences of the entries of each row of `members` (rows, gaps); -1 stands for none."""
        rows, gaps = members.shape
        flat = members.ravel()
        row, which = ranges(entries.first[flat], np.where(flat >= 0, entries.count[flat], 0))
        position, length = entries.positions[which], spans.lengths[entries.span[flat]][row]
        gap = row % gaps
        row //= gaps
        if gaps > 1:
            order = _left_to_right(row, position)
            row, position, gap, length = row[order], position[order], gap[order], length[order]
        return cls(row, position, gap, length, np.searchsorted(row, np.arange(rows)))


def _left_to_right(row: Ints, position: Ints) -> Ints:
    """Return the order of occurrences by row, and in a row from left to right."""
    origin = position.min(initial=0)
    width = int(position.max(initial=0) - origin) + 1
    return np.argsort(row * width + (position - origin), kind="stable")  # fast where little is out of order


@dataclass(frozen=True)
class Cuts:
    """What each occurrence of some entries does to the hash of its example.

        hash(template) = sum over occurrences of (text + value(gap) place) BASE^-before + rest BASE^-moved

    `before` is how far the occurrences before it have moved it, and `moved` how far all of them move the rest.
    """

    text: Hashes  # the tokens up to it, less those up to its end as far as it moves them
    place: Hashes  # BASE^(where it begins in its example)
    moved: Ints  # how far it moves what follows to the left
    rest: Hashes  # of each entry: all tokens of its example


class Enumerator:
    """Enumerates the (template, fragment) pairs of a corpus."""

    def __init__(
        self, corpus: Corpus, spans: Spans, count: int, window: int | None, renumber: bool, salt: int = 0
    ) -> None:
        """Prepare for fragments of up to `count` spans; `salt` selects the hash function, and no result depends on it.

        With `renumber`, a few of the reference's numberings are left out: where its search goes on too far to the right
        after replacing a longer span on the left. The composed examples are the same.
        """
        self.corpus, self.spans, self.renumber, self.salt = corpus, spans, renumber, salt
        longest = int(corpus.lengths[corpus.short].max(initial=0))
        if longest >= MAX_TOKENS or count > MAX_SPANS:
            raise UserError(f"GECA: expected examples of less than {MAX_TOKENS:,} tokens, and up to {MAX_SPANS} spans")
        self.packing = Packing.of(len(spans), count)
        self.window = None if window is None else min(window, longest + MARKERS)  # no example reaches further
        numbers = np.arange(len(corpus.words) + count, dtype=np.uint64)
        self.values = mix(mix(numbers + np.uint64(salt * 2**32)) + BASE)  # of tokens, then of gaps
        lengths = np.diff(corpus.starts)
        width = int(lengths.max()) + 1
        self.powers, self.inverse = powers(BASE, width), powers(INVERSE, width)
        local = np.arange(len(corpus.tokens)) - np.repeat(corpus.starts[:-1], lengths)
        self.prefix = np.zeros(len(corpus.tokens) + 1, dtype=np.uint64)
        np.cumsum(self.values[corpus.tokens] * self.powers[local], out=self.prefix[1:])

    @property
    def gaps(self) -> Tokens:
        """The pseudo-tokens of the gaps."""
        return np.arange(len(self.corpus.words), len(self.values), dtype=np.int32)

    @cached_property
    def entries(self) -> Entries:
        """The entries of all examples to recombine."""
        return Entries.of(self.corpus, self.spans, self.corpus.short)

    def rows(self, examples: Ints) -> Iterator[pl.DataFrame]:
        """Yield all (template, fragment) of some examples (ascending), a chunk at a time.

        Columns: `template` and, with windows, `environment` (equation 3), both hashes; `fragment`, its span numbers in
        the order of the gaps, packed; `example`; `sides`, 1 if gaps are in the source, 2 in the target, 3 in both.
        """
        entries = Entries.of(self.corpus, self.spans, examples)
        if not len(entries.span):
            return
        yield from ahead(partial(self._hashed, entries, self._cuts(entries)), self._fragments(entries))

    def _fragments(self, entries: Entries) -> Iterator[Ints]:
        """Yield all fragments of the examples, a chunk at a time: entries, (fragments, gaps)."""
        types = entries.types(self.corpus, self.spans) if self.packing.count > 1 else []
        for start in range(0, len(entries.span), CHUNK):
            members = np.arange(start, min(start + CHUNK, len(entries.span)))[:, None]
            first = entries.positions[entries.first[members[:, 0]]]
            yield from self._descend(entries, types, members, [word[members[:, 0]] for word in types], first)

    def _descend(
        self, entries: Entries, types: list[Hashes], members: Ints, taken: list[Hashes], reached: Ints
    ) -> Iterator[Ints]:
        """Yield some fragments, and those that extend them by spans behind.

            descend(fragment): yield fragment
                               for each span after the last that shares no token type: descend(fragment + span)

        Args:
            entries: the spans of the examples.
            types: their token types.
            members: entries of each fragment, (fragments, gaps).
            taken: token types of each fragment.
            reached: the position of each fragment's last span in the reference's search.
        """
        yield members
        if members.shape[1] == self.packing.count:
            return
        last = members[:, -1]
        first = entries.start[last] if self.renumber else last + 1
        counts = entries.stop[last] - first
        bounds = np.searchsorted(np.cumsum(counts), np.arange(CHUNK, counts.sum() + CHUNK, CHUNK), side="left")
        for start, stop in zip([0, *(bounds + 1)], [*(bounds + 1), len(last)], strict=True):
            part = slice(start, min(stop, len(last)))
            row, child = ranges(first[part], counts[part])
            fits = np.ones(len(row), dtype=bool)
            for word, had in zip(types, taken, strict=True):
                fits &= (word[child] & had[part][row]) == 0
            row, child = row[fits], child[fits]
            where = reached[:0]
            if self.renumber:
                where = entries.after(child, reached[part][row])
                row, child, where = row[where >= 0], child[where >= 0], where[where >= 0]
            if len(row):
                grown = np.concatenate([members[part][row], child[:, None]], axis=1)
                union = [word[child] | had[part][row] for word, had in zip(types, taken, strict=True)]
                yield from self._descend(entries, types, grown, union, where)

    def _cuts(self, entries: Entries) -> Cuts:
        """Return what each occurrence of the entries does to a hash."""
        owner, which = ranges(entries.first, entries.count)
        entry = np.empty_like(owner)
        entry[which] = owner
        starts = self.corpus.starts[entries.example]
        origin, moved = self.prefix[starts], self.spans.lengths[entries.span][entry] - 1
        begin = entries.positions
        text = self.prefix[begin] - origin[entry]
        text -= (self.prefix[begin + moved + 1] - origin[entry]) * self.inverse[moved]
        rest = self.prefix[self.corpus.starts[entries.example + 1]] - origin
        return Cuts(text, self.powers[begin - starts[entry]], moved, rest)

    def _hashed(self, entries: Entries, cuts: Cuts, members: Ints) -> pl.DataFrame:
        example = entries.example[members[:, 0]]
        columns = {
            "template": self.template_hashes(entries, cuts, members),
            "fragment": self.packing.pack(entries.span[members]),
        }
        columns |= {"example": example.astype(np.uint32)}
        if self.window is not None:
            gaps = Occurrences.of(entries, self.spans, members)
            columns["environment"] = self._environment_hashes(example, gaps)
        return pl.DataFrame(columns | {"sides": np.bitwise_or.reduce(entries.sides[members], axis=1)})

    def template_hashes(self, entries: Entries, cuts: Cuts, members: Ints) -> Hashes:
        """Hash what is left of each row's example (equation 2). Most rows have each of their spans once."""
        once = (entries.count.take(members) == 1).all(axis=1)
        hashes = np.empty(len(members), dtype=np.uint64)
        for rows, hashed in ((np.flatnonzero(once), self._once), (np.flatnonzero(~once), self._often)):
            if len(rows):
                hashes[rows] = hashed(entries, cuts, members.take(rows, axis=0))
        return mix(hashes)

    def _once(self, entries: Entries, cuts: Cuts, members: Ints) -> Hashes:
        """Hash rows whose spans occur once, and from left to right."""
        hashes, before = np.zeros(len(members), dtype=np.uint64), np.zeros(len(members), dtype=np.int64)
        for gap, entry in enumerate(members.T):
            which = entries.first.take(entry)
            hashes += self._terms(cuts, which, self.values[len(self.corpus.words) + gap], before)
            before += cuts.moved.take(which)
        return hashes + cuts.rest.take(members[:, 0]) * self.inverse.take(before)

    def _often(self, entries: Entries, cuts: Cuts, members: Ints) -> Hashes:
        """Hash rows whose spans may occur several times, so that occurrences have to be brought in order."""
        gaps, counts = members.shape[1], entries.count.take(members)
        slot, which = ranges(entries.first.take(members).ravel(), counts.ravel())
        order = _left_to_right(slot // gaps, entries.positions.take(which))
        slot, which = slot.take(order), which.take(order)
        count = counts.sum(axis=1)
        last = np.cumsum(count) - 1
        moved = cuts.moved.take(which)
        after = np.cumsum(moved)
        after -= np.repeat(np.append(0, after.take(last[:-1])), count)
        values = self.values[len(self.corpus.words) :].take(slot % gaps)
        terms = self._terms(cuts, which, values, after - moved)
        hashes: Hashes = np.add.reduceat(terms, last - count + 1)
        return hashes + cuts.rest.take(members[:, 0]) * self.inverse.take(after.take(last))

    def _terms(self, cuts: Cuts, which: Ints, values: Hashes | np.uint64, before: Ints) -> Hashes:
        """The parts of some occurrences in the hash, whose gaps have these values."""
        terms = cuts.place.take(which)
        terms *= values
        terms += cuts.text.take(which)
        terms *= self.inverse.take(before)
        return terms

    def windows(self, example: Ints, gaps: Occurrences, index: Ints) -> Tokens:
        """Return the template's tokens around some of the gaps (equation 3), (gaps, 2 window + 1); -1 outside it.

        One column at a time: `at` is the position in the corpus, `neighbour` the next gap on the way.
        """
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
