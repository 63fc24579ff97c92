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


class Slot(NamedTuple):
    """What stands before a bracketed part of a target that is a nonterminal.

    Attributes:
        name: the nonterminal.
        before: the tokens before the bracket, nonterminals among them written as in a rule.
        inside: the nonterminal whose right side has the slot; any if empty.
    """

    name: str
    before: str
    inside: str = ""


_CONSTRAINTS = {  # on what
    "DATETIME_CONSTRAINT": "DATETIME",
    "DATE_CONSTRAINT": "DATE",
    "TIME_CONSTRAINT": "TIME",
    "DURATION_CONSTRAINT": "DURATION",
}
_OPERATORS = ("?=", "?<", "?>", "?<=", "?>=", "?~=")
_FUNCTIONS = {  # of a date, and of what is said behind it
    "nextDayOfMonth": "# NUMBER",
    "previousDayOfMonth": "# NUMBER",
    "nextDayOfWeek": "# WEEKDAY",
    "previousDayOfWeek": "# WEEKDAY",
    "nextMonthDay": "# MONTH # NUMBER",
    "previousMonthDay": "# MONTH # NUMBER",
    "adjustByPeriod": "PERIOD",
}


def _arguments(function: str, kinds: str) -> Iterator[Slot]:
    """The slots of a function's arguments, which have no names: those before tell where one is."""
    before = function
    for kind in f"DATE {kinds}".split():
        if kind == "#":
            before += " #"
        else:
            yield Slot(kind, before)
            before += f" ( {MARK}{kind} )"


# The first that fits counts. Of our own making, from the paper's few words and the programs' names: constraints, as on
# the start of an event, are told from what they are on, as the reference's 96 lines do not, so that more targets that
# mean nothing are kept out.
SLOTS = (
    Slot("OUTPUT", "Yield :output"),
    Slot("EVENT", "CreateCommitEventWrapper :event"),
    Slot("EVENT_CONSTRAINT", ":constraint", inside="EVENT"),
    Slot("EVENT_CONSTRAINT", "FindEventWrapperWithDefaults :constraint"),
    Slot("EVENT_CONSTRAINT", "FindNumNextEvent :constraint"),
    Slot("EVENT_CONSTRAINT", ":event"),
    # What an event has.
    Slot("ATTENDEES", ":attendees"),
    Slot("ATTENDEES", "andConstraint", inside="ATTENDEES"),
    Slot("ATTENDEES", "andConstraint ( ##ATTENDEES )", inside="ATTENDEES"),
    Slot("DATETIME_CONSTRAINT", ":start"),
    Slot("DATETIME_CONSTRAINT", ":end"),
    Slot("DURATION_CONSTRAINT", ":duration", inside="EVENT_CONSTRAINT"),
    Slot("SUBJECT", ":subject"),
    Slot("LOCATION", ":location"),
    Slot("SHOW_AS", ":showAs"),
    # Constraints.
    *(Slot(on, operator, inside=name) for name, on in _CONSTRAINTS.items() for operator in _OPERATORS),
    *(Slot(name, "andConstraint", inside=name) for name in _CONSTRAINTS),
    *(Slot(name, f"andConstraint ( ##{name} )", inside=name) for name in _CONSTRAINTS),
    Slot("DATE_CONSTRAINT", "Constraint[DateTime] :date"),
    Slot("TIME_CONSTRAINT", "Constraint[DateTime] :time"),
    Slot("TIME_CONSTRAINT", "Constraint[DateTime] :date ( ##DATE_CONSTRAINT ) :time"),
    Slot("TIME_CONSTRAINT", "DateTimeConstraint :constraint"),
    # Values.
    Slot("DATETIME", ":dateTime"),
    Slot("DATE", ":date"),
    Slot("DATE", ":date1"),
    Slot("DATE", ":date2"),
    Slot("DATE_RANGE", ":dateRange"),
    Slot("TIME", ":time"),
    Slot("DURATION", ":duration"),
    *(slot for function, kinds in _FUNCTIONS.items() for slot in _arguments(function, kinds)),
    Slot("PERIOD", ":period"),
    Slot("WEEK", ":week"),
    Slot("RECIPIENT", ":recipient"),
    Slot("RECIPIENT_CONSTRAINT", ":recipientConstraint"),
    Slot("PEOPLE", ":people"),
    Slot("PEOPLE", ":team"),
    Slot("PERSON", ":person"),
    # Texts and numbers.
    Slot("STRING", "?= #", inside="SUBJECT"),
    Slot("STRING", "?~= #", inside="SUBJECT"),
    Slot("PLACE", "?= #", inside="LOCATION"),
    Slot("PLACE", "?~= #", inside="LOCATION"),
    Slot("STATUS", "?= #", inside="SHOW_AS"),
    Slot("PERSON_NAME", ":name #"),
    Slot("WEEKDAY", ":dow #"),
    Slot("MONTH", ":month #"),
    *(Slot("NUMBER", f":{what} #") for what in ("number", "day", "year", "hours", "minutes")),
    *(Slot("NUMBER", f"to{unit} #") for unit in ("Minutes", "Hours", "Days", "Weeks", "Months", "Years")),
)
_SLOTS = [(slot, slot.before.split()) for slot in SLOTS]


def seed_rules(dataset: Dataset) -> Grammar:
    """Seed rules for a dataset, each phrase if it is in the source of the target that it is from, capitals or not.

        text -> Type " text "        for names, subjects, places, months and weekdays
        n -> Number n, Number n.0    and for decimals all their tokens: 1 . 5 -> Number 1.5
        phrase -> phrase             for what is in `:date ( )` or `:time ( )` and has no brackets

    and the five unit rules of the file `UNITS`, which make a part of a target of what is in it.

    Unlike the reference's, a rule's source is as the training source has it, `May -> Month " MAY "`, where the
    reference's keeps the target's capitals and so never fits; phrases are whole tokens, so that 1 is not found in 10;
    and decimals are found at all.

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
    """The rules by which the targets of a dataset are made; between them, they derive more.

    In each target, a bracketed part behind a slot is a nonterminal; other brackets are tokens of what they stand in.
    The right side of a nonterminal is what is between its brackets, that of ROOT a whole target.

    Raises:
        DataError: an example has an empty side, a token that no rule of a grammar can have, or brackets or quotation
            marks in the target that do not match.
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
    """The rules of one target, inner ones first."""
    open_: list[tuple[str, list[str]]] = [(ROOT, [])]  # nonterminals, and their right sides as far as they go
    named: list[bool] = []  # for each open bracket, whether it is that of a nonterminal
    for at, (token, change) in enumerate(zip(target, changes, strict=True)):
        name, symbols = open_[-1]
        if change < 0 and named.pop():
            yield TargetRule(name, tuple(symbols))
            open_.pop()
            symbols = open_[-1][1]
            symbols.append(MARK + name)
        if change > 0:
            # What is in empty brackets has no right side.
            below = None if changes[at + 1] < 0 else _name(name, symbols)
            named.append(below is not None)
            if below is not None:
                open_.append((below, []))
        symbols.append(token)
    yield TargetRule(ROOT, tuple(open_[0][1]))


def _name(inside: str, before: Sequence[str]) -> str | None:
    """The nonterminal behind some symbols, if they end with a slot."""
    for slot, symbols in _SLOTS:
        if slot.inside in ("", inside) and before[-len(symbols) :] == symbols:
            return slot.name
    return None


def _texts(target: Sequence[str]) -> Iterator[tuple[list[str], Sequence[str]]]:
    """What stands between quotation marks, as tokens of a source, and with its type, as it is in the target."""
    marks = [at for at, token in enumerate(target) if token == QUOTE]
    for start, stop in zip(marks[::2], marks[1::2], strict=True):
        if start and target[start - 1] in _TEXTS:
            yield words(" ".join(target[start + 1 : stop])), target[start - 1 : stop + 1]


def _numbers(target: Sequence[str]) -> Iterator[tuple[list[str], Sequence[str]]]:
    for at, token in enumerate(target[1:], 1):
        if target[at - 1] == _NUMBER and token.replace(".", "", 1).isdecimal():
            for digits in {token, token.removesuffix(".0")}:
                yield words(digits), [_NUMBER, token]


def _dates(target: Sequence[str], changes: Sequence[int]) -> Iterator[tuple[list[str], Sequence[str]]]:
    for at, token in enumerate(target[:-1]):
        if token in _WHEN and changes[at + 1] > 0:
            stop = next(place for place in range(at + 2, len(target)) if changes[place])
            if changes[stop] < 0:
                yield words(" ".join(target[at + 2 : stop])), target[at + 2 : stop]


def _found(phrase: Sequence[str], source: Sequence[str]) -> Iterator[Sequence[str]]:
    """Where a phrase is in a source, capitals or not, as the source has it."""
    lower, length = _lower(phrase), len(phrase)
    for start in range(len(source) - length + 1) if phrase else ():
        if _lower(source[start : start + length]) == lower:
            yield source[start : start + length]


def _lower(tokens: Iterable[str]) -> list[str]:
    return [token.lower() for token in tokens]
