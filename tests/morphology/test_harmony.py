"""Samples in harmony, on words of a made-up language."""

import numpy as np
import polars as pl
import pytest

from compgen.data.examples import Dataset
from compgen.errors import ExhaustedError, UserError
from compgen.morphology.harmony import Tier, vowels
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
    assert (vowels(["abba"]), vowels(["dub"])) == (
        {"a"},
        {"u"},
    )  # a double letter is not beside another; sides count alike


def test_agreement_is_the_information_that_vowels_have_of_the_next():
    """Three vowels of six are a. After a, a came once and e never; one more is divided as vowels are in all."""
    tier = Tier(["bata", "tab", "petek", "deb"])
    assert sorted(tier.number) == ["a", "e"]
    same, other = np.log((1 + 1 / 2) / 2 / (1 / 2)), np.log(1 / 2 / 2 / (1 / 2))
    found = tier.agreement(["bata", "baeb", "tttat", "b", "tapapet"])
    np.testing.assert_allclose(found, [same, other, 0, 0, same + other])


def test_information_is_of_the_next_vowel_not_of_the_one_before():
    for words in (["bade", "bade"], ["bade", "bada"]):
        np.testing.assert_allclose(Tier(words).agreement(["bade", "beda"]), [np.log(5 / 3), 0], atol=1e-12)


def test_vowels_without_a_pattern_leave_samples_alone():
    """Where each vowel follows each alike, agreement says nothing."""
    tier = Tier(["baba", "babe", "beba", "bebe"])
    np.testing.assert_allclose(tier.agreement(["dadede", "dededa", "dada"]), 0, atol=1e-12)
    assert Tier(["b", "d"]).agreement(["ba", "bb"]).tolist() == [0, 0]  # no vowels are found


def test_samples_keep_to_harmony():
    data = words()
    assert out_of_harmony(data) == 0
    corrupt, augmenter = (StemCorrupt(theta=0.9, candidates=candidates).fit(data) for candidates in (1, 16))
    plain, chosen = corrupt.sample(300, 1), augmenter.sample(300, 1)
    assert out_of_harmony(plain) > 0.3
    assert out_of_harmony(chosen) < 0.4 * out_of_harmony(plain)
    assert chosen == augmenter.sample(300, 1) != augmenter.sample(300, 2)
    assert len(chosen) == 300 == len(set(map(str, chosen.pairs())))
    assert chosen.frame["host"].n_unique() == 16


def test_samples_are_not_those_that_change_little():
    """Candidates are weighed against those with as many changed characters, so that a like share of each is chosen."""
    chosen = StemCorrupt(candidates=8).fit(words()).sample(400, 1).frame
    among = StemCorrupt().fit(words()).sample(3200, 1).frame
    for edits in (1, 2, 3, 4):
        share = (chosen["edits"] == edits).sum() / (among["edits"] == edits).sum()
        assert share == pytest.approx(1 / 8, abs=0.025)


def test_groups_of_one_are_drawn_as_often_as_others():
    pool = pl.DataFrame({"host": range(400), "edits": 1, "source": [["a", "N"]] * 400, "target": [["a"]] * 400})
    pool = pl.concat([pool, pool.with_columns(host=pl.lit(400, pl.Int64))])  # and one large group
    tier = Tier.of(words())
    drawn = [(tier.choose(pool, 200, seed)["host"] < 400).sum() for seed in range(20)]
    assert np.mean(drawn) == pytest.approx(100, abs=8)  # a standard deviation of the mean is about 2
    assert len(set(drawn)) > 1


def test_what_cannot_be():
    with pytest.raises(UserError, match="candidates: found 0"):
        StemCorrupt(candidates=0)
    with pytest.raises(UserError, match="fit the augmenter"):
        StemCorrupt(candidates=16).sample(1)
    few = Dataset.from_pairs([([*"aba", "N"], [*"aba"])])
    with pytest.raises(ExhaustedError, match="fewer candidates than 16"):
        StemCorrupt(candidates=16).fit(few).sample(5)


def test_there_may_be_no_samples_and_numbers_have_their_range():
    augmenter = StemCorrupt(candidates=4).fit(words())
    assert len(augmenter.sample(0)) == 0
    for count, seed in ((-1, 0), (1, -1)):
        with pytest.raises(UserError):
            augmenter.sample(count, seed)
