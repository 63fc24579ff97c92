"""In which sequences the sides of rules "occur" (Qiu et al. 2022, footnote 12): a quick condition of derivations."""

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence

from compgen.csl.rules import NONTERMINAL, is_nonterminal

_FEW = 8  # set bits; of so few, each is found faster by arithmetic than in the number written down


@functools.lru_cache(1 << 16)
def _blocks(pattern: str) -> tuple[tuple[tuple[int, str], ...], int]:
    """Return the runs of terminals, each with the number of nonterminals before it; and of those after the last."""
    gap, blocks = 0, []
    *parts, last = NONTERMINAL.split(pattern)
    for part in parts:
        if part:
            blocks.append((gap, part))
            gap = 0
        gap += 1
    return ((*blocks, (gap, last)), 0) if last else (tuple(blocks), gap)


def occurs(pattern: str, sequence: str) -> bool:
    """Whether a side of a rule "occurs in" a sequence (Qiu et al. 2022, footnote 12).

    Some substitution of the nonterminals, by one token or more each, makes the pattern a part of the sequence. Equal
    nonterminals may be substituted differently. Nothing occurs in an empty sequence, and an empty pattern nowhere.
    """
    blocks, tail = _blocks(pattern)
    at = 0
    for gap, block in blocks:  # the earliest match of each run of terminals leaves most to the others
        at = sequence.find(block, at + gap)
        if at < 0:
            return False
        at += len(block)
    return bool(pattern) and at + tail <= len(sequence)


class Occurrences:
    """Numbered sequences, and which of them patterns occur in; a set of numbers is the bits of an int."""

    def __init__(self) -> None:
        self._sequences: list[str] = []
        self._holders: defaultdict[str, int] = defaultdict(int)  # of each token

    def add(self, sequence: str) -> None:
        """Add a sequence."""
        bit = 1 << len(self._sequences)
        self._sequences.append(sequence)
        for token in set(sequence):
            self._holders[token] |= bit

    def of(self, pattern: str, among: int) -> int:
        """Return the numbers, among some, of the sequences that a pattern occurs in."""
        some = self.likely(pattern, among)
        if len(pattern) == 1 and not is_nonterminal(pattern):
            return some
        left_out = [number for number in bits(some) if not occurs(pattern, self._sequences[number])]
        return some ^ number_of(left_out)

    def likely(self, pattern: str, among: int = -1) -> int:
        """Return the numbers, among some or all, of the sequences that have the tokens of a pattern, in any order."""
        if among < 0:
            among = (1 << len(self._sequences)) - 1
        for token in NONTERMINAL.sub("", pattern):
            among &= self._holders.get(token, 0)
        return among


def bits(numbers: int) -> Iterator[int]:
    """Yield the places of the set bits, ascending."""
    if numbers.bit_count() <= _FEW:
        while numbers:
            last = numbers & -numbers
            yield last.bit_length() - 1
            numbers ^= last
        return
    written = bin(numbers)[:1:-1]
    at = written.find("1")
    while at >= 0:
        yield at
        at = written.find("1", at + 1)


def number_of(places: Sequence[int]) -> int:
    """Return the number whose set bits have some places, ascending: what `bits` takes apart."""
    if len(places) <= _FEW:
        return sum(1 << place for place in places)
    written = bytearray(b"0") * (places[-1] + 1)
    for place in places:
        written[-1 - place] = ord("1")
    return int(written, 2)
