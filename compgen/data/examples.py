"""Examples and datasets: the form in which data travels between the packages.

An example is a source and a target sequence of tokens. A dataset is a Polars frame of them, so that methods can group,
join and filter a corpus instead of looping over it.
"""

import dataclasses
import functools
import html
import operator
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.ragged import lists_of
from compgen.errors import DataError, UserError

SIDES = ("source", "target")
TOKENS = pl.List(pl.String)
SCHEMA = pl.Schema({"source": TOKENS, "target": TOKENS, "split": pl.String()})
COLUMNS = tuple(SCHEMA)
TRAIN = "train"
PREDICTED = "predicted"  # the split of answers, which nothing learns from
Side = tuple[str, ...]

MOST_SPLITS = 6  # splits that are listed; further ones are counted
SHOWN = 5  # examples of a dataset in a notebook
_NO_LISTS = (str, set, frozenset)  # what can be gone through, and is no list of tokens in their order
_SHARING = 0.1  # least share of examples with a token on both sides for which the sides share tokens


class Example(NamedTuple):
    """A source and a target, in tokens."""

    source: list[str]
    target: list[str]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Examples with named splits.

    `frame` has the columns `source: List[String]`, `target: List[String]` and `split: String`, one row an example.
    Further columns are carried along; JSON, CSV and Parquet keep them (see `columns`). A sentence for a
    language model is an example with an empty target.

    `for source, target in dataset` goes through the examples; `dataset[0]` is one, `dataset[:10]` a dataset of ten.
    """

    frame: pl.DataFrame

    def __post_init__(self) -> None:
        """Raise DataError unless the three columns are there with their types, and no value or token is missing."""
        if not isinstance(self.frame, pl.DataFrame):
            given = type(self.frame)
            way = "of pairs, Dataset.from_pairs makes a dataset"
            if given.__module__.startswith("pandas"):
                way = 'polars.DataFrame(frame.to_dict("list")) makes one of a pandas frame'
            raise DataError(f"found {given.__name__}, expected a DataFrame of Polars; {way}")
        for column, wanted in SCHEMA.items():
            found = self.frame.schema.get(column)
            if found != wanted:
                kind, way = found or "no such column", _way(column, found)
                raise DataError(f"a dataset needs a column {column!r} of type {wanted}: found {kind}{way}")
            if missing := self.frame[column].null_count():
                raise DataError(f"column {column!r}: found {missing:,} missing values, expected none")
        for side in SIDES:
            lists = self.frame[side]
            tokens = lists.explode()  # in which an empty list is a missing value or nothing, depending on Polars
            if len(tokens) - tokens.null_count() < (lists.list.len().sum() or 0):
                row = next(row for row, tokens in enumerate(lists) if tokens.null_count())
                raise DataError(
                    f"found a missing value among the tokens of the {side} of row {row:,}, expected strings"
                )

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Sequence[str], Sequence[str]]], split: str = TRAIN) -> "Dataset":
        """Return a dataset of (source tokens, target tokens), all in one split.

        Raises:
            DataError: something is not a pair, a side is a string, which would be cut into its characters, a token is
                not a string, or there is a set, which has no order.
        """
        if isinstance(pairs, set | frozenset):
            raise DataError("found a set, whose order is another in each run, expected a list of pairs: sorted(...)")
        try:
            each = iter(pairs)
        except TypeError:
            raise DataError(f"found {type(pairs).__name__}, expected pairs of two lists of tokens") from None
        sources, targets = [], []
        for pair in each:
            try:
                source, target = pair
                sources.append(source if isinstance(source, list | tuple) else [*source])
                targets.append(target if isinstance(target, list | tuple) else [*target])
            except (TypeError, ValueError):
                raise DataError(f"a pair is two lists of tokens, found {pair!r:.80}") from None
            if isinstance(source, _NO_LISTS) or isinstance(target, _NO_LISTS):
                raise DataError(f"each side of a pair is a list of tokens, found ({source!r:.80}, {target!r:.80})")
        for one in zip(sources, targets, strict=True):
            if None in one[0] or None in one[1]:
                raise DataError(f"tokens are strings: found None in {one!r:.80}")
        try:
            sides = {"source": lists_of(sources, pl.String()), "target": lists_of(targets, pl.String())}
        except (TypeError, UnicodeEncodeError) as error:  # the latter of half a surrogate pair
            raise DataError(f"tokens are strings: {str(error).partition(chr(10))[0]}") from None
        return cls(pl.DataFrame(sides).with_columns(split=pl.lit(split)))

    @property
    def splits(self) -> dict[str, int]:
        """The number of examples in each split, in order of first appearance."""
        counts = self.frame.group_by("split", maintain_order=True).len()
        return dict(counts.iter_rows())

    def split(self, name: str, *names: str) -> "Dataset":
        """Return the examples of one split, or of several, in their order here.

        Raises:
            DataError: there is no split of one of these names.
        """
        wanted, available = (name, *names), self.splits
        for one in wanted:
            if one not in available:
                raise DataError(
                    f"no examples in split {one!r}; available splits: {_some(available, '{} ({:,})') or 'none'}"
                )
        return Dataset(self.frame.filter(pl.col("split").is_in(wanted)))

    def part(self, name: str | None, usual: str = TRAIN) -> "Dataset":
        """Return the examples of one split, or all if `name` is None.

        If there is only one split, it counts as the `usual` one, whatever its name.

        Raises:
            DataError: there is no split of this name.
        """
        if name is None or (name == usual and len(self.splits) < 2):
            return self
        return self.split(name)

    def unique(self) -> "Dataset":
        """Return the dataset without repetitions of a (source, target, split); the first of each stays, in order."""
        return Dataset(self.frame.unique(subset=COLUMNS, keep="first", maintain_order=True))

    def repetitions(self) -> NDArray[np.int64]:
        """Return how often each example of `unique` occurs."""
        counts = self.frame.group_by(COLUMNS, maintain_order=True).len()["len"]
        return counts.to_numpy().astype(np.int64)

    def swapped(self) -> "Dataset":
        """Return the dataset with sources and targets exchanged."""
        return Dataset(self.frame.with_columns(source=pl.col("target"), target=pl.col("source")))

    def with_sides(self, **sides: Sequence[Sequence[str]]) -> "Dataset":
        """Return the dataset with other tokens on the sides that are given, example by example."""
        return Dataset(self.frame.with_columns(**{side: lists_of(rows, pl.String()) for side, rows in sides.items()}))

    def digest(self) -> str:
        """Return the SHA-256 of the distinct pairs, whatever their order and splits."""
        distinct = self.frame.select("source", "target").unique().sort("source", "target")
        return sha256(distinct.write_json().encode()).hexdigest()

    def pairs(self) -> list[tuple[list[str], list[str]]]:
        """Return all examples as Python lists of tokens, in order."""
        return list(zip(self.frame["source"].to_list(), self.frame["target"].to_list(), strict=True))

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas with the same columns, in which a side is a list of tokens.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            pandas: Any = import_module("pandas")
        except ModuleNotFoundError as error:
            raise UserError("to_pandas needs pandas: pip install pandas") from error
        return pandas.DataFrame(self.frame.to_dict(as_series=False))

    def __len__(self) -> int:
        return self.frame.height

    def __iter__(self) -> Iterator[Example]:
        for rows in self.frame.select("source", "target").iter_slices():
            yield from map(Example, rows["source"].to_list(), rows["target"].to_list())

    @overload
    def __getitem__(self, which: SupportsIndex) -> Example: ...

    @overload
    def __getitem__(self, which: slice) -> "Dataset": ...

    def __getitem__(self, which: SupportsIndex | slice) -> "Example | Dataset":
        """Return an example by its place, counted from the end if it is negative, or the dataset of a slice.

        Raises:
            IndexError: there is no such example.
            TypeError: what is given is neither a place nor a slice.
        """
        if isinstance(which, str):
            raise TypeError(f"found {which!r:.40}, expected a place or a slice; data.split({which!r:.40}) is a split")
        if isinstance(which, slice):
            return Dataset(self.frame[which])
        place = operator.index(which)
        if not -len(self) <= place < len(self):
            raise IndexError(f"example {place}: expected a place in a dataset of {len(self):,} examples")
        return Example(*self.frame.select("source", "target").row(place))

    def __repr__(self) -> str:
        if not len(self):
            return "Dataset(no examples)"
        first = " → ".join(_text(side, 60) for side in self[0])
        return f"Dataset({self.sizes()}; first: {first})"

    def _repr_html_(self) -> str:
        """Return a table of the first examples, for notebooks."""
        shown = self.frame.select(COLUMNS).head(SHOWN).iter_rows()
        cells = [(_text(source, 200), _text(target, 200), split) for source, target, split in shown]
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        return f"<table><caption>{html.escape(self.sizes())}</caption><tr>{head}</tr>{rows}</table>"

    def sizes(self) -> str:
        """Return the splits and their sizes in words, the first few if there are many."""
        return _some(self.splits, "{} {:,}") or "no examples"

    def __add__(self, other: "Dataset") -> "Dataset":
        """Return the examples of both, ours first; a column that only one has is null for the other.

        Raises:
            DataError: the other is not a dataset, or a column has lists in one and other values in the other.
        """
        if not isinstance(other, Dataset):
            raise DataError(f"found {type(other).__name__}, expected a Dataset to add; Dataset.from_pairs makes one")
        try:
            return Dataset(pl.concat([self.frame, other.frame], how="diagonal_relaxed"))
        except pl.exceptions.PolarsError as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"found columns of unlike types in two datasets to join: {reason}") from None

    def __eq__(self, other: object) -> bool:
        """Whether both have the same rows in the same order."""
        return isinstance(other, Dataset) and self.frame.equals(other.frame)


def _way(column: str, found: pl.DataType | None) -> str:
    """How a frame is given a column that it lacks, or tokens for texts; nothing where that is not known."""
    if column == "split" and found is None:
        return '; frame.with_columns(split=polars.lit("train")) adds it'
    if column in SIDES and found == pl.String:
        return f"; frame.with_columns(polars.col({column!r}).str.extract_all(r'\\S+')) splits texts at spaces"
    return ""


def _some(splits: dict[str, int], form: str) -> str:
    """Return splits with their sizes, and how many more there are."""
    shown = [form.format(_cut(name, 40), count) for name, count in list(splits.items())[:MOST_SPLITS]]
    more = f" and {len(splits) - MOST_SPLITS:,} more" if len(splits) > MOST_SPLITS else ""
    return ", ".join(shown) + more


def _text(tokens: Sequence[str], most: int) -> str:
    """Return tokens separated by spaces, cut to so many characters."""
    return _cut(" ".join(tokens), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def joined(parts: Iterable[Dataset]) -> Dataset:
    """Return the examples of several datasets, in their order, as one."""
    return functools.reduce(operator.add, parts)


def first_rows(dataset: Dataset) -> dict[tuple[Side, Side], int]:
    """The distinct examples of a dataset, sorted, each with the row of the first of those that are equal to it."""
    rows: dict[tuple[Side, Side], int] = {}
    for row, (source, target) in enumerate(dataset.pairs()):
        rows.setdefault((tuple(source), tuple(target)), row)
    return dict(sorted(rows.items()))


def shares_tokens(dataset: Dataset) -> bool:
    """Whether targets have tokens of their sources, as names and numbers are: in a tenth of the examples or more."""
    shared = dataset.frame["source"].list.set_intersection(dataset.frame["target"]).list.len() > 0
    return bool(len(shared)) and float(shared.mean()) >= _SHARING  # type: ignore[arg-type]


def check_sides(frame: pl.DataFrame, method: str) -> None:
    """Raise DataError unless all examples are pairs, or all are sentences."""
    sources, targets = (frame[side].list.len() > 0 for side in ("source", "target"))
    paired = sources & targets
    if paired.any() and not paired.all():
        example = frame.row(int((~paired).arg_true()[0]), named=True)
        raise DataError(
            f"{method}: found the example {' '.join(example['source'])!r:.80} -> {' '.join(example['target'])!r:.80}, "
            "expected a source and a target in all examples, or sentences with an empty target in all"
        )
    if not paired.any() and not sources.all():
        raise DataError(f"{method}: found an example with an empty source, expected a sentence in each")
