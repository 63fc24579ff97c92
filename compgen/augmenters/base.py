"""The contract of all augmenters: options declared once, `fit`, `sample`, `report`, and columns that say where each
new example comes from.

A method is a subclass of `Augmenter` with a subclass of `Options`. From these two come the command
`cgen augment NAME` with its options and help, the configuration file, the record beside the output, and the check of
values in Python. To add one, write its module, one line of `compgen.augmenters.registry`, and a case of
`tests/augmenters/test_conformance.py`, which then tests it; `docs/augmenters.md` has a worked example.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from compgen.configuration import explained, extra_of, load_config
from compgen.data.examples import SCHEMA, TRAIN, Dataset, check_sides
from compgen.errors import ConfigError, DataError, UserError, checked_draws
from compgen.progress import Watch, unwatched

PAIRS, SENTENCES = "pairs", "sentences"  # kinds of data
WORDS = "words"  # pairs of inflection: the letters of a lemma and tags, and the letters of a form
HOST = "host"  # the column with the row of the training example that a sample changes, in the data given to `fit`
METHOD = "method"
MOST = 1_000_000  # samples made at once by a method that can make any number: all are held in memory


class Options(BaseModel):
    """The options of a method: every field has bounds, a default and a description.

    Each field is an option of `cgen augment NAME` (`--field-name`), a key of its configuration file, and a key of
    the record. Fields that are tables (models themselves) are changed by `--set table.key=value`. Extra keys of a field
    (`json_schema_extra`): `flags`, the option's names if others; `metavar`; `reads` and `writes`, true where the value
    may be a file that the method reads or writes; `running`, true for an option that changes how the work is done and
    never what comes out; `drawing`, true for one that `draw` reads and `learn` does not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        """Raise ConfigError, which names the option and what was expected, for values that are out of range."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            name = type(self).__name__.removesuffix("Options").lower()
            raise ConfigError(f"{name}: {explained(type(self), error)}") from None

    def identity(self) -> dict[str, Any]:
        """The options that decide what comes out, as JSON values."""
        return self.model_dump(mode="json", exclude={*self.having("running")})

    def having(self, key: str) -> dict[str, Any]:
        """The fields with an extra key that is true, and their values."""
        fields = type(self).model_fields
        return {name: getattr(self, name) for name, field in fields.items() if extra_of(field).get(key)}


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun; `nouns` is the plural, if not the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


O_co = TypeVar("O_co", bound=Options, covariant=True)
Pieces = list[tuple[str, int]]  # the text of a side in pieces; those with a number from 0 are marked, equal ones alike


@dataclass(frozen=True)
class Shown:
    """One example of an explanation: what it is there for, and its sides in pieces."""

    label: str
    source: Pieces
    target: Pieces

    @classmethod
    def plain(cls, label: str, source: Iterable[str], target: Iterable[str]) -> Self:
        """An example without marks."""
        return cls(label, *([(token, -1) for token in side] for side in (source, target)))


class HandedOver(Exception):  # noqa: N818 - nothing went wrong
    """Raised by `sample` if another process writes the examples; the message says which."""


class Augmenter(ABC, Generic[O_co]):
    """A method that makes new examples from a dataset: `fit`, then `sample`.

    Attributes of a method:
        name: as in `cgen augment NAME`.
        options_type: its options.
        takes: kinds of data that it applies to: PAIRS, SENTENCES, WORDS.
        columns: the columns of its samples besides source, target, split and `method`, with their types.
        usual: how many samples it makes by default; None for all that there are.
        moment: how many tokens of data it learns from in a moment: with at most so many, `attempt` is tried.
        copies: whether samples can be training examples, of which there is no end; at most MOST are made at once.
        beyond: how to have more than MOST.
        configuration: the shipped configuration that its options come from unless another is given.
        configurations: the shipped configurations, for the help.
        clashes: options that leave a table of the configuration without effect, each mapped to that table.
        each_epoch: options with other defaults, and these, where examples are drawn anew in each epoch of a training.
        example: commands, for the help.

    `report` describes the last call of `sample`.
    """

    name: ClassVar[str]
    options_type: ClassVar[type[Options]]
    takes: ClassVar[frozenset[str]] = frozenset({PAIRS})
    columns: ClassVar[dict[str, Any]] = {}
    usual: ClassVar[int | None] = None
    moment: ClassVar[int] = 0
    copies: ClassVar[bool] = False
    beyond: ClassVar[str] = "make them in parts, each with another seed"
    configuration: ClassVar[str | None] = None
    configurations: ClassVar[str] = ""
    clashes: ClassVar[dict[str, str]] = {}
    each_epoch: ClassVar[dict[str, Any]] = {}
    example: ClassVar[str] = ""

    def __init__(
        self,
        options: O_co | None = None,
        *,
        beside: Path | None = None,
        config: str | Path | None = None,
        **values: Any,
    ) -> None:
        """A method that has seen no data.

        Args:
            options: its options; or give those by name, as `values`, that are not as in `config`.
            beside: the file that samples will be written to. Files that the method keeps go beside it.
            config: a TOML file or a shipped configuration; by default the method's own.

        Raises:
            ConfigError: an option is unknown or out of range, or `options` are not of this method.
        """
        if "overrides" in values:
            raise ConfigError(
                f"{self.name}: overrides are for trainings: give options by name, those of a table together, for "
                'instance training={"steps": 3000}'
            )
        if options is not None and (values or config is not None):
            raise ConfigError(f"{self.name}: give options as a whole or by name, not both")
        if options is not None and not isinstance(options, self.options_type):
            raise ConfigError(f"{self.name}: found {options!r:.60}, expected {self.options_type.__name__}")
        if options is None:
            name = self.configuration if config is None else config
            options = cast(O_co, load_config(self.options_type, name, given=values))
        self.options = options
        self.beside = None if beside is None else Path(beside)
        self.dataset: Dataset | None = None
        self._report: dict[str, Any] = {}
        self._made = pl.DataFrame()
        self._counted = False  # whether the last call of `sample` was given a count

    @abstractmethod
    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:
        """Learn from a dataset, which is not empty; if `takes` has WORDS alone, check that its examples are words."""

    @abstractmethod
    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """Up to `count` samples, or all: a frame with source, target and the method's `columns`."""

    def fit(self, dataset: Dataset, seed: int = 0, watch: Watch = unwatched) -> Self:
        """Learn from all examples of a dataset; what is drawn at random in learning is fixed by `seed`.

        Raises:
            DataError: the dataset is empty, or of a kind that the method does not apply to.
            ExhaustedError: nothing can be made of it; the message says why.
        """
        _, seed = checked_draws(self.name, None, seed)
        if not isinstance(dataset, Dataset):
            raise DataError(f"{self.name}: found {type(dataset).__name__}, expected a Dataset")
        if not len(dataset):
            raise DataError(f"{self.name}: no example, expected some to learn from")
        check_sides(dataset.frame, self.name)
        if SENTENCES not in self.takes and not (dataset.frame["target"].list.len() > 0).any():
            raise DataError(f"{self.name}: found sentences (examples without a target), expected pairs")
        self.dataset = None  # what was learned before is lost, even if this fails
        self.learn(dataset, seed, watch)
        self.dataset = dataset
        return self

    def sample(self, count: int | None = None, seed: int = 0, watch: Watch = unwatched) -> Dataset:
        """Draw `count` examples, by default as many as is `usual`.

        If there are fewer, a method returns those and `report` says why, or raises ExhaustedError: each says which.

        The frame has source, target, split (`train`), `method`, and the method's `columns`. If a sample is a training
        example that was changed in one place (`host`), further columns of the training data are copied from there.
        The order of the training examples does not matter, but for rounding (see `Csl.draw`): samples depend on which
        examples there are, on the options and on the seed. Whether a repeated example counts more is up to the method.

        Raises:
            UserError: `fit` was not called, or a number is out of range.
            ExhaustedError: there is not one sample, or finding more would take too long.
        """
        if self.dataset is None:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        count, seed = checked_draws(self.name, count, seed)
        asked = self.usual if count is None else count
        if self.copies and asked is not None and asked > MOST:
            raise UserError(
                f"{self.name}: found {asked:,} examples asked for, expected at most {MOST:,}, as all are held in "
                f"memory: {self.beyond}"
            )
        drawn = self.draw(asked, seed, watch)
        origin = [pl.lit(TRAIN).alias("split"), pl.lit(self.name).alias(METHOD)]
        frame = drawn.select("source", "target", *origin, *self.columns)
        self._report, self._made = {"asked": asked, "made": len(frame)}, frame.select("source", "target")
        self._counted = count is not None
        return Dataset(self._carry(frame))

    def _carry(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Copy the further columns of the training examples that samples are changed from."""
        assert self.dataset is not None
        given = self.dataset.frame
        lost = {*SCHEMA, *frame.columns, *self.outdated()}
        further = [name for name in given.columns if name not in lost]
        if HOST not in self.columns or not further:
            return frame
        return frame.hstack(given[frame[HOST]].select(further))

    def report(self) -> dict[str, Any]:
        """What the last call of `sample` made: `asked`, `made`, `distinct`, and further facts of a fitted method.

        If fewer than asked were made, `why` says the reason.
        """
        made = {"distinct": self._made.n_unique()} if self._report else {}
        why = self.no_more() if self._report.get("made", 0) < (self._report.get("asked") or 0) else ""
        return self._report | made | ({} if self.dataset is None else self.facts()) | ({"why": why} if why else {})

    def with_options(self, **changes: Any) -> Self:
        """The same augmenter, with what it has learned, that draws by other options.

        Raises:
            ConfigError: an option is unknown or out of range, or one that the method has learned by.
        """
        for name, field in self.options_type.model_fields.items():
            if name in changes and not extra_of(field).get("drawing"):
                raise ConfigError(f"{self.name} learns by `{name}`: make another with this option, and fit it")
        other = copy.copy(self)
        checked = self.options_type(**self.options.model_dump() | changes)
        # A copy, as options hold more than their values: which of them are to be found from the data.
        other.options = self.options.model_copy(update={name: getattr(checked, name) for name in changes})
        return other

    def outdated(self) -> Sequence[str]:
        """Columns of the training data that say what no longer holds of a sample, and so are not carried along."""
        return ()

    def close(self) -> None:
        """Remove what is needed only until the samples are written."""

    def facts(self) -> dict[str, Any]:
        """What a method adds to `report`."""
        return {}

    def no_more(self) -> str:
        """Why there are fewer samples than were asked for; `report` says it where that is so."""
        return ""

    def warnings(self) -> list[str]:
        """What a method warns of, besides what its samples show: sentences that say what to do."""
        return []

    def described(self) -> str:
        """The report in words, for people."""
        return self.in_words() if self._report else "nothing sampled yet"

    def in_words(self) -> str:
        """What a method says of its last samples; further facts of a method may be added."""
        report = self.report()
        made = counted(report["made"], "example")
        if report["distinct"] < report["made"]:
            made += f", {report['distinct']:,} of them distinct"
        if "why" not in report:
            return made
        wanted = (
            f" of {report['asked']:,} asked for" if self._counted else f", fewer than the usual {report['asked']:,}"
        )
        return f"{made}{wanted}: {report['why']}"

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """Return what a sample was made from: by default the training example that it changes.

        Args:
            sample: a row of what was made, by column: `made.frame.row(0, named=True)`.

        Raises:
            UserError: the method does not say what its samples are made from, or this is not one of its samples.
        """
        if HOST not in self.columns:
            raise UserError(f"{self.name} does not say what its samples are made from")
        self.require_row(sample, HOST)
        return [self.shown("from", sample[HOST])]

    def require_row(self, sample: object, *columns: str) -> None:
        """Raise UserError unless this is a row of what was made, by column, and has these columns."""
        found = "" if isinstance(sample, Mapping) else f"found {type(sample).__name__}"
        if isinstance(sample, Mapping) and (missing := [name for name in columns if name not in sample]):
            found = f"found no {', '.join(missing)}"
        if found:
            raise UserError(
                f"{self.name}: {found}, expected a row of what was made, by column: made.frame.row(0, named=True)"
            )

    def shown(self, label: str, row: object) -> Shown:
        """A training example, by its row, as a part of an explanation.

        Raises:
            UserError: `fit` was not called, or the training data have no such row.
        """
        if self.dataset is None or not isinstance(row, int) or not 0 <= row < len(self.dataset):
            raise UserError(f"{self.name}: found {row!r:.20}, expected the row of an example given to fit")
        found = self.dataset.frame.row(row, named=True)
        return Shown.plain(label, found["source"], found["target"])

    @classmethod
    def explains(cls) -> bool:
        """Whether `explain` can be asked for."""
        return HOST in cls.columns or cls.explain is not Augmenter.explain

    @classmethod
    def refuses(cls, dataset: Dataset) -> str | None:  # noqa: ARG003
        """Why a dataset of a kind that the method takes cannot be learned from, if its tokens say so; else None."""
        return None

    @classmethod
    def attempt(cls, dataset: Dataset) -> None:
        """Make an example of few data, by the usual options.

        Raises:
            ExhaustedError: nothing can be made of them; the message says why.
        """
        cls().fit(dataset).sample(1)

    def needs_torch(self) -> bool:
        """Whether learning, with these options, needs torch."""
        return False

    def reads(self) -> Sequence[str]:
        """Files, besides the data, that the options name to be read."""
        return [path for path in self.options.having("reads").values() if path]

    def writes(self) -> dict[str, Path]:
        """Files, besides the samples, that options name to be written, by option."""
        given = {name: path for name, path in self.options.having("writes").items() if path is not None}
        return {f"--{name.replace('_', '-')}": Path(path) for name, path in given.items()}
