"""Which synthetic examples are confirmed by a predictor that has not learnt them.

This is the cross-validated filtering of mislabelled examples (Brodley and Friedl 1999), for pairs:

    deal the synthetic examples into parts, at random, all those of a source into one
    for each part:
        f = a predictor, trained on the original examples and on the other parts
        confirm those examples (x, y) of the part for which f(x) = y

A generator that errs on a source does so in most of its draws, so that votes do not help. But what it gets wrong
contradicts what it gets right of other sources.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.errors import DataError
from compgen.files import writing
from compgen.trained.predictor import Predictor
from compgen.training.config import NetworkPredictorConfig
from compgen.training.predictors import train_predictor


def confirmed(
    dataset: Dataset,
    augmented: Dataset,
    config: NetworkPredictorConfig,
    folder: Path,
    *,
    parts: int = 2,
    seed: int = 0,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> NDArray[np.bool_]:
    """Return which of the augmented examples are confirmed: (N).

    Args:
        dataset: the original examples.
        augmented: N examples made from them.
        config: how predictors are trained.
        folder: where they are kept. Those that a call with the same arguments has left there are not trained again.
        parts: how many predictors are trained; each has not learnt one of as many parts.
        seed: of the parts and of each training.
        resume: go on with a training that was interrupted.
        device, quiet: as for `train_predictor`.

    Raises:
        DataError: fewer sources than parts.
        UserError: as `train_predictor`, or the folder cannot be made.
    """
    part = _parts(augmented, parts, seed)
    settings = [dataset.digest(), augmented.digest(), config.model_dump(mode="json"), parts, seed]
    folder = folder / hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    right = np.zeros(len(augmented), dtype=bool)
    for number in range(parts):
        out = folder / f"part-{number + 1}.pt"
        if not out.exists():
            learnt = Dataset(augmented.frame.filter(part != number))
            there = Path(f"{out}.partial").exists()
            options: dict[str, Any] = {"seed": seed, "resume": resume and there, "device": device, "quiet": quiet}
            train_predictor(dataset, config, out, augmented=learnt, **options)
        asked = [pair for pair, one in zip(augmented.pairs(), part, strict=True) if one == number]
        answers = Predictor.load(out).predict([source for source, _ in asked], unknown=True)
        right[part == number] = [answer == target for answer, (_, target) in zip(answers, asked, strict=True)]
    return right


def _parts(augmented: Dataset, count: int, seed: int) -> NDArray[np.int64]:
    """Return the part of each example, from 0: (N). Sources are dealt evenly."""
    source = augmented.frame["source"].rank("dense").to_numpy().astype(np.int64) - 1  # (N) the number of each source
    sources = int(source.max(initial=-1)) + 1
    if sources < count:
        raise DataError(f"{sources} augmented sources: expected at least {count}, one for each part")
    dealt: NDArray[np.int64] = stream(Purpose.CONFIRMATION, seed).permutation(sources)[source] % count
    return dealt
