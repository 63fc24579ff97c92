"""From numbers back to tokens: templates with their gaps, and templates filled with other spans."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges
from compgen.geca.arrays import BASE, Hashes, Tokens, mix, powers
from compgen.geca.corpus import SEPARATOR, Corpus
from compgen.geca.enumeration import Enumerator, Occurrences
from compgen.geca.spans import Entries, Spans

KEPT = 1 << 23  # most entries of a corpus that are found once and kept


@dataclass(frozen=True)
class Sequences:
    """Token sequences with markers, one after another; `starts` has one entry more, the end."""

    tokens: Tokens
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def cut(cls, tokens: Tokens, begins: Ints, lengths: Ints) -> "Sequences":
        """Cut sequences out of an array."""
        return cls(tokens[ranges(begins, lengths)[1]], np.append(0, np.cumsum(lengths)))

    def take(self, rows: Ints) -> "Sequences":
        """Return some of the sequences."""
        return Sequences.cut(self.tokens, self.starts[rows], np.diff(self.starts)[rows])


def realise(enumerator: Enumerator, example: Ints, fragment: Hashes, filling: Hashes | None = None) -> Sequences:
    """Cut a fragment out of each example, and fill the gaps with the spans of another fragment.

    Without `filling` the gaps hold the pseudo-tokens `enumerator.gaps`.
    """
    corpus, spans = enumerator.corpus, enumerator.spans
    where = occurrences(enumerator, example, fragment)
    if filling is None:
        start, length = len(corpus.tokens) + where.gap, np.ones(len(where.gap), dtype=np.int64)
    else:
        new = enumerator.packing.unpack(filling)[where.row, where.gap]
        start, length = spans.example[new], spans.lengths[new]
    # Each row consists of a piece of its example before each gap, what fills the gap, and a piece after the last gap.
    end = where.position + where.length
    before = np.append(0, end[:-1])
    before[where.firsts] = corpus.starts[example]
    last = np.append(where.firsts[1:], len(end)) - 1
    slot = 2 * np.arange(len(end)) + where.row
    final = slot[last] + 2
    begins, lengths = np.empty((2, 2 * len(end) + len(example)), dtype=np.int64)
    begins[slot], lengths[slot] = before, where.position - before
    begins[slot + 1], lengths[slot + 1] = start, length
    begins[final], lengths[final] = end[last], corpus.starts[example + 1] - end[last]
    pool = np.concatenate([corpus.tokens, enumerator.gaps])
    made = Sequences.cut(pool, begins, lengths)
    return Sequences(made.tokens, made.starts[np.append(0, final + 1)])


def occurrences(enumerator: Enumerator, example: Ints, fragment: Hashes) -> Occurrences:
    """Find the occurrences of each fragment's spans in its example."""
    corpus, spans, some = enumerator.corpus, enumerator.spans, np.unique(example)
    most = 2 * len(some) > len(corpus.short)  # rows sorted by a hash are from all examples, in every part
    entries = enumerator.entries if most and few_entries(corpus, spans) else Entries.of(corpus, spans, some)
    cut = enumerator.packing.unpack(fragment)
    gaps, members = cut > 0, np.full(cut.shape, -1, dtype=np.int64)
    members[gaps] = entries.find(np.broadcast_to(example[:, None], cut.shape)[gaps], cut[gaps])
    return Occurrences.of(entries, spans, members)


def few_entries(corpus: Corpus, spans: Spans) -> int:
    """Return an upper bound of the entries that the corpus has, if they are few enough to be kept; else 0."""
    entries = len(corpus.tokens) * len(spans.at)
    return entries if entries <= KEPT else 0


def same(first: Sequences, second: Sequences) -> NDArray[np.bool_]:
    """Compare two equally long lists of sequences, row by row."""
    equal: NDArray[np.bool_] = np.diff(first.starts) == np.diff(second.starts)
    rows = np.flatnonzero(equal)
    if len(rows):
        a, b = first.take(rows), second.take(rows)
        equal[rows] = np.logical_and.reduceat(a.tokens == b.tokens, a.starts[:-1])
    return equal


class Known:
    """The training examples, looked up by hash and compared by token."""

    def __init__(self, corpus: Corpus, novelty: str) -> None:
        """`novelty` says what must be new: `both` sides, the `source`, or the `pair`; of a sentence, the sentence."""
        parts = {"both": ("source", "target"), "source": ("source",), "pair": ("pair",)}
        self.corpus = Sequences(corpus.tokens, corpus.starts)
        self.tables = {}
        for part in parts[novelty if corpus.paired else "source"]:
            hashes = _hashes(_side(self.corpus, part))
            order = np.argsort(hashes, kind="stable")
            self.tables[part] = (hashes[order], order)

    def holds(self, asked: Sequences) -> NDArray[np.bool_]:
        """Return which sequences are not new."""
        known = np.zeros(len(asked), dtype=bool)
        for part, (values, order) in self.tables.items():
            hashes = _hashes(_side(asked, part))
            found = np.minimum(np.searchsorted(values, hashes), len(values) - 1)
            rows = np.flatnonzero(values[found] == hashes)
            match = self.corpus.take(order[found[rows]])
            known[rows[same(_side(asked.take(rows), part), _side(match, part))]] = True
        return known


def _side(sequences: Sequences, part: str) -> Sequences:
    """Return the sources, the targets, or the whole pairs. (The target of a sentence is its end marker.)"""
    if part == "pair":
        return sequences
    separators = np.flatnonzero(sequences.tokens == SEPARATOR)
    begin, end = separators + 1, sequences.starts[1:]
    if part == "source":
        begin, end = sequences.starts[:-1] + 1, separators
    return Sequences.cut(sequences.tokens, begin, end - begin)


def _hashes(sequences: Sequences) -> Hashes:
    tokens, starts = sequences.tokens, sequences.starts
    lengths = np.diff(starts)
    local = np.arange(len(tokens)) - np.repeat(starts[:-1], lengths)
    values = mix(tokens.astype(np.uint64) + BASE) * powers(BASE, int(lengths.max(initial=0)) + 1)[local]
    sums = np.append(np.uint64(0), np.cumsum(values))
    return mix(sums[starts[1:]] - sums[starts[:-1]])
