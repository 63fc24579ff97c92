"""What a comparison trains, how much time that takes, and the plan that follows from this."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from compgen.comparison.parts import carve, carvings
from compgen.comparison.plan import (
    ENOUGH,
    FIRST_UPDATES,
    FOR_AUGMENTING,
    GAIN,
    LAST_UPDATES,
    MEASURED,
    SPARE,
    STEEP,
    TIMES,
    Plan,
    as_plan,
    check_time,
    make_plan,
    most_updates,
)
from compgen.comparison.predictors import Recipe
from compgen.comparison.running import Running, accuracies, share_right
from compgen.comparison.steps import FULL, Step
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import write_dataset

TICK = 0.1  # seconds: the least that a training is taken to last


@dataclass(kw_only=True)
class Planning(Running):
    """A comparison in a folder, with `data/train`, `data/test` and the carvings: what it is given, and its plan.

    Attributes:
        methods: the augmenters to try, without the control.
        recipe: the predictor.
        seeds: of the predictors that are tested.
        options: further options of methods, by name.
    """

    methods: tuple[str, ...]
    recipe: Recipe
    seeds: int
    options: dict[str, dict[str, Any]]
    sizes: dict[str, int] = field(default_factory=dict)  # training examples by carving

    # -- steps ----------------------------------------------------------------------------------------------------

    def augment(self, method: str, carving: int | str, share: int) -> Step:
        """The step in which a method makes examples, of which a system takes a `share`."""
        count = self.asked(method, carving, share)
        given = {"method": method, "carving": carving, "count": count, "options": self.options.get(method, {})}
        return Step(f"make-{method}-{carving}-{count}", "augment", given)

    def made(self, method: str, carving: int | str, share: int) -> int:
        """How many examples a method has made, of which a system takes a `share`."""
        return int(self.found(self.augment(method, carving, share))["made"])

    def trial(self, system: System, carving: int | str, seed: int, updates: int) -> Step:
        """The step in which the predictor is trained on a system."""
        share = system.share(self.sizes[str(carving)])
        made = {method: self.asked(method, carving, share) for method in system.methods}
        given = {"system": system.slug, "made": made, "share": share, "carving": carving, "seed": seed}
        given |= {"updates": updates, "predictor": self.recipe.name, "changes": list(self.recipe.changes)}
        return Step(f"train-{system.slug}-{carving}-{seed}-{updates}", "trial", given)

    def asked(self, method: str, carving: int | str, share: int) -> int:
        """How many examples a method is asked for: on a carving, once for all, as many as its largest system needs."""
        if carving == FULL:
            return share
        return System((method,), max(TIMES)).share(self.sizes[str(carving)])

    # -- 1. how much time, and how many updates -----------------------------------------------------------------------

    def begin(self, train: Dataset) -> None:
        """Write the training data and all carvings."""
        for number in range(carvings(train)):
            self._write(carve(train, number), str(number))
        self._write(Dataset(train.frame.with_columns(split=pl.lit(TRAIN))), FULL)

    def _write(self, dataset: Dataset, name: str) -> None:
        self.sizes[name] = dataset.splits[TRAIN]
        path = self.folder / "data" / f"{name}.parquet"
        if not path.exists():
            write_dataset(dataset, path)

    def check_time(self) -> None:
        """Refuse, after a few updates of the bare data, what the time does not allow.

        Raises:
            UserError: there is too little time for the poorest plan.
        """
        self.elapsed()  # the clock begins before the first step, not when that is done
        given = {"updates": MEASURED, "predictor": self.recipe.name, "changes": list(self.recipe.changes)}
        step = Step("speed", "speed", given)
        self.run([step])
        if not self.next_updates()[0]:  # nothing is trained yet
            per_update = self.found(step)["per_update"]
            time = self.seconds, self.elapsed()
            check_time(*time, per_update, len(self.methods), self.seeds, self.workers.count)

    def curve(self) -> dict[str, Any]:
        """Double the updates of the bare data until they gain nothing; plan by what that took."""
        self.run(self.next_updates()[1], lambda _: self.next_updates()[1])
        points, _, why = self.next_updates()
        updates, per_update, methods = points[-1]["updates"], points[-1]["per_update"], len(self.methods)
        left = min(self.capacity(points), self.workers.count * (SPARE * self.seconds - self.elapsed()))
        plan = make_plan(left, per_update, updates, methods, self.seeds, self.workers.count)
        if plan.updates < updates:
            why = f"twice as many would not leave time for {plan.trials(methods)} trainings"
        return {"plan": asdict(plan), "why": why, "curve": points}

    def next_updates(self) -> tuple[list[dict[str, Any]], list[Step], str]:
        """The learning curve so far, and the training of its next point, or why there is none.

        This depends on the results of the curve alone, so that it is the same after an interruption.
        """
        updates, points = FIRST_UPDATES, list[dict[str, Any]]()
        while True:
            step = self.trial(BARE_SYSTEM, 0, 0, updates)
            if not self.done(step):
                return points, [step], ""
            found = self.found(step)
            point = {"updates": updates, "accuracy": accuracies([found]), "learned": share_right(found["learned"])}
            points.append(point | {"per_update": max(found["trained"], TICK) / updates})
            last, given = points[-1], (len(self.methods), self.seeds)
            settled = last["learned"] >= ENOUGH and last_gain(points) < STEEP
            most = most_updates(self.capacity(points), last["per_update"], *given, settled, self.workers.count)
            if why := _enough(points, most):
                return points, [], why
            updates *= 2

    def capacity(self, points: Sequence[dict[str, Any]]) -> float:
        """The seconds for trials, of all processes together, that the learning curve leaves."""
        curve: float = sum(point["per_update"] * point["updates"] for point in points)
        return self.workers.count * ((1 - FOR_AUGMENTING) * SPARE * self.seconds - curve)

    @property
    def plan(self) -> Plan:
        """The plan, which is made once."""
        return as_plan(self.planned["plan"])

    @property
    def planned(self) -> dict[str, Any]:
        """The plan as it is written down, with the learning curve and why that ended."""
        return self.decided("plan", self.curve)


def last_gain(points: Sequence[dict[str, Any]]) -> float:
    """What accuracy on examples held out at random gained by the last doubling of updates; 0 before there was one."""
    found = [float(point["accuracy"]["random"]) for point in points[-2:]]
    return found[-1] - found[0]


def _enough(points: Sequence[dict[str, Any]], most: int) -> str:
    """Why the last number of updates is enough, or the most that there is time for; empty if it is neither."""
    last = points[-1]
    if len(points) > 1 and last["learned"] >= ENOUGH and (gain := last_gain(points)) < GAIN:
        return (
            f"twice as many as the bare data need: from {points[-2]['updates']:,} to {last['updates']:,} updates, "
            f"accuracy on examples held out at random changed by {100 * gain:+.1f} points"
        )
    if 2 * last["updates"] > min(most, LAST_UPDATES):
        limit = "the time allows" if 2 * last["updates"] > most else "a comparison makes, whatever the time"
        return f"the most that {limit}: {last['learned']:.0%} of training examples are known by heart"
    return ""
