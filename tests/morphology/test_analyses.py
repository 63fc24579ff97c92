"""Dependence of stems and affixes, tags and vowel harmony, of attested and augmented examples."""

import math

import numpy as np
import polars as pl
import pytest

from compgen.data.catalog import load
from compgen.data.downloads import MissingFileError
from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.errors import DataError, UserError
from compgen.morphology.analyses import (
    Dependence,
    Harmony,
    commonest_tags,
    correlations,
    dependence,
    harmony,
    parts,
    stems,
)
from compgen.morphology.stemcorrupt import StemCorrupt


def dataset(*examples):
    return Dataset.from_pairs(inflection(example) for example in examples)


def test_an_example_falls_into_its_parts():
    found = parts(
        dataset(("παρκάμπτω", "παρέκαμπτες", ("V", "2")), ("ir", "voy", ("V",)), ("dormir", "dormir", ("V",)))
    )
    assert found.columns == ["stem", "last", "lemma affix", "form affix", "suffix", "tags"]
    assert found.rows() == [
        ("παρ~μπτ", "τ", "~κά~ω", "~έκα~ες", "ες", "V;2"),
        ("", "", "ir", "voy", "voy", "V"),
        ("dormir", "r", "~", "~", "", "V"),
    ]
    (navajo,) = parts(dataset(("yidlą́", "joodlą́ą́ʼ", ("V",)))).rows()
    assert navajo[:5] == ("dlą́", "ą́", "yi~", "joo~ą́ʼ", "ą́ʼ")


def test_stretches_that_touch_in_one_word_are_two():
    (found,) = parts(dataset(("abcdef", "abcxdef", ("V",)))).rows()
    assert found[:5] == ("abc~def", "f", "~~", "~x~", "")


def test_dependence_of_what_is_known_in_closed_form():
    same = dependence(list("ab") * 500, list("xy") * 500)
    assert same.bits == pytest.approx(1) and same.adjusted == pytest.approx(1) and same.chance < 0.01
    none = dependence(list("aabb") * 250, list("xyxy") * 250)
    assert none.bits == pytest.approx(0, abs=1e-12) and none.adjusted == pytest.approx(0, abs=0.01)
    # A symmetric channel that errs one time in ten: 1 - H(0.1) bits.
    noisy = dependence(["a"] * 500 + ["b"] * 500, [*"x" * 450, *"y" * 50, *"y" * 450, *"x" * 50])
    assert noisy.bits == pytest.approx(1 + 0.1 * math.log2(0.1) + 0.9 * math.log2(0.9))


def test_values_that_occur_once_say_nothing():
    found = dependence([str(number) for number in range(100)], ["a", "b"] * 50)
    assert found == Dependence(pytest.approx(1), pytest.approx(1), None)
    assert dependence(["a"] * 9, list("xyzxyzxyz")) == Dependence(0, pytest.approx(0), None)


def test_a_small_sample_of_independent_variables_is_adjusted_to_nothing():
    random = np.random.default_rng(0)
    found = [dependence(*random.choice(list("abcdefgh"), (2, 200)).tolist()) for _ in range(40)]
    assert np.mean([each.bits for each in found]) > 0.1
    assert abs(np.mean([each.adjusted for each in found])) < 0.01


def test_dependence_needs_as_many_of_both():
    with pytest.raises(UserError, match="dependence of 1 and 2 observations"):
        dependence(["a"], ["b", "c"])
    with pytest.raises(UserError, match="and some"):
        dependence([], [])


@pytest.mark.parametrize(
    ("language", "lemma", "form", "expected"),
    [
        ("turkish", "dalın", "dalınlar", (0, 1)),
        ("turkish", "dalın", "dalınler", (1, 1)),
        ("turkish", "sözcük", "sözcükler", (0, 1)),
        ("turkish", "kitap", "kitapları değil", (0, 1)),
        ("turkish", "kitap", "kitapleri değil", (1, 1)),
        ("turkish", "kitap", "kitap değil", (0, 0)),
        ("turkish", "kitep", "kitepler", (0, 1)),  # the last vowel counts
        ("turkish", "krş", "krşlar", (0, 0)),
        ("finnish", "talo", "talossa", (0, 1)),
        ("finnish", "talo", "talossä", (1, 1)),
        ("finnish", "kylä", "kylässä", (0, 1)),
        ("finnish", "tuoli", "tuolissa", (0, 1)),  # i is neutral
        ("finnish", "tuoli", "tuolille", (0, 0)),
        ("finnish", "kieli", "kielillä", (0, 0)),
    ],
)
def test_vowels_in_and_out_of_harmony(language, lemma, form, expected):
    assert harmony(parts(dataset((lemma, form, ("N",)))), language) == Harmony(*expected)


def test_harmony_of_other_languages_is_not_known():
    with pytest.raises(UserError, match="vowel harmony of 'spanish': expected turkish or finnish"):
        harmony(parts(dataset(("hablar", "hablas", ("V",)))), "spanish")


def test_the_commonest_tags():
    found = parts(dataset(("a", "a", ("V", "2")), ("b", "b", ("N",)), ("c", "c", ("V", "2")), ("d", "d", ("V",))))
    assert commonest_tags(found) == ("V;2", 0.5)
    assert commonest_tags(found[1:]) == ("N", 1 / 3)


def test_losses_go_with_edits():
    samples = StemCorrupt().fit(dataset(("hablar", "hablas", ("V",)), ("vivirse", "vivires", ("V",)))).sample(200)
    losses = 3 - 2.0 * samples.frame["edits"].alias("loss")
    found = correlations(Dataset(samples.frame.with_columns(losses)), "loss")
    assert found["edits"] == pytest.approx(-1)
    assert set(found) == {"edits", "stem length", "form length"} and abs(found["form length"]) < 0.7
    for same in (1.0, 0.3):  # the standard deviation of 200 times 0.3 is rounded to more than 0
        constant = correlations(Dataset(samples.frame.with_columns(pl.lit(same).alias("loss"))), "loss")
        assert constant["edits"] is None
    with pytest.raises(DataError, match="a number in the column 'loss'"):
        correlations(samples, "loss")
    for bad in ("1.0", float("nan"), None):
        with pytest.raises(DataError, match="a number in the column 'loss'"):
            correlations(Dataset(samples.frame.with_columns(pl.lit(bad).alias("loss"))), "loss")


@pytest.mark.parametrize(("column", "losses"), [("stem length", [4, 5, 6]), ("form length", [7, 5, 8])])
def test_losses_go_with_lengths_of_stems_and_forms(column, losses):
    frame = dataset(("abcd", "abcdxyz", ("V",)), ("abcde", "abcde", ("V",)), ("abcdefxyz", "abcdefgh", ("V",))).frame
    samples = Dataset(frame.with_columns(edits=pl.Series([1, 2, 1]), loss=pl.Series(losses)))
    assert correlations(samples, "loss")[column] == pytest.approx(1)


def test_stemcorrupt_makes_stems_and_affixes_independent():
    # The last letter of the stem determines the affix.
    letters = "bcdfghklmn"
    examples = [
        (a + b + end, a + b + end + affix, ("N",)) for a in letters for b in letters for end, affix in ("pu", "ti")
    ]
    data = dataset(*examples)
    found = stems(data, StemCorrupt(theta=1).fit(data).sample(2000), sizes=(0, 200, 2000, 10_000))
    assert [each.augmented for each in found] == [0, 200, 2000]
    assert [each.examples for each in found] == [200, 400, 2200]
    adjusted = [each.dependences["last", "form affix"].adjusted for each in found]
    assert adjusted[0] == pytest.approx(1) and adjusted[0] > adjusted[1] > adjusted[2] and adjusted[2] < 0.05
    assert found[0].stems == 200 and found[0].dependences["stem", "form affix"].adjusted is None
    assert (found[0].tags, found[0].tags_share, found[0].harmony) == ("N", 1, None)


def test_examples_without_a_stem_are_counted_and_left_out():
    (found,) = stems(dataset(("ir", "voy", ("V",)), ("hablar", "hablas", ("V",))), sizes=(0,))
    assert (found.stemless, found.stems, found.dependences["stem", "tags"].bits) == (1, 1, 0)
    (none,) = stems(dataset(("ir", "voy", ("V",))))
    assert none.dependences == {}
    with pytest.raises(DataError, match="found no example"):
        stems(Dataset.from_pairs([]))
    with pytest.raises(UserError, match="a size of -1"):
        stems(dataset(("ir", "voy", ("V",))), sizes=(-1,))


def test_random_stems_break_harmony():
    try:
        data = load("sigmorphon/finnish").split("train-low")
    except MissingFileError as error:
        pytest.skip(str(error))
    attested, corrupted = stems(data, StemCorrupt(theta=1).fit(data).sample(2000), sizes=(0, 2000), language="finnish")
    assert attested.harmony.violations <= 0.1 * attested.harmony.judged
    assert corrupted.harmony.violations >= 0.3 * corrupted.harmony.judged
