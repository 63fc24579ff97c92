"""A trained generator in Python: draws, samples and direct answers, from a bundle or from what training wrote."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compgen.configuration import check_options, names_of
from compgen.errors import ExhaustedError, UserError
from compgen.processors import cores
from compgen.runtime.backend import warm
from compgen.runtime.pool import NEAREST
from compgen.sampling.batching import ROWS, Draw, Tokens
from compgen.sampling.choice import Choice, Votes
from compgen.sampling.output import Sample
from compgen.sampling.resampling import RARITY, Counts, Filter, FilterConfig, Kept, Training, filter_names
from compgen.trained.architectures import DRAWS, GeneratorModel, Request, Runtime, open_model
from compgen.trained.limits import LIMITS, check_limits, require_limits, token_lists

if TYPE_CHECKING:  # polars alone takes a tenth of a second, which who only draws need not wait for
    from compgen.data.examples import Dataset

PATIENCE = 20_000  # draws without one kept sample, after which a filter counts as impossible
WATCHED = 32  # draws between two looks at progress and at Ctrl-C: a second or so where drawing is slow
Pairs = Iterable[tuple[Sequence[str], Sequence[str]]]


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Options that say which samples a stream has, and how they are drawn.

    Attributes:
        seed: names the stream.
        start: the first address to draw.
        draws: stop after so many draws, however many were kept.
        filters, novelty, rarity, ngram, rare_tokens, prototypes, voting: see `FilterConfig`; rare tokens are strings
            here. One filter or token may be given as a string, several filters as one string with commas.
        temperature, beam, batch, workers: see `Generator.draw`.
        engine: `threads` of this process, or `ray`: the CPUs of a Ray cluster (see `sampling.ray_engine`).
    """

    seed: int = 0
    start: int = 0
    draws: int | None = None
    filters: Sequence[str] = ()
    novelty: str = "both"
    rarity: float = RARITY
    ngram: int = 1
    rare_tokens: Sequence[str] = ()
    prototypes: str = "all"
    voting: bool = False
    temperature: tuple[float, float] | None = None
    beam: int | None = None
    batch: int | None = None
    workers: int | None = None
    engine: str = "threads"

    def __post_init__(self) -> None:
        """Raise UserError for numbers outside their limits, an unknown engine, or workers of beam search."""
        rare = (self.rare_tokens,) if isinstance(self.rare_tokens, str) else self.rare_tokens
        object.__setattr__(self, "filters", filter_names(self.filters))
        object.__setattr__(self, "rare_tokens", rare)
        numbers = ("draws", "beam", "batch", "workers")
        check_limits(**{name: getattr(self, name) for name in numbers})
        require_limits(seed=self.seed, start=self.start)
        _checked(self.temperature)
        if not isinstance(rare, Iterable) or not all(isinstance(token, str) for token in rare):
            raise UserError(f"rare_tokens {rare!r:.60}: expected tokens, each a string")
        if self.engine not in ("threads", "ray"):
            raise UserError(f"no engine {self.engine!r}: expected threads or ray")
        if None not in (self.beam, self.workers):
            raise UserError("workers are for drawing, and beam search has none: leave out workers or beam")

    def after(self, drawn: int) -> dict[str, Any]:
        """Return the arguments of `Generator.draw` for the addresses that are left after so many draws."""
        stop = LIMITS["stop"][1] if self.draws is None else self.start + self.draws
        how = {name: getattr(self, name) for name in ("seed", "temperature", "beam", "batch", "workers")}
        return how | {"start": self.start + drawn, "stop": stop}


class Generator:
    """A trained generator, from a bundle or a grammar file (no torch needed), or from a checkpoint."""

    def __init__(self, model: GeneratorModel) -> None:
        """Use an opened model; `load` opens one."""
        self.model, self.backend, self.identity = model, model.backend, model.identity
        self.pool, self.vocabulary, self.max_length = model.pool, model.vocabulary, model.max_length
        self.temperature, self.threaded = model.temperature, model.threaded
        self._training: Training | None = None

    @classmethod
    def load(
        cls,
        path: str | Path,
        runtime: str | None = None,
        provider: str = "auto",
        threads: int | None = None,
        *,
        trust_code: bool = False,
    ) -> "Generator":
        """Open a bundle folder, a shipped bundle by its name, a checkpoint (`.pt`) or a grammar (`.grammar`).

        Args:
            path: where it is.
            runtime: `onnx` (bundles; default), `torchscript` (bundles), `torch` (checkpoints; default), `native`
                (bundles, in the C++ runner, which answers; `cgen sample` draws by it). For a grammar, only `native`.
            provider: for ONNX Runtime: `auto`, `cpu` or `cuda`.
            threads: of one backend call, by default 1; `sample` runs several calls at a time. In the C++ runner all,
                by default one a core.
            trust_code: let the runtime `torchscript` run the bundle's code. All else in a bundle is data.

        Raises:
            UserError: it cannot be used; the message says why.
        """
        if threads is None:
            threads = cores() if runtime == "native" else 1
        return cls(open_model(Path(path), DRAWS, Runtime(runtime, provider, threads, trust_code)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model,)  # which has all the rest

    @property
    def training(self) -> Training:
        """The distinct training examples, for novelty and rarity."""
        if self._training is None:
            self._training = Training(self.pool)
        return self._training

    def examples(self) -> "Dataset":
        """Return the distinct training examples as a dataset."""
        import polars as pl

        from compgen.data.examples import SIDES, TRAIN, Dataset
        from compgen.data.ragged import lists

        tokens = pl.Series(self.vocabulary.tokens, dtype=pl.String)
        sides = {side: lists(tokens, *ids) for side, ids in zip(SIDES, self.training.sides(), strict=True)}
        return Dataset(pl.DataFrame(sides).with_columns(split=pl.lit(TRAIN)))

    def memory(self, dataset: "Dataset") -> list[str]:
        """Return a remark that a score on these examples measures memory, if it was trained on some of them."""
        vocabulary, learnt = self.vocabulary, self.training.pairs
        pairs = [pair for pair in dataset.pairs() if all(map(vocabulary.knows, pair))]
        count = sum((tuple(vocabulary.encode(a)), tuple(vocabulary.encode(b))) in learnt for a, b in pairs)
        if not count:
            return []
        of = "all" if count == len(dataset) else f"{count:,} of {len(dataset):,}"
        return [f"{of} examples are among those it was trained on: the score on these measures memory"]

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
        """Yield the raw draws of addresses start .. stop - 1, in order, as token ids.

        With `beam`, the address chooses the prototypes and the latent vector, if the generator has one, and the draw is
        the best output that a beam of that width finds (the reference's way on SCAN jump, width 4). There is no
        temperature then, and workers are not used.

        A grammar draws derivations in one thread; it has one temperature, and no beam.

        Args:
            seed, start, stop: the addresses.
            temperature: of the source half and of the target half.
            beam: the width of beam search, in place of drawing.
            batch: rows decoded together; by default 256 by each worker, 4,096 on a GPU and by a grammar.
            workers: threads; not used on a GPU, which runs the whole loop.
            unwanted: sources at whose end a draw is given up, without a target; not used by beam search or on a GPU.

        Raises:
            UserError: a number is out of range (see `warm`), or an option does not apply.
            ExhaustedError: a grammar has no derivation within its limits (see `csl.sampling`).
        """
        request = Request(seed, start, stop, temperature, beam, batch, workers, unwanted)
        return self._draws(request)

    def _draws(self, asked: Request) -> Iterator[Draw]:
        check_limits(beam=asked.beam, batch=asked.batch, workers=asked.workers)
        require_limits(seed=asked.seed, start=asked.start, stop=asked.stop)
        return self.model.draws(replace(asked, temperature=_checked(asked.temperature)))

    def stream(self, count: int | None = None, **options: Any) -> Iterator[Sample]:
        """Yield samples as they come, in order of address: `count` of them, or those among a number of `draws`.

        Options and errors are those of `sample`, but for what is chosen among all (vote, margin, support, best); for
        `counts`, `watch` and `earlier` see `kept`.
        """
        return (self.sample_of(one) for one in self.kept(count, **options))

    def kept(
        self,
        count: int | None = None,
        *,
        counts: Counts | None = None,
        watch: Callable[[Counts], None] | None = None,
        earlier: Pairs = (),
        **options: Any,
    ) -> Iterator[Kept]:
        """Yield the draws that pass the filters in order of address, each with the ids of its source and target.

        With the `counts` of a part that is done, the stream goes on after it. Between two samples, and when `watch` is
        called, the counts are those of all samples so far, so a run can be resumed from what is saved then.

        Args:
            count: stop after so many kept samples.
            counts: filled in while the stream runs.
            watch: called with the counts every 32 draws, to show progress.
            earlier: source and target of the samples in `counts`, for the filter unique.
            options: see `SamplingOptions`. Unfinished and malformed draws are never kept.

        Raises:
            ExhaustedError: `count` samples cannot be had: 20,000 draws in a row gave none, or no token is rare.
            UserError: neither `count` nor `draws` is given, a number is impossible, or the engine cannot do it.
            DataError: a rare token is not in the vocabulary.
        """
        check_options("stream", options, names_of(self.kept, SamplingOptions))
        asked = SamplingOptions(**options)
        check_limits(count=count)
        if count is None and asked.draws is None:
            raise UserError("say how many samples to keep (count) or how many draws to make (draws)")
        judge = Filter(self._filters(asked), self.training)
        judge.require_rare(len(self.vocabulary))
        judge.counts = Counts() if counts is None else counts
        if "unique" in asked.filters:
            for pair in earlier:
                judge.remember(*map(self.vocabulary.encode, pair))
        if count is not None and judge.counts.kept >= count:
            return iter(())
        # By filters that are asked for, most draws may be dropped: how many are enough cannot be said.
        enough = None if count is None or asked.filters else count - judge.counts.kept
        source, judged = self._judged(asked, judge, enough)  # now, so that an error comes before the first draw
        return self._kept(count, judge, source, _patient(judged, asked, judge.counts, watch))

    def _filters(self, asked: SamplingOptions) -> FilterConfig:
        """The filters of a stream; raises as `kept`."""
        rare = tuple(self.vocabulary.encode(asked.rare_tokens))
        settings = asked.novelty, asked.rarity, asked.ngram, rare, asked.prototypes, asked.voting
        return FilterConfig(tuple(asked.filters), *settings)

    def _kept(self, count: int | None, judge: Filter, source: Any, judged: Iterator[Kept | str]) -> Iterator[Kept]:
        try:
            for one in judge.admit(judged):
                yield one
                if judge.counts.kept == count:
                    return
        finally:
            source.close()

    def _judged(self, asked: SamplingOptions, judge: Filter, enough: int | None) -> tuple[Any, Iterator[Kept | str]]:
        """Return the draws that are left, judged, and the iterator to close in the end."""
        span, pool = asked.after(judge.counts.drawn), judge.pool(self.pool)
        if asked.engine == "threads":
            drawn = self._draws(Request(**span, unwanted=judge.unwanted, pool=pool, enough=enough))
            return drawn, map(judge.judge, drawn)
        from compgen.sampling.ray_engine import Work, judged

        if asked.beam is not None:
            raise UserError("the engine ray has no beam search")
        if self.model.bundle is None:
            raise UserError(
                "the engine ray needs a bundle that ONNX Runtime runs: export a network's checkpoint; for a grammar, "
                "or in another runtime, leave ray out"
            )
        bundle, heat = str(self.model.bundle), _checked(asked.temperature) or self.temperature
        work = Work(bundle, self.identity, asked.seed, heat, asked.batch or ROWS, judge.config)
        found = judged(work, span["start"], span["stop"], asked.workers)
        return found, found

    def sample_of(self, kept: Kept, votes: Votes | None = None) -> Sample:
        """Return a kept draw as a sample, in tokens."""
        draw, source, target = kept
        decode = self.vocabulary.decode
        return Sample(draw.index, decode(source), decode(target), draw.log_prob, draw.prototypes, votes)

    def answer(
        self, sources: Sequence[Sequence[str]], each: int = NEAREST, watch: Callable[[int], None] | None = None
    ) -> list[list[str]]:
        """Return the target of each source by direct inference, without a predictor; see `compgen.sampling.direct`.

        A grammar gives that of the best derivation, and an empty one where there is none. So does a network for a
        source with a token that it does not know.

        Raises:
            UserError: a generator with no prototypes, or more than two.
        """
        sources = token_lists(sources)
        return self.model.answers(sources, each, watch)

    def sample(
        self,
        count: int | None = None,
        seed: int = 0,
        *,
        vote: bool = False,
        margin: int | None = None,
        support: float | None = None,
        best: int | None = None,
        **options: Any,
    ) -> "Dataset":
        """Return new examples as a dataset: `count` of them, or those among a number of `draws`.

        Beside source, target and split it has the columns `method`, `index` (the address), `log_prob` and
        `prototypes` (rows of the pool).

        Args:
            count: how many; or say how many `draws` to make.
            seed: names the stream of samples.
            vote: one target for each source, the one drawn most often; with `draws`.
            margin: with vote: by how many votes it must have won.
            support: leave out samples with a new pair of source tokens that fewer than this share of samples have.
            best: no more than so many, the most probable (or most voted) first.
            options: filters (novel, unique, rare), novelty, rarity, ngram, rare_tokens, prototypes, start, draws,
                temperature (of the two halves), beam, batch, workers and engine, which mean what they mean in
                `cgen sample --help`.

        Raises:
            UserError: there is no such option, or its value is impossible; so many samples cannot be had.
        """
        known = [name for name in names_of(self.sample, SamplingOptions) if name != "voting"]  # which `vote` decides
        check_options("sample", options, known)
        config = self._filters(SamplingOptions(seed=seed, **options))
        choice = Choice(vote, margin, support, best)
        first = choice.drawing(config)
        drawing = options | {"seed": seed, "filters": first.names, "novelty": first.novelty, "voting": first.voting}
        kept: Iterable[Kept] = self.kept(count, **drawing)
        if choice.made:
            kept = [one for one, _ in choice.of(kept, config, self.training)]
        return self._dataset(kept)

    def _dataset(self, kept: Iterable[Kept]) -> "Dataset":
        import polars as pl

        from compgen.data.examples import SCHEMA, TRAIN, Dataset

        schema = SCHEMA | {"method": pl.String(), "index": pl.Int64(), "log_prob": pl.Float64()}
        rows = [
            (one.source, one.target, TRAIN, self.model.method, one.index, one.log_prob, list(one.prototypes))
            for one in map(self.sample_of, kept)
        ]
        return Dataset(pl.DataFrame(rows, schema | {"prototypes": pl.List(pl.Int64())}, orient="row"))


def _patient(
    judged: Iterator[Kept | str],
    asked: SamplingOptions,
    counts: Counts,
    watch: Callable[[Counts], None] | None,
) -> Iterator[Kept | str]:
    """Pass on what is judged; show progress, and give up where a count is asked for and no draw passes."""
    for verdict in judged:
        if watch is not None and counts.drawn % WATCHED == 0:
            watch(counts)
        if asked.draws is None and counts.drawn - counts.last >= PATIENCE:
            passes = ", ".join(asked.filters) or "as well-formed"
            raise ExhaustedError(f"{PATIENCE:,} draws in a row gave no sample that passes {passes}: {counts}")
        yield verdict


def _checked(temperature: tuple[float, float] | None) -> tuple[float, float] | None:
    if temperature is None:
        return None
    try:
        first, second = map(float, temperature)
    except (OverflowError, TypeError, ValueError) as error:
        raise UserError(f"temperature {temperature!r:.60}: expected two numbers, of the two halves") from error
    try:
        return warm(first), warm(second)
    except ValueError as error:
        raise UserError(str(error)) from error
