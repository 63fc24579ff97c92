"""Sequences of unlike length as one array."""

import numpy as np
import pytest

from compgen.data.padding import padded


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[5, 6, 7], [8], []], [[5, 6, 7], [8, 0, 0], [0, 0, 0]]),
        ([[5]], [[5]]),
        ([[], []], [[], []]),
        ([], np.zeros((0, 0))),
    ],
)
def test_short_sequences_are_filled_up(rows, expected):
    found = padded(rows)
    assert found.dtype == np.int64 and found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


def test_the_filling_can_be_chosen():
    assert padded([[5, 6], [7]], -1).tolist() == [[5, 6], [7, -1]]
