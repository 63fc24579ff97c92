"""Files appear whole: everything is written to a temporary name beside its goal, then moved."""

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from compgen.errors import UserError


@contextlib.contextmanager
def atomic_path(path: Path, *, directory: bool = False) -> Iterator[Path]:
    """Yield a temporary path on the same file system; on success it becomes `path`, on failure it vanishes.

    With `directory=True` the temporary path is an existing empty folder, and a folder already at `path` is replaced.
    A full disk or a folder that cannot be written becomes a `UserError` that names the path.
    """
    path = Path(path)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if directory:
            temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            temporary.chmod(0o755)
        else:
            # The goal's suffix stays last, because writers choose their format by it.
            temporary = path.parent / f".{os.getpid()}.{path.name}"
        yield temporary
        if directory and path.exists():
            shutil.rmtree(path)
        temporary.replace(path)
    except BaseException as error:
        if temporary is not None:
            remove(temporary)
        if isinstance(error, OSError) and error.errno in {
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EACCES,
            errno.EROFS,
            errno.EPERM,
            errno.ENOTDIR,
            errno.EISDIR,
            errno.EEXIST,
        }:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from error
        raise


def remove(path: Path) -> None:
    """Delete a file or a folder, whichever `path` is, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
