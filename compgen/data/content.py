"""The content of a file or of standard input: unpacked if it is gzip, with lines of limited length, in UTF-8."""

import codecs
import gzip
import io
import re
import shlex
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

from compgen.errors import DataError

LONGEST_LINE = 2**20  # bytes; also the size of the pieces that are read
PIECE = 2**16  # bytes that are read at a time where lines are wanted as soon as they come
PARQUET_MAGIC = b"PAR1"
GZIP_MAGIC = b"\x1f\x8b"
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\]]")


def read_text(path: str | Path, lines: bool = True) -> str:
    """Return the text of a file, or of standard input if `path` is `-`; gzip is recognised."""
    return decoded(read_bytes(path, lines), name_of(path))


def read_bytes(path: str | Path, lines: bool | None) -> bytes:
    """Return the content of a file, or of standard input if `path` is `-`, unpacked.

    `lines` says whether it should consist of lines, whose length is then limited; None: it should, unless it begins as
    Parquet or a list of JSON does.
    """
    with _opened(path) as stream:
        return _pieces(stream, name_of(path), lines)


def lines_as_they_come(path: str | Path) -> Iterator[list[str]]:
    """Yield the lines of a file, or of standard input if `path` is `-`, in lists, each as soon as it can be read.

    A list has the lines in about PIECE bytes or, from a pipe, those that have come. Line ends are left out; gzip is
    recognised.
    """
    name, number, rest = name_of(path), 0, b""
    with _opened(path) as stream:
        while piece := stream.read1(PIECE):
            if not number and not rest:
                check_line_ends(piece, name)
            whole, end, rest = (rest + piece).rpartition(b"\n")
            if len(rest) > LONGEST_LINE:
                raise too_long(name, number + whole.count(b"\n") + len(end) + 1)
            if end:
                found = _lines(whole, name, number)
                number += len(found)
                yield found
    if rest:
        yield _lines(rest, name, number)


def check_line_ends(content: bytes, name: str) -> None:
    """Raise DataError if lines end with CR alone, as on no system of today: the whole text would be one line."""
    if b"\n" not in content and b"\r" in content.strip():
        raise DataError(f"{name}: lines end with CR alone, expected LF or CR LF: tr '\\r' '\\n' < FILE > NEW")


def _lines(content: bytes, name: str, before: int) -> list[str]:
    """Return lines without their ends; there were `before` others."""
    return [line.removesuffix("\r") for line in decoded(content, name, before).split("\n")]


@contextmanager
def _opened(path: str | Path) -> Iterator["io.BufferedReader[Any] | gzip.GzipFile"]:
    """Yield a file, or standard input, unpacked; errors of reading it are DataErrors."""
    name = name_of(path)
    with ExitStack() as stack:
        try:
            stream = _standard_input(stack) if str(path) == "-" else stack.enter_context(Path(path).open("rb"))
            start = stream.peek(len(GZIP_MAGIC))
            packed = start.startswith(GZIP_MAGIC) or (start and name.endswith(".gz"))
            unpacked = stack.enter_context(gzip.GzipFile(fileobj=stream)) if packed else stream
            if unpacked.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise DataError(f"{name}: this looks like UTF-16, expected UTF-8: iconv -f utf-16 -t utf-8 FILE > NEW")
            yield unpacked
        except FileNotFoundError:
            raise DataError(f"{path}: no such file") from None
        except EOFError:
            raise DataError(f"{name}: the compressed file is cut short: found no end of its gzip data") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{name}: found damaged data or none of gzip, expected a gzip file: {error}") from None
        except IsADirectoryError:
            raise DataError(f"{path}: a folder, expected a file") from None
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error


def _standard_input(stack: ExitStack) -> "io.BufferedReader[Any]":
    standard: Any = sys.stdin.buffer
    if not hasattr(standard, "peek"):
        standard = io.BufferedReader(standard)
        stack.callback(standard.detach)  # otherwise standard input would be closed with this reader
    return cast("io.BufferedReader[Any]", standard)


def name_of(path: str | Path) -> str:
    """Return the name of a path in messages."""
    return "standard input" if str(path) == "-" else str(path)


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a path that tells its format, without `.gz`."""
    return Path(str(path).removesuffix(".gz")).suffix


def typed(path: str | Path) -> str:
    """Return a path as it is typed in a command: quoted, and not as if it were an option if it begins with a hyphen."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") and name != "-" else name)


def looks_like_json(content: bytes | bytearray) -> bool:
    """Whether content begins as a list of JSON objects does."""
    return _LIST.match(content) is not None


def _pieces(stream: "io.BufferedReader[Any] | gzip.GzipFile", name: str, lines: bool | None) -> bytes:
    """Return the rest of a stream. A line that is too long is refused before the rest fills the memory."""
    content, begun = bytearray(), 0  # where the last line begins
    while piece := stream.read(LONGEST_LINE):
        content += piece
        if lines is False or (lines is None and (content.startswith(PARQUET_MAGIC) or looks_like_json(content))):
            continue
        end = content.find(b"\n", len(content) - len(piece))
        if (end if end >= 0 else len(content)) - begun > LONGEST_LINE:
            raise too_long(name, content.count(b"\n", 0, begun) + 1)
        begun = content.rfind(b"\n", begun) + 1 or begun
    return bytes(content)


def too_long(name: str, number: int) -> DataError:
    """Return the error for a line of more than LONGEST_LINE bytes."""
    return malformed(name, number, f"more than {LONGEST_LINE:,} bytes", "the end of the line before that")


def decoded(content: bytes, name: str, before: int = 0) -> str:
    """Return content as text, without a byte order mark at the beginning; there were `before` lines."""
    try:
        return content.decode("utf-8" if before else "utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.object` is what was decoded, less the byte order mark that `error.start` does not count either.
        number = before + error.object.count(b"\n", 0, error.start) + 1
        found = error.object[error.start : error.start + 1].hex()
        raise malformed(
            name, number, f"the byte 0x{found}", "text in UTF-8: save it so if it is in Latin-1 or another encoding"
        ) from None


def malformed(name: str, number: int, found: str, expected: str) -> DataError:
    """Return the error for a line of a file."""
    return DataError(f"{name}, line {number}: found {found}, expected {expected}")


def shown(value: object) -> str:
    """Return the value in quotes, short enough for a message."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
