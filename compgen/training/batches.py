"""The batches of an epoch: rows of like length together, so that little is padded."""

import numpy as np
from numpy.typing import NDArray

from compgen.data.random import Stream

Rows = NDArray[np.int64]


def bucketed(lengths: NDArray[np.int64], batch: int, rng: Stream) -> list[Rows]:
    """Batches of rows of like length, in random order. Lengths are jittered so that batches differ between epochs."""
    jitter = rng.uniform(0, max(1.0, float(lengths.std()) / 2), len(lengths))
    order = np.argsort(lengths + jitter, kind="stable")
    batches = np.array_split(order, max(1, round(len(order) / batch)))
    return [batches[i] for i in rng.permutation(len(batches))]
