"""Charts: what rules derive from each part of a sequence.

A chart is filled from the top down. Its cells are addressed by a sequence of tokens, not by a place in the source, so a
phrase that occurs twice is parsed once, and a cell is filled only if some rule needs it.
"""

import functools
import sys
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, product
from typing import Generic, NamedTuple, TypeVar

from compgen.csl.occurrences import occurs
from compgen.csl.rules import NONTERMINAL, Rule, is_nonterminal, nonterminals, template

_MILE = 128  # tokens; parts are looked at in steps of this length, so that recursion is never deep
Cell = TypeVar("Cell", bound=Collection[object])


class Pattern(NamedTuple):
    """One side of a rule, as terminals around nonterminals.

    Attributes:
        head, tail: the terminals before the first nonterminal, and after the last.
        separators: the terminals between each two neighbouring nonterminals.
        least: the length of the shortest expansion.
    """

    head: str
    separators: tuple[str, ...]
    tail: str
    least: int

    @classmethod
    def of(cls, side: str) -> "Pattern":
        """Build the pattern of a side with at least one nonterminal."""
        head, *separators, tail = NONTERMINAL.split(side)
        return cls(head, tuple(separators), tail, len(side))

    def cuts(self, span: str, cell: Callable[[str], Cell]) -> Iterable[tuple[Cell, ...]]:
        """Yield, for each way to match a whole span, the cells of the nonterminals' parts; no cell is empty."""
        if len(span) < self.least or not span.startswith(self.head) or not span.endswith(self.tail):
            return ()
        return _cuts(span[len(self.head) : len(span) - len(self.tail)], self.separators, cell)


def _cuts(body: str, separators: Sequence[str], cell: Callable[[str], Cell]) -> Iterator[tuple[Cell, ...]]:
    if not separators:
        if only := cell(body):
            yield (only,)
        return
    separator, rest = separators[0], separators[1:]
    # After the separator there is at least one token for each nonterminal left, and the separators between these.
    last = len(body) - sum(map(len, rest)) - len(rest) - 1
    at = body.find(separator, 1, last)
    while at > 0:
        if first := cell(body[:at]):
            for others in _cuts(body[at + len(separator) :], rest, cell):
                yield first, *others
        at = body.find(separator, at + 1, last)


class TooManyStepsError(Exception):
    """A sequence has too many parts to be looked at."""


class Chart(ABC, Generic[Cell]):
    """What rules derive from the spans of a sequence (CKY, top down).

        cell(span, 0) = what rules other than unit rules derive
        cell(span, n) = cell(span, 0) and what unit rules derive from cell(span, n - 1)

    A unit rule is one whose side is a single nonterminal. Subclasses say what a cell holds.
    """

    def __init__(self, unit_limit: int, steps: int = sys.maxsize) -> None:
        """Stack up to `unit_limit` unit rules (0 where there are none); all cells together may `take` `steps`."""
        self._unit_limit, self._steps = unit_limit, steps
        self._cells: dict[str, Cell] = {}

    def take(self, steps: int) -> None:
        """Take some of the steps that are left for all cells; the C++ runner counts alike.

        Raises:
            TooManyStepsError: there are not so many.
        """
        self._steps -= steps
        if self._steps < 0:
            raise TooManyStepsError

    def whole(self, sequence: str) -> Cell:
        """Return the cell of a sequence of any length."""
        for length in range(_MILE, len(sequence), _MILE):  # short parts first: no recursion is deep
            for start in range(len(sequence) - length + 1):
                self.cell(sequence[start : start + length])
        return self.cell(sequence)

    def cell(self, span: str) -> Cell:
        """Return what is derived with as many unit rules on top as are allowed."""
        found = self._cells.get(span)
        return self._fill(span) if found is None else found

    def _fill(self, span: str) -> Cell:
        self.take(len(span) // _MILE)  # a long part is kept with all its tokens
        base = found = self._base(span)
        for _ in range(self._units_over(span) if base else 0):
            found = self._with_units(base, found)
        self._cells[span] = found
        return found

    def _units_over(self, span: str) -> int:  # noqa: ARG002
        return self._unit_limit

    @abstractmethod
    def _base(self, span: str) -> Cell:
        """Return cell(span, 0)."""

    @abstractmethod
    def _with_units(self, base: Cell, below: Cell) -> Cell:
        """Return cell(span, n), given cell(span, 0) and cell(span, n - 1)."""


class Open(NamedTuple):
    """A rule with nonterminals, the pattern of its source, and its target as a format string."""

    rule: Rule
    pattern: Pattern
    target: str

    @classmethod
    def of(cls, rule: Rule) -> "Open":
        """Prepare a rule for matching."""
        return cls(rule, Pattern.of(rule.source), template(rule.target))


opened = functools.lru_cache(1 << 16)(Open.of)


class Parser:
    """The rules of a grammar, indexed by what a source must contain for them.

    Rules without nonterminals are found by their whole source, others by the rarest terminal of their source.

    Attributes:
        unit_limit: how many unit rules (the source is a single nonterminal) may be stacked; 0 where there are none.
        closed: the targets of rules without nonterminals, by source.
        units: the unit rules.
    """

    def __init__(self, rules: Iterable[Rule], unit_limit: int = 2) -> None:
        self.closed: defaultdict[str, list[str]] = defaultdict(list)
        self.units: list[Open] = []
        some = []
        for rule in rules:
            if is_nonterminal(rule.source):
                self.units.append(opened(rule))
            elif nonterminals(rule.source):
                some.append(rule)
            else:
                self.closed[rule.source].append(rule.target)
        self.unit_limit = unit_limit if self.units else 0
        holders = Counter(token for rule in some for token in set(rule.source))
        self._bits: dict[str, int] = {}  # of each letter of sides as `_letters` gives them
        self._by_token: defaultdict[str, list[tuple[Open, int]]] = defaultdict(list)  # with the bits of their letters
        for rule in some:
            terminals = NONTERMINAL.sub("", rule.source)
            needs = 0
            for letter in _letters(rule):
                needs |= self._bits.setdefault(letter, 1 << len(self._bits))
            self._by_token[min(terminals, key=holders.__getitem__, default="")].append((opened(rule), needs))

    def derives(self, goal: Rule) -> bool:
        """Whether the rules derive a goal: an example, or a rule, whose nonterminals derive only themselves."""
        return goal.target in _Targets(self, goal).whole(goal.source)

    def derives_otherwise(self, goal: Rule) -> bool:
        """Whether the rules other than the goal derive it: the test that it can be removed (appendix B.3)."""
        return goal.target in _Targets(self, goal, without=goal).whole(goal.source)

    def usable(self, goal: Rule) -> list[Open]:
        """Return the rules with nonterminals both of whose sides occur in those of a goal."""
        missing = ~sum(self._bits.get(letter, 0) for letter in _letters(goal))
        return [
            one
            for one, needs in self._with_token_of(goal.source)
            if not needs & missing and occurs(one.rule.source, goal.source) and occurs(one.rule.target, goal.target)
        ]

    def fitting(self, source: str) -> list[Open]:
        """Return the rules with nonterminals whose source occurs in a source."""
        return [one for one, _ in self._with_token_of(source) if occurs(one.rule.source, source)]

    def _with_token_of(self, source: str) -> Iterator[tuple[Open, int]]:
        return chain.from_iterable(self._by_token.get(token, ()) for token in dict.fromkeys(["", *source]))


def _letters(rule: Rule) -> set[str]:
    """Return the terminals of both sides, where those of the target differ from those of the source."""
    sides = (NONTERMINAL.sub("", side) for side in rule)
    return {mark + letter for mark, side in zip("<>", sides, strict=True) for letter in side}


class _Targets(Chart[set[str]]):
    """The derived targets that are parts of the goal's target.

    The reference compares joined text, so a part may end within a token. That takes longer and gives the same result.
    """

    def __init__(self, parser: Parser, goal: Rule, without: Rule | None = None) -> None:
        super().__init__(parser.unit_limit)
        self._closed, self._goal, self._without = parser.closed, goal.target, without
        self._open = [one for one in parser.usable(goal) if one.rule != without]
        self._units = [one for one in parser.units if one.rule != without]

    def _base(self, span: str) -> set[str]:
        goal = self._goal
        if is_nonterminal(span):
            return {span}
        found = {target for target in self._closed.get(span, ()) if target in goal}
        if self._without is not None and span == self._without.source:
            found.discard(self._without.target)
        for _, pattern, target in self._open:
            for cells in pattern.cuts(span, self.cell):
                found.update([made for below in product(*cells) if (made := target.format(*below)) in goal])
        return found

    def _units_over(self, span: str) -> int:
        # In the reference the first unit rule over a nonterminal of the goal does not count.
        return self._unit_limit + is_nonterminal(span) if self._units else 0

    def _with_units(self, base: set[str], below: set[str]) -> set[str]:
        made = {one.target.format(under) for one in self._units for under in below}
        return base | {target for target in made if target in self._goal}
