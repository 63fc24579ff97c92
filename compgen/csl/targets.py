"""Target grammars: context-free grammars of well-formed targets ("output CFG", Qiu et al. 2022, section 3.1.2)."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

from compgen.csl.charts import Chart, Pattern, TooManyStepsError
from compgen.csl.rules import COPIED, MOST, Alphabet, is_nonterminal
from compgen.data.content import read_text
from compgen.errors import DataError

ROOT = "ROOT"
_ARROW = "=>"
MARK = "##"  # prefix of names
_ANY = MARK  # without a name: any token that occurs in no rule
_FORM = f"'LHS {_ARROW} tokens', nonterminals on the right with {MARK} before their names"
_STEPS = 65_536  # for one part of a target: as many parts as are tried, and names that are put together
WHOLE = 1_000_000  # for all parts of a parser's target, some ten seconds
_UNITS = 2  # stacked unit rules, as in the reference's induction; in sampling the reference stacks one for some data


@dataclass(frozen=True)
class TargetRule:
    """A rule of a target grammar: a name, and the symbols that it becomes; those with the prefix `##` are names."""

    name: str
    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.kinds) > MOST:
            raise DataError(f"found {len(self.kinds)} nonterminals in a rule for {self.name}, expected at most {MOST}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names among the symbols, in order, without `##`."""
        return tuple([symbol.removeprefix(MARK) for symbol in self.symbols if symbol[:2] == MARK and symbol != _ANY])

    @property
    def is_unit(self) -> bool:
        """Whether the only symbol is a name."""
        return len(self.kinds) == len(self.symbols) == 1


@dataclass(frozen=True)
class TargetGrammar:
    """Rules of a context-free grammar with the start symbol ROOT."""

    rules: tuple[TargetRule, ...]

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "target grammar") -> "TargetGrammar":
        """Build the grammar of lines `LHS => token ##NONTERMINAL token`; `name` is for messages.

        Blank lines and those that begin with `#` are skipped. `LHS => ##` derives any token that occurs in no rule.

        Raises:
            DataError: a line is not a rule, a nonterminal has no rule or none that ends, unit rules (of a single
                nonterminal) form a circle, or ROOT has no rule.
        """
        found: dict[TargetRule, str] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                found.setdefault(_rule(line, f"{name}, line {number}"), f"{name}, line {number}")
        known = {rule.name for rule in found}
        for rule, place in found.items():
            for kind in rule.kinds:
                if kind not in known:
                    raise DataError(f"{place}: found {MARK}{kind}, for which there is no rule")
        if ROOT not in known:
            raise DataError(f"{name}: found no rule for {ROOT}, expected one: targets start there")
        _check_units(found)
        _check_ends(found)
        return cls(tuple(found))

    @classmethod
    def read(cls, path: str | Path) -> "TargetGrammar":
        """Read a grammar from a file. Raises DataError as `parse`, or if the file cannot be read."""
        return cls.parse(read_text(path).splitlines(), str(path))

    def text(self) -> str:
        """Return the lines that `parse` reads."""
        return "".join(f"{rule.name} {_ARROW} {' '.join(rule.symbols)}\n" for rule in self.rules)

    def checker(self, alphabet: Alphabet) -> "Checker":
        """Return a checker of targets in the letters of an alphabet."""
        return Checker(self, alphabet)

    def derives(self, targets: Sequence[Sequence[str]]) -> list[bool]:
        """Return which targets are well formed: derived from ROOT.

        Raises:
            DataError: a token that no rule can have.
        """
        alphabet = Alphabet(token for target in targets for token in target)
        checker = self.checker(alphabet)
        return [checker.derives(alphabet.encode(target)) for target in targets]


def _rule(line: str, place: str) -> TargetRule:
    name, *rest = line.split()
    if len(rest) < 2 or rest[0] != _ARROW:
        raise DataError(f"{place}: found {line.strip()!r:.80}, expected {_FORM}")
    if _ANY in rest and len(rest) > 2:
        raise DataError(f"{place}: found {_ANY} among others, expected it alone: '{name} {_ARROW} {_ANY}'")
    try:
        return TargetRule(name, tuple(rest[1:]))
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def _check_units(places: Mapping[TargetRule, str]) -> None:
    """Raise DataError if unit rules lead from a nonterminal to itself: its derivations would be endless."""
    units = [rule for rule in places if rule.is_unit]
    below = TopologicalSorter[str]()
    for rule in units:
        below.add(rule.name, *rule.kinds)
    try:
        below.prepare()
    except CycleError as error:
        names = set(error.args[1])
        first = next(rule for rule in units if rule.name in names and rule.kinds[0] in names)
        raise DataError(
            f"{places[first]}: found {first.name} {_ARROW} {first.symbols[0]}, a rule of a single nonterminal in a "
            f"circle ({', '.join(sorted(names))}), expected no circle"
        ) from None


def _check_ends(places: Mapping[TargetRule, str]) -> None:
    """Raise DataError if no derivation from some nonterminal ends."""
    ended: set[str] = set()
    while more := {rule.name for rule in places if ended.issuperset(rule.kinds)} - ended:
        ended |= more
    for rule, place in places.items():
        if rule.name not in ended:
            raise DataError(
                f"{place}: found {rule.name}, all of whose rules lead to nonterminals without end, expected one that "
                "leads to tokens alone"
            )


Types = tuple[tuple[str, str], ...]  # nonterminals of a rule's target, ascending, each with a name
Names = set[tuple[str, Types]]  # names that a span can have, each with names of the span's own nonterminals


class Checker:
    """Decides whether targets of rules are parts of well-formed targets, in the letters of an alphabet."""

    def __init__(self, grammar: TargetGrammar, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        used = {symbol for rule in grammar.rules for symbol in rule.symbols}
        self._others = alphabet.encode(token for token in alphabet.tokens if token not in used)
        # Letters that `allows` does not tell apart: tokens in no rule, and nonterminals.
        alike = dict.fromkeys(self._others, COPIED) | {chr(number): "\1" for number in range(1, MOST + 1)}
        self._alike = str.maketrans(alike)
        self.names = sorted({rule.name for rule in grammar.rules})
        self.closed: defaultdict[str, list[str]] = defaultdict(list)
        self.units: defaultdict[str, list[str]] = defaultdict(list)
        # By the first terminal; rules that differ in names alone are together.
        self.open: defaultdict[str, defaultdict[Pattern, list[tuple[str, tuple[str, ...]]]]]
        self.open = defaultdict(lambda: defaultdict(list))
        for rule in grammar.rules:
            self._enter(rule)
        self._loose, self._whole = _Spans(self, tied=False), _Spans(self, tied=True)

    def _enter(self, rule: TargetRule) -> None:
        if rule.symbols == (_ANY,):
            for letter in (*self._others, COPIED):
                self.closed[letter].append(rule.name)
            return
        if rule.is_unit:
            self.units[rule.kinds[0]].append(rule.name)
            return
        numbers = iter(range(1, MOST + 1))
        side = "".join(
            chr(next(numbers)) if symbol.startswith(MARK) else self._alphabet.encode([symbol])
            for symbol in rule.symbols
        )
        if rule.kinds:
            first = "" if is_nonterminal(side[0]) else side[0]
            self.open[first][Pattern.of(side)].append((rule.name, rule.kinds))
        else:
            self.closed[side].append(rule.name)

    def allows(self, target: str) -> bool:
        """Whether some name derives a target whose nonterminals may be any names, as in the reference's induction.

        Occurrences of one nonterminal may have different names. Targets that differ in tokens of no rule alone are
        looked at once.
        """
        return bool(self._loose.whole(target.translate(self._alike)))

    def derives(self, target: str) -> bool:
        """Whether ROOT derives a target without nonterminals; as in `allows`, some are looked at together."""
        return (ROOT, ()) in self._whole.whole(target.translate(self._alike))

    def derives_soon(self, target: str, steps: int) -> bool:
        """Whether ROOT derives a target, and so many steps are enough to see it."""
        try:
            return (ROOT, ()) in _Spans(self, tied=True, steps=steps).whole(target.translate(self._alike))
        except TooManyStepsError:
            return False

    def signatures(self, target: str) -> set[tuple[str, ...]]:
        """Return all (name of the whole, name of NT_1, name of NT_2, ...) by which a target is derived.

        All occurrences of one nonterminal have the same name.
        """
        found = _Spans(self, tied=True).whole(target)
        return {(name, *(kind for _, kind in types)) for name, types in found}


class _Spans(Chart[Names]):
    """The names that derive a span; with names of its own nonterminals, if they are `tied`."""

    def __init__(self, checker: Checker, tied: bool, steps: int = sys.maxsize) -> None:
        super().__init__(_UNITS, steps)
        self._checker, self._tied = checker, tied

    def _base(self, span: str) -> Names:
        checker = self._checker
        if not span:
            return set()
        if is_nonterminal(span):
            return {(name, ((span, name),) if self._tied else ()) for name in checker.names}
        found: Names = {(name, ()) for name in checker.closed.get(span, ())}
        work = _Work(self, _STEPS if self._tied else sys.maxsize)
        for pattern, rules in chain(*(checker.open.get(first, {}).items() for first in (span[0], ""))):
            for cells in pattern.cuts(span, work.cell):
                found |= {(name, types) for name, kinds in rules for types in _together(cells, kinds, work)}
        return found

    def _with_units(self, base: Names, below: Names) -> Names:
        units = self._checker.units
        return base | {(name, types) for kind, types in below for name in units.get(kind, ())}


class _Work:
    """The steps that are left for one part of a target; the C++ runner counts alike.

    A part can be cut in as many ways as there are choices of the places between a rule's nonterminals, and has up to
    as many results as names to the power of nonterminals. Grammars in use need some 150 steps, but that of a file may
    need more than can be taken.
    """

    def __init__(self, spans: _Spans, steps: int) -> None:
        self._spans, self._left = spans, steps

    def cell(self, span: str) -> Names:
        """Return a cell, which is a step."""
        self.take(1)
        return self._spans.cell(span)

    def take(self, steps: int) -> None:
        """Take some of the steps that are left; raise DataError if this part has not so many, or as `_Spans.take`."""
        self._spans.take(steps)
        self._left -= steps
        if self._left < 0:
            raise DataError("target grammar: found a rule whose target can be derived in too many ways, expected fewer")


def _together(cells: Iterable[Names], kinds: Iterable[str], work: _Work) -> set[Types]:
    """Return all names that the nonterminals inside of some cells can have if the cells have the names `kinds`."""
    found: set[Types] = {()}
    for cell, kind in zip(cells, kinds, strict=True):
        below = {types for name, types in cell if name == kind}
        work.take(len(found) * len(below))
        found = {both for some in found for other in below if (both := _agreed(some, other)) is not None}
        if not found:
            break
    return found


def _agreed(some: Types, other: Types) -> Types | None:
    """Return the union, or None if they differ on a nonterminal."""
    if not some or not other:
        return some or other
    both = {*some, *other}
    return tuple(sorted(both)) if len(dict(both)) == len(both) else None
