"""Which augmenters apply to a dataset, by what each says that it takes; and what this does not say."""

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from compgen.augmenters.base import PAIRS, SENTENCES, WORDS
from compgen.augmenters.registry import find, summaries
from compgen.data.examples import SIDES, Dataset, check_sides
from compgen.data.ragged import Ints
from compgen.data.unimorph import parts
from compgen.errors import DataError, UserError

LONG = 200  # tokens of an example; longer ones may take methods long, however few there are
LENGTHY = 1000  # tokens of an example; a few longer ones may take the following methods minutes
BY_THE_SQUARE = ("recombine", "substitute", "lexsym")  # their time and memory grow with the square of the length


def applicable(dataset: Dataset) -> dict[str, str | None]:
    """Return for each method of the registry None if it applies to a dataset, else why not, in a few words.

    Where that takes only a moment, because there are few examples, a method is also tried: it does not apply if it
    makes nothing of them.
    """
    kinds, why = kinds_of(dataset)
    distinct = Dataset(dataset.frame.unique(SIDES, maintain_order=True))
    return {name: _refusal(name, dataset, kinds, why) or _failure(name, distinct) for name in summaries()}


def remarks(dataset: Dataset, applies: Mapping[str, str | None]) -> list[str]:
    """Return what to know of the methods that apply (those of `applicable` without a reason), in sentences."""
    able = [name for name, why in applies.items() if why is None]
    lengths = _lengths(Dataset(dataset.frame.unique(SIDES)))
    found, slow = [], [name for name in able if name in BY_THE_SQUARE]
    if untried := [name for name in able if find(name).moment and not _brief(name, lengths)]:
        they = "They" if len(untried) > 1 else "It"
        found.append(f"Not tried, as that takes longer: {', '.join(untried)}. {they} may make nothing of these data.")
    if slow and lengths.max() > LENGTHY:
        found.append(
            f"The longest example has {lengths.max():,} tokens, source and target together. The time and memory of "
            f"{', '.join(slow)} grow with the square of that: divide long examples, or leave them out."
        )
    return found


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
    if not _brief(name, _lengths(distinct)):
        return None
    try:
        find(name).attempt(distinct)
    except UserError as error:
        return str(error).rpartition("of these data: ")[2].removeprefix(f"{name}: ")  # the name is said beside it
    return None


def _brief(name: str, lengths: Ints) -> bool:
    """Whether a method takes a moment for distinct examples of such lengths."""
    return bool(lengths.sum() <= find(name).moment and lengths.max() <= LONG)


def _lengths(dataset: Dataset) -> Ints:
    """The tokens of each example, source and target together."""
    source, target = (dataset.frame[side].list.len().to_numpy().astype(np.int64) for side in SIDES)
    return source + target
