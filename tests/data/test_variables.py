"""Variables as distances, and back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.data.variables import named, named_targets, relative, relative_targets
from compgen.errors import DataError

TOKENS = st.lists(
    st.sampled_from([*"ABCDZ", "$0", "$1", "$12", "(", "a", "AB", "$", "$01", "1", "$1\u0661", "A+\u0661"]), max_size=12
)


def test_the_same_part_reads_alike_at_any_depth():
    shallow = "( A , _state ( A ) , _loc ( A , B ) , _river ( B ) )"
    deep = "( A , _city ( A ) , _loc ( A , B ) , _state ( B ) , _loc ( B , C ) , _river ( C ) )"
    assert " ".join(relative(shallow.split())) == "( A+1 , _state ( A+0 ) , _loc ( A+0 , A+1 ) , _river ( A+0 ) )"
    assert relative(shallow.split())[-11:] == relative(deep.split())[-11:]


def test_a_variable_that_is_skipped_and_named_later():
    target = ["_largest", "(", "C", ",", "_area", "(", "B", ",", "C", ")", ")"]
    assert relative(target) == ["_largest", "(", "A+3", ",", "_area", "(", "A-1", ",", "A+0", ")", ")"]
    assert named(relative(target)) == target


def test_both_kinds_count_apart():
    assert relative(["$0", "A", "$1", "$0", "A"]) == ["$+1", "A+1", "$+1", "$-1", "A+0"]


@given(TOKENS)
@example(["$999999999"])
def test_names_come_back(tokens):
    assert named(relative(tokens)) == tokens


def test_distances_from_nowhere_stay():
    assert named(["A+0", "A+1", "A-1", "A+30"]) == ["A+0", "A", "A-1", "A+30"]


def test_datasets():
    data = Dataset.from_pairs([(["x", "A"], ["f", "(", "A", "B", ")"]), (["y"], ["g"])])
    changed, count = relative_targets(data)
    assert changed.pairs() == [(["x", "A"], ["f", "(", "A+1", "A+1", ")"]), (["y"], ["g"])]
    assert count == 1
    back, count, left = named_targets(changed)
    assert (back.pairs(), count, left) == (data.pairs(), 1, 0)
    assert named_targets(Dataset.from_pairs([(["x"], ["A-1", "A+1"])]))[1:] == (1, 1)


@pytest.mark.parametrize(
    ("target", "message"),
    [(["A+1"], "example 2: found 'A\\+1'"), (["a"], "found no variables in targets")],
)
def test_what_cannot_be(target, message):
    with pytest.raises(DataError, match=message):
        relative_targets(Dataset.from_pairs([(["x"], ["a"]), (["x"], target)]))
