"""A predictor's bundle that the C++ runner decodes: several times as fast as Python, with the same answers."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from compgen.data.vocabulary import Vocabulary
from compgen.errors import UserError
from compgen.runtime.bundle import Bundle
from compgen.sampling import native
from compgen.trained.predictor import StepwisePredictor

if TYPE_CHECKING:
    from compgen.data.examples import Dataset

TOGETHER = 64  # most rows that a thread decodes at a time: more do not fit the cache


class NativePredictor(StepwisePredictor):
    """Each call starts the runner anew, which opens the bundle: ask for many answers at a time.

    Raises:
        UserError: there is no C++ runner.
    """

    unscored = "the C++ runner answers, and does not score what is given: leave out --runtime native"

    def __init__(self, bundle: Bundle, threads: int) -> None:
        self.bundle, self.threads = native.opened(bundle), threads
        self.vocabulary, self.max_length = Vocabulary(bundle.vocabulary), bundle.manifest.max_length

    def _written(
        self, sources: list[list[int]], count: int, width: int, batch: int
    ) -> Sequence[Sequence[tuple[Sequence[int], float]]]:
        if not sources:
            return []
        options = {"--best": count, "--beam": width, "--batch": min(batch, TOGETHER), "--workers": self.threads}
        found: list[list[tuple[list[int], float]]] = [[] for _ in sources]
        for line in native.raw_lines(self.bundle, sources, options):
            found[line["index"]].append((line["tokens"], line["log_prob"]))
        return found

    def losses(
        self,
        dataset: "Dataset",  # noqa: ARG002
        batch: int = 256,  # noqa: ARG002
        watch: Callable[[int], None] | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Raise UserError: the runner decodes alone."""
        raise UserError(self.unscored)
