"""Reading and writing datasets: one function each way, for every format and for pipes.

    tsv      source TAB target [TAB split]; tokens stand between blanks; no header
    jsonl    {"source": ..., "target": ..., "split": ...}; a side is a list of tokens or a string; split is optional
    scan     IN: source OUT: target, as the SCAN files are published; suffix .scan, or .txt if it begins with IN:
    text     a sentence a line: an example with an empty target; suffix .txt. Tokens stand between spaces, tabs and
             carriage returns, as for KenLM; further white space of Unicode (U+00A0, U+3000) is part of a token
    parquet  columns source, target and perhaps split; a side is a list of tokens or a string

Any of them may be compressed with gzip. Whoever gives a file that is not as it should be hears which line, what was
found there and what was expected. Either all examples of a file have a target, or none has: sentences. No source is
empty. Tokens are neither special symbols nor hold control characters (see `vocabulary.why_not_data`), and a line has
LONGEST_LINE bytes at most.
"""

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl

from compgen.data.examples import COLUMNS, SCHEMA, TOKENS, TRAIN, Dataset
from compgen.data.vocabulary import SPECIALS, why_not_data
from compgen.errors import DataError
from compgen.files import STDOUT, atomic_path, writing

_SUFFIXES = {".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet", ".txt": "text", ".scan": "scan"}
TEMPLATE = "template"  # a further column, of strings: what kind of example each is
LONGEST_LINE = 2**20  # bytes; read in pieces of this size, so that what is no text is refused before it fills memory
WHOLE = "whole"  # a text that is no lines
_BINARY = ("parquet", WHOLE)
PLACE = "place"  # a column for messages: the number of an example's line or row
_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"
_MARK = "\ufeff"  # of byte order
# What separates tokens, for reading as for writing: a token that holds it cannot be written between blanks.
_BLANK = r"\s"
_TOKEN = r"\S+"
SENTENCE_TOKEN = r"[^ \t\r\n]+"  # of text: what KenLM takes for a word
_SENTENCE_BLANK = r"[ \t\r\n]"
_TSV_LINE = "source TAB target, or source TAB target TAB split"
_SCAN_LINE = "'IN: source tokens OUT: target tokens'"
_STRING = r'"[^"\\\x00-\x1f]*"'
_STRINGS = rf"\[(?:{_STRING}(?:, ?{_STRING})*)?\]"
# Records as programs write them, with lists of tokens and no escapes: Polars may parse these, as it cannot err on them.
_PLAIN_RECORD = rf'^\{{"source": ?{_STRINGS}, ?"target": ?{_STRINGS}(?:, ?"split": ?{_STRING})?\}}$'
_RECORD = '{"source": ..., "target": ...}, each a list of tokens or a string, and perhaps a string "split"'


def read_dataset(path: str | Path, format: str | None = None, answers: bool = False) -> Dataset:
    """The dataset in a file, or on standard input if `path` is `-`.

    The format is `format`, or else what the suffix says, or else (standard input and other pipes) what the first
    line that is not blank looks like. Gzip is recognised. Where a format has no splits, all examples are in `train`.
    A further column `template` of JSON lines or Parquet is kept, as strings, if all examples have one. With `answers`,
    targets are a predictor's, which may be empty here and there.

    Raises:
        DataError: if there is no such file, or it is not as the format wants it, or holds no example, or one that
            cannot be learned from.
    """
    name = "standard input" if str(path) == "-" else str(path)
    if format is not None:
        _check_format(format)
        content = _read(path, name, format)
    else:
        # Before reading, so that a wrong suffix is reported at once.
        format = None if _is_pipe(path) else format_of(path)
        content = _read(path, name, format)
        if format is None or (format == "text" and _looks_like_scan(content)):
            format = _guess(content)
    frame = _READERS[format](content, name)
    if frame.is_empty():
        raise DataError(f"{name}: no examples: the file is empty")
    _check_examples(frame, f"{name}, {'row' if format == 'parquet' else 'line'}", answers)
    return Dataset(frame.drop(PLACE))


def write_dataset(dataset: Dataset, path: str | Path, format: str | None = None) -> None:
    """Write a dataset to a file, whole or not at all, or to standard output if `path` is `-`.

    The format is `format`, or else what the suffix says (`.txt` is `scan` unless all are sentences), or else, on
    standard output, `jsonl`. A file name that ends in `.gz` is compressed. `tsv` names the splits only if there are
    others than `train`. Of further columns, `template` is kept by `jsonl` and `parquet`.

    Raises:
        DataError: if the format cannot hold the data, e.g. a token with a blank in `tsv`, several splits in `scan`.
        UserError: if the file cannot be written.
    """
    if format is None:
        format = "jsonl" if str(path) == "-" else format_of(path)
        if format == "text" and not _may_be_text(dataset):
            format = "scan"
    _check_format(format)
    content = _WRITERS[format](dataset, "standard output" if str(path) == "-" else str(path))
    if str(path) == "-":
        with writing(STDOUT):
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        return
    if Path(path).suffix == ".gz":
        # No time stamp: the same data make the same file.
        content = gzip.compress(content, compresslevel=6, mtime=0)
    with atomic_path(Path(path)) as temporary:
        temporary.write_bytes(content)


def read_text(path: str | Path, lines: bool = True) -> str:
    """The text of a file, or of standard input if `path` is `-`; gzip is recognised.

    Raises:
        DataError: if there is no such file, or it is not text in UTF-8, or (`lines`) has a line that is too long.
    """
    return _decoded(_read(path, str(path), "text" if lines else WHOLE), str(path))


def format_of(path: str | Path) -> str:
    """The format that a file's suffix stands for, with or without `.gz`.

    Raises:
        DataError: for a suffix that stands for none; the message lists those that do.
    """
    suffixes = Path(path).suffixes
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _SUFFIXES:
        known = ", ".join(f"{end} ({format})" for end, format in _SUFFIXES.items())
        if suffix == ".pt":
            raise DataError(f"{path}: a checkpoint, expected data; models are named before data")
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise DataError(f"{path}: found {found}, expected one that tells the format: {known}; each may end in .gz")
    return _SUFFIXES[suffix]


def _check_format(format: str) -> None:
    if format not in _READERS:
        raise DataError(f"unknown format {format!r}: known formats are {', '.join(FORMATS)}")


def _is_pipe(path: str | Path) -> bool:
    """Whether the data come from standard input or a named pipe, e.g. the shell's `<(...)`: these have no suffix."""
    return str(path) == "-" or Path(path).is_fifo()


def _read(path: str | Path, name: str, format: str | None) -> bytes:
    """All of a file or of standard input, uncompressed."""
    if str(path) == "-":
        standard = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))
        try:
            return _unpacked(standard, name, format)
        finally:
            standard.detach()  # or standard input would be closed with it
    try:
        with Path(path).open("rb") as stream:
            return _unpacked(stream, name, format)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error


def _unpacked(stream: "io.BufferedReader[Any]", name: str, format: str | None) -> bytes:
    """All that is left of a stream, uncompressed if it begins as gzip does."""
    start = stream.peek(len(_GZIP_MAGIC))
    if not (start.startswith(_GZIP_MAGIC) or (start and name.endswith(".gz"))):
        return _pieces(cast(BinaryIO, stream), name, format)
    try:
        with gzip.GzipFile(fileobj=stream) as unpacked:
            return _pieces(cast(BinaryIO, unpacked), name, format)
    except EOFError:
        raise DataError(f"{name}: the compressed file is cut short: found no end of its gzip data") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: found damaged data or none of gzip, expected a gzip file: {error}") from None


def _pieces(stream: BinaryIO, name: str, format: str | None) -> bytes:
    """All that is left of a stream. Where lines are expected, one that is too long is refused before the rest is read.

    Raises:
        DataError: there is such a line.
    """
    content, begun = bytearray(), 0  # where the last line begins
    while piece := stream.read(LONGEST_LINE):
        content += piece
        if format in _BINARY or (format is None and content.startswith(_PARQUET_MAGIC)):
            continue
        end = content.find(b"\n", len(content) - len(piece))
        if (end if end >= 0 else len(content)) - begun > LONGEST_LINE:
            number = content.count(b"\n", 0, begun) + 1
            raise _malformed(name, number, f"more than {LONGEST_LINE:,} bytes", "the end of the line before that")
        begun = content.rfind(b"\n", begun) + 1 or begun
    return bytes(content)


def _guess(content: bytes) -> str:
    """The format that the beginning of `content` looks like."""
    if content.startswith(_PARQUET_MAGIC):
        return "parquet"
    if _looks_like_scan(content):
        return "scan"
    first = _first_line(content)
    if first.lstrip().startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in first else "text"


def _looks_like_scan(content: bytes) -> bool:
    return _first_line(content).lstrip().startswith(b"IN:")


def _first_line(content: bytes) -> bytes:
    """The first line that is not blank."""
    found = re.match(rb"(?:[^\S\n]*\n)*([^\n]*)", content.removeprefix(b"\xef\xbb\xbf"))
    assert found is not None  # it matches anything
    return found[1]


def _may_be_text(dataset: Dataset) -> bool:
    """Whether all examples are sentences, and the first would not be taken for a line of SCAN."""
    sentences = (dataset.frame["source"].list.len() > 0) & (dataset.frame["target"].list.len() == 0)
    return bool(sentences.all()) and not (len(dataset) and dataset.frame["source"][0][0].startswith("IN:"))


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.object` is what was decoded, less the byte order mark that `error.start` does not count either.
        number = error.object.count(b"\n", 0, error.start) + 1
        found = error.object[error.start : error.start + 1].hex()
        raise DataError(f"{name}, line {number}: found the byte 0x{found}, expected text in UTF-8") from None


def _malformed(name: str, number: int, found: str, expected: str) -> DataError:
    return DataError(f"{name}, line {number}: found {found}, expected {expected}")


def _shown(value: object) -> str:
    """The value in quotes, short enough for a message."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _lines(content: bytes, name: str) -> pl.DataFrame:
    """The lines that are not blank: columns `number`, from 1, and `line`, without line ends."""
    # splitlines() would also cut at form feeds and the like, inside tokens that JSON may hold.
    lines = pl.Series("line", _decoded(content, name).split("\n"), dtype=pl.String).str.strip_chars_end("\r")
    # A TAB alone is not blank: in tsv it is an example with two empty sides, and refused.
    written = pl.col("line").str.strip_chars(" ") != ""
    return pl.DataFrame({"line": lines}).with_row_index("number", offset=1).filter(written)


def _first_bad(lines: pl.DataFrame, good: pl.Expr) -> tuple[int, str] | None:
    """The number and the text of the first line that is not good, if there is one."""
    bad = lines.filter(~good).head(1)
    return None if bad.is_empty() else (bad["number"][0], bad["line"][0])


def _read_tsv(content: bytes, name: str) -> pl.DataFrame:
    lines = _lines(content, name).with_columns(fields=pl.col("line").str.split("\t"))
    bad = _first_bad(lines, pl.col("fields").list.len().is_between(2, 3))
    if bad:
        number, line = bad
        tabs = line.count("\t")
        found = f"{tabs} TABs" if tabs else "no TAB"
        raise _malformed(name, number, f"{found} in {_shown(line)}", _TSV_LINE)
    split = pl.col("fields").list.get(2, null_on_oob=True).str.strip_chars()
    return lines.select(
        pl.col("number").alias(PLACE),
        source=pl.col("fields").list.get(0).str.extract_all(_TOKEN),
        target=pl.col("fields").list.get(1).str.extract_all(_TOKEN),
        split=pl.when(split == "").then(pl.lit(TRAIN)).otherwise(split.fill_null(TRAIN)),
    )


def _read_scan(content: bytes, name: str) -> pl.DataFrame:
    lines = _lines(content, name).with_columns(
        pl.col("line").str.extract(r"^\s*IN:(|\s.*?)\sOUT:(?:|\s.*)$").str.extract_all(_TOKEN).alias("source"),
        pl.col("line").str.extract(r"^\s*IN:(?:|\s.*?)\sOUT:(|\s.*)$").str.extract_all(_TOKEN).alias("target"),
    )
    bad = _first_bad(lines, pl.col("source").is_not_null() & ~pl.col("target").list.contains("OUT:"))
    if bad:
        number, line = bad
        raise _malformed(name, number, _shown(line), _SCAN_LINE)
    return lines.select(pl.col("number").alias(PLACE), "source", "target", split=pl.lit(TRAIN))


def _read_text(content: bytes, name: str) -> pl.DataFrame:
    lines = _lines(content, name)
    return lines.select(
        pl.col("number").alias(PLACE),
        source=pl.col("line").str.extract_all(SENTENCE_TOKEN),
        target=pl.lit([], dtype=TOKENS),
        split=pl.lit(TRAIN),
    ).filter(pl.col("source").list.len() > 0)


def _read_jsonl(content: bytes, name: str) -> pl.DataFrame:
    lines = _lines(content, name)
    if lines["line"].str.contains(_PLAIN_RECORD).all():
        # Four times as fast as the loop below, but Polars takes numbers for strings and knows no line numbers.
        records = lines["line"].str.json_decode(pl.Struct(SCHEMA))
        return records.struct.unnest().with_columns(pl.col("split").fill_null(TRAIN), lines["number"].alias(PLACE))
    columns: dict[str, list[Any]] = {column: [] for column in (*COLUMNS, TEMPLATE, PLACE)}
    for number, line in lines.iter_rows():
        if not line.strip():
            continue
        record = _record(name, number, line) | {PLACE: number}
        for column, values in columns.items():
            values.append(record[column])
    return _with_template(pl.DataFrame(columns, schema={**SCHEMA, TEMPLATE: pl.String, PLACE: pl.Int64}))


def _with_template(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with the column `template` if all examples have one."""
    return frame.drop(TEMPLATE) if frame[TEMPLATE].has_nulls() else frame


def _record(name: str, number: int, line: str) -> dict[str, Any]:
    """One line of JSON as the three columns, tokens in lists."""
    try:
        record = json.loads(line)
        if "\\u" in line:
            # JSON can spell half of a surrogate pair, which no text in UTF-8 and so no frame can hold.
            json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise _malformed(name, number, f"{_shown(line)}, which is no JSON in UTF-8", _RECORD) from None
    if not isinstance(record, dict):
        raise _malformed(name, number, f"{_shown(line)}, not an object", _RECORD)
    if "source" not in record or "target" not in record:
        raise _malformed(name, number, f"the keys {', '.join(map(_shown, [*record][:9])) or '(none)'}", _RECORD)
    split = record.get("split", TRAIN)
    if not isinstance(split, str):
        raise _malformed(name, number, f'"split": {_shown(split)}', _RECORD)
    sides = {column: _json_tokens(name, number, column, record[column]) for column in ("source", "target")}
    template = record.get(TEMPLATE)
    return {**sides, "split": split, TEMPLATE: None if template is None else str(template)}


def _json_tokens(name: str, number: int, column: str, value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list) and all(isinstance(token, str) for token in value):
        return value
    raise _malformed(name, number, f'"{column}": {_shown(value)}', _RECORD)


def _read_parquet(content: bytes, name: str) -> pl.DataFrame:
    if not content:
        return pl.DataFrame(schema={**SCHEMA, PLACE: pl.Int64})
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{name}: found damaged data or none of Parquet, expected a Parquet file: {reason}") from None
    if not {"source", "target"} <= set(frame.columns):
        found = ", ".join(map(repr, frame.columns))
        raise DataError(f"{name}: found the columns {found}, expected 'source' and 'target', perhaps 'split'")
    if "split" not in frame.columns:
        frame = frame.with_columns(split=pl.lit(TRAIN))
    columns = [_parquet_column(frame[column], name) for column in COLUMNS]
    columns.append(pl.Series(PLACE, range(1, frame.height + 1), dtype=pl.Int64))
    if TEMPLATE not in frame.columns:
        return pl.DataFrame(columns)
    return _with_template(pl.DataFrame([*columns, frame[TEMPLATE].cast(pl.String)]))


def _parquet_column(values: pl.Series, name: str) -> pl.Series:
    """A column with its type in a dataset, if it can have it and no value is missing."""
    if values.dtype == pl.String and SCHEMA[values.name] == TOKENS:
        values = values.str.extract_all(_TOKEN)
    if values.dtype == pl.List(pl.Null):
        # What a column of empty lists is written as by programs that have no other sign of its type.
        values = values.cast(TOKENS)
    if values.dtype != SCHEMA[values.name]:
        expected = "a string" if values.name == "split" else "a list of strings, or a string"
        raise DataError(f"{name}: found column {values.name!r} of type {values.dtype}, expected {expected}")
    missing = values.is_null()
    if values.dtype == TOKENS:
        missing |= values.list.eval(pl.element().is_null()).list.any().fill_null(False)
    if missing.any():
        row = missing.arg_true()[0] + 1
        raise DataError(f"{name}, row {row}: found a missing value in column {values.name!r}, expected none")
    return values


def _check_examples(frame: pl.DataFrame, place: str, answers: bool) -> None:
    """See that examples with their places have both sides, or are all sentences, and that all tokens can stand in data.

    Raises:
        DataError: one has not, or holds a token that cannot.
    """
    empty = {side: frame[side].list.len() == 0 for side in ("source", "target")}
    sentences = bool(empty["target"].all())  # in which an arrow is a word like any other, until a network is to read it
    if answers or empty["target"].all():
        del empty["target"]
    for side, found in empty.items():
        if found.any():
            number = frame[PLACE][found.arg_true()[0]]
            raise DataError(f"{place} {number}: found an empty {side}, expected tokens on both sides")
    for side in ("source", "target"):
        for token in frame[side].explode().drop_nulls().unique(maintain_order=True):
            if why := "" if sentences and token in SPECIALS else why_not_data(token):
                number = frame.filter(pl.col(side).list.contains(token))[PLACE][0]
                raise DataError(f"{place} {number}: found the token {_shown(token)}, which {why}")


def _check_writable(dataset: Dataset, forbidden: str, why: str) -> None:
    """Raise DataError if a token matches the pattern `forbidden`, or is empty."""
    for column in ("source", "target"):
        tokens = dataset.frame[column].explode().drop_nulls()
        bad = tokens.filter((tokens == "") | tokens.str.contains(forbidden))
        if len(bad):
            raise DataError(f"{why}: found the {column} token {bad[0]!r}; write jsonl or parquet instead")


def _text(lines: pl.Series) -> bytes:
    text = "".join(f"{line}\n" for line in lines)
    # A first token may begin with what readers take for a byte order mark, and drop: they drop one.
    return (_MARK + text if text.startswith(_MARK) else text).encode()


def _joined(column: str) -> pl.Expr:
    return pl.col(column).list.join(" ")


def _write_tsv(dataset: Dataset, name: str) -> bytes:
    _check_writable(dataset, _BLANK, f"{name}: tsv holds no blank in a token and no empty token")
    fields = [_joined("source"), _joined("target")]
    if set(dataset.splits) - {TRAIN}:
        _check_split_names(dataset, name)
        fields.append(pl.col("split"))
    return _text(dataset.frame.select(pl.concat_str(fields, separator="\t")).to_series())


def _check_split_names(dataset: Dataset, name: str) -> None:
    for split in dataset.splits:
        if not split or split != split.strip() or any(character in split for character in "\t\r\n"):
            raise DataError(f"{name}: tsv cannot hold the split name {split!r}; write jsonl or parquet instead")


def _check_one_split(dataset: Dataset, what: str) -> None:
    if len(dataset.splits) > 1:
        raise DataError(f"{what} holds one split a file: found {', '.join(dataset.splits)}; write one of them")


def _write_scan(dataset: Dataset, name: str) -> bytes:
    _check_writable(dataset, rf"{_BLANK}|^OUT:$", f"{name}: scan holds no blank in a token, no empty token, no 'OUT:'")
    _check_one_split(dataset, f"{name}: scan")
    # An empty side leaves one blank, not two, so that nobody takes the second for a token.
    sides = [
        pl.when(pl.col(column).list.len() > 0).then(pl.lit(" ") + _joined(column)).otherwise(pl.lit(""))
        for column in ("source", "target")
    ]
    return _text(dataset.frame.select(pl.concat_str(pl.lit("IN:"), sides[0], pl.lit(" OUT:"), sides[1])).to_series())


def _write_text(dataset: Dataset, name: str) -> bytes:
    _check_writable(dataset, _SENTENCE_BLANK, f"{name}: text holds no blank in a token and no empty token")
    _check_one_split(dataset, f"{name}: text")
    bad = dataset.frame.filter((pl.col("source").list.len() == 0) | (pl.col("target").list.len() > 0))
    if bad.height:
        found = "an empty sentence" if bad["source"].list.len()[0] == 0 else "an example with a target"
        raise DataError(f"{name}: text holds sentences, one a line: found {found}; write tsv")
    return _text(dataset.frame.select(_joined("source")).to_series())


def _kept(dataset: Dataset) -> list[str]:
    """The columns that JSON lines and Parquet hold: those of all datasets, and the template where there is one."""
    return [*COLUMNS, *([TEMPLATE] if TEMPLATE in dataset.frame.columns else [])]


def _write_jsonl(dataset: Dataset, _name: str) -> bytes:
    return dataset.frame.select(_kept(dataset)).write_ndjson().encode()


def _write_parquet(dataset: Dataset, _name: str) -> bytes:
    buffer = io.BytesIO()
    dataset.frame.select(_kept(dataset)).write_parquet(buffer)
    return buffer.getvalue()


_READERS: dict[str, Callable[[bytes, str], pl.DataFrame]] = {
    "tsv": _read_tsv,
    "jsonl": _read_jsonl,
    "scan": _read_scan,
    "text": _read_text,
    "parquet": _read_parquet,
}
_WRITERS: dict[str, Callable[[Dataset, str], bytes]] = {
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
    "scan": _write_scan,
    "text": _write_text,
    "parquet": _write_parquet,
}
FORMATS = tuple(_READERS)
