"""The derivations of all examples as one packed forest: what the probabilities of rules are learned from.

A node is a rule on top of what its nonterminals derive. A place holds all nodes that derive one target from one source.
Equal places are one, whichever examples they belong to: `walk left` is derived once for all commands that contain it.
So the forest of a whole training set is small, and every update of training goes through all of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from compgen.csl.charts import Chart, Parser
from compgen.csl.rules import Grammar, Rule


@dataclass
class Forests:
    """The derivations of examples.

    Attributes:
        rule: the rule of each node.
        height: the height of each node; 0 without nonterminals.
        below: the places under each node, in the order of its nonterminals.
        members: the nodes of each place.
        roots: the place of each example, or -1 if the grammar does not derive it.
    """

    rule: list[int] = field(default_factory=list)
    height: list[int] = field(default_factory=list)
    below: list[tuple[int, ...]] = field(default_factory=list)
    members: list[tuple[int, ...]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)


def forests(grammar: Grammar, examples: Iterable[Rule], unit_limit: int = 1) -> Forests:
    """Return the derivations of examples, with at most `unit_limit` unit rules on top of each other."""
    builder, seen = _Builder(grammar), dict[Rule, int]()
    parser = Parser(grammar.rules, unit_limit)
    for example in examples:
        if example not in seen:
            derived = _Ways(parser, example).whole(example.source).get(example.target)
            seen[example] = -1 if derived is None else builder.place(derived)
        builder.found.roots.append(seen[example])
    return builder.found


def lowest(forests: Forests) -> list[list[int]]:
    """Return the rules, in preorder, of one derivation of each place: of the lowest ones, one with the fewest nodes."""
    best: list[tuple[int, int, list[int]]] = []
    for members in forests.members:  # a place comes after those below it
        found = []
        for member in members:
            parts = [best[place] for place in forests.below[member]]
            height = 1 + max((part[0] for part in parts), default=-1)
            rules = [forests.rule[member], *(rule for part in parts for rule in part[2])]
            found.append((height, len(rules), rules))
        best.append(min(found))
    return [rules for _, _, rules in best]


def first_uses(forests: Forests) -> dict[int, int]:
    """Return the first example that each rule derives a part of, by the rule's number."""
    uses, known = dict[int, int](), set[int]()
    for example, root in enumerate(forests.roots):
        todo = [root] if root >= 0 else []
        while todo:
            place = todo.pop()
            if place in known:  # an earlier example has all that is below it, too
                continue
            known.add(place)
            for member in forests.members[place]:
                uses.setdefault(forests.rule[member], example)
                todo += forests.below[member]
    return uses


@dataclass(eq=False, slots=True)
class _Derived:
    """One target of one span: each rule on top, with what its nonterminals derive; and its number as a place."""

    ways: list[tuple[Rule, tuple["_Derived", ...]]]
    place: int = -1


class _Ways(Chart[dict[str, _Derived]]):
    """By target, all ways to derive each part of the example's target from a span."""

    def __init__(self, parser: Parser, example: Rule) -> None:
        super().__init__(parser.unit_limit)
        self._parser, self._goal, self._open = parser, example.target, parser.usable(example)

    def _base(self, span: str) -> dict[str, _Derived]:
        found: dict[str, _Derived] = {}
        for target in self._parser.closed.get(span, ()):
            if target in self._goal:
                _add(found, target, Rule(span, target), ())
        for rule, pattern, target in self._open:
            for cells in pattern.cuts(span, self.cell):
                for below in product(*cells):
                    if (made := target.format(*below)) in self._goal:
                        parts = tuple([cell[under] for cell, under in zip(cells, below, strict=True)])
                        _add(found, made, rule, parts)
        return found

    def _with_units(self, base: dict[str, _Derived], below: dict[str, _Derived]) -> dict[str, _Derived]:
        found = {target: _Derived([*derived.ways]) for target, derived in base.items()}
        for under, derived in below.items():
            for rule, _, target in self._parser.units:
                if (made := target.format(under)) in self._goal:
                    _add(found, made, rule, (derived,))
        return found


def _add(found: dict[str, _Derived], target: str, rule: Rule, parts: tuple[_Derived, ...]) -> None:
    found.setdefault(target, _Derived([])).ways.append((rule, parts))


class _Builder:
    """Numbers nodes and places in the order in which they are met."""

    def __init__(self, grammar: Grammar) -> None:
        self.found = Forests()
        self._number = {rule: number for number, rule in enumerate(grammar.rules)}
        self._nodes: dict[tuple[int, tuple[int, ...]], int] = {}
        self._places: dict[tuple[int, ...], int] = {}

    def place(self, root: _Derived) -> int:
        """Return the number of a place, after those of all places below it."""
        todo = [root]
        while todo:  # without recursion, as derivations may be deep
            derived = todo[-1]
            missing = [below for _, parts in derived.ways for below in parts if below.place < 0]
            if missing:
                todo += missing
                continue
            nodes = {self._node(self._number[rule], tuple([part.place for part in parts]))
                     for rule, parts in derived.ways}  # fmt: skip
            members = tuple(sorted(nodes))
            derived.place = self._places.setdefault(members, len(self._places))
            if derived.place == len(self.found.members):
                self.found.members.append(members)
            todo.pop()
        return root.place

    def _node(self, rule: int, below: tuple[int, ...]) -> int:
        number = self._nodes.setdefault((rule, below), len(self._nodes))
        if number == len(self.found.rule):
            heights = [self.found.height[member] for place in below for member in self.found.members[place]]
            self.found.rule.append(rule)
            self.found.below.append(below)
            self.found.height.append(1 + max(heights) if heights else 0)
        return number
