"""Alignment of lemma and form, and the stem that they share."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.errors import DataError, UserError
from compgen.morphology.alignment import NONE, Aligned, Word, align, clusters, words


def shown(lemma, form, shortest=3):
    """Lemma and form with brackets about each cluster of the stem."""
    (word,) = words(Dataset.from_pairs([inflection((lemma, form, ("V",)))]))
    aligned = Aligned.of([word], shortest)
    sides = ((word.lemma, aligned.in_lemma[0]), (word.form, aligned.in_form[0]))
    return tuple("".join(f"[{c}]" if stem else c for c, stem in zip(*side, strict=False)) for side in sides)


def test_the_papers_example():
    assert shown("παρκάμπτω", "παρέκαμπτες") == ("[π][α][ρ]κά[μ][π][τ]ω", "[π][α][ρ]έκα[μ][π][τ]ες")
    assert shown("παρκάμπτω", "παρέκαμπτες", 1) == ("[π][α][ρ][κ]ά[μ][π][τ]ω", "[π][α][ρ]έ[κ]α[μ][π][τ]ες")
    assert shown("παρκάμπτω", "παρέκαμπτες", 4) == ("παρκάμπτω", "παρέκαμπτες")


def test_a_letter_and_its_marks_are_one():
    assert clusters("yidlą́") == ("y", "i", "d", "l", "ą́")
    assert clusters("কাটা") == ("কা", "টা")
    assert shown("yidlą́", "joodlą́ą́ʼ") == ("yi[d][l][ą́]", "joo[d][l][ą́]ą́ʼ")
    # Code points in common would be dlą, which leaves an accent behind.
    assert shown("yidlą́", "joodlą") == ("yidlą́", "joodlą")
    # Two letters with their signs are four code points, which is what the length of a stretch counts.
    assert shown("কাটানো", "কাটাল", 4) == ("[কা][টা]নো", "[কা][টা]ল")
    assert shown("কাটানো", "কাটাল", 5) == ("কাটানো", "কাটাল")


def test_of_equally_short_alignments_few_and_long_stretches_then_late_gaps():
    # Two insertions: a stretch of three beside one of two, not torn apart in any other way.
    assert shown("ababa", "abababa", 1) == ("[a][b][a][b][a]", "[a][b][a][b][a]ba")
    assert shown("aab", "ab", 1) == ("a[a][b]", "[a][b]")
    assert shown("daa", "da", 1) == ("[d][a]a", "[d][a]")
    assert shown("da", "daa", 1) == ("[d][a]", "[d][a]a")
    assert shown("kana", "kanna") == ("[k][a][n]a", "[k][a][n]na")
    assert shown("hatta", "hata") == ("[h][a][t]ta", "[h][a][t]a")


def test_a_blank_ends_a_stretch():
    assert shown("devam et", "devam etti") == ("[d][e][v][a][m]␣et", "[d][e][v][a][m]␣etti")
    assert shown("ab cd", "ab cdx") == ("ab␣cd", "ab␣cdx")


texts = st.lists(st.text("abc", min_size=1, max_size=7).map(tuple), min_size=2, max_size=12)


def numbers(sequences):
    rows = np.full((len(sequences), max(map(len, sequences))), NONE)
    for row, sequence in enumerate(sequences):
        rows[row, : len(sequence)] = ["abc".index(letter) for letter in sequence]
    return rows


def edits_and_stretches(lemma, form, partner):
    """What an alignment costs: between aligned places, the longer of the two gaps; and how often matches begin."""
    places = [(i, j) for i, j in enumerate(partner[: len(lemma)]) if j != NONE]
    corners = [(-1, -1), *places, (len(lemma), len(form))]
    gaps = [(b[0] - a[0] - 1, b[1] - a[1] - 1) for a, b in pairwise(corners)]
    begins = sum((i - 1, j - 1) not in places for i, j in places)
    return sum(map(max, gaps)), begins, -len(places)


def every_alignment(lemma, form):
    """All ways to pair equal clusters in order, as lists of partners."""
    if not lemma:
        return [[]]
    found = [[NONE, *rest] for rest in every_alignment(lemma[1:], form)]
    for j, letter in enumerate(form):
        if letter == lemma[0]:
            rest = every_alignment(lemma[1:], form[j + 1 :])
            found += [[j, *(k if k == NONE else k + j + 1 for k in partners)] for partners in rest]
    return found


@given(texts)
@example([tuple("aaab"), tuple("abc")])  # two equal of one stretch and three gaps, or one equal and other edits
def test_alignments_are_the_best_there_are(sequences):
    lemmas, forms = sequences[: len(sequences) // 2], sequences[len(sequences) // 2 : len(sequences) // 2 * 2]
    found = align(numbers(lemmas), numbers(forms))
    for lemma, form, partner in zip(lemmas, forms, found.tolist(), strict=True):
        cost = edits_and_stretches(lemma, form, partner)
        assert cost == min(edits_and_stretches(lemma, form, other) for other in every_alignment(lemma, form))
        assert cost[0] == Levenshtein.distance(lemma, form)
        assert all(j == NONE or lemma[i] == form[j] for i, j in enumerate(partner[: len(lemma)]))
        assert all(j == NONE for j in partner[len(lemma) :])


@given(st.text("abc", min_size=1, max_size=7), st.integers(0, 6))
def test_a_doubled_letter_stands_alone_as_late_as_it_may(lemma, place):
    lemma, place = tuple(lemma), place % len(lemma)
    form = lemma[: place + 1] + lemma[place:]
    (found,) = align(numbers([lemma]), numbers([form])).tolist()
    every = every_alignment(lemma, form)
    least = min(edits_and_stretches(lemma, form, other) for other in every)
    # What stands alone is a place of the form; the later it is, the smaller are the partners behind it.
    assert found == min(other for other in every if edits_and_stretches(lemma, form, other) == least)


@given(texts)
def test_an_alignment_does_not_depend_on_the_others(sequences):
    lemmas, forms = numbers(sequences), numbers(sequences[::-1])
    alone = [align(lemmas[row : row + 1], forms[row : row + 1])[0] for row in range(len(lemmas))]
    assert (align(lemmas, forms) == alone).all()


def test_many_pairs_are_aligned_in_parts(monkeypatch):
    lemmas, forms = numbers([("a", "b"), ("c",), ("b", "b")]), numbers([("b",), ("c", "c"), ("b", "b")])
    whole = align(lemmas, forms)
    monkeypatch.setattr("compgen.morphology.alignment._CELLS", 1)
    assert (align(lemmas, forms) == whole).all()
    assert align(lemmas[:0], forms[:0]).shape == (0, 2)


def test_long_words_are_aligned_like_short_ones():
    lemma = tuple(np.random.default_rng(0).choice(list("abc"), 600).tolist())
    form = lemma[:300] + lemma[310:]
    (partner,) = align(numbers([lemma]), numbers([form])).tolist()
    assert edits_and_stretches(lemma, form, partner) == (10, 2, -590)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((["V"], ["a"]), "example 2: found the source 'V', expected the letters of a lemma and tags"),
        ((["a", "b"], ["a"]), "example 2: found the source 'a b', expected the letters of a lemma and tags"),
        ((["a", "V"], []), "example 2: found an empty form of 'a'"),
        ((["a", "V", "b"], ["a"]), "example 2: found 'b' behind a tag"),
        ((["ab", "V"], ["a"]), "example 2: found 'ab' in a lemma or form, expected tokens of one letter each"),
        ((["a", "V"], ["a", "V"]), "example 2: found 'V' in a lemma or form"),
    ],
)
def test_what_is_no_inflection_is_refused(pair, message):
    with pytest.raises(DataError, match=message):
        words(Dataset.from_pairs([(["a", "V"], ["b"]), pair]))


def test_a_stretch_has_a_length():
    with pytest.raises(UserError, match="found 0, expected 1 code point or more"):
        Aligned.of([Word(("a",), ("a",), ("V",))], 0)
