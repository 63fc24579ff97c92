"""Answers to sources, for the commands that predict: by a predictor, or by a generator and perhaps a second model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from compgen.cli.common import say

if TYPE_CHECKING:
    from compgen.api import Generator, Predictor

TOGETHER = "together"  # the name of several predictors
Sequences = list[list[str]]
Ranked = list[tuple[list[str], float | None]]  # targets of a source with log-probabilities, the best first


def second_model(path: str | None, runtime: str | None) -> "Predictor | None":
    """Open the predictor that `--otherwise` names; a bundle runs in the C++ runner if the generator does."""
    from compgen.api import Predictor
    from compgen.trained.architectures import is_saved

    if path is None:
        return None
    return Predictor.load(path, "native" if runtime == "native" and not is_saved(Path(path)) else None)


@dataclass
class Answering:
    """The models that answer, and how.

    A `second` model, called `otherwise`, predicts for sources that a generator has no answer to (Qiu et al. 2022,
    appendix C.2, for grammars). A source without any answer has an empty target.
    """

    name: str
    system: "Generator | Predictor"
    otherwise: str | None = None
    second: "Predictor | None" = None
    best: int = 1  # targets for each source; a generator gives one, without its log-probability
    beam: int = 1
    note: str = ""  # appended to a predictor's remark on its sources, of which only the first is printed
    answered: int = 0  # sources answered by the generator so far
    _remarked: set[str] = field(default_factory=set)

    def to(self, sources: Sequences, watch: Callable[[int], None] | None = None) -> list[Ranked]:
        """Return the targets of each source; `watch` hears how many sources a generator has looked at."""
        from compgen.api import Predictor

        if isinstance(self.system, Predictor):
            return self._by(self.name, self.system, sources)
        first = self.system.answer(sources, watch=watch)
        lacking = [source for source, target in zip(sources, first, strict=True) if not target]
        self.answered += len(sources) - len(lacking)
        if self.second is None or not lacking:
            return [[(target, None)] for target in first]
        more = iter(self._by(str(self.otherwise), self.second, lacking))
        return [[(target, None)] if target else next(more) for target in first]

    def _by(self, name: str, predictor: "Predictor", sources: Sequences) -> list[Ranked]:
        if name not in self._remarked:
            for remark in predictor.remarks(sources):
                say(f"{name}: {remark}{self.note}")
                self._remarked.add(name)
        return [[*ranked] for ranked in predictor.best(sources, self.best, self.beam, unknown=True)]
