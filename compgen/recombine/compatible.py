"""Omega, the tuples of prototypes that may be put together when sampling (R&R, appendix B).

Prototypes have to look like those seen in training. The k-th is no longer than a statistic of the k-th prototypes in
the neighborhoods: their mean length (`mean`, the reference), mean plus one standard deviation (`mean+std`, the paper),
or the maximum (`max`, ours: the others exclude the prototypes that show how to make the longest answers). By kind:

- long-long: the first prototype holds exactly one token type that the second lacks, as in the reference.
- tags: the tags of two words differ in one or two, as in the reference; the paper's Omega for words asks for tags that
  cover those of an example which does not exist yet.
- long-short: all pairs (the paper's Omega = D x D). As in the paper, and unlike the reference, a sequence may be paired
  with itself, which happens once in |firsts| draws.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compgen.data.padding import padded
from compgen.data.vocabulary import EOS_ID, Vocabulary
from compgen.errors import DataError
from compgen.recombine.neighborhoods import Kind, Sequences, incidence, tagged
from compgen.runtime.pool import PrototypePool

LengthBound = Literal["mean", "mean+std", "max"]


def compatible(
    sequences: Sequences, vocabulary: Vocabulary, rows: NDArray[np.int32], kind: Kind, bound: LengthBound
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
    if n >= 2 and kind != "long-short":
        tokens = incidence(sequences, len(vocabulary)) if kind == "long-long" else tagged(sequences, vocabulary)[1]
        sets, which = np.unique(tokens.astype(np.float32), axis=0, return_inverse=True)  # (S, V), (N)
        members, starts, counts = _blocks(groups, which.reshape(-1), _fitting(sets, kind))
    else:
        members = np.concatenate([np.empty(0, dtype=np.int64), *groups])
        counts = np.array([[len(group) for group in groups]], dtype=np.int64).reshape(1, n)
        starts = np.cumsum(counts, axis=1) - counts
    filled = counts.all(axis=1)  # the product of many large ones has more than 64 bits
    if n and not filled.any():
        raise DataError(f"no compatible prototypes: no {n} of {len(sequences)} training sequences go together ({kind})")
    pool = PrototypePool(
        padded([[*sequence, EOS_ID] for sequence in sequences]).astype(np.int32),
        members.astype(np.int32),
        starts[filled].astype(np.int64),
        counts[filled].astype(np.int64),
    )
    if pool.too_large:
        raise DataError(f"more than 2^53 tuples of {n} prototypes from {len(sequences):,} sequences: use fewer")
    return pool


def _fitting(sets: NDArray[np.float32], kind: Kind) -> NDArray[np.bool_]:
    """Whether two sets (S, V), 0 or 1, may be those of first and second prototypes: (S, S)."""
    sizes, common = sets.sum(axis=1), sets @ sets.T
    lacking = sizes[:, None] - common  # tokens of the first that the second lacks
    if kind == "long-long":
        return np.asarray(lacking == 1)
    apart = lacking + sizes[None, :] - common
    return np.asarray((apart == 1) | (apart == 2))


def _blocks(
    groups: list[NDArray[np.int64]], which: NDArray[np.int64], fitting: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Omega as blocks, one for each two sets of tokens that fit: (members, starts, counts), see `PrototypePool`.

    Args:
        groups: the sequences allowed in each slot.
        which: the set of each sequence (N).
        fitting: see `_fitting`.
    """
    members, starts, counts, end = [], [], [], 0
    for group in groups:  # the members of each slot, sorted by set
        order = group[np.argsort(which[group], kind="stable")]
        count = np.bincount(which[order], minlength=len(fitting))
        members.append(order)
        counts.append(count)
        starts.append(end + np.cumsum(count) - count)
        end += len(order)
    first, others = np.nonzero(fitting)
    # With n > 2 further prototypes have the second one's set, so that a block remains a product.
    index = [first] + [others] * (len(groups) - 1)
    block_starts, block_counts = (
        np.stack([part[i] for part, i in zip(parts, index, strict=True)], axis=1) for parts in (starts, counts)
    )
    return np.concatenate(members), block_starts, block_counts
