"""CSV, JSON and TSV with a header: what is written is read back, and what others write is read."""

import json
import time
import warnings

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.data.lenient import read_table
from compgen.data.mending import mend
from compgen.data.named import Columns
from compgen.data.records import repeated, separator
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::compgen.errors.Remark")
PAIRS = [(["how", "many"], ["count", "x"]), (["where"], ["place"])]
anything = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda token: not why_not_data(token))
word = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1).filter(
    lambda token: not why_not_data(token)
)


def datasets(tokens):
    side = st.lists(tokens, min_size=1, max_size=4)
    rows = st.lists(st.tuples(side, side, st.sampled_from(["train", "dev", "a split"])), min_size=1, max_size=5)
    return rows.map(lambda made: Dataset(pl.DataFrame(made, schema=Dataset.from_pairs([]).frame.schema, orient="row")))


@pytest.mark.parametrize(
    ("name", "tokens"), [("x.json", anything), ("x.csv", word), ("x.json.gz", word), ("x.csv.gz", word)]
)
def test_what_is_written_is_read_back(tmp_path_factory, name, tokens):
    path = tmp_path_factory.mktemp("folder") / name

    @settings(max_examples=50, deadline=None)
    @given(datasets(tokens))
    def check(dataset):
        write_dataset(dataset, path)
        assert read_dataset(path) == dataset

    check()


@pytest.mark.parametrize(
    ("name", "content", "given"),
    [
        ("x.csv", "source,target\nhow many,count x\nwhere,place\n", {}),
        ("x.csv", '\ufeff"source";"target"\r\n"how many";"count x"\r\n\r\nwhere;place', {}),
        ("x.csv", "Question, SQL\nhow many, count x\nwhere, place\n", {}),
        ("x.csv", 'source,target\n"how\nmany",count x\nwhere,place\n', {}),
        ("x.csv", "a\tb\nhow many\tcount x\nwhere\tplace\n", {"source": "a", "target": "b"}),
        ("x.tsv", "question\tsql\nhow many\tcount x\nwhere\tplace\n", {}),
        ("x.tsv", "b\ta\ncount x\thow many\nplace\twhere\n", {"source": "a", "target": "b"}),
        ("x.json", '[{"input": "how many", "output": ["count", "x"]},\n{"output": "place", "input": "where"}]', {}),
        ("x.json", ' [\n{"q": "how many", "sql": "count x"}, {"q": "where", "sql": "place"}\n]\n', {"source": "q"}),
        ("x.jsonl", '{"src": "how many", "tgt": "count x"}\n{"src": "where", "tgt": "place"}\n', {}),
    ],
)
def test_tables_of_other_hands_are_read(tmp_path, name, content, given):
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    dataset = read_dataset(tmp_path / name, columns=Columns(**given))
    assert dataset.pairs() == PAIRS
    assert dataset.frame.columns == ["source", "target", "split"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "id,question,sql,split\n7,how many,count x,\n8,where,place,test\n"),
        ("x.tsv", "id\tquestion\tsql\tsplit\n7\thow many\tcount x\t\n8\twhere\tplace\ttest\n"),
        (
            "x.json",
            '[{"id": "7", "question": "how many", "sql": "count x"},'
            '{"id": "8", "question": "where", "sql": "place", "split": "test"}]',
        ),
    ],
)
def test_further_columns_and_splits_are_kept(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    dataset = read_dataset(tmp_path / name)
    assert dataset.pairs() == PAIRS
    assert dataset.frame["id"].to_list() == ["7", "8"]
    assert dataset.frame["split"].to_list() == ["train", "test"]


@pytest.mark.parametrize("record", ['{"source": ["a"], "target": ["b"]%s}', '{"question": "a", "sql": "b", "id": 1%s}'])
def test_a_split_without_a_name_is_train_as_cgen_check_says(tmp_path, record):
    path = tmp_path / "x.jsonl"
    splits = ["", ', "split": null', ', "split": ""', ', "split": "  "', ', "split": "dev"', ', "split": " dev "']
    path.write_text("".join(f"{record % split}\n" for split in splits))
    assert read_dataset(path).splits == {"train": 4, "dev": 2}
    checked = read_table(str(path), Columns())
    assert checked.rows["split"].to_list() == ["train"] * 4 + ["dev"] * 2 and not checked.findings
    path.write_text("".join(f"{record % split}\n" for split in splits[2:]))  # all of them as programs write them
    assert read_dataset(path).splits == {"train": 2, "dev": 2}


def test_parquet_is_read_by_the_names_of_its_columns(tmp_path):
    frame = pl.DataFrame({"source": ["web", "book"], "q": ["how many", "where"], "sql": ["count x", "place"]})
    frame.write_parquet(tmp_path / "x.parquet")
    dataset = read_dataset(tmp_path / "x.parquet", columns=Columns(source="q"))
    assert dataset.pairs() == PAIRS
    assert dataset.frame["source_column"].to_list() == ["web", "book"]


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl"])
def test_no_column_is_lost_to_the_name_that_another_is_kept_under(tmp_path, name):
    frame = pl.DataFrame({"source": ["a"], "target": ["b"], "sql": ["c"], "target_column": ["d"]})
    frame.write_parquet(tmp_path / name) if name == "x.parquet" else frame.write_ndjson(tmp_path / name)
    assert read_dataset(tmp_path / name).frame["target_column"].to_list() == ["d"]
    with pytest.raises(DataError, match="'target' would be kept as 'target_column', of which there is one: rename one"):
        read_dataset(tmp_path / name, columns=Columns(target="sql"))


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_a_table_of_words_keeps_a_column_that_is_called_as_a_side(tmp_path, name):
    frame = pl.DataFrame({"lemma": ["go"], "form": ["went"], "tags": ["V;PST"], "source": ["wiki"]})
    write = {"x.jsonl": frame.write_ndjson, "x.csv": frame.write_csv, "x.parquet": frame.write_parquet}[name]
    write(tmp_path / name)
    dataset = read_dataset(tmp_path / name)
    assert dataset.pairs() == [(["g", "o", "V", "PST"], [*"went"])]
    assert dataset.frame["source_column"].to_list() == ["wiki"]
    assert mend(read_table(str(tmp_path / name), Columns())).dataset == dataset


def test_a_later_record_cannot_take_the_place_of_a_chosen_column(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"q": "a", "target": "b"}\n{"source": "web", "q": "c", "target": "d"}\n')
    dataset = read_dataset(tmp_path / "x.jsonl", columns=Columns(source="q"))
    assert dataset.pairs() == [(["a"], ["b"]), (["c"], ["d"])]
    assert dataset.frame["source_column"].to_list() == [None, "web"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deu.csv", "lemma,form,tags\ngehen,ging,V;PST\n"),
        ("deu.tsv", "tags\tlemma\tform\nV;PST\tgehen\tging\n"),
        ("deu.json", '[{"lemma": "gehen", "feats": "V; PST", "form": "ging"}]'),
    ],
)
def test_lemma_form_and_tags_are_words_of_inflection(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_dataset(tmp_path / name).pairs() == [([*"gehen", "V", "PST"], list("ging"))]


def test_json_of_one_long_line_is_read_from_a_file(tmp_path):
    rows = [{"source": "a " * 500, "target": "b"}] * 1_100
    (tmp_path / "x.json").write_text(json.dumps(rows))
    assert (tmp_path / "x.json").stat().st_size > 2**20
    assert len(read_dataset(tmp_path / "x.json")) == 1_100


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "x.csv",
            "source,target\na,b\nc,d,e\n",
            r"line 3: found 3 fields in 'c \| d \| e', expected 2, as the first line",
        ),
        ("x.csv", 'source,target\na,b\n\n"c"x,d\n', r"line 4: found a row that is no CSV .*, expected quotes in pairs"),
        ("x.csv", "sep=;\nsource;target\na;b\n", "line 1: found a line sep=, for Excel, expected the names"),
        ("x.csv", "source,source\na,b\n", "found two columns with the name 'source'"),
        ("x.csv", "source,target\na,\nb,c\n", "line 2: found an empty target"),
        ("x.csv", "source,target\n", "no examples: found one line, which is read as the names of the columns"),
        ("x.csv", "\n\nsource,c\na,b\n", "x.csv, line 3: found the columns 'source', 'c', expected 'target'"),
        ("x.tsv", "source\ttarget\na\tb\tc\n", r"line 2: found 3 fields"),
        ("x.json", "", "no examples: the file is empty"),
        ("x.json", "[]", "no examples: the file is empty"),
        ("x.json", '{"source": "a", "target": "b"}', r"line 1: found '\{\"source\".*, expected a list of objects"),
        ("x.json", '[{"source": "a", "target": "b"},\n\n3]', "line 3: found '3', not an object"),
        ("x.json", '[{"source": "a", "target": "b"},\n{"source": ', "line 2: found .*, which is no JSON in UTF-8"),
        ("x.json", '[{"source": "a", "target": "b"}', "found 'the end of the file', expected one list, with its end ]"),
        ("x.json", '[{"source": "a", "target": "b"}]\n[]', r"line 2: found '\]\\n\[\]', expected one list"),
        ("x.json", '[{"source": "a", "source": "b"}]', "line 1: found the key 'source' twice"),
        ("deu.csv", "lemma,form,tags\ngehen,ging,\n", "line 2: found .*, expected a lemma, a form, and tags"),
        ("deu.csv", "lemma,form,tags\ngehen,ging,v\n", "line 2: found the tag 'v', expected tags that begin"),
        ("x.json", '[{"lemma": 5, "form": "a", "tags": "N"}]', r"line 1: found \(5, 'a', 'N'\), expected"),
    ],
)
def test_malformed_tables_are_named_with_the_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_dataset(tmp_path / name)


def test_a_check_finds_the_cells_of_words_that_are_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text(
        '{"lemma": 5, "form": "a", "tags": "N;SG"}\n{"lemma": "b", "form": "a", "tags": "N;SG"}\n'
        '{"lemma": "b", "form": null, "tags": "N;SG"}\n{"lemma": "b", "form": "a", "tags": "N;SG", "split": 5}\n'
    )
    table = read_table(str(tmp_path / "x.jsonl"), Columns())
    assert [finding.lines for finding in table.findings] == [[1, 3], [4]] and table.rows["number"].to_list() == [2]


def test_a_column_split_may_be_named_as_a_side(tmp_path):
    (tmp_path / "x.csv").write_text("split,target\na,b\n ,c\n")
    with pytest.raises(DataError, match="line 3: found an empty source"):  # not the split of a row without one, train
        read_dataset(tmp_path / "x.csv", columns=Columns(source="split"))


def test_of_many_names_a_repeated_one_is_found_at_once(tmp_path):
    names = [f"c{number}" for number in range(50_000)]
    began = time.process_time()
    assert repeated(names) is None and repeated([*names, "c7", "c5"]) == "c5"
    keys = ",".join(f'"{name}":1' for name in [*names, "c7"])
    (tmp_path / "x.json").write_text(f"[{{{keys}}}]")
    with pytest.raises(DataError, match="line 1: found the key 'c7' twice"):
        read_dataset(tmp_path / "x.json")
    assert time.process_time() - began < 10


def test_csv_refuses_what_it_cannot_hold(tmp_path):
    with pytest.raises(
        DataError, match=r"csv holds no space in a token.*found the target token 'New York'; write jsonl"
    ):
        write_dataset(Dataset.from_pairs([(["a"], ["New York"])]), tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()


def test_csv_names_splits_only_if_there_are_others_than_train(tmp_path):
    data = Dataset(
        Dataset.from_pairs(PAIRS).frame.with_columns(more=pl.Series([1, 2]), tags=pl.Series([["a", "b"], []]))
    )
    write_dataset(data, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == 'source,target,more,tags\nhow many,count x,1,a b\nwhere,place,2,""\n'
    write_dataset(data + Dataset.from_pairs(PAIRS, "test"), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().startswith("source,target,split,more,tags\n")


def test_a_separator_within_quotes_is_none():
    assert separator('"a,b,c";"d"\n') == ";"
    assert separator("a,b;c,d") == ","


def test_of_several_signs_the_one_that_is_equally_often_in_most_lines_separates():
    assert separator("runs;run;V,PRS,3,SG\nwalked;walk;V,PST\n") == ";"
    assert separator("run,runs,V;PRS;3;SG\n\nwalk,walked,V;PST\n") == ","
    assert separator("no, go;no\nyes;yes\nodd\n") == ";"  # most lines are without a comma
    assert separator("runs;run;V,PRS,3,SG\njumps;jump;V,PRS,3,SG\n") == ";"  # a tie: the first sign


def test_names_that_are_usual_are_read_without_a_word(tmp_path):
    (tmp_path / "x.csv").write_text("source,target\na,b\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_dataset(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ({"request": "c", "call": None}, 'found "call": null'),
        ({"request": ["c", 1], "call": "d"}, r"""found "request": \['c', 1\]"""),
        ({"request": "c"}, "found the keys 'request'"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_in_the_names_of_the_file(tmp_path, second, found):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in ({"request": "a", "call": "b"}, second)))
    expected = r'line 2: %s, expected \{"request": \.\.\., "call": \.\.\.\}, each a list'
    with pytest.raises(DataError, match=expected % found):
        read_dataset(path, columns=Columns(source="request", target="call"))
