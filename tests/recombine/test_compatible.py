"""Which prototypes go together when sampling."""

import numpy as np
import pytest

from compgen.data.vocabulary import SPECIALS, Vocabulary
from compgen.errors import DataError
from compgen.recombine.compatible import compatible

VOCABULARY = Vocabulary([*SPECIALS, *"abcd"])
# Lengths 3, 4, 5 and 9.
SEQUENCES = [[5, 3, 8], [6, 7, 3, 8], [5, 6, 7, 3, 8], [5, 6, 7, 5, 6, 7, 3, 8, 8]]


# Second prototypes of training have 3, 3 and 5 tokens: 3.7 on average, with a standard deviation of 0.9.
ROWS = np.array([[3, 2, 0], [3, 2, 0], [3, 2, 2]], dtype=np.int32)


@pytest.mark.parametrize(("bound", "lengths"), [("mean", {3}), ("mean+std", {3, 4}), ("max", {3, 4, 5})])
def test_prototypes_are_no_longer_than_in_training(bound, lengths):
    pool = compatible(SEQUENCES, VOCABULARY, ROWS, "long-short", bound)
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
def test_omega_is_every_pair_that_goes_together(kind):
    sequences = [[5, 6, 3, 8], [6, 7, 3, 8], [5, 7, 3, 8], [5, 3, 8], [5, 5, 3, 8], [5, 6, 7, 3, 8, 8, 8]]
    pool = compatible(sequences, VOCABULARY, np.array([[0, 1, 2]], dtype=np.int32), kind, "max")
    short = range(5)  # the last is longer than any prototype of training
    lacking = {(a, b): len(set(sequences[a]) - set(sequences[b])) for a in short for b in short}
    assert tuples(pool) == {pair for pair, count in lacking.items() if count == 1 or kind == "long-short"}


@pytest.mark.parametrize(("count", "prototypes"), [(2000, 5), (256, 8), (300, 8)])  # 256^8 is 2^64, and 300^8 more
def test_more_tuples_than_can_be_drawn_are_refused(count, prototypes):
    letters = Vocabulary([*SPECIALS, *map(str, range(2005))])
    many = [[5, 6, 7, 3, 8 + k] for k in range(count)]
    with pytest.raises(DataError, match=f"tuples of {prototypes} prototypes from {count:,} sequences"):
        compatible(many, letters, np.arange(prototypes + 1, dtype=np.int32)[None], "long-short", "max")


def test_words_go_together_if_their_tags_differ_in_one_or_two():
    vocabulary = Vocabulary([*SPECIALS, "N", "PL", "SG", "V", "a"])
    words = [[9, 5, 6, 3, 9], [9, 5, 7, 3, 9], [9, 5, 3, 9], [9, 8, 7, 3, 9], [9, 5, 6, 3, 9, 9]]
    pool = compatible(words, vocabulary, np.array([[0, 4, 4]], dtype=np.int32), "tags", "max")
    tags = [set(word[1 : word.index(3)]) for word in words]
    assert tuples(pool) == {(a, b) for a in range(5) for b in range(5) if 1 <= len(tags[a] ^ tags[b]) <= 2}
