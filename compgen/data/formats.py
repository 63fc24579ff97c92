"""Reading and writing datasets: one function each way, for every format and for pipes.

    tsv      source TAB target [TAB split]; tokens stand between blanks; no header
    jsonl    {"source": ..., "target": ..., "split": ...}; a side is a list of tokens or a string; split is optional
    scan     IN: source OUT: target, as the SCAN files are published; suffix .scan, or .txt if it begins with IN:
    text     a sentence a line: an example with an empty target; suffix .txt. Tokens stand between spaces, tabs and
             carriage returns, as for KenLM; further white space of Unicode (U+00A0, U+3000) is part of a token
    parquet  columns source, target and perhaps split; a side is a list of tokens or a string

Any of them may be compressed with gzip. Further keys of jsonl and columns of parquet are kept; see `columns`. Errors
say which line is wrong, what was found there and what was expected. Either all examples of a file have a target, or
none has: sentences. No source is empty. Tokens are neither special symbols nor hold control characters
(`vocabulary.why_not_data`), and a line has at most `content.LONGEST_LINE` bytes.
"""

import gzip
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from compgen.data.columns import for_json, from_json
from compgen.data.content import PARQUET_MAGIC, decoded, malformed, name_of, read, shown
from compgen.data.examples import COLUMNS, SCHEMA, TOKENS, TRAIN, Dataset
from compgen.data.ragged import lists_of
from compgen.data.vocabulary import SPECIALS, why_not_data
from compgen.errors import DataError
from compgen.files import STDOUT, atomic_path, writing

MOST_KEYS = 1_000  # further ones in all lines of a file of JSON; each is a column
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


class _Examples(NamedTuple):
    """Examples as read, and for messages the number of each one's line or row, from 1."""

    frame: pl.DataFrame
    places: pl.Series


def read_dataset(path: str | Path, format: str | None = None, answers: bool = False) -> Dataset:
    """Read the dataset in a file, or on standard input if `path` is `-`.

    Without `format` the suffix decides; for standard input and other pipes, the first line that is not blank. Where a
    format has no splits, all examples are in `train`. With `answers`, targets are a predictor's and may be empty.

    Raises:
        DataError: there is no such file, it is not as the format wants it, or it has no examples to learn from.
    """
    asked = format
    if format is not None:
        _check_format(format)
    elif not _is_pipe(path):
        format = format_of(path)  # before reading, so that a wrong suffix is reported at once
    content = read(path, None if format is None else format != "parquet")
    if format is None:
        format = _guess(content)
    elif asked is None and format == "text" and _looks_like_scan(content):
        format = "scan"
    name = name_of(path)
    found = FORMATS[format].read(content, name)
    if found.frame.is_empty():
        raise DataError(f"{name}: no examples: the file is empty")
    _check_examples(found, f"{name}, {'row' if format == 'parquet' else 'line'}", answers)
    return Dataset(found.frame)


def write_dataset(dataset: Dataset, path: str | Path, format: str | None = None) -> None:
    """Write a dataset to a file, whole or not at all, or to standard output if `path` is `-`.

    Without `format` the suffix decides (`.txt` is `scan` unless all are sentences); on standard output it is `jsonl`.
    A file name that ends in `.gz` is compressed. `tsv` names the splits only if there are others than `train`. Further
    columns are written to `jsonl` and `parquet`; the other formats have no place for them.

    Raises:
        DataError: the format cannot hold the data, e.g. a token with a blank in `tsv`, several splits in `scan`.
        UserError: the file cannot be written.
    """
    if format is None:
        format = "jsonl" if str(path) == "-" else format_of(path)
        if format == "text" and not _may_be_text(dataset):
            format = "scan"
    _check_format(format)
    content = FORMATS[format].write(dataset, "standard output" if str(path) == "-" else str(path))
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


def format_of(path: str | Path) -> str:
    """Return the format that a file's suffix stands for, with or without `.gz`."""
    suffix = Path(str(path).removesuffix(".gz")).suffix
    formats = {kind.suffix: format for format, kind in FORMATS.items()}
    if suffix in formats:
        return formats[suffix]
    if suffix in (".pt", ".grammar"):
        raise DataError(f"{path}: a model, expected data; models are named before data")
    known = ", ".join(f"{end} ({format})" for end, format in formats.items())
    found = f"the suffix {suffix!r}" if suffix else "no suffix"
    raise DataError(f"{path}: found {found}, expected one that tells the format: {known}; each may end in .gz")


def _check_format(format: str) -> None:
    if format not in FORMATS:
        raise DataError(f"unknown format {format!r}: known formats are {', '.join(FORMATS)}")


def _is_pipe(path: str | Path) -> bool:
    """Whether the data come from standard input or a named pipe, e.g. the shell's `<(...)`: these have no suffix."""
    return str(path) == "-" or Path(path).is_fifo()


def _guess(content: bytes) -> str:
    """Return the format that the beginning of `content` looks like."""
    if content.startswith(PARQUET_MAGIC):
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
    """Return the first line that is not blank."""
    found = re.match(rb"(?:[^\S\n]*\n)*([^\n]*)", content.removeprefix(b"\xef\xbb\xbf"))
    assert found is not None  # it matches anything
    return found[1]


def _may_be_text(dataset: Dataset) -> bool:
    """Whether all examples are sentences, and the first would not be taken for a line of SCAN."""
    sentences = (dataset.frame["source"].list.len() > 0) & (dataset.frame["target"].list.len() == 0)
    return bool(sentences.all()) and not (len(dataset) and dataset.frame["source"][0][0].startswith("IN:"))


def _check_examples(found: _Examples, place: str, answers: bool) -> None:
    """Raise DataError unless all examples have both sides or all are sentences, of tokens that data may have."""
    frame, places = found
    empty = {side: frame[side].list.len() == 0 for side in ("source", "target")}
    sentences = bool(empty["target"].all())  # in which an arrow is a word like any other, until a network is to read it
    if answers or sentences:
        del empty["target"]
    for side, rows in empty.items():
        if rows.any():
            number = places[rows.arg_true()[0]]
            raise DataError(f"{place} {number}: found an empty {side}, expected tokens on both sides")
    for side in ("source", "target"):
        for token in frame[side].explode().drop_nulls().unique(maintain_order=True):
            if why := "" if sentences and token in SPECIALS else why_not_data(token):
                number = places.filter(frame[side].list.contains(token))[0]
                raise DataError(f"{place} {number}: found the token {shown(token)}, which {why}")


# Readers


def _lines(content: bytes, name: str) -> pl.DataFrame:
    """Return the lines that are not blank: columns `number`, from 1, and `line`, without line ends."""
    # splitlines() would also cut at form feeds and the like, inside tokens that JSON may hold.
    lines = pl.Series("line", decoded(content, name).split("\n"), dtype=pl.String).str.strip_chars_end("\r")
    # A TAB alone is not blank: in tsv it is an example with two empty sides, and refused.
    written = pl.col("line").str.strip_chars(" ") != ""
    return pl.DataFrame({"line": lines}).with_row_index("number", offset=1).filter(written)


def _read_tsv(content: bytes, name: str) -> _Examples:
    lines = _lines(content, name).with_columns(fields=pl.col("line").str.split("\t"))
    for number, line, _ in lines.filter(~pl.col("fields").list.len().is_between(2, 3)).head(1).iter_rows():
        tabs = line.count("\t")
        raise malformed(name, number, f"{f'{tabs} TABs' if tabs else 'no TAB'} in {shown(line)}", _TSV_LINE)
    split = pl.col("fields").list.get(2, null_on_oob=True).str.strip_chars()
    frame = lines.select(
        source=pl.col("fields").list.get(0).str.extract_all(_TOKEN),
        target=pl.col("fields").list.get(1).str.extract_all(_TOKEN),
        split=pl.when(split == "").then(pl.lit(TRAIN)).otherwise(split.fill_null(TRAIN)),
    )
    return _Examples(frame, lines["number"])


def _read_scan(content: bytes, name: str) -> _Examples:
    lines = _lines(content, name).with_columns(
        pl.col("line").str.extract(r"^\s*IN:(|\s.*?)\sOUT:(?:|\s.*)$").str.extract_all(_TOKEN).alias("source"),
        pl.col("line").str.extract(r"^\s*IN:(?:|\s.*?)\sOUT:(|\s.*)$").str.extract_all(_TOKEN).alias("target"),
        split=pl.lit(TRAIN),
    )
    good = pl.col("source").is_not_null() & ~pl.col("target").list.contains("OUT:")
    for number, line in lines.filter(~good).select("number", "line").head(1).iter_rows():
        raise malformed(name, number, shown(line), _SCAN_LINE)
    return _Examples(lines.select(COLUMNS), lines["number"])


def _read_text(content: bytes, name: str) -> _Examples:
    lines = _lines(content, name).with_columns(
        source=pl.col("line").str.extract_all(SENTENCE_TOKEN), target=pl.lit([], dtype=TOKENS), split=pl.lit(TRAIN)
    )
    lines = lines.filter(pl.col("source").list.len() > 0)
    return _Examples(lines.select(COLUMNS), lines["number"])


def _read_jsonl(content: bytes, name: str) -> _Examples:
    lines = _lines(content, name)
    if lines["line"].str.contains(_PLAIN_RECORD).all():
        # Four times as fast as the loop below, but Polars takes numbers for strings and knows no line numbers.
        frame = lines["line"].str.json_decode(pl.Struct(SCHEMA)).struct.unnest()
        return _Examples(frame.with_columns(pl.col("split").fill_null(TRAIN)), lines["number"])
    numbers, records = [], []
    further: dict[str, None] = {}  # keys, in the order of their first occurrence
    for number, line in lines.iter_rows():
        if line.strip():
            record = _record(name, number, line)
            further |= dict.fromkeys(key for key in record if key not in COLUMNS)
            if len(further) > MOST_KEYS:
                raise malformed(name, number, f"further key {len(further):,}", f"at most {MOST_KEYS:,} in all lines")
            numbers.append(number)
            records.append(record)
    sides = {side: lists_of([record[side] for record in records], pl.String()) for side in ("source", "target")}
    frame = pl.DataFrame(sides | {"split": [record["split"] for record in records]}, schema_overrides=SCHEMA)
    columns = [from_json(key, [record.get(key) for record in records]) for key in further]
    return _Examples(frame.with_columns(columns), pl.Series(numbers, dtype=pl.Int64))


def _record(name: str, number: int, line: str) -> dict[str, Any]:
    """Return the object in a line of JSON, with tokens in lists and a split."""
    try:
        record = _JSON.decode(line)
        if "\\u" in line:
            # JSON can spell half of a surrogate pair, which no text in UTF-8 and so no frame can hold.
            json.dumps(record, ensure_ascii=False).encode()
    except KeyError as error:
        raise malformed(name, number, f"the key {shown(error.args[0])} twice in an object", "each key once") from None
    except (ValueError, RecursionError):
        raise malformed(name, number, f"{shown(line)}, which is no JSON in UTF-8", _RECORD) from None
    if not isinstance(record, dict):
        raise malformed(name, number, f"{shown(line)}, not an object", _RECORD)
    if "source" not in record or "target" not in record:
        raise malformed(name, number, f"the keys {', '.join(map(shown, [*record][:9])) or '(none)'}", _RECORD)
    if not isinstance(record.setdefault("split", TRAIN), str):
        raise malformed(name, number, f'"split": {shown(record["split"])}', _RECORD)
    for side in ("source", "target"):
        value = record[side]
        if isinstance(value, str):
            record[side] = value.split()
        elif not (isinstance(value, list) and all(isinstance(token, str) for token in value)):
            raise malformed(name, number, f'"{side}": {shown(value)}', _RECORD)
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values; raise KeyError for a key that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise KeyError(next(key for key in keys if keys.count(key) > 1))
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_object)


def _read_parquet(content: bytes, name: str) -> _Examples:
    try:
        frame = pl.read_parquet(io.BytesIO(content)) if content else pl.DataFrame(schema=SCHEMA)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{name}: found damaged data or none of Parquet, expected a Parquet file: {reason}") from None
    if not {"source", "target"} <= set(frame.columns):
        found = ", ".join(map(repr, frame.columns))
        raise DataError(f"{name}: found the columns {found}, expected 'source' and 'target', perhaps 'split'")
    if "split" not in frame.columns:
        frame = frame.with_columns(split=pl.lit(TRAIN))
    columns = [_parquet_column(frame[column], name) for column in COLUMNS]
    places = pl.Series(range(1, frame.height + 1), dtype=pl.Int64)
    return _Examples(frame.with_columns(columns).select(*COLUMNS, pl.exclude(COLUMNS)), places)


def _parquet_column(values: pl.Series, name: str) -> pl.Series:
    """Return one of COLUMNS with its type in a dataset, if it can have it and no value is missing."""
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


# Writers


def _check_tokens(dataset: Dataset, forbidden: str, why: str) -> None:
    """Raise DataError if a token matches the pattern `forbidden`, or is empty."""
    for column in ("source", "target"):
        tokens = dataset.frame[column].explode().drop_nulls()
        bad = tokens.filter((tokens == "") | tokens.str.contains(forbidden))
        if len(bad):
            raise DataError(f"{why}: found the {column} token {bad[0]!r}; write jsonl or parquet instead")


def _check_one_split(dataset: Dataset, what: str) -> None:
    if len(dataset.splits) > 1:
        raise DataError(f"{what} holds one split a file: found {', '.join(dataset.splits)}; write one of them")


def _text(dataset: Dataset, line: pl.Expr) -> bytes:
    text = "".join(f"{one}\n" for one in dataset.frame.select(line).to_series())
    # A first token may begin with what readers take for a byte order mark, and drop: they drop one.
    return (_MARK + text if text.startswith(_MARK) else text).encode()


def _joined(column: str) -> pl.Expr:
    return pl.col(column).list.join(" ")


def _write_tsv(dataset: Dataset, name: str) -> bytes:
    _check_tokens(dataset, _BLANK, f"{name}: tsv holds no blank in a token and no empty token")
    fields = [_joined("source"), _joined("target")]
    if set(dataset.splits) - {TRAIN}:
        for split in dataset.splits:
            if not split or split != split.strip() or any(character in split for character in "\t\r\n"):
                raise DataError(f"{name}: tsv cannot hold the split name {split!r}; write jsonl or parquet instead")
        fields.append(pl.col("split"))
    return _text(dataset, pl.concat_str(fields, separator="\t"))


def _write_scan(dataset: Dataset, name: str) -> bytes:
    _check_tokens(dataset, rf"{_BLANK}|^OUT:$", f"{name}: scan holds no blank in a token, no empty token, no 'OUT:'")
    _check_one_split(dataset, f"{name}: scan")
    # An empty side leaves one blank, not two, so that nobody takes the second for a token.
    sides = [
        pl.when(pl.col(column).list.len() > 0).then(pl.lit(" ") + _joined(column)).otherwise(pl.lit(""))
        for column in ("source", "target")
    ]
    return _text(dataset, pl.concat_str(pl.lit("IN:"), sides[0], pl.lit(" OUT:"), sides[1]))


def _write_text(dataset: Dataset, name: str) -> bytes:
    _check_tokens(dataset, _SENTENCE_BLANK, f"{name}: text holds no blank in a token and no empty token")
    _check_one_split(dataset, f"{name}: text")
    bad = dataset.frame.filter((pl.col("source").list.len() == 0) | (pl.col("target").list.len() > 0))
    if bad.height:
        found = "an empty sentence" if bad["source"].list.len()[0] == 0 else "an example with a target"
        raise DataError(f"{name}: text holds sentences, one a line: found {found}; write tsv")
    return _text(dataset, _joined("source"))


def _write_jsonl(dataset: Dataset, name: str) -> bytes:
    further = [for_json(column, name) for column in dataset.frame.drop(COLUMNS)]
    return dataset.frame.select(*COLUMNS, *further).write_ndjson().encode()


def _write_parquet(dataset: Dataset, _name: str) -> bytes:
    buffer = io.BytesIO()
    dataset.frame.write_parquet(buffer)
    return buffer.getvalue()


class _Format(NamedTuple):
    suffix: str
    read: Callable[[bytes, str], _Examples]
    write: Callable[[Dataset, str], bytes]


FORMATS = {
    "tsv": _Format(".tsv", _read_tsv, _write_tsv),
    "jsonl": _Format(".jsonl", _read_jsonl, _write_jsonl),
    "scan": _Format(".scan", _read_scan, _write_scan),
    "text": _Format(".txt", _read_text, _write_text),
    "parquet": _Format(".parquet", _read_parquet, _write_parquet),
}
