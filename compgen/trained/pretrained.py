"""Pretrained encoder-decoders that were fine-tuned: predictors that decode by the library `transformers`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from compgen.errors import DataError, UserError
from compgen.runtime.torch_threads import torch_threads
from compgen.trained.architectures import PREDICTOR, Architecture, Runtime, require_torch, torch_device
from compgen.trained.limits import token_lists
from compgen.trained.predictor import Answer, Predictor, beam_of, unknown_remark

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.models.pretrained import Ids, Pretrained


class PretrainedPredictor(Predictor):
    """A pretrained encoder-decoder that was fine-tuned. It reads any token that its tokenizer can write.

    Its losses are in nats a piece of the tokenizer's.
    """

    def __init__(self, model: "Pretrained", threads: int | None = None) -> None:
        self.model, self.threads = model, threads

    def best(
        self,
        sources: Sequence[Sequence[str]],
        count: int,
        beam: int | None = None,
        batch: int = 256,
        unknown: bool = False,
    ) -> list[list[Answer]]:
        """See `Predictor`. Sources that are too long are cut at their end."""
        sources = token_lists(sources)
        lost = [] if unknown else self.model.spelling.lost(token for source in sources for token in source)
        if lost:
            raise DataError(f"unknown token {lost[0]!r}: the model's tokenizer cannot write it")
        with torch_threads(self.threads):
            return self.model.best(self.model.sources(sources), count, beam_of(count, beam), batch)

    def losses(
        self, dataset: "Dataset", batch: int = 256, watch: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """See `Predictor`."""
        return self._mean_nats(*self._pieces(dataset), batch, watch)

    def log_probs(self, dataset: "Dataset", batch: int = 256) -> NDArray[np.float64]:
        """See `Predictor`."""
        reads, writes = self._pieces(dataset)
        return -self._mean_nats(reads, writes, batch, None) * [len(pieces) + 1 for pieces in writes]

    def _pieces(self, dataset: "Dataset") -> tuple["Ids", "Ids"]:
        """The ids of each example's source and target, without start or end symbol."""
        sources, targets = ([pair[side] for pair in dataset.pairs()] for side in (0, 1))
        return self.model.sources(sources), self.model.targets(targets)

    def _mean_nats(
        self, reads: "Ids", writes: "Ids", batch: int, watch: Callable[[int], None] | None
    ) -> NDArray[np.float64]:
        """Return the mean negative log-probability, in nats a piece, of each target and its end symbol: (N)."""
        from compgen.runtime.predict import by_length

        found, done = np.zeros(len(writes)), 0
        for rows in by_length(writes, batch):
            with torch_threads(self.threads):
                nats = self.model.nats([reads[row] for row in rows], [writes[row] for row in rows])
            found[rows] = nats.cpu().numpy()
            done += len(rows)
            if watch is not None:
                watch(done)
        return found

    def remarks(self, sources: Sequence[Sequence[str]]) -> list[str]:
        """See `Predictor`."""
        tokens = {token for source in sources for token in source}
        said = unknown_remark(self.model.spelling.lost(tokens), len(tokens))
        long, limit = self.model.too_long(self.model.sources(sources)), self.model.source_length
        return said + ([f"{long:,} sources have more than its {limit:,} pieces and are cut"] if long else [])


class PretrainedArchitecture(Architecture):
    """See `models.pretrained`. It is saved in a folder, and has no bundle."""

    tag = "pretrained"
    abilities: ClassVar = {"predictor": PREDICTOR}

    def open_saved(self, saved: Path, path: Path, runtime: Runtime) -> PretrainedPredictor:
        if runtime.name not in (None, "torch") or runtime.provider != "auto":
            raise UserError(f"{path}: a pretrained model runs in torch alone: leave out runtime and provider")
        require_torch(f"{path}: a pretrained model needs torch: pip install 'compgen[train,pretrained]'")
        from compgen.models.pretrained import Pretrained

        return PretrainedPredictor(Pretrained.load(saved).to(torch_device()), runtime.threads)


ARCHITECTURE = PretrainedArchitecture()
