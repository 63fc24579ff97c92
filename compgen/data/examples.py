"""Examples and datasets: the form in which data travels between the packages.

An example is a source and a target sequence of tokens. A dataset is a Polars frame of them, so that methods can group,
join and filter a corpus instead of looping over it.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.ragged import lists_of
from compgen.errors import DataError

TOKENS = pl.List(pl.String)
SCHEMA = pl.Schema({"source": TOKENS, "target": TOKENS, "split": pl.String()})
COLUMNS = tuple(SCHEMA)
TRAIN = "train"


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Examples with named splits.

    `frame` has the columns `source: List[String]`, `target: List[String]` and `split: String`, one row an example.
    Further columns are carried along; files of JSON lines and Parquet keep them (see `columns`). A sentence for a
    language model is an example with an empty target.
    """

    frame: pl.DataFrame

    def __post_init__(self) -> None:
        """Raise DataError unless the three columns are there with their types."""
        for column, wanted in SCHEMA.items():
            found = self.frame.schema.get(column)
            if found != wanted:
                kind = found or "no such column"
                raise DataError(f"a dataset needs a column {column!r} of type {wanted}: found {kind}")

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Sequence[str], Sequence[str]]], split: str = TRAIN) -> "Dataset":
        """Return a dataset of (source tokens, target tokens), all in one split.

        Raises:
            TypeError: a side is one string, which would otherwise be cut into its characters.
        """
        sources, targets = [], []
        for source, target in pairs:
            if isinstance(source, str) or isinstance(target, str):
                raise TypeError(f"each side of a pair is a list of tokens, found ({source!r}, {target!r})")
            sources.append(source)
            targets.append(target)
        sides = {"source": lists_of(sources, pl.String()), "target": lists_of(targets, pl.String())}
        return cls(pl.DataFrame(sides).with_columns(split=pl.lit(split)))

    @property
    def splits(self) -> dict[str, int]:
        """The number of examples in each split, in order of first appearance."""
        counts = self.frame.group_by("split", maintain_order=True).len()
        return dict(counts.iter_rows())

    def split(self, name: str) -> "Dataset":
        """Return the examples of one split."""
        part = self.frame.filter(pl.col("split") == name)
        if part.is_empty():
            available = ", ".join(f"{split} ({count:,})" for split, count in self.splits.items()) or "none"
            raise DataError(f"no examples in split {name!r}; available splits: {available}")
        return Dataset(part)

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

    def pairs(self) -> list[tuple[list[str], list[str]]]:
        """Return all examples as Python lists of tokens, in order."""
        return list(zip(self.frame["source"].to_list(), self.frame["target"].to_list(), strict=True))

    def __len__(self) -> int:
        return self.frame.height

    def __add__(self, other: "Dataset") -> "Dataset":
        """Return the examples of both, ours first; a column that only one has is null for the other.

        Raises:
            DataError: a column has lists in one and other values in the other.
        """
        try:
            return Dataset(pl.concat([self.frame, other.frame], how="diagonal_relaxed"))
        except pl.exceptions.PolarsError as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"found columns of unlike types in two datasets to join: {reason}") from None

    def __eq__(self, other: object) -> bool:
        """Whether both have the same rows in the same order."""
        return isinstance(other, Dataset) and self.frame.equals(other.frame)


def check_sides(frame: pl.DataFrame, method: str) -> None:
    """Raise DataError unless all examples are pairs, or all are sentences."""
    sources, targets = (frame[side].list.len() > 0 for side in ("source", "target"))
    paired = sources & targets
    if paired.any() and not paired.all():
        example = frame.row(int((~paired).arg_true()[0]), named=True)
        raise DataError(
            f"{method}: found the example {' '.join(example['source'])!r} -> {' '.join(example['target'])!r}, "
            "expected a source and a target in all examples, or sentences with an empty target in all"
        )
    if not paired.any() and not sources.all():
        raise DataError(f"{method}: found an example with an empty source, expected a sentence in each")
