"""`compare`: the whole of a comparison, from a dataset to the answer, the report, the chosen data and the model."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any

from compgen.augmenters.applicable import applicable
from compgen.augmenters.registry import find, summaries
from compgen.claim import claimed
from compgen.comparison.engine import workers
from compgen.comparison.experiment import Experiment
from compgen.comparison.findings import Findings
from compgen.comparison.options import RUNNING, CompareOptions
from compgen.comparison.parts import divide, remembered
from compgen.comparison.plan import FOR_AUGMENTING
from compgen.comparison.predictors import SCRATCH, Recipe, recipe
from compgen.comparison.report import CLAIM, write_report
from compgen.comparison.result import CONTROL, Method, Result
from compgen.configuration import load_config
from compgen.data.catalog import given
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.errors import ConfigError, UserError
from compgen.files import atomic_path
from compgen.trained.architectures import identity

LEAST_MINUTES = 0.5  # for a generator
# At most ten draws for each of its samples: where fewer than one in ten is new, they would take hours. No vote, which
# puts clear samples first: validation and the last training must have the same of as many as they ask for.
RECOMBINE = {"draws_each": 10, "vote": False}


def compare(
    data: Dataset | str | Path,
    folder: str | Path,
    options: CompareOptions | None = None,
    *,
    name: str = "data",
    command: str = "",
    say: Callable[[str], None] = print,
    **values: Any,
) -> Result:
    """Find out which augmentation helps on a dataset; leave the answer, the data and the model in `folder`.

    The same call resumes a comparison that was interrupted, step by step, and returns what one found that has ended.

    Args:
        data: a dataset, or what `load_dataset` finds by name.
        options: as on the command line; or give those by name, as `values`, that are not as usual.
        name: of the data, for the report.
        command: that was called, for the report.
        say: is told what each step has found.

    Raises:
        UserError: the folder holds another comparison, the data have too few examples or are sentences, no method
            applies, or the time is too short for anything; options are given both as a whole and by name, or wrong.
    """
    dataset, name = _pairs(data), str(data) if isinstance(data, str | Path) else name
    folder, options = Path(folder), _options(options, values)
    divided = divide(dataset, options.test, options.by)
    for remark in remembered(divided):
        say(f"warning: {remark}")
    methods, verdicts = _methods(options.methods, divided.train)
    predictor = recipe(options.predictor, divided.train)
    settings = options.model_dump(exclude=RUNNING) | {"predictor": list(predictor), "methods": methods}
    with _claimed(folder, dataset, predictor, settings) as accept:
        before = _finished(folder)
        if before and all((folder / file).exists() for file in before.files):
            say(f"{folder}: this comparison has ended; to compare anew, in more --minutes say, choose another folder")
            return before
        with workers(folder, options.engine, options.jobs) as pool:
            experiment = Experiment(
                folder=folder,
                methods=methods,
                recipe=predictor,
                seconds=60 * options.minutes,
                seeds=options.seeds,
                options={"recombine": dict(RECOMBINE)},
                workers=pool,
                say=say,
            )
            write_dataset(divided.test, folder / "data" / "test.parquet")
            experiment.begin(divided.train)
            experiment.check_time()
            accept()
            _decide_generator(experiment, options.minutes)
            found = Findings(experiment, divided, verdicts, experiment.tested())
        result = found.result(name, *((before.command, before.minutes) if before else (command, options.minutes)))
        with atomic_path(folder / "compare.json") as temporary:
            temporary.write_text(result.model_dump_json(indent=1), encoding="utf-8")
        write_report(folder)
    return result


def _decide_generator(experiment: Experiment, minutes: float) -> None:
    """Decide, once, how long a generator is trained: for each carving and for all examples, of what is for augmenting.

    These are minutes of a machine as `settings` assume it. Neither the speed of this one nor its processors count, so
    that the same data and minutes have the same generators everywhere; on a slow machine they take longer.
    """
    each = max(LEAST_MINUTES, round(FOR_AUGMENTING * minutes / len(experiment.sizes), 2))
    decided = experiment.decided("generator", lambda: {"minutes": each, "timed": False})
    experiment.options["recombine"] |= decided


def _options(options: CompareOptions | None, values: dict[str, Any]) -> CompareOptions:
    """The options of a comparison; raises ConfigError as `compare`."""
    if options is None:
        return load_config(CompareOptions, None, given=values)
    if values:
        raise ConfigError("compare: give options as a whole or by name, not both")
    if not isinstance(options, CompareOptions):
        raise ConfigError(f"compare: found {options!r:.60}, expected {CompareOptions.__name__}")
    return options


def _pairs(data: Dataset | str | Path) -> Dataset:
    """Return the data as `given` does; raise UserError for sentences, of which none has a target."""
    dataset = given(data)
    if len(dataset) and not (dataset.frame["target"].list.len() > 0).any():
        raise UserError(
            "found sentences, expected pairs: a comparison trains predictors of targets from sources; for language "
            "models see `cgen lm augment`"
        )
    return dataset


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
    reasons = {name: why for name, why in applicable(train).items() if name != CONTROL}
    names = [name for one in asked for name in one.split(",")]
    for name in names:
        _check_asked(name, reasons)
    tried = tuple(name for name, why in reasons.items() if (name in names if names else why is None))
    if not tried:
        raise UserError(f"no method applies: {'; '.join(f'{name} {why}' for name, why in reasons.items())}")
    known = summaries()
    return tried, [
        Method(name=name, summary=known[name], tried=name in tried, why=why or "not asked for" * (name not in tried))
        for name, why in reasons.items()
    ]


def _check_asked(name: str, reasons: dict[str, str | None]) -> None:
    """Raise UserError unless a method can be tried."""
    find(name)
    if name == CONTROL:
        raise UserError(f"--methods {CONTROL}: this is the control, and always there: leave it out")
    if reasons[name]:
        raise UserError(f"--methods {name}: it does not apply: {reasons[name]}")


def _claimed(
    folder: Path, dataset: Dataset, predictor: Recipe, settings: dict[str, Any]
) -> AbstractContextManager[Callable[[], None]]:
    """Keep a folder for a comparison, as `claimed` does; a pretrained predictor is known by its files, too."""
    digests = {"data": sha256(dataset.frame.select("source", "target", "split").write_json().encode()).hexdigest()}
    if predictor.name not in SCRATCH:
        digests["files of the pretrained model"] = identity(Path(predictor.name))
    return claimed(folder / CLAIM, "comparison", digests, settings)
