"""A trained predictor in Python: targets, losses and scores, from whatever `compgen train` or `export` wrote."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import Vocabulary
from compgen.errors import DataError, UserError
from compgen.runtime.backend import Decoder
from compgen.trained.opening import cores, is_pretrained, open_predictor

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores
    from compgen.models.pretrained import Pretrained


class Predictor(ABC):
    """A trained predictor: `Predictor.load` opens the kind that a path holds."""

    @staticmethod
    def load(
        path: str | Path,
        runtime: str | None = None,
        provider: str = "auto",
        threads: int | None = None,
        *,
        trust_code: bool = False,
    ) -> "Predictor":
        """A predictor from a bundle folder, a checkpoint or the folder of a pretrained model.

        Arguments and errors as for `Generator.load`.
        """
        path, threads = Path(path), threads or cores()
        if is_pretrained(path):
            return _pretrained(path, runtime, provider, threads)
        decoder, meta = open_predictor(path, runtime, provider, threads, trust_code=trust_code)
        return StepwisePredictor(decoder, meta.vocabulary, meta.max_length)

    @abstractmethod
    def predict(
        self, sources: Sequence[Sequence[str]], beam: int = 1, batch: int = 256, unknown: bool = False
    ) -> list[list[str]]:
        """The target of each source, by greedy decoding or by beam search of some width.

        With `unknown`, a source may have tokens that the predictor does not know; see `remarks`.

        Raises:
            DataError: a source token is not known.
        """

    @abstractmethod
    def losses(
        self, dataset: "Dataset", batch: int = 256, watch: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """How improbable each example's target is given its source: nats a token, the end of the target counted as one.

        `watch` hears how many examples are done.
        """

    @abstractmethod
    def remarks(self, sources: Sequence[Sequence[str]]) -> list[str]:
        """What it cannot read of these sources, in a sentence each."""

    def evaluate(self, dataset: "Dataset", beam: int = 1, execute: str | None = None) -> "Scores":
        """Exact match and token F1 on all examples of `dataset`, and by `execute` the share that executes.

        Raises:
            UserError: there is no such interpreter.
            DataError: a reference does not execute to its source. Tokens that the predictor does not know are no
                error, see `remarks`.
        """
        from compgen.evaluation.metrics import check_executes, score

        pairs = dataset.pairs()
        sources, references = [source for source, _ in pairs], [target for _, target in pairs]
        if execute is not None:
            check_executes(references, sources, execute)  # an error now, not after predicting
        return score(self.predict(sources, beam, unknown=True), references, sources, execute)


class StepwisePredictor(Predictor):
    """A network of ours, which writes a token of its vocabulary at a time."""

    def __init__(self, decoder: Decoder, vocabulary: Vocabulary, max_length: int) -> None:
        self.decoder, self.vocabulary, self.max_length = decoder, vocabulary, max_length

    def predict(
        self, sources: Sequence[Sequence[str]], beam: int = 1, batch: int = 256, unknown: bool = False
    ) -> list[list[str]]:
        """See `Predictor`.

        A network that copies may write unknown tokens too, up to eight different ones in a source; others are read as
        `<unk>`, which is never written.
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
        """See `Predictor`.

        Out-of-vocabulary tokens are copied as in `predict`; those absent from the source count as `<unk>`.
        """
        from compgen.runtime.predict import losses

        ids = []
        for source, target in dataset.pairs():
            read, lent = self.vocabulary.lend(source)
            ids.append((read, self.vocabulary.read(target, lent)))
        return losses(self.decoder, ids, batch, watch)

    def remarks(self, sources: Sequence[Sequence[str]]) -> list[str]:
        """See `Predictor`."""
        return _unknown({token for source in sources for token in source if token not in self.vocabulary})


class PretrainedPredictor(Predictor):
    """A pretrained encoder-decoder that was fine-tuned. It reads any token that its tokenizer can write.

    Its losses are in nats a piece of the tokenizer's.
    """

    def __init__(self, model: "Pretrained") -> None:
        self.model = model

    def predict(
        self, sources: Sequence[Sequence[str]], beam: int = 1, batch: int = 256, unknown: bool = False
    ) -> list[list[str]]:
        """See `Predictor`. Sources that are too long are cut at their end."""
        lost = [] if unknown else self.model.spelling.lost(token for source in sources for token in source)
        if lost:
            raise DataError(f"unknown token {lost[0]!r}: the model's tokenizer cannot write it")
        return self.model.answers(self.model.sources(sources), beam, batch)

    def losses(
        self, dataset: "Dataset", batch: int = 256, watch: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """See `Predictor`."""
        from compgen.runtime.predict import by_length

        sources, targets = ([pair[side] for pair in dataset.pairs()] for side in (0, 1))
        reads, writes = self.model.sources(sources), self.model.targets(targets)
        found, done = np.zeros(len(dataset)), 0
        for rows in by_length(writes, batch):
            found[rows] = self.model.nats([reads[row] for row in rows], [writes[row] for row in rows]).cpu().numpy()
            done += len(rows)
            if watch is not None:
                watch(done)
        return found

    def remarks(self, sources: Sequence[Sequence[str]]) -> list[str]:
        """See `Predictor`."""
        said = _unknown(self.model.spelling.lost(token for source in sources for token in source))
        long, limit = self.model.too_long(self.model.sources(sources)), self.model.source_length
        return said + ([f"{long:,} sources have more than its {limit:,} pieces and are cut"] if long else [])


def _unknown(tokens: Collection[str]) -> list[str]:
    some = ", ".join(sorted(tokens)[:5]) + (", ..." if len(tokens) > 5 else "")
    return [f"{len(tokens):,} source tokens are unknown to it: {some}"] if tokens else []


def _pretrained(path: Path, runtime: str | None, provider: str, threads: int) -> PretrainedPredictor:
    """See `Predictor.load`."""
    if runtime not in (None, "torch") or provider != "auto":
        raise UserError(f"{path}: a pretrained model runs in torch alone: leave out runtime and provider")
    try:
        import torch
    except ModuleNotFoundError as error:
        raise UserError(f"{path}: a pretrained model needs torch: pip install 'compgen[train,pretrained]'") from error
    from compgen.models.pretrained import Pretrained

    torch.set_num_threads(threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return PretrainedPredictor(Pretrained.load(path).to(device))
