"""The findings of a comparison whose steps are done: the result, and the files that it leaves."""

import platform
import shlex
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from compgen.comparison import answer
from compgen.comparison.experiment import Experiment, last_rise
from compgen.comparison.parts import Divided, carvings, remembered
from compgen.comparison.plan import ENOUGH, LAST_UPDATES, OVERTIME, ROUNDS, STEEP, left_out
from compgen.comparison.planning import last_gain
from compgen.comparison.result import CONTROL, Choice, Made, Method, Parts, Point, PredictorUsed, Result, Step, Trial
from compgen.comparison.running import ELAPSED, accuracies
from compgen.comparison.steps import FULL, VALIDATION, added, model_file, read_json
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.data.checks import findings, rows_of
from compgen.data.formats import read_dataset, write_dataset
from compgen.files import as_utf8, atomic_path

TELLING = 0.02  # difference of scores, below which validation says little


class Findings:
    """The result of an experiment whose steps are all done, and the files that it leaves."""

    def __init__(
        self, experiment: Experiment, divided: Divided, verdicts: list[Method], tested: dict[System, int]
    ) -> None:
        self.experiment, self.divided, self.verdicts, self.seeds = experiment, divided, verdicts, tested
        self.folder, self.plan = experiment.folder, experiment.rest
        self.choice = experiment.final(tested)
        self.control = next((system for system in tested if system.methods == (CONTROL,)), None)

    def result(self, name: str, command: str, minutes: float) -> Result:
        """Return the whole result, and write the files that it names."""
        found = [self.answers(system, seeds) for system, seeds in self.seeds.items()]
        by_system = {one.system: one for one in found}
        examples = {system: self.examples(system) for system in self.seeds}
        rows = answer.measured(found, examples, self.choice, self.control)
        choice = self.chosen()
        ours = {"together": self.together()}
        rows = [row.model_copy(update=ours) if row.system == str(self.choice) else row for row in rows]
        mended, broken = answer.changed(self.divided.test, by_system[BARE_SYSTEM], by_system[self.choice])
        files, commands = self.deliver()
        if not (self.folder / ELAPSED).exists():  # damaged, and deleted, when all steps were done
            self.experiment.note_time()
        seconds = float(read_json(self.folder / ELAPSED))
        return Result(
            answer=answer.sentence(rows, choice, len(self.experiment.methods), self.failed()) + self.undertrained(),
            data=as_utf8(name),
            command=as_utf8(command),
            metric="exact match",
            minutes=minutes,
            seconds=seconds,
            versions=_versions(),
            remarks=[*self.remarks(), *_overtime(seconds, minutes)],
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
        given = [self.experiment.found(self.experiment.answers(system, seed))["answers"] for seed in range(seeds)]
        targets = self.divided.test.frame["target"].to_list()
        right = np.array([[a == b for a, b in zip(answers, targets, strict=True)] for answers in given])
        return answer.Answers(system, given, right)

    def together(self) -> float | None:
        """The accuracy of the choice's predictors together, if there are several."""
        step = self.experiment.together(self.seeds)
        if step is None:
            return None
        answers, targets = self.experiment.found(step)["answers"], self.divided.test.frame["target"].to_list()
        return float(np.mean([a == b for a, b in zip(answers, targets, strict=True)]))

    def examples(self, system: System) -> int:
        """The synthetic examples of a system that was trained on all training examples."""
        return self.experiment.examples(system, FULL)

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
        return PredictorUsed(
            name=self.experiment.recipe.name,
            configuration=", ".join([self.experiment.recipe.configuration, *self.experiment.recipe.changes]),
            updates=self.experiment.updates,
            why=self.why_updates(),
            curve=[Point(updates=one["updates"], accuracy=one["accuracy"]) for one in self.experiment.planned["curve"]],
        )

    def why_updates(self) -> str:
        """Why so many updates: of the comparison on validation, and of what was tested, which may have more."""
        why, points = str(self.experiment.planned["why"]), self.experiment.lengthened["points"]
        if len(points) == 1:
            return why
        scores = ", ".join(f"{point['score']:.1%} after {point['updates']:,}" for point in points)
        if self.experiment.updates == self.plan.updates:
            return f"{why}; {self.experiment.choice} does not gain by more ({scores})"
        return f"{self.plan.updates:,} on validation ({why}), where {self.experiment.choice} has {scores}"

    def undertrained(self) -> str:
        """A warning, if the predictor did not learn the training examples, or was still getting much better."""
        curve, points = self.experiment.planned["curve"], self.experiment.lengthened["points"]
        learned = next(one["learned"] for one in curve if one["updates"] == self.plan.updates)
        of, gain, what = curve, last_gain(curve), "accuracy on examples held out at random"
        if len(points) > 1:  # what gains nothing by more updates has had enough of them, whatever it knows by heart
            of, gain, what = points, last_rise(points), f"the score of {self.experiment.choice} on validation"
            learned = 1.0
        if learned < ENOUGH:
            updates = f"{self.plan.updates:,} updates"
            why = f"after {updates} the bare data's one knows {learned:.0%} of the training examples by heart"
        elif gain >= STEEP:
            why = (
                f"from {of[-2]['updates']:,} to {of[-1]['updates']:,} updates, {what} still went up by "
                f"{100 * gain:.0f} points"
            )
        else:
            return ""
        advice = "Allow more --minutes or --jobs, or fewer --methods."
        if self.experiment.updates >= LAST_UPDATES:
            advice = "No comparison makes more: try another --predictor."
        return f" But the predictor is undertrained: {why}. {advice}"

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
                    dropped=why or self.stopped(system),
                )
            )
        return sorted(rows, key=lambda row: (bool(row.dropped), -row.score))

    def stopped(self, system: System) -> str:
        """Why the bare data or the control was tried no further, although it stays in the choice; empty if it was."""
        going_on = self.experiment.going_on(self.plan)
        stopped = going_on and system not in going_on and not system.candidate
        return "far behind the best after the first round" if stopped else ""

    def failed(self) -> str:
        """The system that was chosen, if its methods made nothing of all training examples; empty if they did."""
        return "" if self.choice == self.experiment.choice else str(self.experiment.choice)

    def chosen(self) -> Choice:
        """The choice, and why."""
        score = self.experiment.score(self.choice)
        runs = f"mean accuracy on the validation parts over {_rounds(self.plan.rounds)}"
        if self.choice.methods:
            shared = self.experiment.shared(self.choice, BARE_SYSTEM)
            own = self.experiment.score(self.choice, shared)
            where = "" if shared == self.plan.rounds else f" in the first, where {self.choice} has {own:.1%}"
            why = f"the best {runs}: {score:.1%}; the bare data have {self.experiment.score(BARE_SYSTEM):.1%}{where}"
        elif failed := self.failed():
            best = self.experiment.score(self.experiment.choice)
            why = f"{failed} has the best {runs}, {best:.1%}, but made nothing of all examples"
        else:
            why = f"no system has a better {runs} than the control and, by a standard error, the bare data, {score:.1%}"
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
            tested = sorted((one for one in self.seeds if method in one.methods), key=lambda one: len(one.methods))
            carving: int | str = FULL if tested else 0
            share = tested[0].share(self.experiment.sizes[FULL]) if tested else 0
            found = self.experiment.found(self.experiment.augment(method, carving, share))
            if not found["made"]:
                continue
            rows.append(
                Made(
                    method=method,
                    examples=found["made"],
                    seconds=found["seconds"],
                    figures=found["quality"]["figures"],
                    words=found["quality"]["words"],
                    warnings=found["warnings"],
                    shown=found["shown"],
                    settings=[found["settings"]] if found["settings"] else [],
                )
            )
        return rows

    def remarks(self) -> list[str]:
        """What to know: what made nothing, what was left out for want of time, and where nothing can be learned."""
        warned = [one for one in findings(rows_of(self.divided.train)) if one.severity == "warning"]
        remarks = [
            f"In the training examples: {one.what}{_of(one.lines)}. {one.advice[:1].upper()}{one.advice[1:]}."
            for one in warned
        ]
        remarks += remembered(self.divided)
        left = []
        for method in self.experiment.methods:
            found = self.experiment.found(self.experiment.augment(method, 0, 0))
            if not found["made"]:
                remarks.append(f"{method} made nothing: {found['why']}")
            elif not any(method in one.methods for one in self.seeds):
                left.append(method)
        if len(self.plan.times) < 2 or self.plan.rounds < ROUNDS:
            asked = self.experiment.seeds
            seeds = f", and {self.plan.seeds} of {asked} seeds" if self.plan.seeds < asked else ""
            remarks.append(
                f"The time allowed amounts of {' and '.join(f'x{one:g}' for one in self.plan.times)}, and "
                f"{_rounds(self.plan.rounds)} of validation{seeds}; --minutes and --jobs give more."
            )
        if self.plan != self.experiment.plan:
            remarks.append(
                "The first round took longer than planned; to end in time, less was done after it: "
                f"{left_out(self.experiment.plan, self.plan)}."
            )
        if max(self.seeds.values()) == 1:
            remarks.append(
                "Each system was tested with one seed, so intervals leave out how much trainings differ; --seeds, "
                "--minutes and --jobs give more."
            )
        remarks += self.fewer()
        remarks += self.untelling()
        remarks += self.untested(left)
        return remarks

    def untested(self, methods: Sequence[str]) -> list[str]:
        """A remark on methods that have made examples and are in no system tested, if there are any."""
        why = "they were not chosen, and no time was left to test others"
        if [*self.seeds] == [BARE_SYSTEM]:
            why = "the best on validation data made nothing of all training examples"
        return [f"Not tested: {', '.join(methods)}; {why}."] if methods else []

    def fewer(self) -> list[str]:
        """A remark for each system tested that has fewer synthetic examples than its name says."""
        remarks = []
        for system in self.seeds:
            asked = system.share(self.experiment.sizes[FULL]) * len(system.methods)
            if (made := self.examples(system)) < asked:
                remarks.append(f"{system} is what was asked for, {asked:,} synthetic examples: {made:,} were made.")
        return remarks

    def untelling(self) -> list[str]:
        """A warning, if validation does not tell the systems apart; none where there was no method to choose."""
        left = [system for system, why in self.experiment.tried.items() if not why]
        if not any(system.candidate for system in left):
            return []
        scores = [self.experiment.score(system, self.experiment.shared(*left)) for system in left]
        low, high = min(scores), max(scores)
        if high - low >= TELLING:
            return []
        return [
            f"Validation hardly tells the systems apart: their scores are from {low:.1%} to {high:.1%}. The choice is "
            "little better than chance; more examples, or a test part that asks for more, would say more."
        ]

    def steps(self) -> list[Step]:
        """All steps that were run, and their seconds; files of steps that were killed have names with a dot."""
        paths = sorted((self.folder / "steps").glob("[!.]*.json"), key=lambda path: path.stat().st_mtime)
        return [Step(step=path.stem, seconds=read_json(path)["seconds"]) for path in paths]

    def deliver(self) -> tuple[dict[str, str], list[str]]:
        """Write the chosen data and the model; return the files, and the commands that make them by hand."""
        files = {
            "report.html": "this page",
            "compare.json": "all figures",
            "data/full.parquet": "the training examples",
            "data/test.parquet": "the test part",
        }
        train, recipe, commands = "data/full.parquet", self.experiment.recipe, list[str]()
        augmented = None
        if self.choice.methods:
            augmented = "augmented.jsonl"
            share = self.choice.share(self.experiment.sizes[FULL])
            data = added(self.folder, dict.fromkeys(self.choice.methods, share), share, FULL)
            assert data is not None
            write_dataset(data, self.folder / augmented)
            files[augmented] = f"{len(data):,} synthetic examples: {self.choice}"
            commands += self._augmentations(train, share)
        commands.append(recipe.command(train, augmented, "predictor.pt", self.experiment.updates))
        commands.append("cgen evaluate predictor.pt data/test.parquet --split test")
        both = "them and on the training examples" if self.choice.methods else "the training examples"
        files["predictor.pt"] = f"the predictor trained on {both}, seed 0"
        for seed in range(self.seeds[self.choice] if recipe.exports else 1):
            out = f"predictor-{seed}.pt" if seed else "predictor.pt"
            _copy(model_file(self.folder, self.choice.slug, FULL, seed, self.experiment.updates), self.folder / out)
            files |= {out: f"the same of seed {seed}, to answer together"} if seed else {}
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
        # The command of a method that makes nothing would fail, and end the script.
        methods = [one for one in self.choice.methods if self.experiment.made(one, FULL, share)]
        for method in methods:
            out = "augmented.jsonl" if len(methods) == 1 else f"{method}.jsonl"
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


def _overtime(seconds: float, minutes: float) -> list[str]:
    """A remark, if the comparison took longer than it was allowed to."""
    if seconds <= OVERTIME * 60 * minutes:
        return []
    return [
        f"It took {seconds / 60:.0f} minutes of the {minutes:g} allowed: updates or methods were slower than in the "
        "beginning, when what fits was chosen."
    ]


def _rounds(number: int) -> str:
    return f"{number} round{'s' * (number != 1)}"


def _of(lines: Sequence[int]) -> str:
    """How many examples a finding is of, if it is not of all."""
    return f" ({len(lines):,} example{'s' * (len(lines) != 1)})" if lines else ""
