"""The content of a file or of standard input: unpacked if it is gzip, with lines of limited length, in UTF-8."""

import gzip
import io
import re
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from compgen.errors import DataError

LONGEST_LINE = 2**20  # bytes; also the size of the pieces that are read
PARQUET_MAGIC = b"PAR1"
_GZIP_MAGIC = b"\x1f\x8b"
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\]]")


def read_text(path: str | Path, lines: bool = True) -> str:
    """Return the text of a file, or of standard input if `path` is `-`; gzip is recognised."""
    return decoded(read_bytes(path, lines), name_of(path))


def read_bytes(path: str | Path, lines: bool | None) -> bytes:
    """Return the content of a file, or of standard input if `path` is `-`, unpacked.

    `lines` says whether it should consist of lines; None: unless it begins as Parquet or a list of JSON.
    """
    name = name_of(path)
    if str(path) == "-":
        standard = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))
        try:
            return _unpacked(standard, name, lines)
        finally:
            standard.detach()  # or standard input would be closed with it
    try:
        with Path(path).open("rb") as stream:
            return _unpacked(stream, name, lines)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error


def name_of(path: str | Path) -> str:
    """Return the name of a path in messages."""
    return "standard input" if str(path) == "-" else str(path)


def _unpacked(stream: "io.BufferedReader[Any]", name: str, lines: bool | None) -> bytes:
    start = stream.peek(len(_GZIP_MAGIC))
    if not (start.startswith(_GZIP_MAGIC) or (start and name.endswith(".gz"))):
        return _pieces(cast(BinaryIO, stream), name, lines)
    try:
        with gzip.GzipFile(fileobj=stream) as unpacked:
            return _pieces(cast(BinaryIO, unpacked), name, lines)
    except EOFError:
        raise DataError(f"{name}: the compressed file is cut short: found no end of its gzip data") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: found damaged data or none of gzip, expected a gzip file: {error}") from None


def looks_like_json(content: bytes | bytearray) -> bool:
    """Whether content begins as a list of JSON objects does."""
    return _LIST.match(content) is not None


def _pieces(stream: BinaryIO, name: str, lines: bool | None) -> bytes:
    """Return the rest of a stream. A line that is too long is refused before the rest fills the memory."""
    content, begun = bytearray(), 0  # where the last line begins
    while piece := stream.read(LONGEST_LINE):
        content += piece
        if lines is False or (lines is None and (content.startswith(PARQUET_MAGIC) or looks_like_json(content))):
            continue
        end = content.find(b"\n", len(content) - len(piece))
        if (end if end >= 0 else len(content)) - begun > LONGEST_LINE:
            number = content.count(b"\n", 0, begun) + 1
            raise malformed(name, number, f"more than {LONGEST_LINE:,} bytes", "the end of the line before that")
        begun = content.rfind(b"\n", begun) + 1 or begun
    return bytes(content)


def decoded(content: bytes, name: str) -> str:
    """Return content as text, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.object` is what was decoded, less the byte order mark that `error.start` does not count either.
        number = error.object.count(b"\n", 0, error.start) + 1
        found = error.object[error.start : error.start + 1].hex()
        raise malformed(name, number, f"the byte 0x{found}", "text in UTF-8") from None


def malformed(name: str, number: int, found: str, expected: str) -> DataError:
    """Return the error for a line of a file."""
    return DataError(f"{name}, line {number}: found {found}, expected {expected}")


def shown(value: object) -> str:
    """Return the value in quotes, short enough for a message."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
