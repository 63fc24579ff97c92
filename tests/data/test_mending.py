"""Mending: what was wrong is put right or left out, and what is written has nothing left to mend."""

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compgen.data import checks
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.data.lenient import read_table
from compgen.data.mending import LEFT_OUT, mend
from compgen.data.named import Columns
from compgen.errors import DataError

# A table with a mistake in nearly each line: see the test for what becomes of it.
WRONG = (
    "id\tSentence\tMeaning\n"
    '1\t"how many"\tcount ( x )\n'
    "2\twhere\u00a0is\tplace ( x )\n"
    "3\t\tplace ( y )\n"
    "4\twho\u200b\tperson ( x\n"
    "5\twhere is\tplace ( x )\n"
    "6\thow many\tcount ( y )\n"
    "7\tcafe\u0301 <unk>\tbar ( x )\n"
    "8\tcafe\u0301\tbar ( x )\n"
    '9\t"say ""so"""\tsay ( x )\n'
)


def mended(path, content, **columns):
    path.write_text(content, encoding="utf-8", newline="")
    return mend(read_table(str(path), Columns(**columns)))


def test_quotes_at_both_ends_that_are_no_pair_stay(tmp_path):
    found = mended(tmp_path / "x.csv", 'source,target\n"""hi"" and ""bye""",A\n"""so""",B\n')
    assert [source for source, _ in found.dataset.pairs()] == [['"hi"', "and", '"bye"'], ["so"]]


def test_words_of_a_table_with_names_are_spelled_as_their_reader_does(tmp_path):
    table = "lemma,form,tags\nHund,Hunde,N;PL\nCafe\u0301,Caf\u00e9s,N;PL\nx,y,n\n,z,N\n"
    found = mended(tmp_path / "x.csv", table)
    assert found.dataset.pairs()[0] == (["^H", *"und", "N", "PL"], ["^H", *"unde"])
    assert found.dataset.pairs()[1] == (["^C", *"af\u00e9", "N", "PL"], ["^C", *"af\u00e9s"])
    assert len(found.dataset) == 2
    (tmp_path / "x.csv").write_text(table.partition("x,")[0], encoding="utf-8")
    assert read_dataset(tmp_path / "x.csv").pairs() == found.dataset.pairs()


def test_a_table_is_mended_line_by_line(tmp_path):
    found = mended(tmp_path / "x.tsv", WRONG.removeprefix("id\tSentence\tMeaning\n"))
    assert [(" ".join(source), " ".join(target)) for source, target in found.dataset.pairs()] == [
        ("how many", "count ( x )"),
        ("where is", "place ( x )"),
        ("caf\u00e9", "bar ( x )"),
        ('say "so"', "say ( x )"),
    ]
    assert found.dataset.splits == {"train": 4}
    left_out = {finding.what: finding.lines for finding in found.left_out}
    assert sorted(line for lines in left_out.values() for line in lines) == [3, 4, 5, 6, 7]
    assert left_out["an empty side"] == [3]


@pytest.mark.parametrize("space", ["\u00a0 ", "\u2003", " \u00a0"])
def test_repetitions_are_those_of_tokens(tmp_path, space):
    found = mended(tmp_path / "x.tsv", f"a b\tx y\na{space}b\tx{space}y\na{space}b\tz\nd e\tv w\nd f\tv\n")
    assert [source for source, _ in found.dataset.pairs()] == [["a", "b"], ["d", "e"], ["d", "f"]]
    assert [finding.lines for finding in found.left_out] == [[2], [3]]
    found = mended(tmp_path / "x.txt", f"a b\na{space}b\nc d\n")
    assert [source for source, _ in found.dataset.pairs()] == [["a", "b"], ["c", "d"]]


def test_a_header_before_ids_is_left_out(tmp_path):
    found = mended(tmp_path / "x.tsv", WRONG.replace("id\tSentence\tMeaning", "nr\tOur sentence\tIts meaning"))
    assert found.left_out[0].lines == [1]
    assert found.dataset.pairs()[0] == (["how", "many"], ["count", "(", "x", ")"])


def test_a_header_of_usual_names_is_read_by_the_names(tmp_path):
    found = mended(tmp_path / "x.tsv", WRONG)
    assert found.dataset.frame["id"].to_list() == ["1", "2", "8", "9"]


def test_lines_that_no_reader_takes_are_left_out(tmp_path):
    found = mended(
        tmp_path / "x.jsonl", '{"source": "a", "target": "b", "id": 3}\nnope\n{"source": "c", "target": "d"}\n'
    )
    assert found.dataset.pairs() == [(["a"], ["b"]), (["c"], ["d"])]
    assert found.dataset.frame["id"].to_list() == [3, None]
    assert [finding.lines for finding in found.left_out] == [[2]]


def test_bars_become_two_sides(tmp_path):
    assert mended(tmp_path / "x.txt", "a b ||| c\nd|||e f\n").dataset.pairs() == [
        (["a", "b"], ["c"]),
        (["d"], ["e", "f"]),
    ]


def test_letters_that_cannot_be_read_as_utf8_are_not_written(tmp_path):
    (tmp_path / "x.tsv").write_bytes(b"a\tb\ncaf\xe9\td\n")
    found = read_table(str(tmp_path / "x.tsv"), Columns())
    assert found.findings[0].lines == [2]
    with pytest.raises(DataError, match="nothing is written: bytes that are no UTF-8"):
        mend(found)  # they can be had yet, by another encoding


def test_nothing_left_is_an_error(tmp_path):
    with pytest.raises(DataError, match="of 2 lines 2 would be left out, most for an empty side"):
        mended(tmp_path / "x.tsv", "a\t\n\tb\n")


side = st.text('ab "()\u00a0\u200b\u0301e', max_size=9)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(side, side), min_size=1, max_size=9))
def test_what_is_mended_can_be_read_and_needs_no_more_mending(tmp_path, lines):
    path = tmp_path / "mended.tsv"
    try:
        found = mended(tmp_path / "x.tsv", "".join(f"{source}\t{target}\n" for source, target in lines))
    except DataError:
        return
    write_dataset(found.dataset, path)
    assert read_dataset(path) == found.dataset
    rows = checks.rows_of(Dataset(found.dataset.frame))
    assert not [finding for check in LEFT_OUT if (finding := check(rows)) and check is not checks.brackets]


FURTHER = (
    '{"source": ["new york", "is"], "target": ["A"], "id": 1}\n' + 2 * '{"source": ["b"], "target": ["B"], "id": 2}\n'
)


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet", "folder"])
def test_further_columns_and_tokens_with_spaces_stay(tmp_path, name):
    (tmp_path / "x.jsonl").write_text(FURTHER)
    if name != "x.jsonl":
        write_dataset(read_dataset(tmp_path / "x.jsonl"), tmp_path / name)
    table = read_table(str(tmp_path / name), Columns())
    assert [(one.what, one.lines) for one in table.findings] == [("a token with a space in it", [1])]
    found = mend(table)
    assert found.dataset.frame["id"].to_list() == [1, 2]
    assert found.dataset.pairs() == [(["new␣york", "is"], ["A"]), (["b"], ["B"])]


def test_lists_that_are_named_keep_their_names_as_splits(tmp_path):
    (tmp_path / "x.json").write_text(
        '{"train": [{"source": "a", "target": "A"}], "test": [{"source": "b", "target": "B"}], "version": 1}'
    )
    assert mend(read_table(str(tmp_path / "x.json"), Columns())).dataset.splits == {"train": 1, "test": 1}


def test_a_list_that_is_named_twice_is_told(tmp_path):
    one = '[{"source": "a", "target": "A"}]'
    (tmp_path / "x.json").write_text(f'{{"train": {one}, "test": {one}, "train": {one}}}')
    with pytest.raises(DataError, match=r"x\.json: found the key 'train' twice in an object"):
        read_table(str(tmp_path / "x.json"), Columns())


def test_sides_of_several_lines_are_told(tmp_path):
    (tmp_path / "x.jsonl").write_text(
        '{"source": "add", "target": "def f(a):\\n    return a\\n"}\n{"source": "b", "target": "B\\n"}\n'
    )
    table = read_table(str(tmp_path / "x.jsonl"), Columns())
    what = "a side of several lines, read as one: line ends are spaces"
    assert [(one.what, one.lines) for one in table.findings] == [(what, [1])]


def test_words_keep_their_splits_and_further_columns(tmp_path):
    words = "lemma\tform\ttags\tsplit\tid\ngo\twent\tV;PST\ttrain\ta\nsee\tsaw\tV;PST\ttest\tb\n"
    found = mended(tmp_path / "x.tsv", words).dataset
    assert found.splits == {"train": 1, "test": 1} and found.frame["id"].to_list() == ["a", "b"]


def test_columns_that_no_text_holds_are_named(tmp_path):
    data = Dataset.from_pairs([(["a"], ["b"])])
    data = Dataset(data.frame.with_columns(more=pl.Series([{"x": 1}])))
    write_dataset(data, tmp_path / "x.parquet")
    (said,) = read_table(str(tmp_path / "x.parquet"), Columns()).findings
    assert said.what == "columns that no text holds: 'more' (Struct({'x': Int64}))"


def test_line_ends_of_unicode_in_a_further_column_end_no_row(tmp_path):
    frame = Dataset.from_pairs([(["a"], ["b"]), (["c"], ["d"])]).frame
    kept = Dataset(frame.with_columns(note=pl.Series(["one\u2028two\x85three", "four"])))
    write_dataset(kept, tmp_path / "x.parquet")
    assert mend(read_table(str(tmp_path / "x.parquet"), Columns())).dataset == kept


def test_a_word_that_ends_in_out_is_no_sign_of_the_target(tmp_path):
    line = "IN: press LOGOUT: now OUT: PRESS\n"
    found = mended(tmp_path / "x.scan", f"{line}IN:walk OUT:WALK\n")
    assert found.dataset.pairs() == [(["press", "LOGOUT:", "now"], ["PRESS"]), (["walk"], ["WALK"])]
    (tmp_path / "x.scan").write_text(line, encoding="utf-8")
    assert read_dataset(tmp_path / "x.scan").pairs() == found.dataset.pairs()[:1]
