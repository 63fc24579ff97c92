"""The registry of augmenters: ours, a line each, and those that installed packages offer.

Another package registers a method by an entry point of the group `compgen.augmenters`, in its `pyproject.toml`:

    [project.entry-points."compgen.augmenters"]
    token-swap = "my_package.token_swap:TokenSwap"
"""

import difflib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from compgen.augmenters.base import Augmenter
from compgen.errors import UserError

GROUP = "compgen.augmenters"
BUILT_IN = {  # where a method is, and what it does
    "recombine": ("compgen.recombine.augmenter:Recombine", "Train a recombination network and draw from it (R&R)."),
    "geca": ("compgen.geca.augmenter:Geca", "Exchange fragments that share an environment."),
    "csl": ("compgen.csl.augmenter:Csl", "Induce a synchronous grammar and draw from it."),
    "substitute": (
        "compgen.substitution.augmenter:Substitute",
        "Exchange pieces of derivations.",
    ),
    "lexsym": ("compgen.lexsym.augmenter:Lexsym", "Exchange words of the same type, and their meanings."),
    "stemcorrupt": ("compgen.morphology.stemcorrupt:StemCorrupt", "Replace characters of the stem of inflected words."),
    "concat": ("compgen.augmenters.concat:Concat", "Join two examples into one."),
    "resample": ("compgen.augmenters.resample:Resample", "Draw training examples again, as a control."),
}

LEARNED = ("recombine", "csl")  # `cgen explain` does not make their samples again, as that would take a training


def summaries() -> dict[str, str]:
    """The names of all methods, ours first, each with what it does."""
    ours = {name: summary for name, (_, summary) in BUILT_IN.items()}
    return ours | {point.name: f"From the package {point.dist.name if point.dist else '?'}." for point in _offered()}


def find(name: str) -> type[Augmenter[Any]]:
    """The class of a method.

    Raises:
        UserError: there is no method of that name, or what another package offers by it is none.
    """
    if isinstance(name, str) and name in BUILT_IN:
        module, _, attribute = BUILT_IN[name][0].partition(":")
        found: type[Augmenter[Any]] = getattr(import_module(module), attribute)
        return found
    for point in _offered():
        if point.name == name:
            return _loaded(point)
    near = difflib.get_close_matches(name, summaries(), 1) if isinstance(name, str) else []
    meant = f"; did you mean {near[0]}?" if near else ""
    raise UserError(f"no method {name!r}: expected one of {', '.join(summaries())}{meant}")


def make(name: str, **options: Any) -> Augmenter[Any]:
    """A method by its name and options, as `cgen augment NAME` makes it."""
    return find(name)(**options)


def _offered() -> Iterator[EntryPoint]:
    """The entry points of other packages; a name of ours cannot be taken."""
    return (point for point in entry_points(group=GROUP) if point.name not in BUILT_IN)


def _loaded(point: EntryPoint) -> type[Augmenter[Any]]:
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"augmenter {point.name} ({point.value}): cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Augmenter) and found.name == point.name):
        raise UserError(f"augmenter {point.name} ({point.value}): expected a subclass of Augmenter with that name")
    return found
