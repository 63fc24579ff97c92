"""Strategies on hand-made pools, where what each must take can be counted."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.augmenters.selection import STRATEGIES, select, templates_by
from compgen.data.examples import Dataset
from compgen.data.templates import tags
from compgen.errors import DataError, UserError


def pool(sizes: dict[str, int]) -> Dataset:
    """So many examples of each template (a tag), each with its own target."""
    return Dataset.from_pairs(([*"ab", tag], [f"{tag}{i}"]) for tag, size in sizes.items() for i in range(size))


def taken(dataset: Dataset) -> Counter:
    return Counter(tags(dataset))


SIZES = {"V;PST": 900, "V;FUT": 90, "V;PRS": 10}
POOL = pool(SIZES)
LOSSES = np.random.default_rng(0).permutation(1000) / 100.0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_taken_twice_and_a_seed_fixes_it(strategy):
    losses = LOSSES if STRATEGIES[strategy].sign else None
    chosen = select(POOL, 300, strategy, losses=losses, seed=3)
    assert len(chosen) == 300 == len(set(chosen.frame["target"].list.first()))
    assert chosen == select(POOL, 300, strategy, losses=losses, seed=3)
    everything = select(POOL, 1000, strategy, losses=losses, seed=3)
    assert taken(everything) == SIZES


@pytest.mark.parametrize("strategy", ["random", "emt", "umt"])
def test_another_seed_takes_others(strategy):
    assert select(POOL, 300, strategy, seed=0) != select(POOL, 300, strategy, seed=1)


def test_templates_are_drawn_uniformly_or_as_often_as_they_occur():
    uniform = taken(select(POOL, 150, "umt"))
    assert uniform["V;PRS"] == 10  # a third of 150 is more than there are
    assert abs(uniform["V;PST"] - uniform["V;FUT"]) < 40
    for strategy in ("emt", "random"):
        found = taken(select(POOL, 500, strategy))
        assert found["V;PST"] == pytest.approx(450, abs=30) and found["V;PRS"] < 12


def test_templates_are_drawn_as_often_whatever_is_left_of_them():
    """Of 2,000 pairs 3,600 examples: with t draws of each, e^-t (2 + t) = 0.2 are left, and e^-t = 3.8 % have none."""
    pairs = pool({f"T{i}": 2 for i in range(2000)})
    untouched = 2000 - len(taken(select(pairs, 3600, "emt")))
    assert untouched == pytest.approx(76, abs=15)  # at random, a tenth of a tenth


def test_losses_order_all_examples_or_those_of_a_template():
    targets = POOL.frame["target"].list.first()
    ranked = targets[np.argsort(-LOSSES)].to_list()
    assert set(select(POOL, 50, "highloss", losses=LOSSES).frame["target"].list.first()) == set(ranked[:50])
    assert set(select(POOL, 50, "lowloss", losses=LOSSES).frame["target"].list.first()) == set(ranked[-50:])
    for strategy in ("umt+loss", "emt+loss"):
        chosen = select(POOL, 120, strategy, losses=LOSSES)
        for tag, count in taken(chosen).items():
            best = [target for target in ranked if target.startswith(tag)][:count]
            mine = [t for t in chosen.frame["target"].list.first() if t.startswith(tag)]
            assert mine == best
    both = taken(select(POOL, 120, "umt+loss", losses=LOSSES))
    assert both["V;PRS"] == 10 and both["V;FUT"] > 30
    assert taken(select(POOL, 120, "emt+loss", losses=LOSSES))["V;PST"] > 90


def test_equal_losses_are_no_order_of_the_file():
    flat = np.zeros(1000)
    chosen = select(POOL, 100, "highloss", losses=flat)
    assert taken(chosen)["V;PST"] < 100  # the first hundred are all of it


@settings(max_examples=60)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.data())
def test_what_is_asked_for_is_had(sizes, data):
    candidates = pool({f"T{i}": size for i, size in enumerate(sizes)})
    count = data.draw(st.integers(1, sum(sizes)))
    strategy = data.draw(st.sampled_from(list(STRATEGIES)))
    losses = np.linspace(0, 1, sum(sizes)) if STRATEGIES[strategy].sign else None
    chosen = select(candidates, count, strategy, losses=losses, seed=data.draw(st.integers(0, 99)))
    assert len(set(chosen.frame["target"].list.first())) == count


def test_any_column_may_be_the_template():
    plain = Dataset.from_pairs(([f"w{i}"], [str(i)]) for i in range(100))
    kinds = pl.Series(["rare" if i < 5 else "frequent" for i in range(100)])
    chosen = select(plain, 10, "umt", templates=kinds)
    assert sum(int(target) < 5 for target in chosen.frame["target"].list.first()) >= 3
    assert len(select(plain, 10, "umt")) == 10  # by shape, as there are no tags
    with pytest.raises(UserError, match="100 candidates have 3 templates"):
        select(plain, 10, "umt", templates=kinds[:3])
    with pytest.raises(UserError, match="5 of 100 candidates have no template"):
        select(plain, 10, "umt", templates=kinds.replace({"rare": None}))
    with pytest.raises(UserError, match=r"no template \['tags'\]: expected one of"):
        templates_by(plain, ["tags"])


def test_what_cannot_be():
    with pytest.raises(UserError, match="no strategy 'best': expected one of random"):
        select(POOL, 1, "best")
    with pytest.raises(DataError, match="1,001 examples cannot be selected of 1,000 candidates: ask for at most 1,000"):
        select(POOL, 1001, "random")
    with pytest.raises(UserError, match="expected 1 or more"):
        select(POOL, 0, "random")
    with pytest.raises(UserError, match="needs a loss of each of the 1,000 candidates: found none"):
        select(POOL, 1, "highloss")
    with pytest.raises(UserError, match="found 3"):
        select(POOL, 1, "umt+loss", losses=np.zeros(3))
