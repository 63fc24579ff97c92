"""Further columns: what JSON lines and Parquet carry beside the examples."""

import datetime
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.data.columns import LIMIT
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.data.lenient import read_table
from compgen.data.named import Columns
from compgen.errors import DataError

SMALL = Dataset.from_pairs([(["a"], ["b"]), (["c"], ["d"]), (["e"], ["f"])])

scalars = [st.booleans(), st.integers(1 - LIMIT, LIMIT - 1), st.floats(allow_nan=False, allow_infinity=False)]
scalars.append(st.text(st.characters(exclude_categories=["Cs"])))
kinds = [*scalars, *(st.lists(scalar, max_size=3) for scalar in scalars)]
columns = st.one_of(st.lists(st.none() | kind, min_size=3, max_size=3) for kind in kinds)


def with_column(name, values):
    return Dataset(SMALL.frame.with_columns(pl.Series(name, values, strict=False)))


def read(path, values, key="x"):
    """What is read of a key, where `...` is a line without it."""
    lines = [{"source": "a", "target": "b"} | ({} if value is ... else {key: value}) for value in values]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_dataset(path).frame[key]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_what_is_written_is_read_back(tmp_path_factory, suffix):
    path = tmp_path_factory.mktemp("folder") / f"x.{suffix}"

    @settings(max_examples=80, deadline=None)
    @given(st.sampled_from(["x", "place", "number", "line", "template", "", "a b"]), columns)
    def check(name, values):
        dataset = with_column(name, values)
        write_dataset(dataset, path)
        found = read_dataset(path)
        assert found.frame[name].to_list() == values and found.pairs() == SMALL.pairs()
        write_dataset(found, path)
        assert read_dataset(path) == found

    check()


@pytest.mark.parametrize(
    ("values", "expected", "dtype"),
    [
        ([1, ..., None], [1, None, None], pl.Int64()),
        ([..., ..., None], [None, None, None], pl.Null()),
        ([True, None, False], [True, None, False], pl.Boolean()),
        ([1, 2.5, ...], [1.0, 2.5, None], pl.Float64()),
        ([[1, None], ..., []], [[1, None], None, []], pl.List(pl.Int64())),
        ([[], None, []], [[], None, []], pl.List(pl.Null())),
        ([["x"], [1, 2.5]], [["x"], ["1", "2.5"]], pl.List(pl.String())),
        ([1, "x", None], ["1", "x", None], pl.String()),
        ([True, 1, "é"], ["true", "1", "é"], pl.String()),
        ([1, [2, "é"], "x"], ["1", '[2, "é"]', "x"], pl.String()),
        ([{"a": [1]}, None, "x"], ['{"a": [1]}', None, "x"], pl.String()),
        ([[[1], {"a": None}], []], [["[1]", '{"a": null}'], []], pl.List(pl.String())),
        ([LIMIT - 1, 1 - LIMIT], [LIMIT - 1, 1 - LIMIT], pl.Int64()),
        ([LIMIT, 1], [str(LIMIT), "1"], pl.String()),
        ([-(10**30), 0.5], [str(-(10**30)), "0.5"], pl.String()),
        ([[LIMIT + 1], [1]], [[str(LIMIT + 1)], ["1"]], pl.List(pl.String())),
    ],
)
def test_columns_of_json_have_one_type_and_lose_nothing(tmp_path, values, expected, dtype):
    found = read(tmp_path / "x.jsonl", values)
    assert (found.to_list(), found.dtype) == (expected, dtype)


def test_keys_that_name_nothing_to_us_are_columns_like_others(tmp_path):
    for key in ("place", "number", "line", "", "LIST"):
        assert read(tmp_path / "x.jsonl", [3, 4], key).to_list() == [3, 4]


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (pl.Series([LIMIT - 1, None], dtype=pl.Int64), [LIMIT - 1, None]),
        (pl.Series([LIMIT, 1], dtype=pl.Int64), [str(LIMIT), "1"]),
        (pl.Series([-LIMIT, 1], dtype=pl.Int64), [str(-LIMIT), "1"]),
        (pl.Series([2**64 - 1, 0], dtype=pl.UInt64), [str(2**64 - 1), "0"]),
        (pl.Series([[2**63], []], dtype=pl.List(pl.UInt64)), [[str(2**63)], []]),
        (pl.Series([0.5, float("inf")]), ["0.5", "inf"]),
        (pl.Series([datetime.date(2020, 1, 2), None]), ["2020-01-02", None]),
        (pl.Series(["x", "y"], dtype=pl.Categorical), ["x", "y"]),
    ],
)
def test_jsonl_has_no_number_that_a_reader_could_damage(tmp_path, column, written):
    dataset = Dataset(SMALL.frame.head(2).with_columns(x=column))
    write_dataset(dataset, tmp_path / "x.jsonl")
    assert [json.loads(line)["x"] for line in (tmp_path / "x.jsonl").read_text().splitlines()] == written
    write_dataset(dataset, tmp_path / "x.parquet")
    assert read_dataset(tmp_path / "x.parquet") == dataset


@pytest.mark.parametrize("values", [[{"a": 1}] * 3, [[[1]]] * 3, [b"x"] * 3, [datetime.timedelta(1)] * 3])
def test_jsonl_refuses_what_it_cannot_give_back_and_parquet_keeps_it(tmp_path, values):
    dataset = with_column("x", values)
    for name in ("x.jsonl", "x.json", "x.csv"):
        with pytest.raises(DataError, match=r"found the column 'x' of type .*, expected numbers, .*write parquet"):
            write_dataset(dataset, tmp_path / name)
    write_dataset(dataset, tmp_path / "x.parquet")
    assert read_dataset(tmp_path / "x.parquet") == dataset


@pytest.mark.parametrize("name", ["x.parquet", "x"])
def test_objects_of_python_are_refused_in_parquet_too(tmp_path, name):
    dataset = Dataset(SMALL.frame.with_columns(pl.Series("x", [object()] * len(SMALL), dtype=pl.Object)))
    with pytest.raises(DataError, match=r"x.*: found the column 'x' of type Object, .*: cast it, or leave it out$"):
        write_dataset(dataset, tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("form", ["{}", "[{}]"])
def test_integers_of_any_length_are_read(tmp_path, form):
    long = "1" * 5_000
    path = tmp_path / ("x.json" if "[" in form else "x.jsonl")
    path.write_text(form.replace("{}", f'{{"source": "a", "target": "b", "x": {long}, "y": [-{long}, 1]}}'))
    assert read_dataset(path).frame.select("x", "y").rows() == [(long, [f"-{long}", "1"])]
    assert not read_table(str(path), Columns()).findings


def test_formats_of_lines_hold_the_examples_alone(tmp_path):
    for name in ("x.tsv", "x.scan"):
        write_dataset(with_column("x", [1, 2, 3]), tmp_path / name)
        assert read_dataset(tmp_path / name) == SMALL
