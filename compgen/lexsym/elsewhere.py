"""Whether a symbol of a target stems from other words than those that are exchanged.

    Stell das Licht in zehn Minuten auf 10 %  ->  percent 10 , minutes 10

Here one 10 is of `10` and one of `zehn`. A lexicon, or a grammar, may say that both are of `10`; an exchange of `10`
would change what `zehn` means, too. The data tell: examples with `zehn` and without `10` have the symbol.
"""

from collections import defaultdict
from collections.abc import Iterable, Set
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints

Rows = NDArray[np.int32]

LEAST = 2  # a word means a symbol only if it comes with it in this number of examples or more, as once may be chance
HALF = 2  # and only if one in this number of the examples with the word has the symbol
_NONE = np.zeros(0, dtype=np.int32)


class Occurrences:
    """Which examples have a token: their numbers in order, by token, for sources (0) and for targets (1).

    Most tokens are rare. So these take the memory of the data, where a bit for each token and example takes gigabytes.
    """

    def __init__(self, pairs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> None:
        found: tuple[dict[str, list[int]], ...] = (defaultdict(list), defaultdict(list))
        self.count = 0
        for number, pair in enumerate(pairs):
            self.count = number + 1
            for side, numbers in zip(pair, found, strict=True):
                for token in {*side}:
                    numbers[token].append(number)
        self._rows = [{token: np.array(some, dtype=np.int32) for token, some in numbers.items()} for numbers in found]

    def of(self, side: int, token: str) -> Rows:
        """The numbers of the examples with a token in their source (0) or target (1)."""
        return self._rows[side].get(token, _NONE)

    def words(self) -> dict[str, Rows]:
        """The numbers of the examples with each token of sources."""
        return self._rows[0]


class Elsewhere:
    """Finds whether words mean a symbol by themselves."""

    def __init__(self, pairs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> None:
        self._where = Occurrences(pairs)
        rows = self._where.words()
        self._words = [*rows]
        self._flat = np.concatenate([_NONE, *rows.values()])  # the examples of one word after those of another
        self._counts = np.array([*map(len, rows.values())], dtype=np.int64)
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
        where = self._where
        with_words, unexplained = np.zeros((2, where.count), dtype=bool)
        for word in words:
            with_words[where.of(0, word)] = True
        unexplained[where.of(1, symbol)] = True
        unexplained &= ~with_words
        if unexplained.sum() * HALF >= where.count - with_words.sum():  # it is there with whatever words
            return frozenset()
        both, every = self._counted(unexplained), self._counts - self._counted(with_words)
        likely = np.flatnonzero((both >= LEAST) & (both * HALF >= every))
        shares = {self._words[number]: both[number] / every[number] for number in likely.tolist()}
        found = set[str]()
        for _, some in groupby(sorted(shares, key=lambda word: -shares[word]), key=shares.__getitem__):
            surer = [word for word in some if unexplained[where.of(0, word)].any()]
            found |= {*surer}
            for word in surer:
                unexplained[where.of(0, word)] = False
        return frozenset(found)

    def _counted(self, some: NDArray[np.bool_]) -> Ints:
        """In how many of some examples each word is."""
        return np.add.reduceat(some[self._flat], np.cumsum(self._counts) - self._counts, dtype=np.int64)
