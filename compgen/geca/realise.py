"""From numbers back to tokens: templates with their gaps, and templates with other spans in them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges
from compgen.geca.arrays import BASE, Hashes, Tokens, mix, powers, within
from compgen.geca.corpus import SEPARATOR, Corpus
from compgen.geca.enumeration import Enumerator, Occurrences
from compgen.geca.spans import Entries


@dataclass(frozen=True)
class Sequences:
    """Token sequences, one after another, each with its markers, as in a corpus."""

    tokens: Tokens
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: Ints) -> "Sequences":
        """Some of them."""
        lengths = np.diff(self.starts)[rows]
        return Sequences(self.tokens[ranges(self.starts[rows], lengths)[1]], _offsets(lengths))


def realise(enumerator: Enumerator, example: Ints, fragment: Hashes, filling: Hashes | None = None) -> Sequences:
    """Each example without the spans of a fragment, and with those of another one in their place.

    Without `filling` the gaps hold pseudo-tokens, `enumerator.gaps`.
    """
    corpus, spans = enumerator.corpus, enumerator.spans
    where = occurrences(enumerator, example, fragment)
    if filling is None:
        start, length = len(corpus.tokens) + where.gap, np.ones(len(where.gap), dtype=np.int64)
    else:
        new = enumerator.packing.unpack(filling)[where.row, where.gap]
        start, length = spans.example[new], spans.lengths[new]
    # Each row: a piece of its example before each gap, what fills the gap, and a piece after the last.
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
    pieces = np.append(0, final + 1)
    return Sequences(pool[ranges(begins, lengths)[1]], np.append(0, np.cumsum(lengths))[pieces])


def occurrences(enumerator: Enumerator, example: Ints, fragment: Hashes) -> Occurrences:
    """Where the spans of each fragment stand in its example."""
    entries = Entries.of(enumerator.corpus, enumerator.spans, np.unique(example))
    cut = enumerator.packing.unpack(fragment)
    gaps, members = cut > 0, np.full(cut.shape, -1, dtype=np.int64)
    members[gaps] = entries.find(np.broadcast_to(example[:, None], cut.shape)[gaps], cut[gaps])
    return Occurrences.of(entries, enumerator.spans, members)


def same(first: Sequences, second: Sequences) -> NDArray[np.bool_]:
    """Which of two equally many sequences are equal."""
    lengths = np.diff(first.starts)
    equal: NDArray[np.bool_] = lengths == np.diff(second.starts)
    rows = np.flatnonzero(equal)
    a, b = first.take(rows), second.take(rows)
    if len(rows):
        equal[rows] = np.logical_and.reduceat(a.tokens == b.tokens, a.starts[:-1])
    return equal


class Known:
    """The sources, the targets and the pairs of a corpus, to ask whether others are among them."""

    def __init__(self, corpus: Corpus, novelty: str) -> None:
        """`novelty`: what is new: `both` sides, the `source`, or the `pair`. Of a sentence, all mean the sentence."""
        self.corpus = Sequences(corpus.tokens, corpus.starts)
        self.novelty = novelty if corpus.paired else "source"
        self.sides = {}
        for name, hashes in self._hashed(self.corpus).items():
            order = np.argsort(hashes, kind="stable")
            self.sides[name] = (hashes[order], order)

    def holds(self, asked: Sequences) -> NDArray[np.bool_]:
        """Which of some sequences are not new. A match of hashes counts only if the tokens are the same."""
        known = np.zeros(len(asked), dtype=bool)
        for name, hashes in self._hashed(asked).items():
            values, order = self.sides[name]
            rows = np.flatnonzero(within(values, hashes))
            match = order[np.searchsorted(values, hashes[rows])]
            known[rows[same(_side(asked.take(rows), name), _side(self.corpus.take(match), name))]] = True
        return known

    def _hashed(self, sequences: Sequences) -> dict[str, Hashes]:
        parts = {"both": ("source", "target"), "source": ("source",), "pair": ("pair",)}[self.novelty]
        return {name: _hashes(_side(sequences, name)) for name in parts}


def _side(sequences: Sequences, name: str) -> Sequences:
    """The sources, the targets, or the whole of some sequences. (The target of a sentence is its end marker.)"""
    if name == "pair":
        return sequences
    tokens, starts = sequences.tokens, sequences.starts
    separators = np.flatnonzero(tokens == SEPARATOR)
    begin, end = (starts[:-1] + 1, separators) if name == "source" else (separators + 1, starts[1:])
    return Sequences(tokens[ranges(begin, end - begin)[1]], _offsets(end - begin))


def _hashes(sequences: Sequences) -> Hashes:
    tokens, starts = sequences.tokens, sequences.starts
    lengths = np.diff(starts)
    local = np.arange(len(tokens)) - np.repeat(starts[:-1], lengths)
    values = mix(tokens.astype(np.uint64) + BASE) * powers(BASE, int(lengths.max(initial=0)) + 1)[local]
    sums = np.zeros(len(tokens) + 1, dtype=np.uint64)
    np.cumsum(values, out=sums[1:])
    return mix(sums[starts[1:]] - sums[starts[:-1]])


def _offsets(lengths: Ints) -> Ints:
    return np.append(0, np.cumsum(lengths))
