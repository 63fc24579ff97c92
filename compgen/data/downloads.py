"""Downloaded files of known data sets, in the folder that the environment variable COMPGEN_DATA names."""

import os
from pathlib import Path

from compgen.errors import DataError, UserError

VARIABLE = "COMPGEN_DATA"


class MissingFileError(DataError):
    """A known data set lacks a file; `name` is its path inside the folder, e.g. `cogs/train.tsv`."""

    def __init__(self, name: str, origin: str, found: str) -> None:
        self.name = name
        super().__init__(
            f"found {found}, expected {name} in the folder that the environment variable {VARIABLE} names; "
            f"get it from {origin}"
        )


def check_not_downloaded(out: Path) -> None:
    """Raise UserError if writing `out` would replace a file that known data sets are read from."""
    folder = os.environ.get(VARIABLE)
    if folder and out.is_file() and out.resolve().is_relative_to(Path(folder).resolve()):
        raise UserError(f"{out}: it is among the data sets in the folder that {VARIABLE} names: choose another name")


def find(*names: str, origin: str) -> Path:
    """Return the first existing file of those named, by their paths inside the folder.

    Raises:
        MissingFileError: none exists, or the variable is not set; the message asks for the last one, from `origin`.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise MissingFileError(names[-1], origin, f"no {VARIABLE} set")
    for name in names:
        if (path := Path(folder) / name).is_file():
            return path
    raise MissingFileError(names[-1], origin, f"no {names[-1]} in {folder}")
