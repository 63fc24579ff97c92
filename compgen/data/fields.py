"""Lines of tables as fields, by format, as far as they can be read; what cannot be read is a finding."""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from compgen.data.checks import Finding
from compgen.data.content import looks_like_json
from compgen.data.records import EXCEL, JSON, separator
from compgen.data.tables import SCAN, lines_in

NAME = "pairs or words? name it .tsv, or words .unimorph"
BARS = re.compile(r"\s*\|\|\|\s*")
_LOOSE_SCAN = re.compile(r"^\s*IN:\s*(.*?)\s*OUT:\s*(.*?)\s*$")  # spaces around the signs are forgotten


class Fields(NamedTuple):
    """Lines in fields; `names` are those of the columns, if there are names."""

    rows: list[tuple[int, list[Any]]]
    names: list[str] | None
    findings: list[Finding]
    place: str = "line"  # what the numbers count


def _tabs(text: str) -> Fields:
    """Lines of TSV: fields between TABs; between bars where most lines have no TAB but bars."""
    lines = list(lines_in(text).iter_rows())
    tabs, bars = (sum(sign in line for _, line in lines) for sign in ("\t", "|||"))
    if bars <= tabs:
        return Fields([(number, line.split("\t")) for number, line in lines], None, [])
    advice = "write a TAB for |||; --fix does"
    barred = [number for number, line in lines if "|||" in line]
    finding = Finding("warning", "source ||| target in place of source TAB target", barred, advice)
    return Fields([(number, BARS.split(line)) for number, line in lines], None, [finding])


def _sentences(text: str) -> Fields:
    """Lines of text, whole; in fields where most have bars."""
    found = _tabs(text)
    if found.findings:
        return found
    lines = list(lines_in(text).iter_rows())
    tabs = {line.count("\t") for _, line in lines}
    each = f"{max(tabs, default=0)} TAB{'s' * (tabs != {1})}"
    what = f"each line has {each}, and is read as a sentence"
    findings = [Finding("warning", what, [], NAME)] if len(tabs) == 1 and tabs != {0} else []
    return Fields([(number, [line]) for number, line in lines], None, findings)


def _csv(text: str) -> Fields:
    if text.startswith(EXCEL):
        found = _csv("\n" + text.partition("\n")[2])
        what = f"a line {EXCEL}, for Excel, before the names of columns"
        excel = Finding("error", what, [1], "delete it; --fix does")
        return found._replace(findings=[excel, *found.findings])
    rows: list[tuple[int, list[Any]]] = []
    reader, number = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text), skipinitialspace=True), 1
    try:
        for row in reader:
            rows += [(number, row)] if any(field.strip() for field in row) else []
            number = reader.line_num + 1
    except csv.Error as error:
        return Fields(rows, None, [Finding("error", f"no CSV from here on ({error})", [number], "close the quotes")])
    return Fields(rows, None, [])


def _scan(text: str) -> Fields:
    found = [(number, re.match(SCAN, line) or _LOOSE_SCAN.match(line)) for number, line in lines_in(text).iter_rows()]
    bad = [number for number, match in found if match is None]
    finding = Finding("error", "not IN: source OUT: target", bad, "mend the line")
    return Fields([(number, list(match.groups())) for number, match in found if match], None, [finding] * bool(bad))


def _jsonl(text: str) -> Fields:
    return _records((number, line) for number, line in lines_in(text).iter_rows())


def _json(text: str) -> Fields:
    """A list of objects; each is read by itself, as if it were a line."""
    at, number, decoder = text.find("[") + 1, 1, json.JSONDecoder(parse_int=str)
    found: list[tuple[int, str]] = []
    past = 0
    while (begin := text.find("{", at)) >= 0:
        number, past = number + text.count("\n", past, begin), begin
        try:
            at = decoder.raw_decode(text, begin)[1]
        except (ValueError, RecursionError):
            at = len(text)
        found.append((number, text[begin:at]))
    place = "line"
    if len({*(number for number, _ in found)}) < len(found):  # two objects begin on one line
        place, found = "example", [(number, one) for number, (_, one) in enumerate(found, start=1)]
    if parts := _parts(text):
        place, found = "example", parts
    listed = _records(iter(found))._replace(place=place)
    closed = looks_like_json(text.encode()) and text.rstrip().endswith("]")
    advice = "write [ {...}, {...} ]; one object a line, without [ ], is .jsonl"
    return (
        listed if closed else listed._replace(findings=[*listed.findings, Finding("error", "no list [ ]", [], advice)])
    )


def _parts(text: str) -> list[tuple[int, str]]:
    """The objects in an object of several lists, as {"train": [...], "test": [...]}, with these names as splits.

    Raises:
        KeyError: a name or another key is there twice.
    """
    try:
        whole = json.loads(text)
        whole = JSON.decode(text) if isinstance(whole, dict) else {}
    except (ValueError, RecursionError):
        return []
    lists = {name: one for name, one in whole.items() if isinstance(one, list)}
    records = [{"split": name} | one for name, some in lists.items() for one in some if isinstance(one, dict)]
    return [(number, json.dumps(one)) for number, one in enumerate(records * (len(lists) > 1), start=1)]


def _records(texts: Iterator[tuple[int, str]]) -> Fields:
    names: dict[str, None] = {}
    records, bad, twice = [], [], list[int]()
    for number, text in texts:
        try:
            record = JSON.decode(text)
            if "\\u" in text:  # half of a surrogate pair, which no text in UTF-8 and so no frame can hold
                json.dumps(record, ensure_ascii=False).encode()
        except KeyError:
            twice.append(number)
            continue
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            bad.append(number)
            continue
        names |= dict.fromkeys(record)
        records.append((number, record))
    advice = 'mend the line, as: {"source": "a", "target": "b"}'
    findings = [Finding("error", "no object of JSON in UTF-8", bad, advice)] if bad else []
    findings += [Finding("error", "a key twice in an object", twice, "delete one of them")] if twice else []
    rows: list[tuple[int, list[Any]]] = [(number, [record.get(name) for name in names]) for number, record in records]
    return Fields(rows, list(names), findings)


READERS = {"csv": _csv, "jsonl": _jsonl, "json": _json, "scan": _scan, "tsv": _tabs, "text": _sentences}
