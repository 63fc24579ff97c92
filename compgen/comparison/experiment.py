"""The experiment: which augmentation helps on given data?

    1. carve validation out of training; refuse what a few updates show to take too long; find how many updates the
       bare data need; plan what the time allows
    2. let every method make examples from the carved training data, and train the predictor on each system
    3. go on with the best systems, and with the union of the two best methods, in further rounds
    4. choose by validation alone, and write the choice down
    5. train the bare data, the control and the chosen system on all training examples, with several seeds
    6. open the test part: answer it by all of these predictors

All that is decided is a function of results that are in the folder, or is written there when it is decided. So a run
that was killed decides the same again, and goes on with the step that it was in.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from compgen.comparison.parts import carve, carvings
from compgen.comparison.plan import (
    ENOUGH,
    FAR_BEHIND,
    FIRST_UPDATES,
    FOR_AUGMENTING,
    GAIN,
    LAST_UPDATES,
    MEASURED,
    SPARE,
    TIMES,
    Plan,
    check_time,
    make_plan,
    most_updates,
)
from compgen.comparison.predictors import Recipe
from compgen.comparison.result import CONTROL
from compgen.comparison.running import Running, accuracies, share_right
from compgen.comparison.steps import FULL, Step, read_result
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import write_dataset

_TICK = 0.1  # seconds: what training is measured in


@dataclass(kw_only=True)
class Experiment(Running):
    """A comparison in a folder, with `data/train`, `data/test` and the carvings: what it is given, and what is known.

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

    def augment(self, method: str, carving: int | str, count: int) -> Step:
        """The step in which a method makes examples."""
        given = {"method": method, "carving": carving, "count": count, "options": self.options.get(method, {})}
        return Step(f"make-{method}-{carving}-{count}", "augment", given)

    def made(self, method: str, carving: int | str, count: int) -> int:
        """How many examples a method has made."""
        return int(read_result(self.folder, self.augment(method, carving, count).name)["made"])

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
            per_update = read_result(self.folder, step.name)["per_update"]
            time = self.seconds, self.elapsed()
            check_time(*time, per_update, len(self.methods), self.seeds, self.workers.count)

    def curve(self) -> dict[str, Any]:
        """Double the updates of the bare data until they gain nothing; plan by what that took."""
        self.run(self.next_updates()[1], lambda _: self.next_updates()[1])
        points, _, why = self.next_updates()
        updates, per_update, methods = points[-1]["updates"], points[-1]["per_update"], len(self.methods)
        left = min(self.capacity(points), self.workers.count * (SPARE * self.seconds - self.elapsed()))
        plan = make_plan(left, per_update, updates, methods, self.seeds)
        if plan.updates < updates:
            why = f"more than the time allows for {plan.trials(methods)} trainings"
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
            found = read_result(self.folder, step.name)
            point = {"updates": updates, "accuracy": accuracies([found]), "learned": share_right(found["learned"])}
            points.append(point | {"per_update": max(found["trained"], _TICK) / updates})
            last, methods = points[-1], len(self.methods)
            learned = last["learned"] >= ENOUGH
            most = most_updates(self.capacity(points), last["per_update"], methods, self.seeds, learned)
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
        found = self.planned["plan"]
        return Plan(**found | {"times": tuple(found["times"])})

    @property
    def planned(self) -> dict[str, Any]:
        """The plan as it is written down, with the learning curve and why that ended."""
        return self.decided("plan", self.curve)

    # -- 2. and 3. trials -----------------------------------------------------------------------------------------

    def examples(self, system: System, carving: int | str) -> int:
        """How many synthetic examples a system has, at most."""
        share = system.share(self.sizes[str(carving)])
        return sum(
            min(share, self.made(method, carving, self.asked(method, carving, share))) for method in system.methods
        )

    def makes(self, systems: Iterable[System], carving: int | str) -> list[Step]:
        """The steps that make what systems add to the training examples of a carving."""
        steps = {}
        for system in systems:
            share = system.share(self.sizes[str(carving)])
            for method in system.methods:
                step = self.augment(method, carving, self.asked(method, carving, share))
                steps[step.name] = step
        return list(steps.values())

    def trainable(self, system: System, carving: int | str) -> bool:
        """Whether all that a system adds is made, and is anything."""
        if not all(self.done(step) for step in self.makes([system], carving)):
            return False
        return not system.methods or self.examples(system, carving) > 0

    def first_systems(self) -> list[System]:
        """The bare data, and the systems of each method that has made examples, in as many amounts as it has made."""
        systems = [BARE_SYSTEM]
        for method in (*self.methods, CONTROL):
            if not self.trainable(System((method,), max(TIMES)), 0):
                continue
            sizes = set[int]()
            for times in self.plan.times:
                system = System((method,), times)
                if self.examples(system, 0) not in {0, *sizes}:
                    sizes.add(self.examples(system, 0))
                    systems.append(system)
        return systems

    def round(self, systems: Sequence[System], number: int) -> None:
        """Train the predictor on systems in round `number`, and in the rounds before in which they were not trained."""
        rounds = {earlier: self.carving(earlier) for earlier in range(number + 1)}

        def trials() -> list[Step]:
            return [
                self.trial(system, carving, earlier, self.plan.updates)
                for earlier, carving in rounds.items()
                for system in systems
                if self.trainable(system, carving)
            ]

        self.train([step for carving in {*rounds.values()} for step in self.makes(systems, carving)], trials)

    def carving(self, number: int) -> int:
        """The carving of round `number`."""
        return number % sum(name != FULL for name in self.sizes)

    def results(self, system: System) -> list[dict[str, Any]]:
        """The results of a system in all rounds that it was in."""
        found = []
        for number in range(self.plan.rounds):
            step = self.trial(system, self.carving(number), number, self.plan.updates)
            if not self.done(step):
                break
            found.append(read_result(self.folder, step.name))
        return found

    def score(self, system: System) -> float:
        """What systems are chosen by: the mean of the accuracies on the validation parts."""
        shares = accuracies(self.results(system))
        return sum(shares.values()) / len(shares)

    def trials(self) -> dict[System, str]:
        """Try all systems; return them, with the reason why a system was tried no further."""
        every = [System((method,), max(TIMES)) for method in (*self.methods, CONTROL)]
        self.train(self.makes(every, 0), self.first_trials)
        systems = self.first_systems()
        dropped = dict.fromkeys(systems, "")
        best = sorted((system for system in systems[1:] if system.candidate), key=self._rank)[: self.plan.survivors]
        controls = sorted((system for system in systems if not system.candidate), key=self._rank)[:1]
        if best and self.plan.rounds > 1:
            for system in systems:
                if system not in {BARE_SYSTEM, *best, *controls}:
                    dropped[system] = f"not among the best {self.plan.survivors} after the first round"
            left = [system for system in (BARE_SYSTEM, *controls, *best) if not self.far_behind(system, best[0])]
            for system in best:
                if system not in left:
                    dropped[system] = "far behind the best after the first round"
            self.round(left, self.plan.rounds - 1)
        union = self.union(best, controls)
        if union is not None:
            self.round([union], self.plan.rounds - 1)
            dropped[union] = ""
        return dropped

    def far_behind(self, system: System, best: System) -> bool:
        """Whether a system cannot win: on validation it is behind the best by more than chance can explain."""
        return self.ahead(best, system, FAR_BEHIND)

    def ahead(self, system: System, other: System, errors: float = 1.0) -> bool:
        """Whether a system is ahead of another on validation by more than so many standard errors."""
        variance = _variance(self.results(system)) + _variance(self.results(other))
        return self.score(system) - self.score(other) > errors * math.sqrt(variance)

    def first_trials(self) -> list[Step]:
        """The next point of the learning curve; when that is done, the trials of the first round."""
        if more := self.next_updates()[1]:
            return more
        return [self.trial(system, 0, 0, self.plan.updates) for system in self.first_systems()]

    def _rank(self, system: System) -> tuple[float, int, float, tuple[str, ...]]:
        """The best score first; of equal ones fewer methods, then fewer examples."""
        return (-self.score(system), len(system.methods), system.times, system.methods)

    def union(self, best: Sequence[System], controls: Sequence[System]) -> System | None:
        """The union of the best systems of two methods, if both are ahead of the bare data and the control."""
        least = max(self.score(system) for system in (BARE_SYSTEM, *controls))
        helped = [system for system in sorted(best, key=self._rank) if self.score(system) > least]
        others = [system for system in helped[1:] if system.methods != helped[0].methods]
        if not others:
            return None
        methods = tuple(sorted({*helped[0].methods, *others[0].methods}))
        return System(methods, max(helped[0].times, others[0].times))

    # -- 4. the choice --------------------------------------------------------------------------------------------

    def choose(self) -> dict[str, Any]:
        """Choose the system of the best score, or the bare data.

        The bare data are chosen if it is not ahead of the control, or ahead of them by no more than chance can explain,
        a standard error: what changes nothing on validation data may do harm on others.
        """
        dropped = self.trials()
        left = [system for system, why in dropped.items() if not why]
        best = min((system for system in left if system.candidate and system.methods), key=self._rank, default=None)
        others = [system for system in left if system not in (best,) and (not system.methods or not system.candidate)]
        least = max(self.score(system) for system in others)
        if best is None or self.score(best) <= least or not self.ahead(best, BARE_SYSTEM):
            best = BARE_SYSTEM
        return {
            "system": [list(best.methods), best.times],
            "trials": [[list(system.methods), system.times, why] for system, why in dropped.items()],
        }

    @property
    def choice(self) -> System:
        """The system chosen."""
        methods, times = self.decided("choice", self.choose)["system"]
        return System(tuple(methods), times)

    @property
    def tried(self) -> dict[System, str]:
        """All systems that were tried, and why one was dropped."""
        found = self.decided("choice", self.choose)["trials"]
        return {System(tuple(methods), times): why for methods, times, why in found}

    # -- 5. and 6. the test ---------------------------------------------------------------------------------------

    def finals(self) -> dict[System, int]:
        """The systems that are tested, with the number of seeds: bare, control, chosen, and other methods' best."""
        size, chosen, plan = self.sizes[FULL], self.choice, self.plan
        compared = chosen
        if not chosen.methods:  # the best of those that did not help: is it worse on the test part, too?
            compared = min((one for one in self.tried if one.candidate and one.methods), key=self._rank, default=chosen)
        bare = [self.trial(BARE_SYSTEM, FULL, seed, plan.updates) for seed in range(plan.seeds)]  # in the meantime
        self.run([*self.makes([compared], FULL), *bare])
        times = self.examples(compared, FULL) / size
        systems = dict.fromkeys([BARE_SYSTEM, System((CONTROL,), times), compared], plan.seeds)
        if not times:
            return {BARE_SYSTEM: plan.seeds}
        if plan.others and self.elapsed() < self.seconds:
            for method in self.methods:
                own = [system for system in self.tried if system.methods == (method,)]
                if own:
                    systems.setdefault(min(own, key=self._rank), plan.others)
        return systems

    def tested(self) -> dict[System, int]:
        """Train all systems that are tested, open the test part and answer it; return them with their seeds."""
        written = self.decided(
            "finals", lambda: {"systems": [[list(s.methods), s.times, n] for s, n in self.finals().items()]}
        )
        systems = {System(tuple(methods), times): seeds for methods, times, seeds in written["systems"]}

        def able() -> dict[System, int]:
            return {system: seeds for system, seeds in systems.items() if self.trainable(system, FULL)}

        def trials() -> list[Step]:
            return [
                self.trial(system, FULL, seed, self.plan.updates)
                for system, seeds in able().items()
                for seed in range(seeds)
            ]

        self.train(self.makes(systems, FULL), trials)
        found = able()
        steps = [self.answers(system, seed) for system, seeds in found.items() for seed in range(seeds)]
        together = self.together(found)
        self.run(steps if together is None else [*steps, together])
        return found

    def final(self, tested: Collection[System]) -> System:
        """The choice; or the bare data, if the chosen methods made nothing of all training examples."""
        return self.choice if self.choice in tested else BARE_SYSTEM

    def together(self, tested: dict[System, int]) -> Step | None:
        """The step in which the choice's predictors answer the test part together; None for one, or pretrained ones."""
        system = self.final(tested)
        given = {"system": system.slug, "seeds": tested[system], "updates": self.plan.updates}
        several = tested[system] > 1 and self.recipe.exports
        return Step(f"together-{system.slug}", "together", given) if several else None

    def answers(self, system: System, seed: int) -> Step:
        """The step in which a predictor answers the test part."""
        given = {"system": system.slug, "seed": seed, "updates": self.plan.updates}
        return Step(f"test-{system.slug}-{seed}", "test", given)


def _variance(results: Sequence[dict[str, Any]]) -> float:
    """The variance of the mean of accuracies on the validation parts, with a right and a wrong answer added to each."""
    texts = ["".join(found["right"].get(name, "") for found in results) for name in accuracies(results)]
    shares = [((text.count("1") + 1) / (len(text) + 2), len(text) + 2) for text in texts]
    return sum(share * (1 - share) / count for share, count in shares) / len(texts) ** 2


def _enough(points: Sequence[dict[str, Any]], most: int) -> str:
    """Why the last number of updates is enough, or the most that there is time for; empty if it is neither."""
    last = points[-1]
    if len(points) > 1 and last["learned"] >= ENOUGH:
        gain = last["accuracy"]["random"] - points[-2]["accuracy"]["random"]
        if gain < GAIN:
            return (
                f"twice as many as the bare data need: from {points[-2]['updates']:,} to {last['updates']:,} updates, "
                f"accuracy on examples held out at random went up by {100 * gain:.1f} points"
            )
    if 2 * last["updates"] > min(most, LAST_UPDATES):
        return f"the most that the time allows: {last['learned']:.0%} of training examples are known by heart"
    return ""
