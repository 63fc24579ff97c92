"""A folder reserved for one run: a file in it says which run, and is locked while the run goes on."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compgen import __version__
from compgen.errors import UserError
from compgen.files import check_writable, create, is_beside, lock, reading, remove, require_folder, writing

SHOWN = 4  # differences from another run, at most


@contextmanager
def claimed(
    path: Path, what: str, digests: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[Callable[[], None]]:
    """Reserve a folder for a run; yield a function to call as soon as nothing can be refused any more.

    A run that is refused before that leaves the folder as it was.

    Args:
        path: the file that says what its folder is for.
        what: what messages call such a run.
        digests: digests of the files that are read, by what messages call these files (plural).
        settings: all else that the results depend on.

    Raises:
        UserError: the folder holds another run, or other files, or another run writes it; or it is standard output.
    """
    folder, accepted = path.parent, []
    require_folder(folder)
    with writing(folder):
        there = folder.exists()
        new = _claim(path, what, digests, settings)
    with path.open("r+b") as stream:
        lock(stream, path)
        try:
            yield lambda: accepted.append(True)
        except UserError:
            if new and not accepted:
                for one in list(folder.iterdir()) if there else [folder]:
                    remove(one)
            raise


def _claim(path: Path, what: str, digests: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Note what the folder is for, and the version, or check that it is for the same; return whether it is new.

    Raises:
        UserError: it holds another run, or other files.
    """
    folder, ours = path.parent, json.loads(json.dumps({**settings, "compgen": __version__, **digests}))
    if path.exists():
        _require_same(path, what, ours, set(digests))
        return False
    found = sorted(one.name for one in folder.iterdir() if not is_beside(one)) if folder.is_dir() else []
    if found:
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        raise UserError(
            f"{folder}: expected a new or empty folder, or one of the same {what}, found {found[0]}{more}: choose "
            "another folder or delete it"
        )
    check_writable(path)
    if not create(path, json.dumps(ours, indent=1)):  # another run has just created it
        _require_same(path, what, ours, set(digests))
        return False
    return True


def _require_same(path: Path, what: str, ours: dict[str, Any], digests: set[str]) -> None:
    """Raise UserError unless a folder holds this run."""
    with reading(path):
        text = path.read_bytes()
    try:
        theirs = json.loads(text)
        changed = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    except (ValueError, TypeError, RecursionError):
        raise UserError(
            f"{path}: does not say of which {what} its folder is: choose another folder or delete it"
        ) from None
    if changed:
        said = [
            f"the {key} differ" if key in digests else f"{key} was {theirs.get(key)!r}, is {ours.get(key)!r}"
            for key in sorted(changed, key=lambda key: key not in digests)
        ]
        if len(said) > SHOWN:
            said[SHOWN:] = [f"{len(said) - SHOWN} more"]
        raise UserError(f"{path.parent}: holds another {what} ({'; '.join(said)}): choose another folder or delete it")
