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
    pool = _pool(sequences, vocabulary, [groups], kind)
    if n and not pool.total:
        raise DataError(f"no compatible prototypes: no {n} of {len(sequences)} training sequences go together ({kind})")
    return pool


def extended(
    pool: PrototypePool, sequences: Sequences, vocabulary: int, kind: Literal["long-short", "long-long"]
) -> PrototypePool:
    """A pool that further sequences have joined, whose Omega has the tuples that hold at least one of them.

    In each slot they may be as long as the longest prototype that the pool has there. Not in the paper: samples that
    become prototypes bring their novelty along, so that what is new in one place can be combined with what is new in
    another.

    Raises:
        DataError: nothing new, or no compatible tuple holds any of it, or more than 2^53 do.
    """
    known = [row[row != 0][:-1].tolist() for row in pool.tokens]
    together = list(map(list, dict.fromkeys(map(tuple, [*known, *sequences]))))
    lengths, fresh = np.array([len(one) for one in together]), np.arange(len(together)) >= len(known)
    groups = [np.flatnonzero(lengths <= limit) for limit in _longest(pool)]
    # Tuples are told apart by the first slot that has something new: before it all is old, behind it all may be.
    parts = [
        [
            group[~fresh[group]] if k < slot else group[fresh[group]] if k == slot else group
            for k, group in enumerate(groups)
        ]
        for slot in range(len(groups))
    ]
    joined = _pool(together, vocabulary, parts, kind)
    if not joined.total:
        raise DataError(
            f"{int(fresh.sum()):,} of {len(sequences):,} further prototypes are new to the pool, and none goes "
            "together with any: expected pairs that training lacks, no longer than its prototypes"
        )
    return joined


def _longest(pool: PrototypePool) -> list[int]:
    """The length of the longest prototype of each slot, without the end symbol."""
    lengths = (pool.tokens[pool.members] != 0).sum(axis=1) - 1
    found = []
    for starts, counts in zip(pool.starts.T, pool.counts.T, strict=True):
        edges = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.add.at(edges, starts, 1)
        np.add.at(edges, starts + counts, -1)
        found.append(int(lengths[edges.cumsum()[:-1] > 0].max(initial=0)))
    return found


def _pool(
    sequences: Sequences,
    vocabulary: int,
    parts: list[list[NDArray[np.int64]]],
    kind: Literal["long-short", "long-long"],
) -> PrototypePool:
    """The pool of `sequences` whose Omega is the union of some parts: each has the candidates for each slot."""
    tokens = np.zeros((len(sequences), max(map(len, sequences)) + 1), dtype=np.int32)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence) + 1] = [*sequence, EOS_ID]
    members, starts, counts, end = [np.empty(0, dtype=np.int64)], [], [], 0
    for groups in parts:
        if len(groups) >= 2 and kind == "long-long":
            these, begin, size = _differing_by_one(groups, incidence(sequences, vocabulary))
        else:
            these = np.concatenate([np.empty(0, dtype=np.int64), *groups])
            size = np.array([[len(group) for group in groups]], dtype=np.int64).reshape(1, len(groups))
            begin = np.cumsum(size, axis=1) - size
        filled = size.prod(axis=1) > 0
        members.append(these)
        starts.append(end + begin[filled])
        counts.append(size[filled])
        end += len(these)
    pool = PrototypePool(
        tokens,
        np.concatenate(members).astype(np.int32),
        np.concatenate(starts).astype(np.int64),
        np.concatenate(counts).astype(np.int64),
    )
    if pool.too_large:
        n = pool.prototypes
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
