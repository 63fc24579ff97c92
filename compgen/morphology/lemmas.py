"""Splits in which no lemma is in two parts (Goldman, Guriel and Tsarfaty 2022).

Where training and test share lemmas, as in SIGMORPHON's own parts, a predictor of forms is tested on lemmas that it has
seen inflected; without that, accuracy falls by a third.
"""

import numpy as np
import polars as pl

from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import split_tags
from compgen.errors import DataError


def by_lemma(dataset: Dataset, train: float = 0.8, validation: float = 0.1, seed: int = 0) -> Dataset:
    """The examples of inflection, lemmas drawn at random into `train`, `validation` and `test`.

    Parts are filled lemma by lemma in this order until each has its share of the examples; what is left is `test`.

    Raises:
        DataError: the shares leave nothing to test on, a part has no lemma, or a source has no tag.
    """
    if not (train > 0 and validation >= 0 and train + validation < 1):
        raise DataError(f"shares of {train:g} for train and {validation:g} for validation leave nothing to test on")
    lemmas = [_lemma(source) for source in dataset.frame["source"].to_list()]
    names, which, counts = np.unique(lemmas, return_inverse=True, return_counts=True)
    order = stream(Purpose.LEMMA_SPLIT, seed).permutation(len(names))
    before = np.cumsum(counts[order]) - counts[order]
    part = np.empty(len(names), dtype=np.int64)
    # What 0.1 + 0.2 is above 0.3 must not move a lemma.
    trained, watched = (share * len(lemmas) - 1e-9 for share in (train, train + validation))
    part[order] = (before >= trained).astype(np.int64) + (before >= watched)
    kinds = ["train", "validation", "test"]
    for number, kind in enumerate(kinds):
        if not (part == number).any() and (number != 1 or validation):
            raise DataError(f"{len(names)} lemmas are too few: none is left for {kind}")
    split = pl.Series("split", [kinds[number] for number in part[which]])
    return Dataset(dataset.frame.with_columns(split))


def _lemma(source: list[str]) -> str:
    letters, tags = split_tags(source)
    if not tags:
        raise DataError(
            f"found the source {' '.join(source)!r}, expected lemma and tags (examples of inflection); those of "
            "analysis become such by `compgen data write --swap`"
        )
    return "".join(letters)
