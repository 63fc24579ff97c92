"""Fine-tuning of a pretrained encoder-decoder into a predictor, on original data alone or with augmented data.

The recipe is that of T5 in Qiu et al. (2022): constant learning rate, Adafactor, originals and augmented examples
equally often. Theirs repeats the originals a whole number of times; ours draws from both with equal probability.
"""

import json
from pathlib import Path
from typing import Any

import torch

from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError
from compgen.files import check_apart, check_replaceable
from compgen.models.pretrained import FILE, Ids, Pretrained
from compgen.models.seeding import draws_alone, seed_torch
from compgen.models.spelling import Spelling
from compgen.training.config import PretrainedConfig
from compgen.training.identity import fingerprint
from compgen.training.loop import discard_state, find_device
from compgen.training.pairs import Fresh, Pairs
from compgen.training.predictors import check_examples, first_examples, fit, report, settings_of


@torch.inference_mode(False)  # gradients, even where the caller has turned them off
@draws_alone()
def train_pretrained(
    dataset: Dataset,
    model: str,
    config: PretrainedConfig,
    out: Path,
    *,
    augmented: Dataset | None = None,
    fresh: Fresh | None = None,
    seed: int = 0,
    name: str = "",
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> dict[str, Any]:
    """Fine-tune `model`, a folder or a name on the Hugging Face hub, on all examples, and write it to folder `out`.

    Return what it was trained on, and the result.

    Raises:
        UserError: there is no such model or device, transformers is not installed, or `out` cannot be written or is
            `model`.
        DataError: no examples, one that is too long, a token that the model's tokenizer cannot write, or `p_aug`
            without augmented data.
    """
    _require_folder(out)
    check_apart(out, model)
    device = find_device(device)
    check_examples(config, dataset, augmented, fresh)
    more = first_examples(dataset, augmented, fresh, seed)
    network = Pretrained.open(model, config.prefix, config.source_length, config.max_length)
    tokens = (token for pair in dataset.pairs() + more.pairs() for side in pair for token in side)
    network.spelling = Spelling.of(network.tokenizer, tokens)
    original = _ids(dataset.unique() if config.deduplicate else dataset, network)
    added = _ids(more, network)
    for side, setting in enumerate(("source_length", "max_length")):
        _require_short([pair[side] for pair in original + added], setting, getattr(config, setting))
    seed_torch(seed)
    identity = fingerprint(config, seed, model, original, added) | settings_of(fresh)
    outcome = fit(
        *(network, original, added, config, out, identity),
        seed=seed,
        resume=resume,
        device=device,
        quiet=quiet,
        fresh=fresh,
        encode=lambda some: _short(_ids(some, network), config),
    )
    trained_on = {"model": model} | report(name, dataset, original, added, seed, outcome, fresh)
    network.cpu().eval().save(out, json.loads(config.model_dump_json()), trained_on)  # an infinite number is null
    discard_state(out)
    return trained_on


def _ids(dataset: Dataset, network: Pretrained) -> Pairs:
    sources, targets = ([pair[side] for pair in dataset.pairs()] for side in (0, 1))
    return list(zip(network.sources(sources), network.targets(targets), strict=True))


def _short(pairs: Pairs, config: PretrainedConfig) -> Pairs:
    """Those of some pairs that are not too long."""
    return [pair for pair in pairs if len(pair[0]) < config.source_length and len(pair[1]) < config.max_length]


def _require_short(rows: Ids, setting: str, limit: int) -> None:
    """Raise DataError for rows that are too long: a target that is cut would be learnt as if it ended there."""
    longest = max((len(row) + 1 for row in rows), default=0)
    if longest > limit:
        over = sum(len(row) >= limit for row in rows)
        raise DataError(
            f"{over:,} of {len(rows):,} examples have more pieces than {setting} = {limit}; the longest has {longest}: "
            f"leave them out, or --set {setting}={longest} (in Python overrides=['{setting}={longest}'])"
        )


def _require_folder(out: Path) -> None:
    """Raise UserError, before any work, unless `out` is new, empty or a model's folder alone, which is replaced."""
    if out.suffix == ".pt":
        raise UserError(f"{out}: a pretrained model is written to a folder, whose name does not end in .pt")
    check_replaceable(out)
    if out.exists() and not (out / FILE).is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise UserError(f"{out}: exists and is not a model that compgen trained: choose another name")
    try:
        listed = {FILE, *json.loads((out / FILE).read_text("utf-8"))["files"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # none, or one of before there were digests
        return
    if others := sorted(one.name for one in out.iterdir() if one.name not in listed):
        raise UserError(f"{out}: holds {', '.join(others[:3])}, too: a model is replaced as a whole, move that")
