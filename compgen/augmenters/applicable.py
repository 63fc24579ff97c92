"""Which augmenters apply to a dataset, by what each says that it takes."""

from importlib.util import find_spec

from compgen.augmenters.base import PAIRS, SENTENCES, WORDS
from compgen.augmenters.registry import find, summaries
from compgen.data.examples import Dataset, check_sides
from compgen.data.unimorph import parts
from compgen.errors import DataError, UserError


def applicable(dataset: Dataset) -> dict[str, str | None]:
    """Return for each method of the registry None if it applies to a dataset, else why not, in a few words."""
    kinds, why = kinds_of(dataset)
    return {name: _refusal(name, dataset, kinds, why) for name in summaries()}


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
