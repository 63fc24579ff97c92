"""`compare`: the whole of a comparison, from a dataset to the answer, the report, the chosen data and the model."""

import json
import platform
import shlex
import shutil
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from compgen.augmenters.applicable import applicable
from compgen.augmenters.registry import find, summaries
from compgen.comparison import answer
from compgen.comparison.engine import workers
from compgen.comparison.experiment import Experiment, accuracies
from compgen.comparison.options import RUNNING, CompareOptions
from compgen.comparison.parts import Divided, carvings, divide
from compgen.comparison.plan import FOR_AUGMENTING
from compgen.comparison.predictors import recipe
from compgen.comparison.report import write_report
from compgen.comparison.result import CONTROL, Choice, Made, Method, Parts, Point, PredictorUsed, Result, Step, Trial
from compgen.comparison.steps import FULL, VALIDATION, added, model_file, read_result
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.configuration import load_config
from compgen.data.catalog import load
from compgen.data.checks import findings, rows_of
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.errors import UserError
from compgen.files import atomic_path, check_writable


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

    A comparison that was interrupted is gone on with, step by step, by the same call.

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
    if isinstance(data, str):
        dataset, name = load(data), data
    else:
        dataset = data
    folder, options = Path(folder), options or load_config(CompareOptions, None, given=values)
    divided = divide(dataset, options.test, options.by)
    methods, verdicts = _methods(options.methods, divided.train)
    predictor = recipe(options.predictor, divided.train)
    _claim(folder, dataset, options.model_dump(exclude=RUNNING) | {"predictor": list(predictor), "methods": methods})
    jobs = options.jobs or _cores()
    minutes = FOR_AUGMENTING * options.minutes * jobs / (2 * (1 + carvings(divided.train)))
    with workers(folder, options.engine, jobs) as pool:
        experiment = Experiment(
            folder,
            methods,
            predictor,
            60 * options.minutes * jobs,
            options.seeds,
            {"recombine": {"minutes": round(minutes, 2)}},
            pool,
            say,
        )
        write_dataset(divided.test, folder / "data" / "test.parquet")
        experiment.begin(divided.train)
        tested = experiment.tested()
    found = Findings(experiment, divided, verdicts, tested)
    result = found.result(name, command, options.minutes)
    with atomic_path(folder / "compare.json") as temporary:
        temporary.write_text(result.model_dump_json(indent=1), encoding="utf-8")
    write_report(folder)
    return result


def _cores() -> int:
    from compgen.trained.architectures import cores

    return cores()


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
    reasons, known = applicable(train), summaries()
    names = [name for one in asked for name in one.split(",")]
    for name in names:
        find(name)
        if name == CONTROL:
            raise UserError(f"--methods {CONTROL}: this is the control, and always there: leave it out")
        if reasons[name]:
            raise UserError(f"--methods {name}: it does not apply: {reasons[name]}")
    tried = tuple(name for name in known if name != CONTROL and (name in names if names else reasons[name] is None))
    if not tried:
        raise UserError(f"no method applies: {'; '.join(f'{name} {why}' for name, why in reasons.items() if why)}")
    verdicts = [
        Method(
            name=name,
            summary=summary,
            tried=name in tried,
            why=reasons[name] or ("" if name in tried else "not asked for"),
        )
        for name, summary in known.items()
        if name != CONTROL
    ]
    return tried, verdicts


def _why(reason: str | None, tried: bool) -> str:
    """Why a method was not tried; empty if it was."""
    return reason or ("" if tried else "not asked for")


def _claim(folder: Path, dataset: Dataset, settings: dict[str, Any]) -> None:
    """Note what the folder is for, or check that it is for the same.

    Raises:
        UserError: it holds another comparison, or other files.
    """
    path = folder / "comparison.json"
    digest = sha256(dataset.frame.select("source", "target", "split").write_json().encode()).hexdigest()
    ours = json.loads(json.dumps(settings | {"data": digest}))
    if path.exists():
        theirs = json.loads(path.read_text(encoding="utf-8"))
        changed = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        if changed:
            said = "; ".join(f"{key} was {theirs.get(key)!r:.60}, is {ours.get(key)!r:.60}" for key in changed)
            raise UserError(f"{folder}: holds a comparison with other settings ({said}): choose another folder")
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: expected a new or empty folder, or one of the same comparison")
    check_writable(path)
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(ours, indent=1), encoding="utf-8")


class Findings:
    """The result of an experiment whose steps are all done, and the files that it leaves."""

    def __init__(
        self, experiment: Experiment, divided: Divided, verdicts: list[Method], tested: dict[System, int]
    ) -> None:
        self.experiment, self.divided, self.verdicts, self.seeds = experiment, divided, verdicts, tested
        self.folder, self.plan, self.choice = experiment.folder, experiment.plan, experiment.choice
        self.control = next((system for system in tested if system.methods == (CONTROL,)), None)

    def result(self, name: str, command: str, minutes: float) -> Result:
        """All of it; files are written on the way."""
        found = [self.answers(system, seeds) for system, seeds in self.seeds.items()]
        by_system = {one.system: one for one in found}
        examples = {system: self.examples(system) for system in self.seeds}
        rows = answer.measured(found, examples, self.choice, self.control)
        choice = self.chosen()
        mended, broken = answer.changed(self.divided.test, by_system[BARE_SYSTEM], by_system[self.choice])
        files, commands = self.deliver()
        return Result(
            answer=answer.sentence(rows, choice, len(self.experiment.methods)),
            data=name,
            command=command,
            metric="exact match",
            minutes=minutes,
            seconds=round(sum(step.seconds for step in self.steps()), 1),
            versions=_versions(),
            remarks=self.remarks(),
            parts=self.parts(),
            predictor=self.predictor(),
            methods=self.verdicts,
            trials=self.trials(),
            choice=choice,
            tested=rows,
            by_length=answer.by_length(self.divided.test, found),
            by_template=answer.by_template(self.divided.train, self.divided.test, found),
            made=self.made(),
            mended=mended,
            broken=broken,
            steps=self.steps(),
            files=files,
            commands=commands,
        )

    def answers(self, system: System, seeds: int) -> answer.Answers:
        """The answers of a system's predictors to the test part."""
        given = [
            read_result(self.folder, self.experiment.answers(system, seed).name)["answers"] for seed in range(seeds)
        ]
        targets = self.divided.test.frame["target"].to_list()
        right = np.array([[a == b for a, b in zip(answers, targets, strict=True)] for answers in given])
        return answer.Answers(system, given, right)

    def examples(self, system: System) -> int:
        """The synthetic examples of a system that was trained on all training examples."""
        return self.experiment.examples(system, FULL) if system.methods else 0

    def parts(self) -> Parts:
        """How the data were divided."""
        carved = read_dataset(self.folder / "data" / "0.parquet").splits
        return Parts(
            train=len(self.divided.train),
            test=len(self.divided.test),
            test_by=self.divided.by,
            validation={name: carved[name] for name in VALIDATION if name in carved},
            validation_by="random: drawn at random; combinations: all examples with some pair of parts that training "
            "then lacks; once: all examples with some word but one",
            carvings=carvings(self.divided.train),
        )

    def predictor(self) -> PredictorUsed:
        """The predictor, its updates and why so many."""
        written = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        return PredictorUsed(
            name=self.experiment.recipe.name,
            configuration=self._configuration(),
            updates=self.plan.updates,
            why=written["why"],
            curve=[Point(updates=one["updates"], accuracy=one["accuracy"]) for one in written["curve"]],
        )

    def _configuration(self) -> str:
        return ", ".join([self.experiment.recipe.configuration, *self.experiment.recipe.changes])

    def trials(self) -> list[Trial]:
        """All systems on the validation parts, the best first."""
        rows = []
        for system, why in self.experiment.tried.items():
            results = self.experiment.results(system)
            rows.append(
                Trial(
                    system=str(system),
                    methods=list(system.methods),
                    examples=results[0]["examples"],
                    runs=len(results),
                    accuracy=accuracies(results),
                    score=self.experiment.score(system),
                    dropped=why,
                )
            )
        return sorted(rows, key=lambda row: (bool(row.dropped), -row.score))

    def chosen(self) -> Choice:
        """The choice, and why."""
        score = self.experiment.score(self.choice)
        runs = f"mean accuracy on the validation parts over {self.plan.rounds} rounds"
        if self.choice.methods:
            why = f"the best {runs}: {score:.1%}; the bare data have {self.experiment.score(BARE_SYSTEM):.1%}"
        else:
            why = f"no system has a better {runs} than the bare data, {score:.1%}, and the control"
        return Choice(
            system=str(self.choice),
            methods=list(self.choice.methods),
            examples=self.examples(self.choice),
            why=why,
        )

    def made(self) -> list[Made]:
        """What the methods made from all training examples; where they did not, from those of the first carving."""
        rows = []
        for method in self.experiment.methods:
            tested = [system for system in self.seeds if system.methods == (method,)]
            carving: int | str = FULL if tested else 0
            share = tested[0].share(self.experiment.sizes[FULL]) if tested else 0
            found = read_result(
                self.folder,
                self.experiment.augment(method, carving, self.experiment.asked(method, carving, share)).name,
            )
            if not found["made"]:
                continue
            rows.append(
                Made(
                    method=method,
                    examples=found["made"],
                    seconds=found["seconds"],
                    figures=found["quality"]["figures"],
                    words=found["quality"]["words"],
                    warnings=found["quality"]["warnings"],
                    shown=found["shown"],
                    settings=found["settings"],
                )
            )
        return rows

    def remarks(self) -> list[str]:
        """What to know: what made nothing, what was left out for want of time, and where nothing can be learned."""
        warned = [one for one in findings(rows_of(self.divided.train)) if one.severity == "warning"]
        remarks = [
            f"In the training examples: {one.what} ({len(one.lines):,} examples). {one.advice}." for one in warned
        ]
        for method in self.experiment.methods:
            found = read_result(
                self.folder, self.experiment.augment(method, 0, self.experiment.asked(method, 0, 0)).name
            )
            if not found["made"]:
                remarks.append(f"{method} made nothing: {found['why']}")
        if len(self.plan.times) < 2 or self.plan.rounds < 2:
            remarks.append(
                f"The time allowed amounts of {' and '.join(f'x{one:g}' for one in self.plan.times)}, and "
                f"{self.plan.rounds} round{'s' * (self.plan.rounds > 1)} of validation; --minutes and --jobs give more."
            )
        left = [method for method in self.experiment.methods if not any(method in one.methods for one in self.seeds)]
        if left:
            remarks.append(f"Not tested: {', '.join(left)}; they were not chosen, and no time was left to test others.")
        return remarks

    def steps(self) -> list[Step]:
        """All steps that were run, and their seconds."""
        paths = sorted((self.folder / "steps").glob("*.json"), key=lambda path: path.stat().st_mtime)
        return [Step(step=path.stem, seconds=json.loads(path.read_text(encoding="utf-8"))["seconds"]) for path in paths]

    def deliver(self) -> tuple[dict[str, str], list[str]]:
        """Write the chosen data and the model; return the files, and the commands that make them by hand."""
        files = {
            "report.html": "this page",
            "compare.json": "all figures",
            "data/full.parquet": "the training examples",
        }
        files["data/test.parquet"] = "the test part"
        train, recipe, commands = "data/full.parquet", self.experiment.recipe, list[str]()
        augmented = None
        if self.choice.methods:
            augmented = "augmented.jsonl"
            share = self.choice.share(self.experiment.sizes[FULL])
            asked = {method: self.experiment.asked(method, FULL, share) for method in self.choice.methods}
            data = added(self.folder, asked, share, FULL)
            assert data is not None
            write_dataset(data, self.folder / augmented)
            files[augmented] = f"{len(data):,} synthetic examples: {self.choice}"
            commands += self._augmentations(train, share)
        commands.append(recipe.command(train, augmented, "predictor.pt", self.plan.updates))
        commands.append("cgen evaluate predictor.pt data/test.parquet --split test")
        model = model_file(self.folder, self.choice.slug, FULL, 0, self.plan.updates)
        _copy(model, self.folder / "predictor.pt")
        files["predictor.pt"] = "the predictor trained on them and on the training examples, seed 0"
        if recipe.exports:
            from compgen.api import export_bundle

            if not (self.folder / "bundle").exists():
                export_bundle(self.folder / "predictor.pt", self.folder / "bundle")
            files["bundle"] = "the predictor as a bundle, which runs without torch"
            commands.append("cgen export predictor.pt -o bundle")
        with atomic_path(self.folder / "commands.sh") as temporary:
            temporary.write_text("\n".join(["#!/bin/sh", "set -e", *commands, ""]), encoding="utf-8")
        return files | {"commands.sh": "makes the chosen result again, run in this folder"}, commands

    def _augmentations(self, train: str, share: int) -> list[str]:
        """The commands that make the chosen synthetic examples."""
        commands, outs = [], []
        for method in self.choice.methods:
            out = "augmented.jsonl" if len(self.choice.methods) == 1 else f"{method}.jsonl"
            options = self.experiment.options.get(method, {})
            given = [part for key, value in options.items() for part in ("--set", f"{key}={value}")]
            commands.append(shlex.join(["cgen", "augment", method, train, "-n", str(share), *given, "-o", out]))
            outs.append(out)
        if len(outs) > 1:
            commands.append(f"cat {' '.join(outs)} > augmented.jsonl")
        return commands


def _copy(model: Path, out: Path) -> None:
    with atomic_path(out, directory=model.is_dir()) as temporary:
        if model.is_dir():
            shutil.copytree(model, temporary, dirs_exist_ok=True)
        else:
            shutil.copyfile(model, temporary)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in ("compgen", "torch", "numpy", "polars", "onnxruntime", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
