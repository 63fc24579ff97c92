"""The figures of quality by hand, against plain loops, and the warnings they give."""

import itertools
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.evaluation import quality as module
from compgen.evaluation.quality import LIMITS, quality

SIDE = st.lists(st.sampled_from("abc()"), min_size=1, max_size=4)
PAIRS = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=8)
TRAIN = ("a b > f ( b )", "a b > f ( b )", "c > g ( c )", "d d > h")


def dataset(*examples):
    return Dataset.from_pairs([tuple(side.split() for side in example.split(">")) for example in examples])


def test_counts_form_and_contradictions_by_hand():
    made = dataset("a b > f ( b )", "c > h", "e > g ( e )", "e > g ( e", "e > g ( e")
    found = quality(made, dataset(*TRAIN), asked=6)
    assert (found.asked, found.made, found.distinct, found.copies) == (6, 5, 4, 1)
    assert (found.balanced, found.training_balanced) == (3 / 5, 1)
    assert found.contradicting == 1 / 5  # c > h; the copy is no contradiction
    assert (found.ambiguous, found.training_ambiguous) == (3 / 5, 0)
    assert found.derivable is None and "derivable" not in found.to_dict()
    assert (found.source.length, found.source.training_length) == (6 / 5, 5 / 3)  # of made examples, repetitions count


def test_a_template_leaves_blank_what_is_in_the_source_too():
    made = dataset("x y > f ( y )", "e > g ( e )", "e > g ( c )", "d > h", "f > f ( e )")
    found = quality(made, dataset(*TRAIN))
    assert (found.templates, found.new_templates) == (5, 2)  # g ( c ) and _ ( e )


def test_ngrams_have_the_ends_of_a_side_in_them():
    found = quality(dataset("b a > x", "q > x"), dataset("a b > x"))
    # Tokens b a q; bigrams ^b ba a$ ^q q$, of which training has none; ^ab ab$ are its trigrams.
    assert found.source.new == (1 / 3, 1.0, 1.0)
    assert found.target is not None and found.target.new == found.target.new_types == (0, 0, 0)


def test_the_divergence_is_0_for_equal_and_1_for_disjoint_tokens():
    train = dataset("a b > x")
    assert quality(train, train).source.divergence == 0
    assert quality(dataset("c c > x"), train).source.divergence == pytest.approx(1)
    half = quality(dataset("a c > x"), train).source.divergence
    assert half == pytest.approx(0.5)


def test_a_repeated_training_example_counts_once():
    made, train = dataset("a b > x", "c d > y"), dataset("a b > x", "c d e f > y")
    assert quality(made, train + dataset(*["a b > x"] * 8)) == quality(made, train)


def test_sentences_have_one_side():
    found = quality(dataset("a ( b >", "a ) >"), dataset("a b >"))
    assert found.target is None and found.contradicting == found.ambiguous == 0
    assert (found.balanced, found.training_balanced, found.new_templates) == (0, 1, 2)
    assert "target" not in " ".join(found.in_words())


def test_it_says_what_was_used():
    frame = dataset("a > x", "b > x", "c > x").frame
    made = Dataset(frame.with_columns(host=pl.Series([3, 3, 3]), prototypes=pl.Series([[1, 2], [2, 9], [1, 1]])))
    found = quality(made, dataset(*TRAIN))
    assert found.used == {"host": 1, "prototypes": 3}
    assert "made from: 1 host, 3 prototypes" in found.in_words()[-1]


def test_derivable_targets_are_counted_once():
    made, train = dataset("a > x", "b > x", "c > y"), dataset("a > x")
    found = quality(made, train, derives=lambda targets: [target == ["x"] for target in targets])
    assert (found.derivable, found.training_derivable) == (0.5, 1.0)
    assert "derives 50.0%" in found.warnings()[1]


def test_derivable_targets_are_drawn_from_all(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 20)
    made = dataset(*[f"s > {number}" for number in range(40)])
    found = quality(made, made, derives=lambda targets: [int(number) < 20 for (number,) in targets])
    assert 0 < found.derivable < 1


def test_good_examples_have_no_warnings_and_each_limit_has_one():
    good = quality(dataset("b > g ( b )", "d > h"), dataset(*TRAIN), asked=2)
    assert good.warnings() == []
    for wrong, words in (
        ({"asked": 3}, "2 of 3 examples: ask for fewer"),
        ({"balanced": 0.9 - LIMITS["unbalanced"]}, "brackets are balanced in 80.0%"),
        ({"contradicting": 0.03}, "3.0% of the examples have a source with another target in training"),
        ({"ambiguous": 0.03}, "keep one target of each source (`cgen check FILE --fix OUT`; for samples,"),
        ({"made": 5}, "2 of 5 examples are distinct: ask for fewer, or drop repetitions (`cgen check FILE --fix OUT"),
        ({"source": replace(good.source, new=(0.6, 0.6, 0.6))}, "60% of the tokens of a side are in no training"),
        ({"target": replace(good.target, new=(0.7, 0.7, 0.7))}, "70% of the tokens of a side are in no training"),
    ):
        (warning,) = replace(good, **{"asked": None} | wrong).warnings()
        assert words in warning and ": " in warning  # what to do
        assert "-n" not in warning  # which is one of several ways to ask for a number
    for alike in ({"ambiguous": 0.03, "training_ambiguous": 0.02}, {"balanced": 0.7, "training_balanced": 0.75}):
        assert replace(good, **alike).warnings() == []  # training has as many


@settings(max_examples=40)
@given(PAIRS, PAIRS)
def test_it_is_what_plain_loops_find(made, train):
    found = quality(Dataset.from_pairs(made), Dataset.from_pairs(train))
    known = {(tuple(s), tuple(t)) for s, t in train}
    ours = [(tuple(s), tuple(t)) for s, t in made]
    assert found.distinct == len(set(ours)) and found.copies == sum(pair in known for pair in ours)
    sources = {s for s, _ in known}
    assert found.contradicting == sum(pair[0] in sources and pair not in known for pair in ours) / len(ours)
    several = {s for s, t in ours if any(s == s2 and t != t2 for s2, t2 in ours)}
    assert found.ambiguous == sum(s in several for s, _ in ours) / len(ours)
    for n, side in itertools.product((1, 2, 3), (0, 1)):
        grams, seen = ([g for pair in some for g in ngrams(pair[side], n)] for some in (ours, known))
        share = [g not in seen for g in grams]
        figures = (found.source, found.target)[side]
        assert figures.new[n - 1] == (sum(share) / len(share) if share else 0)
        types = [g not in seen for g in set(grams)]
        assert figures.new_types[n - 1] == (sum(types) / len(types) if types else 0)


def ngrams(tokens, n):
    tokens = tokens if n == 1 else ("^", *tokens, "$")
    return list(zip(*(tokens[k:] for k in range(n)), strict=False))


def test_the_distance_is_that_of_pairs_of_different_rows():
    same = dataset(*["a b > x"] * 5)
    assert quality(same, same).distance == 0
    two = dataset("a > x", "b > y")
    assert quality(two, two).distance == pytest.approx(2 / 3)  # of three tokens, with the mark between the sides
    assert (quality(same, two).distance, quality(same, two).training_distance) == (0, pytest.approx(2 / 3))
    many = Dataset.from_pairs([([str(n)], ["x"]) for n in range(9)])
    assert quality(many, many).distance == pytest.approx(1 / 3)


def test_of_long_examples_fewer_pairs_are_compared(monkeypatch):
    data = Dataset.from_pairs([(["a"] * 9, ["b"] * row) for row in range(1, 9)])
    compared: list[int] = []

    def distance(one, other):
        compared.append(len(one) * len(other))
        return 0.0

    monkeypatch.setattr(module.Levenshtein, "normalized_distance", distance)
    quality(data, data)
    whole, other = compared[: module.ROWS], compared[module.ROWS :]
    assert len(other) == module.ROWS  # of the training examples
    for cells, count in ((sum(whole), module.ROWS), (sum(whole[:5]), 5), (1, 1)):
        compared.clear()
        monkeypatch.setattr(module, "CELLS", cells)
        quality(data, data)
        assert compared[:count] == whole[:count]
        assert sum(compared[count:]) <= max(cells, other[0])


def test_copies_alone_are_warned_of_unless_they_are_drawn_on_purpose():
    train = dataset(*TRAIN)
    (said,) = quality(train, train).warnings()
    assert said.startswith("4 of 4 examples are training examples, from which nothing new is learned")
    ten = [f"a{n} > b{n}" for n in range(10)]
    assert quality(dataset(*ten, "e > e"), dataset(*ten)).warnings()[0].startswith("10 of 11 examples are training")
    assert not quality(dataset(*ten, "e > e", "f > f"), dataset(*ten)).warnings()
    again = Dataset(train.frame.with_columns(host=pl.int_range(4)))  # as `resample` has it
    assert not quality(again, train).warnings()
    many = dataset(*TRAIN * 3)
    assert not quality(Dataset(many.frame.with_columns(host=pl.int_range(12) % 4)), train).warnings()
    assert "3 of 12 examples are distinct" in quality(many, train).warnings()[0]
