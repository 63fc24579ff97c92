"""Target grammars: context-free grammars of the targets that are well formed (Qiu et al. 2022, section 3.1.2)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compgen.csl.charts import Pattern, milestones
from compgen.csl.rules import COPIED, MOST, NONTERMINAL, Alphabet, is_nonterminal, read_lines
from compgen.errors import DataError

ROOT = "ROOT"
_ARROW = "=>"
MARK = "##"  # before the names of nonterminals
_ANY = MARK  # without a name: any token that no rule has
_FORM = f"'LHS {_ARROW} tokens', nonterminals on the right with {MARK} before their names"
# Unit rules on top of each other, as in the reference's induction. For sampling it stacks one only for some data sets.
_UNITS = 2


@dataclass(frozen=True)
class TargetRule:
    """A rule of a target grammar: a name becomes symbols, of which those that begin with `##` are names."""

    name: str
    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise DataError for more nonterminals than letters stand for."""
        if len(self.kinds) > MOST:
            raise DataError(f"found {len(self.kinds)} nonterminals in a rule for {self.name}, expected at most {MOST}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names among the symbols, in order, without `##`."""
        names = (symbol for symbol in self.symbols if symbol.startswith(MARK) and symbol != _ANY)
        return tuple([name[len(MARK) :] for name in names])


@dataclass(frozen=True)
class TargetGrammar:
    """Rules of a context-free grammar with the start symbol ROOT."""

    rules: tuple[TargetRule, ...]

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "target grammar") -> "TargetGrammar":
        """The grammar written in some lines, one rule a line, as `LHS => token ##NONTERMINAL token`.

        Blank lines and those that begin with `#` are skipped. `name` is what errors call the lines. A rule may be
        `LHS => ##`, for any token that is in none of the rules: what words there are, the data say.

        Raises:
            DataError: a line is no rule, a nonterminal has no rule or none that ends, unit rules (of a single
                nonterminal) go round in a circle, or there is no rule for ROOT.
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
        """The grammar in a file.

        Raises:
            DataError: there is no such file, it is not text, or what `parse` raises.
        """
        return cls.parse(read_lines(path), str(path))

    def text(self) -> str:
        """What `parse` reads: one rule a line."""
        return "".join(f"{rule.name} {_ARROW} {' '.join(rule.symbols)}\n" for rule in self.rules)

    def checker(self, alphabet: Alphabet) -> "Checker":
        """What parses targets whose tokens are letters of an alphabet."""
        return Checker(self, alphabet)


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


def _is_unit(rule: TargetRule) -> bool:
    """Whether its right side is a single nonterminal."""
    return len(rule.kinds) == len(rule.symbols) == 1


def _check_units(places: Mapping[TargetRule, str]) -> None:
    """Raise DataError if unit rules lead from a nonterminal to itself: it would have endless derivations."""
    left = [rule for rule in places if _is_unit(rule)]
    before = None
    while len(left) != before:  # what is on no circle goes from either end
        before = len(left)
        above, below = {rule.name for rule in left}, {rule.kinds[0] for rule in left}
        left = [rule for rule in left if rule.name in below and rule.kinds[0] in above]
    if left:
        names = ", ".join(sorted({rule.name for rule in left}))
        raise DataError(
            f"{places[left[0]]}: found {left[0].name} {_ARROW} {left[0].symbols[0]}, with which rules of a single "
            f"nonterminal go round in a circle ({names}), expected them to end"
        )


def _check_ends(places: Mapping[TargetRule, str]) -> None:
    """Raise DataError if from a nonterminal no derivation ends."""
    ended: set[str] = set()
    while more := {rule.name for rule in places if ended.issuperset(rule.kinds)} - ended:
        ended |= more
    for rule, place in places.items():
        if rule.name not in ended:
            raise DataError(
                f"{place}: found {rule.name}, all of whose rules lead to nonterminals without end, expected one that "
                "leads to tokens alone"
            )


Types = tuple[tuple[str, str], ...]  # nonterminals of a rule's target, ascending, each with one of the target grammar


class Checker:
    """Says whether targets of rules are parts of well-formed targets."""

    def __init__(self, grammar: TargetGrammar, alphabet: Alphabet) -> None:
        """For targets in the letters of an alphabet. Rules with other tokens derive nothing there."""
        self._alphabet = alphabet
        used = {symbol for rule in grammar.rules for symbol in rule.symbols}
        self._others = alphabet.encode(token for token in alphabet.tokens if token not in used)
        self.names = sorted({rule.name for rule in grammar.rules})
        self._closed: defaultdict[str, list[str]] = defaultdict(list)
        self._units: defaultdict[str, list[str]] = defaultdict(list)
        # By the first terminal, and then together those that differ in names alone.
        self._open: defaultdict[str, defaultdict[Pattern, list[tuple[str, list[str]]]]]
        self._open = defaultdict(lambda: defaultdict(list))
        for rule in grammar.rules:
            self._enter(rule)
        self._loose: dict[str, set[tuple[str, Types]]] = {}

    def _enter(self, rule: TargetRule) -> None:
        if rule.symbols == (_ANY,):
            for letter in (*self._others, COPIED):
                self._closed[letter].append(rule.name)
            return
        kinds = [*rule.kinds]
        if _is_unit(rule):
            self._units[kinds[0]].append(rule.name)
            return
        numbers = iter(range(1, len(kinds) + 1))
        side = "".join(
            chr(next(numbers)) if symbol.startswith(MARK) else self._alphabet.encode([symbol])
            for symbol in rule.symbols
        )
        if kinds:
            first = "" if is_nonterminal(side[0]) else side[0]
            self._open[first][Pattern.of(side)].append((rule.name, kinds))
        else:
            self._closed[side].append(rule.name)

    def allows(self, target: str) -> bool:
        """Whether some nonterminal derives a target, in which each nonterminal may stand for any, at each occurrence.

        That one nonterminal of a rule is the same at all its occurrences is not asked, as in the reference's induction.
        """
        return bool(self._whole(NONTERMINAL.sub("\1", target), self._loose, tied=False))

    def signatures(self, target: str) -> set[tuple[str, ...]]:
        """What nonterminals of this grammar a rule's target can be made of.

        Each is a name for the whole, and then one for NT_1, NT_2 and so on, of which each has one name at all places.
        """
        found = self._whole(target, {}, tied=True)
        return {(name, *(kind for _, kind in types)) for name, types in found}

    def _whole(self, target: str, cells: dict[str, set[tuple[str, Types]]], tied: bool) -> set[tuple[str, Types]]:
        for part in milestones(target):
            self._cell(part, cells, tied)
        return self._cell(target, cells, tied)

    def _cell(self, span: str, cells: dict[str, set[tuple[str, Types]]], tied: bool) -> set[tuple[str, Types]]:
        """The nonterminals that derive a span; with what its own nonterminals are then, if they are `tied`."""
        found = cells.get(span)
        if found is None:
            if is_nonterminal(span):
                found = {(name, ((span, name),) if tied else ()) for name in self.names}
            else:
                found = {(name, ()) for name in self._closed.get(span, ())}
                for first in (span[0], ""):
                    for pattern, rules in self._open.get(first, {}).items():
                        for below in pattern.cuts(span, lambda child: self._cell(child, cells, tied)):
                            found |= {(name, types) for name, kinds in rules for types in _together(below, kinds)}
            for _ in range(_UNITS):
                found |= {(name, types) for kind, types in found for name in self._units.get(kind, ())}
            cells[span] = found
        return found


def _together(cells: Iterable[set[tuple[str, Types]]], kinds: Iterable[str]) -> set[Types]:
    """What the nonterminals in some cells are if each cell is of a kind."""
    found: set[Types] = {()}
    for cell, kind in zip(cells, kinds, strict=True):
        below = {types for name, types in cell if name == kind}
        found = {both for some in found for other in below if (both := _agreed(some, other)) is not None}
        if not found:
            break
    return found


def _agreed(some: Types, other: Types) -> Types | None:
    """Both together, if they agree on what each nonterminal is."""
    if not some or not other:
        return some or other
    both = {*some, *other}
    return tuple(sorted(both)) if len(dict(both)) == len(both) else None
