"""Omega, the prototypes that may be put together when sampling, in terms of the training neighborhoods (R&R, app. B).

Prototypes are to look like those seen in training: the k-th is no longer than the mean length of k-th prototypes in
the neighborhoods (`mean`, the reference), than that plus one standard deviation (`mean+std`, the paper), or than the
longest of them (`max`, ours: the other two keep out the prototypes that show how the longest answers are made). In
long-long recombination the first holds exactly one token (type) that the second lacks, as the reference codes it. Words
go together by their tags if these differ, in one or two (the reference; the paper's Omega for words asks for tags that
cover those of an example which is not there yet). All pairs of long-short recombination are compatible (the paper's
Omega = D x D); like the paper, and unlike the reference, a sequence may then meet itself, which happens once in
|firsts| draws.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import EOS_ID, Vocabulary
from compgen.errors import DataError
from compgen.recombine.neighborhoods import Kind, Sequences, incidence, tagged
from compgen.runtime.pool import PrototypePool

LengthBound = Literal["mean", "mean+std", "max"]


def compatible(
    sequences: Sequences,
    vocabulary: Vocabulary,
    rows: NDArray[np.int32],
    kind: Kind,
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
        members, starts, counts = _blocks(groups, incidence(sequences, len(vocabulary)), _lacks_one)
    elif n >= 2 and kind == "tags":
        members, starts, counts = _blocks(groups, tagged(sequences, vocabulary)[1].astype(np.float32), _near)
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


def _lacks_one(sets: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Of which two sets (S, V), 0 or 1, the first holds one token that the second lacks: (S, S)."""
    lacking: NDArray[np.bool_] = sets.sum(axis=1)[:, None] - sets @ sets.T == 1
    return lacking


def _near(sets: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which two sets (S, V), 0 or 1, differ in one or two tokens: (S, S)."""
    sizes = sets.sum(axis=1)
    apart = sizes[:, None] + sizes[None, :] - 2 * (sets @ sets.T)
    near: NDArray[np.bool_] = (apart == 1) | (apart == 2)
    return near


def _blocks(
    groups: list[NDArray[np.int64]],
    table: NDArray[np.float32],
    fits: Callable[[NDArray[np.float32]], NDArray[np.bool_]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Blocks of token sets of which the first fits each other, as (members, starts, counts)."""
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
    first, others = np.nonzero(fits(sets))
    # With n > 2 the further prototypes share the second one's token set, so that a block stays a product.
    index = [first] + [others] * (len(groups) - 1)
    block_counts = np.stack([count[i] for count, i in zip(counts, index, strict=True)], axis=1)
    block_starts = np.stack([start[i] for start, i in zip(starts, index, strict=True)], axis=1)
    return np.concatenate(members), block_starts, block_counts
