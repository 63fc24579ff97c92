"""Which prototypes an address has: ranks of a union of products, turned into places by arithmetic."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data import random
from compgen.runtime.pool import PrototypePool


def pool(members, starts, counts):
    tokens = np.array([[5, 3, 6, 2]] * (max(members, default=0) + 1), dtype=np.int32)
    arrays = (np.array(members, dtype=np.int32), np.array(starts, dtype=np.int64), np.array(counts, dtype=np.int64))
    return PrototypePool(tokens, *arrays)


MEMBERS = [7, 4, 9, 1, 0, 3, 8]
BLOCKS = st.integers(1, 3).flatmap(  # of each block n groups, as start and count
    lambda n: st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=n, max_size=n), min_size=1, max_size=4
    )
)


def of_blocks(blocks):
    """The pool, and its tuples in order of rank."""
    made = pool(MEMBERS, *([[group[part] for group in block] for block in blocks] for part in (0, 1)))
    return made, [
        tuples
        for block in blocks
        for tuples in itertools.product(*(MEMBERS[start : start + count] for start, count in block))
    ]


def tuples_of(made):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "ranks", lambda _seed, samples, _total: samples)
        return [tuple(row) for row in made.choose(0, np.arange(made.total)).tolist()]


@given(BLOCKS)
def test_every_tuple_of_every_block_has_one_rank(blocks):
    """All ranks in order give the blocks one after the other, the last group's members changing first."""
    made, expected = of_blocks(blocks)
    assert made.total == len(expected) and not made.too_large
    assert tuples_of(made) == expected


@given(BLOCKS, st.sets(st.sampled_from(MEMBERS)))
def test_the_tuples_that_hold_a_wanted_member_are_drawn_from_alone(blocks, wanted):
    made, tuples = of_blocks(blocks)
    found = made.holding(np.isin(np.arange(10), list(wanted)))
    assert sorted(tuples_of(found)) == sorted(one for one in tuples if wanted & set(one))
    assert (found.tokens is made.tokens) and found.longest == made.longest


def test_omega_may_have_as_many_tuples_as_53_bits_tell_apart():
    assert not pool([0], [[0, 0]], [[2**26, 2**27]]).too_large
    assert pool([0], [[0, 0], [0, 0]], [[2**26, 2**27], [2, 1]]).too_large


def test_the_longest_is_of_those_that_can_be_prototypes():
    tokens = np.array([[5, 3, 6, 2, 0], [5, 3, 6, 7, 2]], dtype=np.int32)
    nothing = np.zeros((1, 0), dtype=np.int64)
    assert PrototypePool(tokens, np.array([0], dtype=np.int32), nothing, nothing).longest == 4
    assert PrototypePool(tokens, np.array([], dtype=np.int32), nothing, nothing).longest == 1
    assert PrototypePool(tokens, np.array([0], dtype=np.int32), nothing, nothing).choose(0, np.arange(3)).shape == (
        3,
        0,
    )
