"""Derivations as arrays, many at once, level by level, and the sequences that they derive."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compgen.csl.rules import FIRST, MOST, Grammar
from compgen.data.ragged import Ints, ranges


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of a depth. A node's children are next to each other in the level below, from `first` on."""

    rule: Ints
    parent: Ints  # in the level above
    number: Ints  # which nonterminal of the parent's rule it fills, from 0 on
    first: Ints


@dataclass(frozen=True, eq=False)
class Side:
    """One side of all rules.

    Attributes:
        symbols: of all rules, one behind the other: numbers of tokens, and -i for NT_i.
        starts, counts: where a rule's symbols are, and how many.
        terminals: how many of a rule's symbols are tokens.
        times: (rules, most nonterminals), how often each nonterminal of a rule occurs.
    """

    symbols: Ints
    starts: Ints
    counts: Ints
    terminals: Ints
    times: Ints

    @classmethod
    def of(cls, texts: Sequence[str], arities: Ints) -> "Side":
        """That of some rules' sources, or targets."""
        letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
        symbols = np.where(letters <= MOST, -letters, letters - FIRST)
        counts = np.array([len(text) for text in texts], dtype=np.int64)
        rule = np.repeat(np.arange(len(texts)), counts)
        times = np.zeros((len(texts), int(arities.max(initial=0))), dtype=np.int64)
        inner = symbols < 0
        np.add.at(times, (rule[inner], -symbols[inner] - 1), 1)
        terminals = np.bincount(rule[~inner], minlength=len(texts))
        return cls(symbols, np.cumsum(counts) - counts, counts, terminals, times)

    def write(self, levels: Sequence[Level], roots: Ints) -> tuple[Ints, Ints]:
        """What the derivations of some roots derive: numbers of tokens, all in one, and each one's length."""
        lengths = self._lengths(levels)
        whole = lengths[0][roots]
        written = np.empty(int(whole.sum()), dtype=np.int64)
        # Of each level, the nodes that are written, as often as they are, and where each begins.
        nodes, begins = roots, np.cumsum(whole) - whole
        for level, below in zip(levels, [*lengths[1:], np.empty(0, dtype=np.int64)], strict=True):
            rules = level.rule[nodes]
            rows, places = ranges(self.starts[rules], self.counts[rules])
            symbols = self.symbols[places]
            inner = np.flatnonzero(symbols < 0)
            children = level.first[nodes[rows[inner]]] - symbols[inner] - 1
            sizes = np.ones(len(symbols), dtype=np.int64)
            sizes[inner] = below[children]
            before = np.cumsum(sizes) - sizes
            firsts = np.cumsum(self.counts[rules]) - self.counts[rules]
            at = before + (begins - before[firsts])[rows]
            written[at[symbols >= 0]] = symbols[symbols >= 0]
            nodes, begins = children, at[inner]
        return written, whole

    def _lengths(self, levels: Sequence[Level]) -> list[Ints]:
        """How many tokens each node of each level derives."""
        found: list[Ints] = []
        for depth in reversed(range(len(levels))):
            length = self.terminals[levels[depth].rule]
            if found:
                below = levels[depth + 1]
                share = self.times[levels[depth].rule[below.parent], below.number] * found[-1]
                length = length + np.bincount(below.parent, share, minlength=len(length)).astype(np.int64)
            found.append(length)
        return found[::-1]


def sides(grammar: Grammar) -> tuple[Side, Side]:
    """The sources and the targets of a grammar's rules."""
    arities = np.array([rule.arity for rule in grammar.rules], dtype=np.int64)
    return Side.of([rule.source for rule in grammar.rules], arities), Side.of(
        [r.target for r in grammar.rules], arities
    )
