"""Derivation trees of examples, many at once, and what may be exchanged between them.

A tree is the list of its nodes in preorder, so that a subtree is a slice and an exchange is a few slices joined:

    closed piece   a subtree                        NT -> rivers in ohio ### river ( loc_2 ( ohio ) )
    chain          a subtree without one inside it  NT -> rivers in NT_1 ### river ( loc_2 ( NT_1 ) )

A node's class says what it may be exchanged with. It depends on what is above the node, or on what an exchange within a
class keeps, so that an exchange leaves the classes of all other nodes as they are: trees can be changed again and again
without being parsed or classified anew. One thing is not kept: the predicate above a node may itself be exchanged where
a rule has it as a nonterminal, NT_1 ( NT_2 ); what is in the brackets then stays of the class that it had.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from compgen.csl.derivations import Level, Side
from compgen.data.ragged import Ints, ranges

Floats = NDArray[np.float64]

CLOSED = -1


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees, one after the other.

    Attributes:
        rule, kind, size: (nodes) the rule of each node, its class, and the number of nodes of its subtree.
        count: (trees) how many nodes each has.
    """

    rule: Ints
    kind: Ints
    size: Ints
    count: Ints

    @classmethod
    def of(cls, rules: Sequence[Sequence[int]], kinds: Sequence[Sequence[int]], arity: Ints) -> "Trees":
        """Build trees of the rules and classes of their nodes, in preorder."""
        rule, kind = (np.array([*chain(*some)], dtype=np.int64) for some in (rules, kinds))
        return cls(rule, kind, _sizes(arity[rule]), np.array([*map(len, rules)], dtype=np.int64))

    def take(self, trees: Ints) -> "Trees":
        """Some of the trees."""
        count = self.count[trees]
        _, nodes = ranges(self.start[trees], count)
        return Trees(self.rule[nodes], self.kind[nodes], self.size[nodes], count)

    @cached_property
    def start(self) -> Ints:
        """The first node of each tree, (trees)."""
        return np.cumsum(self.count) - self.count

    @property
    def tree(self) -> Ints:
        """The tree of each node, (nodes)."""
        return np.repeat(np.arange(len(self.count)), self.count)

    @property
    def depth(self) -> Ints:
        """How many nodes are above each, (nodes)."""
        here = np.arange(len(self.rule))  # as many nodes are before each: those that ended are not above it
        return here - np.cumsum(np.bincount(here + self.size, minlength=len(here) + 1))[:-1]

    def levels(self, arity: Ints) -> list[Level]:
        """The nodes of all trees by depth, as `csl.derivations.Side.write` takes them."""
        depth = self.depth
        order = np.argsort(depth, kind="stable")  # siblings are neighbours: a level's nodes keep their order
        found: list[Level] = []
        parent = number = np.zeros(len(self.count), dtype=np.int64)
        for nodes in np.split(order, np.cumsum(np.bincount(depth))[:-1]):
            below = arity[self.rule[nodes]]
            found.append(Level(self.rule[nodes], parent, number, np.cumsum(below) - below))
            parent, number = ranges(np.zeros(len(below), dtype=np.int64), below)
        return found

    def lengths(self, source: Side, target: Side) -> Ints:
        """The number of tokens on the longer side of each tree, (trees)."""
        levels = self.levels(source.counts - source.terminals)
        return np.maximum(source.lengths(levels)[0], target.lengths(levels)[0])

    def write(self, source: Side, target: Side) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """The sources and the targets that the trees derive: numbers of tokens, one after the other, and lengths."""
        levels, roots = self.levels(source.counts - source.terminals), np.arange(len(self.count))
        return source.write(levels, roots), target.write(levels, roots)


@dataclass(frozen=True, eq=False)
class Places:
    """Parts of trees: what can be taken out of a host, or come in its place.

    Attributes:
        tree: (places) of some trees.
        node: (places) the topmost node, from 0 in its tree.
        hole: (places) the node of its subtree that is no part of it, likewise; CLOSED if the whole subtree is.
    """

    tree: Ints
    node: Ints
    hole: Ints


def exchanged(hosts: Trees, out: Places, trees: Trees, into: Places) -> Trees:
    """Put parts of `trees` in the place of parts of hosts, one in each.

        host[:v] + piece[:hole] + host[u : u + size(u)] + piece[hole + size(hole) :] + host[v + size(v) :]

    where v is the node of the part that is taken out and u its hole. Without holes, the second of the five is the whole
    piece, and the next two are empty.

    Args:
        hosts: where parts are taken out.
        out: in hosts.
        trees: where the pieces are.
        into: in `trees`; each is closed, or has a hole, as the part that it replaces.
    """
    hosts = hosts.take(out.tree)
    base = len(hosts.rule)  # nodes of `trees` come behind those of the hosts
    rule, kind, size = (
        np.concatenate([getattr(hosts, name), getattr(trees, name)]) for name in ("rule", "kind", "size")
    )
    holed = out.hole != CLOSED
    node, first = hosts.start + out.node, base + trees.start[into.tree] + into.node
    end, last = node + size[node], first + size[first]
    keep, hole = np.where(holed, hosts.start + out.hole, node), np.where(holed, first + into.hole - into.node, last)
    kept, left = np.where(holed, size[keep], 0), np.where(holed, size[np.where(holed, hole, 0)], 0)
    stop = hosts.start + hosts.count
    starts = np.stack([hosts.start, first, keep, hole + left, end], axis=1)
    lengths = np.stack([node - hosts.start, hole - first, kept, last - hole - left, stop - end], axis=1)
    part, nodes = ranges(starts.ravel(), lengths.ravel())
    row, part = np.divmod(part, 5)
    sizes = size[nodes]
    # What is above the place, or in the piece above the hole, has become larger or smaller.
    above = (part == 0) & (nodes + sizes > node[row])
    around = (part == 1) & (nodes + sizes > hole[row]) & holed[row]
    sizes += above * (last - first - left + kept - end + node)[row] + around * (kept - left)[row]
    return Trees(rule[nodes], kind[nodes], sizes, lengths.sum(axis=1))


def _sizes(arity: Ints) -> Ints:
    """The size of the subtree of each node, given how many children each has, trees one after the other in preorder."""
    size = np.ones(len(arity), dtype=np.int64)
    for node in reversed(range(len(arity))):
        child = node + 1
        for _ in range(arity[node]):
            size[node] += size[child]
            child += size[child]
    return size
