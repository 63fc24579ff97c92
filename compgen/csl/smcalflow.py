"""SMCalFlow for CSL: seed rules, and a grammar of targets, found in the training data (Qiu et al. 2022, appendix A)."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compgen.csl.rules import Grammar, Rule, examples
from compgen.csl.targets import MARK, ROOT, TargetGrammar, TargetRule
from compgen.data.examples import Dataset
from compgen.data.smcalflow import QUOTE, nesting, words
from compgen.errors import DataError

UNITS = Path(__file__).parents[1] / "configs" / "csl_smcalflow.rules"
_TEXTS = {"PersonName", "String", "LocationKeyphrase", "Month", "DayOfWeek"}
_NUMBER = "Number"
_WHEN = {":date", ":time"}
_Phrases = Iterator[tuple[list[str], Sequence[str]]]  # tokens of a source, and the part of a target that they become


class Slot(NamedTuple):
    """A nonterminal: its name, that on whose right side it stands (or `*`), and the tokens before its bracket."""

    name: str
    inside: str
    before: list[str]

    @classmethod
    def read(cls, path: Path) -> list["Slot"]:
        """Read the slots of a file."""
        rows = [line.split() for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
        return [cls(row[0], row[1], row[2:]) for row in rows if row]


SLOTS = Slot.read(UNITS.with_suffix(".slots"))


def seed_rules(dataset: Dataset) -> Grammar:
    """Return the seed rules of a dataset. The source of a rule is in the source of the example whose target it is from.

        text -> Type " text "        for names, subjects, places, months and weekdays
        n -> Number n, Number n.0    and for decimals all their tokens: 1 . 5 -> Number 1.5
        phrase -> phrase             for the content of `:date ( )` or `:time ( )` without brackets

    and the five unit rules of the file `UNITS`, which make a part of a target of what it contains.

    Sources are compared without case, and are written as in the example: `May -> Month " MAY "`; the reference keeps
    the target's capitals, which never fit. Phrases are whole tokens: 1 is not found in 10. Decimals are found at all.

    Raises:
        DataError: an example has an empty side, a token that no rule can have, or brackets or quotation marks in the
            target that do not match.
    """
    units = Grammar.read(UNITS)
    alphabet, _ = examples(dataset, units)
    rules = set(units.moved(alphabet))
    for number, (source, target) in enumerate(dataset.pairs(), 1):
        changes = _nesting(number, target)
        for phrase, part in (*_texts(target), *_numbers(target), *_dates(target, changes)):
            rules.update(Rule(alphabet.encode(found), alphabet.encode(part)) for found in _found(phrase, source))
    return Grammar.of(alphabet, rules)


def target_grammar(dataset: Dataset) -> TargetGrammar:
    """Return the rules by which the targets of a dataset are made; together they derive more targets.

    In each target, a bracketed part after the tokens of a slot is a nonterminal, and its content the right side of a
    rule; other brackets are tokens of the rule around them. A right side of ROOT is a whole target.

    Raises:
        DataError: as `seed_rules`, or a token begins like a nonterminal.
    """
    examples(dataset)
    rules: dict[TargetRule, None] = {}
    for number, (_, target) in enumerate(dataset.pairs(), 1):
        wrong = next((token for token in target if token.startswith(MARK)), None)
        if wrong is not None:
            raise DataError(
                f"example {number}: found the token {wrong!r}, expected none that begins with {MARK}: target grammars "
                "use these"
            )
        rules.update(dict.fromkeys(_bracketed(target, _nesting(number, target))))
    return TargetGrammar(tuple(rules))


def _nesting(number: int, target: Sequence[str]) -> list[int]:
    try:
        return nesting(target)
    except DataError as error:
        raise DataError(f"example {number}: {error}") from None


def _bracketed(target: Sequence[str], changes: Sequence[int]) -> Iterator[TargetRule]:
    """Yield the rules of one target, inner ones first."""
    open_: list[tuple[str, list[str]]] = [(ROOT, [])]  # nonterminals, and the symbols of their right sides so far
    named: list[bool] = []  # for each open bracket, whether it is that of a nonterminal
    for at, (token, change) in enumerate(zip(target, changes, strict=True)):
        name, symbols = open_[-1]
        if change < 0 and named.pop():
            yield TargetRule(name, tuple(symbols))
            open_.pop()
            symbols = open_[-1][1]
            symbols.append(MARK + name)
        if change > 0:
            # The content of empty brackets would have no right side.
            below = None if changes[at + 1] < 0 else _name(name, symbols)
            named.append(below is not None)
            if below is not None:
                open_.append((below, []))
        symbols.append(token)
    yield TargetRule(ROOT, tuple(open_[0][1]))


def _name(inside: str, before: Sequence[str]) -> str | None:
    """Return the nonterminal after some symbols of a right side, if they end with those of a slot."""
    fitting = (one for one in SLOTS if one.inside in ("*", inside) and before[-len(one.before) :] == one.before)
    return next((slot.name for slot in fitting), None)


def _texts(target: Sequence[str]) -> _Phrases:
    """Yield what is between quotation marks, and with it its type."""
    marks = [at for at, token in enumerate(target) if token == QUOTE]
    for start, stop in zip(marks[::2], marks[1::2], strict=True):
        if start and target[start - 1] in _TEXTS:
            yield words(" ".join(target[start + 1 : stop])), target[start - 1 : stop + 1]


def _numbers(target: Sequence[str]) -> _Phrases:
    for at, token in enumerate(target[1:], 1):
        if target[at - 1] == _NUMBER and token.replace(".", "", 1).isdecimal():
            for digits in {token, token.removesuffix(".0")}:
                yield words(digits), [_NUMBER, token]


def _dates(target: Sequence[str], changes: Sequence[int]) -> _Phrases:
    for at, token in enumerate(target[:-1]):
        if token in _WHEN and changes[at + 1] > 0:
            stop = next(place for place in range(at + 2, len(target)) if changes[place])
            if changes[stop] < 0:
                yield words(" ".join(target[at + 2 : stop])), target[at + 2 : stop]


def _found(phrase: Sequence[str], source: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the parts of a source that are a phrase but for case."""
    lower, length = _lower(phrase), len(phrase)
    for start in range(len(source) - length + 1) if phrase else ():
        if _lower(source[start : start + length]) == lower:
            yield source[start : start + length]


def _lower(tokens: Iterable[str]) -> list[str]:
    return [token.lower() for token in tokens]
