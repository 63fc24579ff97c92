"""Rows of training examples and prototypes, as the network gets them."""

import numpy as np
import pytest

from compgen.errors import UserError
from compgen.recombine.generator import NeighborhoodExamples, RecombineConfig
from compgen.training.config import load_config

# Two sides, 5 to 8 and 9 to 11; 12 is on both.
SEQUENCES = [[5, 6, 3, 9, 10], [6, 7, 12, 3, 10, 11, 12], [5, 7, 8, 3, 9, 11]]
ROWS = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]] * 150, dtype=np.int32)


@pytest.mark.parametrize("swap", [(0.5, 0.5), (1.0, 1.0), (0.0, 1.0), (0.5, 0.0)])
def test_second_prototypes_are_renamed_but_for_what_the_first_lacks(swap):
    plain, swapped = (NeighborhoodExamples(SEQUENCES, ROWS, 8, 0, share) for share in ((0.0, 0.0), swap))
    moved = [0, 0]
    for rows in plain.plan(0):
        (before, memories_before), (after, memories_after) = plain.collate(rows), swapped.collate(rows)
        assert (before == after).all() and (memories_before[:, 0] == memories_after[:, 0]).all()
        for row, (old, new) in enumerate(
            zip(memories_before[:, 1].tolist(), memories_after[:, 1].tolist(), strict=True)
        ):
            pairs = set(zip(old, new, strict=True))
            assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})  # one to one
            lacking = set(before[row].tolist()) - set(memories_before[row, 0].tolist())
            for a, b in pairs:
                assert (a in range(5, 9)) == (b in range(5, 9)) and (a in range(9, 12)) == (b in range(9, 12))
                assert a == b or a not in lacking
                moved[a > 8] += a != b
    assert [count > 20 for count in moved] == [share > 0 for share in swap]


def test_all_further_prototypes_of_a_row_are_renamed_alike():
    rows = np.array([[0, 1, 2, 2]] * 40, dtype=np.int32)
    _, memories = NeighborhoodExamples(SEQUENCES, rows, 8, 0, (1.0, 1.0)).collate(np.arange(40))
    assert (memories[:, 1] == memories[:, 2]).all()


def test_renaming_without_second_prototypes_is_refused():
    with pytest.raises(UserError, match="two prototypes"):
        load_config(RecombineConfig, "recombine_small_around_right", ["prototypes=1"])


def test_swaps_are_a_function_of_the_rows_so_that_training_can_resume():
    first, again = (NeighborhoodExamples(SEQUENCES, ROWS, 8, 3, (0.5, 0.5)) for _ in range(2))
    rows = first.plan(2)[1]
    for one, other in zip(first.collate(rows), again.collate(rows), strict=True):
        assert (one == other).all()
    other_seed = NeighborhoodExamples(SEQUENCES, ROWS, 8, 4, (0.5, 0.5)).collate(rows)
    assert not all((a == b).all() for a, b in zip(first.collate(rows), other_seed, strict=True))
