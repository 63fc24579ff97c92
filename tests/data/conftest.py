"""Where the published data are, for tests that compare ours with them."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from compgen.data.catalog import load
from compgen.data.downloads import VARIABLE, MissingFileError
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset

FOLDER = Path(os.environ[VARIABLE])


@pytest.fixture(scope="session")
def published() -> Callable[[str, str], list[str]]:
    """The lines of a published SCAN file, by part (train, test) and split; skips where the files are absent."""
    folder = FOLDER / "scan"

    def lines(part: str, split: str) -> list[str]:
        path = folder / f"tasks_{part}_{split}.txt"
        packed = path.with_name(f"{path.name}.gz")
        if path.exists():
            return path.read_text().splitlines()
        if packed.exists():
            return gzip.decompress(packed.read_bytes()).decode().splitlines()
        pytest.skip(f"no published SCAN files in {folder}: set COMPGEN_DATA to the folder that holds scan/")

    return lines


@pytest.fixture
def downloaded(monkeypatch) -> Callable[[str], Dataset]:
    """A known data set by its name; skips where its files are absent."""
    monkeypatch.setenv(VARIABLE, str(FOLDER))

    def load_(name: str) -> Dataset:
        try:
            return load(name)
        except MissingFileError as error:
            pytest.skip(str(error))

    return load_


@pytest.fixture(scope="session")
def geoquery() -> Callable[[str], Dataset]:
    """A file of GeoQuery with FunQL targets, by its name without suffix; skips where the files are absent."""
    folder = FOLDER / "geoquery"

    def read(name: str) -> Dataset:
        path = folder / f"{name}.tsv"
        if not path.exists():
            pytest.skip(f"no {path.name} in {folder}: set COMPGEN_DATA to the folder that holds geoquery/")
        return read_dataset(path)

    return read
