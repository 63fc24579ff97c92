"""Readers of tables with named columns: JSON lines, a list of JSON objects, CSV, and TSV with a header line.

Each line, object or row is a record, a mapping of names to values, with its line number. `named.Columns` says which two
hold source and target; others are kept, see `columns`. Columns `lemma`, `form` and `tags` are words, see `unimorph`.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from compgen.data.columns import for_json, from_json
from compgen.data.content import LONGEST_LINE, decoded, malformed, shown
from compgen.data.examples import COLUMNS, SCHEMA, SIDES, TRAIN, Dataset
from compgen.data.named import Columns, tell_unread_split
from compgen.data.ragged import lists_of
from compgen.data.tables import BLANK, Placed, check_tokens, lines_of, tell_joined
from compgen.data.unimorph import in_cells
from compgen.errors import DataError, tell

csv.field_size_limit(LONGEST_LINE)  # for this whole process, there is no other way
MOST_KEYS = 1_000  # besides those of COLUMNS, in all records of a file: each becomes a column
EXCEL = "sep="  # what a first line begins with that tells Excel the separator
SEPARATORS = ",;\t"
_STRING = r'"[^"\\\x00-\x1f]*"'
_STRINGS = rf"\[(?:{_STRING}(?:, ?{_STRING})*)?\]"
# Records as programs write them, with lists of tokens and no escapes. Polars parses these as they are meant.
_PLAIN_RECORD = rf'^\{{"source": ?{_STRINGS}, ?"target": ?{_STRINGS}(?:, ?"split": ?{_STRING})?\}}$'
_RECORD = '{"source": ..., "target": ...}, each a list of tokens or a string, and perhaps a string "split"'
_LIST = f"a list of objects: [{_RECORD[:30]}, ...]"
_GAP = re.compile(r"[\s,]*")

Record = tuple[int, dict[str, Any]]  # with the number of its line
Row = tuple[int, list[str]]


def read_jsonl(content: bytes, name: str, columns: Columns) -> Placed:
    """Read a JSON object a line."""
    lines = lines_of(content, name)
    if not columns.given and lines["line"].str.contains(_PLAIN_RECORD).all():
        # Four times as fast as the loop below, but Polars takes numbers for strings and knows no line numbers.
        frame = lines["line"].str.json_decode(pl.Struct(SCHEMA)).struct.unnest()
        return Placed(frame.with_columns(pl.col("split").str.strip_chars().replace([None, ""], TRAIN)), lines["number"])
    found = ((number, _object_in(name, number, line)) for number, line in lines.iter_rows() if line.strip())
    return _placed(found, name, columns)


def read_json(content: bytes, name: str, columns: Columns) -> Placed:
    """Read a list of JSON objects."""
    return _placed(_listed(decoded(content, name), name), name, columns)


def read_csv(content: bytes, name: str, columns: Columns) -> Placed:
    """Read rows of fields, in quotes where need be, below a line with the names of the columns."""
    text = decoded(content, name)
    if text.startswith(EXCEL):
        raise malformed(name, 1, f"a line {EXCEL}, for Excel", "the names of the columns: delete that line")
    return _headed(_rows(text, name), name, columns)


def read_headed(lines: pl.DataFrame, name: str, columns: Columns) -> Placed:
    """Read lines of fields separated by TABs, below a line with the names of the columns."""
    return _headed(lines.select("number", pl.col("line").str.split("\t")).iter_rows(), name, columns)


def write_json(dataset: Dataset, name: str) -> bytes:
    """Write a list of objects, one a line."""
    return b"[\n" + b",\n".join(write_jsonl(dataset, name).rstrip(b"\n").split(b"\n")) + b"\n]\n"


def write_jsonl(dataset: Dataset, name: str) -> bytes:
    """Write an object a line."""
    return _for_json(dataset, name).write_ndjson().encode()


def write_csv(dataset: Dataset, name: str) -> bytes:
    """Write fields between commas, in quotes where need be; spaces between tokens and values of lists."""
    check_tokens(dataset, BLANK, f"{name}: csv holds no space in a token and no empty token")
    frame = _for_json(dataset, name)
    if set(dataset.splits) <= {TRAIN}:
        frame = frame.drop("split")
    elif (split := next((split for split in dataset.splits if not split or split != split.strip()), None)) is not None:
        raise DataError(f"{name}: csv cannot hold the split name {split!r}; write parquet instead")
    lists = [column for column, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join(" ")).write_csv().encode()


def names_of_first(text: str) -> list[str]:
    """Return the names in the first line of a table, or the keys of the first object of JSON."""
    text = text.strip()
    if not text.startswith(("{", "[")):
        return re.split(r"[\t,;]", text.partition("\n")[0])
    try:
        found, _ = JSON.raw_decode(text.removeprefix("[").lstrip())
    except (ValueError, KeyError, RecursionError):
        return []  # an error that names the line comes with reading
    return [*found] if isinstance(found, dict) else []


def looks_like_csv(first: str, columns: Columns) -> bool:
    """Whether a first line has names of columns between commas or semicolons, usual ones or those that are given."""
    given = {*columns.given.values()}
    try:
        rows = [row for sign in ",;" for row in csv.reader([first], delimiter=sign)]
        return first.startswith(EXCEL) or any(
            (len(row) > 1 and columns.names(row)) or columns.words(row) or (given and given <= {*map(str.strip, row)})
            for row in rows
        )
    except csv.Error:
        return False


def tell_maybe_csv(first: str, name: str) -> None:
    """Issue a Remark on the first line of a pipe, read as a sentence, if it may be one of CSV."""
    if re.search(r"[,;]\S", first) and not first.startswith("IN:"):
        said = "read as sentences, one a line; if this is CSV, save it as a .csv file"
        tell(f"{name}: {said}")


def separator(text: str) -> str:
    """Return what separates the fields of CSV: the one of SEPARATORS that is in the first line, outside of quotes.

    Of several, as in `runs;run;V,PRS`, it is the one that is equally often in the most lines, or else comes first.
    """
    first = _bare(text.lstrip().partition("\n")[0])
    signs: list[str] = sorted({*SEPARATORS} & {*first}, key=first.index) or [SEPARATORS[0]]
    lines = _bare(text).split("\n") if len(signs) > 1 else []

    def alike(sign: str) -> int:
        return max(Counter(line.count(sign) for line in lines if sign in line).values(), default=0)

    return max(signs, key=alike)


def _bare(text: str) -> str:
    """Return a text without what is in quotes."""
    return re.sub(r'"[^"]*"', "", text)


def _for_json(dataset: Dataset, name: str) -> pl.DataFrame:
    further = [for_json(column, name) for column in dataset.frame.drop(COLUMNS)]
    return dataset.frame.select(*COLUMNS, *further)


def _object_in(name: str, number: int, line: str) -> dict[str, Any]:
    """Return the object in a line of JSON."""
    try:
        return _checked(name, number, line, JSON.decode(line))
    except KeyError as error:
        raise twice(f"{name}, line {number}", error) from None
    except (ValueError, RecursionError):
        raise malformed(name, number, f"{shown(line)}, which is no JSON in UTF-8", f"on one line {_RECORD}") from None


def _listed(text: str, name: str) -> Iterator[Record]:
    """Yield the objects of a list, each with the number of the line on which it begins."""
    at, number = len(text) - len(text.lstrip()), 1
    if text[at : at + 1] not in ("[", ""):
        raise malformed(name, text.count("\n", 0, at) + 1, shown(text[at:].partition("\n")[0]), _LIST)
    at, past = min(at + 1, len(text)), 0
    while text[(at := _gap(text, at)) : at + 1] not in ("]", ""):
        number, past = number + text.count("\n", past, at), at
        try:
            found, end = JSON.raw_decode(text, at)
            yield number, _checked(name, number, text[at:end], found)
        except KeyError as error:
            raise twice(f"{name}, line {number}", error) from None
        except (ValueError, RecursionError):
            raise malformed(name, number, f"{shown(text[at : at + 100])}, which is no JSON in UTF-8", _LIST) from None
        at = end
    if text.strip() and text[at:].strip() != "]":
        raise malformed(
            name, text.count("\n") + 1, shown(text[at : at + 100] or "the end of the file"), "one list, with its end ]"
        )


def _gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    assert found is not None  # it matches anything
    return found.end()


def _checked(name: str, number: int, text: str, found: Any) -> dict[str, Any]:
    if "\\u" in text:
        # JSON can spell half of a surrogate pair, which no text in UTF-8 and so no frame can hold.
        json.dumps(found, ensure_ascii=False).encode()
    if not isinstance(found, dict):
        raise malformed(name, number, f"{shown(text)}, not an object", _RECORD)
    return found


def twice(place: str, error: KeyError) -> DataError:
    """Return the error for an object of JSON in which a key is there twice, as `JSON` found it."""
    return DataError(f"{place}: found the key {shown(error.args[0])} twice in an object, expected each key once")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values; raise KeyError for a key that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError(repeated(key for key, _ in pairs))
    return found


def repeated(names: Iterable[str]) -> str | None:
    """Return the first of some names that is there twice, None if there is none."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _integer(text: str) -> int | str:
    """Return an integer; as text, as `columns` keeps long ones, if it has more digits than Python reads."""
    try:
        return int(text)
    except ValueError:
        return text


JSON = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def _rows(text: str, name: str) -> Iterator[Row]:
    """Yield the rows of CSV that are not blank, each with the number of the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text), strict=True, skipinitialspace=True)
    number = 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield number, [field.strip() for field in row]
            number = reader.line_num + 1
    except csv.Error as error:
        raise malformed(
            name, number, f"a row that is no CSV ({error})", "quotes in pairs, doubled within quotes"
        ) from None


def _headed(rows: Iterator[Row], name: str, columns: Columns) -> Placed:
    """Return rows as examples; the first one is the names of the columns."""
    number, first = next(rows, (1, []))
    names = [field.strip() for field in first]
    if (again := repeated(names)) is not None:
        raise DataError(f"{name}: found two columns with the name {again!r}, expected names that differ")
    return _placed(_named(names, rows, name), name, columns, number)


def _named(names: Sequence[str], rows: Iterable[Row], name: str) -> Iterator[Record]:
    """Yield the rows of a table as records."""
    for number, fields in rows:
        if len(fields) != len(names):
            columns = " ".join(", ".join(names).split())  # a name in quotes may have a line end
            found = f"{len(fields)} fields in {shown(' | '.join(fields))}"
            raise malformed(name, number, found, f"{len(names)}, as the first line names: {columns:.80}")
        yield number, dict(zip(names, fields, strict=True))


def _placed(records: Iterable[Record], name: str, columns: Columns, header: int | None = None) -> Placed:
    """Return records as examples; `header` is the number of the line with their names, if there is one.

    Raises:
        DataError: a record has no source or no target, or one that is neither a list of tokens nor a string; or there
            are too many keys.
    """
    numbers: list[int] = []
    found: list[dict[str, Any]] = []
    joined = 0
    further: dict[str, None] = {}  # keys, in the order of their first occurrence
    words, names, called = tuple[str, ...](), dict[str, str](), dict[str, str]()
    empty: dict[str, Any] = {} if "target" in columns.sides else {"target": []}
    for number, given in records:
        if not numbers:
            words, names, called = _naming(list(given), f"{name}, line {header or number}", columns)
        record = {names.get(key, key): value for key, value in given.items() if key not in words} | empty
        if words:
            record |= word(f"{name}, line {number}", [given.get(column) for column in words])
        further |= dict.fromkeys(key for key in record if key not in COLUMNS)
        if len(further) > MOST_KEYS:
            raise malformed(name, number, f"further key {len(further):,}", f"at most {MOST_KEYS:,} in all lines")
        joined += any(has_lines(record.get(side)) for side in SIDES)
        _check_record(name, number, record, given, called)
        numbers.append(number)
        found.append(record)
    tell_joined(joined, name)
    return Placed(_frame(found, further), pl.Series(numbers, dtype=pl.Int64))


def has_lines(side: object) -> bool:
    """Whether a side is a text of several lines."""
    return isinstance(side, str) and "\n" in side.strip()


def _frame(records: list[dict[str, Any]], further: Iterable[str]) -> pl.DataFrame:
    """Return checked records as a frame, with further keys as columns."""
    sides = {side: lists_of([record[side] for record in records], pl.String()) for side in SIDES}
    frame = pl.DataFrame(sides | {"split": [record["split"] for record in records]}, schema_overrides=SCHEMA)
    return frame.with_columns(from_json(key, [record.get(key) for record in records]) for key in further)


def _naming(keys: list[str], place: str, columns: Columns) -> tuple[tuple[str, ...], dict[str, str], dict[str, str]]:
    """Return keys of lemmas, forms and tags, if there are such; what other keys become; and which become the sides.

    The keys of the first record decide.
    """
    tell_unread_split(keys, place)
    words = columns.words(keys) or ()
    names = {} if words else columns.renaming(keys, place)
    called = {side: key for key, side in names.items() if side in columns.sides}
    return words, {side: f"{side}_column" for side in SIDES} | names, called  # later records may have more keys


def word(place: str, cells: Sequence[Any]) -> dict[str, list[str]]:
    """Return the sides of an example of inflection, as `in_cells`; errors begin with the place."""
    try:
        return dict(zip(SIDES, in_cells(cells), strict=True))
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def _record(called: dict[str, str]) -> str:
    """What a record should be, by the names that a file has for the sides."""
    return re.sub(r'"(source|target)"', lambda side: f'"{called.get(side[1], side[1])}"', _RECORD)


def _check_record(
    name: str, number: int, record: dict[str, Any], given: dict[str, Any], called: dict[str, str]
) -> None:
    """See that a record has two sides, which become lists of tokens, and a split; the file has them `called` so."""
    if "source" not in record or "target" not in record:
        raise malformed(name, number, f"the keys {', '.join(map(shown, [*given][:9])) or '(none)'}", _record(called))
    split = record.get("split")
    if not isinstance(split, str | None):
        raise malformed(name, number, f'"split": {shown(split)}', _record(called))
    record["split"] = (split or "").strip() or TRAIN  # programs write null, or nothing, where a table has no value
    for side in ("source", "target"):
        value = record[side]
        if isinstance(value, str):
            record[side] = value.split()
        elif not (isinstance(value, list) and all(isinstance(token, str) for token in value)):
            found = "null" if value is None else shown(value)
            raise malformed(name, number, f'"{called.get(side, side)}": {found}', _record(called))
