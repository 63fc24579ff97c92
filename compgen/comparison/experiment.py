"""The experiment: which augmentation helps on given data?

    1. carve validation out of training; refuse what a few updates show to take too long; find how many updates the
       bare data need; plan what the time allows
    2. let every method make examples from the carved training data, and train the predictor on each system
    3. plan again by what that took; go on with the best systems, and with the union of the two best methods
    4. choose by validation alone, and write the choice down
    5. double the updates while the chosen system may gain by it on validation, if there is time
    6. train the bare data, the control and the chosen system on all training examples, with several seeds
    7. open the test part: answer it by all of these predictors

All that is decided is a function of results that are in the folder, or is written there when it is decided. So a run
that was killed decides the same again, and goes on with the step that it was in.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import pvariance
from typing import Any

from compgen.comparison.plan import (
    FAR_BEHIND,
    GAIN,
    LAST_UPDATES,
    OVERTIME,
    TIMES,
    Plan,
    as_plan,
    in_turns,
    left_out,
    thinner,
)
from compgen.comparison.planning import TICK, Planning
from compgen.comparison.result import CONTROL
from compgen.comparison.running import accuracies
from compgen.comparison.steps import FULL, Step
from compgen.comparison.systems import BARE_SYSTEM, System

FEWER = "made nothing in a further round"


@dataclass(kw_only=True)
class Experiment(Planning):
    """A comparison from its plan to the test."""

    # -- 2. and 3. trials -----------------------------------------------------------------------------------------

    def examples(self, system: System, carving: int | str) -> int:
        """How many synthetic examples a system has, at most."""
        share = system.share(self.sizes[str(carving)])
        return sum(min(share, self.made(method, carving, share)) for method in system.methods)

    def makes(self, systems: Iterable[System], carving: int | str) -> list[Step]:
        """The steps that make what systems add to the training examples of a carving."""
        steps = {}
        for system in systems:
            share = system.share(self.sizes[str(carving)])
            for method in system.methods:
                step = self.augment(method, carving, share)
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

    def results(self, system: System, rounds: int | None = None, updates: int | None = None) -> list[dict[str, Any]]:
        """The results of a system in all rounds that it was in, or in the first `rounds`; by default as planned."""
        found = []
        for number in range(self.rest.rounds if rounds is None else rounds):
            step = self.trial(system, self.carving(number), number, updates or self.plan.updates)
            if not self.done(step):
                break
            found.append(self.found(step))
        return found

    def score(self, system: System, rounds: int | None = None, updates: int | None = None) -> float:
        """What systems are chosen by: the mean of the accuracies on the validation parts."""
        shares = accuracies(self.results(system, rounds, updates))
        return sum(shares.values()) / len(shares)

    def shared(self, *systems: System) -> int:
        """How many rounds all of some systems were in: they are compared by these, as a carving may be harder."""
        return min(len(self.results(system)) for system in systems)

    def trials(self) -> dict[System, str]:
        """Try all systems; return them, with the reason why a system was tried no further."""
        every = [System((method,), max(TIMES)) for method in (*self.methods, CONTROL)]
        self.train(self.makes(every, 0), self.first_trials)
        plan, systems = self.rest, self.first_systems()
        best, against = self.leaders(plan.survivors)
        dropped = dict.fromkeys(systems, "")
        if going_on := self.going_on(plan):
            for system in systems:
                if not system.candidate and system not in against:
                    dropped[system] = "the control in another amount was better in the first round"
                elif system not in (*best, *against):
                    dropped[system] = f"not among the best {plan.survivors} after the first round"
                elif system in best and system not in going_on:
                    dropped[system] = "far behind the best after the first round"
            self.round(going_on, plan.rounds - 1)
            dropped |= {system: FEWER for system in going_on if len(self.results(system)) < plan.rounds}
        union = self.union(sorted(best, key=lambda one: self._rank(one, dropped[one])), against)
        if union is not None:
            self.round([union], plan.rounds - 1)
            dropped[union] = FEWER if len(self.results(union)) < plan.rounds else ""
        return dropped

    def leaders(self, most: int) -> tuple[list[System], list[System]]:
        """By the first round alone: the best systems; and the bare data and the control, in its better amount."""
        ranked = sorted(self.first_systems(), key=lambda system: self._rank(system, rounds=1))
        best = [system for system in ranked if system.candidate]
        controls = [system for system in ranked if system.methods == (CONTROL,)]
        return best[:most], [BARE_SYSTEM, *controls[:1]]

    def going_on(self, plan: Plan) -> list[System]:
        """The systems that go into further rounds, by the first round alone.

        Those do not that cannot win: on validation they are behind the best by more than chance can explain.
        """
        best, against = self.leaders(plan.survivors)
        if not best or plan.rounds == 1:
            return []
        return [system for system in (*against, *best) if not self.ahead(best[0], system, FAR_BEHIND, rounds=1)]

    @property
    def rest(self) -> Plan:
        """The plan after the first round, which leaves out what there is no time for."""
        return as_plan(self.decided("rest", lambda: asdict(self.thin())))

    def thin(self) -> Plan:
        """The richest plan that there is time for after the first round, by what that took.

        It may have taken longer than planned: other work on the machine, say.
        """
        each = self.seconds_of(self.first_trials())
        methods = len({system.methods for system in self.first_systems() if system.candidate})
        for plan in thinner(self.plan):
            going_on = self.going_on(plan)
            makes = self.makes(going_on or self.leaders(1)[0], 0)  # again for each further round, and for the test
            trials = plan.further(len(going_on), methods, self.workers.count)
            needed = trials * each + plan.rounds * len(makes) * self.seconds_of(makes)
            if needed <= self.left():
                break
        if plan != self.plan:
            self.say(f"the first round took longer than planned; to end in time, {left_out(self.plan, plan)}")
        return plan

    def ahead(self, system: System, other: System, errors: float, rounds: int | None = None) -> bool:
        """Whether a system is ahead of another by more than so many standard errors, in the rounds of both."""
        rounds = self.shared(system, other) if rounds is None else rounds
        variance = _variance(self.results(system, rounds)) + _variance(self.results(other, rounds))
        return self.score(system, rounds) - self.score(other, rounds) > errors * math.sqrt(variance)

    def first_trials(self) -> list[Step]:
        """The next point of the learning curve; when that is done, or the plan is made, the trials of the first round.

        More minutes or processes, when a comparison is resumed, do not change a plan that is made.
        """
        if not self.is_decided("plan") and (more := self.next_updates()[1]):
            return more
        return [self.trial(system, 0, 0, self.plan.updates) for system in self.first_systems()]

    def _rank(self, system: System, why: str = "", rounds: int | None = None) -> tuple[Any, ...]:
        """Those first that were not dropped; then the best score, of equal ones fewer methods, then fewer examples."""
        return (bool(why), -self.score(system, rounds), len(system.methods), system.times, system.methods)

    def union(self, best: Sequence[System], against: Sequence[System]) -> System | None:
        """The union of the first systems of two methods, if both are ahead of the bare data and the control."""
        helped = [system for system in best if all(self.ahead(system, other, 0) for other in against)]
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
        best = min((system for system in left if system.candidate), key=self._rank, default=None)
        others = [system for system in left if not system.candidate]
        if best is None or not all(self.ahead(best, one, 0 if one.methods else 1) for one in others):
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

    # -- 5. the updates of what is tested -------------------------------------------------------------------------

    @property
    def updates(self) -> int:
        """The updates of the predictors that are tested."""
        return int(self.lengthened["updates"])

    @property
    def lengthened(self) -> dict[str, Any]:
        """These updates, and the chosen system's scores (`points`) by which they were found."""
        return self.decided("updates", self.lengthen)

    def lengthen(self) -> dict[str, Any]:
        """Double the updates while the chosen system may gain by it on validation, if there is time.

        The plan goes by the bare data; many synthetic examples take longer to learn. A gain of a point is excluded by
        a standard error: what few examples do not show may be there, and too many updates cost time alone.
        """
        points = [self.point(self.plan.updates)]
        while self.choice.methods and may_rise(points) and self.fits(2 * points[-1]["updates"]):
            before, updates = points[-1]["updates"], 2 * points[-1]["updates"]
            self.run(self.validations(updates))
            points.append(self.point(updates, before))
        best = points[-1] if may_rise(points) else points[-2]
        return {"updates": best["updates"], "points": points}

    def point(self, updates: int, before: int | None = None) -> dict[str, Any]:
        """The chosen system's score on validation after so many updates; the standard error of what it gained since."""
        found = {"updates": updates, "score": self.score(self.choice, updates=updates)}
        if before is None:
            return found
        earlier, now = (self.results(self.choice, updates=number) for number in (before, updates))
        return found | {"error": gain_error(earlier, now)}

    def validations(self, updates: int) -> list[Step]:
        """The trials of the chosen system on validation, in all rounds."""
        return [self.trial(self.choice, self.carving(number), number, updates) for number in range(self.rest.rounds)]

    def fits(self, updates: int) -> bool:
        """Whether there is time to train the chosen system for so many updates, on validation and for the test."""
        tried, makes = self.validations(self.plan.updates), self.makes([self.choice], 0)
        left = sum(not self.done(step) for step in self.validations(updates))  # fewer when a killed run goes on
        tested, count = 3 * self.rest.seeds, self.workers.count  # the bare data and the control are trained for as long
        each = self.seconds_of(tried) * updates / self.plan.updates
        needed = (in_turns(left, count) + in_turns(tested, count)) * each
        needed += in_turns(len(makes), count) * self.seconds_of(makes)
        return updates <= LAST_UPDATES and needed <= count * (self.seconds - self.elapsed())

    # -- 6. and 7. the test ---------------------------------------------------------------------------------------

    def finals(self) -> dict[System, int]:
        """The systems that are tested, with the number of seeds: bare, control, chosen, and other methods' best."""
        size, chosen, plan, updates = self.sizes[FULL], self.choice, self.rest, self.updates
        compared = chosen
        if not chosen.methods:  # the best of those that did not help: is it worse on the test part, too?
            every = (one for one in self.tried if one.candidate)
            compared = min(every, key=lambda one: self._rank(one, self.tried[one]), default=chosen)
        bare = [self.trial(BARE_SYSTEM, FULL, seed, updates) for seed in range(plan.seeds)]  # in the meantime
        self.run([*self.makes([compared], FULL), *bare])
        times = self.examples(compared, FULL) / size
        if not times:
            return {BARE_SYSTEM: plan.seeds}
        systems = dict.fromkeys([BARE_SYSTEM, System((CONTROL,), times), compared], plan.seeds)
        others = [system for system in self.best_of_methods() if system not in systems]
        fitting = int(self.left() / self.seconds_of(bare)) - (len(systems) - 1) * plan.seeds
        if others and (seeds := min(plan.others, fitting // len(others))) > 0:
            systems |= dict.fromkeys(others, seeds)
        return systems

    def best_of_methods(self) -> list[System]:
        """The best system that was tried of each method by itself."""
        own = [[system for system in self.tried if system.methods == (method,)] for method in self.methods]
        return [min(systems, key=lambda one: self._rank(one, self.tried[one])) for systems in own if systems]

    def seconds_of(self, steps: Sequence[Step]) -> float:
        """The mean of the seconds that steps took which are done."""
        seconds = [float(self.found(step)["seconds"]) for step in steps]
        return max(TICK, sum(seconds) / max(1, len(seconds)))

    def left(self) -> float:
        """The seconds that are left, of all processes together."""
        return self.workers.count * (OVERTIME * self.seconds - self.elapsed())

    def tested(self) -> dict[System, int]:
        """Train all systems that are tested, open the test part and answer it; return them with their seeds."""
        self.trials()  # which the choice may have been made from before a damaged result of one was deleted
        written = self.decided(
            "finals", lambda: {"systems": [[list(s.methods), s.times, n] for s, n in self.finals().items()]}
        )
        systems = {System(tuple(methods), times): seeds for methods, times, seeds in written["systems"]}

        def able() -> dict[System, int]:
            return {system: seeds for system, seeds in systems.items() if self.trainable(system, FULL)}

        def trials() -> list[Step]:
            return [
                self.trial(system, FULL, seed, self.updates)
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
        given = {"system": system.slug, "seeds": tested[system], "updates": self.updates}
        several = tested[system] > 1 and self.recipe.exports
        return Step(f"together-{system.slug}", "together", given) if several else None

    def answers(self, system: System, seed: int) -> Step:
        """The step in which a predictor answers the test part."""
        given = {"system": system.slug, "seed": seed, "updates": self.updates}
        return Step(f"test-{system.slug}-{seed}", "test", given)


def last_rise(points: Sequence[dict[str, Any]]) -> float:
    """What the chosen system's score gained by the last doubling of updates."""
    found: float = points[-1]["score"] - points[-2]["score"]
    return found


def may_rise(points: Sequence[dict[str, Any]]) -> bool:
    """Whether the last doubling of updates may have gained a point, by a standard error; true before there was one."""
    return len(points) < 2 or last_rise(points) + float(points[-1]["error"]) >= GAIN


def gain_error(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> float:
    """The standard error of a gain in score, by answers to the same examples; a gain and a loss are added to each part.

    Most answers are the same before and now, so it is smaller than the error of either score.
    """
    variance, parts = 0.0, accuracies(now)
    for name in parts:
        texts = ["".join(found["right"].get(name, "") for found in results) for results in (before, now)]
        gains = [int(new) - int(old) for old, new in zip(*texts, strict=True)] + [1, -1]
        variance += pvariance(gains) / len(gains)
    return math.sqrt(variance) / len(parts)


def _variance(results: Sequence[dict[str, Any]]) -> float:
    """The variance of the mean of accuracies on the validation parts, with a right and a wrong answer added to each."""
    texts = ["".join(found["right"].get(name, "") for found in results) for name in accuracies(results)]
    shares = [((text.count("1") + 1) / (len(text) + 2), len(text) + 2) for text in texts]
    return sum(share * (1 - share) / count for share, count in shares) / len(texts) ** 2
