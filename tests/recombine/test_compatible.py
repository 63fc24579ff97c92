"""Which prototypes go together when sampling."""

import numpy as np
import pytest

from compgen.recombine.compatible import compatible

# Lengths 3, 4, 5 and 9.
SEQUENCES = [[5, 3, 8], [6, 7, 3, 8], [5, 6, 7, 3, 8], [5, 6, 7, 5, 6, 7, 3, 8, 8]]


# Second prototypes of training have 3, 3 and 5 tokens: 3.7 on average, with a standard deviation of 0.9.
ROWS = np.array([[3, 2, 0], [3, 2, 0], [3, 2, 2]], dtype=np.int32)


@pytest.mark.parametrize(("bound", "lengths"), [("mean", {3}), ("mean+std", {3, 4}), ("max", {3, 4, 5})])
def test_prototypes_are_no_longer_than_in_training(bound, lengths):
    pool = compatible(SEQUENCES, 9, ROWS, "long-short", bound)
    chosen = pool.choose(0, np.arange(500))
    assert {len(SEQUENCES[second]) for second in chosen[:, 1].tolist()} == lengths
    assert {len(SEQUENCES[first]) for first in chosen[:, 0].tolist()} == {3, 4, 5}
