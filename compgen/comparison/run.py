"""`compare`: the whole of a comparison, from a dataset to the answer, the report, the chosen data and the model."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from compgen.augmenters.applicable import applicable
from compgen.augmenters.registry import find, summaries
from compgen.comparison.engine import workers
from compgen.comparison.experiment import Experiment
from compgen.comparison.findings import Findings
from compgen.comparison.options import RUNNING, CompareOptions
from compgen.comparison.parts import carvings, divide
from compgen.comparison.plan import FOR_AUGMENTING
from compgen.comparison.predictors import recipe
from compgen.comparison.report import write_report
from compgen.comparison.result import CONTROL, Method, Result
from compgen.configuration import load_config
from compgen.data.catalog import given
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.errors import UserError
from compgen.files import atomic_path, check_writable, create, is_beside, lock, remove
from compgen.processors import processors

CLAIM = "comparison.json"  # says what a folder is for, and is locked while a comparison runs
LEAST_MINUTES = 0.5  # for a generator
# At most ten draws for each of its samples: where fewer than one in ten is new, they would take hours. No vote, which
# puts clear samples first: validation and the last training must have the same of as many as they ask for.
RECOMBINE = {"draws_each": 10, "vote": False}


def compare(
    data: Dataset | str,
    folder: str | Path,
    options: CompareOptions | None = None,
    *,
    name: str = "data",
    command: str = "",
    say: Callable[[str], None] = print,
    **values: Any,
) -> Result:
    """Find out which augmentation helps on a dataset; leave the answer, the data and the model in `folder`.

    The same call resumes a comparison that was interrupted, step by step.

    Args:
        data: a dataset, or what `load_dataset` finds by name.
        options: as on the command line; or give those by name, as `values`, that are not as usual.
        name: of the data, for the report.
        command: that was called, for the report.
        say: is told what each step has found.

    Raises:
        UserError: the folder holds another comparison, the data have too few examples or are sentences, no method
            applies, or the time is too short for anything.
    """
    dataset, name = given(data), str(data) if isinstance(data, str | Path) else name
    folder, options = Path(folder), options or load_config(CompareOptions, None, given=values)
    divided = divide(dataset, options.test, options.by)
    methods, verdicts = _methods(options.methods, divided.train)
    predictor = recipe(options.predictor, divided.train)
    settings = options.model_dump(exclude=RUNNING) | {"predictor": list(predictor), "methods": methods}
    jobs = options.jobs or processors()  # each computes by one thread, whatever OMP_NUM_THREADS says
    minutes = FOR_AUGMENTING * options.minutes * jobs / (2 * (1 + carvings(divided.train)))
    with _claimed(folder, dataset, settings) as accept:
        with workers(folder, options.engine, jobs) as pool:
            experiment = Experiment(
                folder=folder,
                methods=methods,
                recipe=predictor,
                seconds=60 * options.minutes,
                seeds=options.seeds,
                options={"recombine": RECOMBINE | {"minutes": max(LEAST_MINUTES, round(minutes, 2))}},
                workers=pool,
                say=say,
            )
            write_dataset(divided.test, folder / "data" / "test.parquet")
            experiment.begin(divided.train)
            experiment.check_time()
            accept()
            tested = experiment.tested()
        found = Findings(experiment, divided, verdicts, tested)
        before = _finished(folder)
        asked = (command, options.minutes) if before is None else (before.command, before.minutes)
        result = found.result(name, *asked)
        with atomic_path(folder / "compare.json") as temporary:
            temporary.write_text(result.model_dump_json(indent=1), encoding="utf-8")
        write_report(folder)
    return result


def _finished(folder: Path) -> Result | None:
    """What a comparison found that ended here: whoever calls it again changes neither its command nor its time."""
    try:
        return Result.model_validate_json((folder / "compare.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or of another version
        return None


def _methods(asked: tuple[str, ...], train: Dataset) -> tuple[tuple[str, ...], list[Method]]:
    """The methods to try, and what is said of each.

    Raises:
        UserError: none applies, or one that was asked for does not.
    """
    if not (train.frame["target"].list.len() > 0).any():
        raise UserError(
            "found sentences, expected pairs: a comparison trains predictors of targets from sources; for language "
            "models see `cgen lm augment`"
        )
    reasons = {name: why for name, why in applicable(train).items() if name != CONTROL}
    names = [name for one in asked for name in one.split(",")]
    for name in names:
        _check_asked(name, reasons)
    tried = tuple(name for name, why in reasons.items() if (name in names if names else why is None))
    if not tried:
        raise UserError(f"no method applies: {'; '.join(f'{name} {why}' for name, why in reasons.items())}")
    known = summaries()
    return tried, [
        Method(name=name, summary=known[name], tried=name in tried, why=_why(reason, name in tried))
        for name, reason in reasons.items()
    ]


def _check_asked(name: str, reasons: dict[str, str | None]) -> None:
    """Raise UserError unless a method can be tried."""
    find(name)
    if name == CONTROL:
        raise UserError(f"--methods {CONTROL}: this is the control, and always there: leave it out")
    if reasons[name]:
        raise UserError(f"--methods {name}: it does not apply: {reasons[name]}")


def _why(reason: str | None, tried: bool) -> str:
    """Why a method was not tried; empty if it was."""
    return reason or ("" if tried else "not asked for")


@contextmanager
def _claimed(folder: Path, dataset: Dataset, settings: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Keep a folder for a comparison, and others out of it; yield what to call when nothing can be refused any more.

    A comparison that is refused before that leaves the folder as it was.

    Raises:
        UserError: the folder holds another comparison, or other files, or another run writes it.
    """
    there, accepted = folder.exists(), []
    new, path = _claim(folder, dataset, settings), folder / CLAIM
    with path.open("r+b") as stream:
        lock(stream, path)
        try:
            yield lambda: accepted.append(True)
        except UserError:
            if new and not accepted:
                for one in list(folder.iterdir()) if there else [folder]:
                    remove(one)
            raise


def _claim(folder: Path, dataset: Dataset, settings: dict[str, Any]) -> bool:
    """Note what the folder is for, or check that it is for the same; return whether it is new.

    Raises:
        UserError: it holds another comparison, or other files.
    """
    path = folder / CLAIM
    digest = sha256(dataset.frame.select("source", "target", "split").write_json().encode()).hexdigest()
    ours = json.loads(json.dumps(settings | {"data": digest}))
    if path.exists():
        _require_same(folder, ours)
        return False
    if folder.is_dir() and not all(map(is_beside, folder.iterdir())):
        raise UserError(f"{folder}: expected a new or empty folder, or one of the same comparison")
    check_writable(path)
    if not create(path, json.dumps(ours, indent=1)):  # another run was here in this moment
        _require_same(folder, ours)
        return False
    return True


def _require_same(folder: Path, ours: dict[str, Any]) -> None:
    """Raise UserError unless a folder holds this comparison."""
    theirs = json.loads((folder / CLAIM).read_text(encoding="utf-8"))
    changed = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    if changed:
        said = "; ".join(
            "the data differ" if key == "data" else f"{key} was {theirs.get(key)!r}, is {ours.get(key)!r}"
            for key in sorted(changed, key="data".__ne__)
        )
        raise UserError(f"{folder}: holds another comparison ({said}): choose another folder")
