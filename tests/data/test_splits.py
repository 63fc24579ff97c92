import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.data import scan
from compgen.data.compounds import Ngrams, Trees, measure
from compgen.data.examples import Dataset
from compgen.data.search import _Bags, _Contrast
from compgen.data.splits import at_random, by_length, by_template, count_of, divided, in_both, mcd, tmcd, with_dev
from compgen.errors import DataError, Remark

EMPTY = Dataset.from_pairs([])


def grouped(sizes):
    """Examples of as many templates as there are sizes; all examples differ."""
    return Dataset.from_pairs([([f"s{t}", str(i)], [f"t{t}"]) for t, size in enumerate(sizes) for i in range(size)])


def reversible(copies=3):
    """Pairs of words in both orders: those in one order and those in the other share atoms and no compound."""
    words = itertools.combinations("abcdef", 2)
    return Dataset.from_pairs([([*order], []) for pair in words for order in (pair, pair[::-1])] * copies)


def trees():
    """Applications of functions to one another, all combinations of four outer, four inner ones and five leaves."""
    return Dataset.from_pairs(
        [
            ([outer, inner, leaf], f"{outer} ( {inner} ( {leaf} ) , {leaf} )".split())
            for outer, inner, leaf in itertools.product("fghi", "klmn", "vwxyz")
        ]
    )


def held(dataset, inventory):
    """In how many examples each atom is."""
    return Counter(atom for bag in inventory.atoms(dataset) for atom in bag)


def content(dataset):
    return Counter((tuple(source), tuple(target)) for source, target in dataset.pairs())


@given(st.integers(0, 50), st.lists(st.integers(1, 4), min_size=4, max_size=30))
def test_no_template_is_in_two_parts_and_train_is_nearly_full(seed, sizes):
    data = grouped(sizes)
    made = by_template(data, len(data) - 2, seed) if len(data) > 7 else by_template(grouped([1] * 8), 6, seed)
    found = [{target[0] for _, target in made.split(part).pairs()} for part in ("train", "test")]
    assert not found[0] & found[1]
    assert len(made) - 2 - 3 <= made.splits["train"] <= len(made) - 2
    assert made.pairs() == (data if len(data) > 7 else grouped([1] * 8)).pairs()


def test_equal_sources_stay_together_by_side():
    pairs = [([f"s{n % 12}"], [f"t{n}"]) for n in range(36)]
    made = by_template(Dataset.from_pairs(pairs), 24, seed=3, side="source")
    assert made.splits == {"train": 24, "test": 12} and in_both(made) == (0, 0)
    shared, heard = in_both(at_random(Dataset.from_pairs(pairs), 24, seed=3))
    assert shared == 0 and heard > 6
    assert in_both(at_random(Dataset.from_pairs(pairs[:1] * 4), 2)) == (2, 2)


def test_template_splits_depend_on_their_seed_alone():
    first, again, other = (by_template(grouped([2] * 20), seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.splits["train"] == 20


def test_what_cannot_be_divided_by_templates_is_refused():
    with pytest.raises(DataError, match="found one template"):
        by_template(grouped([5]))
    with pytest.raises(DataError, match="the first template drawn has 5 examples, expected at most the 4 to train on"):
        by_template(grouped([5, 5]), 4)
    with pytest.raises(DataError, match="found 5 examples, expected more than the 5 to train on"):
        by_template(grouped([2, 3]), 5)
    with pytest.raises(DataError, match="found no examples"):
        by_template(EMPTY)


@given(st.integers(0, 99), st.integers(1, 39))
def test_random_splits_have_their_size_and_depend_on_their_seed_alone(seed, train):
    data = grouped([4] * 10)
    made = at_random(data, train, seed)
    assert dict(sorted(made.splits.items())) == {"test": 40 - train, "train": train}
    assert made.pairs() == data.pairs() and made == at_random(data, train, seed)


def test_which_examples_a_seed_draws_stays_the_same():
    data = grouped([1] * 10)
    trained, moved = (np.random.default_rng([3, tag]).permutation(10).tolist() for tag in (0x5B17, 0xDE))
    assert at_random(data, 5, 3).frame["split"].eq("train").arg_true().to_list() == sorted(trained[:5])
    tested = Dataset(data.frame.with_columns(split=pl.lit("test")))
    assert with_dev(tested, 4, 3).frame["split"].eq("dev").arg_true().to_list() == sorted(moved[:4])


def test_random_splits_leave_no_example_always_in_one_part():
    tested = Counter()
    for seed in range(200):
        tested.update(tuple(source) for source, _ in at_random(grouped([1] * 10), 5, seed).split("test"))
    assert len(tested) == 10 and all(60 < count < 140 for count in tested.values())


def test_numbers_below_one_are_shares():
    data = grouped([4] * 10)
    assert [count_of(asked, data) for asked in (0, 0.25, 0.98, 1, 12.0)] == [0, 10, 39, 1, 12]
    with pytest.raises(DataError, match=r"found a size of 1\.5, expected a whole number"):
        count_of(1.5, data)
    for asked, found in ((0.01, 0), (0.99, 40)):
        with pytest.raises(DataError, match=f"a share of {asked} is {found} of 40 examples, expected 1 or more"):
            count_of(asked, data)


def test_the_shortest_are_trained_on_and_of_equals_the_first():
    data = Dataset.from_pairs([(["a"] * source, ["b"] * target) for source, target in [(3, 1), (1, 9), (2, 5), (2, 2)]])
    assert by_length(data).frame["split"].to_list() == ["test", "train", "train", "test"]
    assert by_length(data, 1, "target").frame["split"].to_list() == ["train", "test", "test", "test"]
    with pytest.raises(DataError, match="found 1 example, expected two or more to divide"):
        by_length(data[:1])
    for size in (0, 4, 5):
        with pytest.raises(DataError, match=f"found 4 examples, expected more than the {size} to train on"):
            by_length(data, size)
    with pytest.raises(DataError, match="found no examples"):
        by_length(EMPTY)


@settings(deadline=None)
@given(st.integers(0, 5))
def test_compounds_that_can_be_told_apart_are(seed):
    for made, atoms in ((tmcd(reversible(), seed=seed), 1), (mcd(reversible(), 30, 30, seed=seed), 0.02)):
        found = measure(made.split("train"), made.split("test"), Ngrams())
        assert found.compounds > 0.85
        assert found.unseen_atoms == 0
        assert found.atoms <= atoms


@settings(deadline=None)
@given(st.integers(0, 5), st.sampled_from([0, 1, 3]))
def test_tmcd_diverges_more_than_chance_and_training_knows_test_atoms(seed, least):
    data = trees()
    made = tmcd(data, 50, seed, least)
    assert content(made) == content(data)
    assert made.splits["train"] == 50
    train, test = made.split("train"), made.split("test")
    chance = by_template(data, 50, seed)
    by_chance = measure(chance.split("train"), chance.split("test"), Trees()).compounds
    assert measure(train, test, Trees()).compounds > by_chance + 0.1
    known = held(train, Trees())
    assert all(known[atom] >= least for atom in held(test, Trees()))


def test_atoms_are_what_the_inventory_says():
    """With their number of arguments f/1 and f/2 are two atoms, and each would have to be trained on."""
    pairs = [(["s"], f"f ( {leaf} )".split()) for leaf in "abcde"] + [
        (["s"], f"f ( {leaf} , a )".split()) for leaf in "abcde"
    ]
    made = [tmcd(Dataset.from_pairs(pairs), 5, 0, 1, inventory=Trees(arity)) for arity in (True, False)]
    assert [len({target.count(",") for _, target in each.split("train").pairs()}) for each in made] == [2, 2]
    assert all(measure(each.split("train"), each.split("test"), Trees(False)).unseen_atoms == 0 for each in made)


@pytest.mark.parametrize("wanted", [0.1, 0.3])
def test_a_wanted_divergence_is_met(wanted):
    for made in (tmcd(trees(), seed=1, divergence=wanted), mcd(trees(), 40, 20, seed=1, divergence=wanted)):
        found = measure(made.split("train"), made.split("test"), Trees()).compounds
        assert abs(found - wanted) < 0.01


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_what_a_move_does_to_the_divergence_is_known_before(alpha):
    bags = _Bags([Counter("aab"), Counter("ab"), Counter("bcc"), Counter("aac"), Counter("c"), Counter("abbb")])
    part = np.array([0, 1, 0, 1, 2, 0])
    for side, sign in itertools.product((0, 1), (1, -1)):
        for row, value in enumerate(_Contrast(bags, alpha, part).after(side, sign)):
            if (part[row] == side) == (sign < 0):
                moved = _Contrast(bags, alpha, part)
                moved.add(np.array([row]), side, sign)
                assert value == pytest.approx(moved.value())


def test_mcd_leaves_out_what_is_in_neither_part_and_keeps_the_order():
    data = trees()
    made = mcd(data, seed=3)
    assert set(made.splits.items()) == {("train", 32), ("test", 8)}
    rows = [data.pairs().index(pair) for pair in made.pairs()]
    assert rows == sorted(rows)
    assert len(set(rows)) == 40


def test_a_share_for_dev_is_of_all_examples():
    assert divided(trees(), "mcd", train=0.4, test=0.25, dev=0.1).splits == {"train": 32, "test": 12, "dev": 8}


def test_the_seed_and_the_size_of_the_test_part_are_passed_on():
    parts = by_length(trees(), 60)
    for seed in (1, 2):
        assert divided(trees(), "length", test=20, dev=10, seed=seed) == with_dev(parts, 10, seed)


def test_one_compound_is_remarked():
    data = Dataset.from_pairs([([str(number)], [*"f(a)"]) for number in range(8)])
    for make in (tmcd, mcd):
        with pytest.warns(Remark, match="found one compound in all examples.*--compounds of `cgen data split tmcd`"):
            make(data, 4)


def test_searches_depend_on_their_seed_alone():
    for make in (tmcd, mcd):
        first, again, other = (make(trees(), seed=seed) for seed in (1, 1, 2))
        assert first == again != other


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tmcd(EMPTY), "found no examples"),
        (lambda: mcd(EMPTY), "found no examples"),
        (lambda: tmcd(trees(), 80), "found 80 examples, expected more than the 80 to train on"),
        (lambda: mcd(trees(), 60, 21), r"found 80 examples, expected as many as in train \(60\) and test \(21\)"),
        (lambda: mcd(trees(), 0), r"expected as many as in train \(0\)"),
        (lambda: tmcd(trees(), 1, least=2), "found no way to have every atom of the test part in 2 training examples"),
        (lambda: tmcd(trees(), divergence=1.5), "found a divergence of 1.5"),
        (lambda: mcd(trees(), atoms=-1), "one of atoms of -1"),
        (lambda: mcd(trees(), atoms=float("nan")), "one of atoms of nan"),
        (lambda: tmcd(trees() + Dataset.from_pairs([(["x"], ["f", "("])])), "open brackets at the end: 1"),
        (lambda: mcd(Dataset.from_pairs([(["a"], ["b"])] * 9)), "found no compounds in any example"),
    ],
)
def test_what_cannot_be_searched_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_dev_comes_out_of_test():
    made = by_length(trees(), 40)
    parted = with_dev(made, 30, seed=1)
    assert set(parted.splits.items()) == {("train", 40), ("dev", 30), ("test", 10)}
    assert parted.split("train") == made.split("train")
    assert content(parted) == content(made)
    assert with_dev(made, 30, seed=1) == parted != with_dev(made, 30, seed=2)
    assert with_dev(made, 0) == made
    both = grouped([1] * 10) + Dataset(grouped([1] * 10).frame.with_columns(split=pl.lit("test")))
    assert set(with_dev(both, 5).splits.items()) == {("train", 10), ("dev", 5), ("test", 5)}  # whatever train has, too
    with pytest.raises(DataError, match="found 40 examples to test on, expected more than the 40 for dev"):
        with_dev(made, 40)


def test_a_source_is_in_dev_or_in_test():
    pairs = [([f"s{number // 3}"], [f"t{number}"]) for number in range(60)]
    parted = with_dev(by_template(Dataset.from_pairs(pairs), 30, side="source"), 8, seed=1)
    parts = {name: {source for (source,), _ in parted.split(name).pairs()} for name in parted.splits}
    assert parted.splits == {"train": 30, "dev": 6, "test": 24} and not parts["dev"] & parts["test"]
    with pytest.raises(DataError, match="every source to test on has more examples than the 1 for dev"):
        with_dev(Dataset.from_pairs(pairs[:3], "test"), 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_template_splits_of_geoquery_are_the_published_ones(geoquery, seed):
    made = by_template(geoquery("all"), 440, seed)
    assert content(made.split("train")) == content(geoquery(f"template{seed}.train"))
    held_out = geoquery(f"template{seed}.dev") + geoquery(f"template{seed}.test")
    assert content(made.split("test")) == content(held_out)


def test_the_length_split_of_geoquery_is_the_published_one(geoquery):
    made = by_length(geoquery("all"), 440)
    assert content(made.split("train")) == content(geoquery("length.train"))
    assert content(made.split("test")) == content(geoquery("length.dev") + geoquery("length.test"))


@pytest.mark.parametrize(
    ("published", "parts", "seed", "least", "arity"),
    [
        ("tmcd1", ["dev", "test"], 1, 2, True),
        ("tmcd2", ["dev", "test"], 2, 2, True),
        ("tmcd3", ["dev", "test"], 3, 2, True),
        ("nqg_tmcd1", ["test"], 1, 1, False),
    ],
)
def test_tmcd_splits_of_geoquery_diverge_as_much_as_the_published_ones(geoquery, published, parts, seed, least, arity):
    inventory = Trees(arity)
    made = tmcd(geoquery("all"), 440, seed, least, inventory=inventory)
    train, test = made.split("train"), made.split("test")
    theirs = sum((geoquery(f"{published}.{part}") for part in parts[1:]), geoquery(f"{published}.{parts[0]}"))
    bar = measure(geoquery(f"{published}.train"), theirs, inventory).compounds
    assert measure(train, test, inventory).compounds >= bar
    known = held(train, inventory)
    assert min(known[atom] for atom in held(test, inventory)) >= least


def test_mcd_on_scan_diverges_in_compounds_and_not_in_atoms():
    chance = scan.simple()
    by_chance = measure(chance.split("train"), chance.split("test"), Ngrams())
    made = mcd(chance, divergence=0.35)  # the largest takes several times as long
    assert set(made.splits.items()) == {("train", 8_364), ("test", 2_091)}
    found = measure(made.split("train"), made.split("test"), Ngrams())
    assert by_chance.compounds < 0.001
    assert abs(found.compounds - 0.35) < 0.001
    assert found.atoms <= 0.0201
    assert found.unseen_atoms == 0


def test_the_length_split_of_scan_goes_by_targets():
    made = by_length(scan.length(), 16_990, "target")
    assert content(made.split("train")) == content(scan.length().split("train"))
