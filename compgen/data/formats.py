"""Reading and writing datasets: one function each way, for every format and for pipes.

    tsv      source TAB target [TAB split]; tokens are separated by spaces; no header
    jsonl    {"source": ..., "target": ..., "split": ...}; a side is a list of tokens or a string; split is optional
    scan     IN: source OUT: target, as the SCAN files are published; suffix .scan, or .txt if it begins with IN:
    text     a sentence a line: an example with an empty target; suffix .txt. Tokens stand between spaces, tabs and
             carriage returns, as for KenLM; further white space of Unicode (U+00A0, U+3000) is part of a token
    csv      rows of fields separated by , or ; below a line with the names of the columns; quotes as usual
    json     a list of objects like those of jsonl
    unimorph lemma TAB form TAB tags, words of SIGMORPHON and UniMorph, see `unimorph`; no suffix, or .unimorph
    parquet  columns source, target and perhaps split; a side is a list of tokens or a string
    folder   Parquet files, one a split, with a data card, as `datasets.load_dataset` opens them; see `folder`

In csv, json, jsonl and parquet, columns may have other usual names, or names that are given: see `named`. So in tsv, if
its first line has such names. All but folders may be compressed with gzip. Further columns are kept; see `columns`.
Errors say which line is wrong, what was found there and what was expected. Either all examples of a file have a target,
or none has: sentences. No source is empty. Tokens are neither special symbols nor hold control characters
(`vocabulary.why_not_data`), and a line has at most `content.LONGEST_LINE` bytes.
"""

import gzip
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from compgen.data import parquet, records, unimorph
from compgen.data.content import PARQUET_MAGIC, looks_like_json, malformed, name_of, read_bytes, shown, suffix_of
from compgen.data.examples import COLUMNS, TOKENS, TRAIN, Dataset
from compgen.data.folder import is_folder, read_folder, write_folder
from compgen.data.named import USUALLY, Columns, looks_like_names
from compgen.data.tables import BLANK, SCAN, TOKEN, Placed, check_one_split, check_tokens, lines_of, without_blanks
from compgen.data.vocabulary import SPECIALS, why_not_data
from compgen.errors import DataError, tell
from compgen.files import STDOUT, atomic_path, writing
from compgen.record import forget_record

FOLDER = "folder"

_MARK = "\ufeff"  # of byte order
SENTENCE_TOKEN = r"[^ \t\r\n]+"  # of text: what KenLM takes for a word
_SENTENCE_BLANK = r"[ \t\r\n]"
_TSV_LINE = "source TAB target, or source TAB target TAB split"
_SCAN_LINE = "'IN: source tokens OUT: target tokens'"


def read_dataset(
    path: str | Path,
    format: str | None = None,
    answers: bool = False,
    columns: Columns = USUALLY,
    content: bytes | None = None,
    blanks: bool = False,
) -> Dataset:
    """Read the dataset in a file or folder, or on standard input if `path` is `-`.

    Without `format` the suffix decides; for standard input and other pipes, the first line that is not blank. Where a
    format has no splits, all examples are in `train`. With `answers`, targets are a predictor's and may be empty.
    `columns` names those of a table that hold sources and targets, or sources only. `content` is what was read at
    `path`, if it was. With `blanks`, examples may have no token; they are left out, and a Remark says how many.

    Raises:
        DataError: there is no such file, it is not as the format wants it, or it has no examples to learn from.
    """
    asked = format
    if format is not None:
        _check_format(format)
    elif not is_pipe(path):
        format = format_of(path)  # before reading, so that a wrong suffix is reported at once
    name = name_of(path)
    if format == FOLDER:
        found = parquet.of_frame(read_folder(path), name, columns)
    else:
        if content is None:
            content = read_bytes(path, None if format is None else format not in _WHOLE)
        if format is None:
            format = guess(content, columns)
            if format == "text":
                records.tell_maybe_csv(_first_line(content).decode("utf-8", "replace"), name)
        elif asked is None and format == "text" and _looks_like_scan(content):
            format = "scan"
        _check_named(columns, format, name)
        found = FORMATS[format].read(content, name, columns)
    found = _told(found, format, content, name, blanks)
    if found.frame.is_empty():
        raise DataError(f"{name}: no examples: {_why_none(format, content or b'')}")
    _check_examples(found, f"{name}, {'row' if format in ('parquet', FOLDER) else 'line'}", answers)
    return Dataset(found.frame)


def write_dataset(
    dataset: Dataset, path: str | Path, format: str | None = None, record: dict[str, Any] | None = None
) -> None:
    """Write a dataset to a file or folder, whole or not at all, or to standard output if `path` is `-`.

    Without `format` the suffix decides (`.txt` is `scan` unless all are sentences); on standard output it is `jsonl`.
    A path without a suffix is a folder, whose card has the `record`: what the dataset was made with. A file name that
    ends in `.gz` is compressed. `tsv` and `csv` name the splits only if there are others than `train`. Further columns
    are written to `jsonl`, `json`, `csv`, `parquet` and folders; the other formats have no place for them (see
    `remark_left_out`). A record beside the file, of what was there before (`compgen.record`), is deleted.

    Raises:
        DataError: the format cannot hold the data, e.g. a token with a space in `tsv`, several splits in `scan`.
        UserError: the file cannot be written.
    """
    format = _format_to_write(dataset, path) if format is None else format
    _check_format(format)
    if format == FOLDER:
        write_folder(dataset, Path(path), record)
        forget_record(Path(path))
        return
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
    forget_record(Path(path))


def remark_left_out(dataset: Dataset, path: str | Path, format: str | None = None) -> None:
    """Issue a Remark that names the further columns for which a file's format, as in `write_dataset`, has no place."""
    format = _format_to_write(dataset, path) if format is None else format
    further = [column for column in dataset.frame.columns if column not in COLUMNS]
    if further and format != FOLDER and not FORMATS[format].further:
        left_out = f"left out, as {format} has no place for it: {', '.join(further):.200}; .jsonl keeps it"
        tell(f"{path}: {left_out}")


def _format_to_write(dataset: Dataset, path: str | Path) -> str:
    """Return the format in which `write_dataset` writes where none is named."""
    format = "jsonl" if str(path) == "-" else format_of(path)
    return "scan" if format == "text" and not _may_be_text(dataset) else format


def format_of(path: str | Path) -> str:
    """Return the format that a file's suffix stands for, with or without `.gz`; a folder's is `folder`."""
    suffix = suffix_of(path)
    formats = {kind.suffix: format for format, kind in FORMATS.items()}
    if suffix in formats:
        return formats[suffix]
    if is_folder(path):
        return FOLDER
    if suffix in (".pt", ".grammar"):
        raise DataError(f"{path}: a model, expected data")
    known = ", ".join(f"{end} ({format})" for end, format in formats.items())
    found = f"the suffix {suffix!r}" if suffix else "no suffix"
    raise DataError(f"{path}: found {found}, expected one that tells the format: {known}; each may end in .gz")


def _check_format(format: str) -> None:
    if format not in NAMES:
        raise DataError(f"unknown format {format!r}: known formats are {', '.join(NAMES)}")


def _check_named(columns: Columns, format: str, name: str) -> None:
    """Raise DataError if columns are named in a format that has none."""
    if columns.given and format in ("scan", "text"):
        raise DataError(f"{name}: {format} has no columns with names: leave out --{next(iter(columns.given))}")


def _told(found: Placed, format: str, content: bytes | None, name: str, blanks: bool) -> Placed:
    """Say how many blank lines, or examples without a token, are left out; those that end a text, only of answers."""
    if format == "text" and content and len(found.places):
        last = content.removesuffix(b"\n").count(b"\n") + 1 if blanks else found.places[-1]
        if blank := last - len(found.places):
            what = f"{blank:,} blank line{'s' * (blank > 1)} left out: lines of the output will not correspond to its"
            kept = ": predict to .jsonl or .tsv, where empty answers are kept" if blanks else ""
            tell(f"{name}: {what} lines{kept}")
    return without_blanks(found, content if format in ("tsv", "jsonl") else None, name) if blanks else found


def _why_none(format: str | None, content: bytes) -> str:
    """Say why there are no examples."""
    if format in ("csv", "tsv") and content.strip():
        return "found one line, which is read as the names of the columns"
    return "the file is empty"


def is_pipe(path: str | Path) -> bool:
    """Whether the data come from standard input or a named pipe, e.g. the shell's `<(...)`: these have no suffix."""
    return str(path) == "-" or Path(path).is_fifo()


def guess(content: bytes, columns: Columns = USUALLY) -> str:
    """Return the format that the beginning of `content` looks like, if a table with these names of columns."""
    if content.startswith(PARQUET_MAGIC):
        return "parquet"
    if _looks_like_scan(content):
        return "scan"
    first = _first_line(content)
    if first.lstrip().startswith(b"{"):
        return "jsonl"
    if looks_like_json(content):
        return "json"
    if b"\t" in first:
        return "tsv"
    return "csv" if records.looks_like_csv(first.decode("utf-8", "replace"), columns) else "text"


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


def _check_examples(found: Placed, place: str, answers: bool) -> None:
    """Raise DataError unless all examples have both sides or all are sentences, of tokens that data may have."""
    frame, places = found
    empty = {side: frame[side].list.len() == 0 for side in ("source", "target")}
    sentences = bool(empty["target"].all())  # may have special symbols, such as an arrow: only networks refuse them
    if answers or sentences:
        del empty["target"]
    for side, rows in empty.items():
        if rows.any():
            number = places[rows.arg_true()[0]]
            expected = "tokens" if answers else "tokens on both sides"
            raise DataError(f"{place} {number}: found an empty {side}, expected {expected}")
    for side in ("source", "target"):
        for token in frame[side].explode().drop_nulls().unique(maintain_order=True):
            if why := "" if sentences and not answers and token in SPECIALS else why_not_data(token):
                number = places.filter(frame[side].list.contains(token))[0]
                raise DataError(f"{place} {number}: found the token {shown(token)}, which {why}")


# Readers


def _read_tsv(content: bytes, name: str, columns: Columns) -> Placed:
    lines = lines_of(content, name)
    first = lines["line"].head(1).str.split("\t").explode().to_list()
    if columns.given or columns.names(first):
        if not columns.given:
            number = lines["number"][0]
            tell(f"{name}: read line {number} as the names of the columns")
        return records.read_headed(lines, name, columns)
    if unimorph.looks_like_words(lines["line"]):
        tell(f"{name}: read as words, lemma TAB form TAB tags (UniMorph)")
        return unimorph.read_examples(content, name)
    unimorph.check_tagged(lines, name)
    lines = lines.with_columns(fields=pl.col("line").str.split("\t"))
    for number, line, _ in lines.filter(~pl.col("fields").list.len().is_between(2, 3)).head(1).iter_rows():
        tabs = line.count("\t")
        raise malformed(name, number, f"{f'{tabs} TABs' if tabs else 'no TAB'} in {shown(line)}", _TSV_LINE)
    split = pl.col("fields").list.get(2, null_on_oob=True).str.strip_chars()
    frame = lines.select(
        source=pl.col("fields").list.get(0).str.extract_all(TOKEN),
        target=pl.col("fields").list.get(1).str.extract_all(TOKEN),
        split=split.replace([None, ""], TRAIN),
    )
    return Placed(frame, lines["number"])


def _read_scan(content: bytes, name: str, _columns: Columns) -> Placed:
    lines = lines_of(content, name).with_columns(
        source=pl.col("line").str.extract(SCAN, 1).str.extract_all(TOKEN),
        target=pl.col("line").str.extract(SCAN, 2).str.extract_all(TOKEN),
        split=pl.lit(TRAIN),
    )
    good = pl.col("source").is_not_null() & ~pl.col("target").list.contains("OUT:")
    for number, line in lines.filter(~good).select("number", "line").head(1).iter_rows():
        raise malformed(name, number, shown(line), _SCAN_LINE)
    return Placed(lines.select(COLUMNS), lines["number"])


def _read_text(content: bytes, name: str, _columns: Columns) -> Placed:
    lines = lines_of(content, name).with_columns(
        source=pl.col("line").str.extract_all(SENTENCE_TOKEN), target=pl.lit([], dtype=TOKENS), split=pl.lit(TRAIN)
    )
    lines = lines.filter(pl.col("source").list.len() > 0)
    return Placed(lines.select(COLUMNS), lines["number"])


# Writers


def _text(dataset: Dataset, line: pl.Expr) -> bytes:
    text = "".join(f"{one}\n" for one in dataset.frame.select(line).to_series())
    # A first token may begin with what readers take for a byte order mark, and drop: they drop one.
    return (_MARK + text if text.startswith(_MARK) else text).encode()


def _joined(column: str) -> pl.Expr:
    return pl.col(column).list.join(" ")


def _write_tsv(dataset: Dataset, name: str) -> bytes:
    check_tokens(dataset, BLANK, f"{name}: tsv holds no space in a token and no empty token")
    fields = [_joined("source"), _joined("target")]
    if set(dataset.splits) - {TRAIN}:
        for split in dataset.splits:
            if not split or split != split.strip() or any(character in split for character in "\t\r\n"):
                raise DataError(f"{name}: tsv cannot hold the split name {split!r}; write parquet instead")
        fields.append(pl.col("split"))
    first = dataset.frame.head(1).select(field.alias(str(at)) for at, field in enumerate(fields)).rows()
    if first and looks_like_names(first[0]):
        found = " TAB ".join(first[0])
        raise DataError(f"{name}: the first example, {found}, would be read as names of columns; write jsonl instead")
    return _text(dataset, pl.concat_str(fields, separator="\t"))


def _write_scan(dataset: Dataset, name: str) -> bytes:
    check_tokens(dataset, rf"{BLANK}|^OUT:$", f"{name}: scan holds no space in a token, no empty token, no 'OUT:'")
    check_one_split(dataset, f"{name}: scan")
    # An empty side leaves one space, not two, so that nobody takes the second for a token.
    sides = [
        pl.when(pl.col(column).list.len() > 0).then(pl.lit(" ") + _joined(column)).otherwise(pl.lit(""))
        for column in ("source", "target")
    ]
    return _text(dataset, pl.concat_str(pl.lit("IN:"), sides[0], pl.lit(" OUT:"), sides[1]))


def _write_text(dataset: Dataset, name: str) -> bytes:
    check_tokens(dataset, _SENTENCE_BLANK, f"{name}: text holds no space in a token and no empty token")
    check_one_split(dataset, f"{name}: text")
    bad = dataset.frame.filter((pl.col("source").list.len() == 0) | (pl.col("target").list.len() > 0))
    if bad.height:
        found = "an empty sentence" if bad["source"].list.len()[0] == 0 else "an example with a target"
        raise DataError(f"{name}: text holds sentences, one a line: found {found}; write tsv")
    return _text(dataset, _joined("source"))


class _Format(NamedTuple):
    suffix: str
    read: Callable[[bytes, str, Columns], Placed]
    write: Callable[[Dataset, str], bytes]
    further: bool  # columns beside source, target and split are kept


FORMATS = {
    "tsv": _Format(".tsv", _read_tsv, _write_tsv, False),
    "jsonl": _Format(".jsonl", records.read_jsonl, records.write_jsonl, True),
    "json": _Format(".json", records.read_json, records.write_json, True),
    "csv": _Format(".csv", records.read_csv, records.write_csv, True),
    "scan": _Format(".scan", _read_scan, _write_scan, False),
    "text": _Format(".txt", _read_text, _write_text, False),
    "unimorph": _Format(".unimorph", unimorph.read_examples, unimorph.write, False),
    "parquet": _Format(".parquet", parquet.read, parquet.write, True),
}
NAMES = (*FORMATS, FOLDER)
_WHOLE = ("parquet", "json")  # formats whose lines may be long
