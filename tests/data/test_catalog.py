"""The catalog: files, names, and what is neither."""

import pytest

from compgen.data import scan
from compgen.data.catalog import DATASETS, load, names
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.errors import DataError

SMALL = Dataset.from_pairs([(["jump"], ["I_JUMP"])])


def test_every_name_can_be_loaded():
    assert "scan/jump" in names()
    assert len(names()) == sum(len(known.splits) for known in DATASETS.values())
    for name in names():
        assert set(load(name).splits) == {"train", "test"}
    assert load("scan/jump") == scan.jump()


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
