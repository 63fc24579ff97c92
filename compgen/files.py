"""Files appear whole: everything is written to a temporary name beside its goal, then moved."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from compgen.errors import UserError

UNWRITABLE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EROFS,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.EFBIG,
    errno.EIO,
}
STDOUT = Path("standard output")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full disk, or a folder that is missing or cannot be written, becomes a `UserError` that names `path`."""
    try:
        yield
    except OSError as error:
        code = error.errno or _code(error)
        if code in UNWRITABLE:
            raise UserError(f"{path}: cannot be written: {os.strerror(code)}") from error
        raise


def _code(error: OSError) -> int:
    """What Polars says of an error of the system, in words alone."""
    found = re.search(r"os error (\d+)", str(error))
    return int(found[1]) if found else 0


@contextlib.contextmanager
def atomic_path(path: Path, *, directory: bool = False) -> Iterator[Path]:
    """Yield a temporary path on the same file system; on success it becomes `path`, on failure it vanishes.

    With `directory=True` the temporary path is an existing empty folder, and a folder already at `path` is replaced.
    Errors of writing are those of `writing`.
    """
    path = Path(path)
    temporary: Path | None = None
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if directory:
                temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
                temporary.chmod(0o755)
            else:
                # Nobody else, on this machine or another, writes to the same name. The goal's suffix stays last,
                # because writers choose their format by it.
                temporary = path.parent / f".{uuid.uuid4().hex}.{path.name}"
            yield temporary
            if directory and path.exists():
                shutil.rmtree(path)
            temporary.replace(path)
        except BaseException:
            if temporary is not None:
                remove(temporary)
            raise


def check_writable(path: Path) -> None:
    """Make the folder of a file that is to be written later, and try it: before the work, not after.

    Raises:
        UserError: as `writing`.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        tempfile.TemporaryFile(dir=path.parent).close()


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
