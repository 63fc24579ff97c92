"""Checks of what sampling and predicting are given: bounds of numbers, and lists of tokens."""

from collections.abc import Iterable, Sequence

from compgen.errors import UserError, whole

ADDRESSES = 2**61  # addresses of one stream; with twice as many, arithmetic still fits 64 signed bits
SEEDS = 2**64

LIMITS = {  # name -> (least, most)
    "count": (0, ADDRESSES),
    "draws": (0, ADDRESSES),
    "seed": (0, SEEDS - 1),
    "start": (0, ADDRESSES),
    "stop": (0, 2 * ADDRESSES),  # start + draws
    "beam": (1, 1024),
    "best": (1, 1024),  # targets of one source, each of which a beam must hold
    "batch": (1, ADDRESSES),
    "workers": (1, 1024),
    "threads": (1, 1024),
}


def check_limits(**numbers: int | None) -> None:
    """Raise UserError for a number outside its LIMITS; None stands for a number that is not given."""
    require_limits(**{name: number for name, number in numbers.items() if number is not None})


def require_limits(**numbers: int) -> None:
    """Raise UserError for a number outside its LIMITS, and for None."""
    for name, number in numbers.items():
        least, most = LIMITS[name]
        if (found := whole(number)) is None or not least <= found <= most:
            raise UserError(f"{name} {number!r}: expected a number from {least:,} to {most:,}")


def token_lists(sources: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return sources, of any kind of sequence, as lists; raise UserError for one that is not made of string tokens."""
    found = []
    for source in sources:
        if isinstance(source, str):
            raise UserError(
                f"found the source {source!r:.60}, a string, expected a list of tokens, as of source.split()"
            )
        if not isinstance(source, Iterable):
            raise UserError(f"found the source {source!r:.60}, expected a string or a list of tokens")
        found.append(list(source))
        if not all(isinstance(token, str) for token in found[-1]):
            raise UserError(
                f"found the source {source!r:.60}, expected a list of tokens, each a string; of pairs, give the sources"
            )
    return found
