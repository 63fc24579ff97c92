"""Variables by their distance from the last new one, so that what is said with them reads alike at any depth; and back.

    ( A , _capital ( A ) , _loc ( A , B ) , _state ( B ) )
    ( A+1 , _capital ( A+0 ) , _loc ( A+0 , A+1 ) , _state ( A+0 ) )

A part such as `_loc ( A , B ) , _state ( B )` has other letters elsewhere (`_loc ( C , D ) , _state ( D )`); by
distance it is the same wherever it stands, so that what recombines parts can put it there, and a predictor has one
thing to learn. Distances are from the highest variable so far: A+1 is a new one, A+0 the last new one, A-1 the one
before it. Variables are tokens of one capital letter, or $0, $1, ... Each target is read by itself, and comes back
exactly.
"""

import re
from collections.abc import Iterable, Iterator

from compgen.data.examples import Dataset
from compgen.errors import DataError

_VARIABLE = re.compile(r"(?P<letter>[A-Z])|\$(?P<number>0|[1-9][0-9]{0,8})")
_DISTANCE = re.compile(r"(?P<kind>[A$])(?P<distance>[+-][0-9]{1,10})")
_LETTER, _NUMBER = "A", "$"  # what distances of the two kinds begin with
_LAST = ord("Z") - ord("A")


def relative(tokens: Iterable[str]) -> list[str]:
    """Return tokens with variables as distances.

    Raises:
        DataError: a token looks like a distance already.
    """
    last, found = {_LETTER: -1, _NUMBER: -1}, list[str]()
    for token in tokens:
        if _DISTANCE.fullmatch(token):
            raise DataError(f"found {token!r}, which is how a variable is written as a distance, expected names")
        if match := _VARIABLE.fullmatch(token):
            kind = _LETTER if match["letter"] else _NUMBER
            variable = ord(token) - ord("A") if match["letter"] else int(match["number"])
            token = f"{kind}{variable - last[kind]:+d}"
            last[kind] = max(last[kind], variable)
        found.append(token)
    return found


def named(tokens: Iterable[str]) -> list[str]:
    """Return tokens with variables in place of their distances; those from before the first or after Z stay."""
    last, found = {_LETTER: -1, _NUMBER: -1}, list[str]()
    for token in tokens:
        if match := _DISTANCE.fullmatch(token):
            kind = match["kind"]
            variable = last[kind] + int(match["distance"])
            if 0 <= variable <= (_LAST if kind == _LETTER else 999_999_999):
                token = chr(ord("A") + variable) if kind == _LETTER else f"${variable}"
                last[kind] = max(last[kind], variable)
        found.append(token)
    return found


def relative_targets(dataset: Dataset) -> tuple[Dataset, int]:
    """Return a dataset with the variables of its targets as distances, and how many targets have any.

    Raises:
        DataError: a target has a token that looks like a distance already, or none has a variable.
    """
    changed = dataset.with_sides(target=[*_numbered(dataset)])
    count = _differing(dataset, changed)
    if not count and len(dataset):
        raise DataError("found no variables in targets, expected tokens of one capital letter, or $0, $1, ...")
    return changed, count


def named_targets(dataset: Dataset) -> tuple[Dataset, int, int]:
    """Return a dataset with names in place of distances, how many targets changed, and how many distances stay."""
    targets = [named(target) for _, target in dataset]
    left = sum(bool(_DISTANCE.fullmatch(token)) for target in targets for token in target)
    changed = dataset.with_sides(target=targets)
    return changed, _differing(dataset, changed), left


def _numbered(dataset: Dataset) -> Iterator[list[str]]:
    for number, (_, target) in enumerate(dataset, start=1):
        try:
            yield relative(target)
        except DataError as error:
            raise DataError(f"example {number}: {error}") from None


def _differing(one: Dataset, other: Dataset) -> int:
    return int((one.frame["target"] != other.frame["target"]).sum())
