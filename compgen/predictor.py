"""A trained predictor in Python: targets, losses and scores, from a bundle or a checkpoint."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import Vocabulary
from compgen.opening import cores, open_predictor
from compgen.runtime.backend import Decoder

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores


class Predictor:
    """A trained predictor, from a bundle or a checkpoint."""

    def __init__(self, decoder: Decoder, vocabulary: Vocabulary, max_length: int) -> None:
        self.decoder, self.vocabulary, self.max_length = decoder, vocabulary, max_length

    @classmethod
    def load(
        cls, path: str | Path, runtime: str | None = None, provider: str = "auto", threads: int | None = None
    ) -> "Predictor":
        """A predictor from a bundle folder or a checkpoint; arguments and errors as for `Generator.load`."""
        decoder, meta = open_predictor(Path(path), runtime, provider, threads or cores())
        return cls(decoder, meta.vocabulary, meta.max_length)

    def predict(
        self, sources: Sequence[Sequence[str]], beam: int = 1, batch: int = 256, unknown: bool = False
    ) -> list[list[str]]:
        """The target of each source, by greedy decoding or by beam search of some width.

        With `unknown`, a source may have tokens that the vocabulary has not: a predictor that copies may write them
        too, up to eight different ones in a source; others are read as `<unk>`, which is never written.

        Raises:
            DataError: a source token is not in the vocabulary.
        """
        from compgen.runtime.beam import beam as search
        from compgen.runtime.predict import greedy

        read = [self.vocabulary.lend(source) if unknown else (self.vocabulary.encode(source), {}) for source in sources]
        ids = [source for source, _ in read]
        if beam == 1:
            found = greedy(self.decoder, ids, self.max_length, batch)
        else:
            found = search(self.decoder, ids, beam, self.max_length)
        return [self.vocabulary.decode(target, lent) for (target, _), (_, lent) in zip(found, read, strict=True)]

    def losses(
        self, dataset: "Dataset", batch: int = 256, watch: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """How improbable each example's target is given its source: nats a token, the end of the target counted as one.

        `watch` hears how many examples are done.

        Tokens that the vocabulary has not are what they are for `predict`, or `<unk>` where the source has them not.
        """
        from compgen.runtime.predict import losses

        ids = []
        for source, target in dataset.pairs():
            read, lent = self.vocabulary.lend(source)
            ids.append((read, self.vocabulary.read(target, lent)))
        return losses(self.decoder, ids, batch, watch)

    def evaluate(self, dataset: "Dataset", beam: int = 1, execute: str | None = None) -> "Scores":
        """Exact match and token F1 on all examples of `dataset`, and by `execute` the share that executes.

        Raises:
            UserError: there is no such interpreter.
            DataError: a source token is not in the vocabulary, or a reference does not execute to its source.
        """
        from compgen.evaluation.metrics import check_executes, score

        pairs = dataset.pairs()
        sources, references = [source for source, _ in pairs], [target for _, target in pairs]
        if execute is not None:
            check_executes(references, sources, execute)  # an error now, not after predicting
        return score(self.predict(sources, beam, unknown=True), references, sources, execute)
