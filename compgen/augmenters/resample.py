"""Training examples drawn again: the control that every augmentation should be compared with.

A predictor that is trained on more data also gets more updates, and sees some examples more often. What an augmenter is
worth is the difference to as many training examples drawn with replacement.
"""

from typing import Any, ClassVar

import numpy as np
import polars as pl

from compgen.augmenters.base import HOST, PAIRS, SENTENCES, Augmenter, Options
from compgen.data import random
from compgen.data.examples import Dataset
from compgen.progress import Watch


class ResampleOptions(Options):
    """There are none."""


class Resample(Augmenter[ResampleOptions]):
    """Draw training examples again, each with the same probability (the control for all others)."""

    name = "resample"
    options_type = ResampleOptions
    takes = frozenset({PAIRS, SENTENCES})
    columns: ClassVar[dict[str, Any]] = {HOST: pl.Int64}
    usual = 1000
    copies = True
    example = "cgen augment resample pairs.tsv -n 1000 -o again.tsv"

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Order the examples by their tokens, so that the order of the data does not matter."""
        frame = dataset.frame.select("source", "target").with_row_index(HOST)
        self.examples = frame.with_columns(pl.col(HOST).cast(pl.Int64)).sort("source", "target", HOST)

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:  # noqa: ARG002
        """Sample i is the example of rank floor(u_i N), u_i being a function of the seed and i."""
        assert count is not None, "`usual` says how many"
        addresses = np.arange(count, dtype=np.int64)
        return self.examples[random.ranks(seed, addresses, len(self.examples), random.SamplePurpose.EXAMPLES)]
