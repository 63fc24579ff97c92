"""Which prototypes go together when sampling."""

import numpy as np
import pytest

from compgen.errors import DataError
from compgen.recombine.compatible import compatible, extended

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


def tuples(pool):
    """All of Omega, each tuple once."""
    found = [
        (int(first), int(second))
        for starts, counts in zip(pool.starts, pool.counts, strict=True)
        for first in pool.members[starts[0] : starts[0] + counts[0]]
        for second in pool.members[starts[1] : starts[1] + counts[1]]
    ]
    assert len(found) == len(set(found)) == pool.total
    return set(found)


@pytest.mark.parametrize("kind", ["long-short", "long-long"])
def test_tuples_of_an_extended_pool_hold_something_new_and_are_what_one_pool_of_all_would_have(kind):
    known = [[5, 6, 3, 8], [6, 7, 3, 8], [5, 7, 3, 8], [5, 3, 8]]
    new = [[4, 6, 3, 8], [4, 3, 8], [5, 3, 8]]  # the last is known
    rows = np.array([[0, 1, 2]], dtype=np.int32)
    pool = extended(compatible(known, 9, rows, kind, "max"), new, 9, kind)
    everything = compatible([*known, *new[:2]], 9, rows, kind, "max")
    assert pool.tokens.tolist() == everything.tokens.tolist()

    assert tuples(pool) == {pair for pair in tuples(everything) if max(pair) >= len(known)}
    assert tuples(pool)


def test_more_tuples_than_can_be_drawn_are_refused():
    many = [[5, 6, 7, 3, 8 + k] for k in range(2000)]
    with pytest.raises(DataError, match="tuples of 5 prototypes from 2,000 sequences"):
        compatible(many, 2010, np.array([[0, 1, 2, 3, 4, 5]], dtype=np.int32), "long-short", "max")


def test_further_prototypes_that_are_known_or_too_long_are_refused():
    pool = compatible(SEQUENCES, 9, ROWS, "long-short", "max")
    with pytest.raises(DataError, match="0 of 1 further prototypes are new"):
        extended(pool, SEQUENCES[:1], 9, "long-short")
    with pytest.raises(DataError, match="1 of 1 further prototypes are new"):
        extended(pool, [[5, 6] * 5 + [3, 8]], 9, "long-short")
