"""Files that people download: where the known data sets look for those that no grammar makes."""

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
    """See, before any work, that what is to be written takes the place of no file that known data sets are read from.

    Raises:
        UserError: it would.
    """
    folder = os.environ.get(VARIABLE)
    if folder and out.is_file() and out.resolve().is_relative_to(Path(folder).resolve()):
        raise UserError(f"{out}: it is among the data sets in the folder that {VARIABLE} names: choose another name")


def find(*names: str, origin: str) -> Path:
    """The first of the files that is in the folder that the environment variable COMPGEN_DATA names.

    Args:
        names: Where a file may be, as a path inside the folder; the last is the one to ask for if there is none.
        origin: Where to get it, for the error message.

    Raises:
        MissingFileError: if there is none of the files, or the variable is not set.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise MissingFileError(names[-1], origin, f"no {VARIABLE} set")
    for name in names:
        if (path := Path(folder) / name).is_file():
            return path
    raise MissingFileError(names[-1], origin, f"no {names[-1]} in {folder}")
