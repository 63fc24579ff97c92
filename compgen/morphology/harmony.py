"""StemCorrupt with vowel harmony, learned from the training words; not in the paper.

StemCorrupt breaks vowel harmony, which costs Turkish and Finnish what augmentation gains (sections 5.1 and 7). Here
more candidates are made than asked for, and those kept whose vowels agree as in the training words. Sukhotin's method
finds the vowels.

A candidate competes only with those of the same training example with equally many changed characters: otherwise
samples that changed little would win. It is scored by the dependence of its vowels, not by the probability of the word,
which would prefer words of frequent letters or few vowels.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.ragged import Ints
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import BLANK, split_tags
from compgen.morphology.alignment import clusters

Floats = NDArray[np.float64]
Clusters = Sequence[str]


def vowels(words: Sequence[Clusters]) -> set[str]:
    """Find the characters that are vowels, by Sukhotin's method: vowels stand beside consonants more than vowels.

        while some score > 0: the character of highest score is a vowel; subtract 2 adjacency(vowel) from all scores

    A score begins as the number of characters beside it. Spaces are neither vowels nor consonants.
    """
    names = sorted({name for word in words for name in word} - {BLANK})
    number = {name: place for place, name in enumerate(names)}
    beside = np.zeros((len(names), len(names)))
    for word in words:
        for one, other in pairwise(word):
            if one != other and BLANK not in (one, other):
                beside[number[one], number[other]] += 1
                beside[number[other], number[one]] += 1
    score, found = beside.sum(axis=1), set[str]()
    while len(score) and score.max() > 0:
        vowel = int(score.argmax())
        found.add(names[vowel])
        score -= 2 * beside[:, vowel]
        score[vowel] = -np.inf
    return found


class Tier:
    """The pointwise mutual information of successive vowels, whatever consonants are between them: ln P(v | u) / P(v).

    P(v | u) = (count(u, v) + P(v)) / (count(u) + 1): smoothed by one vowel drawn from P.
    """

    def __init__(self, words: Sequence[Clusters]) -> None:
        self.number = {name: place for place, name in enumerate(sorted(vowels(words)))}
        size = len(self.number)
        first, second, _ = self._bigrams(words)
        seen = np.zeros((size, size))
        np.add.at(seen, (first, second), 1)
        alone = np.bincount(np.concatenate([self._tier(word) for word in words]), minlength=size)
        probs = alone / alone.sum()
        self.information = np.log((seen + probs) / (seen.sum(axis=1, keepdims=True) + 1) / probs)

    def _tier(self, word: Clusters) -> Ints:
        return np.array([self.number[name] for name in word if name in self.number], dtype=np.int64)

    def _bigrams(self, words: Sequence[Clusters]) -> tuple[Ints, Ints, Ints]:
        """Return each vowel that another follows, that other, and the number of the word."""
        tiers = [self._tier(word) for word in words]
        first, second = (np.concatenate([tier[part] for tier in tiers]) for part in (slice(-1), slice(1, None)))
        return first, second, np.repeat(np.arange(len(tiers)), [max(len(tier) - 1, 0) for tier in tiers])

    def agreement(self, words: Sequence[Clusters]) -> Floats:
        """Return the sum of the information over each word's successive vowels, (words)."""
        first, second, word = self._bigrams(words)
        total: Floats = np.bincount(word, self.information[first, second], minlength=len(words)).astype(np.float64)
        return total

    @classmethod
    def of(cls, dataset: Dataset) -> "Tier":
        """Learn from the lemmas and forms of a dataset."""
        return cls(sorted({word for pair in dataset.pairs() for word in _lemma_and_form(*pair)}))

    def choose(self, pool: pl.DataFrame, count: int, seed: int) -> pl.DataFrame:
        """Return `count` of the samples in `pool`, drawn without replacement with weights exp(agreement).

        From each group of candidates with the same host and number of edits, the same share is drawn. Where that is not
        a whole number of candidates, chance decides about the last one, so that small groups are drawn from, too.
        """
        if not count:
            return pool
        pairs = zip(pool["source"].to_list(), pool["target"].to_list(), strict=True)
        agreement = self.agreement([word for pair in pairs for word in _lemma_and_form(*pair)])
        # The largest sums of log-weight and Gumbel noise are such a draw.
        numbers = stream(Purpose.HARMONY, seed)
        scores = agreement[::2] + agreement[1::2] + numbers.gumbel(size=len(pool))
        ranked = pool.with_columns(
            score=pl.Series(scores), offset=pl.Series(numbers.random(len(pool)))
        ).with_row_index()
        rank = pl.col("score").rank("ordinal", descending=True)
        share = ((rank - pl.col("offset").first()) / pl.len()).over("host", "edits")
        chosen = ranked.with_columns(share=share).sort("share", "index").head(count)
        return chosen.sort("index").drop("index", "score", "offset", "share")


def _lemma_and_form(source: Sequence[str], target: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return clusters(split_tags(source)[0]), clusters(target)
