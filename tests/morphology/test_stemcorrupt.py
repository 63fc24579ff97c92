"""StemCorrupt: characters of the stem replaced, the same in lemma and form, and nothing else."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compgen.data.catalog import load
from compgen.data.downloads import MissingFileError
from compgen.data.examples import Dataset
from compgen.data.unimorph import BLANK, inflection
from compgen.errors import DataError, ExhaustedError, UserError
from compgen.morphology.alignment import Aligned, words
from compgen.morphology.stemcorrupt import BLOCK, StemCorrupt, uniform

GREEK = ("παρκάμπτω", "παρέκαμπτες", ("V", "2", "SG"))
SPANISH = [("hablar", "hablas", ("V", "2")), ("vivir", "viviste", ("V", "PST")), ("ir", "voy", ("V", "1"))]
NAVAJO = [("yidlą́", "joodlą́ą́", ("V", "4")), ("yiyą́", "jooyą́", ("V", "4"))]


def dataset(*examples):
    return Dataset.from_pairs(inflection(example) for example in examples)


def rows(made):
    return made.frame.select("source", "target", "host", "edits").rows()


def letters_of(data):
    """The distinct grapheme clusters of lemmas and forms."""
    return {cluster for word in words(data) for cluster in word.lemma + word.form}


def check(data, made, shortest=3):
    """Each sample is its training example but for clusters of the stem, which lemma and form replace alike."""
    given_words, new_words, known = words(data), words(made), set(map(str, data.pairs()))
    aligned = Aligned.of(given_words, shortest)
    assert len(set(map(str, made.pairs()))) == len(made)
    assert not known & set(map(str, made.pairs()))
    for word, host, edits in zip(new_words, made.frame["host"], made.frame["edits"], strict=True):
        old, partner = given_words[host], aligned.partner[host]
        assert word.tags == old.tags
        assert (len(word.lemma), len(word.form)) == (len(old.lemma), len(old.form))
        form, changed = list(old.form), 0
        for place, cluster in enumerate(word.lemma):
            if partner[place] >= 0:
                form[partner[place]] = cluster
                changed += cluster != old.lemma[place]
            else:
                assert cluster == old.lemma[place]
        assert word.form == tuple(form)
        assert edits == changed > 0


def test_the_papers_example():
    data = dataset(GREEK)
    made = StemCorrupt().fit(data).sample(300, seed=1)
    check(data, made)
    for source, target in made.pairs():
        assert (source[3:5], source[8:]) == (["κ", "ά"], ["ω", "V", "2", "SG"])
        assert (target[3:6], target[9:]) == (["έ", "κ", "α"], ["ε", "ς"])
    assert {letter for _, target in made.pairs() for letter in target} == set("παρκάμπτωέες")


def test_a_capital_is_one_letter_of_a_stem():
    data = dataset(("Haus", "Häuser", ("N", "PL")), ("Igel", "Igels", ("N", "GEN")))
    made = StemCorrupt().fit(data).sample(100)
    check(data, made)
    assert all(words(made)) and {token for source, _ in made.pairs() for token in source} >= {"^I", "^H"}
    assert not any(token in ("^", "H") for pair in made.pairs() for side in pair for token in side)


words_of_two_scripts = st.lists(
    st.tuples(
        st.text("abcé", min_size=0, max_size=4),
        st.text("abcdeé ", min_size=3, max_size=9).map(str.strip),
        st.text("xyz", min_size=1, max_size=3),
        st.sampled_from([("N", "PL"), ("V", "PST"), ("V", "1", "SG")]),
    ).map(lambda parts: (parts[1] + "a", parts[0] + parts[1] + parts[2], parts[3])),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(words_of_two_scripts, st.integers(0, 2**64 - 1), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 3))
def test_affixes_and_tags_stay_and_stems_change_alike(examples, seed, theta, shortest):
    data = dataset(*examples)
    augmenter = StemCorrupt(theta=theta, shortest=shortest)
    try:
        made = augmenter.fit(data).sample(20, seed)
    except ExhaustedError:
        assume(False)
    assume(len(made) == 20)
    check(data, made, shortest)
    assert augmenter.examples + augmenter.dropped == len(set(map(str, data.pairs())))
    assert made.frame["split"].to_list() == ["train"] * 20


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**64 - 1), st.randoms(use_true_random=False))
def test_samples_have_addresses_and_the_order_of_rows_does_not_matter(seed, shuffler):
    data = dataset(GREEK, *SPANISH, ("hablar", "hablé", ("V", "PST")), GREEK)
    many = StemCorrupt().fit(data).sample(2 * BLOCK + 50, seed)
    assert rows(StemCorrupt().fit(data).sample(70, seed)) == rows(many)[:70]
    order = list(range(len(data)))
    shuffler.shuffle(order)
    shuffled = Dataset(data.frame[order])
    again = StemCorrupt().fit(shuffled).sample(70, seed)
    assert again.pairs() == many.pairs()[:70]
    firsts = [order.index(host) for host in many.frame["host"][:70]]
    assert shuffled.frame["source"].gather(again.frame["host"]).equals(shuffled.frame["source"].gather(firsts))
    assert rows(StemCorrupt().fit(data).sample(70, (seed + 1) % 2**64)) != rows(many)[:70]


def test_host_is_the_row_of_the_first_occurrence():
    data = dataset(("ir", "voy", ("V",)), GREEK, GREEK)
    assert set(StemCorrupt().fit(data).sample(50).frame["host"]) == {1}


def test_theta_of_one_draws_every_character_of_the_stem_from_the_alphabet():
    data = dataset(GREEK, ("τος", "τοςα", ("N",)))
    made = StemCorrupt(theta=1).fit(data).sample(20_000)
    found = zip(*(source[:3] + source[5:8] for source, _ in made.pairs() if "V" in source), strict=True)
    alphabet = letters_of(data)
    for drawn in found:
        shares = [drawn.count(letter) / len(drawn) for letter in sorted(alphabet)]
        # Five standard deviations; a letter never drawn, or the old one kept more often, is far outside.
        assert np.allclose(shares, 1 / len(alphabet), atol=5 * (1 / len(alphabet) / len(drawn)) ** 0.5)


@pytest.mark.parametrize("theta", [0.3, 0.5, 0.9])
def test_theta_is_the_probability_of_a_draw(theta):
    letters = "abcdefghijklmnopqrst"
    made = StemCorrupt(theta=theta).fit(dataset((letters, letters + "x", ("N",)))).sample(20_000)
    # Of 21 letters drawn one is that which stood there. Samples with so few edits that they are not new or distinct
    # hardly occur.
    expected = 20 * theta * 20 / 21
    assert made.frame["edits"].mean() == pytest.approx(expected, abs=0.06)


def test_examples_are_drawn_alike():
    made = StemCorrupt().fit(dataset(*[(f"{letter}dchfij", f"{letter}dchfijk", ("N",)) for letter in "abeg"]))
    counts = np.bincount(made.sample(8000).frame["host"].to_numpy())
    assert (abs(counts - 2000) < 5 * 2000**0.5).all()


def test_clusters_are_replaced_whole():
    data = dataset(*NAVAJO, ("কাটানো", "কাটানোর", ("V",)), ("ক্ষমা", "ক্ষমাকে", ("N",)))
    augmenter = StemCorrupt(theta=1, shortest=2).fit(data)
    made = augmenter.sample(500, 3)
    alphabet = letters_of(data)
    assert {"ą́", "কা", "ক্ষ"} <= alphabet
    for pair in made.pairs():
        assert all(len(token) == 1 for token in pair[1])
    assert letters_of(made) <= alphabet
    check(data, made, 2)


def test_letters_of_lemmas_alone_are_drawn_for_forms_however_many_there_are():
    # 300 letters that no form has, after all those of forms in the order of letters.
    data = dataset(*[(f"abc{chr(0x4E00 + number)}", f"abc{'de'[number % 2]}", ("N",)) for number in range(300)])
    made = StemCorrupt(theta=1).fit(data).sample(2000)
    check(data, made)
    assert len(letters_of(made)) > 300


def test_samples_that_are_spelled_alike_count_once():
    # A consonant that ends in a virama and another are spelled as the conjunct of both is.
    text = "কক্ ক্ষষক"
    data = dataset((text, text, ("N",)))
    alphabet = letters_of(data) - {BLANK}
    assert alphabet == {"ক", "ক্", "ষ", "ক্ষ"}
    spelled = {"".join([*drawn[:2], BLANK, *drawn[2:]]) for drawn in product(alphabet, repeat=5)} - {"কক্␣ক্ষষক"}
    assert len(spelled) < 4**5 - 1
    augmenter = StemCorrupt(theta=1, shortest=1).fit(data)
    assert {"".join(form) for _, form in augmenter.sample(len(spelled)).pairs()} == spelled
    assert len(augmenter.sample(len(spelled) + 1)) == len(spelled)
    assert "and no more in" in augmenter.report()["why"]


def test_blanks_are_neither_drawn_nor_replaced():
    data = dataset(("devam etmek", "devam etmek mi", ("V",)))
    made = StemCorrupt(theta=1).fit(data).sample(500)
    assert all(
        [place for place, token in enumerate(source) if token == BLANK] == [5] for source in made.frame["source"]
    )
    assert all(
        [place for place, token in enumerate(form) if token == BLANK] == [5, 11] for form in made.frame["target"]
    )


def test_examples_without_a_stem_are_dropped_or_kept_as_they_are():
    data = dataset(*SPANISH)
    dropping, keeping = StemCorrupt().fit(data), StemCorrupt(stemless="keep").fit(data)
    assert (dropping.examples, dropping.dropped) == (2, 1)
    assert (keeping.examples, keeping.dropped) == (3, 0)
    assert 2 not in dropping.sample(500).frame["host"]
    made = keeping.sample(500)
    kept = [row for row in rows(made) if row[2] == 2]
    assert kept == [(*data.pairs()[2], 2, 0)]
    check(data, Dataset(made.frame.filter(made.frame["host"] != 2)))


def test_all_there_are_can_be_had_and_no_more():
    data = dataset(("aab", "aab", ("N",)))
    augmenter = StemCorrupt().fit(data)
    assert sorted("".join(target) for _, target in augmenter.sample(7).pairs()) == sorted(
        {a + b + c for a in "ab" for b in "ab" for c in "ab"} - {"aab"}
    )
    assert len(augmenter.sample(8)) == len(augmenter.sample()) == 7
    why = augmenter.report()["why"]
    assert "stems of 3 to 3 characters and an alphabet of 2 give at most 7 new ones" in why
    # Two examples that become each other: 8 strings, of which two are known.
    both = StemCorrupt().fit(dataset(("aab", "aab", ("N",)), ("aba", "aba", ("N",))))
    assert len(both.sample(6)) == 6
    assert len(both.sample(7)) == 6
    assert re.search(r"found 6 of 7 new examples and no more in 1\d\d,\d\d\d draws", both.report()["why"])
    assert both.report()["why"].endswith(" of 2: there may be no others, or a higher theta than 0.5 finds them")
    most = StemCorrupt(theta=1).fit(dataset(("aab", "aab", ("N",)), ("aba", "aba", ("N",))))
    assert len(most.sample(7)) == 6 and most.report()["why"].endswith(" of 2: there may be no others")


def test_a_theta_that_changes_next_to_nothing_gives_up_before_memory_does():
    many = dataset(*((word, word, ("N",)) for word in list(map("".join, product("abcdefgh", repeat=4)))[::9]))
    with pytest.raises(ExhaustedError, match=r"too rare for 200,000; .*, or a higher theta than 1e-05 finds them"):
        StemCorrupt(theta=1e-5, shortest=1).fit(many).sample(200_000)


def test_none_is_a_dataset_too():
    made = StemCorrupt().fit(dataset(GREEK)).sample(0)
    assert len(made) == 0
    assert made.frame.schema == StemCorrupt().fit(dataset(GREEK)).sample(1).frame.schema


def test_replacements_are_uniform_up_to_the_ends():
    random = np.array([0, 2**32 - 1, 2**31], dtype=np.uint64)
    assert uniform(random, np.array([5, 6, 7], dtype=np.int32)).tolist() == [5, 7, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"theta": 0}, "theta: found 0, expected a number greater than 0"),
        ({"theta": 1.5}, "theta: found 1.5, expected a number less than or equal to 1"),
        ({"theta": float("nan")}, "theta: found nan, expected"),
        ({"shortest": 0}, "shortest: found 0, expected a number greater than or equal to 1"),
        ({"stemless": "maybe"}, "stemless: found 'maybe', expected 'drop' or 'keep'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        StemCorrupt(**options)


def test_bad_data_and_requests_are_refused():
    with pytest.raises(DataError, match="expected a source and a target in all examples"):
        StemCorrupt().fit(Dataset.from_pairs([(["a", "V"], ["a"]), (["a", "V"], [])]))
    with pytest.raises(DataError, match="example 1: found the source 'a b', expected the letters of a lemma and tags"):
        StemCorrupt().fit(Dataset.from_pairs([(["a", "b"], ["a"])]))
    with pytest.raises(DataError, match="written with 1 character: expected an alphabet of two or more"):
        StemCorrupt().fit(dataset(("aaa", "aaaa", ("N",))))
    with pytest.raises(ExhaustedError, match="in 1 distinct examples no 3 or more characters"):
        StemCorrupt(stemless="keep").fit(dataset(("ir", "voy", ("V",))))
    with pytest.raises(DataError, match="no example"):
        StemCorrupt().fit(Dataset.from_pairs([]))
    with pytest.raises(UserError, match="fit the augmenter"):
        StemCorrupt().sample(1)
    for count, seed in ((-1, 0), (1, -1), (1, 2**64)):
        with pytest.raises(UserError, match="expected whole numbers of 0 or more, less than"):
            StemCorrupt().fit(dataset(GREEK)).sample(count, seed)


@pytest.mark.parametrize("language", ["bengali", "navajo", "turkish"])
def test_published_words(language):
    try:
        data = load(f"sigmorphon/{language}").split("train-low")
    except MissingFileError as error:
        pytest.skip(str(error))
    augmenter = StemCorrupt().fit(data)
    check(data, augmenter.sample(1000))
    assert augmenter.examples + augmenter.dropped == 100
