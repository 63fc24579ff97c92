"""text2sql-data: variables filled in, splits, damaged files, and the published sizes."""

import json

import pytest

from compgen.data import text2sql
from compgen.errors import DataError


def sentence(text="how big is city0", split="train", **variables):
    return {"text": text, "question-split": split, "variables": variables or {"city0": "new york"}}


def entry(query='SELECT MAX(AREA) WHERE NAME = "city0" ;', split="train", key="sql", sentences=()):
    return {key: [query, "another way"], "query-split": split, "sentences": list(sentences) or [sentence()]}


def written(folder, entries):
    path = folder / "x.json"
    path.write_text(entries if isinstance(entries, str) else json.dumps(entries), encoding="utf-8")
    return path


def sides(dataset):
    return [(" ".join(source), " ".join(target)) for source, target in dataset.pairs()]


def test_a_query_is_set_apart_filled_and_split(tmp_path):
    path = written(tmp_path, [entry(sentences=[sentence('How big is "city0"?', city0="New York")])])
    pairs = [('How big is "New York"?', 'SELECT MAX ( AREA ) WHERE NAME = " New York " ;')]
    assert sides(text2sql.read(path, "query")) == pairs


def test_brackets_in_a_value_are_not_set_apart(tmp_path):
    path = written(tmp_path, [entry("f(city0)", sentences=[sentence("city0 ?", city0="paris (texas)")])])
    assert sides(text2sql.read(path, "query")) == [("paris (texas) ?", "f ( paris (texas) )")]


def test_logical_forms_are_queries_too(tmp_path):
    path = written(tmp_path, [entry("( A , _cityid ( city0 ) )", key="logic")])
    assert sides(text2sql.read(path, "query")) == [("how big is new york", "( A , _cityid ( new york ) )")]


def test_a_name_that_begins_another_does_not_spoil_it(tmp_path):
    both = sentence("from city1 to city10", city1="ohio", city10="utah")
    path = written(tmp_path, [entry("city10 - city1", sentences=[both])])
    assert sides(text2sql.read(path, "query")) == [("from ohio to utah", "utah - ohio")]


def test_a_name_without_a_value_stays(tmp_path):
    path = written(tmp_path, [entry("city0 in year0")])
    assert sides(text2sql.read(path, "query")) == [("how big is new york", "new york in year0")]


def test_the_split_is_by_query_or_by_question(tmp_path):
    questions = [sentence("one", "test"), sentence("two", "train"), sentence("three", "dev")]
    path = written(tmp_path, [entry("first", "test", sentences=questions), entry("second", "train")])
    by_query, by_question = (text2sql.read(path, split) for split in ("query", "question"))
    assert list(by_query.splits.items()) == [("train", 1), ("test", 3)]
    assert sides(by_query.split("test")) == [("one", "first"), ("two", "first"), ("three", "first")]
    assert list(by_question.splits.items()) == [("train", 2), ("dev", 1), ("test", 1)]
    assert sides(by_question.split("dev")) == [("three", "first")]


def test_folds_8_and_9_are_dev_and_test(tmp_path):
    path = written(tmp_path, [entry(split="N/A", sentences=[sentence(split=str(fold)) for fold in range(10)])])
    assert text2sql.read(path, "question").splits == {"train": 8, "dev": 1, "test": 1}


def without(key, record):
    return {name: value for name, value in record.items() if name != key}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('[{"sql": ["a"],\n', "Invalid JSON: EOF .* line 2"),
        ("{}", "x.json: found {}: .* valid .*; expected a JSON list of"),
        ("[3]", "entry 1: found 3: .*; expected a JSON list of"),
        ("[]", "no examples: found no question in it, expected a JSON list of"),
        ([entry(), without("sql", entry())], 'entry 2 sql: found .*: Field required; expected .*"sql" or "logic"'),
        ([entry(), {**entry(), "sql": []}], r"entry 2 sql: found \[\]: .* at least 1 item"),
        ([entry(), {**entry(), "sql": "SELECT"}], "entry 2 sql: found 'SELECT': .* valid (list|array)"),
        ([without("query-split", entry())], "entry 1 query-split: found .*: Field required"),
        ([without("sentences", entry())], "entry 1 sentences: found .*: Field required"),
        *[
            ([entry(sentences=[sentence(), without(key, sentence())])], f"entry 1 sentences 2 {key}: .*Field required")
            for key in ("text", "question-split", "variables")
        ],
        ([entry(sentences=[sentence(city0=3)])], "entry 1 sentences 1 variables city0: found 3: .* valid string"),
        ([entry(), entry(split="exclude")], "entry 2: found \"query-split\": 'exclude', expected train, dev, test, or"),
        (json.dumps([entry("\ud800")]), "Invalid JSON"),
    ],
)
def test_damaged_files_are_named_with_the_entry(tmp_path, entries, message):
    path = written(tmp_path, entries)
    with pytest.raises(DataError, match=message) as caught:
        text2sql.read(path, "query")
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_values_that_hold_names_make_no_endless_text(tmp_path):
    doubling = {chr(97 + k) * k: 2 * (chr(96 + k) * (k - 1)) for k in range(2, 26)}  # names of 25 letters, 24, ...
    long = [{"": "x" * 2**16}, doubling | {"c": "x" * 2**20}, doubling | {"a": "x" * 999}]
    for variables in long:
        asked = {"text": "a" * 25 + "y" * 25 + "z" * 9, "question-split": "train", "variables": variables}
        path = written(tmp_path, [entry(sentences=[asked])])
        with pytest.raises(
            DataError, match="entry 1: found values of variables that make a text of more than 1,048,576"
        ):
            text2sql.read(path, "query")


def test_a_missing_file_and_bytes_that_are_no_text_are_reported(tmp_path):
    with pytest.raises(DataError, match=r"gone.json: no such file"):
        text2sql.read(tmp_path / "gone.json", "query")
    (tmp_path / "x.json").write_bytes(b"[\n\xfc]")
    with pytest.raises(DataError, match=r"x.json, line 2: found the byte 0xfc"):
        text2sql.read(tmp_path / "x.json", "query")


@pytest.mark.parametrize(
    ("name", "sizes", "tokens"),
    [
        ("geo/sql-query", (536, 159, 182), 20_265),
        ("geo/sql-question", (549, 49, 279), None),
        ("geo/logic-query", (543, 148, 186), 27_238),
        ("geo/logic-question", (549, 49, 279), None),
        ("scholar/query", (408, 94, 315), None),
        ("scholar/question", (499, 100, 218), None),
    ],
)
def test_the_published_files_give_the_pairs_that_the_reference_reads(downloaded, name, sizes, tokens):
    dataset = downloaded(name)
    assert list(dataset.splits.items()) == list(zip(("train", "dev", "test"), sizes, strict=True))
    if tokens:
        pairs = (dataset.split("train") + dataset.split("dev")).pairs()
        assert sum(len(source) + len(target) for source, target in pairs) == tokens


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        *[(name, 0) for name in ("geo/sql-query", "geo/logic-query", "scholar/query")],
        *[("geo/sql-question", 79), ("geo/logic-question", 68), ("scholar/question", 61)],
    ],
)
def test_as_many_test_queries_as_published_are_known_from_training(downloaded, name, shared):
    dataset = downloaded(name)
    known = {target for part in ("train", "dev") for _, target in sides(dataset.split(part))}
    assert len(known & {target for _, target in sides(dataset.split("test"))}) == shared
