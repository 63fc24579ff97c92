"""Training of a generator: from a dataset to a checkpoint that can be sampled (R&R, sections 3 and 4, appendix D)."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from compgen.data.examples import Dataset
from compgen.data.random import Purpose, Stream, stream
from compgen.data.vocabulary import BOS_ID, EOS_ID, SEP_ID, SPECIALS, Vocabulary
from compgen.errors import DataError
from compgen.models.build import Trainable
from compgen.models.network import Network
from compgen.recombine.compatible import compatible
from compgen.recombine.config import NO_SWAPS, RecombineConfig, SwapConfig
from compgen.recombine.neighborhoods import Sequences, build, incidence
from compgen.training.checkpoint import Checkpoint
from compgen.training.loop import (
    Outcome,
    Rows,
    bucketed,
    discard_state,
    find_device,
    fingerprint,
    pad,
    require_name,
    train,
)
from compgen.training.memory import check_memory
from compgen.training.seeding import seed_torch

ALIKE = 0.75  # of the neighbours that either of two source types has, the least share that both have in the same places


class NeighborhoodExamples:
    """Rows of (example, prototypes) as batches for the training loop."""

    def __init__(
        self,
        sequences: Sequences,
        rows: NDArray[np.int32],
        batch: int,
        seed: int,
        swap: SwapConfig = NO_SWAPS,
    ) -> None:
        self.rows, self.batch, self.seed, self.swap = rows.astype(np.int64), batch, seed, swap
        self.targets = pad([[BOS_ID, *sequence, EOS_ID] for sequence in sequences])
        self.lengths = np.array([len(sequence) for sequence in sequences])
        sources = {token for sequence in sequences for token in sequence[: sequence.index(SEP_ID)]}
        targets = {token for sequence in sequences for token in sequence[sequence.index(SEP_ID) + 1 :]}
        # Types that both sides use stay in place: no side is theirs.
        self.sides = [np.array(sorted(sources - targets)), np.array(sorted(targets - sources))]
        self.held = incidence(sequences, int(self.targets.max()) + 1) > 0 if swap.used else None
        self.names = [] if self.held is None else interchangeable(sequences, self.held, *self.sides)

    def plan(self, epoch: int) -> list[Rows]:
        """Batches of rows whose examples are of like length, drawn anew for each epoch."""
        rng = stream(Purpose.BATCHES, self.seed, epoch)
        return bucketed(self.lengths[self.rows[:, 0]], self.batch, rng)

    def collate(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Whole examples (B, L) with start and end symbols; prototypes (B, n, T) with the end symbol alone."""
        chosen = self.rows[rows]
        sequences = self.targets[chosen[:, 0], : self.lengths[chosen[:, 0]].max() + 2]
        longest = int(self.lengths[chosen[:, 1:]].max(initial=0)) + 1
        memories = self.targets[chosen[:, 1:], 1 : longest + 1]
        if self.held is not None:
            row = np.arange(len(rows))[:, None]
            places, others = self._places(rows, self.held)
            sequences, memories = places[row, sequences], memories.copy()
            memories[:, 0] = places[row, memories[:, 0]]
            memories[:, 1:] = others[row[:, None], memories[:, 1:]]
        return torch.from_numpy(sequences), torch.from_numpy(memories)

    def _places(self, rows: Rows, held: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What each token becomes in some rows, (B, V): in example and first prototype, and in further prototypes.

        A function of the rows alone, so that training resumes.
        """
        rng = stream(Purpose.SWAPS, self.seed, *rows.tolist())
        places = np.tile(np.arange(held.shape[1]), (len(rows), 1))
        others = places.copy()
        lacking = held[self.rows[rows, 0]] & ~held[self.rows[rows, 1]]
        for side, share in zip(self.sides, self.swap.seconds, strict=True):
            drawn = rng.random((len(rows), len(side))) < share
            others[:, side] = _swapped(side, drawn & ~lacking[:, side], rng)
        chosen = (rng.random(len(rows)) < self.swap.rows) & ~lacking[:, self.sides[1]].any(axis=1)
        for types in (self.sides[1], *self.names):
            places[:, types] = _swapped(types, np.repeat(chosen[:, None], len(types), axis=1), rng)
        return places, others


def interchangeable(
    sequences: Sequences, held: NDArray[np.bool_], sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Groups of source types, such as verbs, that stand in the same places and are named in the target; see ALIKE.

    A type is named there if the examples that hold it are the examples that hold some target type. So whoever lacks
    the one lacks the other.

    Args:
        held: which types an example holds, (N, V).
        sources: the types of sources alone.
        targets: the types of targets alone.
    """
    beside = np.zeros((held.shape[1], 2 * held.shape[1]), dtype=np.float32)  # which types stand before, behind a type
    for sequence in sequences:
        for left, right in pairwise([BOS_ID, *sequence[: sequence.index(SEP_ID) + 1]]):
            beside[right, left] = beside[left, held.shape[1] + right] = 1
    common, count = beside @ beside.T, beside.sum(axis=1)
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


def _swapped(types: NDArray[np.int64], drawn: NDArray[np.bool_], rng: Stream) -> NDArray[np.int64]:
    """What each of some types becomes in each row, (B, T), when those drawn (B, T) change places at random."""
    # Both orders put the types drawn first, in their own order and at random; the others stay where they are.
    own = np.argsort(~drawn, axis=1, kind="stable")
    mixed = np.argsort(np.where(drawn, rng.random(drawn.shape), 1 + np.arange(len(types))), axis=1)
    swapped = np.empty(drawn.shape, dtype=np.int64)
    np.put_along_axis(swapped, own, types[mixed], axis=1)
    return swapped


def as_sequences(dataset: Dataset, vocabulary: Vocabulary, max_tokens: int | None = None) -> Sequences:
    """Distinct examples as id sequences `source SEP target`.

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


def train_generator(
    dataset: Dataset,
    config: RecombineConfig,
    out: Path,
    *,
    seed: int = 0,
    name: str = "",
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> tuple[Checkpoint, Outcome]:
    """Train a generator on all examples of `dataset` and write its checkpoint to `out`.

    Raises:
        DataError: too few examples, or none with prototypes.
        UserError: no such `device` (auto, cpu, cuda), `out` cannot be written, or the network needs too much memory.
    """
    require_name(out)
    device = find_device(device)
    if len(dataset) < config.prototypes + 1:
        raise DataError(f"{len(dataset)} examples are too few for {config.prototypes} prototypes")
    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    check_memory(config.network, len(vocabulary), device)
    sequences = as_sequences(dataset, vocabulary, config.max_tokens)
    rows = build(sequences, vocabulary, config.prototypes, config.neighborhood, seed)
    pool = compatible(sequences, vocabulary, rows, config.neighborhood.kind, config.sampling.length_bound)
    repetitions = np.ones(len(sequences), dtype=np.int64) if config.deduplicate else dataset.repetitions()
    rows = np.repeat(rows, repetitions[rows[:, 0]], axis=0)
    training, held_out = _hold_out(rows, config, seed)
    if not len(training):
        raise DataError(f"held_out = {config.held_out} leaves none of {len(rows):,} neighborhood rows to train on")
    seed_torch(seed)
    network = Network(config.network, len(vocabulary))
    held_by = incidence(sequences, len(vocabulary)).sum(axis=0)
    network.treat_as_unknown(
        [token for token in range(len(SPECIALS), len(vocabulary)) if held_by[token] < config.unknown_below]
    )
    watched = NeighborhoodExamples(sequences, held_out, 256, seed)
    outcome = train(
        network,
        NeighborhoodExamples(sequences, training, config.optimisation.batch, seed, config.swap),
        config.optimisation,
        out,
        identity=fingerprint(config, seed, vocabulary.tokens, sequences, repetitions.tolist()),
        score=(lambda net: per_token_loss(net, watched, device)) if len(held_out) else None,
        resume=resume,
        device=device,
        quiet=quiet,
    )
    checkpoint = Checkpoint(
        kind="generator",
        network=network.cpu().eval(),
        vocabulary=vocabulary,
        config=config.model_dump(mode="json"),
        max_length=int((pool.tokens != 0).sum(axis=1).max()) + 1,
        pool=pool,
        sampling={"temperature": list(config.sampling.temperature)},
        trained_on={
            "data": name,
            "examples": len(sequences),
            "neighborhood_rows": len(rows),
            "compatible_tuples": pool.total,
            "seed": seed,
            "updates": outcome.steps,
            "seconds": round(outcome.seconds, 1),
            "train_loss_nats_per_token": round(outcome.train_loss, 5),
            "held_out_loss_nats_per_token": None if outcome.held_out is None else round(outcome.held_out, 5),
        },
    )
    checkpoint.save(out)
    discard_state(out)
    return checkpoint, outcome


def _hold_out(
    rows: NDArray[np.int32], config: RecombineConfig, seed: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    rng = stream(Purpose.HELD_OUT, seed)
    if config.held_out_by == "row":
        chosen = rng.random(len(rows)) < config.held_out
    else:
        chosen = (rng.random(int(rows[:, 0].max()) + 1) < config.held_out)[rows[:, 0]]
    return rows[~chosen], rows[chosen]


@torch.no_grad()
def per_token_loss(network: Trainable, examples: NeighborhoodExamples, device: str, rows: int = 4096) -> float:
    """Mean negative log-likelihood in nats a token over (at most `rows`) neighborhood rows, in evaluation mode."""
    total, tokens = 0.0, 0
    for batch in examples.plan(0)[: max(1, rows // examples.batch)]:
        sequences, memories = examples.collate(batch)
        total += float(network.loss(sequences.to(device), memories.to(device)).sum())
        tokens += int((sequences[:, 1:] != 0).sum())
    return total / tokens
