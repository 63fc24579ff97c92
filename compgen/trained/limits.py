"""What sampling and predicting take, on the command line and in Python: bounds of numbers, and lists of tokens."""

from collections.abc import Sequence

from compgen.errors import UserError

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
}


def check_limits(**numbers: int | None) -> None:
    """Raise UserError for a number outside its LIMITS; None stands for a number that is not given."""
    for name, number in numbers.items():
        least, most = LIMITS[name]
        if number is not None and not least <= number <= most:
            raise UserError(f"{name} {number}: expected a number from {least:,} to {most:,}")


def check_tokens(sources: Sequence[Sequence[str]]) -> None:
    """Raise UserError for a source that is a string, which would be taken for its characters."""
    for source in sources:
        if isinstance(source, str):
            raise UserError(
                f"found the source {source!r:.60}, a string, expected a list of tokens, as of source.split()"
            )
