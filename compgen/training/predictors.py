"""Training of a predictor of targets from sources, on original data alone or with augmented data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import create_model

from compgen.configuration import load_config, shipped_for
from compgen.data.examples import Dataset
from compgen.data.random import Purpose, Stream, stream
from compgen.data.unimorph import WORDS, task_of
from compgen.data.vocabulary import Vocabulary
from compgen.errors import ConfigError, DataError, ExhaustedError, UserError
from compgen.files import require_name
from compgen.models.seeding import draws_alone, seed_torch
from compgen.models.trainable import Trainable
from compgen.trained.architectures import MODULES, architecture
from compgen.trained.checkpoint import Checkpoint
from compgen.trained.predictor import EXAMPLES
from compgen.training.config import NetworkPredictorConfig, PredictorConfig, Seq2SeqConfig, TransformerConfig
from compgen.training.identity import Identity, fingerprint
from compgen.training.learning import LEAST_UPDATES
from compgen.training.loop import Outcome, discard_state, find_device, train
from compgen.training.memory import check_memory
from compgen.training.pairs import P_FRESH, Fresh, FreshExamples, PairExamples, Pairs

NETWORKS = (Seq2SeqConfig, TransformerConfig)  # that are trained from scratch
LOOKED_AT = 1_000  # training examples, at most, that are answered when training ends
UNLEARNT = 0.02  # the share of these that may be wrong; with 0.05, a predictor of SCAN still had much to gain


def named_config(tag: str, name: str | Path, overrides: Sequence[str] = ()) -> NetworkPredictorConfig:
    """Return a named configuration of an architecture; raises ConfigError, which names the architecture that has it."""
    try:
        return load_config(config_of(tag), name, overrides)
    except ConfigError as error:
        others = [kind.architecture for kind in NETWORKS if str(name) in shipped_for(kind)]
        if not others or tag in others:
            raise
        raise ConfigError(f"{error}; or say architecture={others[0]!r}, which it is of") from error


def config_of(tag: str) -> type[NetworkPredictorConfig]:
    """Return the configuration of training a predictor of some architecture: common settings, and its `network`.

    Raises:
        UserError: there is no such architecture, or it is no network, as grammars are, and models trained by others.
    """
    for known in NETWORKS:
        if known.architecture == tag:
            return known
    if tag not in MODULES:
        expected = " or ".join(kind.architecture for kind in NETWORKS)
        raise UserError(f"architecture {tag!r:.40}: expected {expected}")
    try:
        network: Any = architecture(tag).configuration({})
    except NotImplementedError:
        raise UserError(
            f"architecture {tag}: no network that is trained from scratch, expected for instance "
            f"{Seq2SeqConfig.architecture} or {TransformerConfig.architecture}"
        ) from None
    made = create_model(f"{tag.title()}Config", __base__=NetworkPredictorConfig, network=(type(network), network))
    made.architecture = tag
    return made


@torch.inference_mode(False)  # gradients, even where the caller has turned them off
@draws_alone()
def train_predictor(
    dataset: Dataset,
    config: NetworkPredictorConfig,
    out: Path,
    *,
    augmented: Dataset | None = None,
    fresh: Fresh | None = None,
    seed: int = 0,
    name: str = "",
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> tuple[Checkpoint, Outcome]:
    """Train a predictor on all examples of `dataset` (and of `augmented`) and write its checkpoint to `out`.

    With `fresh`, augmented examples are drawn anew in each epoch, as many as originals unless `p_aug` says otherwise;
    those with a token that neither the data nor the first of them have are left out.

    Shares of the distinct original pairs (`held_out`) and of the augmented ones (`held_out_augmented`) are held out to
    watch training. A predictor that copies (`network.copying`) can copy words that it meets after training too, which
    it learns by `network.token_dropout`.

    Raises:
        DataError: no examples, none with a target, or `p_aug` or `held_out_augmented` without augmented data.
        ExhaustedError: `fresh` makes nothing.
        UserError: `augmented` and `fresh`, no such `device` (auto, cpu, cuda), `out` cannot be written, or the network
            needs too much memory.
    """
    require_name(out, ".pt")
    device = find_device(device)
    check_examples(config, dataset, augmented, fresh)
    more = first_examples(dataset, augmented, fresh, seed)
    entry, settings = architecture(config.architecture), config.network
    tokens = (side for pair in dataset.pairs() + more.pairs() for side in pair)
    vocabulary = Vocabulary.of(tokens, spares=entry.spares(settings))
    original = _ids(dataset.unique() if config.deduplicate else dataset, vocabulary)
    added = _ids(more, vocabulary)
    check_memory(lambda: entry.build(settings, len(vocabulary)), entry.memory, device)
    seed_torch(seed)
    network = entry.build(settings, len(vocabulary))
    entry.prepare(network, vocabulary)
    identity = fingerprint(config, seed, vocabulary.tokens, original, added) | settings_of(fresh)

    given = (network, original, added, config, out, identity)
    encode = partial(_known, vocabulary=vocabulary)
    outcome = fit(*given, seed=seed, resume=resume, device=device, quiet=quiet, fresh=fresh, encode=encode)
    longest = max(len(target) for _, target in original + added)
    checkpoint = Checkpoint(
        kind="predictor",
        network=network.cpu().eval(),
        vocabulary=vocabulary,
        config=config.model_dump(mode="json"),
        max_length=config.max_length or 2 * longest + 1,
        trained_on=report(name, dataset, original, added, seed, outcome, fresh),
    )
    checkpoint.save(out)
    discard_state(out)
    return checkpoint, outcome


def first_examples(dataset: Dataset, augmented: Dataset | None, fresh: Fresh | None, seed: int) -> Dataset:
    """The augmented examples, or the first that are drawn; none without either."""
    if fresh is not None:
        return fresh.draw(len(dataset), seed, 0)
    return augmented if augmented is not None else Dataset.from_pairs([])


def settings_of(fresh: Fresh | None) -> dict[str, Any]:
    """What a training depends on beside its configuration and its data."""
    return {} if fresh is None else fresh.described()


def check_examples(
    config: PredictorConfig, dataset: Dataset, augmented: Dataset | None, fresh: Fresh | None = None
) -> None:
    """Raise UserError for sentences in place of pairs, or for settings of augmented examples if there are none."""
    if fresh is not None:
        _check_fresh(config, augmented, fresh)
    for what, given in (("", dataset), ("augmented examples: ", augmented)):
        if given is not None and len(given) and not (given.frame["target"].list.len() > 0).any():
            raise DataError(
                f"{what}found sentences, expected pairs: a predictor learns targets from sources; for language models "
                "see `cgen lm train` and `cgen train recombine --config rnnlm_small`"
            )
    if not augmented and fresh is None and "p_aug" in config.model_fields_set and config.p_aug is not None:
        raise DataError("p_aug says how often to draw augmented examples, but no augmented data was given")
    if not augmented and config.held_out_augmented:
        raise DataError("held_out_augmented holds out augmented examples, but no augmented data was given")


def _check_fresh(config: PredictorConfig, augmented: Dataset | None, fresh: Fresh) -> None:
    if not isinstance(fresh, Fresh):
        raise UserError(f"fresh: found {fresh!r:.60}, expected Fresh(...) of compgen.training.pairs")
    if augmented is not None:
        raise UserError("augmented examples are given, or drawn anew in each epoch: not both")
    if config.p_aug == 0:
        raise UserError("p_aug is 0, so no examples would be drawn anew: leave them out, or set p_aug above 0")


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
    fresh: Fresh | None = None,
    encode: Callable[[Dataset], Pairs] | None = None,
) -> Outcome:
    """Train a network on pairs of ids, of which shares are held out; see `train_predictor`. `encode` is for `fresh`."""
    training, watched = _divided(original, config.held_out, stream(Purpose.HELD_OUT, seed))
    more, watched_more = _divided(added, config.held_out_augmented, stream(Purpose.HELD_OUT_AUGMENTED, seed))
    watched += watched_more
    if not training:
        why = f": held_out = {config.held_out} takes all, set it to 0 or give more" if original else ""
        raise DataError(f"{len(original)} examples leave nothing to train on{why}")
    if added and not more:
        raise DataError(f"held_out_augmented = {config.held_out_augmented} leaves none of {len(added)} to train on")
    held_out = PairExamples(watched, [], None, 256, seed) if watched else None
    examples = PairExamples(training, more, config.p_aug, config.optimisation.batch, seed)
    if fresh is not None:
        assert encode is not None
        examples = fresh_examples(fresh, encode, training, config, seed, network)
    outcome = train(
        network,
        examples,
        config.optimisation,
        out,
        identity=identity,
        score=(lambda net: error_rate(net, held_out, device)) if held_out is not None else None,
        resume=resume,
        device=device,
        quiet=quiet,
    )
    return replace(outcome, trouble=outcome.trouble or _unlearnt(network, training, outcome.steps, device))


def fresh_examples(
    fresh: Fresh,
    encode: Callable[[Dataset], Pairs],
    original: Pairs,
    config: PredictorConfig,
    seed: int,
    network: Trainable,
) -> FreshExamples:
    """Original pairs, and those that an augmenter makes in each epoch.

    Raises:
        ExhaustedError: none of what it makes in the first can be used.
    """

    def draw(count: int, epoch: int) -> Pairs:
        found = encode(fresh.draw(count, seed, epoch))
        if not found:
            raise ExhaustedError(f"{fresh.augmenter.name} makes no example in epoch {epoch} that can be trained on")
        return found

    p_aug = P_FRESH if config.p_aug is None else config.p_aug
    return FreshExamples(original, draw, p_aug, config.optimisation.batch, seed, network if fresh.hard else None)


def _divided(pairs: Pairs, share: float, rng: Stream) -> tuple[Pairs, Pairs]:
    """Return the pairs to train on, and the share that is held out."""
    held = rng.random(len(pairs)) < share
    kept, out = ([pair for pair, one in zip(pairs, held, strict=True) if one == which] for which in (False, True))
    return kept, out


def report(
    name: str,
    dataset: Dataset,
    original: Pairs,
    added: Pairs,
    seed: int,
    outcome: Outcome,
    fresh: Fresh | None = None,
) -> dict[str, Any]:
    """Return what a predictor was trained on, and the result, as JSON-able values."""
    return ({} if fresh is None else {"fresh": settings_of(fresh)}) | {
        "data": name,
        "examples": len(original),
        "augmented_examples": len(added),
        "seed": seed,
        "updates": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "train_loss_nats_per_token": round(outcome.train_loss, 5),
        "held_out_error_rate": None if outcome.held_out is None else round(outcome.held_out, 5),
        EXAMPLES: dataset.digest(),
        **({WORDS: task} if (task := task_of(dataset)) else {}),
        **({"warning": outcome.trouble} if outcome.trouble else {}),
    }


def _ids(dataset: Dataset, vocabulary: Vocabulary) -> Pairs:
    return [_encoded(pair, vocabulary) for pair in dataset.pairs()]


def _known(dataset: Dataset, vocabulary: Vocabulary) -> Pairs:
    """The pairs of a dataset all of whose tokens are in a vocabulary."""
    return [_encoded(pair, vocabulary) for pair in dataset.pairs() if all(map(vocabulary.knows, pair))]


def _encoded(pair: tuple[list[str], list[str]], vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
    return vocabulary.encode(pair[0]), vocabulary.encode(pair[1])


def _unlearnt(network: Trainable, training: Pairs, steps: int, device: str) -> str:
    """What says that training ended too early, in words: not all that it had is known by heart; empty if it is."""
    if steps < LEAST_UPDATES:
        return ""
    some = training[:: math.ceil(len(training) / LOOKED_AT)]
    wrong = error_rate(network, PairExamples(some, [], None, 256, 0), device)
    if wrong <= UNLEARNT:
        return ""
    return (
        f"after {steps:,} updates, {wrong:.1%} of the training examples that were looked at ({len(some):,}) are "
        "answered wrongly: unless such examples contradict others, more updates (optimisation.steps) may help"
    )


@torch.no_grad()
def error_rate(network: Trainable, examples: PairExamples, device: str) -> float:
    """Return 1 - exact match of greedy decoding, which leaves a target exactly where an argmax given it does."""
    wrong = count = 0
    for rows in examples.plan(0):
        targets, sources = (tensor.to(device) for tensor in examples.collate(rows))
        wrong += int((~network.predicts(targets, sources)).sum())
        count += len(rows)
    return wrong / max(1, count)
