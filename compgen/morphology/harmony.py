"""StemCorrupt that keeps vowel harmony, without rules written by hand; not in the paper.

StemCorrupt breaks what reaches from stem to affix: vowel harmony, which the paper finds to cost Turkish and Finnish
what augmentation gains (sections 5.1 and 7). Here many more samples are made than are asked for, and those are kept
whose vowels go together as those of the few words that there are, affixes included. Which characters are vowels is
found in the same words (Sukhotin's method).

A sample is weighed against those of the same training example with as many changed characters: else samples that
changed little would push out the others, and with them what StemCorrupt is for. For the same reason it is weighed by
how its vowels depend on each other, not by how probable a word it is: words of frequent letters, or of few vowels,
are more probable, and teach less.
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
    """The characters that are vowels, by Sukhotin's method: vowels stand beside consonants more than beside vowels.

    Again and again the character that most stands beside consonants is taken for a vowel, and whatever stands beside it
    becomes less likely to be one. Blanks are neither.
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
    """How the vowels of words depend on the vowel before them, consonants between them or not.

    The pointwise mutual information of vowels that follow one another: ln P(v | u) / P(v). After a vowel u, P(v | u) is
    estimated from the known words as if, besides what was seen, one vowel drawn from P had followed it.
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
        """Each vowel that another follows, that other, and in which word."""
        tiers = [self._tier(word) for word in words]
        first, second = (np.concatenate([tier[part] for tier in tiers]) for part in (slice(-1), slice(1, None)))
        return first, second, np.repeat(np.arange(len(tiers)), [max(len(tier) - 1, 0) for tier in tiers])

    def agreement(self, words: Sequence[Clusters]) -> Floats:
        """How well the vowels of each word go together: the sum over its pairs of neighbours, 0 if it has none (N)."""
        first, second, word = self._bigrams(words)
        total: Floats = np.bincount(word, self.information[first, second], minlength=len(words)).astype(np.float64)
        return total

    @classmethod
    def of(cls, dataset: Dataset) -> "Tier":
        """What the vowels of the lemmas and forms in a dataset show."""
        return cls(sorted({word for pair in dataset.pairs() for word in _lemma_and_form(*pair)}))

    def choose(self, pool: pl.DataFrame, count: int, seed: int) -> pl.DataFrame:
        """`count` of the samples in `pool`, those whose vowels go together more often than others.

        Of the candidates that have a host and a number of edits in common, as large a share is drawn as of all, without
        replacement, with weights of e to the power of the agreement of lemma and form.
        """
        if not count:
            return pool
        pairs = zip(pool["source"].to_list(), pool["target"].to_list(), strict=True)
        agreement = self.agreement([word for pair in pairs for word in _lemma_and_form(*pair)])
        # The largest sums of log-weight and Gumbel noise are a draw without replacement.
        noise = stream(Purpose.HARMONY, seed).gumbel(size=len(pool))
        ranked = pool.with_columns(score=pl.Series(agreement[::2] + agreement[1::2] + noise)).with_row_index()
        rank = pl.col("score").rank("ordinal", descending=True).over("host", "edits")
        of_group = pl.len().over("host", "edits")
        # All groups are cut at the same share of their ranks.
        chosen = ranked.with_columns(share=(rank - 0.5) / of_group).sort("share", "index").head(count)
        return chosen.sort("index").drop("index", "score", "share")


def _lemma_and_form(source: Sequence[str], target: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return clusters(split_tags(source)[0]), clusters(target)
