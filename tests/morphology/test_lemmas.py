from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection, split_tags
from compgen.errors import DataError
from compgen.morphology.lemmas import by_lemma


def paradigms(lemmas, forms=4):
    pairs = [inflection((lemma, lemma + "x" * form, ("N", str(form)))) for lemma in lemmas for form in range(forms)]
    return Dataset.from_pairs(pairs)


@given(st.integers(0, 100), st.lists(st.text("abcd", min_size=1), unique=True, min_size=12, max_size=60))
def test_no_lemma_is_in_two_parts(seed, lemmas):
    made = by_lemma(paradigms(lemmas), train=0.5, dev=0.25, seed=seed)
    found = [{"".join(split_tags(source)[0]) for source, _ in made.split(part).pairs()} for part in made.splits]
    assert sum(map(len, found)) == len(set().union(*found)) == len(lemmas)
    assert abs(made.splits["train"] - len(made) / 2) <= 4


def test_shares_are_those_that_are_meant():
    assert by_lemma(paradigms("abcdefghij"), train=0.1, dev=0.2).splits == {
        "train": 4,
        "dev": 8,
        "test": 28,
    }


def test_lemmas_are_drawn_by_the_seed_and_count_by_their_forms():
    data = paradigms("abcdefghij") + paradigms("k", forms=20)
    made = [by_lemma(data, 0.5, 0, seed) for seed in range(9)]
    assert by_lemma(data, 0.5, 0, 3) == made[3] and len({str(one.frame["split"].to_list()) for one in made}) > 4
    for one in made:
        held = Counter("".join(split_tags(source)[0]) for source, _ in one.split("train").pairs())
        assert 30 <= held.total() < 30 + max(held.values())  # of 60


def test_lemmas_may_have_capitals():
    words = [inflection((lemma, f"{lemma}s", ("N", "PL"))) for lemma in ("LKW", "Haus", "haus")]
    assert by_lemma(Dataset.from_pairs(words), 0.3, 0.3).splits == {"train": 1, "dev": 1, "test": 1}


def test_what_leaves_a_part_empty_is_refused():
    with pytest.raises(DataError, match="leave nothing to test on"):
        by_lemma(paradigms("abc"), 0.9, 0.1)
    with pytest.raises(DataError, match="found the source 'a x', expected the letters of a lemma and tags"):
        by_lemma(Dataset.from_pairs([(["a", "x"], ["a", "N"])]))
    with pytest.raises(DataError, match=r"1 lemmas are too few for shares of .* give more, or other shares"):
        by_lemma(paradigms("a"))
