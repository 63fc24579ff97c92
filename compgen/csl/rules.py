"""Rules of a quasi-synchronous context-free grammar, NT -> <alpha, beta> (Qiu et al. 2022, section 3.1.1).

There is one nonterminal symbol. Its occurrences in a rule are numbered and written `NT_1`, `NT_2`, ...; each number
occurs once in the source, and once or more in the target. An example <x, y> is a rule without nonterminals.

A sequence is a string with one letter (code point) per token, so that searching, slicing, replacing and hashing run in
C. An `Alphabet` maps tokens to letters. The letter of NT_i is the code point i.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compgen.data.content import read_text
from compgen.data.examples import Dataset
from compgen.data.ragged import Ints
from compgen.errors import DataError

PREFIX = "NT_"
SEPARATOR = "###"
MOST = 99  # nonterminals of a rule
COPIED = chr(127)  # any token that is copied and occurs in no rule
UNKNOWN = chr(128)  # any token outside the alphabet; no rule derives it
FIRST = 129  # code point of the first token; all letters that have a meaning to `str.format` are below it
_TOKENS = 0x110000 - FIRST
NONTERMINAL = re.compile(f"[\0-{chr(MOST)}]")
_NAME = re.compile(r"NT_([1-9][0-9]?)")
_FIELDS = {number: f"{{{number - 1}}}" for number in range(1, MOST + 1)}
_FORM = f"'source {SEPARATOR} target', tokens separated by spaces"


class Alphabet:
    """A letter for each token, in the order of the tokens."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """Number distinct tokens.

        Raises:
            DataError: a token is empty, contains a space, is the separator of rules or begins like a nonterminal.
        """
        self.tokens = tuple(sorted(set(tokens)))
        for token in self.tokens:
            _check_token(token)
        if len(self.tokens) > _TOKENS:
            raise DataError(f"found {len(self.tokens):,} different tokens, expected at most {_TOKENS:,}")
        self._letters = {token: chr(FIRST + number) for number, token in enumerate(self.tokens)}
        names = {chr(number): f"{PREFIX}{number}" for number in range(1, MOST + 1)}
        self._tokens = names | {letter: token for token, letter in self._letters.items()}

    @cached_property
    def signs(self) -> set[str]:
        """The letters of tokens that have no letter or digit, such as brackets."""
        return {letter for token, letter in self._letters.items() if not any(map(str.isalnum, token))}

    def encode(self, tokens: Iterable[str]) -> str:
        """Return the letters of tokens; UNKNOWN for a token outside the alphabet."""
        return "".join([self._letters.get(token, UNKNOWN) for token in tokens])

    def decode(self, letters: str) -> tuple[str, ...]:
        """Return the tokens of letters, among them names of nonterminals."""
        return tuple([self._tokens[letter] for letter in letters])

    def examples(self, dataset: Dataset) -> list["Rule"]:
        """Return the examples of a dataset as rules without nonterminals, in order."""
        return [Rule(self.encode(source), self.encode(target)) for source, target in dataset.pairs()]

    def key(self, rule: "Rule") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the tokens of both sides: the sort key of rules."""
        return self.decode(rule.source), self.decode(rule.target)

    def text(self, rule: "Rule") -> str:
        """Return a rule as `source ### target`."""
        source, target = self.key(rule)
        return f"{' '.join(source)} {SEPARATOR} {' '.join(target)}"


def is_reserved(token: str) -> bool:
    """Whether a token means something in the text of rules, so that it can be in none."""
    return token.startswith(PREFIX) or token == SEPARATOR or token.split() != [token]


def _check_token(token: str, place: str = "") -> None:
    if not is_reserved(token):
        return
    if token.startswith(PREFIX):
        raise DataError(f"{place}found the token {token!r}, expected none that begins with {PREFIX}: rules use these")
    raise DataError(f"{place}found the token {token!r}, expected one without spaces that is not {SEPARATOR}")


class Rule(NamedTuple):
    """The letters of both sides of a rule, in normal form: the k-th nonterminal of the source is NT_k."""

    source: str
    target: str

    @property
    def arity(self) -> int:
        """The number of nonterminals in the source."""
        return len(nonterminals(self.source))

    @property
    def length(self) -> int:
        """The number of tokens of both sides."""
        return len(self.source) + len(self.target)


@dataclass(frozen=True)
class Grammar:
    """Distinct rules, sorted, and the alphabet of their letters."""

    alphabet: Alphabet
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, alphabet: Alphabet, rules: Iterable[Rule]) -> "Grammar":
        """Build the grammar of rules in any order, repeated or not."""
        return cls(alphabet, tuple(sorted(set(rules), key=alphabet.key)))

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "rules") -> "Grammar":
        """Build the grammar of lines `source ### target`; blank lines are skipped, `name` is for messages.

        Raises:
            DataError: a line is not a rule.
        """
        numbered = [(f"{name}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]
        sides = {place: _cut(place, line) for place, line in numbered}
        tokens: set[str] = set()
        for place, both in sides.items():
            for token in {token for side in both for token in side if not _NAME.fullmatch(token)} - tokens:
                _check_token(token, f"{place}: ")
                tokens.add(token)
        alphabet = Alphabet(tokens)
        return cls.of(alphabet, [_checked(place, *both, alphabet=alphabet) for place, both in sides.items()])

    @classmethod
    def read(cls, path: str | Path) -> "Grammar":
        """Read a grammar from a file.

        Raises:
            DataError: the file cannot be read or contains no rule, or a line is not a rule.
        """
        read = cls.parse(read_text(path).splitlines(), str(path))
        if not read.rules:
            raise DataError(f"{path}: no rules: the file is empty")
        return read

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of slots (the root, and each nonterminal of each rule's source) and of rules."""
        return 1 + sum(rule.arity for rule in self.rules), len(self.rules)

    def moved(self, alphabet: Alphabet) -> list[Rule]:
        """Return the rules in the letters of another alphabet, which contains all tokens of this one."""
        tokens = self.alphabet.tokens
        letters = str.maketrans(self.alphabet.encode(tokens), alphabet.encode(tokens))
        return [Rule(rule.source.translate(letters), rule.target.translate(letters)) for rule in self.rules]

    def text(self) -> str:
        """Return the lines that `parse` reads."""
        return "".join(f"{self.alphabet.text(rule)}\n" for rule in self.rules)


def examples(dataset: Dataset, seeds: Grammar | None = None) -> tuple[Alphabet, list[Rule]]:
    """Return the examples of a dataset as rules, and the alphabet of their tokens and those of seed rules.

    Raises:
        DataError: an example has an empty side, or a token that no rule can have.
    """
    alphabet = Alphabet(check_examples(dataset) | (set() if seeds is None else set(seeds.alphabet.tokens)))
    return alphabet, alphabet.examples(dataset)


def check_examples(dataset: Dataset) -> set[str]:
    """Return the tokens of a dataset. Raises DataError as `examples`; it names the example by its place."""
    known = set[str]()
    for number, (source, target) in enumerate(dataset.pairs(), 1):
        if not source or not target:
            side = "target" if source else "source"
            raise DataError(f"example {number}: found an empty {side}, expected tokens on both sides: {_FORM}")
        for token in (*source, *target):
            if token not in known:
                _check_token(token, f"example {number}: ")
                known.add(token)
    return known


def refused(dataset: Dataset) -> str | None:
    """Why the examples of a dataset cannot be rules, or None if they can."""
    try:
        check_examples(dataset)
    except DataError as error:
        return str(error)
    return None


def is_nonterminal(letters: str) -> bool:
    """Whether a sequence is a single nonterminal."""
    return len(letters) == 1 and letters < chr(MOST + 1)


def nonterminals(letters: str) -> list[str]:
    """Return all occurrences of nonterminals in a sequence, in order."""
    return NONTERMINAL.findall(letters)


def normal(source: str, target: str) -> Rule:
    """Return the rule of two sides, its nonterminals renumbered in the order of the source."""
    numbers = {ord(letter): number for number, letter in enumerate(nonterminals(source), 1)}
    if all(old == new for old, new in numbers.items()):
        return Rule(source, target)
    return Rule(source.translate(numbers), target.translate(numbers))


def template(side: str) -> str:
    """Return a side as a format string; its fields are the expansions of NT_1, NT_2, ..."""
    return side.translate(_FIELDS)


def codes(letters: str) -> Ints:
    """Return the code points of letters."""
    return np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)


def _cut(place: str, line: str) -> tuple[Sequence[str], Sequence[str]]:
    tokens = line.split()
    if tokens.count(SEPARATOR) != 1 or SEPARATOR in (tokens[0], tokens[-1]):
        raise DataError(f"{place}: found {line.strip()!r:.80}, expected {_FORM}, neither side empty")
    middle = tokens.index(SEPARATOR)
    return tokens[:middle], tokens[middle + 1 :]


def _checked(place: str, source: Sequence[str], target: Sequence[str], alphabet: Alphabet) -> Rule:
    def letter(token: str) -> str:
        name = _NAME.fullmatch(token)
        return chr(int(name[1])) if name else alphabet.encode([token])

    sides = ["".join(map(letter, side)) for side in (source, target)]
    found = nonterminals(sides[0])
    if len(set(found)) < len(found) or set(found) != set(nonterminals(sides[1])):
        raise DataError(
            f"{place}: found the nonterminals of {' '.join(source)!r:.60} and {' '.join(target)!r:.60}, expected each "
            "once in the source, and the same ones in the target"
        )
    return normal(*sides)
