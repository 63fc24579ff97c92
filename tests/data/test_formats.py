"""Formats: what is written is read back the same, and what is malformed is named by file and line."""

import gzip
import io
import json
import os
import sys
import threading
import types
import warnings

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.data import records
from compgen.data.examples import Dataset
from compgen.data.formats import FORMATS, read_dataset, write_dataset
from compgen.data.lenient import read_table
from compgen.data.named import Columns
from compgen.data.sources import read_sources
from compgen.data.unimorph import dataset
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError, Remark, UserError

PAIRS = [(["jump", "twice"], ["I_JUMP", "I_JUMP"]), (["walk"], ["I_WALK"])]
SMALL = Dataset.from_pairs(PAIRS)
SENTENCES = Dataset.from_pairs([(["the", "cat"], []), (["sat"], [])])
WORDS = dataset([("go", "goes", ("V", "3", "SG")), ("a man", "men", ("N", "PL"))])
BOTH = SMALL + Dataset.from_pairs([(["run"], [])], split="test")

anything = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda token: not why_not_data(token))
# OUT: is the sign of `scan`.
word = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1).filter(
    lambda token: token != "OUT:" and not why_not_data(token)
)
split_names = st.sampled_from(["train", "dev", "a split"])


def datasets(tokens, splits):
    """Pairs, or sentences alone."""
    side = st.lists(tokens, min_size=1, max_size=4)

    def examples(target):
        return st.lists(st.tuples(side, target, splits), min_size=1, max_size=5)

    return st.one_of(examples(side), examples(st.just([]))).map(
        lambda rows: Dataset(pl.DataFrame(rows, schema=SMALL.frame.schema, orient="row"))
    )


def there_and_back(folder, dataset, name):
    write_dataset(dataset, folder / name)
    assert read_dataset(folder / name) == dataset
    assert [path.name for path in folder.iterdir()] == [name]
    (folder / name).unlink()


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.parquet", "x.parquet.gz"])
def test_formats_with_token_lists_hold_any_tokens(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("folder")

    @settings(max_examples=50, deadline=None)
    @given(datasets(anything, split_names))
    def check(dataset):
        there_and_back(folder, dataset, name)

    check()


@pytest.mark.parametrize(
    ("name", "splits"),
    [("x.tsv", split_names), ("x.tsv.gz", split_names), ("x.txt", st.just("train")), ("x.scan.gz", st.just("train"))],
)
def test_text_formats_hold_tokens_without_blanks(tmp_path_factory, name, splits):
    folder = tmp_path_factory.mktemp("folder")

    @settings(max_examples=50, deadline=None)
    @given(datasets(word, splits))
    def check(dataset):
        there_and_back(folder, dataset, name)

    check()


@settings(max_examples=50, deadline=None)
@given(datasets(anything, split_names), st.booleans())
def test_json_may_be_spelled_in_any_way(tmp_path_factory, dataset, escaped):
    path = tmp_path_factory.getbasetemp() / "spelled.jsonl"
    rows = dataset.frame.select("split", "target", "source").iter_rows(named=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=escaped) + "\n\n" for row in rows), encoding="utf-8")
    assert read_dataset(path) == dataset


@pytest.mark.parametrize(
    ("name", "content", "pairs"),
    [
        ("x.tsv", "\n  \njump  twice\t I_JUMP I_JUMP \n\nwalk\tI_WALK", PAIRS),
        ("x.tsv", "\ufeffjump twice\tI_JUMP I_JUMP\r\nwalk\tI_WALK\ttrain\r\n", PAIRS),
        ("x.txt", "IN: jump twice OUT: I_JUMP I_JUMP \nIN: walk OUT: I_WALK\n", PAIRS),
        (
            "x.jsonl",
            '{"source": "jump twice", "target": ["I_JUMP", "I_JUMP"], "id": 3}\n{"target":"I_WALK","source":"walk"}',
            PAIRS,
        ),
        ("x.jsonl", '{"source": ["a sentence"], "target": []}', [(["a sentence"], [])]),
        ("x.tsv", "a\u00a0sentence\t\n", [(["a", "sentence"], [])]),
        ("x.scan", "IN: a OUT:\n", [(["a"], [])]),
        ("x.scan", "IN: OUT:b OUT: b\n", [(["OUT:b"], ["b"])]),
    ],
)
def test_files_of_other_hands_are_read(tmp_path, name, content, pairs):
    path = tmp_path / name
    path.write_bytes(content.encode())
    dataset = read_dataset(path)
    assert dataset.pairs() == pairs
    assert dataset.splits == {"train": len(pairs)}


def test_tsv_and_scan_are_written_as_people_know_them(tmp_path):
    write_dataset(SMALL, tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv").read_text() == "jump twice\tI_JUMP I_JUMP\nwalk\tI_WALK\n"
    write_dataset(BOTH, tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv").read_text().splitlines()[2] == "run\t\ttest"
    write_dataset(SMALL, tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == "IN: jump twice OUT: I_JUMP I_JUMP\nIN: walk OUT: I_WALK\n"


def test_the_same_data_make_the_same_compressed_file_at_any_time(tmp_path, monkeypatch):
    for name, now in (("a.tsv.gz", 1e9), ("b.tsv.gz", 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        write_dataset(SMALL, tmp_path / name)
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()


def test_a_parquet_file_of_strings_is_split_at_blanks(tmp_path):
    frame = pl.DataFrame({"source": ["jump twice", "walk"], "target": ["I_JUMP I_JUMP", "I_WALK"], "more": [1, 2]})
    frame.write_parquet(tmp_path / "x.parquet")
    assert read_dataset(tmp_path / "x.parquet") == Dataset(SMALL.frame.with_columns(more=pl.Series([1, 2])))


def test_an_explicit_format_wins_over_the_suffix(tmp_path):
    write_dataset(SMALL, tmp_path / "x.data", format="tsv")
    assert read_dataset(tmp_path / "x.data", format="tsv") == SMALL
    write_dataset(SMALL, tmp_path / "x.tsv", format="jsonl")
    assert read_dataset(tmp_path / "x.tsv", format="jsonl") == SMALL


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_pipes_are_recognised_by_what_comes_through(tmp_path, monkeypatch, format, compressed):
    output = io.BytesIO()
    small = {"text": SENTENCES, "unimorph": WORDS}.get(format, SMALL)
    monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(buffer=output))
    write_dataset(small, "-", format)
    content = gzip.compress(output.getvalue()) if compressed else output.getvalue()

    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    assert read_dataset("-") == small

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert read_dataset(pipe) == small
    writer.join()


@pytest.mark.parametrize(
    "content", ["\na b\tc d\n", '\n \n{"source": "a b", "target": "c d"}\n', "\n\nIN: a b OUT: c d\n"]
)
def test_blank_lines_before_the_first_example_decide_nothing(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content.encode())))
    assert read_dataset("-").pairs() == [(["a", "b"], ["c", "d"])]


def test_what_may_be_csv_is_told_to_be_read_as_sentences(monkeypatch, recwarn):
    for content in (b"yes , he came, too .\n", b"frage,programm\na,b\n"):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
        read_dataset("-")
    (told,) = recwarn
    assert "standard input: read as sentences, one a line; if this is CSV, save it" in str(told.message)


def test_standard_output_is_jsonl_unless_told_otherwise(monkeypatch):
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(buffer=output))
    write_dataset(SMALL, "-")
    first = json.loads(output.getvalue().splitlines()[0])
    assert first == {"source": ["jump", "twice"], "target": ["I_JUMP", "I_JUMP"], "split": "train"}


def test_errors_on_standard_input_say_so(monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(b"{}\n")))
    with pytest.raises(DataError, match=r"standard input, line 1: found the columns \(none\)"):
        read_dataset("-")


GOOD = '{"source": ["a"], "target": ["b"]}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.tsv", "a\tb\n\na b\n", r"x.tsv, line 3: found no TAB in 'a b', expected source TAB target"),
        ("x.tsv", "a\tb\nc\td\te\tf\n", r"line 2: found 3 TABs in 'c\\td\\te\\tf', expected"),
        ("x.scan", "IN: a OUT: b\nIN: a\n", r"line 2: found 'IN: a', expected 'IN: source tokens OUT: target tokens'"),
        ("x.scan", "a OUT: b\n", "line 1: found 'a OUT: b'"),
        ("x.scan", "IN: a OUT: b OUT: c\n", "line 1: found 'IN: a OUT: b OUT: c'"),
        ("x.jsonl", f"{GOOD}\n\nnope\n", r"line 3: found 'nope', which is no JSON.* on one line \{\"source\""),
        ("x.jsonl", f"{GOOD}\n[1]\n", r"line 2: found '\[1\]', not an object"),
        ("x.jsonl", '{"in": "a", "output": "b"}', r"line 1: found the columns 'in', 'output', expected 'source'"),
        ("x.jsonl", f'{GOOD}\n{{"source": [1], "target": ["b"]}}\n', r'line 2: found "source": \[1\]'),
        ("x.jsonl", '{"source": "a", "target": null}', 'line 1: found "target": null'),
        ("x.jsonl", '{"source": "a", "target": "b", "split": 3}', 'line 1: found "split": 3'),
        ("x.jsonl", '{"source": ["\\ud800"], "target": []}', "line 1: found .* no JSON in UTF-8"),
        ("x.jsonl", "[" * 100_000, "line 1: found .*, which is no JSON"),
        ("x.jsonl", f'{GOOD}\n{GOOD[:-1]}, "target": ["c"]}}\n', "line 2: found the key 'target' twice in an object"),
        ("x.jsonl", f'{GOOD[:-1]}, "m": {{"a": 1, "a": 2}}}}\n', "line 1: found the key 'a' twice in an object"),
        *[(f"x.{suffix}", "", "no examples: the file is empty") for suffix in ("tsv", "jsonl", "scan", "parquet")],
        *[(f"x.{suffix}", "\n\n", "no examples: the file is empty") for suffix in ("tsv", "jsonl", "scan")],
        ("x.parquet", "nope", "expected a Parquet file"),
        ("x.tsv", "a\tb\n\t\n", "line 2: found an empty source, expected tokens on both sides"),
        ("x.tsv", "\t\n", "line 1: found an empty source"),
        ("x.tsv", "a\tb\n\nc\t \n", "line 3: found an empty target, expected tokens on both sides"),
        ("x.tsv", "a\tb\n\td\n", "line 2: found an empty source"),
        ("x.scan", "IN: a OUT: b\nIN: c OUT:\n", "line 2: found an empty target"),
        ("x.jsonl", f'{GOOD}\n\n{{"source": [], "target": ["b"]}}\n', "line 3: found an empty source"),
        ("x.jsonl", f'{GOOD}\n{{"source": "a", "target": "", "id": 1}}\n', "line 2: found an empty target"),
        ("x.tsv", "a\tb\na\0\tb\n", r"line 2: found the token 'a\\x00', which has a control character"),
        ("x.scan", "IN: a OUT: b\nIN: a OUT: \x1b[31m\n", r"line 2: found the token '\\x1b\[31m', which has a control"),
        ("x.txt", "a b\nc \x7f\n", r"line 2: found the token '\\x7f', which has a control"),
        ("x.jsonl", f'{GOOD}\n{{"source": ["a"], "target": ["\\u0000"]}}\n', r"line 2: found the token '\\x00'"),
        (
            "x.tsv",
            "a\tb\n<pad>\tb\n",
            "line 2: found the token '<pad>', which is a special symbol, which models need for",
        ),
        ("x.tsv", "a\t→\n", "line 1: found the token '→', which is a special symbol"),
        ("x.jsonl", f'{GOOD}\n{{"source": ["</s>"], "target": ["b"]}}\n', "line 2: found the token '</s>'"),
        ("x.scan", "IN: <unk> OUT: b\n", "line 1: found the token '<unk>'"),
        ("x.tsv.gz", "a\tb\n", "expected a gzip file"),
    ],
)
def test_malformed_files_are_named_with_the_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_dataset(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_parquet_file_with_half_of_a_surrogate_pair_is_reported(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"source": ["xyzzy"], "target": ["b"]}).write_parquet(
        path, compression="uncompressed", statistics=False
    )
    content = path.read_bytes()
    assert b"xyzzy" in content
    path.write_bytes(content.replace(b"xyzzy", b"x\xed\xa0\x80y"))
    with pytest.raises(DataError, match=r"x\.parquet: found damaged data"):
        read_dataset(path)


def test_a_predictors_answers_may_be_empty(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\nc\t\n")
    assert read_dataset(path, answers=True).pairs() == [(["a"], ["b"]), (["c"], [])]
    path.write_text("\tb\n")
    with pytest.raises(DataError, match="line 1: found an empty source"):
        read_dataset(path, answers=True)


def test_a_parquet_file_cut_short_is_reported(tmp_path):
    path = tmp_path / "x.parquet"
    write_dataset(SMALL, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"x.parquet: found damaged data or none of Parquet"):
        read_dataset(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"in": ["a"], "target": ["b"]}, "found the columns 'in', 'target', expected 'source' or another usual name"),
        ({"source": [1], "target": ["b"]}, "found column 'source' of type Int64, expected a list of strings"),
        ({"source": ["a"], "target": ["b"], "split": [1]}, "found column 'split' of type Int64, expected a string"),
        ({"source": ["a", "b"], "target": ["b", None]}, "row 2: found a missing value in column 'target'"),
        ({"source": [["a"], ["b", None]], "target": ["b", "c"]}, "row 2: found a missing value in column 'source'"),
        ({"source": ["a", "b"], "target": ["b", " "]}, "x.parquet, row 2: found an empty target"),
        ({"source": [["a"], ["\0"]], "target": ["b", "c"]}, "row 2: found the token .* has a control character"),
        ({"source": ["a"], "target": ["b <unk>"]}, "row 1: found the token '<unk>', which is a special symbol"),
    ],
)
def test_parquet_columns_are_checked(tmp_path, columns, message):
    path = tmp_path / "x.parquet"
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(DataError, match=message):
        read_dataset(path)


def test_missing_files_folders_and_unknown_formats_are_reported(tmp_path):
    with pytest.raises(DataError, match=r"gone.tsv: no such file"):
        read_dataset(tmp_path / "gone.tsv")
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(DataError, match=r"folder.tsv: a folder, expected a file"):
        read_dataset(tmp_path / "folder.tsv")
    with pytest.raises(DataError, match=r"suffix '.xls', expected .*\.tsv \(tsv\).*\.parquet \(parquet\)"):
        read_dataset(tmp_path / "x.xls")
    with pytest.raises(DataError, match=r"found no suffix, expected"):
        write_dataset(SMALL, tmp_path / "x.gz")
    with pytest.raises(
        DataError,
        match="unknown format 'xls': known formats are tsv, jsonl, json, csv, scan, text, unimorph, parquet, folder",
    ):
        write_dataset(SMALL, tmp_path / "x.tsv", format="xls")


@pytest.mark.parametrize(
    ("name", "token", "message"),
    [
        ("x.tsv", "New York", "holds no space in a token.*found the target token 'New York'; write jsonl"),
        ("x.tsv", "", "found the target token ''"),
        ("x.scan", "a\u2028b", "found the target token"),
        ("x.scan", "OUT:", "found the target token 'OUT:'"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_the_old_file_stays(tmp_path, name, token, message):
    path = tmp_path / name
    write_dataset(SMALL, path)
    with pytest.raises(DataError, match=message):
        write_dataset(Dataset.from_pairs([(["a"], ["b", token])]), path)
    assert read_dataset(path) == SMALL


def test_splits_that_a_format_cannot_hold_are_refused(tmp_path):
    with pytest.raises(DataError, match="scan holds one split a file: found train, test"):
        write_dataset(BOTH, tmp_path / "x.scan")
    with pytest.raises(DataError, match=r"tsv cannot hold the split name 'a\\tb'"):
        write_dataset(Dataset.from_pairs(PAIRS, split="a\tb"), tmp_path / "x.tsv")
    for split in ("", " dev "):
        with pytest.raises(DataError, match=f"csv cannot hold the split name '{split}'"):
            write_dataset(Dataset.from_pairs(PAIRS, split=split), tmp_path / "x.csv")


def test_a_goal_that_cannot_be_written_is_the_users_error(tmp_path):
    (tmp_path / "x.tsv").mkdir()
    with pytest.raises(UserError, match=r"x.tsv: cannot be written: Is a directory"):
        write_dataset(SMALL, tmp_path / "x.tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["x.tsv"]


def test_text_is_a_sentence_a_line(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("the cat  sat\n\n a dog\r\n")
    sentences = read_dataset(path)
    assert sentences.pairs() == [(["the", "cat", "sat"], []), (["a", "dog"], [])]
    write_dataset(sentences, path)
    assert path.read_text() == "the cat sat\na dog\n"
    assert read_dataset(path) == sentences


def test_text_may_begin_like_scan_if_the_format_is_given(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("IN: what is this\n")
    assert read_dataset(path, "text").pairs() == [(["IN:", "what", "is", "this"], [])]
    with pytest.raises(DataError, match="OUT:"):
        read_dataset(path)
    with pytest.raises(DataError, match="an empty sentence"):
        write_dataset(Dataset.from_pairs([([], [])]), path, "text")
    with pytest.raises(DataError, match="with a target"):
        write_dataset(SMALL, path, "text")


@pytest.mark.parametrize(("name", "target"), [("x.tsv", ["b"]), ("x.txt", []), ("x.scan", ["b"]), ("x.jsonl", ["b"])])
def test_a_first_token_that_begins_like_a_byte_order_mark_is_kept(name, target, tmp_path):
    data = Dataset.from_pairs([(["\ufeffa"], target)])
    write_dataset(data, tmp_path / name)
    assert read_dataset(tmp_path / name).pairs() == data.pairs()


def test_in_sentences_a_special_symbol_is_a_word_like_any_other(tmp_path):
    """Until a network is to read them: published texts hold arrows, and words that were replaced by <unk>."""
    (tmp_path / "x.txt").write_text("a → b\nthe <unk> sat\n")
    assert read_dataset(tmp_path / "x.txt").pairs() == [(["a", "→", "b"], []), (["the", "<unk>", "sat"], [])]
    (tmp_path / "x.tsv").write_text("a → b\tc\n")
    with pytest.raises(DataError, match=r"x\.tsv, line 1: found the token '→', which is a special symbol"):
        read_dataset(tmp_path / "x.tsv")


def test_too_many_keys_are_refused_before_they_fill_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST_KEYS", 5)
    lines = [json.dumps({"source": "a", "target": "b", f"k{number}": 1}) for number in range(9)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"x\.jsonl, line 6: found further key 6, expected at most 5 in"):
        read_dataset(tmp_path / "x.jsonl")


@pytest.mark.parametrize("name", ["made.jsonl", "made.jsonl.gz", "made.csv", "made.parquet"])
def test_pandas_reads_files(tmp_path, name):
    """Tables have lists of tokens or, in CSV, text with spaces between them; further columns are kept."""
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    if "parquet" in name:
        pytest.importorskip("pyarrow", reason="pandas reads Parquet by pyarrow")
    write_dataset(Dataset(BOTH.frame.with_columns(method=pl.lit("geca"), host=pl.Series([0, 1, 2]))), tmp_path / name)
    if "jsonl" in name:
        frame = pandas.read_json(tmp_path / name, lines=True)
    else:
        frame = (pandas.read_csv if "csv" in name else pandas.read_parquet)(tmp_path / name)
    assert list(frame["host"]) == [0, 1, 2] and set(frame["method"]) == {"geca"}
    sources = [side.split() if isinstance(side, str) else list(side) for side in frame["source"]]
    assert sources == [source for source, _ in BOTH.pairs()]
    assert list(frame["split"]) == ["train", "train", "test"]


@pytest.mark.parametrize("name", ["x.txt", "x.tsv", "x.scan", "x.jsonl"])
def test_lines_that_end_with_cr_alone_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"a b\tX\rc d\tY\r")
    as_sources, as_table = lambda path: list(read_sources(str(path))), lambda path: read_table(str(path), Columns())
    for read in (read_dataset, as_sources, as_table):
        with pytest.raises(DataError, match=r"lines end with CR alone, expected LF or CR LF: tr"):
            read(tmp_path / name)


@pytest.mark.parametrize(("content", "said"), [("a\n\n\nb\n\n", "2 blank lines"), ("a\n \nb\n", "1 blank line")])
def test_blank_lines_of_a_text_are_left_out_and_that_is_said(tmp_path, content, said):
    (tmp_path / "x.txt").write_text(content)
    with pytest.warns(Remark, match=f"x.txt: {said} left out"):
        assert len(read_dataset(tmp_path / "x.txt")) == 2
    (tmp_path / "x.txt").write_text("a\nb\n\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", Remark)
        read_dataset(tmp_path / "x.txt")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
def test_sides_of_several_lines_are_counted(tmp_path, suffix, recwarn):
    path = tmp_path / f"q.{suffix}"
    made = pl.DataFrame({"source": ["a b", "c\n", "d"], "target": ["SELECT a -- all\nFROM b", "x", "y\nz"]})
    write = {"csv": made.write_csv, "jsonl": made.write_ndjson, "json": made.write_json, "parquet": made.write_parquet}
    write[suffix](path)
    assert read_dataset(path).pairs()[2] == (["d"], ["y", "z"])
    told = [str(one.message) for one in recwarn]
    assert len(told) == 1 and f"{path}: 2 examples have a side of several lines, read as one: where lines" in told[0]
