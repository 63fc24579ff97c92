"""The steps of a comparison, as workers run them: each reads files of the folder and leaves one result, whole.

A folder has `data/` (parts as Parquet), `made/` (what steps make) and `steps/NAME.json` (their results). A step whose
result is there is done; one that was interrupted is run again, and training goes on where it was.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from compgen.augmenters.registry import make
from compgen.comparison import predictors
from compgen.comparison.parts import COMBINATIONS, ONCE, RANDOM
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.data.random import Purpose, stream
from compgen.errors import DataError, ExhaustedError, UserError
from compgen.files import atomic_path
from compgen.trained.committee import Committee
from compgen.trained.predictor import Predictor

VALIDATION = (RANDOM, COMBINATIONS, ONCE)
FULL = "full"  # in place of a carving: all training examples
EXAMPLES_SHOWN = 20
WARM = 5  # updates that do not count where the time of one is measured
LEAST_TIME = 0.0001  # seconds of one
LEAST_SHARE = 0.25  # that one takes at least of the mean of all, the first ones included
LEARNED = 100  # training examples at most that are looked at to see what is known by heart


@dataclass(frozen=True)
class Step:
    """A step: its name, which of STEPS it is, and what that is given, as JSON values."""

    name: str
    kind: str
    given: dict[str, Any]


def result_of(folder: Path, name: str) -> Path:
    """The file that holds the result of a step."""
    return folder / "steps" / f"{name}.json"


def read_json(path: Path) -> Any:
    """What a file of the folder holds; raises UserError for one that a failing machine has left, an empty one, say."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise UserError(f"{path}: damaged: delete it, and the same command makes it again") from None


def perform(folder: Path, step: Step) -> None:
    """Run a step and write its result, with the seconds it took (training goes on counting after an interruption)."""
    began = time.monotonic()
    found = STEPS[step.kind](folder, **step.given)
    seconds = max(time.monotonic() - began, found.get("trained", 0.0))
    with atomic_path(result_of(folder, step.name)) as temporary:
        temporary.write_text(json.dumps({"seconds": round(seconds, 2)} | found), encoding="utf-8")


def carved(folder: Path, carving: int | str) -> Dataset:
    """The examples of a carving, or all training examples (FULL)."""
    return read_dataset(folder / "data" / f"{carving}.parquet")


def originals(folder: Path, carving: int | str) -> Dataset:
    """The training examples of a carving."""
    return carved(folder, carving).split(TRAIN)


def made_file(folder: Path, method: str, carving: int | str, count: int) -> Path:
    """What a method made, of `count` examples asked for, from the training examples of a carving."""
    return folder / "made" / f"made-{method}-{carving}-{count}.parquet"


def augment(folder: Path, method: str, carving: int | str, count: int, options: dict[str, Any]) -> dict[str, Any]:
    """Make `count` examples by a method, and say what they are worth.

    On a carving they are put into random order, so that the first n stand for n of them.
    """
    from compgen.evaluation.quality import quality

    out = made_file(folder, method, carving, count)
    training = originals(folder, carving)
    with predictors.interrupted(Path(f"{out}.pt")) as resume:  # the training of a generator, which alone takes long
        augmenter = make(method, **options, **({"resume": True} if resume else {}), beside=out)
        try:
            made = augmenter.fit(training, 0).sample(count, 0)
        except (DataError, ExhaustedError) as error:
            return {"made": 0, "why": str(error)}  # no failure: a method may have nothing to give here
        finally:
            augmenter.close()
    if not len(made):
        return {"made": 0, "why": "none of what it draws passes its filters"}
    if carving != FULL:
        made = Dataset(made.frame[stream(Purpose.COMPARISON, 0, 2).permutation(len(made))])
    write_dataset(made, out)
    found = quality(made, training, count)
    return {
        "made": len(made),
        "why": str(augmenter.report().get("why", "")),
        "settings": str(augmenter.report().get("settings", "")),
        "quality": {"figures": found.to_dict(), "words": found.in_words()},
        "warnings": [*augmenter.warnings(), *found.warnings()],
        "shown": [_shown(augmenter, row) for row in made.frame.head(EXAMPLES_SHOWN).iter_rows(named=True)],
    }


def _shown(augmenter: Any, row: dict[str, Any]) -> dict[str, Any]:
    """A synthetic example and, if the method says so, what it was made from."""
    try:
        origins = augmenter.explain(row)
    except UserError:
        origins = []
    made_from = [
        {"label": one.label} | {side: " ".join(text for text, _ in getattr(one, side)) for side in ("source", "target")}
        for one in origins
    ]
    return {"source": " ".join(row["source"]), "target": " ".join(row["target"]), "made_from": made_from}


def trial(
    folder: Path,
    system: str,
    made: dict[str, int],
    share: int,
    carving: int | str,
    seed: int,
    updates: int,
    predictor: str,
    changes: list[str],
) -> dict[str, Any]:
    """Train the predictor on a system: the first `share` of what each method `made` (of how many asked for).

    Return `examples` (synthetic ones), `trained` (seconds), and on a carving, for each validation part, which examples
    are right, as a string of 0 and 1; `learned` is the same of LEARNED training examples or fewer,
    evenly spaced: files are often sorted, and the first are the easiest.
    """
    training = originals(folder, carving)
    augmented = added(folder, made, share, carving)
    out = model_file(folder, system, carving, seed, updates)
    recipe = predictors.Recipe(predictor, tuple(changes))
    trained = recipe.train(training, augmented, out, updates=updates, seed=seed)
    found: dict[str, Any] = {"examples": 0 if augmented is None else len(augmented), "trained": trained}
    if carving == FULL:
        return found
    parts = carved(folder, carving).frame.partition_by("split", as_dict=True)
    right = {name: _right(out, parts[name,]) for name in VALIDATION if (name,) in parts}
    learned = _right(out, training.frame.gather_every(-(-len(training) // LEARNED)))
    predictors.remove(out)
    return found | {"right": right, "learned": learned}


def speed(folder: Path, updates: int, predictor: str, changes: list[str]) -> dict[str, Any]:
    """Train the predictor on the bare data for a few updates, and say how many seconds one takes (`per_update`)."""
    recipe, out = predictors.Recipe(predictor, tuple(changes)), folder / "made" / "speed.pt"
    seconds = []
    for count in (WARM, WARM + updates):  # the first ones take longer
        predictors.remove(out)  # of a run that was interrupted
        seconds.append(recipe.train(originals(folder, 0), None, out, updates=count, seed=0))
    predictors.remove(out)
    # Other work may slow the first few down so much that the difference is nothing: then a part of the mean counts.
    each = max((seconds[1] - seconds[0]) / updates, LEAST_SHARE * seconds[1] / (WARM + updates))
    return {"per_update": max(LEAST_TIME, round(each, 4))}


def added(folder: Path, made: dict[str, int], share: int, carving: int | str) -> Dataset | None:
    """The synthetic examples of a system; None if it has none."""
    if not made:
        return None
    files = [made_file(folder, method, carving, count) for method, count in made.items()]
    frames = [read_dataset(file).frame.head(share) for file in files if file.exists()]  # one may have made nothing
    return Dataset(pl.concat(frames, how="diagonal_relaxed"))


def _right(model: Path, examples: pl.DataFrame) -> str:
    answers = Predictor.load(model, threads=1).predict(examples["source"].to_list(), unknown=True)
    return "".join("01"[a == b] for a, b in zip(answers, examples["target"].to_list(), strict=True))


def model_file(folder: Path, system: str, carving: int | str, seed: int, updates: int) -> Path:
    """The predictor that a trial trains; it is kept if it was trained on all training examples."""
    return folder / "made" / f"{system}-{carving}-{seed}-{updates}.pt"


def test(folder: Path, system: str, seed: int, updates: int) -> dict[str, Any]:
    """Answer the test part by a predictor that was trained on all training examples."""
    return _answers(folder, Predictor.load(model_file(folder, system, FULL, seed, updates), threads=1))


def together(folder: Path, system: str, seeds: int, updates: int) -> dict[str, Any]:
    """Answer the test part by a system's predictors of all seeds together."""
    files = [model_file(folder, system, FULL, seed, updates) for seed in range(seeds)]
    return _answers(folder, Committee([Predictor.load(file, threads=1) for file in files]))


def _answers(folder: Path, model: Predictor) -> dict[str, Any]:
    tested = read_dataset(folder / "data" / "test.parquet")
    return {"answers": model.predict(tested.frame["source"].to_list(), unknown=True)}


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "speed": speed,
    "augment": augment,
    "trial": trial,
    "test": test,
    "together": together,
}
