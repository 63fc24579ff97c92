"""Which augmenters apply to a dataset, by what each says that it takes."""

from importlib.util import find_spec

import numpy as np

from compgen.augmenters.base import PAIRS, SENTENCES, WORDS
from compgen.augmenters.registry import find, summaries
from compgen.data.examples import SIDES, Dataset, check_sides
from compgen.data.unimorph import parts
from compgen.errors import DataError, UserError

LONG = 200  # tokens of an example; longer ones may take methods long, however few there are


def applicable(dataset: Dataset) -> dict[str, str | None]:
    """Return for each method of the registry None if it applies to a dataset, else why not, in a few words.

    Where that takes only a moment, because there are few examples, a method is also tried: it does not apply if it
    makes nothing of them.
    """
    kinds, why = kinds_of(dataset)
    distinct = Dataset(dataset.frame.unique(SIDES, maintain_order=True))
    return {name: _refusal(name, dataset, kinds, why) or _failure(name, distinct) for name in summaries()}


def kinds_of(dataset: Dataset) -> tuple[frozenset[str], str]:
    """Return which kinds of data, as in `Augmenter.takes`, a dataset is; and why it is no other.

    It is none of them if it is empty, or if some examples are pairs and some are sentences.
    """
    if not len(dataset):
        return frozenset(), "there is no example"
    try:
        check_sides(dataset.frame, "data")
    except DataError as error:
        return frozenset(), str(error).removeprefix("data: ")
    if not (dataset.frame["target"].list.len() > 0).any():
        return frozenset({SENTENCES}), "these are sentences, without targets"
    for number, pair in enumerate(dataset.pairs(), start=1):
        try:
            parts(*pair)
        except DataError:
            return frozenset({PAIRS}), f"example {number:,} is a pair, but no word of inflection (letters and tags)"
    return frozenset({PAIRS, WORDS}), "these are words of inflection"


def _refusal(name: str, dataset: Dataset, kinds: frozenset[str], why: str) -> str | None:
    try:
        kind = find(name)
        if not kind.takes & kinds:
            return f"takes {' or '.join(sorted(kind.takes))}; {why}"
        if kind().needs_torch() and find_spec("torch") is None:
            return "needs torch: pip install 'compgen[train]'"
        return kind.refuses(dataset)
    except UserError as error:
        return str(error)


def _failure(name: str, distinct: Dataset) -> str | None:
    """Why a method makes nothing of distinct examples, if they are few; else None."""
    kind = find(name)
    lengths = np.sum([distinct.frame[side].list.len().to_numpy() for side in SIDES], axis=0)
    if lengths.sum() > kind.moment or lengths.max() > LONG:
        return None
    try:
        kind.attempt(distinct)
    except UserError as error:
        return str(error).rpartition("of these data: ")[2].removeprefix(f"{name}: ")  # the name is said beside it
    return None
