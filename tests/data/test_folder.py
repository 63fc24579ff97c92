"""Folders of Parquet: read back as they are written, opened by others, and never in place of something else."""

import hashlib
import json
import os
from pathlib import Path

import polars as pl
import pytest

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.folder import CARD, check_folder
from compgen.data.formats import format_of, read_dataset, write_dataset
from compgen.errors import DataError, Remark, UserError

DATA = Dataset.from_pairs([(["a", "New York"], ["b"]), (["c"], ["d"])]) + Dataset.from_pairs(
    [(["e"], ["f"])], "train-low"
)
FILES = ["data/train-00000-of-00001.parquet", "data/train_low-00000-of-00001.parquet"]


def test_a_folder_has_a_file_for_each_split_and_is_read_back(tmp_path):
    data = Dataset(DATA.frame.with_columns(host=pl.Series([1, None, 2**60])))
    write_dataset(data, tmp_path / "made")
    assert sorted(str(path.relative_to(tmp_path / "made")) for path in (tmp_path / "made").rglob("*.*")) == [
        CARD,
        *FILES,
    ]
    assert load(str(tmp_path / "made")) == data
    write_dataset(DATA, tmp_path / "made")  # in place of the dataset that is there
    assert load(str(tmp_path / "made")) == DATA


def test_splits_of_folders_of_other_hands_are_the_names_of_their_files(tmp_path):
    (tmp_path / "data").mkdir()
    frame = pl.DataFrame({"question": ["a b"], "sql": ["c"]})
    frame.write_parquet(tmp_path / "data" / "test-00000-of-00002.parquet")
    frame.write_parquet(tmp_path / "data" / "test-00001-of-00002.parquet")
    frame.write_parquet(tmp_path / "validation.parquet")
    (tmp_path / ".0123456789abcdef0123456789abcdef.validation.parquet").write_bytes(b"PAR1")  # of a killed run
    with pytest.warns(UserWarning, match="read the columns 'question' and 'sql'"):
        dataset = read_dataset(tmp_path)
    assert dataset.splits == {"test": 2, "validation": 1}
    assert dataset.pairs() == [(["a", "b"], ["c"])] * 3


def test_what_is_no_dataset_is_never_replaced(tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("precious")
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / CARD).write_text("# My project")
    for name in ("notes", "project"):
        with pytest.raises(UserError, match=f"{name}: a folder that holds .*, expected a new or empty one"):
            write_dataset(DATA, tmp_path / name)
    assert (tmp_path / "notes" / "thesis.txt").read_text() == "precious"
    assert (tmp_path / "project" / CARD).read_text() == "# My project"
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UserError, match="the current folder"):  # before anything is made to be written there
        check_folder(Path())
    monkeypatch.chdir(tmp_path)
    write_dataset(DATA, tmp_path / "empty")
    assert load(str(tmp_path / "empty")) == DATA


def test_a_suffix_wins_over_a_folder_and_a_file_is_no_folder(tmp_path):
    (tmp_path / "words").write_text("a\tb\tN\n")
    assert format_of(tmp_path / "x.tsv") == "tsv"
    assert format_of(tmp_path / "new") == format_of(tmp_path) == "folder"
    with pytest.raises(DataError, match="words: found no suffix"):
        write_dataset(DATA, tmp_path / "words")


@pytest.mark.parametrize("name", ["gone/away/far", "empty"])
def test_a_folder_without_data_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no such file|a folder without Parquet files, expected"):
        read_dataset(tmp_path / name)


def test_a_damaged_file_is_reported(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1nope")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_dataset(tmp_path)


def test_names_of_splits_that_would_be_one_are_refused(tmp_path):
    data = Dataset.from_pairs([(["a"], ["b"])], "x-y") + Dataset.from_pairs([(["a"], ["b"])], "x_y")
    with pytest.raises(DataError, match="names of splits there have letters, digits and _: found x-y, x_y"):
        write_dataset(data, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_the_card_says_how_to_make_the_data_again(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    record = {"method": "geca", "data": str(tmp_path / "pairs.tsv"), "seed": 7, "options": {"gaps": 2}}
    write_dataset(DATA, tmp_path / "made", record=record | {"command": "cgen augment geca pairs.tsv -o made"})
    card = (tmp_path / "made" / CARD).read_text()
    assert "\ncgen augment geca pairs.tsv -o made\n" in card
    told = json.loads(card.partition("```json\n")[2].partition("\n```")[0])
    digest = hashlib.sha256(b"a\tb\n").hexdigest()
    assert told == {"method": "geca", "data": "pairs.tsv", "seed": 7, "options": {"gaps": 2}, "sha256": digest}


def test_datasets_opens_a_folder_with_its_splits_and_provenance(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    made = Dataset(DATA.frame.with_columns(method=pl.lit("geca"), template=pl.lit("9223372036854775807"), host=1))
    write_dataset(made, tmp_path / "made", record={"method": "geca", "seed": 7, "command": "cgen augment geca x.tsv"})
    opened = datasets.load_dataset(str(tmp_path / "made"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in opened.items()} == {"train": 2, "train_low": 1}
    row = {"source": ["a", "New York"], "target": ["b"], "split": "train", "method": "geca"}
    assert opened["train"][0] == row | {"template": "9223372036854775807", "host": 1}
    from huggingface_hub import DatasetCard  # comes with datasets

    card = DatasetCard.load(tmp_path / "made" / CARD)
    assert [part["split"] for part in card.data.to_dict()["configs"][0]["data_files"]] == ["train", "train_low"]
    assert "cgen augment geca x.tsv" in card.text and '"seed": 7' in card.text


def test_names_of_files_need_not_be_utf_8(tmp_path):
    odd = tmp_path / os.fsdecode(b"nu\xff")
    write_dataset(DATA, odd / "made", record={"command": f"cgen data write {odd}"})
    write_dataset(DATA, odd / odd.name)
    assert "# nu?\n" in (odd / odd.name / CARD).read_text(encoding="utf-8")
    write_dataset(DATA, odd / "a.parquet")
    for path in (odd / "made", odd / odd.name, odd / "a.parquet"):
        assert load(str(path)).frame.equals(DATA.frame)
    for path in (odd / "made" / "data").iterdir():
        path.unlink()
    DATA.frame.drop("split").write_parquet(made := tmp_path / "a.parquet")
    made.rename(odd / "made" / "data" / f"{odd.name}.parquet")
    with pytest.warns(Remark, match="read as names of splits: nu\ufffd"):
        assert load(str(odd / "made")).splits == {"nu\ufffd": 3}
