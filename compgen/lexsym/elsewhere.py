"""Whether a symbol of a target stems from other words than those that are exchanged.

    Stell das Licht in zehn Minuten auf 10 %  ->  percent 10 , minutes 10

Here one 10 is of `10` and one of `zehn`. A lexicon, or a grammar, may say that both are of `10`; an exchange of `10`
would change what `zehn` means, too. The data tell: examples with `zehn` and without `10` have the symbol.
"""

from collections import defaultdict
from collections.abc import Iterable, Set
from itertools import groupby

import numpy as np

LEAST = 2  # a word means a symbol only if it comes with it in this number of examples or more, as once may be chance
HALF = 2  # and only if one in this number of the examples with the word has the symbol


class Occurrences:
    """Which examples have a token, as the bits of a number."""

    def __init__(self, pairs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> None:
        self.rows: tuple[dict[str, list[int]], ...] = (defaultdict(list), defaultdict(list))
        self.count = 0
        for number, pair in enumerate(pairs):
            self.count = number + 1
            for side, found in zip(pair, self.rows, strict=True):
                for token in {*side}:
                    found[token].append(number)
        self._sets: dict[tuple[int, str], int] = {}

    def of(self, side: int, token: str) -> int:
        """The examples with a token in their source (0) or target (1)."""
        if (side, token) not in self._sets:
            bits = np.zeros(self.count, dtype=bool)
            bits[self.rows[side].get(token, [])] = True
            self._sets[side, token] = int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
        return self._sets[side, token]


class Elsewhere:
    """Finds whether words mean a symbol by themselves."""

    def __init__(self, pairs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> None:
        self._where = Occurrences(pairs)
        self._found: dict[tuple[frozenset[str], str], frozenset[str]] = {}

    def means(self, source: Set[str], words: frozenset[str], symbol: str) -> bool:
        """Whether other words of a source mean the symbol: of the examples with such a word, half or more have it.

        That is of the examples without `words`, which mean it anyway.
        """
        key = words, symbol
        if key not in self._found:
            self._found[key] = self._others(words, symbol)
        return not self._found[key].isdisjoint(source)

    def _others(self, words: frozenset[str], symbol: str) -> frozenset[str]:
        """All other words that mean a symbol, without those that merely stand beside surer ones."""
        where, with_words = self._where, 0
        for word in words:
            with_words |= where.of(0, word)
        unexplained, without = where.of(1, symbol) & ~with_words, where.count - with_words.bit_count()
        if unexplained.bit_count() * HALF >= without:  # it is there with whatever words
            return frozenset()
        found, shares = set[str](), dict[str, float]()
        for word in where.rows[0]:
            both = (where.of(0, word) & unexplained).bit_count()
            if both >= LEAST and both * HALF >= (every := (where.of(0, word) & ~with_words).bit_count()):
                shares[word] = both / every
        for _, some in groupby(sorted(shares, key=lambda word: -shares[word]), key=shares.__getitem__):
            surer = [word for word in some if where.of(0, word) & unexplained]
            found |= {*surer}
            for word in surer:
                unexplained &= ~where.of(0, word)
        return frozenset(found)
