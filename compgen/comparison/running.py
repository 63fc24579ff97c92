"""Runs the steps of a comparison in its folder, each once, and keeps the time and what was decided."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compgen.comparison.engine import Workers
from compgen.comparison.steps import VALIDATION, Step, read_json, result_of
from compgen.errors import UserError
from compgen.files import atomic_path

Say = Callable[[str], None]
ELAPSED = "elapsed"  # the file that holds the seconds so far


@dataclass(kw_only=True)
class Running:
    """A run of steps, which may be killed and resumed.

    Attributes:
        folder: where results are.
        seconds: allowed.
        workers: what steps run in.
        say: is told what each step has found.
        clock: in seconds.
        began: by the clock, less the seconds of runs before; None until it is asked for.
        decisions: the content of the folder's files of decisions; none changes once it is written.
    """

    folder: Path
    seconds: float
    workers: Workers
    say: Say
    clock: Callable[[], float] = time.monotonic
    began: float | None = None
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self, steps: Sequence[Step], then: Callable[[Step], Sequence[Step]] = lambda _: ()) -> None:
        """Run those steps that are not done; and `then` those that follow from one that is."""
        left = {step.name: step for step in steps if not self.done(step)}

        def finished(step: Step) -> Sequence[Step]:
            self.tell(step)
            return then(step)

        try:
            self.workers.run(list(left.values()), finished)
        except BaseException:
            with suppress(UserError):  # a full disk, say, of which the error tells already
                self.note_time()
            raise

    def train(self, makes: Sequence[Step], trials: Callable[[], Sequence[Step]]) -> None:
        """Run steps that make examples, and all trials as soon as what is made allows; `trials` says which are."""
        begun = set[str]()

        def allowed(_: Step | None = None) -> list[Step]:
            found = [step for step in trials() if step.name not in begun and not self.done(step)]
            begun.update(step.name for step in found)
            return found

        self.run([*makes, *allowed()], allowed)  # what takes longest begins first

    def done(self, step: Step) -> bool:
        """Whether the result of a step is there."""
        return result_of(self.folder, step.name).exists()

    def found(self, step: Step) -> dict[str, Any]:
        """The result of a step that is done."""
        found: dict[str, Any] = read_json(result_of(self.folder, step.name))
        return found

    def tell(self, step: Step) -> None:
        """Say what a step has found, and how much time is left; note the time."""
        found, left = self.found(step), self.seconds - self.note_time()
        self.say(f"{step.name}: {_in_words(found)}; {found['seconds']:.0f} s ({_left(left)})")

    def note_time(self) -> float:
        """Write down how long the comparison has taken, for a run that goes on with it, and return it."""
        elapsed = self.elapsed()
        with atomic_path(self.folder / ELAPSED) as temporary:
            temporary.write_text(f"{elapsed:.1f}\n", encoding="utf-8")
        return elapsed

    def elapsed(self) -> float:
        """The seconds that the comparison has taken, those before interruptions included."""
        if self.began is None:
            path = self.folder / ELAPSED
            before = float(read_json(path)) if path.exists() else 0.0
            self.began = self.clock() - before
        return self.clock() - self.began

    def is_decided(self, name: str) -> bool:
        """Whether a decision is made, and written down."""
        return name in self.decisions or (self.folder / f"{name}.json").exists()

    def decided(self, name: str, decide: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was decided, and written down, or is decided now."""
        if name not in self.decisions:
            path = self.folder / f"{name}.json"
            if not path.exists():
                found = decide()
                with atomic_path(path) as temporary:
                    temporary.write_text(json.dumps(found, indent=1), encoding="utf-8")
            self.decisions[name] = read_json(path)
        return self.decisions[name]


def accuracies(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The share of right answers on each validation part, over all results."""
    parts = [name for name in VALIDATION if any(name in found["right"] for found in results)]
    return {name: share_right("".join(found["right"].get(name, "") for found in results)) for name in parts}


def share_right(right: str) -> float:
    """The share of 1 in a string of 0 and 1."""
    return right.count("1") / max(1, len(right))


def _left(seconds: float) -> str:
    """How much time is left, or how much more was taken than allowed, for people."""
    minutes = round(abs(seconds) / 60)
    amount = f"{minutes} minute{'s' * (minutes > 1)}"
    if seconds <= 0:
        return f"{amount} over time" if minutes else "no time left"
    return f"{amount} left" if minutes else "less than a minute left"


def _in_words(found: dict[str, Any]) -> str:
    """The result of a step, for people."""
    if "right" in found:
        return ", ".join(f"{name} {share:.1%}" for name, share in accuracies([found]).items())
    if "made" in found:
        return f"{found['made']:,} examples" + (f" ({found['why']})" if found["why"] else "")
    if "per_update" in found:
        return f"{found['per_update']:.3f} s an update"
    return "trained" if "answers" not in found else "answered"
