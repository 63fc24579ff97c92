"""All derivations of examples, shared: what the probabilities of a grammar's rules are learned from.

A node is what a rule derives of a source and a target, and a place holds the nodes that derive the same. Places of
equal nodes are one place, in whichever examples they stand: `walk left` is derived once for all commands that have it.
So a whole training set is a small graph, and every update of training goes through all of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from compgen.csl.charts import Parser, milestones
from compgen.csl.rules import Grammar, Rule, template
from compgen.csl.weights import slots
from compgen.data.ragged import Ints

Node = tuple[int, tuple[int, ...]]  # a rule's number, and the places of its nonterminals
Derived = dict[str, list[tuple[Rule, tuple["Key", ...]]]]  # by target: each rule on top, and what is below it
Key = tuple[str, str, int]  # a span, a target of it, and how many unit rules may be on top


@dataclass
class Forests:
    """The derivations of examples.

    Attributes:
        rule, height: of each node; a node without nonterminals has height 0.
        members: the nodes of each place.
        below: the places under each node, in the order of its nonterminals.
        roots: the place of each example, or -1 if the grammar does not derive it.
    """

    rule: list[int] = field(default_factory=list)
    height: list[int] = field(default_factory=list)
    members: list[tuple[int, ...]] = field(default_factory=list)
    below: list[tuple[int, ...]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)


def forests(grammar: Grammar, examples: Iterable[Rule], unit_limit: int = 1) -> Forests:
    """The derivations of examples, given as rules without nonterminals in the grammar's alphabet.

    Up to `unit_limit` unit rules stand on top of each other.
    """
    return _Builder(grammar, unit_limit).of(examples)


class _Builder:
    """Numbers nodes and places as they are met."""

    def __init__(self, grammar: Grammar, unit_limit: int) -> None:
        self.number = {rule: number for number, rule in enumerate(grammar.rules)}
        self.parser = Parser(grammar.rules, unit_limit)
        self.nodes: dict[Node, int] = {}
        self.places: dict[tuple[int, ...], int] = {}
        self.found = Forests()

    def of(self, examples: Iterable[Rule]) -> Forests:
        seen: dict[Rule, int] = {}
        for example in examples:
            if example not in seen:
                chart = _Chart(self.parser, example)
                self.memo: dict[Key, int] = {}
                whole = (example.source, example.target, self.parser.unit_limit)
                seen[example] = self.place(chart, whole) if example.target in chart.whole() else -1
            self.found.roots.append(seen[example])
        return self.found

    def place(self, chart: "_Chart", key: Key) -> int:
        todo = [key]
        while todo:  # what is below first, without recursion, as derivations may be deep
            span, target, level = todo[-1]
            ways = chart.cell(span, level)[target]
            missing = [below for _, parts in ways for below in parts if below not in self.memo]
            if missing:
                todo += missing
                continue
            below = (self.node((self.number[rule], tuple(self.memo[part] for part in parts))) for rule, parts in ways)
            members = tuple(sorted(set(below)))
            number = self.places.setdefault(members, len(self.places))
            if number == len(self.found.members):
                self.found.members.append(members)
            self.memo[todo.pop()] = number
        return self.memo[key]

    def node(self, node: Node) -> int:
        number = self.nodes.setdefault(node, len(self.nodes))
        if number == len(self.found.rule):
            rule, below = node
            under = [self.found.height[member] for place in below for member in self.found.members[place]]
            self.found.rule.append(rule)
            self.found.below.append(below)
            self.found.height.append(1 + max(under) if under else 0)
        return number


class _Chart:
    """For each span, what derives each part of the example's target."""

    def __init__(self, parser: Parser, example: Rule) -> None:
        self.parser, self.example = parser, example
        self.open = parser.usable(example)
        self.cells: dict[tuple[str, int], Derived] = {}

    def whole(self) -> Derived:
        for part in milestones(self.example.source):
            self.cell(part, self.parser.unit_limit)
        return self.cell(self.example.source, self.parser.unit_limit)

    def cell(self, span: str, level: int) -> Derived:
        """Derivations with up to `level` unit rules on top."""
        found = self.cells.get((span, level))
        if found is None:
            found = self.cells[span, level] = self._base(span) if level == 0 else self._with_units(span, level)
        return found

    def _base(self, span: str) -> Derived:
        goal, level = self.example.target, self.parser.unit_limit
        found: Derived = {}
        for target in self.parser.closed.get(span, ()):
            if target in goal:
                found.setdefault(target, []).append((Rule(span, target), ()))
        for rule, pattern, target in self.open:
            for spans in pattern.cuts(span, lambda part: _Part(part, self.cell(part, level))):
                for below in product(*spans):
                    if (made := target.format(*below)) in goal:
                        parts = tuple((one.span, under, level) for one, under in zip(spans, below, strict=True))
                        found.setdefault(made, []).append((rule, parts))
        return found

    def _with_units(self, span: str, level: int) -> Derived:
        found = {target: [*ways] for target, ways in self.cell(span, 0).items()}
        for under in [*self.cell(span, level - 1)]:
            for rule in self.parser.units:
                made = template(rule.target).format(under)
                if made in self.example.target:
                    found.setdefault(made, []).append((rule, ((span, under, level - 1),)))
        return found


class _Part(tuple[str, ...]):
    """The targets of a cell, with its span."""

    span: str

    def __new__(cls, span: str, cell: Derived) -> "_Part":
        part = super().__new__(cls, cell)
        part.span = span
        return part


@dataclass(frozen=True)
class Level:
    """What the scores of nodes of one height are made of: pairs of a nonterminal under such a node, and a node there.

    Attributes:
        node: of each nonterminal ("edge"), the node above it.
        edge, slot, under: of each pair, which nonterminal it is of, the nonterminal's slot, and the node under it.
    """

    node: Ints
    edge: Ints
    slot: Ints
    under: Ints


def levels(found: Forests, grammar: Grammar) -> list[Level]:
    """The nodes with nonterminals, those below first."""
    first = slots(grammar)
    heights: list[list[int]] = [[] for _ in range(1 + max(found.height, default=0))]
    for number, height in enumerate(found.height):
        heights[height].append(number)
    return [_level(found, first, nodes) for nodes in heights[1:]]


def _level(found: Forests, first: list[int], nodes: list[int]) -> Level:
    """Some nodes of one height; `first` is the first slot of each rule."""
    edge: list[int] = []
    slot: list[int] = []
    under: list[int] = []
    node: list[int] = []
    for number in nodes:
        for place, members in enumerate(found.below[number]):
            for member in found.members[members]:
                edge.append(len(node))
                slot.append(first[found.rule[number]] + place)
                under.append(member)
            node.append(number)
    return Level(*(np.array(column, dtype=np.int64) for column in (node, edge, slot, under)))
