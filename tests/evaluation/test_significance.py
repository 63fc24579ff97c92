import numpy as np
import pytest

from compgen.errors import UserError
from compgen.evaluation.significance import compare, paired

pytest.importorskip("scipy", reason="needs SciPy, the extra [lm]")


def test_a_worked_example():
    """Student's own data: hours of sleep gained with two drugs, t = -4.0621, p = 0.002833."""
    first = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    second = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    found = paired(first, second)
    assert found.mean == pytest.approx(-1.58)
    assert found.t == pytest.approx(-4.0621, abs=1e-4)
    assert found.t_p == pytest.approx(0.002833, abs=1e-6)
    assert found.sign_p == pytest.approx(2 * 0.5**9)  # nine of nine that differ
    assert found.low < -1.58 < found.high < 0
    assert found.bootstrap_p < 0.01


def test_chance_is_not_significant_more_often_than_it_says():
    random = np.random.default_rng(0)
    draws = [paired(*random.normal(size=(2, 100)), resamples=500) for _ in range(300)]
    for name in ("t_p", "sign_p", "bootstrap_p"):
        rejected = np.mean([getattr(found, name) < 0.05 for found in draws])
        assert rejected < 0.09


def test_the_bootstrap_agrees_with_the_normal_distribution_and_knows_its_limit():
    first, second = np.random.default_rng(2).normal(size=(2, 400))
    found, error = paired(first, second), (first - second).std() / 20
    assert [(found.low - found.mean) / error, (found.high - found.mean) / error] == pytest.approx(
        [-1.96, 1.96], abs=0.1
    )
    assert paired(np.zeros(30), np.ones(30), resamples=500).bootstrap_p == 2 / 500  # no resample has the other sign


def test_a_few_items_that_agree_are_no_proof():
    for items, p in ((2, 0.5), (3, 0.25), (5, 0.0625), (6, 0.03125)):
        assert paired(np.zeros(items), np.linspace(1, 2, items)).bootstrap_p == p
    random = np.random.default_rng(4)
    rejected = [paired(*random.normal(size=(2, items))).bootstrap_p < 0.05 for items in (2, 3, 4, 5) for _ in range(50)]
    assert np.mean(rejected) < 0.09


def test_equal_losses_and_odd_sizes():
    same = paired(np.ones(4), np.ones(4))
    assert (same.mean, same.t_p, same.bootstrap_p) == (0, 1, 1)
    with pytest.raises(UserError, match="found 3 and 4"):
        paired(np.ones(3), np.ones(4))


def test_what_sums_leave_by_rounding_is_no_difference():
    losses = np.random.default_rng(3).uniform(1, 50, size=200)
    averaged = np.mean([losses] * 3, axis=0)
    assert 0 < np.abs(averaged - losses).max() < 1e-13
    same = paired(averaged, losses)
    assert (same.mean, same.t, same.t_p, same.sign_p, same.bootstrap_p) == (0, 0, 1, 1, 1)
    one, other = ([np.array(scores)] * 2 for scores in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1)))
    assert one[0].mean() != other[0].mean()
    assert compare({"one": one, "other": other})[0].seeds_p == 1
    losses[:5] += 1
    assert paired(losses, averaged).sign_p == pytest.approx(2 * 0.5**5)  # all others are ties
    item = np.zeros(100)
    item[0] = 1
    # The resamples without the one item, 0.99^100 = 0.366 of them, have a mean of 0.
    for rounding in (0, 1e-14, -1e-14):
        assert paired(item, np.full(100, rounding)).bootstrap_p == pytest.approx(0.732, abs=0.02)


def test_comparing_systems_over_seeds():
    """The pooled test is Student's over all items; the one by seeds knows that items of one seed go together."""
    random = np.random.default_rng(1)
    base = [random.normal(size=200) for _ in range(3)]
    same = [seed + random.normal(scale=0.1, size=200) for seed in base]
    lucky = [base[i] + shift + random.normal(scale=0.1, size=200) for i, shift in enumerate((0.5, 0.1, -0.2))]
    better = [seed + 0.5 + random.normal(scale=0.1, size=200) for seed in base]
    found = {(c.first, c.second): c for c in compare({"base": base, "same": same, "lucky": lucky, "better": better})}
    assert next(iter(found)) == ("base", "same") and len(found) == 6
    assert found["base", "same"].items_p > 0.01
    assert found["base", "lucky"].items_p < 1e-6 and found["base", "lucky"].seeds_p > 0.3
    assert found["base", "better"].seeds_p < 0.001 and found["base", "better"].mean == pytest.approx(0.5, abs=0.02)
    for one in found.values():
        assert one.corrected_p == pytest.approx(min(1, 6 * one.items_p))


def test_comparisons_need_the_same_items_and_one_seed_has_no_spread():
    one = compare({"a": [np.array([1.0, 2, 3])], "b": [np.array([0.0, 2, 1])]})[0]
    assert one.seeds_p is None and 0 < one.items_p < 1
    assert compare({"a": [np.ones(2)] * 2, "b": [np.ones(2)] * 2})[0].seeds_p == 1
    with pytest.raises(UserError, match="a and b cannot be compared"):
        compare({"a": [np.ones(3)], "b": [np.ones(2)]})
    with pytest.raises(UserError, match="a and b cannot be compared"):
        compare({"a": [np.ones(3)], "b": [np.ones(3)] * 2})
    with pytest.raises(UserError, match="found 1"):
        compare({"a": [np.ones(1)], "b": [np.ones(1)]})


def test_seeds_that_all_differ_alike_say_nothing_of_their_spread():
    first, second = [np.array([1.0, 0, 1])] * 2, [np.array([0.0, 0, 1])] * 2
    found = compare({"a": first, "b": second})[0]
    assert found.seeds_p is None and 0 < found.items_p < 1
    certain = compare({"a": [np.ones(5)] * 3, "b": [np.zeros(5)] * 3})[0]
    assert (certain.items_p, certain.seeds_p, certain.mean) == (0, None, -1)
