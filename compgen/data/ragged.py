"""Ragged rows: sequences of unlike length, one behind the other in one array."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def ranges(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """For ragged rows starts[i] .. starts[i] + lengths[i] - 1, all in one: the row of each element, and the element."""
    rows = np.repeat(np.arange(len(starts)), lengths)
    firsts = np.cumsum(lengths) - lengths
    return rows, np.arange(len(rows)) - (firsts - starts)[rows]


def lists(tokens: pl.Series, numbers: Ints, lengths: Ints) -> pl.Series:
    """A series of lists: as many tokens each as `lengths` says, none empty, given by their numbers among `tokens`."""
    rows = pl.Series(
        np.repeat(np.arange(len(lengths)), lengths)
    ).set_sorted()  # so they are grouped at a third the cost
    flat = pl.DataFrame({"row": rows, "tokens": tokens.gather(numbers)})
    return flat.group_by("row", maintain_order=True).agg("tokens")["tokens"]
