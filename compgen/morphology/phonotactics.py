"""StemCorrupt that keeps to a language's sound patterns, without rules written by hand; not in the paper.

StemCorrupt makes stems that no word of the language could have, and breaks what reaches from stem to affix: vowel
harmony, which the paper finds to cost Turkish and Finnish what augmentation gains (sections 5.1 and 7). Here many more
samples are made than are asked for, and those are kept that two n-gram models of the few words that there are find
probable, affixes included: KenLM's of characters, and one of vowels alone, in which what harmonises stands side by
side. Which characters are vowels is found in the same words (Sukhotin's method).

A sample is weighed against those of the same training example with as many changed characters: else samples that
changed little, which the models know, would push out the others, and with them what StemCorrupt is for.
"""

import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.unimorph import BLANK, split_tags
from compgen.errors import ExhaustedError, UserError
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.scoring import score_all
from compgen.morphology.alignment import clusters
from compgen.morphology.stemcorrupt import StemCorrupt

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Clusters = Sequence[str]
WHOLE = Estimation(order=3, fallback=True)


def vowels(words: Iterable[Clusters]) -> set[str]:
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
    """A bigram model of the vowels of words, each bigram counted once more than it was seen.

    There are too few kinds of vowels for KenLM, which takes its discounts from counts of counts.
    """

    def __init__(self, words: Sequence[Clusters]) -> None:
        found = sorted(vowels(words))
        self.number = {name: place for place, name in enumerate(found, start=1)}  # 0 is a word's beginning and end
        counts = np.ones((len(found) + 1, len(found) + 1))
        np.add.at(counts, self._bigrams(words)[:2], 1)
        self.log_bigrams = np.log(counts / counts.sum(axis=1, keepdims=True))

    def _bigrams(self, words: Sequence[Clusters]) -> tuple[Ints, Ints, Ints]:
        """Each vowel or beginning, what follows it, and in which word."""
        tiers = [[0, *(self.number[name] for name in word if name in self.number)] for word in words]
        flat = np.array([vowel for tier in tiers for vowel in tier], dtype=np.int64)
        word = np.repeat(np.arange(len(words)), [len(tier) for tier in tiers])
        return flat, np.append(flat[1:], 0), word  # a tier's last is followed by the next one's 0, its own end

    def log_probs(self, words: Sequence[Clusters]) -> Floats:
        """Natural logarithms of how probable the vowels of words are (N)."""
        first, second, word = self._bigrams(words)
        total = np.zeros(len(words))
        np.add.at(total, word, self.log_bigrams[first, second])
        return total


def log_probs(words: Sequence[Clusters], known: Sequence[Clusters]) -> Floats:
    """Natural logarithms of how probable words are, judging by some that are known: both models together (N).

    Raises:
        UserError: KenLM's programs are not installed.
    """
    with tempfile.TemporaryDirectory(prefix="compgen-phonotactics-") as name:
        model, text = Path(name, "model.bin"), Path(name, "text")
        estimate([write_sentences(known, text)], model, WHOLE)
        scores = score_all([model], write_sentences(words, text))
    whole: Floats = np.log(10) * np.add.reduceat(scores.log10[0].astype(np.float64), scores.starts)
    return whole + Tier(known).log_probs(words)


class PhonotacticStemCorrupt:
    """`StemCorrupt` whose samples are drawn, of many, as often as they are probable words of the language."""

    def __init__(self, corrupt: StemCorrupt, candidates: int = 16) -> None:
        """An augmenter that makes so many `candidates` for each sample it gives.

        Raises:
            UserError: fewer than two candidates.
        """
        if candidates < 2:
            raise UserError(f"found {candidates} candidates for a sample, expected 2 or more to choose from")
        self.corrupt, self.candidates = corrupt, candidates
        self.words: Sequence[Clusters] = []

    def fit(self, dataset: Dataset) -> "PhonotacticStemCorrupt":
        """As `StemCorrupt.fit`, which says what it raises; the models learn from lemmas and forms."""
        self.corrupt.fit(dataset)
        pairs = dataset.unique().pairs()
        self.words = sorted({clusters(word) for pair in pairs for word in _lemma_and_form(*pair)})
        return self

    def sample(self, count: int, seed: int = 0) -> Dataset:
        """`count` new, distinct examples; columns as for `StemCorrupt.sample`.

        Of the candidates that have an example and a number of changed characters in common, as large a share is drawn
        as of all, without replacement, each as probable as the models find its lemma and its form.

        Raises:
            UserError: `fit` was not called, KenLM's programs are not installed, or a number is out of range.
            ExhaustedError: there are not as many candidates; fewer may do.
        """
        if not self.words:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        try:
            pool = self.corrupt.sample(count * self.candidates, seed)
        except ExhaustedError as error:
            raise ExhaustedError(f"{error}; or ask for fewer candidates than {self.candidates} a sample") from error
        if not count:
            return pool
        pairs = [_lemma_and_form(*pair) for pair in pool.pairs()]
        probable = log_probs([clusters(word) for pair in pairs for word in pair], self.words)
        # The largest sums of log-probability and Gumbel noise are a draw without replacement.
        noise = np.random.Generator(np.random.Philox(key=np.array([seed, 1], np.uint64))).gumbel(size=len(pool))
        ranked = pool.frame.with_columns(score=pl.Series(probable[::2] + probable[1::2] + noise)).with_row_index()
        rank = pl.col("score").rank("ordinal", descending=True).over("gold", "edits")
        of_group = pl.len().over("gold", "edits")
        # All groups are cut at the same share of their ranks.
        chosen = ranked.with_columns(share=(rank - 0.5) / of_group).sort("share", "index").head(count)
        return Dataset(chosen.sort("index").drop("index", "score", "share"))


def _lemma_and_form(source: Sequence[str], target: Sequence[str]) -> tuple[list[str], list[str]]:
    return split_tags(source)[0], list(target)
