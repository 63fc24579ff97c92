"""Rows of training examples and prototypes, as the network gets them."""

import numpy as np
import pytest

from compgen.recombine.generator import NeighborhoodExamples

# Two sides, 5 to 8 and 9 to 11; 12 is on both.
SEQUENCES = [[5, 6, 3, 9, 10], [6, 7, 12, 3, 10, 11, 12], [5, 7, 8, 3, 9, 11]]
ROWS = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]] * 50, dtype=np.int32)


@pytest.mark.parametrize("swap", [(0.3, 0.3), (1.0, 1.0), (0.0, 1.0), (0.5, 0.0)])
def test_swapped_tokens_keep_their_side_and_agree_over_a_row(swap):
    plain, swapped = (NeighborhoodExamples(SEQUENCES, ROWS, 8, 0, share) for share in ((0.0, 0.0), swap))
    moved = [0, 0]
    for rows in plain.plan(0):
        (before, memories_before), (after, memories_after) = plain.collate(rows), swapped.collate(rows)
        for row in range(len(rows)):
            old = np.concatenate([before[row], memories_before[row].reshape(-1)])
            new = np.concatenate([after[row], memories_after[row].reshape(-1)])
            pairs = set(zip(old.tolist(), new.tolist(), strict=True))
            assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})  # one to one
            for a, b in pairs:
                assert (a in range(5, 9)) == (b in range(5, 9)) and (a in range(9, 12)) == (b in range(9, 12))
                moved[a > 8] += a != b
    assert [count > 20 for count in moved] == [share > 0 for share in swap]


def test_swaps_are_a_function_of_the_rows_so_that_training_can_resume():
    first, again = (NeighborhoodExamples(SEQUENCES, ROWS, 8, 3, (0.5, 0.5)) for _ in range(2))
    rows = first.plan(2)[1]
    for one, other in zip(first.collate(rows), again.collate(rows), strict=True):
        assert (one == other).all()
    other_seed = NeighborhoodExamples(SEQUENCES, ROWS, 8, 4, (0.5, 0.5)).collate(rows)
    assert not all((a == b).all() for a, b in zip(first.collate(rows), other_seed, strict=True))
