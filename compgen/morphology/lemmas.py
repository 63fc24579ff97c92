"""Splits in which no lemma is in two parts (Goldman, Guriel and Tsarfaty 2022).

SIGMORPHON's own parts share lemmas. Tested on lemmas that it has not seen, a predictor loses a third of its accuracy.
"""

import numpy as np

from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import is_letter, split_tags
from compgen.errors import DataError

PARTS = ("train", "dev", "test")


def by_lemma(dataset: Dataset, train: float = 0.8, dev: float = 0.1, seed: int = 0) -> Dataset:
    """Fill `train`, then `dev`, with random lemmas up to these shares of the examples; the rest is `test`."""
    if not (train > 0 and dev >= 0 and train + dev < 1):
        rest = "test" if train > 0 else "train"
        raise DataError(f"shares of {train:g} for train and {dev:g} for dev leave nothing to {rest} on")
    lemmas = [_lemma(source) for source in dataset.frame["source"].to_list()]
    names, which, counts = np.unique(lemmas, return_inverse=True, return_counts=True)
    order = stream(Purpose.LEMMA_SPLIT, seed).permutation(len(names))
    before = np.cumsum(counts[order]) - counts[order]
    part = np.empty(len(names), dtype=np.int64)
    # The rounding error of 0.1 + 0.2 must not move a lemma.
    trained, watched = (share * len(lemmas) - 1e-9 for share in (train, train + dev))
    part[order] = (before >= trained).astype(np.int64) + (before >= watched)
    for number, kind in enumerate(PARTS):
        if not (part == number).any() and (number != 1 or dev):
            shares = f"{train:g} for train and {dev:g} for dev"
            raise DataError(
                f"{len(names)} lemmas are too few for shares of {shares}: none is left for {kind}; give more, or other "
                "shares (--train or --test, and --dev, of which 0 is none)"
            )
    return Dataset(dataset.frame.with_columns(split=np.array(PARTS)[part[which]]))


def _lemma(source: list[str]) -> str:
    letters, tags = split_tags(source)
    if not (letters and tags) or not all(map(is_letter, letters)):
        raise DataError(
            f"found the source {' '.join(source)!r:.80}, expected the letters of a lemma and tags (examples of "
            "inflection); swap those of analysis by `cgen data write --swap`"
        )
    return "".join(letters)
