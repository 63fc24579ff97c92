"""The catalog: files, names, and what is neither."""

import re
import shlex

import polars as pl
import pytest

from compgen.data import scan
from compgen.data.catalog import DATASETS, load, names
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.data.named import Columns
from compgen.errors import DataError

SMALL = Dataset.from_pairs([(["jump"], ["I_JUMP"])])


@pytest.mark.parametrize("name", names())
def test_every_name_can_be_loaded(downloaded, name):
    parts = set(downloaded(name).splits)
    more = {"train-medium", "train-low", "dropped", "dev", "dev-cross", "test-cross", "gen"}
    assert {"train", "test"} <= parts <= {"train", "test", *more}


def test_names_are_those_of_data_sets_with_their_splits():
    assert {"scan/jump", "nacs/jump", "geo/sql-query", "scholar/question", "cogs/lf"} <= set(names())
    assert len(names()) == sum(len(known.splits) for known in DATASETS.values())
    assert load("scan/jump") == scan.SPLITS["jump"][0]()


def test_the_parts_of_funql_splits(downloaded):
    assert downloaded("geo-funql/question").splits == {"train": 513, "dev": 57, "test": 256}
    found = downloaded("geo-funql/query")
    assert found.splits == {"train": 519, "dev": 54, "test": 253}
    assert found.pairs()[2] == (
        ["what", "state", "has", "the", "largest", "population", "density", "?"],
        ["answer", "(", "largest_one", "(", "density_1", "(", "state", "(", "all", ")", ")", ")", ")"],
    )
    assert ["answer", "(", "population_1", "(", "cityid", "(", "boston", ",", "_", ")", ")", ")"] in [
        target for _, target in found.pairs()
    ]


def test_nacs_is_scan_with_sides_swapped():
    actions, command = load("nacs/jump").pairs()[-1]
    assert (command, actions) == load("scan/jump").pairs()[-1]
    assert load("nacs/jump").splits == load("scan/jump").splits


@pytest.mark.parametrize(
    ("name", "file", "origin"),
    [
        ("geo/sql-query", "text2sql/geography.json", "github.com/jkkummerfeld/text2sql-data, folder data$"),
        ("geo/logic-query", "text2sql/geography-logic.txt", "text2sql-data, folder data/non-sql-data$"),
        ("scholar/question", "text2sql/scholar.json", "github.com/jkkummerfeld/text2sql-data, folder data$"),
        ("geo-funql/query", "geoquery_subs/template_train.tsv", "Compgen_l2s2, folder data/geoquery; one file a part"),
        ("cogs/lf", "cogs/train.tsv", "github.com/najoungkim/COGS, folder data$"),
        ("cogs/variable-free", "cogs/train.tsv", "github.com/najoungkim/COGS, folder data"),
        (
            "smcalflow-cs/16",
            "smcalflow_cs/calflow.orgchart.event_create/source_domain_with_target_num16/train.alignment.jsonl",
            "reg_attn_data.zip, folder data/smcalflow_cs/calflow.orgchart.event_create; see github.com/microsoft/",
        ),
    ],
)
def test_a_file_that_has_to_be_downloaded_is_named_with_its_origin(monkeypatch, tmp_path, name, file, origin):
    expected = f"expected {file} in the folder that the environment variable COMPGEN_DATA names; get it from .*{origin}"
    monkeypatch.delenv("COMPGEN_DATA", raising=False)
    with pytest.raises(DataError, match=f"found no COMPGEN_DATA set, {expected}"):
        load(name)
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"found no {file} in {tmp_path}, {expected}"):
        load(name)


def test_logical_forms_of_cogs_may_stand_beside_variable_free_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    (tmp_path / "cogs").mkdir()
    for part in ("train", "dev", "test", "gen"):
        (tmp_path / "cogs" / f"{part}.tsv").write_text("A rose\trose ( x _ 1 )\tprimitive\n")
    published = load("cogs/lf")
    assert published.pairs() == [(["A", "rose"], ["rose", "(", "x_1", ")"])] * 4
    with pytest.raises(DataError, match="expected targets in the form 'variable-free'"):
        load("cogs/variable-free")
    for part in ("train", "dev", "test", "gen"):
        path = tmp_path / "cogs" / f"{part}.tsv"
        path.rename(path.with_name(f"lf.{part}.tsv"))
        path.write_text("A rose\tsee ( theme = rose )\n")
    assert load("cogs/lf") == published
    assert load("cogs/variable-free").pairs() == [(["A", "rose"], ["see", "(", "theme", "=", "rose", ")"])] * 4


def test_a_file_that_exists_wins_over_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_dataset(SMALL, "scan/jump", format="tsv")
    assert load("scan/jump", format="tsv") == SMALL
    write_dataset(SMALL, "small.jsonl")
    assert load("small.jsonl") == SMALL


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("scan", "no such split of scan: expected scan/ and one of simple, jump, turn_left"),
        ("scan/jmp", "scan/jmp: no such split of scan: expected scan/ and one of simple, jump"),
        ("scn/jump", "neither a file nor a known data set; did you mean scan/jump"),
        ("zzz", "neither a file nor a known data set; known data sets: scan/simple, scan/jump"),
        ("missing.tsv", "missing.tsv: no such file"),
        ("./folder/missing.tsv", "missing.tsv: no such file"),
    ],
)
def test_what_is_neither_file_nor_name_is_explained(spec, message):
    with pytest.raises(DataError, match=message):
        load(spec)


def test_a_format_for_a_known_data_set_is_an_error():
    with pytest.raises(DataError, match="a known data set has no format: leave out 'tsv'"):
        load("scan/jump", format="tsv")


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_no_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"source": [["a"]], "target": [["b"]]}).write_parquet("here.parquet")
    with pytest.raises(DataError, match="found an empty name"):
        load(name)


def test_a_wrong_line_of_a_users_file_names_the_command_that_shows_all(tmp_path):
    for name in ("x.tsv", "my x.tsv"):
        (tmp_path / name).write_text("a\tb\nc\n")
        shown = f"`cgen check {shlex.quote(str(tmp_path / name))}` shows all such mistakes and what to do"
        with pytest.raises(DataError, match=re.escape("line 2: found no TAB in 'c'") + ".*" + re.escape(shown)):
            load(str(tmp_path / name))
    (tmp_path / "x.csv").write_text("q,its answer\na,b\nc\n")  # without the names, check would not see line 3
    with pytest.raises(DataError, match=r"line 3: found 1 .*x\.csv --source q --target 'its answer'` shows all"):
        load(str(tmp_path / "x.csv"), columns=Columns(source="q", target="its answer"))
    with pytest.raises(DataError) as answers:  # predictions are a program's: they are made again, not mended
        load(str(tmp_path / "x.tsv"), answers=True)
    assert "cgen check" not in str(answers.value)
