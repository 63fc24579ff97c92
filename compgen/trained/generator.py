"""A trained generator in Python: draws, samples and direct answers, from a bundle or a checkpoint."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compgen.csl.backend import GrammarBackend
from compgen.data.vocabulary import Vocabulary
from compgen.errors import ExhaustedError, UserError
from compgen.runtime.backend import Backend, warm
from compgen.runtime.pool import PrototypePool
from compgen.sampling.batching import Draw, Tokens, draws
from compgen.sampling.choice import Choice
from compgen.sampling.output import Sample
from compgen.sampling.resampling import Counts, Filter, FilterConfig, Kept, Training
from compgen.sampling.whole_loop import ROWS as ROWS_ON_GPU
from compgen.sampling.whole_loop import loop_draws
from compgen.trained.limits import check_limits
from compgen.trained.opening import open_generator

if TYPE_CHECKING:  # polars alone takes a tenth of a second, which who only draws need not wait for
    from compgen.data.examples import Dataset

ROWS = 256  # decoded together by a worker
ROWS_OF_GRAMMAR = 4096  # derived together
PATIENCE = 20_000  # draws without one kept sample, after which a filter counts as impossible


class Generator:
    """A trained generator, from a bundle (no torch needed) or a checkpoint."""

    def __init__(
        self,
        backend: Backend | GrammarBackend,
        pool: PrototypePool,
        vocabulary: Vocabulary,
        max_length: int,
        sampling: dict[str, Any],
        identity: str = "",
        bundle: Path | None = None,
    ) -> None:
        """A generator from its parts; `load` finds them.

        `identity` is a hash of the model's files. The engine `ray` needs the `bundle`, a folder for ONNX Runtime.
        """
        self.identity, self.bundle = identity, bundle
        self.backend, self.pool, self.vocabulary, self.max_length = backend, pool, vocabulary, max_length
        first, second = sampling["temperature"]
        self.temperature = (float(first), float(second))
        self._training: Training | None = None

    @classmethod
    def load(
        cls,
        path: str | Path,
        runtime: str | None = None,
        provider: str = "auto",
        threads: int = 1,
        *,
        trust_code: bool = False,
    ) -> "Generator":
        """A generator from a bundle folder, the name of a shipped bundle, or a checkpoint (`.pt`).

        Args:
            path: where it is.
            runtime: `onnx` (bundles; default), `torchscript` (bundles), `torch` (checkpoints; default).
                A grammar has no runtimes.
            provider: for ONNX Runtime: `auto`, `cpu` or `cuda`.
            threads: of one backend call; `sample` runs several calls at a time.
            trust_code: let the runtime `torchscript` run the bundle's code. All else in a bundle is data.

        Raises:
            UserError: it cannot be used; the message says why.
        """
        backend, meta = open_generator(Path(path), runtime, provider, threads, trust_code=trust_code)
        assert meta.pool is not None, "a generator has a pool"
        parts = (backend, meta.pool, meta.vocabulary, meta.max_length, meta.sampling)
        return cls(*parts, meta.identity, meta.bundle)

    @property
    def training(self) -> Training:
        """The distinct training examples, for novelty and rarity."""
        if self._training is None:
            self._training = Training(self.pool.tokens)
        return self._training

    def draw(
        self,
        seed: int = 0,
        start: int = 0,
        stop: int = 1,
        *,
        temperature: tuple[float, float] | None = None,
        beam: int | None = None,
        batch: int | None = None,
        workers: int | None = None,
        unwanted: Container[Tokens] = (),
    ) -> Iterator[Draw]:
        """The raw draws of addresses start .. stop - 1, in order, as token ids.

        Draws whose source is `unwanted` are given up there (but not by beam search) and have no target.

        With `beam`, the address chooses the prototypes alone, and the best output that a beam of that width finds is
        the draw (the reference's way on SCAN jump, width 4); temperature and workers then have no part.

        On a GPU the whole loop runs there, and neither `workers` nor `unwanted` has a part. `batch` is how many rows
        are decoded together: by default 256 by each worker, 4,096 on a GPU.

        A grammar draws derivations, by default 4,096 together, in one thread; it has one temperature, and no beam.

        Raises:
            UserError: both `beam` and `temperature` are given; a temperature is out of range (see `warm`); or an
                option does not apply to grammars.
            ExhaustedError: a grammar has no derivation within its limits (see `csl.sampling`).
        """
        check_limits(seed=seed, start=start, stop=stop, beam=beam, batch=batch, workers=workers)
        temperature = _checked(temperature)
        if isinstance(self.backend, GrammarBackend):
            heat, other = temperature or self.temperature
            if heat != other:
                raise UserError(f"a grammar has one temperature, found {heat:g} and {other:g}")
            if heat <= 0:
                raise UserError(f"a grammar draws at a temperature above 0, found {heat:g}")
            if beam is not None or workers is not None:
                raise UserError("a grammar draws in one thread: leave out beam and workers")
            return self.backend.draws(seed, start, stop, heat, batch or ROWS_OF_GRAMMAR)
        if beam is not None:
            if temperature is not None:
                raise UserError("beam search draws nothing at random: give beam or temperature, not both")
            return self._search(self.backend, seed, start, stop, beam, batch or ROWS)
        common: dict[str, Any] = {
            "seed": seed,
            "start": start,
            "stop": stop,
            "max_length": self.max_length,
            "temperature": temperature or self.temperature,
        }
        if self.backend.loop is not None:
            size = len(self.vocabulary)
            return loop_draws(self.backend.loop, self.pool, **common, vocabulary=size, rows=batch or ROWS_ON_GPU)
        workers = workers or os.cpu_count() or 1
        return draws(self.backend, self.pool, **common, slots=batch or ROWS, workers=workers, unwanted=unwanted)

    def _search(self, backend: Backend, seed: int, start: int, stop: int, width: int, batch: int) -> Iterator[Draw]:
        from compgen.runtime.beam import beam_over

        for first in range(start, stop, batch):
            addresses = np.arange(first, min(first + batch, stop), dtype=np.int64)
            chosen = self.pool.choose(seed, addresses)
            tokens = self.pool.tokens[chosen, : self.pool.longest].astype(np.int64)
            fed = backend.shape.fed(seed, addresses)
            found = beam_over(backend, tokens, width, self.max_length, fed=fed)
            for index, (output, score), prototypes in zip(addresses.tolist(), found, chosen.tolist(), strict=True):
                finished = len(output) < self.max_length
                yield Draw(index, tuple(output), finished, score, tuple(prototypes))

    def stream(
        self,
        count: int | None = None,
        *,
        seed: int = 0,
        start: int = 0,
        draws: int | None = None,
        filters: Sequence[str] = (),
        novelty: str = "both",
        rarity: float = 0.01,
        ngram: int = 1,
        rare_tokens: Sequence[str] = (),
        temperature: tuple[float, float] | None = None,
        beam: int | None = None,
        batch: int | None = None,
        workers: int | None = None,
        engine: str = "threads",
        counts: Counts | None = None,
        watch: Callable[[Counts], None] | None = None,
        earlier: Iterable[tuple[Sequence[str], Sequence[str]]] = (),
    ) -> Iterator[Sample]:
        """Samples as they come, in order of address.

        With the `counts` of a part that is done, the stream goes on after it. Between two samples, and when `watch` is
        called, the counts are those of all samples so far: what is saved then can be gone on from.

        Args:
            count: stop after so many kept samples.
            draws: stop after so many draws, however many were kept; addresses start .. start + draws - 1.
            filters, novelty, rarity, ngram, rare_tokens: see `FilterConfig`. Unfinished and malformed draws are never
                kept.
            temperature, beam, batch, workers: see `draw`.
            engine: `threads` of this process, or `ray`: the CPUs of a Ray cluster (see `sampling.ray_engine`).
            counts: filled in while the stream runs.
            watch: called with the counts every 256 draws, to show progress.
            earlier: source and target of the samples that `counts` speaks of, for the filter unique.

        Raises:
            ExhaustedError: `count` samples cannot be had: 20,000 draws in a row gave none.
            UserError: neither `count` nor `draws` is given, a number is impossible, or the engine cannot do it.
            DataError: a rare token is not in the vocabulary.
        """
        if count is None and draws is None:
            raise UserError("say how many samples to keep (count) or how many draws to make (draws)")
        check_limits(count=count, draws=draws, seed=seed, start=start, beam=beam, batch=batch, workers=workers)
        named = tuple(self.vocabulary.encode(rare_tokens))
        judge = Filter(FilterConfig(tuple(filters), novelty, rarity, ngram, named), self.training)
        judge.counts = counts = Counts() if counts is None else counts
        if "unique" in filters:
            for pair in earlier:
                judge.remember(*map(self.vocabulary.encode, pair))
        addresses = (seed, start + counts.drawn, start + draws if draws is not None else 2**62)
        options: dict[str, Any] = {"temperature": temperature, "beam": beam, "batch": batch, "workers": workers}
        source: Any
        judged: Iterator[Kept | str]
        if engine == "ray":
            source = judged = self._on_ray(judge.config, *addresses, **options)
        elif engine == "threads":
            source = self.draw(*addresses, **options, unwanted=judge.unwanted)
            judged = map(judge.judge, source)
        else:
            raise UserError(f"no engine {engine!r}: expected threads or ray")

        def patient() -> Iterator[Kept | str]:
            for verdict in judged:
                if watch is not None and counts.drawn % 256 == 0:
                    watch(counts)
                if draws is None and counts.drawn - counts.last >= PATIENCE:
                    raise ExhaustedError(
                        f"{PATIENCE:,} draws in a row gave no sample that passes "
                        f"{', '.join(filters) or 'as well-formed'}: {counts}"
                    )
                yield verdict

        if count is not None and counts.kept >= count:
            return
        decode = self.vocabulary.decode
        try:
            for draw, left, right in judge.admit(patient()):
                yield Sample(draw.index, decode(left), decode(right), draw.log_prob, draw.prototypes)
                if counts.kept == count:
                    return
        finally:
            source.close()

    def _on_ray(
        self,
        filters: FilterConfig,
        seed: int,
        start: int,
        stop: int,
        *,
        temperature: tuple[float, float] | None,
        beam: int | None,
        batch: int | None,
        workers: int | None,
    ) -> Iterator[Kept | str]:
        """The draws of some addresses, judged, as a Ray cluster makes them."""
        from compgen.sampling.ray_engine import Work, judged

        if beam is not None:
            raise UserError("the engine ray has no beam search")
        if self.bundle is None:
            raise UserError("the engine ray needs a bundle that ONNX Runtime runs: export the checkpoint first")
        bundle = str(self.bundle.absolute())
        work = Work(bundle, self.identity, seed, _checked(temperature) or self.temperature, batch or ROWS, filters)
        return judged(work, start, stop, workers)

    def answer(
        self, sources: Sequence[Sequence[str]], each: int = 5, watch: Callable[[int], None] | None = None
    ) -> list[list[str]]:
        """The target of each source by direct inference, without a predictor; see `compgen.sampling.direct`.

        A grammar gives that of the best derivation, and an empty one where there is none. So does a network for a
        source with a token that it does not know.

        Raises:
            UserError: a generator with no prototypes, or more than two.
        """
        from compgen.sampling.direct import Direct

        if isinstance(self.backend, GrammarBackend):
            return self.backend.answers(sources, watch)
        direct = Direct(self.backend, self.pool, self.max_length, each)
        known = [number for number, source in enumerate(sources) if self.vocabulary.knows(source)]
        found = direct.answers([self.vocabulary.encode(sources[number]) for number in known], watch)
        answers: list[list[str]] = [[] for _ in sources]
        for number, answer in zip(known, found, strict=True):
            answers[number] = self.vocabulary.decode(answer)
        return answers

    def sample(
        self,
        count: int | None = None,
        seed: int = 0,
        *,
        filters: Sequence[str] = (),
        novelty: str = "both",
        rarity: float = 0.01,
        ngram: int = 1,
        vote: bool = False,
        margin: int | None = None,
        support: float | None = None,
        best: int | None = None,
        **options: Any,
    ) -> "Dataset":
        """New examples as a dataset: `count` of them, or what a number of `draws` gives.

        Args:
            count, seed, filters, novelty, rarity, ngram: as for `stream`.
            vote, margin, support, best: see `Choice`.
            options: `draws` and the others of `stream`.

        Raises:
            ExhaustedError, UserError: as `stream`, and for choices that are impossible.
        """
        from compgen.data.examples import Dataset

        config = FilterConfig(tuple(filters), novelty, rarity, ngram)
        choice = Choice(vote, margin, support, best)
        first = choice.drawing(config)
        drawn: dict[str, Any] = {"filters": first.names, "novelty": first.novelty, "rarity": rarity, "ngram": ngram}
        samples: Iterable[Sample] = self.stream(count, seed=seed, **drawn, **options)
        if choice.made:
            samples = choice.of(samples, config, self.training, self.vocabulary)
        return Dataset.from_pairs((sample.source, sample.target) for sample in samples)


def _checked(temperature: tuple[float, float] | None) -> tuple[float, float] | None:
    if temperature is None:
        return None
    try:
        first, second = temperature
    except (ValueError, TypeError) as error:
        raise UserError(f"temperature {temperature}: expected two, of the two halves") from error
    try:
        return warm(first), warm(second)
    except ValueError as error:
        raise UserError(str(error)) from error
