"""A trained predictor in Python: targets, losses and scores, from whatever `cgen train` or `export` wrote."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import Vocabulary
from compgen.errors import DataError, tell
from compgen.processors import cores
from compgen.runtime.backend import Decoder
from compgen.trained.architectures import LOSSES, Opened, Runtime, open_model
from compgen.trained.limits import check_limits, token_lists

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores


EXAMPLES = "examples_sha256"  # in `trained_on`: `Dataset.digest` of the originals
Answer = tuple[list[str], float]  # a target, and its log-probability

_PARTS = re.compile(r"\w+|[^\w\s]")  # about what `--signs apart` makes of a token


class Predictor(Opened, ABC):
    """A trained predictor: `Predictor.load` opens the kind that a path holds.

    Attributes:
        trained_on: names, sizes and the like of the training data, as far as they are known.
    """

    trained_on: Mapping[str, Any] = MappingProxyType({})
    unscored: str = ""  # why it cannot score given targets; empty if it can
    identify: Callable[[], str] = str  # computes `identity`, when asked: a pretrained model takes seconds to read

    @cached_property
    def identity(self) -> str:
        """The SHA-256 of its files, as of a generator; empty if it was not opened from files."""
        return self.identify()

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

        Arguments and errors as for `Generator.load`, but `threads` are by default one a core.
        """
        where = Runtime(runtime, provider, cores() if threads is None else threads, trust_code)
        opened: Predictor = open_model(Path(path), LOSSES, where)
        return opened

    def predict(
        self, sources: Sequence[Sequence[str]], beam: int = 1, batch: int = 256, unknown: bool = False
    ) -> list[list[str]]:
        """The target of each source, by greedy decoding or by beam search of some width.

        With `unknown`, a source may have tokens that the predictor does not know; see `remarks`.

        Raises:
            DataError: a source token is not known.
        """
        return [found[0][0] for found in self.best(sources, 1, beam, batch, unknown)]

    @abstractmethod
    def best(
        self,
        sources: Sequence[Sequence[str]],
        count: int,
        beam: int | None = None,
        batch: int = 256,
        unknown: bool = False,
    ) -> list[list[Answer]]:
        """The `count` best targets that beam search finds for each source, the best first, with log-probabilities.

        Where fewer hypotheses end, there are fewer. The beam is `count` wide unless `beam` is more; a width of 1 is
        greedy decoding. Other arguments and errors are those of `predict`.

        Raises:
            UserError: `count` is less than 1, or more than the beam can be wide.
        """

    @abstractmethod
    def losses(
        self, dataset: "Dataset", batch: int = 256, watch: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """Return the mean negative log-probability, in nats a token, of each example's target given its source: (N).

        The end of the target counts as a token. `watch` is called with the number of examples that are done.
        """

    def log_probs(self, dataset: "Dataset", batch: int = 256) -> NDArray[np.float64]:
        """Return the log-probability, in nats, of each example's whole target and its end given its source: (N).

        It compares targets and predictors, while `losses` are means over whatever units a predictor writes.
        """
        return -self.losses(dataset, batch) * [len(target) + 1 for _, target in dataset.pairs()]

    @abstractmethod
    def remarks(self, sources: Sequence[Sequence[str]]) -> list[str]:
        """Return what it cannot read of these sources, in a sentence each."""

    def learnt_from(self, dataset: "Dataset") -> bool:
        """Return whether it is known that these are the examples it was trained on, all of them and no others."""
        known = self.trained_on.get(EXAMPLES)
        return known is not None and known == dataset.digest()

    def memory(self, dataset: "Dataset") -> list[str]:
        """Return a remark that a score on these examples measures memory, if they are what it was trained on."""
        learnt = self.learnt_from(dataset)
        return ["these are the examples it was trained on: the score measures memory"] if learnt else []

    def evaluate(
        self, dataset: "Dataset | str | Path", beam: int = 1, execute: str | None = None, *, split: str | None = "test"
    ) -> "Scores":
        """Return exact match and token F1 on all examples of `dataset`, and with `execute` the share that executes.

        Of several splits only `split` is looked at; all of them if it is None. A dataset may be named, as a file too.

        Raises:
            UserError: there is no such interpreter.
            DataError: there is no such split, no example has a target, or a reference does not execute to its source.
                Tokens that the predictor does not know are no error, see `remarks`.
        """
        from compgen.data.catalog import given
        from compgen.evaluation.metrics import check_executes, score, spaces_alone

        examples = given(dataset).part(split, usual="test")
        for remark in self.memory(examples):
            tell(remark)
        pairs = examples.pairs()
        if not any(target for _, target in pairs):
            raise DataError(
                f"found {'sentences, without targets' if pairs else 'no examples'}, expected targets to score by"
            )
        sources, references = [source for source, _ in pairs], [target for _, target in pairs]
        if execute is not None:
            check_executes(references, sources, execute)  # an error now, not after predicting
        predicted = self.predict(sources, beam, unknown=True)
        for remark in spaces_alone(predicted, references):
            tell(remark)
        return score(predicted, references, sources, execute)


class StepwisePredictor(Predictor):
    """A network of ours, which writes a token of its vocabulary at a time."""

    def __init__(self, decoder: Decoder, vocabulary: Vocabulary, max_length: int) -> None:
        self.decoder, self.vocabulary, self.max_length = decoder, vocabulary, max_length

    def best(
        self,
        sources: Sequence[Sequence[str]],
        count: int,
        beam: int | None = None,
        batch: int = 256,
        unknown: bool = False,
    ) -> list[list[Answer]]:
        """See `Predictor`.

        A network that copies may write unknown tokens too, up to eight different ones in a source; others are read as
        `<unk>`, which is never written.
        """
        sources = token_lists(sources)
        read = [self.vocabulary.lend(source) if unknown else (self._known(source), {}) for source in sources]
        found = self._written([source for source, _ in read], count, beam_of(count, beam), batch)
        return [
            [(self.vocabulary.decode(target, lent), score) for target, score in ranked]
            for ranked, (_, lent) in zip(found, read, strict=True)
        ]

    def _known(self, source: list[str]) -> list[int]:
        try:
            return self.vocabulary.encode(source)
        except DataError as error:
            if not all(token in self.vocabulary for token in source):
                raise DataError(f"{error}; unknown=True answers all the same, as `compgen.predict` does") from error
            raise

    def _written(
        self, sources: list[list[int]], count: int, width: int, batch: int
    ) -> Sequence[Sequence[tuple[Sequence[int], float]]]:
        """The `count` best targets of each source, in ids, that a beam of some width finds."""
        from compgen.runtime.beam import BATCH, nbest
        from compgen.runtime.predict import greedy

        if width == 1:
            return [[best] for best in greedy(self.decoder, sources, self.max_length, batch)]
        return nbest(self.decoder, sources, count, width, self.max_length, batch=min(batch, BATCH))

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
        tokens = {token for source in sources for token in source}
        unknown = [token for token in tokens if token not in self.vocabulary]
        parts = (_PARTS.findall(token) for token in unknown)
        apart = sum(bool(found) and all(part in self.vocabulary for part in found) for found in parts)
        return unknown_remark(unknown, len(tokens), apart)


def beam_of(count: int, beam: int | None) -> int:
    """Return how wide the beam is that finds `count` targets; raises UserError for a number out of range."""
    check_limits(best=count, beam=beam)
    return max(count, beam or 1)


def unknown_remark(tokens: Collection[str], count: int, apart: int = 0) -> list[str]:
    """Say that some of `count` different source tokens are unknown, and what it may mean if most are.

    Of `apart` of them all words and signs are known; the C++ runner does not look at that.
    """
    some = ", ".join(sorted(tokens)[:5]) + (", ..." if len(tokens) > 5 else "")
    most = ", most of them (a header line, another order of columns, other data?)" if 2 * len(tokens) > count else ""
    number = f"{len(tokens):,} source tokens are" if len(tokens) > 1 else "1 source token is"
    glued = f", {apart:,} with known words and signs (set them apart: `cgen data write SOURCES --signs apart -o OUT`)"
    return [f"{number} unknown to it{glued if apart else most}: {some}"] if tokens else []
