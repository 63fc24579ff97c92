"""Omega, the prototypes that may be put together when sampling, in terms of the training neighborhoods (R&R, app. B).

Prototypes are to look like those seen in training: the k-th is no longer than the mean length of k-th prototypes in
the neighborhoods (`mean`, the reference), than that plus one standard deviation (`mean+std`, the paper), or than the
longest of them (`max`, ours: the other two keep out the prototypes that show how the longest answers are made). In
long-long recombination the first holds exactly one token (type) that the second lacks, as the reference codes it. All
pairs of long-short recombination are compatible (the paper's Omega = D x D); like the paper, and unlike the reference,
a sequence may then meet itself, which happens once in |firsts| draws.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import EOS_ID
from compgen.errors import DataError
from compgen.recombine.neighborhoods import Sequences, incidence
from compgen.runtime.pool import PrototypePool

LengthBound = Literal["mean", "mean+std", "max"]


def compatible(
    sequences: Sequences,
    vocabulary: int,
    rows: NDArray[np.int32],
    kind: Literal["long-short", "long-long"],
    bound: LengthBound,
) -> PrototypePool:
    """The pool of all `sequences` with Omega for neighborhoods `rows` (M, 1 + n).

    Raises:
        DataError: no tuple of prototypes is compatible, or more than 2^53 are.
    """
    n = rows.shape[1] - 1
    lengths = np.array([len(sequence) for sequence in sequences])
    groups = []
    for slot in range(1, n + 1):
        seen = lengths[rows[:, slot]]
        limit = {"mean": seen.mean(), "mean+std": seen.mean() + seen.std(), "max": seen.max()}[bound]
        groups.append(np.flatnonzero(lengths <= limit))
    if n >= 2 and kind == "long-long":
        members, starts, counts = _differing_by_one(groups, incidence(sequences, vocabulary))
    else:
        members = np.concatenate([np.empty(0, dtype=np.int64), *groups])
        counts = np.array([[len(group) for group in groups]], dtype=np.int64).reshape(1, n)
        starts = np.cumsum(counts, axis=1) - counts
    filled = counts.prod(axis=1) > 0
    if n and not filled.any():
        raise DataError(f"no compatible prototypes: no {n} of {len(sequences)} training sequences go together ({kind})")
    tokens = np.zeros((len(sequences), int(lengths.max()) + 1), dtype=np.int32)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence) + 1] = [*sequence, EOS_ID]
    pool = PrototypePool(
        tokens,
        members.astype(np.int32),
        starts[filled].astype(np.int64),
        counts[filled].astype(np.int64),
    )
    if pool.too_large:
        raise DataError(f"more than 2^53 tuples of {n} prototypes from {len(sequences):,} sequences: use fewer")
    return pool


def _differing_by_one(
    groups: list[NDArray[np.int64]], table: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Blocks of token sets in which the first holds one token that each other lacks, as (members, starts, counts)."""
    sets, which = np.unique(table, axis=0, return_inverse=True)
    which = which.reshape(-1)
    members, starts, counts, end = [], [], [], 0
    for group in groups:  # the members of each slot, sorted by token set
        order = group[np.argsort(which[group], kind="stable")]
        count = np.bincount(which[order], minlength=len(sets))
        members.append(order)
        counts.append(count)
        starts.append(end + np.cumsum(count) - count)
        end += len(order)
    lacking = sets.sum(axis=1)[:, None] - sets @ sets.T  # tokens of the row's set that the column's lacks
    first, others = np.nonzero(lacking == 1)
    # With n > 2 the further prototypes share the second one's token set, so that a block stays a product.
    index = [first] + [others] * (len(groups) - 1)
    block_counts = np.stack([count[i] for count, i in zip(counts, index, strict=True)], axis=1)
    block_starts = np.stack([start[i] for start, i in zip(starts, index, strict=True)], axis=1)
    return np.concatenate(members), block_starts, block_counts
