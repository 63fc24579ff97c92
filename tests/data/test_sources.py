"""Sources to predict from: formats, order, and lines that are wrong."""

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

from compgen.data import content
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.data.named import Columns
from compgen.data.sources import Source, as_forms, is_tagged, read_sources
from compgen.errors import DataError, Remark, UserError

TWO = [["jump", "twice"], [], ["walk"]]


def tokens(path, format=None):
    return [source.tokens for piece in read_sources(str(path), format) for source in piece]


def test_words_keep_their_capitals_and_show_them_as_written(tmp_path):
    (tmp_path / "deu").write_text("Haus\tN;PL\n")
    assert list(read_sources(str(tmp_path / "deu"))) == [
        [Source(["^H", "a", "u", "s", "N", "PL"], ("Haus", "N;PL"))],
    ]


def test_words_are_written_composed_as_their_forms_will_be(tmp_path):
    (tmp_path / "own").write_text("kano\u0301\tN;PL\n", encoding="utf-8")
    assert next(read_sources(str(tmp_path / "own")))[0].written == ("kan\u00f3", "N;PL")
    assert as_forms([Source(["kano\u0301"], ("kano\u0301",))], "m.pt")[0].written == ("kan\u00f3",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", "jump twice\n\n  walk \r\n"),
        ("x.txt", "\ufeffIN: jump twice OUT: J J\n\nIN: walk OUT: W"),
        ("x.tsv", "jump  twice\tJ J\tdev\n\t\nwalk"),
        ("x.jsonl", '{"source": "jump twice"}\n \n{"target": [], "source": ["walk"], "n": 1}\n'),
    ],
)
def test_each_line_is_a_source(tmp_path, name, text):
    (tmp_path / name).write_text(text, newline="")
    assert tokens(tmp_path / name) == TWO
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert tokens(tmp_path / f"{name}.gz") == TWO


@pytest.mark.parametrize("size", [1, 5, 64])
def test_pieces_do_not_matter(tmp_path, monkeypatch, size):
    monkeypatch.setattr(content, "PIECE", size)
    text = "".join(f"a{number} é b\n" * (number % 3) + "\n" for number in range(20)) + "end"
    (tmp_path / "x.txt").write_text(text)
    assert tokens(tmp_path / "x.txt") == [line.split() for line in text.split("\n")]


def test_a_pipe_is_read_as_it_comes(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    go_on = threading.Event()

    def write():
        with path.open("w") as pipe:
            print("a\tb", file=pipe, flush=True)
            assert go_on.wait(20)
            print("c d\te", file=pipe)

    writer = threading.Thread(target=write)
    writer.start()
    pieces = read_sources(str(path))
    assert next(pieces) == [Source(["a"], ("a",))]
    go_on.set()
    assert next(pieces) == [Source(["c", "d"], ("c d",))]
    assert not list(pieces)
    writer.join()


@pytest.mark.parametrize("name", ["x.tsv", "turkish-test"])
@pytest.mark.parametrize("form", ["", "\tgeliyor"])
def test_lemmas_with_tags_are_words(tmp_path, name, form):
    (tmp_path / name).write_text(f"Gel git{form}\tV;PRS;3\n\nI{form}\tN\n")
    first, blank, last = next(read_sources(str(tmp_path / name)))
    assert first.tokens == ["^G", "e", "l", "␣", "g", "i", "t", "V", "PRS", "3"] and first.inflected
    assert first.written == ("Gel git", "V;PRS;3") and blank == Source([]) and not blank.inflected
    assert last.tokens == ["^I", "N"]


@pytest.mark.parametrize("form", ["", "\tдому"])
@pytest.mark.parametrize("bundle", ["ИМЯ;ЕД", "Ⓝ;ЕД", "٣;ЕД"])
def test_tags_are_told_as_where_words_are_learnt_from(tmp_path, bundle, form):
    (tmp_path / "x.tsv").write_text(f"дом{form}\t{bundle}\n", encoding="utf-8")
    (source,) = next(read_sources(str(tmp_path / "x.tsv")))
    assert source.inflected and source.tokens == [*"дом", *bundle.split(";")]
    if form:
        with pytest.warns(Remark, match="read as words"):
            assert read_dataset(tmp_path / "x.tsv").pairs() == [(source.tokens, [*"дому"])]


def test_small_tags_are_refused_as_where_words_are_learnt_from(tmp_path):
    (tmp_path / "x.tsv").write_text("go\tV;pst\n")
    with pytest.raises(DataError, match="found the tag 'pst', expected tags that begin"):
        next(read_sources(str(tmp_path / "x.tsv")))


@pytest.mark.parametrize("odd", ["git\t", "git", "git\tV;PST\t", "git\tgitti"])
def test_a_line_of_words_that_is_no_word_is_named(tmp_path, odd):
    (tmp_path / "x.tsv").write_text(f"gel\tV;PRS;3\n{odd}\nal\t\tV;PST\n")  # an empty form is one to be predicted
    with pytest.raises(DataError, match=r"x\.tsv, line 2: found"):
        tokens(tmp_path / "x.tsv")


def test_words_with_an_empty_column_at_the_end_are_words(tmp_path):
    (tmp_path / "x.tsv").write_text("gel\tgeliyor\tV;PRS;3\t\n")
    assert tokens(tmp_path / "x.tsv") == [[*"gel", "V", "PRS", "3"]]


def test_forms_are_spelled_unless_they_are():
    found = as_forms([Source(line.split(), (line,)) for line in ("Haus me", "k a n", "kan", "a", "A", "")], "m.pt")
    assert [" ".join(source.tokens) for source in found] == ["^H a u s ␣ m e", "k a n", "k a n", "a", "^A", ""]
    assert [source.analysed for source in found] == [True, False, True, True, True, False]
    with pytest.raises(UserError, match=r"m\.pt learnt to analyse forms: found lemmas with tags, expected forms"):
        as_forms([Source([*"kan", "N"], ("kan", "N"))], "m.pt")


def test_a_table_of_tokens_is_no_table_of_words(tmp_path):
    (tmp_path / "x.tsv").write_text("jump\tI_JUMP\nwalk\tI_WALK\n")
    assert tokens(tmp_path / "x.tsv") == [["jump"], ["walk"]]
    (tmp_path / "x.tsv").write_text("jump\tV;PST\nwalk\tI walk; I_WALK\n")
    assert tokens(tmp_path / "x.tsv") == [["jump"], ["walk"]]
    (tmp_path / "x.tsv").write_text("go\tN\n")
    assert tokens(tmp_path / "x.tsv", "unimorph") == [["g", "o", "N"]]


@pytest.mark.parametrize("form", ["", "\t", "\twent"])
def test_a_table_of_words_with_one_tag_each_is_known_by_what_inflects_them(tmp_path, form):
    (tmp_path / "x.tsv").write_text(f"go{form}\tPST\nsee{form}\tPST\n")
    (found,) = read_sources(str(tmp_path / "x.tsv"), words=True)
    assert [source.written for source in found] == [("go", "PST"), ("see", "PST")]
    (tmp_path / "x.tsv").write_text("g o PST\tw e n t\ns e e PST\ts a w\n")
    (found,) = read_sources(str(tmp_path / "x.tsv"), words=True)
    assert found[0].tokens == ["g", "o", "PST"] and not found[0].inflected


@pytest.mark.parametrize("tags", ["V, PST", "V PST", "V|PST", "V;PST"])
def test_what_inflects_words_knows_their_table_by_tags_that_are_parted_by_any_sign(tmp_path, tags):
    (tmp_path / "x.tsv").write_text(f"go\t{tags}\nsee\tV\n")
    (found,) = read_sources(str(tmp_path / "x.tsv"), words=True)
    assert [source.written for source in found] == [("go", "V;PST"), ("see", "V")]
    (tmp_path / "x.tsv").write_text("go\tV;pst\nsee\tV;pst\n")
    with pytest.raises(DataError, match="found the tag 'pst'"):
        list(read_sources(str(tmp_path / "x.tsv"), words=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", "id\tquestion\tsql\n1\ta b\tX\n"),
        ("x.csv", "sql,question\nX,a b\n"),
        ("x.jsonl", '{"question": "a b", "sql": "X"}\n'),
        ("x.json", '[{"question": "a b", "sql": "X"}]'),
    ],
)
def test_tables_with_names_of_columns_are_read_by_these(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.warns(Remark):
        assert tokens(tmp_path / name) == [["a", "b"]]
    pieces = read_sources(str(tmp_path / name), columns=Columns(source="sql", target="question"))
    assert [one.tokens for one in next(pieces)] == [["X"]]


@pytest.mark.parametrize("given", [Columns(), Columns(source="question")])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", "question\na b\n\nc\n"),
        ("x.tsv", "id\tquestion\n1\ta b\n2\tc\n"),
        ("x.csv", "question\na b\nc\n"),
        ("x.csv", "question,output,query\na b,,X\nc,,\n"),
        ("x.jsonl", '{"question": "a b"}\n{"question": ["c"], "target": null}\n'),
        ("x.jsonl", '{"question": "a b", "sql": null}\n{"question": "c", "sql": "X"}\n'),
        ("x.json", '[{"question": "a b"}, {"question": "c"}]'),
    ],
)
def test_a_table_needs_no_targets(tmp_path, name, text, given):
    (tmp_path / name).write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        assert [one.tokens for one in next(read_sources(str(tmp_path / name), columns=given))] == [["a", "b"], ["c"]]
    named = Columns(source="question", target="gone")
    with pytest.raises(DataError, match="expected 'gone', as --target says"):
        next(read_sources(str(tmp_path / name), columns=named))


def test_a_table_without_targets_is_parquet_or_has_lists_or_one_column(tmp_path):
    pl.DataFrame({"source": [["a", "b"], ["c"]]}).write_parquet(tmp_path / "x.parquet")
    assert tokens(tmp_path / "x.parquet") == [["a", "b"], ["c"]]
    (tmp_path / "x.jsonl").write_text('{"source": ["a", "b"]}\n')
    assert next(read_sources(str(tmp_path / "x.jsonl"), columns=Columns(source="source")))[0].tokens == ["a", "b"]
    (tmp_path / "x.csv").write_text("wording\na b\n")
    with pytest.warns(Remark, match="read the column 'wording' as source"):
        assert tokens(tmp_path / "x.csv") == [["a", "b"]]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "sql\nX\n", "found the columns 'sql', expected 'source' or another usual name"),
        ("x.csv", "jump twice\nwalk\n", "found the columns 'jump twice', expected 'source'"),
        ("x.csv", "a,b\nX,Y\n", "found the columns 'a', 'b', expected 'source'"),
        ("x.csv", "question\na\n</s>\n", r"x\.csv, line 3: found the token '</s>', which is a special symbol"),
    ],
)
def test_a_table_without_targets_needs_sources(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        with pytest.raises(DataError, match=says):
            tokens(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text"), [("x.txt", "question\na b\n"), ("x.tsv", "text\tX\na b\tY\n"), ("x.tsv", "jump\na b\n")]
)
def test_a_word_is_a_source_where_it_need_not_be_a_name(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert tokens(tmp_path / name) == [[text.split()[0]], ["a", "b"]]


@pytest.mark.parametrize(("name", "sign"), [("x.tsv", "\t"), ("x.csv", ",")])
def test_tables_of_words_with_names_of_columns_are_words(tmp_path, name, sign):
    (tmp_path / name).write_text("form\ttags\tlemma\nGeldi\tV;PST\tgel git\n".replace("\t", sign))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        (source,) = next(read_sources(str(tmp_path / name)))
    assert source.written == ("gel git", "V;PST") and source.tokens[:4] == ["g", "e", "l", "␣"]


@pytest.mark.parametrize(
    ("columns", "format", "text"),
    [
        ({}, None, "source\ttarget\na b\tx\nc\ty\n"),
        ({}, None, 'query,question\nx,"a b"\ny,c\n'),
        ({"source": "words"}, None, "n\twords\n1\ta b\n2\tc\n"),
        ({"source": "words"}, None, '{"words": "a b"}\n{"words": ["c"], "source": "d"}\n'),
        ({"source": "words"}, "jsonl", '{"words": "a b"}\n{"words": ["c"], "source": "d"}\n'),
        ({}, "jsonl", '{"question": "a b", "query": "x"}\n{"question": "c", "query": "y"}\n'),
        ({}, "tsv", "question\tquery\na b\tx\nc\ty\n"),
        ({}, None, "id,question\n1,a b\n2,c\n"),
        ({}, None, "id\tquestion\n1\ta b\n2\tc\n"),
        ({"source": "words"}, None, 'n;words\n1;"a b"\n2;c\n'),
        ({}, None, '[{"source": "a b", "target": "x"},\n {"source": ["c"], "target": "y"}]\n'),
    ],
)
def test_columns_of_a_pipe_have_names_too(tmp_path, columns, format, text):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(text))
    writer.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        found = [source.tokens for piece in read_sources(str(path), format, Columns(**columns)) for source in piece]
    writer.join()
    assert found == [["a", "b"], ["c"]]


def test_lines_of_a_pipe_that_may_be_csv_are_told_to_be_read_as_sentences(monkeypatch, recwarn):
    for lines in (b"yes , he came , too .\n", b"IN: a OUT: b,c\n", b"frage,programm\na,b\n"):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(lines)))
        next(read_sources("-"))
    (told,) = recwarn
    assert "standard input: read as sentences, one a line; if this is CSV, save it" in str(told.message)


def test_only_a_split_is_read(tmp_path):
    (tmp_path / "x.tsv").write_text("a b\tx\ttrain\nc\ty\ttest\nd\tz\ttest\n")
    (found,) = read_sources(str(tmp_path / "x.tsv"), split="test")
    assert [source.tokens for source in found] == [["c"], ["d"]]
    with pytest.raises(DataError, match="no examples in split 'dev'"):
        next(read_sources(str(tmp_path / "x.tsv"), split="dev"))
    (tmp_path / "w.tsv").write_text("gel\tGeldi\tV;PST\ngit\tgitti\tV;PST\n")
    (found,) = read_sources(str(tmp_path / "w.tsv"), split="train")
    assert [source.written for source in found] == [("gel", "V;PST"), ("git", "V;PST")]
    (tmp_path / "t.tsv").write_text("gel\tV;PST\ngit\tV;PST\n")
    with pytest.raises(UserError, match="lemma TAB tags has no splits: leave out --split"):
        next(read_sources(str(tmp_path / "t.tsv"), split="train"))


def test_sides_are_no_words_whatever_columns_are_beside_them(tmp_path):
    (tmp_path / "x.csv").write_text("source,target,lemma,form,tags\na b,x,be,is,V;3\n")
    (tmp_path / "y.csv").write_text("text,lemma,form,tags\na b,be,is,V;3\n")
    for name, columns in (("x.csv", Columns()), ("y.csv", Columns(source="text"))):
        (found,) = read_sources(str(tmp_path / name), columns=columns)
        assert found == [Source(["a", "b"], ("a b",), {"lemma": "be", "tags": "V;3"})]


def test_answers_carry_other_columns_on_but_right_answers_and_what_json_cannot_hold(tmp_path):
    frame = pl.DataFrame({"id": [7], "question": ["a b"], "answer": ["x"], "split": ["dev"], "raw": [b"1"]})
    frame.write_parquet(tmp_path / "x.parquet")
    frame.drop("raw").rename({"question": "source"}).write_ndjson(tmp_path / "x.jsonl")
    with pytest.warns(Remark, match="the column 'raw' is left out of answers: JSON cannot hold it"):
        assert next(read_sources(str(tmp_path / "x.parquet"))) == [Source(["a", "b"], ("a b",), {"id": 7})]
    assert next(read_sources(str(tmp_path / "x.jsonl"))) == [Source(["a", "b"], ("a b",), {"id": 7})]


def test_numbers_that_json_does_not_have_are_carried_on_as_text(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"source": "a", "x": NaN, "y": [1e999, 2.5], "z": {"of": -Infinity}}\n')
    more = {"x": "NaN", "y": ["Infinity", 2.5], "z": {"of": "-Infinity"}}
    assert next(read_sources(str(tmp_path / "x.jsonl"))) == [Source(["a"], ("a",), more)]


@pytest.mark.parametrize("columns", [("lemma", "form", "tags"), ("lemma", "tags"), ("id", "MSD", "Lemma")])
@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_named_columns_of_lemmas_and_tags_are_words_whether_forms_are_there_or_not(tmp_path, suffix, columns):
    values = {"lemma": "gel", "form": "", "tags": "V;PST", "id": "1", "MSD": "V;PST", "Lemma": "gel"}
    frame = pl.DataFrame([{column: values[column] for column in columns}] * 2)
    more = {"id": "1"} if "id" in columns else {}
    path, expected = tmp_path / f"x.{suffix}", Source(["g", "e", "l", "V", "PST"], ("gel", "V;PST"), more)
    if suffix == "parquet":
        frame.write_parquet(path)
    else:
        lines = [",".join(row) for row in (columns, *frame.iter_rows())]
        text = {"jsonl": frame.write_ndjson(), "json": f" \n{json.dumps(frame.to_dicts(), indent=1)}"}
        path.write_text(text.get(suffix, "\n".join(lines).replace(",", "\t" if suffix == "tsv" else ",") + "\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        assert list(read_sources(str(path))) == [[expected] * 2]
        if suffix != "parquet":
            os.mkfifo(tmp_path / "pipe")
            writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(path.read_text()))
            writer.start()
            assert list(read_sources(str(tmp_path / "pipe"))) == [[expected] * 2]
            writer.join()


def test_parquet_of_words_is_read_as_other_tables_of_words(tmp_path):
    frame = pl.DataFrame({"lemma": ["gel"], "form": ["geldi"], "tags": ["V;PST"], "split": ["dev"], "note": [3]})
    frame.write_parquet(tmp_path / "x.parquet")
    found = read_dataset(tmp_path / "x.parquet")
    assert found.pairs() == [(["g", "e", "l", "V", "PST"], [*"geldi"])]
    assert found.frame.select("split", "note").rows() == [("dev", 3)]
    frame.with_columns(form=pl.lit("")).write_parquet(tmp_path / "y.parquet")
    with pytest.raises(DataError, match=r"y\.parquet, row 1: .*a lemma, a form, and tags joined by semicolons"):
        read_dataset(tmp_path / "y.parquet")


def test_lemmas_with_tags_are_seen_in_a_dataset():
    assert is_tagged(Dataset.from_pairs([(["gel"], ["V;PRS"]), (["git"], ["V"])]))
    assert not is_tagged(Dataset.from_pairs([(["jump"], ["I_JUMP"])]))
    assert not is_tagged(Dataset.from_pairs([(["jump"], ["V;PRS", "x"])]))


def test_other_data_are_read_whole(tmp_path):
    pl.DataFrame({"source": ["a b", "c"], "target": ["x", "y"]}).write_parquet(tmp_path / "x.parquet")
    assert tokens(tmp_path / "x.parquet") == [["a", "b"], ["c"]]
    assert len(tokens("scan/jump")) == 22_376


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.txt", "a\n<s> b\n", r"x\.txt, line 2: found the token '<s>', which is a special symbol"),
        ("x.txt", "IN: a OUT: b\nIN: c\n", "line 2: found 'IN: c', expected 'IN: source"),
        ("x.tsv", "a\tb\n\tc\n", "line 2: found an empty source"),
        ("x.jsonl", '{"source": "a"}\n{"target": "b"}\n', 'line 2: found .*expected {"source"'),
        ("x.jsonl", '{"source": ["a", 3]}\n', "line 1: found"),
        ("x.jsonl", '{"source": []}\n', "line 1: found"),
        ("x.jsonl", '{"source": {"a": 1}}\n', "line 1: found"),
        ("x.jsonl", '["source"]\n', "line 1: found"),
        ("x.jsonl", '{"source": "a", "source": "b"}\n', "line 1: found the key 'source' twice in an object"),
        ("x.jsonl", '{"source": "a\\ud800"}\n', "line 1: found"),
        ("words", "Hahn\tHahnes\tN;GEN\nTee\tN;PL\tTees\n", "line 2: found the tags 'N;PL' in second place"),
        ("words", "gel\tV;PRS\ngel\n", "line 2: found 'gel', expected lemma TAB tags"),
        ("words", "gel\tV;PRS\ngel\ta\tV\tb\n", "line 2: found .*expected lemma TAB tags"),
        ("words", "gel\tV;PRS\nG\x07\tV\n", r"line 2: found '\\x07' in 'G\\x07', which has a control character"),
        ("x.csv", "a,b\n", "csv"),
        ("x.csv", "id,source\n1,a\n2,\n", "line 3: found an empty source, expected tokens$"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=says):
        tokens(tmp_path / name)


def test_bytes_and_lengths_are_checked_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "PIECE", 8)
    monkeypatch.setattr(content, "LONGEST_LINE", 30)
    path = tmp_path / "x.txt"
    path.write_bytes(b"a\n" * 9 + b"b\xfc\n")
    with pytest.raises(DataError, match=r"x\.txt, line 10: found the byte 0xfc"):
        tokens(path)
    path.write_bytes(b"a\n" * 9 + b"b" * 99)
    with pytest.raises(DataError, match=r"x\.txt, line 10: found more than 30 bytes"):
        tokens(path)


def test_what_is_no_data_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a folder without Parquet files, expected data/\*\.parquet$"):
        tokens(tmp_path)
    with pytest.raises(DataError, match=r"x\.pt: a model, expected data$"):
        tokens(tmp_path / "x.pt")
    with pytest.raises(DataError, match="a known data set has no format"):
        tokens("scan/jump", "tsv")
    (tmp_path / "x.csv").touch()
    with pytest.raises(UserError, match="no format 'csv' of sources: expected one of text, tsv, jsonl, unimorph"):
        tokens(tmp_path / "x.csv", "csv")
