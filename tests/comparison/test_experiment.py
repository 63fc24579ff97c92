"""The experiment with workers that make up results: what it tries, drops, joins and chooses, and that it goes on."""

import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from compgen.comparison.experiment import Experiment, _variance, gain_error
from compgen.comparison.findings import Findings
from compgen.comparison.parts import divide
from compgen.comparison.plan import FIRST_UPDATES, left_out
from compgen.comparison.planning import _enough
from compgen.comparison.predictors import Recipe
from compgen.comparison.result import CONTROL
from compgen.comparison.steps import FULL, VALIDATION, Step, result_of
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.data.checks import Finding
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset

METHODS = ("geca", "csl", "concat", "recombine")


class KilledError(Exception):
    """The run was killed."""


class MadeUp:
    """Workers that write results: `helps` says how much a system is better than the bare data, of 100 %."""

    def __init__(
        self, folder: Path, helps: Callable[[str], float], seconds: float = 1.0, dies_after: int = 10**9
    ) -> None:
        self.count, self.time = 1, 0.0
        self.folder, self.helps, self.seconds, self.left, self.ran = folder, helps, seconds, dies_after, list[str]()

    def run(self, steps, finished) -> None:
        steps = list(steps)
        for step in steps:
            if not self.left:
                raise KilledError
            self.left -= 1
            self.ran.append(step.name)
            path = result_of(self.folder, step.name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"seconds": self.seconds} | self.result(step)))
            self.time += self.seconds
            steps += finished(step)

    def result(self, step: Step) -> dict:
        if step.kind == "augment":
            made = 0 if step.given["method"] == "concat" else step.given["count"]
            return {"made": made, "why": "" if made else "nothing fits"}
        if step.kind in ("test", "together"):
            return {"answers": []}
        given = step.given
        share = 0.4 + self.helps(given["system"]) + 0.001 * given["seed"]
        right = "".join("01"[at < 1000 * share] for at in range(1000))
        examples = sum(min(given["share"], count) for count in given["made"].values())
        return {
            "examples": examples,
            "trained": self.seconds,
            "learned": "1" * 100,
            "right": dict.fromkeys(VALIDATION, right),
        }


def data() -> Dataset:
    words = [f"w{at}" for at in range(12)]
    pairs = [([a, b], [a.upper(), b.upper()]) for a in words for b in words]
    return Dataset.from_pairs(pairs)


def experiment(folder: Path, workers: MadeUp, seconds: float = 10_000) -> Experiment:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_dataset(Dataset(data().frame.head(30).with_columns(split=pl.lit("test"))), folder / "data" / "test.parquet")
    found = Experiment(
        folder=folder,
        methods=METHODS,
        recipe=Recipe("seq2seq", ()),
        seconds=seconds,
        seeds=3,
        options={},
        workers=workers,
        say=lambda _: None,
        clock=lambda: workers.time,
    )
    found.begin(data())
    return found


def test_few_right_answers_are_not_taken_for_certain_and_a_small_gain_is_enough():
    assert _variance([{"right": {"random": "1" * 18}}]) == pytest.approx(0.95 * 0.05 / 20)
    for gain, enough in ((0.005, True), (0.02, False)):
        points = [{"updates": n, "learned": 1.0, "accuracy": {"random": 0.9 + gain * (n > 100)}} for n in (100, 200)]
        assert bool(_enough(points, 1000)) == enough


def test_the_best_by_validation_is_chosen_and_methods_that_make_nothing_are_left_out(tmp_path):
    workers = MadeUp(tmp_path, lambda system: {"geca-x8": 0.0, "gecax8": 0.2, "cslx1": 0.1}.get(system, 0.0))
    found = experiment(tmp_path, workers)
    assert found.choice == System(("geca",), 8)
    assert {system.methods for system in found.tried} == {
        (),
        ("geca",),
        ("csl",),
        ("recombine",),
        (CONTROL,),
        ("csl", "geca"),
    }
    assert all(found.tried[one] == "" for one in (BARE_SYSTEM, found.choice))
    assert found.tried[System(("csl",), 1)] == "far behind the best after the first round"
    assert not [name for name in workers.ran if name.startswith("test-")]  # the test part is still closed


def test_where_time_is_short_few_systems_go_on(tmp_path):
    helps = {"gecax8": 0.02, "gecax1": 0.01, "cslx1": 0.005}
    workers = MadeUp(tmp_path, lambda system: helps.get(system, 0.0))
    found = experiment(tmp_path, workers, seconds=64)
    assert found.plan.survivors == 3 and found.plan.rounds == 3
    assert found.tried[System(("csl",), 8)] == "not among the best 3 after the first round"
    assert rounds(found, System(("csl",), 1)) == 3


def rounds(found: Experiment, system: System) -> int:
    return len(found.results(system))


def test_what_may_still_win_goes_on_and_what_cannot_does_not(tmp_path):
    near = {"gecax8": 0.2, "gecax1": 0.19, "cslx1": 0.05, "cslx8": 0.05}
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: near.get(system, 0.0)))
    assert found.plan.rounds == 3 and found.choice == System(("geca",), 8)
    assert rounds(found, System(("geca",), 8)) == rounds(found, System(("geca",), 1)) == 3
    stopped = (BARE_SYSTEM, System((CONTROL,), 1), System(("csl",), 1))
    assert [rounds(found, one) for one in stopped] == [1, 1, 1]
    told = {row.system: row.dropped for row in Findings(found, divide(data()), [], found.tested()).trials()}
    assert {told[str(one)] for one in stopped} == {"far behind the best after the first round"}
    assert told["geca x8"] == told["geca x1"] == ""


class Harder(MadeUp):
    """Validation is harder in further carvings than in the first."""

    def result(self, step: Step) -> dict:
        found = super().result(step)
        if step.given.get("carving") in (1, 2) and step.kind == "trial":
            share = 0.05 + self.helps(step.given["system"])
            found["right"] = dict.fromkeys(VALIDATION, "".join("01"[at < 1000 * share] for at in range(1000)))
        return found


def test_systems_are_compared_by_the_rounds_that_both_were_in(tmp_path):
    helps = {"gecax8": 0.2, "gecax1": 0.14, "cslx1": 0.1}
    found = experiment(tmp_path, Harder(tmp_path, lambda system: helps.get(system, 0.0)))
    chosen = System(("geca",), 8)
    assert found.choice == chosen and found.best_of_methods()[0] == chosen
    assert rounds(found, BARE_SYSTEM) == 1 and found.score(chosen) < found.score(BARE_SYSTEM)
    assert any("+" in str(system) for system in found.tried)  # csl is ahead of bare, too
    why = Findings(found, divide(data()), [], found.tested()).chosen().why
    assert why.endswith("36.7%; the bare data have 40.0% in the first, where geca x8 has 60.1%")


def test_what_makes_nothing_in_a_further_round_is_not_chosen(tmp_path):
    class Exhausting(Harder):
        def result(self, step: Step) -> dict:
            none = step.kind == "augment" and (step.given["method"], step.given["carving"]) == ("geca", 1)
            return {"made": 0, "why": "nothing fits"} if none else super().result(step)

    helps = {"gecax8": 0.04, "cslx8": 0.03}
    found = experiment(tmp_path, Exhausting(tmp_path, lambda system: helps.get(system, 0.0)))
    assert found.tried[System(("geca",), 8)] == "made nothing in a further round"
    assert found.choice == System(("csl",), 8)


def test_a_union_that_makes_nothing_in_a_further_round_is_not_chosen(tmp_path):
    class Exhausting(MadeUp):
        def result(self, step: Step) -> dict:
            none = step.kind == "augment" and step.given["carving"] == 1 and step.given["method"] != CONTROL
            return {"made": 0, "why": "nothing fits"} if none else super().result(step)

    helps = {"gecax8": 0.2, "cslx8": 0.15, "csl+gecax8": 0.3}
    found = experiment(tmp_path, Exhausting(tmp_path, lambda system: helps.get(system, 0.0)))
    assert found.tried[System(("csl", "geca"), 8)] == "made nothing in a further round"
    assert found.choice == BARE_SYSTEM and found.tested()


def test_what_chance_may_explain_is_tried_in_all_rounds(tmp_path):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.03 if system == "gecax8" else 0.0))
    assert found.choice == System(("geca",), 8)
    assert rounds(found, BARE_SYSTEM) == rounds(found, found.choice) == 3


def test_the_union_of_two_methods_that_help_can_win(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.3 if "+" in system else {"geca": 0.2, "cslx": 0.1}.get(system[:4], 0.0))
    assert experiment(tmp_path, workers).choice == System(("csl", "geca"), 1)


class Told(MadeUp):
    """Methods say of which training examples they made theirs."""

    def result(self, step: Step) -> dict:
        quality = {"quality": {"figures": {}, "words": [str(step.given.get("carving"))]}, "warnings": []}
        return super().result(step) | quality | {"shown": [], "settings": ""}


def test_what_is_said_of_the_methods_of_a_union_is_of_the_examples_that_it_has(tmp_path):
    helps = {"geca": 0.2, "cslx": 0.1}
    workers = Told(tmp_path, lambda system: 0.3 if "+" in system else helps.get(system[:4], 0.0))
    found = experiment(tmp_path, workers)
    tested = {system: 1 for system in found.tested() if len(system.methods) != 1 or system.methods == (CONTROL,)}
    made = Findings(found, divide(data()), [], tested).made()
    joined = set(found.choice.methods)
    assert len(joined) == 2 and {one.method for one in made if one.words == [FULL]} == joined
    assert {one.examples for one in made if one.method in joined} == {found.choice.share(found.sizes[FULL])}


def test_a_union_that_is_no_better_is_not_chosen(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.2 if "geca" in system else 0.1 if "csl" in system else 0.0)
    assert experiment(tmp_path, workers).choice == System(("geca",), 1)


def test_nothing_is_chosen_that_is_not_ahead_of_the_control(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.2 if "resample" in system else 0.1 if "geca" in system else 0.0)
    found = experiment(tmp_path, workers)
    assert found.choice == BARE_SYSTEM
    assert not any("+" in str(system) for system in found.tried)
    tested = found.tested()
    assert [system.methods for system in tested][:3] == [(), (CONTROL,), ("geca",)]  # the best that did not help


def test_methods_are_not_joined_that_are_no_better_than_the_control(tmp_path):
    helps = {"geca": 0.15, "cslx": 0.1, "resa": 0.12}
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: helps.get(system[:4], 0.0)))
    assert found.choice == System(("geca",), 1)
    assert not any("+" in str(system) for system in found.tried)


def test_the_control_takes_no_place_of_those_that_go_on_and_the_best_amount_of_it_goes_on(tmp_path):
    helps = {"resamplex8": 0.03, "resamplex1": 0.025, "gecax8": 0.02, "gecax1": 0.01, "cslx1": 0.005}
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: helps.get(system, 0.0)), seconds=64)
    on = {str(system) for system, why in found.tried.items() if not why}
    assert found.plan.survivors == 3 and on == {"bare", "resample x8", "geca x8", "geca x1", "csl x1"}
    why = "the control in another amount was better in the first round"
    assert found.tried[System((CONTROL,), 1)] == why


def test_of_equally_good_systems_the_smaller_is_chosen(tmp_path):
    assert experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.1 if "geca" in system else 0.0)).choice.times == 1


class Exhausted(MadeUp):
    """Methods make examples of carved training examples, and none of all."""

    def result(self, step: Step) -> dict:
        if step.kind == "augment" and step.given["carving"] == FULL and step.given["method"] != CONTROL:
            return {"made": 0, "why": "nothing fits"}
        return super().result(step)


def test_a_chosen_method_that_makes_nothing_of_all_examples_leaves_the_bare_data(tmp_path):
    found = experiment(tmp_path, Exhausted(tmp_path, lambda system: 0.2 if "geca" in system else 0.0))
    assert found.choice == System(("geca",), 1)
    tested = found.tested()
    assert tested == {BARE_SYSTEM: 3}
    findings = Findings(found, divide(data()), [], tested)
    assert findings.choice == BARE_SYSTEM
    assert findings.chosen().why.startswith("geca x1 has the best mean accuracy") and findings.plan.rounds > 1
    assert findings.failed() == "geca x1"
    assert findings.why_updates().endswith("; geca x1 does not gain by more (60.2% after 1,000, 60.2% after 2,000)")
    (said,) = (one for one in findings.remarks() if one.startswith("Not tested"))
    assert (
        said == "Not tested: geca, csl, recombine; the best on validation data made nothing of all training examples."
    )


def test_a_remark_on_all_examples_counts_none(tmp_path, monkeypatch):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.0))
    whole, some = (Finding("warning", what, lines, "mend it") for what, lines in (("all odd", []), ("odd", [1, 2])))
    monkeypatch.setattr("compgen.comparison.findings.findings", lambda _: [whole, some])
    first, second, *_ = Findings(found, divide(data()), [], found.tested()).remarks()
    assert first == "In the training examples: all odd. Mend it."
    assert second == "In the training examples: odd (2 examples). Mend it."


class Few(MadeUp):
    """GECA makes 100 of all training examples, however many are asked for."""

    def result(self, step: Step) -> dict:
        few = step.kind == "augment" and step.given["carving"] == FULL and step.given["method"] == "geca"
        return {"made": 100, "why": "no more"} if few else super().result(step)


def test_a_system_with_fewer_examples_than_its_name_says_is_named(tmp_path):
    found = experiment(tmp_path, Few(tmp_path, lambda system: 0.2 if "geca" in system else 0.0))
    remarks = Findings(found, divide(data()), [], found.tested()).remarks()
    asked = found.choice.share(found.sizes[FULL])
    assert f"{found.choice} is what was asked for, {asked} synthetic examples: 100 were made." in remarks
    (control,) = (system for system in found.tested() if system.methods == (CONTROL,))
    assert control.share(found.sizes[FULL]) == 100  # as many, or the control would have more
    assert not [remark for remark in remarks if remark.startswith((CONTROL, "csl x", "Each system"))]


def test_one_seed_and_one_round_are_named_as_such(tmp_path):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.0))
    findings = Findings(found, divide(data()), [], dict.fromkeys(found.tested(), 1))
    assert [one for one in findings.remarks() if one.startswith("Each system was tested with one seed, so")]
    assert findings.chosen().why.count(f"over {found.plan.rounds} rounds than") == 1
    found.decisions["rest"] = found.decisions["rest"] | {"rounds": 1}
    findings.plan = found.rest
    assert findings.chosen().why.count("over 1 round than") == 1


def test_the_test_part_is_opened_when_all_predictors_are_trained(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.1 if "geca" in system else 0.0)
    tested = experiment(tmp_path, workers).tested()
    assert tested[BARE_SYSTEM] == tested[System(("geca",), 1)] == 3
    assert System((CONTROL,), 1) in tested
    opened = [name.startswith(("test-", "together-")) for name in workers.ran]
    assert opened == sorted(opened) and sum(opened) == sum(tested.values()) + 1
    assert (tmp_path / "choice.json").exists()


def test_the_predictors_of_what_is_chosen_answer_together(tmp_path):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.1 if "geca" in system else 0.0))
    step = found.together(found.tested())
    assert step.given == {"system": found.choice.slug, "seeds": 3, "updates": found.plan.updates}
    assert found.together({BARE_SYSTEM: 2}).given["system"] == BARE_SYSTEM.slug  # where the choice could not be trained
    assert found.together({found.choice: 1}) is None
    found.recipe = Recipe("t5-folder", ())
    assert found.together({found.choice: 3}) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_steps(tmp_path, seed):
    random = np.random.default_rng(seed)
    gains = {name: float(random.uniform(-0.1, 0.3)) for name in METHODS}
    helps = lambda system: max((gains.get(name, 0.0) for name in METHODS if name in system), default=0.0)  # noqa: E731
    whole = MadeUp(tmp_path / "a", helps)
    expected = experiment(tmp_path / "a", whole).tested()
    ran = []
    for _ in range(100):
        workers = MadeUp(tmp_path / "b", helps, dies_after=int(random.integers(1, 9)))
        try:
            found = experiment(tmp_path / "b", workers).tested()
        except KilledError:
            continue
        finally:
            ran += workers.ran
        break
    assert found == expected and sorted(ran) == sorted(whole.ran)  # which order they are in, workers decide
    for name in ("plan.json", "rest.json", "choice.json", "updates.json", "finals.json"):
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()


def test_what_was_damaged_and_deleted_after_the_choice_is_made_again(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.2 if "geca" in system else 0.0)
    found = experiment(tmp_path, workers)
    expected = found.tested(), Findings(found, divide(data()), [], found.tested()).trials()
    results = {path: path.read_text() for path in (tmp_path / "steps").iterdir()}
    unread = "train-bare-0-0-500", *(f"train-gecax1-{at}-{at}-2000" for at in range(3))  # they are in plan and updates
    for path in results:
        path.unlink()
    found = experiment(tmp_path, workers)
    assert (found.tested(), Findings(found, divide(data()), [], found.tested()).trials()) == expected
    assert {path.stem for path in results if not path.exists()} == {*unread}


class Turning(MadeUp):
    """What is best in the first round is the worst in further ones, by little."""

    def result(self, step: Step) -> dict:
        found = super().result(step)
        if step.kind == "trial" and step.given["carving"] != FULL:
            helps = self.helps(step.given["system"]) * (-1 if step.given["seed"] else 1)
            right = "".join("01"[at < 1000 * (0.4 + helps)] for at in range(1000))
            found["right"] = dict.fromkeys(VALIDATION, right)
        return found


def test_a_run_that_is_killed_in_a_further_round_drops_the_same_systems(tmp_path):
    """Further rounds are no ground for dropping a system, or what was trained before the kill would be one."""
    helps = {"gecax8": 0.03, "gecax1": 0.025, "cslx8": 0.02, "cslx1": 0.01, "recombinex8": 0.015}

    def workers(name: str, dies_after: int) -> MadeUp:
        return Turning(tmp_path / name, lambda system: helps.get(system, 0.0), dies_after=dies_after)

    whole = workers("whole", 10**9)
    expected = experiment(tmp_path / "whole", whole, seconds=64).tried
    further = [at for at, name in enumerate(whole.ran) if name.startswith("train-") and name.split("-")[-2] != "0"]
    assert "not among the best 3 after the first round" in expected.values() and further
    for dies_after in further:
        name = f"killed-{dies_after}"
        first = workers(name, dies_after)
        with pytest.raises(KilledError):
            _ = experiment(tmp_path / name, first, seconds=64).tried
        again = workers(name, 10**9)
        assert experiment(tmp_path / name, again, seconds=64).tried == expected
        assert sorted(first.ran + again.ran) == sorted(whole.ran)


class Growing(MadeUp):
    """Trainings take as long as they have updates, and training examples are never all known by heart."""

    def result(self, step: Step) -> dict:
        found = super().result(step)
        if step.kind == "trial":
            self.seconds = found["trained"] = step.given["updates"] / FIRST_UPDATES
            found["learned"] = "1" * 50 + "0" * 50
        return found


def test_more_time_for_a_run_that_is_resumed_trains_no_more_updates_than_were_planned(tmp_path):
    first = Growing(tmp_path, lambda _: 0.0, dies_after=12)
    with pytest.raises(KilledError):
        _ = experiment(tmp_path, first, seconds=300).tried
    again = Growing(tmp_path, lambda _: 0.0)
    found = experiment(tmp_path, again, seconds=10_000)
    assert found.tried and (tmp_path / "plan.json").exists()
    most = found.planned["curve"][-1]["updates"]
    assert not [name for name in again.ran if name.startswith("train-") and int(name.rsplit("-", 1)[1]) > most]


@pytest.mark.parametrize(("gain", "updates"), [(0.05, 1000), (0.15, 2000)])
def test_while_updates_gain_a_lot_they_go_before_amounts_and_other_methods(tmp_path, gain, updates):
    class Rising(Growing):
        def result(self, step: Step) -> dict:
            found = super().result(step)
            if step.kind == "trial":
                share = 0.4 + gain * (step.given["updates"] / FIRST_UPDATES - 1)
                found["right"]["random"] = "".join("01"[at < 1000 * share] for at in range(1000))
                found["learned"] = "1" * 100
            return found

    found = experiment(tmp_path, Rising(tmp_path, lambda _: 0.0), seconds=100)
    plan = found.plan
    assert plan.updates == updates and (len(plan.times) == 2) == (updates == 1000)
    told = Findings(found, divide(data()), [], found.tested()).undertrained()
    still = "from 1,000 to 2,000 updates, accuracy on examples held out at random still went up by 30 points. Allow"
    assert (still in told) == (updates == 2000) and bool(told) == (updates == 2000)


@pytest.mark.parametrize(
    ("seconds", "why", "advice"), [(10**6, "most that a comparison makes", "No"), (300, "not leave time for", "Allow")]
)
def test_what_limits_the_updates_of_a_predictor_that_has_not_learned_is_said(tmp_path, seconds, why, advice):
    found = experiment(tmp_path, Growing(tmp_path, lambda _: 0.0), seconds=seconds)
    findings = Findings(found, divide(data()), [], found.tested())
    assert why in found.planned["why"]
    assert f"50% of the training examples by heart. {advice} " in findings.undertrained()


class Slow(MadeUp):
    """Trainings take three times as long once the plan is made."""

    def result(self, step: Step) -> dict:
        planned = (self.folder / "plan.json").exists()
        self.seconds = 3.0 if planned and step.kind == "trial" else 1.0
        return super().result(step) | {"seconds": self.seconds}


def test_what_became_slower_after_planning_is_thinned_and_ends_in_time(tmp_path):
    helps = {"gecax8": 0.2, "gecax1": 0.19, "cslx8": 0.19, "cslx1": 0.19, "recombinex8": 0.19}
    whole, said = MadeUp(tmp_path / "a", lambda system: helps.get(system, 0.0)), list[str]()
    found = experiment(tmp_path / "a", whole, seconds=80)
    found.say = said.append
    found.tested()
    assert found.rest == found.plan and whole.time <= 80  # as planned, and nothing is said
    assert not [line for line in said if "longer" in line]

    slow = Slow(tmp_path / "b", lambda system: helps.get(system, 0.0))
    found = experiment(tmp_path / "b", slow, seconds=80)
    found.say = said.append
    tested = found.tested()
    assert (found.plan.others, found.rest.others) == (3, 1) and found.rest.times == found.plan.times
    assert slow.time <= 1.1 * 80 + 12  # what is made of all training data, and their answers, take time, too
    less = left_out(found.plan, found.rest)
    assert [line for line in said if "longer" in line] == [
        f"the first round took longer than planned; to end in time, {less}"
    ]
    findings = Findings(found, divide(data()), [], tested)
    (remark,) = [remark for remark in findings.remarks() if "longer" in remark]
    assert remark.endswith(f"less was done after it: {less}.")
    assert f"over {found.rest.rounds} round" in findings.chosen().why


class Together(MadeUp):
    """Several steps at a time; an update takes a tenth of a second, and all is learned by 4,000."""

    def run(self, steps, finished) -> None:
        waiting, running = deque(steps), []
        while waiting or running:
            while waiting and len(running) < self.count:
                step = waiting.popleft()
                found = self.result(step)
                heappush(running, (self.time + found["seconds"], step.name, step, found))
            self.time, _, step, found = heappop(running)
            result_of(self.folder, step.name).parent.mkdir(exist_ok=True)
            result_of(self.folder, step.name).write_text(json.dumps(found))
            waiting += finished(step)

    def result(self, step: Step) -> dict:
        found = super().result(step)
        if step.kind != "trial":
            return found | {"seconds": 0.5}
        updates = step.given["updates"]
        known = "".join("01"[at < 100 * updates / 4000] for at in range(100))
        return found | {"seconds": 0.1 * updates, "trained": 0.1 * updates, "learned": known}


@pytest.mark.parametrize("count", [8, 16, 64])
def test_many_processes_do_not_make_a_comparison_take_longer_than_allowed(tmp_path, count):
    """Whatever their number, a round begins when the one before has ended."""
    workers = Together(tmp_path, lambda system: 0.1 if "geca" in system else 0.0)
    workers.count = count
    found = experiment(tmp_path, workers, seconds=600)
    assert found.tested() and workers.time <= 1.1 * 600


class SlowAtLast(MadeUp):
    """Trainings on all examples take ten times as long as those before."""

    def result(self, step: Step) -> dict:
        self.seconds = 10.0 if step.kind == "trial" and step.given["carving"] == FULL else 1.0
        return super().result(step) | {"seconds": self.seconds}


def test_other_methods_are_tested_as_far_as_the_time_allows(tmp_path):
    def others(seconds: float) -> list[int]:
        folder = tmp_path / str(seconds)
        workers = SlowAtLast(folder, lambda system: 0.1 if "geca" in system else 0.0)
        tested = experiment(folder, workers, seconds).tested()
        return [seeds for system, seeds in tested.items() if system.methods in (("csl",), ("recombine",))]

    assert [others(seconds) for seconds in (110, 130, 1000)] == [[], [1, 1], [3, 3]]


def test_updates_are_doubled_until_the_bare_data_gain_nothing(tmp_path):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda _: 0.0))
    assert found.plan.updates == 2 * FIRST_UPDATES
    assert "changed by +0.0 points" in json.loads((tmp_path / "plan.json").read_text())["why"]


class Learning(MadeUp):
    """GECA gains by updates up to 4,000, the bare data by none; all know the training examples by heart."""

    def result(self, step: Step) -> dict:
        found = super().result(step)
        if step.kind != "trial":
            self.seconds = 0.1
        else:
            self.seconds = found["trained"] = step.given["updates"] / FIRST_UPDATES
            if "geca" in step.given["system"]:
                share = self.share(step.given["updates"])
                found["right"] = dict.fromkeys(VALIDATION, "".join("01"[at < 1000 * share] for at in range(1000)))
        return found | {"seconds": self.seconds}

    def share(self, updates: int) -> float:
        """GECA's accuracy."""
        return 0.4 + 0.05 * min(updates, 4000) / 1000


@pytest.mark.parametrize(
    ("seconds", "updates", "tried"),
    [
        (10_000, 4000, "where geca x1 has 45.0% after 1,000, 50.0% after 2,000, 60.1% after 4,000, 60.1% "),
        (150, 2000, "where geca x1 has 45.0% after 1,000, 50.0% after 2,000"),
        (25, 500, "known by heart"),
    ],
)
def test_what_is_tested_has_as_many_updates_as_the_choice_gains_by_in_the_time(tmp_path, seconds, updates, tried):
    workers = Learning(tmp_path, lambda _: 0.0)
    found = experiment(tmp_path, workers, seconds)
    tested = found.tested()
    whole = {name.rsplit("-", 1)[1] for name in workers.ran if name.startswith("train-") and f"-{FULL}-" in name}
    assert whole == {str(updates)} == {str(found.updates)}
    findings = Findings(found, divide(data()), [], tested)
    assert tried in findings.why_updates() and not findings.undertrained()


def test_a_run_that_is_killed_while_updates_are_doubled_tests_as_many(tmp_path):
    """In the least time in which they are doubled, what is done already must not be counted as still to do."""

    def run(name: str, seconds: float, dies_after: int = 10**9) -> tuple[Experiment, MadeUp]:
        workers = Learning(tmp_path / name, lambda _: 0.0, dies_after=dies_after)
        found = experiment(tmp_path / name, workers, seconds)
        with suppress(KilledError):
            _ = found.updates
        return found, workers

    runs = (run(f"in-{quarters}", quarters / 4) for quarters in range(144, 240))
    found, workers = next(one for one in runs if one[0].rest.rounds > 1 and one[0].updates > one[0].plan.updates)
    updates, end = found.updates, f"-{found.updates}"
    longer = [at for at, name in enumerate(workers.ran) if name.startswith("train-geca") and name.endswith(end)]
    assert len(longer) == found.rest.rounds > 1
    for dies_after in longer[1:]:
        run(f"killed-{dies_after}", found.seconds, dies_after)
        assert run(f"killed-{dies_after}", found.seconds)[0].updates == updates


def test_few_validation_examples_do_not_end_the_doubling_of_updates(tmp_path):
    class Few(Learning):
        def result(self, step: Step) -> dict:
            found = super().result(step)
            if "right" in found:  # the share of ten
                share = 0.1 * round(10 * found["right"]["random"].count("1") / 1000)
                found["right"] = dict.fromkeys(VALIDATION, "".join("01"[at < 10 * share] for at in range(10)))
            return found

        def share(self, updates: int) -> float:  # noqa: ARG002
            return 0.8

    found = experiment(tmp_path, Few(tmp_path, lambda _: 0.0), seconds=10_000)
    assert found.choice == System(("geca",), 1) and found.updates == 32_000
    assert len({point["score"] for point in found.lengthened["points"]}) == 1


def test_an_error_of_a_gain_is_that_of_answers_to_the_same_examples():
    """By an independent computation: 6 of 100 answers change, 4 for the better."""
    before, now = "1" * 50 + "0" * 50, "00" + "1" * 48 + "1111" + "0" * 46
    changes = [-1] * 2 + [0] * 48 + [1] * 4 + [0] * 46 + [1, -1]
    mean = sum(changes) / 102
    expected = (sum((one - mean) ** 2 for one in changes) / 102 / 102) ** 0.5
    part = [{"right": {"random": old}} for old in (before, now)]
    assert gain_error(part[:1], part[1:]) == pytest.approx(expected)
    assert gain_error(part[:1], part[1:]) < _variance(part[:1]) ** 0.5
    both = [{"right": {"random": old, "once": old}} for old in (before, now)]
    assert gain_error(both[:1], both[1:]) == pytest.approx(expected / 2**0.5)
    twice = [[{"right": {"random": old[:50]}}, {"right": {"random": old[50:]}}] for old in (before, now)]
    assert gain_error(*twice) == pytest.approx(expected)  # two rounds are answers to other examples


def test_a_choice_that_still_gains_much_when_time_is_up_is_undertrained(tmp_path):
    class Slowly(Learning):
        def share(self, updates: int) -> float:
            return 0.1 * updates / FIRST_UPDATES

    found = experiment(tmp_path, Slowly(tmp_path, lambda _: -0.4), seconds=150)
    told = Findings(found, divide(data()), [], found.tested()).undertrained()
    assert "from 2,000 to 4,000 updates, the score of geca x1 on validation still went up by 40 points. Allow" in told


def test_a_choice_that_gains_nothing_by_more_updates_is_tested_as_planned(tmp_path):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.1 if "geca" in system else 0.0))
    findings = Findings(found, divide(data()), [], found.tested())
    assert found.updates == found.plan.updates == 1000
    assert findings.why_updates().endswith("; geca x1 does not gain by more (50.1% after 1,000, 50.1% after 2,000)")


def test_what_time_does_not_allow_is_left_out(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.1 if "geca" in system else 0.0, seconds=20)
    found = experiment(tmp_path, workers, seconds=820)
    assert found.plan.others == 0
    assert set(found.tested()) == {BARE_SYSTEM, found.choice, System((CONTROL,), found.choice.times)}


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (20, ["The time allowed amounts of x8, and 1 round of validation, and 2 of 3 seeds; --minutes"]),
        (40, ["The time allowed amounts of x1 and x8, and 2 rounds of validation; --minutes"]),
        (64, []),
    ],
)
def test_fewer_rounds_and_seeds_than_usual_are_named(tmp_path, seconds, says):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda system: 0.2 if "geca" in system else 0.0), seconds)
    remarks = Findings(found, divide(data()), [], found.tested()).remarks()
    assert [remark.partition(" and --jobs")[0] for remark in remarks if remark.startswith("The time")] == says


def test_the_bare_data_are_chosen_where_chance_explains_the_gain(tmp_path):
    workers = MadeUp(tmp_path, lambda system: 0.008 if system == "gecax8" else 0.0)
    found = experiment(tmp_path, workers, seconds=30)  # one round: a standard error is about 1.3 points
    assert found.plan.rounds == 1 and found.choice == BARE_SYSTEM
    findings = Findings(found, divide(data()), [], found.tested())
    assert findings.trials()[0].system == "geca x8" and "by a standard error, the bare" in findings.chosen().why
    other = tmp_path / "other"
    assert (
        experiment(other, MadeUp(other, lambda system: 0.02 if system == "gecax8" else 0.0), 30).choice != BARE_SYSTEM
    )


def test_the_commands_leave_out_what_makes_nothing(tmp_path):
    found = experiment(tmp_path, MadeUp(tmp_path, lambda _: 0.0))
    chosen = System(("geca", "concat"), 1)
    found.run(found.makes([chosen], FULL))
    share = chosen.share(found.sizes[FULL])
    lines = Findings._augmentations(SimpleNamespace(choice=chosen, experiment=found), "t.parquet", share)
    assert lines == [f"cgen augment geca t.parquet -n {share} -o augmented.jsonl"]


def test_where_no_method_makes_anything_nothing_is_said_of_the_choice(tmp_path):
    class Nothing(MadeUp):
        def result(self, step: Step) -> dict:
            none = step.kind == "augment" and step.given["method"] != CONTROL
            return {"made": 0, "why": "nothing fits"} if none else super().result(step)

    found = experiment(tmp_path, Nothing(tmp_path, lambda _: 0.0))
    findings = Findings(found, divide(data()), [], found.tested())
    assert findings.choice == BARE_SYSTEM
    said = findings.remarks()
    assert sum("made nothing: nothing fits" in one for one in said) == len(found.methods)
    assert not [one for one in said if one.startswith(("Validation hardly", "Not tested"))]
