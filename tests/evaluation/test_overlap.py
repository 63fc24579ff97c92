"""Overlaps by hand, against a plain double loop, and on SCAN as published."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.data.scan import SPLITS
from compgen.errors import DataError
from compgen.evaluation.overlap import Overlap, overlap

SIDE = st.lists(st.sampled_from("abcde"), max_size=4)
PAIRS = st.lists(st.tuples(SIDE, SIDE), max_size=6)


def dataset(*examples):
    """`jump twice > J J` is an example; a side may be empty."""
    return Dataset.from_pairs([tuple(side.split() for side in example.split(">")) for example in examples])


def test_both_overlaps_by_hand():
    test = dataset("a b > X", "a c > X Y", "a c > X Y", "a a > Y")
    train = dataset("a b > X", "b c >", "c > X Y", "a > Z", "c a > Y X")
    found = overlap(test, train)
    assert (found.examples, found.shared_examples) == (3, 1)  # c a > Y X has other sides, a c > X Y counts once
    # aa ab bb ac cc and XX XY YY; training lacks none of them: a c stand together in c a.
    assert (found.cooccurrences, found.shared_cooccurrences) == (8, 8)
    fewer = overlap(test, dataset("a b > X", "a > c", "b >", "Y > Y"))
    assert (fewer.cooccurrences, fewer.shared_cooccurrences) == (8, 6)  # neither ac, across two sides, nor XY
    assert fewer.example_overlap == pytest.approx(1 / 3)
    assert fewer.cooccurrence_overlap == pytest.approx(6 / 8)
    assert fewer.to_dict()["cooccurrence_overlap"] == fewer.cooccurrence_overlap
    assert "with-itself" in fewer.to_dict()["signature"]


def test_a_type_alone_stands_together_with_itself():
    assert overlap(dataset("a > X"), dataset("a > Y")) == Overlap(1, 0, 2, 1)


def test_a_pair_may_be_found_on_the_other_side():
    assert overlap(dataset("a b >"), dataset("> b a")) == Overlap(1, 0, 3, 3)


def test_synthetic_examples_are_added_to_the_original_ones():
    test, train, synthetic = dataset("a b > X", "a c > X"), dataset("a > X", "b > X"), dataset("a b > X")
    assert overlap(test, train) == Overlap(2, 0, 6, 3)
    assert overlap(test, train + synthetic) == Overlap(2, 1, 6, 4)


@pytest.mark.parametrize("test", [dataset(), dataset(" > ")])
def test_a_test_set_without_tokens_is_refused(test):
    with pytest.raises(DataError, match="found no tokens in the test set"):
        overlap(test, dataset("a > X"))


@given(PAIRS, PAIRS)
def test_it_is_what_a_double_loop_finds(test, train):
    def examples(pairs):
        return {(tuple(source), tuple(target)) for source, target in pairs}

    def together(pairs):
        sides = [side for pair in pairs for side in pair]
        return {frozenset(two) for side in sides for two in itertools.product(side, side)}

    if not together(test):
        return
    wanted, seen = together(test), together(train)
    assert overlap(Dataset.from_pairs(test), Dataset.from_pairs(train)) == Overlap(
        len(examples(test)), len(examples(test) & examples(train)), len(wanted), len(wanted & seen)
    )


def test_many_pairs_are_looked_at_part_by_part():
    first, second = (" ".join(map(str, numbers)) + " >" for numbers in (range(2400), range(1600, 4000)))
    alone = [f"{number} >" for number in range(4000)]
    test = dataset(*alone, "0 1 >", "1600 3999 >", "0 3999 >")
    assert overlap(test, dataset(first, second)) == Overlap(4003, 0, 4003, 4002)  # together more pairs than one part


@pytest.mark.parametrize(("split", "pairs", "shared"), [("jump", 102, 85), ("around_right", 111, 111)])
def test_scan_before_augmentation_is_as_published(split, pairs, shared):
    """Andreas (2020), section 4: no test example is in training; co-occurrence overlap is 83% and 100%."""
    scan = SPLITS[split][0]()
    found = overlap(scan.split("test"), scan.split("train"))
    assert found == Overlap(len(scan.split("test")), 0, pairs, shared)
