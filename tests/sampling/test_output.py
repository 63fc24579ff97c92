"""Samples as lines, and where the lines go."""

import gzip
import json
import os
from dataclasses import replace

import polars as pl
import pytest

from compgen.data.formats import read_dataset
from compgen.errors import DataError, UserError
from compgen.sampling.output import READERS, WRITERS, Sample, as_json, as_tsv, format_of, sample_writer

ONE = Sample(7, ["walk", "ä"], ["WALK"], -1.234567, (1, 2))
VOTED = Sample(8, ["run"], [], 0.0, (), (3, 4))


def test_a_sample_as_a_line():
    line = '{"source":["walk","ä"],"target":["WALK"],"index":7,"log_prob":-1.2346,"prototypes":[1,2]}'
    assert as_json(ONE) == line
    assert json.loads(as_json(VOTED))["votes"] == [3, 4]
    assert as_tsv(ONE) == "walk ä\tWALK" and as_tsv(VOTED) == "run\t"


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv"])
def test_source_and_target_come_back(suffix):
    for sample in (ONE, VOTED):
        assert READERS[suffix](WRITERS[suffix](sample)) == (sample.source, sample.target)


@pytest.mark.parametrize("token", ["a b", "", " a", "a\t", "a\u00a0b"])
def test_a_token_that_tsv_cannot_hold(token):
    for sides in (([token], ["x"]), (["x"], [token])):
        with pytest.raises(DataError, match=r"tsv cannot hold the token .* write \.jsonl"):
            as_tsv(Sample(0, *sides, 0.0, ()))


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.jsonl", ".jsonl"),
        ("a.tsv", ".tsv"),
        ("a.b.jsonl.gz", ".jsonl"),
        ("a.tsv.gz", ".tsv"),
        ("a.parquet", ".parquet"),
    ],
)
def test_the_suffix_says_the_format(tmp_path, name, suffix):
    assert format_of(tmp_path / name) == suffix


@pytest.mark.parametrize("name", ["a", "a.txt", "a.gz", "a.json", "jsonl", "a.jsonl.bz2", "a.parquet.gz"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"written as \.jsonl or \.tsv \(perhaps \.gz\) or \.parquet, found suffix"):
        format_of(tmp_path / name)


@pytest.mark.parametrize("name", ["a.jsonl", "a.tsv", "a.jsonl.gz", "a.tsv.gz"])
def test_a_file_appears_when_all_is_written(tmp_path, name):
    out = tmp_path / name
    with sample_writer(str(out)) as write:
        write(ONE)
        assert not out.exists()
        write(VOTED)
    content = out.read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    assert text == "".join(f"{WRITERS[format_of(out)](sample)}\n" for sample in (ONE, VOTED))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("samples", [(ONE,), (VOTED, replace(ONE, votes=(1, 1))), ()])
def test_parquet_has_all_fields(tmp_path, samples):
    out = tmp_path / "a.parquet"
    with sample_writer(str(out)) as write:
        for sample in samples:
            write(sample)
    found = pl.read_parquet(out)
    rows = [{"votes": list(one.votes)} if one.votes else {} for one in samples]
    for row, one in zip(rows, samples, strict=True):
        row |= {"source": one.source, "target": one.target, "index": one.index}
        row |= {"log_prob": round(one.log_prob, 4), "prototypes": list(one.prototypes)}
    assert found.to_dicts() == rows and [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    if samples == (ONE,):
        assert read_dataset(out).pairs() == [(one.source, one.target) for one in samples]


def test_a_dash_is_standard_output(capsysbinary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    print("before")
    with sample_writer("-") as write:
        write(ONE)
    assert capsysbinary.readouterr().out.decode() == f"before\n{as_json(ONE)}\n"
    assert not list(tmp_path.iterdir())


def test_a_table_may_be_in_a_folder_whose_name_is_not_utf_8(tmp_path):
    out = tmp_path / os.fsdecode(b"nu\xff") / "a.parquet"
    with sample_writer(str(out)) as write:
        write(ONE)
    with out.open("rb") as stream:
        assert pl.read_parquet(stream)["target"].to_list() == [["WALK"]]
