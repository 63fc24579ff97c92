"""Training of a generator: from a dataset to a checkpoint that can be sampled (R&R, sections 3 and 4, appendix D)."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.data.vocabulary import BOS_ID, EOS_ID, SEP_ID, SPECIALS, Vocabulary
from compgen.errors import DataError
from compgen.files import require_name
from compgen.models.network import Network
from compgen.models.seeding import draws_alone, seed_torch
from compgen.models.trainable import Trainable
from compgen.progress import note
from compgen.recombine.compatible import compatible
from compgen.recombine.config import RecombineConfig
from compgen.recombine.neighborhoods import Sequences, build, incidence
from compgen.recombine.pace import paced
from compgen.recombine.rows import NeighborhoodExamples, as_sequences
from compgen.recombine.settings import settings
from compgen.runtime.pool import PrototypePool
from compgen.trained.architectures import architecture
from compgen.trained.checkpoint import Checkpoint
from compgen.training.identity import fingerprint
from compgen.training.loop import Outcome, discard_state, find_device, train
from compgen.training.memory import check_memory

BIGRAMS = 0.6  # a generator with more than this share of a bigram model's loss counts as undertrained


@torch.inference_mode(False)  # gradients, even where the caller has turned them off
@draws_alone()
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

    With `config.auto`, settings are found first (see `settings`), and what was found is printed unless `quiet`.

    Raises:
        DataError: too few examples, or none with prototypes.
        UserError: no such device (auto, cpu, cuda), no way to write `out`, or too little memory.
    """
    require_name(out, ".pt")
    device = find_device(device)
    _check_size(dataset, config)
    asked, (config, found) = config, _settled(config, dataset, quiet)
    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    entry = architecture("recurrent")
    check_memory(lambda: entry.build(config.network, len(vocabulary)), entry.memory, device)
    sequences = as_sequences(dataset, vocabulary, config.max_tokens)
    repetitions = np.ones(len(sequences), dtype=np.int64) if config.deduplicate else dataset.repetitions()
    rows, pool = _neighborhoods(sequences, vocabulary, repetitions, config, seed)
    training, held_out = _hold_out(rows, config, seed)
    network = _network(config, sequences, len(vocabulary), seed)
    watched = NeighborhoodExamples(sequences, held_out, 256, seed)
    examples = NeighborhoodExamples(sequences, training, config.optimisation.batch, seed, config.swap)
    config, pace = paced(asked, config, network, examples, out, resume=resume, device=device, quiet=quiet)
    found |= {"settings": f"{found['settings']}; {pace}"} if pace else {}
    outcome = train(
        network,
        examples,
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
        trained_on={"data": name, "examples": len(sequences), "neighborhood_rows": len(rows)}
        | {"compatible_tuples": pool.total, "seed": seed, **_figures(outcome, sequences, config.prototypes), **found},
    )
    checkpoint.save(out)
    discard_state(out)
    return checkpoint, outcome


def _check_size(dataset: Dataset, config: RecombineConfig) -> None:
    """Raise DataError if there are too few examples for one with its prototypes."""
    if len(dataset) < config.prototypes + 1:
        found = f"found {len(dataset)} example{'s' * (len(dataset) != 1)}"
        wanted = f"expected {config.prototypes + 1} or more: one is learned from {config.prototypes} others"
        raise DataError(f"{found}, {wanted}")


def _neighborhoods(
    sequences: Sequences, vocabulary: Vocabulary, repetitions: NDArray[np.int64], config: RecombineConfig, seed: int
) -> tuple[NDArray[np.int32], PrototypePool]:
    """Rows of an example and its prototypes (M, 1 + n), repeated as often as the example, and the pool to draw from."""
    rows = build(sequences, vocabulary, config.prototypes, config.neighborhood, seed)
    pool = compatible(sequences, vocabulary, rows, config.neighborhood.kind, config.sampling.length_bound)
    return np.repeat(rows, repetitions[rows[:, 0]], axis=0), pool


def _settled(config: RecombineConfig, dataset: Dataset, quiet: bool) -> tuple[RecombineConfig, dict[str, str]]:
    """The configuration, completed from the data if it is `auto`; and what was found, in words, under `settings`."""
    if not config.auto:
        return config, {}
    config, reasons = settings(dataset, config.minutes, config.values_set)
    note(f"settings: {'; '.join(reasons)}", quiet)
    return config, {"settings": "; ".join(reasons)}


def _hold_out(
    rows: NDArray[np.int32], config: RecombineConfig, seed: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Split rows into those to train on and those to watch training by.

    Raises:
        DataError: no row is left to train on.
    """
    group = np.arange(len(rows)) if config.held_out_by == "row" else rows[:, 0]
    chosen = (stream(Purpose.HELD_OUT, seed).random(int(group.max()) + 1) < config.held_out)[group]
    if chosen.all():
        raise DataError(f"held_out = {config.held_out} leaves none of {len(rows):,} neighborhood rows to train on")
    return rows[~chosen], rows[chosen]


def _network(config: RecombineConfig, sequences: Sequences, vocabulary: int, seed: int) -> Network:
    """A fresh network, to which rare tokens are unknown."""
    seed_torch(seed)
    network = Network(config.network, vocabulary)
    held_by = incidence(sequences, vocabulary).sum(axis=0)  # (V), the number of examples
    network.treat_as_unknown(
        [token for token in range(len(SPECIALS), vocabulary) if held_by[token] < config.unknown_below]
    )
    return network


def _figures(outcome: Outcome, sequences: Sequences, prototypes: int) -> dict[str, Any]:
    """The outcome of training, for the checkpoint's record; with a `warning` if there is one."""
    return {
        "updates": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "train_loss_nats_per_token": round(outcome.train_loss, 5),
        "held_out_loss_nats_per_token": None if outcome.held_out is None else round(outcome.held_out, 5),
        **_warning(outcome, sequences, prototypes),
    }


def _warning(outcome: Outcome, sequences: Sequences, prototypes: int) -> dict[str, str]:
    """A warning, under that key, if the loss is not far below that of a bigram model; else nothing.

    On SCAN jump the loss crosses BIGRAMS of it after some 500 updates, and samples are good from 1,000 on. On few
    examples the held-out loss may stay above it, however low the training loss. A language model, which has sentences
    and no prototypes, is not compared: most bigrams of a text occur once, and their counts know the text by heart.
    """
    trouble = {"warning": outcome.trouble} if outcome.trouble else {}
    if not prototypes and all(sequence[-1] == SEP_ID for sequence in sequences):
        return trouble
    trivial, loss = bigram_loss(sequences), outcome.train_loss
    limit, held_out = BIGRAMS * trivial, loss if outcome.held_out is None else outcome.held_out
    beside = f"that of bigram counts is {trivial:.2f}, and a good generator has less than {limit:.2f}"
    if min(loss, held_out) > limit:
        loss = min(loss, held_out)
        steps = f"train longer (optimisation.steps, now {outcome.steps:,})"
        return {"warning": f"the generator is undertrained: its loss is {loss:.2f} nats a token, {beside}: {steps}"}
    if held_out > limit:
        advice = "look at samples before you train on them, give more examples, or train longer (more --minutes)"
        few = f"the examples are few to learn from: the held-out loss is {held_out:.2f} nats a token, {beside}"
        return {"warning": f"{few}; the training loss is {loss:.2f}: {advice}"}
    return trouble


def bigram_loss(sequences: Sequences) -> float:
    """The loss in nats a token of the trivial model p(b | a) = count(ab) / count(a), on what it was counted on."""
    pairs = [pair for sequence in sequences for pair in pairwise([BOS_ID, *sequence, EOS_ID])]
    firsts, both = Counter(first for first, _ in pairs), Counter(pairs)
    return sum(count * math.log(firsts[pair[0]] / count) for pair, count in both.items()) / len(pairs)


@torch.no_grad()
def per_token_loss(network: Trainable, examples: NeighborhoodExamples, device: str, rows: int = 4096) -> float:
    """Mean negative log-likelihood in nats per token, over at most `rows` neighborhood rows in whole batches."""
    total, tokens = 0.0, 0
    for batch in examples.plan(0)[: max(1, rows // examples.batch)]:
        sequences, memories = examples.collate(batch)
        total += float(network.loss(sequences.to(device), memories.to(device)).sum())
        tokens += int((sequences[:, 1:] != 0).sum())
    return total / tokens
