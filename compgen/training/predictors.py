"""Training of a predictor of targets from sources, on original data alone or with augmented data."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import create_model
from torch import Tensor

from compgen.data.examples import Dataset
from compgen.data.padding import padded
from compgen.data.random import Purpose, Stream, stream
from compgen.data.vocabulary import BOS_ID, EOS_ID, Vocabulary
from compgen.errors import DataError
from compgen.models.seeding import seed_torch
from compgen.models.trainable import Trainable
from compgen.trained.architectures import architecture, require_name
from compgen.trained.checkpoint import Checkpoint
from compgen.training.config import NetworkPredictorConfig, PredictorConfig, Seq2SeqConfig, TransformerConfig
from compgen.training.loop import (
    Identity,
    Outcome,
    Rows,
    bucketed,
    discard_state,
    find_device,
    fingerprint,
    train,
)
from compgen.training.memory import check_memory

Pairs = list[tuple[list[int], list[int]]]


class PairExamples:
    """Original and augmented pairs as batches.

    Without `p_aug` an epoch is their union. With it, an example is an augmented one with that probability: an epoch
    holds every original once (the reference's mixture) and augmented pairs, shuffled and cycled.
    """

    def __init__(self, original: Pairs, augmented: Pairs, p_aug: float | None, batch: int, seed: int) -> None:
        pairs = original + augmented
        self.original, self.augmented, self.p_aug = len(original), len(augmented), p_aug if augmented else None
        self.batch, self.seed = batch, seed
        self.targets = padded([[BOS_ID, *target, EOS_ID] for _, target in pairs])
        self.sources = padded([[*source, EOS_ID] for source, _ in pairs])
        self.source_lengths = np.array([len(source) + 1 for source, _ in pairs])
        self.target_lengths = np.array([len(target) + 2 for _, target in pairs])

    def plan(self, epoch: int) -> list[Rows]:
        """The epoch's rows, in batches of like target length."""
        rng = stream(Purpose.BATCHES, self.seed, epoch)
        rows = self._mixture(rng) if self.p_aug is not None else np.arange(self.original + self.augmented)
        return [rows[batch] for batch in bucketed(self.target_lengths[rows], self.batch, rng)]

    def _mixture(self, rng: Stream) -> NDArray[np.int64]:
        assert self.p_aug is not None
        drawn = round(self.original * self.p_aug / (1 - self.p_aug))
        cycles = -(-drawn // self.augmented)
        order = np.concatenate([rng.permutation(self.augmented) for _ in range(max(1, cycles))])[:drawn]
        return np.concatenate([np.arange(self.original), self.original + order])

    def collate(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Targets (B, L) with start and end symbols, and sources (B, 1, T)."""
        targets = self.targets[rows, : self.target_lengths[rows].max()]
        sources = self.sources[rows, : self.source_lengths[rows].max()]
        return torch.from_numpy(targets), torch.from_numpy(sources[:, None])


def config_of(tag: str) -> type[NetworkPredictorConfig]:
    """Return the configuration of training a predictor of some architecture: common settings, and its `network`."""
    for known in (Seq2SeqConfig, TransformerConfig):
        if known.architecture == tag:
            return known
    network: Any = architecture(tag).configuration({})
    made = create_model(f"{tag.title()}Config", __base__=NetworkPredictorConfig, network=(type(network), network))
    made.architecture = tag
    return made


def train_predictor(
    dataset: Dataset,
    config: NetworkPredictorConfig,
    out: Path,
    *,
    augmented: Dataset | None = None,
    seed: int = 0,
    name: str = "",
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> tuple[Checkpoint, Outcome]:
    """Train a predictor on all examples of `dataset` (and of `augmented`) and write its checkpoint to `out`.

    Shares of the distinct original pairs (`held_out`) and of the augmented ones (`held_out_augmented`) are held out to
    watch training. A predictor that copies (`network.copying`) can copy words that it meets after training too, which
    it learns by `network.token_dropout`.

    Raises:
        DataError: no examples, none with a target, or `p_aug` or `held_out_augmented` without augmented data.
        UserError: no such `device` (auto, cpu, cuda), `out` cannot be written, or the network needs too much memory.
    """
    require_name(out)
    device = find_device(device)
    check_examples(config, dataset, augmented)
    more = augmented if augmented is not None else Dataset.from_pairs([])
    entry, settings = architecture(config.architecture), config.network
    tokens = (side for pair in dataset.pairs() + more.pairs() for side in pair)
    vocabulary = Vocabulary.of(tokens, spares=entry.spares(settings))
    original = _ids(dataset.unique() if config.deduplicate else dataset, vocabulary)
    added = _ids(more, vocabulary)
    check_memory(lambda: entry.build(settings, len(vocabulary)), entry.memory, device)
    seed_torch(seed)
    network = entry.build(settings, len(vocabulary))
    entry.prepare(network, vocabulary)
    identity = fingerprint(config, seed, vocabulary.tokens, original, added)
    outcome = fit(network, original, added, config, out, identity, seed=seed, resume=resume, device=device, quiet=quiet)
    longest = max(len(target) for _, target in original + added)
    checkpoint = Checkpoint(
        kind="predictor",
        network=network.cpu().eval(),
        vocabulary=vocabulary,
        config=config.model_dump(mode="json"),
        max_length=config.max_length or 2 * longest + 1,
        trained_on=report(name, original, added, seed, outcome),
    )
    checkpoint.save(out)
    discard_state(out)
    return checkpoint, outcome


def check_examples(config: PredictorConfig, dataset: Dataset, augmented: Dataset | None) -> None:
    """Raise DataError for sentences in place of pairs, or for settings of augmented examples if there are none."""
    if len(dataset) and not (dataset.frame["target"].list.len() > 0).any():
        raise DataError(
            "found sentences, expected pairs: a predictor learns targets from sources; for language models see "
            "`cgen lm train` and `cgen train recombine --config rnnlm_small`"
        )
    if augmented is None and "p_aug" in config.model_fields_set and config.p_aug is not None:
        raise DataError("p_aug says how often to draw augmented examples, but no augmented data was given")
    if augmented is None and config.held_out_augmented:
        raise DataError("held_out_augmented holds out augmented examples, but no augmented data was given")


def fit(
    network: Trainable,
    original: Pairs,
    added: Pairs,
    config: PredictorConfig,
    out: Path,
    identity: Identity,
    *,
    seed: int,
    resume: bool,
    device: str,
    quiet: bool,
) -> Outcome:
    """Train a network on pairs of ids, of which shares are held out; see `train_predictor`."""
    training, watched = _divided(original, config.held_out, stream(Purpose.HELD_OUT, seed))
    more, watched_more = _divided(added, config.held_out_augmented, stream(Purpose.HELD_OUT_AUGMENTED, seed))
    watched += watched_more
    if not training:
        raise DataError(f"{len(original)} examples leave nothing to train on")
    if added and not more:
        raise DataError(f"held_out_augmented = {config.held_out_augmented} leaves none of {len(added)} to train on")
    held_out = PairExamples(watched, [], None, 256, seed) if watched else None
    return train(
        network,
        PairExamples(training, more, config.p_aug, config.optimisation.batch, seed),
        config.optimisation,
        out,
        identity=identity,
        score=(lambda net: error_rate(net, held_out, device)) if held_out is not None else None,
        resume=resume,
        device=device,
        quiet=quiet,
    )


def _divided(pairs: Pairs, share: float, rng: Stream) -> tuple[Pairs, Pairs]:
    """Return the pairs to train on, and the share that is held out."""
    held = rng.random(len(pairs)) < share
    kept, out = ([pair for pair, one in zip(pairs, held, strict=True) if one == which] for which in (False, True))
    return kept, out


def report(name: str, original: Pairs, added: Pairs, seed: int, outcome: Outcome) -> dict[str, Any]:
    """Return what a predictor was trained on, and the result, as JSON-able values."""
    return {
        "data": name,
        "examples": len(original),
        "augmented_examples": len(added),
        "seed": seed,
        "updates": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "train_loss_nats_per_token": round(outcome.train_loss, 5),
        "held_out_error_rate": None if outcome.held_out is None else round(outcome.held_out, 5),
    }


def _ids(dataset: Dataset, vocabulary: Vocabulary) -> Pairs:
    return [(vocabulary.encode(source), vocabulary.encode(target)) for source, target in dataset.pairs()]


@torch.no_grad()
def error_rate(network: Trainable, examples: PairExamples, device: str) -> float:
    """Return 1 - exact match of greedy decoding, which leaves a target exactly where an argmax given it does."""
    wrong = count = 0
    for rows in examples.plan(0):
        targets, sources = (tensor.to(device) for tensor in examples.collate(rows))
        wrong += int((~network.predicts(targets, sources)).sum())
        count += len(rows)
    return wrong / max(1, count)
