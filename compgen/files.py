"""Files appear whole: content is written to a temporary name beside the goal, then moved."""

import contextlib
import ctypes
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
from typing import BinaryIO, TextIO

from compgen.errors import UserError

UNUSABLE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG),
}
STDOUT = Path("standard output")
MODELS = {".pt": "checkpoints", ".grammar": "grammars"}  # files that training writes
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # for renameat2 of Linux


def writing(path: Path) -> contextlib.AbstractContextManager[None]:
    """Turn errors of the system, such as a full disk or a missing folder, into a `UserError` that names `path`."""
    return _told(path, "written")


def reading(path: Path) -> contextlib.AbstractContextManager[None]:
    """The same for reading a file that compgen wrote."""
    return _told(path, "read")


@contextlib.contextmanager
def _told(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        code = _code(error)
        if code in UNUSABLE:
            raise UserError(f"{path}: cannot be {done}: {_why(path, code)}") from error
        raise


def _code(error: Exception) -> int:
    """Return the number of the system's error, or 0; errors of Polars, of types of its own, have it in their text."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else 0


def _why(path: Path, code: int) -> str:
    """Return the system's words for an error, and which part of the path is a file where there should be a folder."""
    if code in (errno.EEXIST, errno.ENOTDIR):
        for folder in path.parents:
            if _status(folder) is not None and not folder.is_dir():
                return f"{folder} is a file, expected a folder"
    return os.strerror(code)


def is_stream(path: Path) -> bool:
    """Return whether a path is a device or a pipe, which is written through and never replaced."""
    found = _status(path)
    return found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a path, or None if there is none; reading or writing it will give the error."""
    try:
        return path.stat()
    except OSError:
        return None


def take_place(made: Path, path: Path) -> None:
    """Move a file to `path`. A file that it replaces hands on its permissions, and a link stays a link."""
    path = linked(path)
    if path.is_file():
        shutil.copymode(path, made)
    made.replace(path)


def linked(path: Path) -> Path:
    """Return the target of a link, else the path itself. A file that will replace it is made beside it.

    A link to itself has no target, and is replaced like a file.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def atomic_path(path: Path, *, directory: bool = False) -> Iterator[Path]:
    """Yield a temporary path on the same file system; move it to `path` on success, remove it on failure.

    A file that is replaced hands on its permissions, and a link stays a link. Content for a device or a pipe is copied
    into it at the end. With `directory=True` the temporary path is an existing empty folder, and a folder at `path` is
    replaced, as a whole. Errors are those of `writing` and, for a folder, of `check_replaceable`.
    """
    path = Path(path)
    if directory:
        check_replaceable(path)
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
                temporary = beside(path)
            yield temporary
            if directory and path.is_dir():
                _exchange(temporary, path)
                remove(temporary)  # what was there
            else:
                take_place(temporary, path)
        except BaseException:
            if temporary is not None:
                remove(temporary)
            raise


def _exchange(made: Path, path: Path) -> None:
    """Exchange two folders. Where the system cannot do it at once, there is no `path` for a moment, never a part."""
    with contextlib.suppress(AttributeError):  # only Linux has this function
        names = os.fsencode(made), os.fsencode(path)
        if ctypes.CDLL(None).renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
            return
    old = beside(path)
    path.replace(old)
    try:
        made.replace(path)
    except BaseException:
        old.replace(path)
        raise
    old.replace(made)


def beside(path: Path) -> Path:
    """Return a name that no other process uses. The suffix stays last, because writers choose their format by it."""
    return path.parent / f".{uuid.uuid4().hex}.{path.name}"


def is_beside(path: Path) -> bool:
    """Return whether a name is one that `beside` gave: a run that was killed leaves such a file."""
    return re.fullmatch(r"\.[0-9a-f]{32}\..+", path.name, re.DOTALL) is not None


class _Packed(gzip.GzipFile):
    """A gzip stream that also closes its file, so that an error in writing what the file still buffers is raised."""

    def __init__(self, path: Path) -> None:
        self._below = path.open("wb")
        # No name and no time inside, so that the same text gives the same file.
        super().__init__(filename="", fileobj=self._below, mode="wb", compresslevel=6, mtime=0)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._below.close()


def open_text(path: Path) -> TextIO:
    """Open a file to write UTF-8 with plain line ends to; it is compressed if its name ends in .gz."""
    if path.suffix == ".gz":
        return io.TextIOWrapper(_Packed(path), encoding="utf-8", newline="\n")
    return path.open("w", encoding="utf-8", newline="\n")


def check_writable(path: Path) -> None:
    """Check, before any work, that a file can be written; make its folder.

    Raises:
        UserError: as `writing`; or the path is `-`, standard output, which callers do not support.
    """
    if str(path) == "-":
        raise UserError("standard output (-) cannot take this: give the name of a file")
    if is_stream(path):
        return
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary = beside(path)  # as long as the name that will be needed
        try:
            temporary.touch(exist_ok=False)
        finally:
            remove(temporary)


def require_name(out: Path, suffix: str) -> None:
    """Raise UserError, before any work, if a model cannot be written to `out`, which must end in a suffix of MODELS."""
    with writing(out):
        folder = out.is_dir()
    if folder or out.suffix != suffix:
        raise UserError(f"{out}: expected the name of a file that ends in {suffix}, as {MODELS[suffix]} do")


def require_folder(path: Path) -> None:
    """Raise UserError, before any work, for `-`, which stands for standard output, where a folder is to be written."""
    if str(path) == "-":
        raise UserError("standard output (-) is no folder: give the name of one")


def check_replaceable(folder: Path) -> None:
    """Raise UserError for a folder that cannot be replaced by another: `-`, the current one, or a mount point.

    Errors are also those of `writing`.
    """
    require_folder(folder)
    with writing(folder):
        fixed = folder.is_dir() and (folder.is_mount() or folder.samefile("."))
    if fixed:
        raise UserError(
            f"{folder}: the current folder or a mount point, which cannot be replaced as a whole: give the name of a "
            "new folder"
        )


def check_apart(out: Path, *read: str | Path | None) -> None:
    """Raise UserError if OUT, which will be written, is one of the files and folders that are read."""
    ours = _status(Path(os.path.realpath(out)))  # resolves `folder/..` even if the folder has yet to be made
    for path in read:
        theirs = None if path is None else _status(Path(path))
        if ours is not None and theirs is not None and not is_stream(out) and os.path.samestat(ours, theirs):
            raise UserError(f"{out}: it is read, too: choose another name for what is written")


def create(path: Path, text: str) -> bool:
    """Write a file that appears whole, unless there is one of that name; return whether it was written.

    Raises:
        UserError: it cannot be written.
    """
    temporary = beside(path)
    with writing(path):
        try:
            temporary.write_text(text, encoding="utf-8")
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            temporary.replace(path)  # a file system without links
        finally:
            temporary.unlink(missing_ok=True)
    return True


def lock(stream: BinaryIO, path: Path) -> None:
    """Lock an open file against other runs; the lock ends with the process, however that ends.

    Raises:
        UserError: another run has it, or has just moved or deleted it.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        return  # Windows
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(f"{path}: another run is writing it") from error
    except OSError:
        return  # a file system without locks
    now = _status(path)
    if now is None or now.st_ino != os.fstat(stream.fileno()).st_ino:
        raise UserError(f"{path}: another run has just ended and taken it: try again")


def remove(path: Path) -> None:
    """Delete a file or a folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def as_utf8(text: str) -> str:
    """Return text as a file in UTF-8 can hold it: names of files may have any bytes."""
    return text.encode(errors="replace").decode()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
