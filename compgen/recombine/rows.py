"""Rows of an example and its prototypes, as batches for training."""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from compgen.data.examples import Dataset
from compgen.data.padding import padded
from compgen.data.random import Purpose, Stream, stream
from compgen.data.vocabulary import BOS_ID, EOS_ID, SEP_ID, Vocabulary
from compgen.errors import DataError
from compgen.recombine.config import NO_SWAPS, SwapConfig
from compgen.recombine.neighborhoods import Sequences, incidence
from compgen.training.batches import Rows, bucketed

ALIKE = 0.75  # least Jaccard similarity of the neighboring types of two source types that are interchangeable


class NeighborhoodExamples:
    """Rows (M, 1 + n) of an example and its prototypes as batches for the training loop."""

    def __init__(
        self, sequences: Sequences, rows: NDArray[np.int32], batch: int, seed: int, swap: SwapConfig = NO_SWAPS
    ) -> None:
        self.rows, self.batch, self.seed, self.swap = rows.astype(np.int64), batch, seed, swap
        self.chosen: dict[int, list[int]] = {}
        self.targets = padded([[BOS_ID, *sequence, EOS_ID] for sequence in sequences])  # (N, L)
        self.lengths = np.array([len(sequence) for sequence in sequences])
        sources = {token for sequence in sequences for token in sequence[: sequence.index(SEP_ID)]}
        targets = {token for sequence in sequences for token in sequence[sequence.index(SEP_ID) + 1 :]}
        # Types of both sides are never permuted.
        self.sides = [np.array(sorted(own), dtype=np.int64) for own in (sources - targets, targets - sources)]
        self.held = incidence(sequences, int(self.targets.max()) + 1) > 0 if swap.used else None  # (N, V)
        self.names = [] if self.held is None else interchangeable(sequences, self.held, *self.sides)

    def plan(self, epoch: int) -> list[Rows]:
        """Batches of rows whose examples have similar lengths, drawn anew for each epoch."""
        rng = stream(Purpose.BATCHES, self.seed, epoch)
        return bucketed(self.lengths[self.rows[:, 0]], self.batch, rng)

    def collate(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Examples (B, L) with start and end symbols, and prototypes (B, n, T) with end symbols."""
        chosen = self.rows[rows]  # (B, 1 + n)
        sequences = self.targets[chosen[:, 0], : self.lengths[chosen[:, 0]].max() + 2]  # (B, L)
        longest = int(self.lengths[chosen[:, 1:]].max(initial=0)) + 1
        memories = self.targets[chosen[:, 1:], 1 : longest + 1]  # (B, n, T)
        if self.held is not None:
            row = np.arange(len(rows))[:, None]
            first, others = self._permutations(rows, self.held)
            sequences, memories = first[row, sequences], memories.copy()
            memories[:, 0] = first[row, memories[:, 0]]
            memories[:, 1:] = others[row[:, None], memories[:, 1:]]
        return torch.from_numpy(sequences), torch.from_numpy(memories)

    def _permutations(self, rows: Rows, held: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The new type of each type, (B, V): in example and first prototype, and in further prototypes.

        The result is a function of the rows alone, so that training can resume.
        """
        rng = stream(Purpose.SWAPS, self.seed, *rows.tolist())
        first = np.tile(np.arange(held.shape[1]), (len(rows), 1))  # (B, V)
        others = first.copy()
        lacking = held[self.rows[rows, 0]] & ~held[self.rows[rows, 1]]  # (B, V): in the example, not in d1
        for side, share in zip(self.sides, self.swap.seconds, strict=True):
            drawn = rng.random((len(rows), len(side))) < share
            others[:, side] = _permuted(side, drawn & ~lacking[:, side], rng)
        chosen = (rng.random(len(rows)) < self.swap.rows) & ~lacking[:, self.sides[1]].any(axis=1)  # (B)
        for types in (self.sides[1], *self.names):
            first[:, types] = _permuted(types, np.repeat(chosen[:, None], len(types), axis=1), rng)
        return first, others


def interchangeable(
    sequences: Sequences, held: NDArray[np.bool_], sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Find groups of source types, such as verbs, with similar neighbors (see ALIKE) and a name in the target.

    A source type has a name in the target if some target type is in exactly the same examples. Then a sequence that
    lacks the one lacks the other.

    Args:
        held: the types of each example, (N, V).
        sources: the types of sources alone.
        targets: the types of targets alone.
    """
    beside = np.zeros((held.shape[1], 2 * held.shape[1]), dtype=np.float32)  # (V, 2V): types before it, types after it
    for sequence in sequences:
        for left, right in pairwise([BOS_ID, *sequence[: sequence.index(SEP_ID) + 1]]):
            beside[right, left] = beside[left, held.shape[1] + right] = 1
    common, count = beside @ beside.T, beside.sum(axis=1)  # (V, V), (V)
    alike = common >= ALIKE * (count[:, None] + count - common)
    named = [source for source in sources if (held[:, [source]] == held[:, targets]).all(axis=0).any()]
    groups: list[list[int]] = []
    for token in named:
        group = next((group for group in groups if alike[token, group].all()), None)
        if group is None:
            groups.append([token])
        else:
            group.append(token)
    return [np.array(group) for group in groups if len(group) > 1]


def _permuted(types: NDArray[np.int64], drawn: NDArray[np.bool_], rng: Stream) -> NDArray[np.int64]:
    """The new type of each of some types (T) in each row, (B, T): those drawn (B, T) are permuted at random.

    row[drawn] = random.permutation(row[drawn])  for each row
    """
    # Both orders put the drawn types first: in their own order, and at random.
    own = np.argsort(~drawn, axis=1, kind="stable")
    mixed = np.argsort(np.where(drawn, rng.random(drawn.shape), 1 + np.arange(len(types))), axis=1)
    permuted = np.empty(drawn.shape, dtype=np.int64)
    np.put_along_axis(permuted, own, types[mixed], axis=1)
    return permuted


def as_sequences(dataset: Dataset, vocabulary: Vocabulary, max_tokens: int | None = None) -> Sequences:
    """The distinct examples as id sequences `source SEP target`.

    Raises:
        DataError: `max_tokens` leaves some example no target.
    """
    pairs = dataset.unique().pairs()
    longest = max((len(source) for source, _ in pairs), default=0)
    if max_tokens is not None and longest + 2 > max_tokens:
        raise DataError(
            f"max_tokens = {max_tokens} cuts sequences before their target: a source has {longest} tokens, and the "
            f"separator and a token of the target come after it; set max_tokens to {longest + 2} or more"
        )
    return [[*vocabulary.encode(source), SEP_ID, *vocabulary.encode(target)][:max_tokens] for source, target in pairs]
