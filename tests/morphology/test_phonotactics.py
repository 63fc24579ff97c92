"""Samples that a language could have: on words of a made-up language with vowel harmony, and on Turkish."""

import numpy as np
import pytest

from compgen.data.examples import Dataset
from compgen.errors import ExhaustedError, UserError
from compgen.morphology.phonotactics import PhonotacticStemCorrupt, Tier, log_probs, vowels
from compgen.morphology.stemcorrupt import StemCorrupt

FRONT = ("ketil", "pemik", "neksi", "timer", "sipen", "dikte", "gerin", "fenip")
BACK = ("katol", "pomak", "naska", "tomar", "sapon", "dokta", "garon", "fonap")
NEITHER = {**dict.fromkeys("ei", "front"), **dict.fromkeys("ao", "back")}


def words() -> Dataset:
    """Stems of front or of back vowels, with an affix in harmony."""
    return Dataset.from_pairs(
        ([*stem, "N", "PL"], [*stem, *("le" if stem in FRONT else "la")]) for stem in FRONT + BACK
    )


def out_of_harmony(dataset: Dataset) -> float:
    """The share of forms with both kinds of vowels."""
    kinds = [{NEITHER[letter] for letter in form if letter in NEITHER} for _, form in dataset.pairs()]
    return float(np.mean([len(kind) > 1 for kind in kinds]))


def test_sukhotin_finds_vowels():
    assert vowels([*FRONT, *BACK]) == set("eiao")
    assert vowels([]) == set() == vowels(["a", "␣"])


def test_a_tier_counts_bigrams_of_vowels():
    """Of ba, bab and tad: after a beginning a, after a the end, each three times of three; and once more each."""
    tier = Tier(["ba", "bab", "tad"])
    assert list(tier.number) == ["a"]
    seen, unseen = np.log(4 / 5), np.log(1 / 5)
    found = tier.log_probs(["ba", "tttat", "b", "aa"])
    np.testing.assert_allclose(found, [2 * seen, 2 * seen, unseen, 2 * seen + unseen])


@pytest.mark.usefixtures("kenlm")
def test_samples_keep_to_harmony():
    corrupt = StemCorrupt(theta=0.9)
    data = words()
    assert out_of_harmony(data) == 0
    augmenter = PhonotacticStemCorrupt(corrupt, 16).fit(data)
    plain, chosen = corrupt.sample(300, 1), augmenter.sample(300, 1)
    assert out_of_harmony(plain) > 0.3
    assert out_of_harmony(chosen) < 0.8 * out_of_harmony(plain)
    assert chosen == augmenter.sample(300, 1) != augmenter.sample(300, 2)
    assert len(chosen) == 300 == len(set(map(str, chosen.pairs())))
    assert chosen.frame["gold"].n_unique() == 16


@pytest.mark.usefixtures("kenlm")
def test_samples_are_not_those_that_change_little():
    """Candidates are weighed against those with as many changed characters, so that a like share of each is chosen."""
    corrupt = StemCorrupt(theta=0.5)
    chosen = PhonotacticStemCorrupt(corrupt, 8).fit(words()).sample(400, 1).frame
    among = corrupt.sample(3200, 1).frame
    for edits in (1, 2, 3, 4):
        share = (chosen["edits"] == edits).sum() / (among["edits"] == edits).sum()
        assert share == pytest.approx(1 / 8, abs=0.025)


@pytest.mark.usefixtures("kenlm")
def test_known_words_are_more_probable_than_their_letters_shuffled():
    known = ["".join(form) for _, form in words().pairs()]
    found = log_probs([*known, *(word[::-1] for word in known)], known)
    assert (found[:16] > found[16:]).all()


def test_what_cannot_be():
    with pytest.raises(UserError, match="expected 2 or more"):
        PhonotacticStemCorrupt(StemCorrupt(), 1)
    with pytest.raises(UserError, match="fit the augmenter"):
        PhonotacticStemCorrupt(StemCorrupt()).sample(1)
    few = Dataset.from_pairs([([*"aba", "N"], [*"aba"])])
    with pytest.raises(ExhaustedError, match="fewer candidates than 16"):
        PhonotacticStemCorrupt(StemCorrupt(), 16).fit(few).sample(5)
