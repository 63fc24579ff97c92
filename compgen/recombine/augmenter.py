"""R&R's learned augmenter: `fit` trains a recombination network, `sample` draws from it and keeps what is new."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import polars as pl
from pydantic import Field, field_validator, model_validator

from compgen.augmenters.base import PAIRS, SENTENCES, Augmenter, Options, Shown
from compgen.data.examples import SIDES, TOKENS, Dataset
from compgen.errors import ExhaustedError, Interrupted, UserError
from compgen.progress import Watch
from compgen.recombine.config import RecombineConfig
from compgen.sampling.output import PLACES
from compgen.sampling.resampling import Counts

if TYPE_CHECKING:
    from compgen.sampling.resampling import Kept
    from compgen.trained.generator import Generator

MOST_ALONE = 0.5  # of a vote: the share of sources drawn only once from where on there is a warning
VOTES, LEAST_VOTES, MOST_DRAWS = 500, 4, 500_000  # of a vote: usual and fewest draws a sample asked for, most in all


class RecombineOptions(Options, RecombineConfig):
    """How a generator is trained (keys of its configuration), and which samples are kept."""

    filters: tuple[str, ...] = Field(
        ("novel", "unique"),
        description="Keep only samples that are novel (source and target not in training), unique (not drawn before) "
        "or rare (with a token rare in training).",
        json_schema_extra={"flags": ["--filter"], "metavar": "F,...", "drawing": True},
    )

    @field_validator("filters", mode="before")
    @classmethod
    def _listed(cls, names: Any) -> Any:
        from compgen.sampling.resampling import filter_names

        texts = [names] if isinstance(names, str) else names
        listed = isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts)
        return filter_names(texts) if listed else names

    ngram: int = Field(
        1,
        ge=1,
        description="Filter rare: look for n-grams of this length; from 2, unseen n-grams count too.",
        json_schema_extra={"drawing": True},
    )
    draws_each: int | None = Field(
        None,
        ge=1,
        description="Make at most D draws for each sample asked for; with --vote, exactly D (by default "
        f"{VOTES}, or as few as make {MOST_DRAWS:,} in all, but at least {LEAST_VOTES}).",
        json_schema_extra={"metavar": "D", "drawing": True},
    )
    vote: bool | None = Field(
        None,
        description="For each source, keep the target drawn most often; clear winners come first. Default of --config "
        "auto, except for words and sentences.",
        json_schema_extra={"drawing": True},
    )
    support: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Vote, and drop samples whose source has a new pair of adjacent tokens that fewer than this share "
        "of samples have. --config auto uses 0.1 if names trade places.",
        json_schema_extra={"metavar": "SHARE", "drawing": True},
    )
    resume: bool = Field(
        False,
        description="Continue an interrupted training run.",
        json_schema_extra={"running": True},
    )

    @model_validator(mode="after")
    def _support_needs_votes(self) -> Self:
        if self.support is not None and self.vote is False:
            raise ValueError("support is for votes: leave out --support, or --no-vote")
        return self

    @property
    def votes(self) -> bool:
        """Whether targets are voted on."""
        return bool(self.vote) or self.support is not None

    def config(self) -> RecombineConfig:
        """How the generator is trained."""
        if self.auto:
            return RecombineConfig(auto=True, minutes=self.minutes, timed=self.timed, **self.values_set)
        return RecombineConfig(**{name: getattr(self, name) for name in RecombineConfig.model_fields})


class Recombine(Augmenter[RecombineOptions]):
    """Train a recombination network on DATA and draw from it, in one go (Akyürek et al. 2021).

    The checkpoint is kept beside OUT (as OUT.pt), so that you can export it or sample it again. Samples have the
    columns `index` (their address), `log_prob` and `prototypes` (numbers of distinct training examples).
    """

    name = "recombine"
    options_type = RecombineOptions
    takes = frozenset({PAIRS, SENTENCES})
    columns: ClassVar[dict[str, Any]] = {"index": pl.Int64, "log_prob": pl.Float64, "prototypes": pl.List(pl.Int64)}
    usual = 400
    configuration = "auto"
    configurations = (
        "auto (settings found from DATA), recombine_small (two cores, long-short neighborhoods), "
        "recombine_small_around_right (long-long), recombine_morphology_small (words and their tags), or "
        "recombine_scan and others (the paper's sizes, for a GPU)"
    )
    each_epoch: ClassVar[dict[str, Any]] = {"vote": False}  # which would be hundreds of thousands of draws in each
    example = "cgen augment recombine pairs.tsv -n 400 -o more.jsonl"
    generator: "Generator | None" = None
    _given: RecombineOptions | None = None  # the options without what `learn` found, which another `fit` finds anew
    _trained_on: Mapping[str, Any] = MappingProxyType({})
    _counts = Counts()
    _alone = 0.0  # share of the sources that were drawn once

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002 - training shows its own progress
        """Train the generator, from where it was interrupted if `resume`; its checkpoint is written beside OUT.

        Examples are put in order first, so that the order of the data does not matter.
        """
        from compgen.recombine.settings import choosing
        from compgen.recombine.training import train_generator
        from compgen.sampling.resampling import FilterConfig
        from compgen.trained.generator import Generator

        FilterConfig(self.options.filters, ngram=self.options.ngram)  # an error now, not after training
        if self.options.resume and self.checkpoint is None:
            raise UserError(
                "recombine: resume goes on with a training kept beside a file: give beside, as in the interrupted call"
            )
        options = self._given = self._given or self.options
        config, found = options.config(), {}
        ordered = Dataset(dataset.frame.sort("source", "target"))
        with tempfile.TemporaryDirectory(prefix="compgen-") as folder:
            out = self.checkpoint or Path(folder) / "recombine.pt"
            try:
                made, _ = train_generator(
                    ordered, config, out, seed=seed, resume=options.resume, quiet=self.beside is None
                )
            except Interrupted as stopped:
                if self.checkpoint is not None:
                    raise
                done = str(stopped).partition(";")[0]
                raise Interrupted(f"{done}; nothing is kept, as beside names no file", stopped.number) from None
            self.generator, self._trained_on = Generator.load(out), made.trained_on
        given = options.model_dump()
        if options.auto and options.vote is not False:
            found = {name: value for name, value in choosing(ordered, made.config).items() if given[name] is None}
        self.options = RecombineOptions(**given | made.config | found)

    def with_options(self, **changes: Any) -> Self:
        """See `Augmenter`; a later `fit` goes by the changes, too."""
        other = super().with_options(**changes)
        if self._given is not None:
            other._given = self._given.model_copy(update={name: getattr(other.options, name) for name in changes})
        return other

    @property
    def checkpoint(self) -> Path | None:
        """Where the generator is kept, if the name of the samples' file is known.

        Raises:
            UserError: samples go to standard output.
        """
        if self.beside is None:
            return None
        if str(self.beside) == "-":
            raise UserError("the generator is kept beside OUT: give the name of a file")
        return self.beside.with_name(self.beside.name + ".pt")

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """`count` samples that pass the filters, in order of address; of a vote, clear decisions first.

        Raises:
            ExhaustedError: there are none.
        """
        assert self.generator is not None and count is not None, "fitted, and `usual` says how many"
        self._counts, self._alone = Counts(), 0.0
        try:
            kept = [
                (one.source, one.target, one.index, round(one.log_prob, PLACES), list(one.prototypes))
                for one in map(self.generator.sample_of, self._kept(self.generator, count, seed, watch))
            ]
            if count and not kept:
                raise ExhaustedError(f"no sample is kept: {self._counts}")
        except ExhaustedError as error:
            if self.checkpoint is not None:
                raise ExhaustedError(f"{error}; the generator is {self.checkpoint}, for other filters") from error
            raise
        except KeyboardInterrupt:
            if self.checkpoint is None:
                raise
            raise Interrupted(f"interrupted; cgen sample {self.checkpoint} draws from the generator") from None
        return pl.DataFrame(kept, schema={"source": TOKENS, "target": TOKENS, **self.columns}, orient="row")

    def _kept(self, generator: "Generator", count: int, seed: int, watch: Watch) -> Iterable["Kept"]:
        """The draws that are kept: the first ones that pass the filters, or by --vote those of clear decisions."""
        options = self.options
        if options.votes:
            return self._elected(generator, count, seed, watch)
        return generator.kept(
            count,
            seed=seed,
            draws=None if options.draws_each is None else options.draws_each * count,
            filters=options.filters,
            ngram=options.ngram,
            counts=self._counts,
            watch=lambda counts: watch("sample", counts.kept / count, ""),
        )

    def _elected(self, generator: "Generator", count: int, seed: int, watch: Watch) -> list["Kept"]:
        """The winners of votes; `Choice.drawing` says what is filtered before a vote, and what after it."""
        from compgen.sampling.choice import Choice
        from compgen.sampling.resampling import FilterConfig

        names = tuple(name for name in self.options.filters if name != "unique")  # winners are
        config = FilterConfig(names, ngram=self.options.ngram)
        choice = Choice(vote=True, support=self.options.support, best=count)
        first = choice.drawing(config)
        draws = count * (self.options.draws_each or max(LEAST_VOTES, min(VOTES, MOST_DRAWS // max(count, 1))))
        drawn = generator.kept(
            seed=seed,
            draws=draws,
            filters=first.names,
            novelty=first.novelty,
            ngram=first.ngram,
            voting=first.voting,
            counts=self._counts,
            watch=lambda counts: watch("sample", counts.drawn / draws, ""),
        )
        chosen = choice.of(drawn, config, generator.training)
        self._alone = sum(votes == (1, 1) for _, votes in chosen) / max(1, len(chosen))
        return [one for one, _ in chosen]

    def facts(self) -> dict[str, Any]:
        """Where the generator is, which one it is, and the settings that were found from the data."""
        facts = {} if self.checkpoint is None else {"generator": str(self.checkpoint)}
        if self.generator is not None:
            facts["identity"] = self.generator.identity
        return facts | {key: self._trained_on[key] for key in ("settings",) if key in self._trained_on}

    def no_more(self) -> str:
        """How many draws there were, and how to have more."""
        less = ", and vote=False takes what is new as it comes" if self.options.votes else ""
        return f"{self._counts.drawn:,} draws give no more; draws_each allows more of them{less}"

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """The prototypes that a sample of this generator was made from.

        Raises:
            UserError: `fit` was not called, or the sample names no prototypes of this generator.
        """
        if self.generator is None:
            raise UserError("recombine: fit it before asking what its samples are made from")
        self.require_row(sample, "prototypes")
        pool, rows = self.generator.training.examples, sample["prototypes"]
        if not isinstance(rows, list) or not all(type(row) is int and 0 <= row < len(pool) for row in rows):
            raise UserError(
                f"recombine: found {rows!r:.20}, expected the row of an example given to fit, for each prototype"
            )
        if not rows:
            raise UserError("recombine: the sample was made from no prototypes")
        return [
            Shown.plain(f"prototype {number}", *map(self.generator.vocabulary.decode, pool[row]))
            for number, row in enumerate(rows, start=1)
        ]

    def warnings(self) -> list[str]:
        """That the generator has learned too little, draws little else than broken examples, or few of any source."""
        found = [self._trained_on["warning"]] if "warning" in self._trained_on else []
        found += self._counts.warnings()
        if self._alone > MOST_ALONE:
            found.append(
                f"{self._alone:.0%} of the sources were drawn once, so that nothing voted against their targets: ask "
                "for fewer, or for more --draws-each"
            )
        return found

    def in_words(self) -> str:
        """The report in words, for people."""
        voted = f"; chosen by the votes of {self._counts.drawn:,} draws" if self.options.votes else ""
        return super().in_words() + voted + f"; the generator is {self.checkpoint}" * (self.checkpoint is not None)

    @classmethod
    def refuses(cls, dataset: Dataset) -> str | None:
        """Check that there are enough examples for prototypes; what they give is known after training only."""
        count, wanted = dataset.frame.select(SIDES).n_unique(), cls().options.prototypes + 1
        return f"distinct examples: {count}, expected {wanted} or more" if count < wanted else None

    def needs_torch(self) -> bool:
        """Training needs torch."""
        return True
