"""Test and validation parts of a comparison."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.comparison.parts import (
    COMBINATIONS,
    FEWEST,
    LEAST_TRAIN,
    ONCE,
    RANDOM,
    UNUSED,
    Carving,
    carve,
    carvings,
    divide,
    inflected,
    remembered,
    usual_division,
)
from compgen.data.catalog import load
from compgen.data.compounds import Ngrams
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import read_dataset
from compgen.errors import DataError

VERBS, PLACES, TIMES = ("walk", "run", "look", "jump", "swim"), ("left", "right", "up", "down"), ("once", "twice")


def commands() -> Dataset:
    """Commands of two or three words, alone and joined, each word with a target of its own."""
    simple = [[verb, place, *more] for verb in VERBS for place in PLACES for more in ([], *([time] for time in TIMES))]
    joined = [[*first, "and", *second] for first in simple[::3] for second in simple[::5]]
    return Dataset.from_pairs([(words, [word.upper() for word in words]) for words in simple + joined])


def words(count: int = 60) -> Dataset:
    """Words of inflection, with three bundles of tags."""
    bundles = (["N", "PL"], ["N", "SG"], ["V", "PST"])
    stems = [f"{a}{b}{c}" for a in "bdgk" for b in "aeiou" for c in "lmnr"][:count]
    return Dataset.from_pairs([([*stem, *bundles[at % 3]], [*stem, "sxy"[at % 3]]) for at, stem in enumerate(stems)])


def tokens(dataset: Dataset) -> set[tuple[int, str]]:
    return {(side, token) for pair in dataset.pairs() for side in (0, 1) for token in pair[side]}


@pytest.mark.parametrize("number", range(3))
def test_a_carving_holds_out_what_training_then_lacks(number):
    data = commands()
    carved = carve(data, number)
    assert sum(carved.splits.values()) == len(data.unique())
    train, combinations, once = (carved.split(part) for part in (TRAIN, COMBINATIONS, ONCE))
    assert tokens(train) == tokens(data)
    shown = {compound for bag in Ngrams().compounds(train) for compound in bag}
    assert all(any(compound not in shown for compound in bag) for bag in Ngrams().compounds(combinations))
    counts = [
        sum(token in source for source, _ in train.pairs()) for token in {t for side, t in tokens(data) if not side}
    ]
    assert 1 in counts
    word = next(t for side, t in tokens(data) if not side and sum(t in source for source, _ in train.pairs()) == 1)
    assert all(word in source for source, _ in once.pairs())
    sizes = [carved.splits[part] for part in (RANDOM, COMBINATIONS, ONCE)]
    assert min(sizes) >= FEWEST and max(sizes) == round(0.1 * len(data.unique()))  # the rest is in none of them
    assert not any(word in source for source, _ in carved.split(RANDOM).pairs())


def test_the_one_example_of_a_word_stays_in_training():
    data = divide(read_dataset(Path(__file__).parents[2] / "docs/examples/questions.tsv")).train
    held = 0
    for number in range(20):
        carved = carve(data, number)
        once = carved.frame.filter(pl.col("split") == ONCE)["source"].to_list()
        if once:
            trained = carved.split(TRAIN).frame["source"].to_list()
            assert 1 in [sum(word in source for source in trained) for word in set.intersection(*map(set, once))]
            held += 1
    assert held > 5


@pytest.mark.parametrize("number", range(3))
def test_training_has_all_tokens_of_the_parts_that_ask_for_generalisation(number):
    data = divide(read_dataset(Path(__file__).parents[2] / "docs/examples/questions.tsv")).train
    carved = carve(data, number)
    asked = carved.frame.filter(pl.col("split").is_in([COMBINATIONS, ONCE]))
    assert tokens(Dataset(asked)) <= tokens(carved.split(TRAIN))
    assert carved.splits[RANDOM] == FEWEST


def test_where_every_example_is_needed_the_random_part_is_drawn_nevertheless():
    carving = Carving(Dataset.from_pairs([([f"w{at % 9}"], ["W"]) for at in range(18)]), 3, np.random.default_rng)
    carving.hold(np.arange(9), COMBINATIONS)
    assert carving.spare_first(np.arange(9, 18)).tolist() == list(range(9, 18))


def test_of_the_examples_with_a_word_the_shortest_is_kept():
    odd = [(["walk", *PLACES[:at], "odd"], ["WALK", *PLACES[:at], "ODD"]) for at in (2, 1, 3, 4)]
    odd += [([verb, *PLACES, "odd"], [verb.upper(), "ODD"]) for verb in (*VERBS, "sit", "go")]
    plain = [([verb, place], [verb.upper(), place]) for verb in (*VERBS, "sit", "go") for place in PLACES]
    plain += [([f"x{at}"], [f"X{at}"]) for at in range(10)]
    carving = Carving(Dataset.from_pairs(odd + plain), 10, np.random.default_rng)
    carving.hold_word()
    assert carving.part[: len(odd)].tolist() == [TRAIN if at == 1 else ONCE for at in range(len(odd))]


VERBED = [([f"v{at}"], [f"V{at}"]) for at in range(12)] + [([f"x{at}"], [f"X{at}"]) for at in range(50)]


@pytest.mark.parametrize(
    ("own", "plain", "held"),
    [(["ODD"], VERBED, 11), ([], VERBED, 0), (["ODD"], VERBED[12:], 0)],  # no target of its own; no other example of v0
)
def test_a_word_is_held_out_if_it_has_a_target_of_its_own_and_no_other_token_is_lost(own, plain, held):
    odd = [([f"v{at}", "odd"], [f"V{at}", *own]) for at in range(12)]
    carving = Carving(Dataset.from_pairs(odd + plain), 11, np.random.default_rng)
    carving.hold_word()
    assert (carving.part == ONCE).sum() == held


def test_what_was_held_out_is_in_no_training_example():
    carving = Carving(
        Dataset.from_pairs([(["a"], ["A"]), (["a", "b"], ["A"]), (["b"], ["A"])]), 1, np.random.default_rng
    )
    assert carving.stays([1])
    carving.hold(np.array([0]), RANDOM)
    assert not carving.stays([1])


def test_a_compound_of_many_examples_is_not_held_out():
    pairs = [some for at in range(20) for some in (["x", "y", f"a{at}"], [f"a{at}", "x"], [f"a{at}", "y"])]
    for seed in range(9):
        data = Dataset.from_pairs([(some, ["A"]) for some in pairs])
        carving = Carving(data, 30, lambda _, seed=seed: np.random.default_rng(seed))
        carving.hold_combinations(words=False)
        assert TRAIN in carving.part[::3]


def test_a_test_part_is_made_by_template_where_there_are_enough():
    def usual(targets):
        return usual_division(Dataset.from_pairs([(["x", str(at)], [str(at % targets)]) for at in range(100)]))

    assert [usual(targets) for targets in (20, 21, 79, 80)] == ["random", "template", "template", "random"]


@pytest.mark.parametrize("number", range(3))
def test_a_word_in_most_of_few_examples_leaves_enough_to_train_on(number):
    pairs = [
        ([*("the",) * (at % 9 < 5), f"a{at % 8}", f"b{at // 8}"], [f"A{at % 8}", f"B{at // 8}"]) for at in range(54)
    ]
    data = Dataset.from_pairs([(source, ["THE", *target] if "the" in source else target) for source, target in pairs])
    assert carve(data, number).splits[TRAIN] >= LEAST_TRAIN


@pytest.mark.parametrize(("together", "own"), [(3, False), (4, True)])
def test_a_target_token_of_its_own_is_nearly_where_the_word_is(together, own):
    """Dice coefficients of 6/8 and 8/9."""
    pairs = [(["x", "a"], ["X" if at < together else "B", "A"]) for at in range(5)] + [(["a"], ["A"])] * 5
    carving = Carving(Dataset.from_pairs(pairs), 10, lambda _: None)
    with_token = defaultdict(list)
    for row, some in enumerate(carving.tokens):
        for token in some:
            with_token[token].append(row)
    assert carving.has_own(with_token[0, "x"], with_token) is own


def test_carvings_differ_and_are_the_same_again():
    data = commands()
    assert carve(data, 0) == carve(data, 0)
    assert carve(data, 0) != carve(data, 1)


def test_repeated_examples_are_in_one_part_only():
    data = commands()
    parts = carve(data + data, 0).frame.group_by("source", "target").len()
    assert parts["len"].max() == 1


def test_of_inflected_words_bundles_of_tags_are_held_out():
    data = words()
    assert inflected(data) and not inflected(commands())
    data = Dataset.from_pairs(
        [(source + ["DEF"] * (at % 7 == 0), target) for at, (source, target) in enumerate(data.pairs())]
    )
    carved = carve(data, 0)
    assert ONCE not in carved.splits
    bundle = lambda source: tuple(token for token in source if token[0].isupper())  # noqa: E731
    known = {bundle(source) for source, _ in carved.split(TRAIN).pairs()}
    assert all(bundle(source) not in known for source, _ in carved.split(COMBINATIONS).pairs())


def test_too_few_examples_are_refused_before_anything_begins():
    few = Dataset(commands().frame.head(30))
    with pytest.raises(
        DataError, match=r"found 30 distinct training examples, expected 50 or more: 10 for each validation"
    ):
        carve(few, 0)
    with pytest.raises(
        DataError,
        match=r"found 10 examples to train on, expected 20 or more.* 50 distinct examples to train on and 20 to test",
    ):
        divide(few, 20)
    with pytest.raises(DataError, match=r"found 30 examples, expected more than the 30 to test on"):
        divide(few, 30)


def test_the_parts_of_the_data_are_kept():
    found = divide(load("scan/jump"))
    assert (len(found.train), len(found.test), found.by) == (14_670, 7_706, "the split test of the data")


@settings(deadline=None)
@given(by=st.sampled_from(["template", "length", "tmcd", "random"]), test=st.integers(20, 200))
def test_a_test_part_is_made_as_asked(by, test):
    data = commands()
    found = divide(data, test, by)
    assert len(found.train) + len(found.test) == len(data)
    assert abs(len(found.test) - test) <= (1 if by == "template" else 0)
    assert found.by == f"{len(found.test)} examples taken out of the data by {by}"


@pytest.mark.parametrize("by", ["template", "length", "tmcd", "random"])
def test_no_example_that_is_repeated_is_in_both_parts(by):
    data = commands()
    found = divide(data + Dataset(data.frame.head(60)), 40, by)
    assert len(found.train) + len(found.test) == len(data)
    assert remembered(found) == []


def test_parts_of_the_data_that_overlap_are_told():
    data = commands()
    tested = Dataset(data.frame.tail(40).with_columns(split=pl.lit("test")))
    (said,) = remembered(divide(Dataset(data.frame.head(len(data) - 30)) + tested))
    assert said.startswith("10 of 40 test examples are training examples, too")


def test_few_examples_are_carved_several_times():
    assert carvings(words()) == 3
    assert carvings(load("scan/jump").split(TRAIN)) == 1
    assert UNUSED not in carve(words(), 0).split(TRAIN).splits


@pytest.mark.parametrize("number", range(4))
def test_no_token_is_held_out_altogether(number):
    odd = [([f"odd{at}", f"thing{at}", *more], [f"ODD{at}"]) for at in range(60) for more in ([], ["and", "walk"])]
    data = commands() + Dataset.from_pairs(odd)
    carved = carve(data, number)
    assert tokens(carved.split(TRAIN)) | tokens(carved.split(RANDOM)) == tokens(data)


def test_data_without_a_part_to_train_on_are_not_divided():
    data = Dataset(commands().frame.with_columns(split=pl.lit("n;nom;pl")))
    with pytest.raises(DataError, match=r"no examples in split 'train'; available splits: n;nom;pl \("):
        divide(data)
