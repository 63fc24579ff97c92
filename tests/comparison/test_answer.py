"""From right and wrong answers to the answer of a comparison."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.comparison.answer import (
    RESAMPLES,
    Answers,
    by_length,
    by_template,
    changed,
    differences,
    holm,
    measured,
    sentence,
)
from compgen.comparison.result import Choice, Difference
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.data.examples import Dataset

GECA, CONTROL = System(("geca",), 8), System(("resample",), 8)


def right(seeds: int, count: int, share: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((seeds, count)) < share


def difference(first: np.ndarray, second: np.ndarray) -> Difference:
    return differences([(first, second)])[0]


def test_equal_systems_do_not_differ():
    same = right(3, 200, 0.5)
    found = difference(same, same)
    assert (found.mean, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_the_interval_is_that_of_the_normal_approximation_with_one_seed():
    first, second = right(1, 1000, 0.6, 1), right(1, 1000, 0.5, 2)
    each = first.astype(float) - second
    found = difference(first, second)
    error = 1.96 * each.std() / np.sqrt(each.size)
    assert found.mean == pytest.approx(each.mean())
    assert (found.low, found.high) == pytest.approx((found.mean - error, found.mean + error), abs=0.006)
    assert found.p < 0.01


def test_p_is_two_sided_and_never_0():
    first, second = right(1, 1000, 0.5, 1), right(1, 1000, 0.48, 2)
    each = first.astype(float) - second
    expected = math.erfc(abs(each.mean()) / each.std() * (each.size / 2) ** 0.5)
    assert 0.1 < expected < 0.9
    assert difference(first, second).p == difference(second, first).p == pytest.approx(expected, abs=0.05)
    assert difference(first | True, first & False).p == 2 / RESAMPLES


def test_seeds_that_disagree_widen_the_interval():
    one = np.zeros((2, 400), bool)
    other = one.copy()
    other[0] = True  # all right with one seed, all wrong with the other
    assert difference(other, one).low == 0
    assert difference(other, one).high == 1


def test_systems_with_unlike_numbers_of_seeds_share_the_first():
    first = right(3, 50, 0.5)
    assert difference(first, first[:1]).mean == 0


def test_each_of_several_systems_is_compared_as_if_alone():
    other, systems = right(3, 50, 0.5), [right(seeds, 50, 0.6, seed) for seed, seeds in enumerate((3, 2, 3, 5), 1)]
    assert differences([(one, other) for one in systems]) == [difference(one, other) for one in systems]


def test_by_chance_alone_p_is_small_as_often_as_it_says():
    ps = [difference(right(3, 100, 0.4, 2 * at), right(3, 100, 0.4, 2 * at + 1)).p for at in range(60)]
    assert sum(p < 0.05 for p in ps) <= 8


def test_holm_on_an_example_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(ps):
    found = holm(ps)
    for p, one in zip(ps, found, strict=True):
        assert p <= one <= min(1, p * len(ps)) + 1e-12
    assert [found[at] for at in np.argsort(ps, kind="stable")] == sorted(found)


def answers(system: System, right: np.ndarray, targets: list[list[str]]) -> Answers:
    return Answers(system, [[t if ok else ["x"] for t, ok in zip(targets, row, strict=True)] for row in right], right)


def test_roles_and_the_sentence():
    targets = [["a"]] * 300
    found = [answers(BARE_SYSTEM, right(3, 300, 0.3), targets), answers(CONTROL, right(3, 300, 0.32, 5), targets)]
    found.append(answers(GECA, right(3, 300, 0.6, 6), targets))
    rows = measured(found, {BARE_SYSTEM: 0, CONTROL: 2400, GECA: 2400}, GECA, CONTROL)
    assert [row.role for row in rows] == ["bare", "control", "chosen"]
    assert rows[0].over_bare is None and rows[1].over_control is None
    assert rows[2].over_control is not None and rows[2].over_control.corrected == rows[2].over_control.p
    choice = Choice(system=str(GECA), methods=["geca"], examples=2400, why="")
    said = sentence(rows, choice, 4)
    assert (
        said.startswith("geca x8 raises accuracy on the test part from ")
        and "points more than as many examples" in said
    )
    nothing = measured(found[:2], {BARE_SYSTEM: 0, CONTROL: 2400}, BARE_SYSTEM, CONTROL)
    said = sentence(nothing, Choice(system="bare", methods=[], examples=0, why=""), 4)
    assert said.startswith("None of 4 methods helps")
    said = sentence(nothing, Choice(system="bare", methods=[], examples=0, why=""), 4, "geca x1")
    assert said.startswith("geca x1 helps on validation data, but made nothing of all training examples: leave ")
    said = sentence(nothing, Choice(system="bare", methods=[], examples=0, why=""), 1)
    assert said.startswith("The one method that was tried does not help on validation data: leave")


@pytest.mark.parametrize("chosen", [BARE_SYSTEM, GECA])
def test_a_test_that_all_systems_pass_tells_nothing(chosen):
    systems, targets = (BARE_SYSTEM, CONTROL, GECA), [["a"]] * 60
    found = [answers(system, np.ones((2, 60), dtype=bool), targets) for system in systems]
    rows = measured(found, dict.fromkeys(systems, 9), chosen, CONTROL)
    said = sentence(rows, Choice(system=str(chosen), methods=list(chosen.methods), examples=9, why=""), 2)
    assert said.startswith("This test cannot tell whether a method helps") and "--by length or --by tmcd" in said
    found[0] = answers(BARE_SYSTEM, right(2, 60, 0.5), targets)
    rows = measured(found, dict.fromkeys(systems, 9), GECA, CONTROL)
    said = sentence(rows, Choice(system=str(GECA), methods=["geca"], examples=9, why=""), 2)
    assert said.startswith("geca x8 raises accuracy on the test part")


def test_a_gain_that_chance_explains_is_said_to_be_one():
    targets = [["a"]] * 60
    rows = measured(
        [answers(system, right(2, 60, 0.5, at), targets) for at, system in enumerate((BARE_SYSTEM, CONTROL, GECA))],
        dict.fromkeys((BARE_SYSTEM, CONTROL, GECA), 9),
        GECA,
        CONTROL,
    )
    assert "chance can do as much" in sentence(rows, Choice(system="geca x8", methods=["geca"], examples=9, why=""), 2)


def test_the_sentence_has_the_corrected_p_of_the_table_and_tells_no_change_from_a_loss():
    targets, choice = [["a"]] * 60, Choice(system="geca x8", methods=["geca"], examples=9, why="")
    systems = (BARE_SYSTEM, CONTROL, GECA)
    same = right(2, 60, 0.5, 1)
    found = [answers(system, same, targets) for system in systems]
    rows = measured(found, dict.fromkeys(systems, 9), GECA, CONTROL)
    assert sentence(rows, choice, 2).startswith("geca x8 leaves accuracy on the test part at ")
    over = rows[2].over_control
    assert over is not None
    for p, corrected, says in (
        (0.03, 0.12, "chance can do as much"),
        (0.03, 0.12, "(p = 0.12)"),
        (0.01, 0.02, "0.020"),
    ):
        changed = over.model_copy(update={"p": p, "corrected": corrected})
        assert says in sentence([*rows[:2], rows[2].model_copy(update={"over_control": changed})], choice, 2)
    worse = over.model_copy(update={"mean": -0.1, "p": 0.01, "corrected": 0.02})
    less = {"accuracy": rows[2].accuracy - 0.1, "over_bare": worse, "over_control": worse}
    said = sentence([*rows[:2], rows[2].model_copy(update=less)], choice, 2)
    assert said.startswith("geca x8 lowers accuracy on the test part") and "10.0 points less than as many" in said
    hardly = {"accuracy": 0.9981, "over_bare": over.model_copy(update={"mean": 0.0001})}
    bare = rows[0].model_copy(update={"accuracy": 0.998})
    said = sentence([bare, rows[1], rows[2].model_copy(update=hardly)], choice, 2)
    assert said.startswith("geca x8 leaves accuracy on the test part at 99.8 %;")


def test_groups_and_changed_examples():
    train = Dataset.from_pairs([(["a"], ["A", "B"]), (["b"], ["B", "C"])])
    test = Dataset.from_pairs([(["a"], ["A", "B"]), (["a", "b"], ["A", "B", "C"]), (["b", "a", "c"], ["C", "A"])])
    targets = test.frame["target"].to_list()
    bare = answers(BARE_SYSTEM, np.array([[1, 0, 0], [1, 0, 1], [1, 0, 0]], bool), targets)
    chosen = answers(GECA, np.array([[0, 1, 0], [0, 1, 0], [1, 1, 0]], bool), targets)
    groups = by_template(train, test, [bare, chosen])
    assert [(group.examples, group.accuracy["geca x8"]) for group in groups] == [
        (1, pytest.approx(1 / 3)),
        (1, 1),
        (1, 0),
    ]
    lengths = by_length(test, [bare])
    assert sum(group.examples for group in lengths) == 3
    mended, broken = changed(test, bare, chosen)
    assert [one.source for one in mended] == ["a b"] and [one.source for one in broken] == ["a"]
    assert (mended[0].bare, mended[0].chosen) == ("x", "A B C")
    assert (broken[0].bare, broken[0].chosen) == ("A B", "x")  # of three answers the usual one
    half, every = (answers(BARE_SYSTEM, np.array(rows, bool), targets) for rows in ([[1] * 3, [0] * 3], [[1] * 3] * 2))
    mended, _ = changed(test, half, every)
    assert len(mended) == 3  # half of the seeds are not most
    assert [one.bare for one in mended] == ["x"] * 3  # what counts as wrong is shown by a wrong answer


def test_an_empty_token_is_not_the_end_of_a_target():
    train = Dataset.from_pairs([(["a"], ["A"]), (["b"], ["", "B"])])
    test = Dataset.from_pairs([(["a"], ["A", ""])])
    (group,) = by_template(train, test, [])
    assert group.label == "target has new pairs of tokens"
    (group,) = by_template(train, Dataset.from_pairs([(["a"], ["B"])]), [])  # which no target begins with
    assert group.label == "target has new pairs of tokens"


def test_a_length_of_one_token_is_said_in_the_singular():
    test = Dataset.from_pairs([(["a"] * length, ["A"]) for length in (1, 2, 2, 3)])
    assert [group.label for group in by_length(test, [])] == ["1 token", "2 to 3 tokens"]
