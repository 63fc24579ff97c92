"""Files appear whole: everything is written to a temporary name beside its goal, then moved."""

import contextlib
import errno
import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

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


def is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe: what is written goes through it, and nothing takes its place."""
    found = _status(path)
    return found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode)


def _status(path: Path) -> os.stat_result | None:
    """What the system says of a path; None if it is not there or cannot be, which writing and reading will say."""
    try:
        return path.stat()
    except OSError:
        return None


def take_place(made: Path, path: Path) -> None:
    """Put a file that is made in the place of another, which hands on its permissions; a link to it stays one."""
    path = linked(path)
    if path.is_file():
        shutil.copymode(path, made)
    made.replace(path)


def linked(path: Path) -> Path:
    """What a path links to, or the path. Beside it is where to make what will take its place.

    A link that leads to itself is no link to anything, and gives way like a file.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def atomic_path(path: Path, *, directory: bool = False) -> Iterator[Path]:
    """Yield a temporary path on the same file system; on success it becomes `path`, on failure it vanishes.

    A file that is replaced hands on its permissions, and a link stays one, to the new content. Into a device or a pipe
    the content is written in the end. With `directory=True` the temporary path is an existing empty folder, and a
    folder already at `path` is replaced. Errors of writing are those of `writing`.
    """
    path = Path(path)
    if is_stream(path):
        with writing(path), tempfile.TemporaryDirectory(prefix="compgen-") as folder:
            made = Path(folder) / path.name
            yield made
            with made.open("rb") as content, path.open("wb") as stream:
                shutil.copyfileobj(content, stream)
        return
    temporary: Path | None = None
    with writing(path):
        try:
            path = linked(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            if directory:
                temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
                temporary.chmod(0o755)
            else:
                # Nobody else, on this machine or another, writes to the same name. The goal's suffix stays last,
                # because writers choose their format by it.
                temporary = _beside(path)
            yield temporary
            if directory and path.exists():
                shutil.rmtree(path)
            take_place(temporary, path)
        except BaseException:
            if temporary is not None:
                remove(temporary)
            raise


def _beside(path: Path) -> Path:
    return path.parent / f".{uuid.uuid4().hex}.{path.name}"


def open_text(path: Path) -> TextIO:
    """A file to write text to, UTF-8 with plain line ends; compressed if its name ends in .gz."""
    if path.suffix == ".gz":
        # Without a name and a time inside, the same text makes the same file.
        packed = gzip.GzipFile(filename="", fileobj=path.open("wb"), mode="wb", compresslevel=6, mtime=0)
        return io.TextIOWrapper(packed, encoding="utf-8")
    return path.open("w", encoding="utf-8", newline="\n")


def check_writable(path: Path) -> None:
    """Make the folder of a file that is to be written later, and try it: before the work, not after.

    Raises:
        UserError: as `writing`; or it is `-`, which does not stand for standard output where this is called.
    """
    if str(path) == "-":
        raise UserError("standard output (-) cannot take this: give the name of a file")
    if is_stream(path):
        return
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary = _beside(path)  # the name is as long as the one that will be needed
        try:
            temporary.touch(exist_ok=False)
        finally:
            remove(temporary)


def check_apart(out: Path, *read: str | Path | None) -> None:
    """See, before any work, that what is to be written takes the place of nothing that is read.

    Raises:
        UserError: it would.
    """
    ours = _status(Path(os.path.realpath(out)))  # a folder on the way, which `..` leaves again, may yet be to be made
    for path in read:
        theirs = None if path is None else _status(Path(path))
        if ours is not None and theirs is not None and stat.S_ISREG(ours.st_mode) and os.path.samestat(ours, theirs):
            raise UserError(f"{out}: it is read, too: choose another name for what is written")


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
