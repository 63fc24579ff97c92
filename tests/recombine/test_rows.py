"""Rows of training examples and prototypes, as the network gets them."""

import numpy as np
import pytest

from compgen.recombine.config import NO_SWAPS, SwapConfig
from compgen.recombine.rows import NeighborhoodExamples, _permuted

# Two sides, 5 to 8 and 9 to 11; 12 is on both. The first prototype of the last row lacks no target of its example.
SEQUENCES = [[5, 6, 3, 9, 10], [6, 7, 12, 3, 10, 11, 12], [5, 7, 8, 3, 9, 11], [8, 6, 3, 10, 9, 10]]
ROWS = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 3, 2]] * 150, dtype=np.int32)


def renamed(before, after):
    """What each token became; checked to be one to one, and to keep to its side."""
    pairs = set(zip(np.ravel(before).tolist(), np.ravel(after).tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    for a, b in pairs:
        assert (a in range(5, 9)) == (b in range(5, 9)) and (a in range(9, 12)) == (b in range(9, 12))
    return dict(pairs)


def collated(swap):
    """For each row: what the first prototype lacks; how it and the example are renamed; how the second one is."""
    plain, swapped = (NeighborhoodExamples(SEQUENCES, ROWS, 8, 0, share) for share in (NO_SWAPS, swap))
    for rows in plain.plan(0):
        (before, memories_before), (after, memories_after) = plain.collate(rows), swapped.collate(rows)
        for row in range(len(rows)):
            lacking = set(before[row].tolist()) - set(memories_before[row, 0].tolist())
            both = [np.append(x[row], m[row, 0]) for x, m in ((before, memories_before), (after, memories_after))]
            yield lacking, renamed(*both), renamed(memories_before[row, 1], memories_after[row, 1])


@pytest.mark.parametrize("share", [(0.5, 0.5), (1.0, 1.0), (0.0, 1.0), (0.5, 0.0)])
def test_second_prototypes_are_renamed_but_for_what_the_first_lacks(share):
    moved = [0, 0]
    for lacking, example, second in collated(SwapConfig(seconds=share)):
        assert all(a == b for a, b in example.items())
        assert all(a == b for a, b in second.items() if a in lacking)
        for a, b in second.items():
            moved[a > 8] += a != b
    assert [count > 20 for count in moved] == [share > 0 for share in share]


def test_targets_of_a_share_of_rows_are_renamed_in_example_and_first_prototype():
    moved = {True: [], False: []}
    for lacking, example, second in collated(SwapConfig(rows=0.5)):
        assert all(a == b for a, b in second.items()) and all(a == b for a, b in example.items() if a < 9)
        moved[any(9 <= token < 12 for token in lacking)].append(any(a != b for a, b in example.items()))
    assert not any(moved[True])  # what the first prototype lacks must be found in the second
    assert 0.3 < np.mean(moved[False]) < 0.5  # half the rows, and one of six orders changes nothing


def test_source_types_change_places_with_their_like_where_targets_do():
    # 5 and 6 are verbs, 7 and 8 directions; 9 stands where directions do, but no target goes with it, nor with 14.
    sources = [[5], [6], *([verb, after] for verb in (5, 6) for after in (7, 8, 9)), [5, 7, 14], [5, 8, 14], [5, 9, 14]]
    sequences = [[*source, 3, *(token + 5 for token in source if token < 9)] for source in sources]
    # Example, first, second prototype. The firsts lack 14, and in the last 200 rows target 12 of the example.
    rows = np.array([[8, 2, 9]] * 100 + [[10, 4, 9]] * 100 + [[2, 0, 5]] * 200, dtype=np.int32)
    plain, swapped = (NeighborhoodExamples(sequences, rows, 8, 0, swap) for swap in (NO_SWAPS, SwapConfig(rows=1.0)))
    seen = set()
    for batch in plain.plan(0):
        (before, first), (after, then) = plain.collate(batch), swapped.collate(batch)
        assert (first[:, 1] == then[:, 1]).all()
        for row, at in enumerate(batch):
            names = dict(zip(np.ravel(before[row]).tolist(), np.ravel(after[row]).tolist(), strict=True))
            assert then[row, 0].tolist() == [names.get(token, token) for token in first[row, 0].tolist()]
            assert at < 200 or all(a == b for a, b in names.items())
            seen |= {(a, b) for a, b in names.items() if 5 <= a < 10 or a == 14}
    assert seen == {(5, 5), (5, 6), (7, 7), (7, 8), (9, 9), (14, 14)}


def test_all_further_prototypes_of_a_row_are_renamed_alike():
    rows = np.array([[0, 1, 2, 2]] * 40, dtype=np.int32)
    swap = SwapConfig(seconds=(1.0, 1.0))
    _, memories = NeighborhoodExamples(SEQUENCES, rows, 8, 0, swap).collate(np.arange(40))
    assert (memories[:, 1] == memories[:, 2]).all()


@pytest.mark.parametrize("example", [[5, 6, 3, 6, 5], [5, 6, 3]])
def test_where_a_side_has_no_types_of_its_own_none_are_permuted(example):
    # Targets of the words of their sources, and sentences, which have no targets.
    sequences = [example, [5, *example], [6, *example]]
    examples = NeighborhoodExamples(sequences, np.array([[0, 1, 2]]), 1, 0, SwapConfig(rows=1.0, seconds=(0.0, 1.0)))
    (sequence,), (memories,) = examples.collate(np.array([0]))
    assert sequence.tolist() == [1, *example, 2] and memories[1].tolist() == [6, *example, 2]


def test_swaps_are_a_function_of_the_rows_so_that_training_can_resume():
    swap = SwapConfig(rows=0.5, seconds=(0.5, 0.5))
    first, again = (NeighborhoodExamples(SEQUENCES, ROWS, 8, 3, swap) for _ in range(2))
    rows = first.plan(2)[1]
    for one, other in zip(first.collate(rows), again.collate(rows), strict=True):
        assert (one == other).all()
    other_seed = NeighborhoodExamples(SEQUENCES, ROWS, 8, 4, swap).collate(rows)
    assert not all((a == b).all() for a, b in zip(first.collate(rows), other_seed, strict=True))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_types_that_are_not_drawn_stay_where_they_are(share):
    """Of many types at once, and in each row others."""
    rng = np.random.default_rng(0)
    types = np.arange(200, 500)
    drawn = rng.random((20, 300)) < share
    swapped = _permuted(types, drawn, rng)
    assert (np.sort(swapped, axis=1) == types).all()
    assert (swapped == types)[~drawn].all()
    assert (swapped != types)[drawn].mean() > 0.9 if share else not drawn.any()
