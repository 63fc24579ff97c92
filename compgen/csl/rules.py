"""Rules of quasi-synchronous context-free grammars: NT -> <source, target> (Qiu et al. 2022, section 3.1.1).

There is one nonterminal symbol. In a rule its occurrences are numbered, written `NT_1`, `NT_2` and so on; each number
is once in the source, and once or more in the target. An example is a rule without nonterminals.

Sequences are held as strings with one letter (a code point) for each token. That is an immutable sequence of integers
for which the interpreter finds, counts, slices, replaces and hashes in C: the work of parsing and induction is that.
An `Alphabet` says which token a letter stands for.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from compgen.data.examples import Dataset
from compgen.errors import DataError

PREFIX = "NT_"
SEPARATOR = "###"
MOST = 99  # nonterminals in a rule; the letter of NT_i is the code point i
UNKNOWN = chr(128)  # the letter of every token that an alphabet does not know: no rule has it
COPIED = chr(127)  # the letter of a token that no rule has where it is copied
FIRST = 129  # code point of the first token; beyond what `str.format` gives a meaning
_TOKENS = 0x110000 - FIRST
NONTERMINAL = re.compile(f"[\0-{chr(MOST)}]")
_NAME = re.compile(r"NT_([1-9][0-9]?)")
_FIELDS = {number: f"{{{number - 1}}}" for number in range(1, MOST + 1)}
_FORM = f"'source {SEPARATOR} target', tokens between blanks"


class Alphabet:
    """Tokens as letters. The letters of tokens are in the order of the tokens."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """For some tokens of data, in any order, repeated or not.

        Raises:
            DataError: a token could not be told from a nonterminal or from the mark between a rule's sides, or it is
                empty or holds a blank, so that a rule with it could not be written; or there are more than a million.
        """
        self.tokens = tuple(sorted(set(tokens)))
        for token in self.tokens:
            _check_token(token)
        if len(self.tokens) > _TOKENS:
            raise DataError(f"found {len(self.tokens):,} different tokens, expected at most {_TOKENS:,}")
        self._letters = {token: chr(FIRST + number) for number, token in enumerate(self.tokens)}
        names = {chr(number): f"{PREFIX}{number}" for number in range(1, MOST + 1)}
        self._tokens = names | {letter: token for token, letter in self._letters.items()}

    def encode(self, tokens: Iterable[str]) -> str:
        """The letters of tokens of data. A token that is not in the alphabet becomes UNKNOWN, which no rule derives."""
        return "".join([self._letters.get(token, UNKNOWN) for token in tokens])

    def examples(self, dataset: Dataset) -> list["Rule"]:
        """The examples of a dataset as rules without nonterminals, in order."""
        return [Rule(self.encode(source), self.encode(target)) for source, target in dataset.pairs()]

    def decode(self, letters: str) -> tuple[str, ...]:
        """The tokens that letters stand for; nonterminals as they are written."""
        return tuple([self._tokens[letter] for letter in letters])

    def key(self, rule: "Rule") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What rules are ordered by: their tokens, those of the source first."""
        return self.decode(rule.source), self.decode(rule.target)

    def text(self, rule: "Rule") -> str:
        """A rule as it is written: `source ### target`."""
        source, target = self.key(rule)
        return f"{' '.join(source)} {SEPARATOR} {' '.join(target)}"


def _check_token(token: str, place: str = "") -> None:
    if token.startswith(PREFIX):
        raise DataError(f"{place}found the token {token!r}, expected none that begins with {PREFIX}: rules use these")
    if token == SEPARATOR or token.split() != [token]:
        raise DataError(f"{place}found the token {token!r}, expected one without blanks that is not {SEPARATOR}")


class Rule(NamedTuple):
    """A rule by the letters of its sides. The k-th nonterminal of the source is always NT_k: see `normal`."""

    source: str
    target: str

    @property
    def arity(self) -> int:
        """The number of nonterminals in the source."""
        return len(nonterminals(self.source))

    @property
    def length(self) -> int:
        """The number of tokens on both sides."""
        return len(self.source) + len(self.target)


@dataclass(frozen=True)
class Grammar:
    """Distinct rules in order, and what their letters mean."""

    alphabet: Alphabet
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, alphabet: Alphabet, rules: Iterable[Rule]) -> "Grammar":
        """The grammar of some rules in any order, repeated or not."""
        return cls(alphabet, tuple(sorted(set(rules), key=alphabet.key)))

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "rules") -> "Grammar":
        """The grammar written in some lines, one rule a line; blank lines are skipped.

        `name` is what errors call the lines. Indices are renumbered to the normal form.

        Raises:
            DataError: a line is no rule; the message names it.
        """
        places = {f"{name}, line {number}": line for number, line in enumerate(lines, 1) if line.strip()}
        sides = {place: _cut(place, line) for place, line in places.items()}
        tokens: set[str] = set()
        for place, both in sides.items():
            for token in {token for side in both for token in side if not _NAME.fullmatch(token)} - tokens:
                _check_token(token, f"{place}: ")
                tokens.add(token)
        alphabet = Alphabet(tokens)
        return cls.of(alphabet, [_checked(place, *both, alphabet=alphabet) for place, both in sides.items()])

    @classmethod
    def read(cls, path: str | Path) -> "Grammar":
        """The grammar in a file.

        Raises:
            DataError: there is no such file, it is not text, holds no rule, or a line that is none.
        """
        read = cls.parse(read_lines(path), str(path))
        if not read.rules:
            raise DataError(f"{path}: no rules: the file is empty")
        return read

    def moved(self, alphabet: Alphabet) -> list[Rule]:
        """The rules in the letters of another alphabet that has all tokens of this one."""
        old = self.alphabet
        letters = {ord(letter): alphabet.encode([token]) for token in old.tokens for letter in old.encode([token])}
        return [Rule(rule.source.translate(letters), rule.target.translate(letters)) for rule in self.rules]

    def text(self) -> str:
        """What `parse` reads: one rule a line."""
        return "".join(f"{self.alphabet.text(rule)}\n" for rule in self.rules)


def examples(dataset: Dataset, seeds: Grammar | None = None) -> tuple[Alphabet, list[Rule]]:
    """The examples of a dataset as rules, in order, with the alphabet of their tokens and those of some seed rules.

    Raises:
        DataError: an example has an empty side, or a token that no rule can have; the message names it.
    """
    known = set() if seeds is None else set(seeds.alphabet.tokens)
    for number, (source, target) in enumerate(dataset.pairs(), 1):
        if not source or not target:
            side = "target" if source else "source"
            raise DataError(f"example {number}: found an empty {side}, expected tokens on both sides: {_FORM}")
        for token in {*source, *target} - known:
            _check_token(token, f"example {number}: ")
            known.add(token)
    alphabet = Alphabet(known)
    return alphabet, alphabet.examples(dataset)


def is_nonterminal(letters: str) -> bool:
    """Whether a sequence is a single nonterminal."""
    return len(letters) == 1 and letters < chr(MOST + 1)


def nonterminals(letters: str) -> list[str]:
    """The nonterminals of a sequence, in order, as often as they occur."""
    return NONTERMINAL.findall(letters)


def normal(source: str, target: str) -> Rule:
    """The rule with two sides whose nonterminals are numbered in any way: renumbered in the order of the source."""
    found = nonterminals(source)
    if all(ord(letter) == number for number, letter in enumerate(found, 1)):
        return Rule(source, target)
    numbers = {ord(letter): number for number, letter in enumerate(found, 1)}
    return Rule(source.translate(numbers), target.translate(numbers))


def template(side: str) -> str:
    """A side as a format string for what NT_1, NT_2 and so on stand for: no token has a letter with a meaning there."""
    return side.translate(_FIELDS)


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file.

    Raises:
        DataError: there is no such file, or it is not text.
    """
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}, expected a file to read") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: found bytes that are not text, expected UTF-8") from error


def _cut(place: str, line: str) -> tuple[Sequence[str], Sequence[str]]:
    tokens = line.split()
    if tokens.count(SEPARATOR) != 1 or SEPARATOR in (tokens[0], tokens[-1]):
        raise DataError(f"{place}: found {line.strip()!r:.80}, expected {_FORM}, neither side empty")
    middle = tokens.index(SEPARATOR)
    return tokens[:middle], tokens[middle + 1 :]


def _checked(place: str, source: Sequence[str], target: Sequence[str], alphabet: Alphabet) -> Rule:
    sides = [_letters(side, alphabet) for side in (source, target)]
    found = nonterminals(sides[0])
    if len(set(found)) < len(found) or set(found) != set(nonterminals(sides[1])):
        raise DataError(
            f"{place}: found the nonterminals of {' '.join(source)!r:.60} and {' '.join(target)!r:.60}, expected each "
            "once in the source and, the same ones, in the target"
        )
    return normal(*sides)


def _letters(side: Sequence[str], alphabet: Alphabet) -> str:
    names = [_NAME.fullmatch(token) for token in side]
    return "".join(
        chr(int(name[1])) if name else alphabet.encode([token]) for token, name in zip(side, names, strict=True)
    )
