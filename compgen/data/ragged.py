"""Ragged rows: sequences of different lengths, one behind the other in one array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def ranges(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return the row of each element, and the element, of the rows starts[i] .. starts[i] + lengths[i] - 1, joined."""
    rows = np.repeat(np.arange(len(starts)), lengths)
    firsts = np.cumsum(lengths) - lengths
    return rows, np.arange(len(rows)) - (firsts - starts)[rows]


def runs(values: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return where each run of equal values begins, and how long it is."""
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=np.int64)
    return first, np.diff(np.append(first, len(values)))


def cut(values: pl.Series, lengths: Ints) -> pl.Series:
    """Return a series of lists: the values, cut into pieces of these lengths."""
    rows = pl.Series(np.repeat(np.arange(len(lengths)), lengths)).set_sorted()  # grouped in a third of the time
    flat = pl.DataFrame({"row": rows, "value": values})
    made = flat.group_by("row", maintain_order=True).agg("value")["value"]
    if len(made) == len(lengths):
        return made
    filled = lengths > 0  # rows without values are in no group
    made = made.extend(pl.Series([[]], dtype=made.dtype))
    return made.gather(np.where(filled, np.cumsum(filled) - 1, len(made) - 1))


def lists_of(rows: Sequence[Sequence[Any]], dtype: pl.DataType) -> pl.Series:
    """Return a series of lists of this type, many times as fast as Polars makes it from lists."""
    values = pl.Series([value for row in rows for value in row], dtype=dtype)
    return cut(values, np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))


def lists(tokens: pl.Series, numbers: Ints, lengths: Ints) -> pl.Series:
    """Return a series of lists, lengths[i] tokens in each, given by their numbers among `tokens`."""
    made = pl.DataFrame({"number": cut(pl.Series(numbers), lengths)})
    return made.select(_spelled(tokens)).to_series()


def lists_of_rectangle(tokens: pl.Series, numbers: NDArray[np.integer[Any]], lengths: Ints) -> pl.Series:
    """Return a series of lists, the first lengths[i] tokens of each row of a rectangle, given by their numbers."""
    rows = pl.Series(numbers.ravel()).reshape(numbers.shape).arr.to_list()
    frame = pl.DataFrame({"number": rows, "length": lengths})
    return frame.select(pl.col("number").list.head("length")).select(_spelled(tokens)).to_series()


def _spelled(tokens: pl.Series) -> pl.Expr:
    """Spell the lists in the column `number`: all numbers at once, at half the cost of making lists of strings."""
    token = pl.element().map_batches(lambda numbers: tokens[numbers], return_dtype=pl.String, is_elementwise=True)
    return pl.col("number").list.eval(token)
