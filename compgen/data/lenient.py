"""Reads a table as it was meant: lines that the readers of `formats` refuse or misread are findings."""

import io
import json
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl

from compgen.data.catalog import load
from compgen.data.checks import ID, Finding, ids, naming, rows_of, strange_first
from compgen.data.columns import for_json
from compgen.data.content import check_line_ends, name_of, read_bytes, shown, suffix_of
from compgen.data.examples import COLUMNS, SIDES, TRAIN, Dataset
from compgen.data.fields import NAME, READERS, Fields
from compgen.data.folder import read_folder
from compgen.data.formats import FOLDER, format_of, guess
from compgen.data.named import (
    ALONE,
    BESIDE,
    PARTS,
    TAGS,
    USUAL,
    Columns,
    beside_words,
    looks_like_names,
    plain,
    unread_split,
)
from compgen.data.records import has_lines, repeated, separator, twice
from compgen.data.tables import lines_in
from compgen.data.unimorph import BLANK, check_order, example, in_cells, looks_like_words, numbered, untagged
from compgen.errors import DataError
from compgen.files import reading

Line = TypeVar("Line")

KNOWN = "a known data set"
NO_TEXT, SAVE = "bytes that are no UTF-8", "save it as UTF-8: of Latin-1, iconv -f latin1 -t utf-8 FILE > NEW"
RENAME = "rename the column, or all examples are of one split"
WORDS = "lemma TAB form TAB tags"
_SCHEMA = {"number": pl.Int64, "source": pl.String, "target": pl.String, "split": pl.String, "rest": pl.String}


class Table(NamedTuple):
    """A table as it was meant.

    Attributes:
        format: its format.
        meaning: what its lines were taken for.
        rows: see `checks`; and `rest`, further columns as JSON, or null.
        findings: about lines that are not in `rows`, and about the table's form.
        place: what the numbers count: line or example.
        naming: options that name the columns as is likely meant, where the table has no usual names; or empty.
        dataset: the same as all commands read it, if that is how it was read here.
    """

    format: str
    meaning: str
    rows: pl.DataFrame
    findings: list[Finding]
    place: str = "line"
    naming: str = ""
    dataset: Dataset | None = None


def read_table(spec: str, columns: Columns, content: bytes | None = None) -> Table:
    """Read a table as far as it can be read. Of a pipe, which can be read but once, `content` is what it held.

    Raises:
        DataError: there is no such file, no line of it can be understood, or lists of JSON have one name.
    """
    path = Path(spec)
    with reading(path):
        file = path.is_file()
    if content is None and not file:
        return _strictly(spec, columns, FOLDER if path.is_dir() else KNOWN)
    # Words have no suffix.
    format = guess(content, columns) if content is not None else format_of(spec) if suffix_of(spec) else "unimorph"
    if format == "parquet" or (format == "unimorph" and columns.given):
        return _strictly(spec, columns, format, content)
    if content is None:
        content = read_bytes(spec, lines=format != "json")
    return _of_lines(spec, format, columns, content)


def _of_lines(spec: str, format: str, columns: Columns, content: bytes) -> Table:
    """Read the content of a file, or of a pipe, as far as it can be read."""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        unread = Finding("error", NO_TEXT, [content.count(b"\n", 0, error.start) + 1], SAVE)
        table = _of_lines(spec, format, columns, _as_latin1(content))
        return table._replace(findings=[unread, *table.findings])
    if format == "text" and text.lstrip().startswith("IN:"):
        format = "scan"
    if format in _OF_LINES:
        check_line_ends(content, name_of(spec))
    if format == "unimorph" or (format == "tsv" and not columns.given and _has_words(text)):
        words = _words(text, name_of(spec))
        return words if words.rows.height else _strictly(spec, columns, "unimorph", content)
    try:
        found = READERS[format](text)
    except KeyError as error:
        raise twice(name_of(spec), error) from None
    if format in _HEADED and found.rows:
        found = _in_columns(found, format, text, bool(columns.given))
    if not found.rows:
        return _strictly(spec, columns, format, content)  # whose message says why
    return _understood(format, found, columns, name_of(spec))


def _as_latin1(content: bytes) -> bytes:
    """Take bytes that are no UTF-8 for Latin-1, so that their letters stay apart, and none counts as lost before."""
    text = content.decode("utf-8", "surrogateescape")  # such bytes become U+DC80 to U+DCFF
    return re.sub("[\udc80-\udcff]", lambda byte: chr(ord(byte[0]) - 0xDC00), text).encode()


def _strictly(spec: str, columns: Columns, format: str, content: bytes | None = None) -> Table:
    """Read as every command does: for data without lines, or whose lines cannot be meant otherwise."""
    content = read_bytes(spec, lines=False) if format == "parquet" and content is None else content
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = load(spec, columns=columns, content=content, checked=True)
    meaning, unread = "columns " + ", ".join(dataset.frame.columns), list[Finding]()
    if format in ("parquet", FOLDER):
        names = read_folder(spec).columns if content is None else [*pl.read_parquet_schema(io.BytesIO(content))]
        meaning, unread = _meaning(names, columns, name_of(spec)), _unread_split(names)
    rest, lost = _further(dataset.frame.drop(COLUMNS), spec)
    sides = [pl.col(side).list.eval(pl.element().str.replace_all(r"\s", BLANK)) for side in SIDES]
    spaced = pl.any_horizontal(pl.col(side).list.eval(pl.element().str.contains(r"\s")).list.any() for side in SIDES)
    found = _spaced((dataset.frame.select(spaced).to_series().arg_true() + 1).to_list())
    rows = rows_of(Dataset(dataset.frame.with_columns(sides))).with_columns(pl.col("number").cast(pl.Int64), rest)
    return Table(
        format, WORDS if format == "unimorph" else meaning, rows, [*lost, *found, *unread], "example", dataset=dataset
    )


def _further(frame: pl.DataFrame, name: str) -> tuple[pl.Series, list[Finding]]:
    """Return further columns as `rest`, and what is lost of them."""
    kept, lost = [], []
    for column in frame:
        try:
            kept.append(for_json(column, name))
        except DataError:
            lost.append(f"{column.name!r} ({column.dtype})")
    texts = pl.DataFrame(kept).write_ndjson().removesuffix("\n").split("\n") if kept else [None] * frame.height
    what = f"columns that no text holds: {', '.join(lost)}"
    findings = [Finding("note", what, [], "--fix leaves them out")] if lost else []
    return pl.Series("rest", texts, dtype=pl.String), findings


def _spaced(numbers: list[int]) -> list[Finding]:
    """The finding for tokens of lists that have spaces in them, given their numbers; none if there are none."""
    what, advice = "a token with a space in it", f"--fix writes the space as {BLANK}, so that it stays one token"
    return [Finding("note", what, numbers, advice)] if numbers else []


def _has_words(text: str) -> bool:
    """Whether lines of TSV without a header are words, all or most of them; if only most are, some without tags."""
    lines = lines_in(text)["line"]
    if len(lines) and looks_like_names([field.strip() for field in lines[0].split("\t")]):
        return False
    return looks_like_words(lines) or bool(untagged(lines).any())


def _words(text: str, name: str) -> Table:
    """Lines of words; those that are none are findings, one for each thing that was expected of a line.

    Raises:
        DataError: the fields are in another order; lines that could be read would then not be words either.
    """
    check_order(numbered(text), name)
    return Table("unimorph", WORDS, *_read_words(numbered(text), example))


def _read_words(
    lines: Iterable[tuple[int, Line]], read: Callable[[Line], tuple[Any, ...]]
) -> tuple[pl.DataFrame, list[Finding]]:
    """Rows of what is a word, and findings of what is none; `read` gives both sides, and perhaps split and rest."""
    rows, wrong, apart = [], dict[str, list[tuple[int, str]]](), []
    for number, line in lines:
        apart += [number] * (not unicodedata.is_normalized("NFC", str(line)))
        try:
            source, target, *more = read(line)
        except DataError as error:
            expected = re.split(", expected |, which ", str(error))[-1]
            wrong.setdefault(expected, []).append((number, str(error)))
        else:
            rows.append((number, " ".join(source), " ".join(target), *more))
    what, advice = "accents stored apart from their letters", "all commands read, and write, words composed (NFC)"
    notes = [Finding("note", what, apart, advice)] if apart else []
    return _frame(rows), [*(_wrong_words(places) for places in wrong.values()), *notes]


def _wrong_words(places: list[tuple[int, str]]) -> Finding:
    """The finding for lines that are no words for one reason; places are their numbers and what is wrong in each."""
    what = places[0][1] + f" (line {places[0][0]}; the others alike)" * (len(places) > 1)
    return Finding("error", what, [number for number, _ in places], "mend it, or leave it out, as --fix does")


def _in_columns(found: Fields, format: str, text: str, given: bool) -> Fields:
    """Take names of columns from the first line, if it has them, and leave out lines of another width."""
    sign = separator(text) if format == "csv" else ""
    found = _even(_headed(found, given), f"{sign!r}, and quoted where they hold it" if sign else "one TAB each")
    if found.names or sign != "\t":
        return found
    tabs = Finding("warning", "TABs between the fields, and no names of columns", [], NAME)
    return found._replace(findings=[*found.findings, tabs])


def _headed(found: Fields, given: bool) -> Fields:
    """Take the first line for names of columns, if it looks like them, or if names are `given`."""
    first = [str(field).strip() for field in found.rows[0][1]]
    return found._replace(rows=found.rows[1:], names=first) if given or looks_like_names(first) else found


def _even(found: Fields, signs: str) -> Fields:
    """Leave out lines with another number of fields than most have; `signs` are what separates them, in words."""
    counts = Counter(len(fields) for _, fields in found.rows)
    width = len(found.names) if found.names else max(counts, key=lambda count: (counts[count], count), default=0)
    # A split may be left out, and sentences have one field.
    good = {width} | ({2, 3} if width in (2, 3) and not found.names else set())
    odd = [number for number, fields in found.rows if len(fields) not in good]
    what = f"another number of fields than {width}, as most lines have"
    findings = [Finding("error", what, odd, f"see that fields are separated by {signs}")] if odd else []
    rows = [row for row in found.rows if len(row[1]) in good]
    return Fields(rows, found.names, [*found.findings, *findings])


_BUNDLE = r"^\s*\p{Uppercase}[^\s;|,]*(?:\s*[;|,]\s*[\p{Uppercase}\d][^\s;|,]*)+\s*$"  # several tags of a word
_OF_LINES = ("jsonl", "scan", "text", "tsv")  # formats whose lines end with LF
_HEADED = ("csv", "tsv", "text")  # formats whose first line may have names of columns


def _understood(format: str, found: Fields, columns: Columns, name: str) -> Table:
    """Choose the columns of sources, targets and splits."""
    names, rows, empty = found.names, found.rows, Table(format, "", _frame([]), list(found.findings), found.place)
    if names is None:
        return _unnamed(empty, rows) if format == "csv" else _by_position(empty, rows)
    table, words = empty._replace(meaning=_meaning(names, columns, name)), columns.words(names)
    return _by_words(table, names, rows, words) if words else _by_names(table, names, rows, columns, name)


def _meaning(names: list[str], columns: Columns, name: str) -> str:
    """Say which of the columns `names` are read."""
    if words := columns.words(names):
        return "words, from the columns " + ", ".join(words)
    called = {meant: given for given, meant in _renamed(names, columns, name).items()}
    return f"columns {called['source']!r} and {called['target']!r}" + " and 'split'" * ("split" in called)


def _renamed(names: list[str], columns: Columns, name: str) -> dict[str, str]:
    """Return the name of each column in a dataset."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the meaning says it
        return columns.renaming(names, name)


def _by_words(table: Table, names: list[str], rows: list[tuple[int, list[Any]]], words: Sequence[str]) -> Table:
    """Take the columns `words` for lemmas, forms and tags."""
    places = [names.index(column) for column in words]
    beside = {beside_words(name): at for at, name in enumerate(names) if at not in places}
    at_split = beside.pop("split", None)

    def read(fields: list[Any]) -> tuple[Any, ...]:
        split = None if at_split is None else fields[at_split]
        if not isinstance(split, str | None):
            raise DataError(f'found "split": {shown(split)}, expected a string')
        return *in_cells([fields[place] for place in places]), split, _more(fields, beside)

    frame, wrong = _read_words(rows, read)
    return table._replace(rows=frame, findings=[*table.findings, *wrong, *_unread_split(names)])


def _unread_split(names: Sequence[str]) -> list[Finding]:
    """The finding for a column that may name splits and is not read as such, if there is one."""
    part = unread_split(names)
    return [Finding("warning", part, [], RENAME)] if part else []


def _more(fields: Sequence[Any], places: dict[str, int]) -> str | None:
    """Return the further columns of a row as JSON; None if there are none."""
    return json.dumps({name: fields[at] for name, at in places.items()}, ensure_ascii=False) if places else None


def _unnamed(table: Table, rows: list[tuple[int, list[Any]]]) -> Table:
    """Take nothing from a CSV without names of columns: any choice of source and target would be a guess."""
    first, (advice, options) = rows[0][1], _advice(rows)
    again = repeated(first)
    what = f"no usual names of columns in the first line: {', '.join(first):.80}"
    if again == "":
        what, advice = "the first line has several columns without a name", "delete them, or give them names"
    elif again is not None and any(plain(again) in usual for usual in USUAL.values()):
        what, advice = f"the first line has the name {again!r} twice", f"give one of them another name; {advice}"
    finding = Finding("error", what, [], advice)
    meaning = "fields without usual names"
    return table._replace(meaning=meaning, findings=[*table.findings, finding], naming=options)


def _advice(rows: list[tuple[int, list[Any]]]) -> tuple[str, str]:
    """What to do about a CSV whose first line has no usual names of columns, and options that may name them."""
    first = rows[0][1]
    advice = "write a first line of names, as: source,target (of words: lemma,form,tags)"
    usable = [name for name in first if plain(name) not in (*BESIDE, *PARTS)]
    columns = {name: _column(rows[1:], at) for at, name in enumerate(first)}
    tagged = len(usable) > 2 and any(2 * columns[name].str.contains(_BUNDLE).sum() > len(rows) for name in usable)
    if tagged or any(plain(name) in TAGS for name in usable):
        return f"{advice}; if these are names of columns of words, call them lemma, form and tags", ""
    if len(usable) > 1 and len({*first}) == len(first):
        sides = [name for name in usable if _may_be_side(columns[name])]
        options = naming(*dict.fromkeys(sides + usable))
        return f"{advice}; if these are names, say which are meant, as: {options}", options
    return f"{advice}; {ALONE}" if len(usable) == 1 else advice, ""


def _column(rows: list[tuple[int, list[Any]]], at: int) -> pl.Series:
    return pl.Series([fields[at] for _, fields in rows if at < len(fields)], dtype=pl.String)


def _may_be_side(texts: pl.Series) -> bool:
    """Whether a column is neither ids nor the same in all rows."""
    return texts.n_unique() > 1 and not texts.str.contains(ID).all()


def _by_position(table: Table, rows: list[tuple[int, list[Any]]]) -> Table:
    """Take the first columns for source, target and split, but for ids before them."""
    width, findings = max(len(fields) for _, fields in rows), list(table.findings)
    if width == 1 and table.format == "tsv":
        lines, advice = [row[0] for row in rows], "write a TAB between them; a file of sentences is .txt"
        findings.append(Finding("error", "no TAB between source and target", lines, advice))
        return table._replace(meaning="one column", findings=findings)
    first = 1 if width > 2 and _has_ids(rows) else 0
    if first:
        what = "the first column is ids: commands take it for sources, and the targets for names of splits"
        findings.append(Finding("warning", what, [], "leave the ids out; --fix does"))
        number, names = rows[0]
        if not re.search(ID, names[0]):  # all others are ids
            what = f"the first line ({' | '.join(names)}) is names of columns"
            findings.append(Finding("warning", what, [number], f"delete it; --fix does; or say {naming(*names[1:])}"))
            rows = rows[1:]
    findings += _unread_fields(width - first)
    order = range(first, min(width, first + 3))
    meaning = "id TAB " * first + " TAB ".join(COLUMNS[: len(order)]) if width > 1 else "sentences, one a line"
    frame = _frame([(number, *(fields[at] if at < len(fields) else None for at in order)) for number, fields in rows])
    if table.format == "tsv" and (strange := strange_first(frame, rows[0][1][first:])):
        findings.append(strange)
    return table._replace(meaning=meaning, rows=frame, findings=findings)


def _unread_fields(width: int) -> list[Finding]:
    """The finding for lines with more fields than source, target and split, if they have."""
    what, advice = f"{width} fields, of which the first three are read", "leave the others out; --fix does"
    return [Finding("error", what, [], advice)] if width > len(COLUMNS) else []


def _has_ids(rows: list[tuple[int, list[Any]]]) -> bool:
    first = pl.Series([fields[0] for _, fields in rows], dtype=pl.String)
    third = pl.Series([fields[2] if len(fields) > 2 else "" for _, fields in rows], dtype=pl.String)
    return ids(first, third)


def _by_names(table: Table, names: list[str], rows: list[tuple[int, list[Any]]], columns: Columns, name: str) -> Table:
    renamed = _renamed(names, columns, name)
    place = {renamed[given]: at for at, given in enumerate(names)}
    sides, at_split = [place["source"], place["target"]], place.get("split")
    rest = {key: at for key, at in place.items() if key not in COLUMNS}
    picked, bad, unnamed, spaced, broken = [], [], list[int](), list[int](), list[int]()
    for number, fields in rows:
        texts = [_text(fields[at]) for at in sides]
        split = None if at_split is None else fields[at_split]
        if None in texts:
            bad.append(number)
            continue
        if not isinstance(split, str | None):
            unnamed.append(number)
            continue
        spaced += [number] * any(_is_spaced(fields[at]) for at in sides)
        broken += [number] * any(has_lines(fields[at]) for at in sides)
        picked.append((number, *texts, split, _more(fields, rest)))
    what = "a side that is missing, or neither a string nor a list of strings"
    advice = "where lines or indentation matter, as in code or comments, write them as tokens of their own"
    wrong = (
        Finding("error", what, bad, "mend it, or leave it out"),
        Finding("error", "a split that is no string", unnamed, 'write its name, as "split": "train"'),
        *_spaced(spaced),
        Finding("note", "a side of several lines, read as one: line ends are spaces", broken, advice),
    )
    findings = [*table.findings, *(one for one in wrong if one.lines), *_unread_split(names)]
    return table._replace(rows=_frame(picked), findings=findings)


def _is_spaced(side: Any) -> bool:
    """Whether a side is a list of which a token has a space in it."""
    return isinstance(side, list) and any(isinstance(token, str) and re.search(r"\s", token) for token in side)


def _text(value: Any) -> str | None:
    """A side as text; a space within a token of a list is written as in words."""
    if isinstance(value, list) and all(isinstance(token, str) for token in value):
        return " ".join(re.sub(r"\s", BLANK, token) for token in value)
    return value if isinstance(value, str) else None


def _frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows of number, source, and perhaps target, split and rest, as a frame."""
    padded = [(*row, *[None] * (len(_SCHEMA) - len(row))) for row in rows]
    frame = pl.DataFrame(padded, schema=_SCHEMA, orient="row")
    # Spaces between tokens are one in number, and none around a side; no-break spaces are a finding, and stay.
    sides = [
        pl.col(side).fill_null("").str.replace_all(r"[ \t\r\n]+", " ").str.strip_chars(" ") for side in COLUMNS[:2]
    ]
    return frame.with_columns(*sides, split=pl.col("split").str.strip_chars().replace([None, ""], TRAIN))
