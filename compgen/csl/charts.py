"""What rules derive: a chart parser, and a quick filter of what can take part in a derivation.

The parser goes from the whole source down. A cell of its chart is a sequence of tokens, not a place in the source, so
that a phrase that comes twice is parsed once, and a cell is filled only if some rule wants it. A rule derives a cell
if the source's terminals are where they should be and each nonterminal stands for one token or more.
"""

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from compgen.csl.rules import NONTERMINAL, Rule, is_nonterminal, nonterminals, template

_MILE = 128
Cell = TypeVar("Cell", bound=Collection[object])


class Pattern(NamedTuple):
    """One side of a rule as terminals around nonterminals.

    Attributes:
        head, tail: the terminals before the first nonterminal, and behind the last.
        separators: the terminals between one nonterminal and the next.
        least: the length of what it can stand for, at least.
    """

    head: str
    separators: tuple[str, ...]
    tail: str
    least: int

    @classmethod
    def of(cls, side: str) -> "Pattern":
        """The pattern of a side with at least one nonterminal."""
        head, *separators, tail = NONTERMINAL.split(side)
        return cls(head, tuple(separators), tail, len(side))

    def cuts(self, span: str, cell: Callable[[str], Cell]) -> Iterable[tuple[Cell, ...]]:
        """The cells of what the nonterminals can stand for, in order, so that the pattern is the whole span.

        There is one tuple for each way to do so in which no cell is empty.
        """
        if len(span) < self.least or not span.startswith(self.head) or not span.endswith(self.tail):
            return ()
        return _cuts(span[len(self.head) : len(span) - len(self.tail)], self.separators, cell)


def _cuts(body: str, separators: Sequence[str], cell: Callable[[str], Cell]) -> Iterator[tuple[Cell, ...]]:
    """The ways to cut a body into parts, whose cells are not empty, with the separators between them."""
    if not separators:
        if only := cell(body):
            yield (only,)
        return
    separator, rest = separators[0], separators[1:]
    # Behind the separator there is a token for each nonterminal left, and the separators between these.
    last = len(body) - sum(map(len, rest)) - len(rest) - 1
    at = body.find(separator, 1, last)
    while at > 0:
        if first := cell(body[:at]):
            for others in _cuts(body[at + len(separator) :], rest, cell):
                yield first, *others
        at = body.find(separator, at + 1, last)


def milestones(sequence: str) -> Iterator[str]:
    """Parts of a long sequence, short ones first. Where their cells are filled first, recursion never goes deep."""
    for length in range(_MILE, len(sequence), _MILE):
        for start in range(len(sequence) - length + 1):
            yield sequence[start : start + length]


@functools.lru_cache(1 << 16)
def _blocks(pattern: str) -> tuple[tuple[tuple[int, str], ...], int]:
    """The runs of terminals of a pattern, each with the number of nonterminals before it; then of those at the end."""
    gap, blocks = 0, []
    parts = NONTERMINAL.split(pattern)
    for part in parts[:-1]:
        if part:
            blocks.append((gap, part))
            gap = 0
        gap += 1
    if parts[-1]:
        return (*blocks, (gap, parts[-1])), 0
    return tuple(blocks), gap


def occurs(pattern: str, sequence: str) -> bool:
    """Whether a side of a rule could take part in a derivation of a sequence ("can maybe derive").

    The pattern must match a part of the sequence: its terminals the same terminals, each nonterminal one token or
    more of any kind. That the numbers of nonterminals agree is not asked. Nothing occurs in an empty sequence, nor
    does an empty pattern.
    """
    blocks, tail = _blocks(pattern)
    at = 0
    for gap, block in blocks:  # where the first run of terminals is found earliest, so can be all that follow
        at = sequence.find(block, at + gap)
        if at < 0:
            return False
        at += len(block)
    return bool(pattern) and at + tail <= len(sequence)


class Occurrences:
    """In which of some sequences patterns occur. Sequences are numbered as they are added; sets are bits of an int."""

    def __init__(self) -> None:
        self._sequences: list[str] = []
        self._holders: defaultdict[str, int] = defaultdict(int)  # of each token

    def add(self, sequence: str) -> None:
        """One more sequence."""
        bit = 1 << len(self._sequences)
        self._sequences.append(sequence)
        for token in set(sequence):
            self._holders[token] |= bit

    def of(self, pattern: str, among: int) -> int:
        """Which sequences among some a pattern occurs in."""
        for token in pattern:
            if not among:
                return 0
            if not is_nonterminal(token):
                among &= self._holders.get(token, 0)
        if len(pattern) == 1 and not is_nonterminal(pattern):
            return among
        return sum(1 << number for number in bits(among) if occurs(pattern, self._sequences[number]))


def bits(numbers: int) -> Iterator[int]:
    """The places of the bits that are set, ascending."""
    written = bin(numbers)[:1:-1]
    at = written.find("1")
    while at >= 0:
        yield at
        at = written.find("1", at + 1)


class _Open(NamedTuple):
    """A rule with nonterminals, ready to be matched.

    Attributes:
        rule: the rule.
        pattern: of its source.
        target: its target as a format string.
    """

    rule: Rule
    pattern: Pattern
    target: str

    @classmethod
    def of(cls, rule: Rule) -> "_Open":
        return cls(rule, Pattern.of(rule.source), template(rule.target))


_opened = functools.lru_cache(1 << 16)(_Open.of)


class Parser:
    """Which targets some rules derive from a source.

    Rules are found by what a source must have for them: those without nonterminals by their whole source, the others
    by that terminal of it, if there is one, which fewest rules have.
    """

    def __init__(self, rules: Iterable[Rule], unit_limit: int = 2) -> None:
        """For some rules, of which unit rules (the source is a single nonterminal) stack up to `unit_limit` high."""
        self.unit_limit = unit_limit
        self.closed: defaultdict[str, list[str]] = defaultdict(list)
        self.units: list[Rule] = []
        opened = []
        for rule in rules:
            if is_nonterminal(rule.source):
                self.units.append(rule)
            elif not nonterminals(rule.source):
                self.closed[rule.source].append(rule.target)
            else:
                opened.append(rule)
        holders = Counter(token for rule in opened for token in set(rule.source))
        self._by_token: defaultdict[str, list[_Open]] = defaultdict(list)
        for rule in opened:
            terminals = NONTERMINAL.sub("", rule.source)
            self._by_token[min(terminals, key=holders.__getitem__, default="")].append(_opened(rule))

    def derives(self, goal: Rule) -> bool:
        """Whether the rules derive an example, or a rule, whose own nonterminals then stand for themselves."""
        return _Chart(self, goal).whole()

    def derives_otherwise(self, goal: Rule) -> bool:
        """Whether the rules other than the goal itself derive it: what a rule must pass to be removed."""
        return _Chart(self, goal, without=goal).whole()

    def usable(self, goal: Rule) -> list[_Open]:
        """The rules with nonterminals that can take part in a derivation of the goal."""
        return [one for one in self.fitting(goal.source) if occurs(one.rule.target, goal.target)]

    def fitting(self, source: str) -> list[_Open]:
        """The rules with nonterminals that can take part in a derivation of a source, whatever its target."""
        some = (one for token in {"", *source} for one in self._by_token.get(token, ()))
        return [one for one in some if occurs(one.rule.source, source)]


class _Chart:
    """The targets of each cell that are parts of the goal's target.

    The reference compares the sides as text, so that a target may also be part of a token of the goal: that costs time
    and gives no other result, as in the end the whole must be equal.
    """

    def __init__(self, parser: Parser, goal: Rule, without: Rule | None = None) -> None:
        self._parser, self._source, self._goal, self._without = parser, goal.source, goal.target, without
        self._open = [one for one in parser.usable(goal) if one.rule != without]
        self._cells: dict[str, set[str]] = {}

    def whole(self) -> bool:
        """Whether the goal is derived."""
        for part in milestones(self._source):
            self.targets(part)
        return self._goal in self.targets(self._source)

    def targets(self, span: str) -> set[str]:
        found = self._cells.get(span)
        if found is None:
            found = self._base(span)
            if self._parser.units:
                self._stack(span, found)
            self._cells[span] = found
        return found

    def _base(self, span: str) -> set[str]:
        """The targets with no unit rule on top."""
        goal = self._goal
        if is_nonterminal(span):
            return {span}
        found = {target for target in self._parser.closed.get(span, ()) if target in goal}
        if self._without is not None and span == self._without.source:  # it fits no shorter span
            found.discard(self._without.target)
        for _, pattern, target in self._open:
            for cells in pattern.cuts(span, self.targets):
                found.update([made for below in product(*cells) if (made := target.format(*below)) in goal])
        return found

    def _stack(self, span: str, found: set[str]) -> None:
        """Add what unit rules make of the targets.

        A nonterminal of the goal is no derivation yet: the first unit rule over it does not count, as in the reference.
        """
        for _ in range(self._parser.unit_limit + is_nonterminal(span)):
            below = [*found]
            for rule in self._parser.units:
                if rule != self._without:
                    target = _opened(rule).target
                    found.update([made for under in below if (made := target.format(under)) in self._goal])
