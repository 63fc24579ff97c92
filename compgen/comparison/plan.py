"""What a comparison can do in the time it has: how many updates, amounts, rounds and seeds.

All costs are trials: one training of the predictor. What a trial takes is measured on the bare data. Plans are tried
from the richest on, and the first that fits is taken; so a plan is a function of that one measurement.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import Any

from compgen.errors import UserError

TIMES = (1.0, 8.0)  # synthetic examples, as multiples of the training examples
FIRST_UPDATES, LAST_UPDATES = 500, 32_000
ENOUGH = 0.9  # of training examples known by heart
GAIN, STEEP = 0.01, 0.1  # of accuracy on `random`, by twice the updates: too little for more; they gain a lot
ROUNDS = 3  # of validation, if there is time
ALL, SOME, FEW = 1000, 6, 3  # systems that go into further rounds, beside the bare data and the control
FAR_BEHIND = 4.0  # standard errors of the difference: what is behind by more is tried no further
MEASURED = 20  # updates by which the time of one is measured first of all
MARGIN = 1.25  # of the minutes that are advised
FOR_AUGMENTING = 0.2  # of the time
SPARE = 0.9  # of the time is planned
OVERTIME = 1.1  # times the time: what would take longer is left out after the first round, and what did is told


@dataclass(frozen=True)
class Plan:
    """How much of what a comparison does.

    Attributes:
        updates: of every predictor.
        times: amounts of synthetic examples, as multiples of the training examples.
        rounds: trials of each system that may still be the best, each with a carving and a seed of its own.
        seeds: predictors of the bare data, the control and the chosen system on all training examples.
        others: seeds of the best system of every other method; 0: they are not tested.
        survivors: the most systems that go into further rounds, beside the bare data and the control.
    """

    updates: int
    times: tuple[float, ...]
    rounds: int
    seeds: int
    others: int
    survivors: int = FEW

    def trials(self, methods: int, count: int = 1) -> int:
        """How many trials that is, with the control, and a union of two methods, as `in_turns` counts them."""
        going_on = min(self.survivors, methods * len(self.times)) + 2
        return in_turns((methods + 1) * len(self.times), count) + self.further(going_on, methods, count)

    def further(self, going_on: int, methods: int, count: int = 1) -> int:
        """How many of them follow the first round, if so many systems go on, with the bare data and the control."""
        union = self.rounds if methods > 1 else 0
        tested = 3 * self.seeds + max(0, methods - 1) * self.others
        return in_turns((self.rounds - 1) * going_on, count) + in_turns(union + tested, count)


def in_turns(trials: int, count: int) -> int:
    """Trials that must be done before others begin; of fewer than `count`, each process that waits counts as one."""
    return max(trials, count) if trials else 0


def as_plan(values: dict[str, Any]) -> Plan:
    """A plan that was written down."""
    return Plan(**values | {"times": tuple(values["times"])})


def left_out(before: Plan, now: Plan) -> str:
    """What a plan has less of than the one before, for people."""
    words = {
        "survivors": "systems that go on",
        "rounds": "rounds of validation",
        "seeds": "seeds that are tested",
        "others": "seeds of other methods",
    }
    amounts = ((text, getattr(now, name), getattr(before, name)) for name, text in words.items())
    return "; ".join(
        f"{text}: {less}, not {more if more < ALL else 'all'}" for text, less, more in amounts if less != more
    )


def most_updates(seconds: float, per_update: float, methods: int, seeds: int, settled: bool, count: int = 1) -> int:
    """The most updates with which a plan fits into so many seconds, of all `count` processes together.

    That is the poorest plan, unless the predictor is `settled`: it has learned the training examples, and more updates
    gain little on others. Then they are worth less than all amounts, and a test of each method.
    """
    plan = Plan(1, TIMES, 1, seeds, 1) if settled else _poorest(1, seeds)
    return int(seconds / per_update / plan.trials(methods, count))


def make_plan(seconds: float, per_update: float, updates: int, methods: int, seeds: int, count: int = 1) -> Plan:
    """The richest plan that fits into so many seconds, of all processes together, or the poorest; see `check_time`."""
    for plan in _plans(updates, seeds):
        if plan.trials(methods, count) * plan.updates * per_update <= seconds:
            return plan
    return _poorest(FIRST_UPDATES, seeds)


def thinner(plan: Plan) -> Iterator[Plan]:
    """A plan, and plans with ever less in them after the first round, which is the same in all of them."""
    same = takewhile(lambda one: one.updates == plan.updates, _plans(plan.updates, plan.seeds))
    for one in dropwhile(lambda one: one != plan, same):
        yield replace(one, times=plan.times)


def check_time(seconds: float, elapsed: float, per_update: float, methods: int, seeds: int, count: int) -> None:
    """Check, by what the first few updates took, that there is time for the poorest plan.

    Args:
        seconds: allowed.
        elapsed: of these.
        count: of processes.

    Raises:
        UserError: there is not.
    """
    plan = _poorest(FIRST_UPDATES, seeds)
    turns = 1 + plan.trials(methods, count) / count  # the learning curve begins with one, alone
    training = turns * FIRST_UPDATES * per_update
    # Updates are timed again by the next call, and not all machines are steady: hence the margin.
    needed = max(training / (1 - FOR_AUGMENTING), elapsed + training) / SPARE
    minutes = math.ceil(MARGIN * needed / 60)
    if needed > seconds:
        less = ["fewer --methods"] * (methods > 1) + ["--seeds 1"] * (seeds > 1)
        ways = ["more --jobs if there are cores for them", *less]
        raise UserError(
            f"too little time: the least that can tell anything is {1 + plan.trials(methods)} trainings, {count} at a "
            f"time, of {FIRST_UPDATES} updates, which take {per_update:.2f} s each; with what methods take, and a "
            f"margin: give --minutes {minutes} or more, or {', or '.join(ways)}"
        )


def _poorest(updates: int, seeds: int) -> Plan:
    """The plan of the fewest trials."""
    return Plan(updates, TIMES[-1:], 1, min(2, seeds), 0)


def _plans(updates: int, seeds: int) -> Iterator[Plan]:
    """Plans with ever less in them: first systems in further rounds go, then other methods' seeds, rounds, ..."""
    while updates >= FIRST_UPDATES:
        for survivors in (ALL, SOME, FEW):  # a first round of few examples may rank the best low
            yield Plan(updates, TIMES, ROUNDS, seeds, seeds, survivors)
        yield Plan(updates, TIMES, ROUNDS, seeds, 1)
        yield Plan(updates, TIMES, 2, seeds, 1)
        yield Plan(updates, TIMES, 2, seeds, 0)
        yield Plan(updates, TIMES, 1, seeds, 1)
        yield Plan(updates, TIMES, 1, seeds, 0)
        yield Plan(updates, TIMES[-1:], 1, seeds, 0)
        yield _poorest(updates, seeds)
        updates //= 2
