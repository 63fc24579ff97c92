"""Ragged rows: sequences of unlike length, one behind the other in one array."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def ranges(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """For ragged rows starts[i] .. starts[i] + lengths[i] - 1, all in one: the row of each element, and the element."""
    rows = np.repeat(np.arange(len(starts)), lengths)
    firsts = np.cumsum(lengths) - lengths
    return rows, np.arange(len(rows)) - (firsts - starts)[rows]


def runs(values: NDArray[Any]) -> tuple[Ints, Ints]:
    """Where each run of equal values begins, and how long it is."""
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=np.int64)
    return first, np.diff(np.append(first, len(values)))


def lists(tokens: pl.Series, numbers: Ints, lengths: Ints) -> pl.Series:
    """A series of lists: as many tokens each as `lengths` says, given by their numbers among `tokens`."""
    rows = pl.Series(np.repeat(np.arange(len(lengths)), lengths)).set_sorted()  # grouped at a third the cost
    flat = pl.DataFrame({"row": rows, "number": numbers})
    made = flat.group_by("row", maintain_order=True).agg("number").select(_spelled("number", tokens)).to_series()
    if len(made) == len(lengths):
        return made
    filled = lengths > 0  # rows without tokens are in no group
    made = made.extend(pl.Series([[]], dtype=pl.List(pl.String)))
    return made.gather(np.where(filled, np.cumsum(filled) - 1, len(made) - 1))


def lists_of_rectangle(tokens: pl.Series, numbers: NDArray[np.integer[Any]], lengths: Ints) -> pl.Series:
    """A series of lists, the first lengths[i] tokens of each row of a rectangle, given by their numbers."""
    rows = pl.Series(numbers.ravel()).reshape(numbers.shape).arr.to_list()
    frame = pl.DataFrame({"number": rows, "length": lengths})
    return frame.select(pl.col("number").list.head("length")).select(_spelled("number", tokens)).to_series()


def _spelled(column: str, tokens: pl.Series) -> pl.Expr:
    """Lists of tokens for lists of their numbers: all numbers at once, so it costs half of making lists of strings."""
    token = pl.element().map_batches(lambda numbers: tokens[numbers], return_dtype=pl.String, is_elementwise=True)
    return pl.col(column).list.eval(token)
