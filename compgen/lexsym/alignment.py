"""Which words of the source mean which symbols of the target: alignments, as counts of links."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges

Lexicon = dict[str, dict[str, int]]  # by word and symbol, how often they are linked
Pairs = Sequence[tuple[Sequence[str], Sequence[str]]]
_ROUNDS = 5  # of expectation maximisation
_NULL = 0.08  # the probability that a token is linked to none
_MOST_WORDS = 4  # candidates of a symbol


def model1(pairs: Pairs) -> Lexicon:
    """Count links that IBM Model 1 (Brown et al. 1993) finds in both directions.

    Each token is linked to the most probable token of the other side, or to none; links that both directions find
    count.
    """
    (words, source, width), (symbols, target, height) = (_numbered([pair[side] for pair in pairs]) for side in (0, 1))
    # All pairs of a source token and a target token of one example, (links): places.
    below, across = ranges(np.repeat(np.cumsum(width) - width, height), np.repeat(width, height))
    if not len(below):
        return {}
    both = _chosen(below, target, across, source, 1 / np.repeat(width, height)[below])
    both &= _chosen(across, source, below, target, 1 / np.repeat(height, width)[across])
    found: Lexicon = defaultdict(dict)
    kinds, counts = np.unique(source[across[both]] * len(symbols) + target[below[both]], return_counts=True)
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        found[words[kind // len(symbols)]][symbols[kind % len(symbols)]] = count
    return dict(found)


def _numbered(sides: Sequence[Sequence[str]]) -> tuple[list[str], Ints, Ints]:
    """The distinct tokens of sequences, sorted; the number of each token, one sequence after the other; and lengths."""
    tokens = [token for side in sides for token in side]
    names = sorted({*tokens})
    number = {token: place for place, token in enumerate(names)}
    lengths = np.array([*map(len, sides)], dtype=np.int64)
    return names, np.array([*map(number.__getitem__, tokens)], dtype=np.int64), lengths


def _chosen(place: Ints, token: Ints, origin: Ints, given: Ints, prior: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which links Model 1 chooses, for one direction: for each token, its most probable origin, unless that is none.

    for each round: p(origin o of token y) in proportion to (1 - null) prior(o) t(y | o), or null t(y | none)
                    t(y | o) = expected links of o with y / expected links of o

    Args:
        place, origin: (links) the places of the token and of its origin.
        token, given: the numbers of the tokens at these places.
        prior: (links) of each origin.
    """
    width = int(token.max()) + 1
    kinds, kind = np.unique(given[origin] * width + token[place], return_inverse=True)
    own = kinds // width
    probable, none = np.full(len(kinds), 1 / width), np.full(width, 1 / width)
    for turn in range(_ROUNDS + 1):
        linked = (1 - _NULL) * prior * probable[kind]
        unlinked = _NULL * none[token]
        if turn == _ROUNDS:
            break
        total = np.bincount(place, linked, len(token)) + unlinked
        expected = np.bincount(kind, linked / total[place])
        probable = expected / np.bincount(own, expected)[own]
        none = np.bincount(token, unlinked / total, width) / np.sum(unlinked / total)
    best = unlinked.copy()
    np.maximum.at(best, place, linked)
    links = np.flatnonzero((linked == best[place]) & (best > unlinked)[place])
    chosen = np.zeros(len(place), dtype=bool)
    chosen[links[np.unique(place[links], return_index=True)[1]]] = True  # of equal ones the first
    return chosen


def simple(pairs: Pairs) -> Lexicon:
    """The alignment of Akyürek and Andreas (2021), as coded: x may mean y if y is in all examples that have x.

    A symbol that more than four words may mean is linked to none. If just one of several such words is in all examples
    that have the symbol, the symbol is linked to this word alone. A word that is its own symbol counts one more.
    """
    with_word = Counter(word for source, _ in pairs for word in set(source))
    with_symbol = Counter(symbol for _, target in pairs for symbol in set(target))
    together = Counter(both for source, target in pairs for both in product({*source}, {*target}))
    candidates: dict[str, list[str]] = defaultdict(list)
    for (word, symbol), count in sorted(together.items()):
        if count == with_word[word]:
            candidates[symbol].append(word)
    found: Lexicon = defaultdict(dict)
    for symbol, words in candidates.items():
        sure = [word for word in words if together[word, symbol] == with_symbol[symbol]]
        for word in () if len(words) > _MOST_WORDS else sure if len(sure) == 1 else words:
            found[word][symbol] = together[word, symbol] + (word == symbol)
    return dict(found)
