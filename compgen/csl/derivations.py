"""Derivations as arrays, many at once and level by level, and the sequences that they derive."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compgen.csl.rules import FIRST, MOST, Grammar, codes
from compgen.data.ragged import Ints, ranges

MANY = 1 << 40  # tokens, more than can be written; a number that doubles at each level would overflow


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one depth, (n) each. The children of a node are neighbours in the level below."""

    rule: Ints
    parent: Ints  # the node above
    number: Ints  # the parent's nonterminal that it fills, from 0
    first: Ints  # the first child


@dataclass(frozen=True, eq=False)
class Side:
    """One side of all rules.

    Attributes:
        symbols: of all rules, one after the other: numbers of tokens, and -i for NT_i.
        starts, counts: (rules) the slice of each rule's symbols.
        terminals: (rules) how many symbols are tokens.
        times: (rules, largest arity) how often each nonterminal occurs.
    """

    symbols: Ints
    starts: Ints
    counts: Ints
    terminals: Ints
    times: Ints

    @classmethod
    def of(cls, texts: Sequence[str], arity: int) -> "Side":
        """Build it from the sources or the targets of rules, whose largest arity is `arity`."""
        letters = codes("".join(texts))
        symbols = np.where(letters <= MOST, -letters, letters - FIRST)
        counts = np.array([len(text) for text in texts], dtype=np.int64)
        rule = np.repeat(np.arange(len(texts)), counts)
        times = np.zeros((len(texts), arity), dtype=np.int64)
        inner = symbols < 0
        np.add.at(times, (rule[inner], -symbols[inner] - 1), 1)
        terminals = np.bincount(rule[~inner], minlength=len(texts))
        return cls(symbols, np.cumsum(counts) - counts, counts, terminals, times)

    def write(self, levels: Sequence[Level], roots: Ints) -> tuple[Ints, Ints]:
        """Return the sequences that some roots derive, one after the other, and their lengths.

        for each level, and each (node, begin) to write, at first the roots:
            for each symbol of the node's rule, from `begin` on:
                a token is written; a nonterminal's child is to be written here, and takes its length
        """
        lengths = self.lengths(levels)
        whole = lengths[0][roots]
        written = np.empty(int(whole.sum()), dtype=np.int64)
        nodes, begins = roots, np.cumsum(whole) - whole  # a node is here once for each place where it is written
        for level, below in zip(levels, [*lengths[1:], np.empty(0, dtype=np.int64)], strict=True):
            rules = level.rule[nodes]
            rows, places = ranges(self.starts[rules], self.counts[rules])  # of all symbols of all nodes
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

    def lengths(self, levels: Sequence[Level]) -> list[Ints]:
        """Return how many tokens each node of each level derives; MANY stands for more."""
        found: list[Ints] = []
        for depth in reversed(range(len(levels))):
            length = self.terminals[levels[depth].rule]
            if found:
                below = levels[depth + 1]
                share = self.times[levels[depth].rule[below.parent], below.number] * found[-1]
                length = length + np.bincount(below.parent, share, minlength=len(length)).astype(np.int64)
            found.append(np.minimum(length, MANY))
        return found[::-1]


def sides(grammar: Grammar) -> tuple[Side, Side]:
    """Return the sources and the targets of a grammar's rules."""
    arity = max((rule.arity for rule in grammar.rules), default=0)
    sources, targets = zip(*grammar.rules, strict=True)
    return Side.of(sources, arity), Side.of(targets, arity)
