"""Sequences of unlike length as one array."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import PAD_ID


def padded(rows: Sequence[Sequence[int]], value: int = PAD_ID) -> NDArray[np.int64]:
    """Return sequences as one array (N, longest), each filled up with `value`."""
    columns = np.array([*zip_longest(*rows, fillvalue=value)], dtype=np.int64)
    shape = max(map(len, rows), default=0), len(rows)
    return np.ascontiguousarray(columns.reshape(shape).T)
