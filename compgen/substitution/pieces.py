"""The tables of substitution: places of hosts, and the pieces that may come there.

    for each derivation of a training example, each node v below its root:
        place  v, and the derivation around it         class(v)
        piece  the subtree of v                        class(v)
    what one exchange makes: places joined with pieces by class

With chains also, for each node u below v: as a place what is around and below, as a piece what is between, of class
(class(v), class(u)); v may be the root. At each (v, v) a chain may be put in; where chains are only inserted, these are
the only places, and chains of class (class(v), class(v)) the only pieces: what is made is its host, nested deeper.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Literal

import numpy as np
import polars as pl

from compgen.csl.rules import Grammar, template
from compgen.data.brackets import CLOSING, labelled
from compgen.data.ragged import Ints, runs
from compgen.substitution.trees import CLOSED, Floats, Places, Trees, exchanged

Classes = Literal["predicate", "token", "slot", "types", "one"]
Chains = Literal["no", "exchange", "insert"]
_ROOT = "root "  # the class of all roots, but for `types`; no token has a space
_HOLE, _LEAF, _RULES = "\0", "\1", 2  # in the texts of trees; a rule is the letter of its number, from 2 on
_PLACES = {"tree": pl.Int64, "node": pl.Int64, "hole": pl.Int64, "class": pl.Int64, "text": pl.String}


class Classifier:
    """Gives nodes of derivations their classes; for `types`, by the types of source tokens that have one.

    Attributes:
        bracketed: whether the grammar has brackets.
    """

    def __init__(self, grammar: Grammar, classes: Classes, types: Mapping[str, str] = MappingProxyType({})) -> None:
        self.grammar, self.classes, self._types = grammar, classes, types
        self._forms = [(template(rule.source), template(rule.target)) for rule in grammar.rules]
        self._arity = [rule.arity for rule in grammar.rules]
        tokens, encode = grammar.alphabet.tokens, grammar.alphabet.encode
        labels = labelled({*tokens})
        brackets = [(token in CLOSING.values() or token in labels) - (token in CLOSING) for token in tokens]
        self._bracket = dict(zip(encode(tokens), brackets, strict=True))
        self._labels = {*encode(labels)}  # brackets that are their own predicates
        self.bracketed = any(brackets)

    def classify(self, rules: Sequence[int]) -> list[str]:
        """The classes of the nodes of a derivation, whose rules are in preorder."""
        below, sources, targets = self.derived(rules)
        decode = self.grammar.alphabet.decode
        if self.classes == "types":
            ends = [decode(source[0] + source[-1]) for source in sources]
            return [" ".join(self._types.get(token, token) for token in both) for both in ends]
        if self.classes == "token":
            return [_ROOT, *decode("".join(target[0] for target in targets[1:]))]
        found, left = [_ROOT, *[""] * (len(rules) - 1)], [""] * len(rules)  # `left`: the target before a node
        for node, rule in enumerate(rules if self.classes != "one" else ()):
            for number, child in enumerate(below[node]):
                if self.classes == "slot":
                    found[child] = f"{rule} {number}"
                    continue
                before, _, _ = self.grammar.rules[rule].target.partition(chr(number + 1))
                left[child] = left[node] + template(before).format(*(targets[one] for one in below[node]))
                _, head = self.heads(left[child])
                found[child] = "".join(decode(head.strip(" ")))
        return found

    def derived(self, rules: Sequence[int], hole: int = CLOSED) -> tuple[list[list[int]], list[str], list[str]]:
        """The children of each node, and the source and the target it derives; a hole (below 0: none) derives NT_1."""
        below: list[list[int]] = [[] for _ in rules]
        sources, targets = [""] * len(rules), [""] * len(rules)
        stack: list[int] = []  # nodes that have no parent yet, the first on top
        for node in reversed(range(len(rules))):
            source, target = ("\1", "\1") if node == hole else self._forms[rules[node]]
            below[node] = [stack.pop() for _ in range(self._arity[rules[node]])]
            sources[node] = source.format(*(sources[child] for child in below[node]))
            targets[node] = target.format(*(targets[child] for child in below[node]))
            stack.append(node)
        return below, sources, targets

    def heads(self, target: str) -> tuple[set[tuple[str, str]], str]:
        """The letters of each two tokens before brackets, one directly inside the other's; and the last of those whose
        bracket stays open.
        """
        found, above = set(), [""]
        for before, letter in zip(" " + target, target, strict=False):
            bracket = self._bracket.get(letter, 0)
            if bracket > 0:
                head = letter if letter in self._labels else before
                found.add((above[-1], head))
                above.append(head)
            elif bracket < 0 and len(above) > 1:
                above.pop()
        return found, above[-1]


def _numbered(classes: Sequence[Sequence[str]], fixed: Sequence[Set[int]]) -> tuple[list[list[int]], int]:
    """The classes of nodes as numbers from 1, and the number that those have instead that stay, one more than these."""
    number = {name: place for place, name in enumerate(sorted({*chain(*classes)}), 1)}
    kinds, stays = [[number[name] for name in some] for some in classes], len(number) + 1
    for kind, nodes in zip(kinds, fixed, strict=False):
        for node in nodes:
            kind[node] = stays
    return kinds, stays


@dataclass(frozen=True, eq=False)
class Table:
    """What can be exchanged.

    Attributes:
        trees: a derivation of each example.
        hosts: each place once: tree, node and hole (from 0 in the tree), class, and as texts what is around it and what
            is there (null where a chain can be put in).
        pieces: each piece of a class once, likewise, and its shape, in the order of classes, shapes and texts.
        kinds: the number of classes of nodes, from 1, and two: none, and that of nodes that are not exchanged.
        chains: what is done with parts that have a hole.
    """

    trees: Trees
    hosts: pl.DataFrame
    pieces: pl.DataFrame
    kinds: int
    chains: Chains

    @classmethod
    def of(
        cls,
        classifier: Classifier,
        derivations: Sequence[Sequence[int]],
        chains: Chains = "no",
        span: int | None = None,
        fixed: Sequence[Set[int]] = (),
    ) -> "Table":
        """Build the table of derivations, whose rules are in preorder.

        Args:
            classifier: of their nodes.
            derivations: of each example.
            chains: whether parts with a hole are exchanged as well, or inserted and nothing else.
            span: the most source tokens of a piece.
            fixed: nodes of each derivation that are not exchanged.
        """
        kinds, stays = _numbered([classifier.classify(rules) for rules in derivations], fixed)
        arity = np.array([rule.arity for rule in classifier.grammar.rules], dtype=np.int64)
        trees = Trees.of(derivations, kinds, arity)
        leaves = {ord(_letter(rule)): _LEAF for rule in np.flatnonzero(arity == 0).tolist()}
        hosts, pieces = [], []
        for tree, (start, rules, kind) in enumerate(zip(trees.start.tolist(), derivations, kinds, strict=True)):
            size = trees.size[start : start + len(rules)].tolist()
            lengths = [*map(len, classifier.derived(rules)[1]), 0]  # 0 is that of CLOSED, the last
            text, kind = "".join(map(_letter, rules)), [*kind, 0]
            for node, hole, is_place, is_piece in _parts(size, kind, chains):
                if stays in (kind[node], kind[hole]):
                    continue
                key = kind[node] * (stays + 1) + kind[hole]
                piece, around = _cut(text, size, node, hole)
                if is_place:
                    hosts.append((tree, node, hole, key, around, None if node == hole else piece))
                if is_piece and lengths[node] - lengths[hole] <= (span or lengths[node]):
                    pieces.append((tree, node, hole, key, piece, piece.translate(leaves)))
        places = pl.DataFrame(hosts, schema=_PLACES | {"own": pl.String}, orient="row")
        parts = pl.DataFrame(pieces, schema=_PLACES | {"shape": pl.String}, orient="row")
        places, parts = (some.unique(["class", "text"], keep="first", maintain_order=True) for some in (places, parts))
        return cls(trees, places, parts.sort("class", "shape", "text"), stays + 1, chains)

    @cached_property
    def alternatives(self) -> bool:
        """Whether a place has a piece of its class that is not what stands there."""
        same = self.hosts.join(self.pieces, left_on=["class", "own"], right_on=["class", "text"], how="semi")
        return self.total > len(same)

    @cached_property
    def total(self) -> int:
        """How many pairs there are of a place and a piece of its class."""
        sizes = self.pieces.group_by("class").len()
        # A sum of numbers of 32 bits has 32 bits as well, and there may be more than 2^32 pairs.
        return int(self.hosts.join(sizes, on="class")["len"].cast(pl.Int64).sum())

    def without(self, classes: Collection[int]) -> "Table":
        """The table without the places and pieces of some classes."""
        hosts, pieces = (some.filter(~pl.col("class").is_in(list(classes))) for some in (self.hosts, self.pieces))
        return replace(self, hosts=hosts, pieces=pieces)

    def every(self) -> pl.DataFrame:
        """All pairs: `host` and `piece`, and how probable the piece is, if shapes of its class are alike."""
        shapes = pl.col("shape").n_unique().over("class") * pl.len().over("class", "shape")
        pieces = self.pieces.with_row_index("piece").select("class", "piece", probability=1 / shapes)
        hosts = self.hosts.with_row_index("host").select("class", "host")
        return hosts.join(pieces, on="class", maintain_order="left_right").drop("class")

    def exchange(self, hosts: Ints, pieces: Ints) -> Trees:
        """The derivations with a piece in the place of each of some hosts."""
        return exchanged(self.trees, _places_of(self.hosts, hosts), self.trees, _places_of(self.pieces, pieces))

    def draw(self, trees: Trees, numbers: Floats) -> tuple[Trees, Ints, Ints]:
        """Put a random piece in a random place of each tree.

        A node below the root is drawn; with chains, in half of the trees also one of those above it and itself, as the
        top of a chain; where chains are only inserted, a node for which there are some. Then a shape of the class is
        drawn, and a piece of this shape. There may be none of the class.

        Args:
            trees: with classes of this table, and more than a root each.
            numbers: in [0, 1), (trees, 4).

        Returns:
            The trees that were changed, which these are, and the piece that each was given.
        """
        place, coin, shape, piece = numbers.T
        top, hole = self._growing(trees, place) if self.chains == "insert" else self._parts_of(trees, place, coin)
        key = trees.kind[top] * self.kinds + np.where(hole == CLOSED, 0, trees.kind[hole])
        key[(top == trees.start) & (hole == top)] = -1  # nothing is inserted around a whole example
        classes, (first_shape, shapes), (first_piece, pieces) = self._runs
        found = np.minimum(np.searchsorted(classes, key), len(classes) - 1)
        some = np.flatnonzero(classes[found] == key)
        which = first_shape[found] + (shape * shapes[found]).astype(np.int64)
        drawn = (first_piece[which] + (piece * pieces[which]).astype(np.int64))[some]
        hole = np.where(hole == CLOSED, CLOSED, hole - trees.start)
        out = Places(some, (top - trees.start)[some], hole[some])
        return exchanged(trees, out, self.trees, _places_of(self.pieces, drawn)), some, drawn

    def _parts_of(self, trees: Trees, place: Floats, coin: Floats) -> tuple[Ints, Ints]:
        """A node below the root of each tree, or a chain that ends there: its top, and its hole or CLOSED."""
        node = trees.start + 1 + (place * (trees.count - 1)).astype(np.int64)
        if self.chains == "no":
            return node, np.full(len(node), CLOSED)
        here = np.arange(len(trees.rule))
        above = np.flatnonzero((here <= node[trees.tree]) & (here + trees.size > node[trees.tree]))
        first, count = runs(trees.tree[above])
        ends = above[first + (2 * coin * count).astype(np.int64) % count]
        chain = coin < 1 / 2
        return np.where(chain, ends, node), np.where(chain, node, CLOSED)

    def _growing(self, trees: Trees, place: Floats) -> tuple[Ints, Ints]:
        """A node of each tree, below the root, at which chains can be inserted: twice; the root where there is none."""
        able = np.isin(trees.kind * (self.kinds + 1), self._runs[0])
        able[trees.start] = False
        count = np.add.reduceat(able, trees.start, dtype=np.int64)
        nodes = np.append(np.flatnonzero(able), 0)[np.cumsum(count) - count + (place * count).astype(np.int64)]
        top = np.where(count > 0, nodes, trees.start)
        return top, top

    @cached_property
    def _runs(self) -> tuple[Ints, tuple[Ints, Ints], tuple[Ints, Ints]]:
        """The classes, the slice of each one's shapes, and the slice of each shape's pieces."""
        shape = self.pieces.select(pl.struct("class", "shape").rle_id()).to_series().to_numpy()
        pieces = runs(shape)
        kind = self.pieces["class"].to_numpy()[pieces[0]]
        shapes = runs(kind)
        return kind[shapes[0]], shapes, pieces


def _letter(rule: int) -> str:
    """The letter of a rule: from _RULES on, without the surrogates, which no text may have."""
    code = rule + _RULES
    return chr(code if code < 0xD800 else code + 0x800)


def _places_of(frame: pl.DataFrame, rows: Ints) -> Places:
    return Places(*(frame[column].to_numpy()[rows] for column in ("tree", "node", "hole")))


def _cut(text: str, size: Sequence[int], node: int, hole: int) -> tuple[str, str]:
    """The texts of a part of a tree, and of what is around it."""
    end = node + size[node]
    if hole == CLOSED:
        return text[node:end], text[:node] + _HOLE + text[end:]
    stop = hole + size[hole]
    return text[node:hole] + _HOLE + text[stop:end], text[:node] + _HOLE + text[hole:stop] + _HOLE + text[end:]


def _parts(size: Sequence[int], kind: Sequence[int], chains: Chains) -> Iterator[tuple[int, int, bool, bool]]:
    """The parts of a tree, given the sizes of its subtrees and the classes: node, hole, and if a place and a piece."""
    for node, nodes in enumerate(size):
        if chains != "insert":
            yield node, CLOSED, node > 0, True
        for hole in range(max(node, 1), node + nodes) if chains != "no" else ():
            if chains == "exchange" or kind[node] == kind[hole]:
                yield node, hole, chains == "exchange" or node == hole, node != hole
