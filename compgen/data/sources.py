"""Sources to predict from, read a piece at a time, so that a pipe is answered soon and a long file needs no memory.

    text      source tokens separated by spaces, one source a line; also `IN: source OUT: target`, as SCAN is published
    tsv       source TAB anything
    jsonl     {"source": ...}, a list of tokens or a string
    unimorph  lemma TAB tags, or lemma TAB form TAB tags, the tags joined by semicolons

Targets are not looked at, and a table may have none. A line without anything is a source without tokens, so that
answers stand line by line beside what was asked. All other data are read whole: tables with names of columns and lists
of JSON, from a pipe too; Parquet and folders; known data sets.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from compgen.data import unimorph
from compgen.data.columns import for_json
from compgen.data.content import lines_as_they_come, looks_like_json, name_of, shown, suffix_of
from compgen.data.examples import COLUMNS, Dataset
from compgen.data.formats import is_pipe
from compgen.data.named import USUAL, USUALLY, Columns, SourceColumns, plain
from compgen.data.records import JSON, looks_like_csv, names_of_first, tell_maybe_csv, twice
from compgen.data.tables import SCAN
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError, UserError, tell

SUFFIXES = {".txt": "text", ".scan": "text", ".tsv": "tsv", ".jsonl": "jsonl", ".unimorph": "unimorph", "": "unimorph"}
SOURCES = SourceColumns()  # what is looked for where no column is named
ROWS = 1024  # of what is read whole, in a piece
_LAST = r"^[^\t]+(?:\t[^\t]*)?\t([^\t]+)\s*$"  # the last of two or three fields


class Source(NamedTuple):
    """What to predict from: tokens, and as it is written; of a word to inflect, lemma and tags, without the form.

    `more` has the other columns, except right answers. They are written beside the answer, so that an id stays with it.
    """

    tokens: list[str]
    written: tuple[str, ...] = ("",)
    more: Mapping[str, Any] = MappingProxyType({})
    analysed: bool = False  # whether it is a form to analyse, so that its target is a lemma and tags

    @property
    def inflected(self) -> bool:
        """Whether it is a lemma with tags, so that its target is the letters of a form."""
        return len(self.written) == 2


def read_sources(
    path: str, format: str | None = None, columns: Columns = USUALLY, split: str | None = None, words: bool = False
) -> Iterator[list[Source]]:
    """Yield the sources of DATA, or of lines on standard input if `path` is `-`, in pieces, as they come.

    Without `format` the suffix decides; for a pipe, the first line. A table of the suffix .tsv whose last column has
    tags joined by semicolons, as far as the first piece goes, is one of words. `columns` as for `read_dataset`; if they
    name no target, a table needs none. `split` gives the examples of that split alone. `words` says that the sources
    are for a model that inflects words: then the words of a table may have one tag each, or tags parted by other signs.

    Raises:
        UserError: there is no such format.
        DataError: a line is not as the format wants it, or has a token that data cannot have; it is named. Or there is
            no such split.
    """
    piped = is_pipe(path)
    known = format is not None or suffix_of(path) in (*SUFFIXES, ".csv", ".json")
    in_lines = piped or (known and Path(path).is_file())
    pieces = lines_as_they_come(path) if in_lines else iter([])
    first = next(pieces, [])
    if in_lines and not columns.given and split is None and not _names_columns(path, format, first):
        usual = format or (_guess(first, name_of(path)) if piped else SUFFIXES.get(suffix_of(path), "text"))
        yield from _read_lines(path, _as_words(usual, first, words), first, pieces)
        return
    # What has come through a pipe cannot be read again, and is handed on.
    dataset = _read_whole(path, format, columns, "\n".join(chain(first, *pieces)).encode() if piped else None)
    yield from _sources(
        dataset, split, not columns.given and (_has_words(first) if in_lines else _is_inflection(path, dataset))
    )


def _read_lines(path: str, format: str, first: list[str], pieces: Iterable[list[str]]) -> Iterator[list[Source]]:
    """Yield the sources in some lines, and in those that come after them."""
    if format not in _PARSERS:
        raise UserError(f"no format {format!r} of sources: expected one of {', '.join(_PARSERS)}")
    parse = _PARSERS[format]
    name, number, checked = name_of(path), 0, set[str]()
    for lines in chain([first], pieces):
        found = []
        for line in lines:
            number += 1
            place = f"{name}, line {number}"
            found.append(parse(line, place) if line.strip() else Source([]))
            _check_tokens(found[-1].tokens, place, checked)
        yield found


def _check_tokens(tokens: list[str], place: str, checked: set[str]) -> None:
    """Raise DataError for a token that data cannot have; remember those that were looked at."""
    for token in tokens:
        if token not in checked and (why := why_not_data(token)):
            raise DataError(f"{place}: found the token {shown(token)}, which {why}")
        checked.add(token)


def as_forms(sources: list[Source], model: str) -> list[Source]:
    """Return sources for a model that analyses words: those that are not letters yet are forms, and are spelled.

    Errors call the model `model`.

    Raises:
        UserError: one is a lemma with tags.
    """
    if any(source.inflected for source in sources):
        found = "found lemmas with tags, expected forms, as they are written, one a line (.txt)"
        raise UserError(f"{model} learnt to analyse forms: {found}")
    return [source if _in_letters(source.tokens) else _form(source) for source in sources]


def _in_letters(tokens: list[str]) -> bool:
    return len(tokens) != 1 and all(map(unimorph.is_letter, tokens))


def _form(source: Source) -> Source:
    tokens = unimorph.characters(source.written[0])
    return source._replace(tokens=tokens, written=(unimorph.joined(tokens),), analysed=True)


def is_tagged(dataset: Dataset) -> bool:
    """Return whether examples are lemmas with tags, which were read as sources and targets."""
    tags = dataset.frame["target"].list.join(" ")
    return bool(tags.str.contains(unimorph.SEVERAL).any() and tags.str.contains(f"^{unimorph.SOME_TAGS}$").all())


def _read_whole(path: str, format: str | None, columns: Columns, content: bytes | None) -> Dataset:
    from compgen.data.catalog import load

    if columns.target is None:
        columns = SourceColumns(source=columns.source)
    return load(path, format, answers=True, columns=columns, content=content)


def _sources(dataset: Dataset, split: str | None, words: bool) -> Iterator[list[Source]]:
    """Yield the sources of a dataset or of one of its splits; `words` says whether they are words."""
    if words and is_tagged(dataset):
        raise UserError("lemma TAB tags has no splits: leave out --split")
    frame, written = (dataset if split is None else dataset.split(split)).frame, as_word if words else _line
    for rows in frame.select("source", *_further(frame)).iter_slices(ROWS):
        yield [Source(tokens := row.pop("source"), written(tokens), row) for row in rows.to_dicts()]


def _further(frame: pl.DataFrame) -> list[pl.Series]:
    """Return the columns to write beside answers, as JSON can hold them; a `Remark` names those that it cannot."""
    kept = []
    for column in filter(lambda column: _is_carried(column.name), frame):
        try:
            kept.append(for_json(column, "answers"))
        except DataError:
            left_out = f"the column {column.name!r} is left out of answers: JSON cannot hold it"
            tell(left_out)
    return kept


def _is_carried(name: str) -> bool:
    """Whether a column is written beside answers: not the source, nor what may be a right answer, nor the split."""
    return plain(name) not in (*COLUMNS, *USUAL["target"], "target_column", "form")


def _line(tokens: list[str]) -> tuple[str, ...]:
    return (" ".join(tokens),)


def as_word(tokens: list[str]) -> tuple[str, str]:
    """Return lemma and tags as they are written, of a source of inflection or a target of analysis."""
    lemma, tags = unimorph.split_tags(tokens)
    return unimorph.joined(lemma), ";".join(tags)


def _names_columns(path: str, format: str | None, lines: list[str]) -> bool:
    """Return whether a table has names of columns: CSV, a list of JSON, a line of names, a record without `source`."""
    first = _first(lines)
    suffix = suffix_of(path)
    listed = not suffix and looks_like_json("\n".join(lines).encode())
    if format is None and (suffix not in SUFFIXES or looks_like_csv(first, SOURCES) or listed):
        return True
    if format not in (None, "tsv", "jsonl"):
        return False
    if first.startswith("{"):
        try:
            return "source" not in json.loads(first)
        except (ValueError, RecursionError):
            return False  # an error that names the line
    fields = first.split("\t")
    return (suffix == ".tsv" or len(fields) > 1) and SOURCES.names(fields)


def _has_words(lines: list[str]) -> bool:
    """Return whether lines are words, or there are names of columns of lemmas and tags, and none of sources."""
    return SOURCES.words(names_of_first("\n".join(lines))) is not None or _as_words("tsv", lines) == "unimorph"


def _is_inflection(path: str, dataset: Dataset) -> bool:
    """Return whether Parquet has columns of lemmas and tags, or all sources of known data are letters, then tags."""
    if Path(path).exists():
        if suffix_of(path) != ".parquet":
            return False
        with Path(path).open("rb") as stream:  # Polars takes no path that is not UTF-8
            return SOURCES.words(list(pl.read_parquet_schema(stream))) is not None
    return all(map(unimorph.is_analysis, dataset.frame["source"].to_list()))


def _first(lines: list[str]) -> str:
    return next((line.strip() for line in lines if line.strip()), "")


def _guess(lines: list[str], name: str) -> str:
    """Return the format that the first line of a pipe looks like; messages call the pipe `name`."""
    first = _first(lines)
    if first.startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv"
    tell_maybe_csv(first, name)
    return "text"


def _as_words(format: str, lines: list[str], any_tags: bool = False) -> str:
    """Return `unimorph` for tsv if most lines have tags in their last column, or format.

    Some must be several, joined by semicolons, unless there may be `any_tags`, as for what inflects words.
    """
    written = pl.Series([line for line in lines if line.strip()], dtype=pl.String)
    last = written.str.extract(_LAST).drop_nulls()
    tagged = last.str.contains(f"^{unimorph.SOME_TAGS}$")
    if any_tags:
        tagged |= pl.Series([*map(unimorph.are_tags, last)], dtype=pl.Boolean)
    words = 2 * tagged.sum() > len(written) and (any_tags or last.filter(tagged).str.contains(unimorph.SEVERAL).any())
    return "unimorph" if format == "tsv" and words else format


def _text(line: str, place: str) -> Source:
    if line.lstrip().startswith("IN:"):
        found = re.match(SCAN, line)
        if found is None:
            raise DataError(f"{place}: found {shown(line)}, expected 'IN: source tokens OUT: target tokens'")
        line = found[1]
    return _tokens(line, place)


def _tsv(line: str, place: str) -> Source:
    return _tokens(line.partition("\t")[0], place)


def _tokens(text: str, place: str) -> Source:
    tokens = text.split()
    if not tokens:
        raise DataError(f"{place}: found an empty source, expected tokens")
    return Source(tokens, _line(tokens))


def _jsonl(line: str, place: str) -> Source:
    try:
        record = JSON.decode(line)
        text = json.dumps(record, ensure_ascii=False)
        text.encode()  # half of a surrogate pair is no text
        source = record.get("source") if isinstance(record, dict) else None
        tokens = source.split() if isinstance(source, str) else source
        if not (tokens and isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
            raise ValueError
    except KeyError as error:
        raise twice(place, error) from None
    except (ValueError, RecursionError):
        expected = '{"source": ...}, a list of tokens or a string'
        raise DataError(f"{place}: found {shown(line)}, expected {expected}") from None
    readable = json.loads(text, parse_constant=str)  # NaN and infinite numbers, which JSON does not have, as text
    more = {name: value for name, value in readable.items() if _is_carried(name)}
    return Source(tokens, _line(tokens), more)


def _unimorph(line: str, place: str) -> Source:
    lemma, *form, tags = unimorph.fields_of(line) if "\t" in line else ("", "", "")
    names = unimorph.tags_of(tags)
    if len(form) > 1 or not lemma or not names:
        raise DataError(f"{place}: found {shown(line)}, expected lemma TAB tags, or lemma TAB form TAB tags")
    try:
        unimorph.check_place("".join(form), names)
        tokens, _ = unimorph.inflection((lemma, lemma, names))
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    return Source(tokens, as_word(tokens))  # composed, as the form will be


_PARSERS: dict[str, Callable[[str, str], Source]] = {
    "text": _text,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "unimorph": _unimorph,
}
