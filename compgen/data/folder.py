"""Datasets as folders that other programs read: a Parquet file for each split, and a data card, README.md.

    data/train-00000-of-00001.parquet
    data/test-00000-of-00001.parquet
    README.md

`datasets.load_dataset(FOLDER)` opens it with its splits, and the Hugging Face hub shows it. The card says what the data
are and, where there is a record, how to make them again.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import polars as pl

from compgen.data.examples import Dataset
from compgen.data.parquet import check_columns
from compgen.errors import DataError, UserError
from compgen.files import atomic_path, check_replaceable, sha256, writing

CARD = "README.md"
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_MADE_BY = "tags:\n- compgen\n"


def is_folder(path: str | Path) -> bool:
    """Whether a path to write to stands for a folder: it is one, or has no suffix and is no file."""
    path = Path(path)
    with writing(path):
        return path.is_dir() or (not path.suffix and not path.exists())


def check_folder(folder: Path) -> None:
    """Raise UserError for a folder that cannot be replaced, or that holds anything but a dataset written here."""
    check_replaceable(folder)
    if not folder.exists():
        return
    found = {path.name for path in folder.iterdir()}
    card = folder / CARD
    ours = card.is_file() and _MADE_BY in card.read_text(encoding="utf-8", errors="replace")
    if found and (found - {"data", CARD} or not ours):
        listed = ", ".join(sorted(found)[:5])
        raise UserError(
            f"{folder}: a folder that holds {listed}, expected a new or empty one, or a dataset to replace; to write a "
            "file, end its name in .tsv, .csv, .jsonl..."
        )


def read_folder(folder: str | Path) -> pl.DataFrame:
    """Return the rows of all Parquet files in a folder, or in its `data`, with a column `split`.

    Where a file has no such column, its name says the split: `test` for `test-00000-of-00001.parquet`. Files whose
    names begin with a dot are left out: runs that were killed leave such, written in part or not.
    """
    if not Path(folder).is_dir():
        raise DataError(f"{folder}: no such file")
    files = sorted([*Path(folder).glob("[!.]*.parquet"), *Path(folder).glob("data/[!.]*.parquet")])
    if not files:
        raise DataError(f"{folder}: a folder without Parquet files, expected data/*.parquet")
    try:
        return pl.concat([_read(file) for file in files], how="diagonal_relaxed")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"{folder}: cannot be read as Parquet: {str(error).partition(chr(10))[0]}") from None


def _read(file: Path) -> pl.DataFrame:
    with file.open("rb") as stream:  # Polars takes no path that is not UTF-8
        frame = pl.read_parquet(stream)
    if "split" in frame.columns:
        return frame
    name = os.fsencode(file.stem).decode(errors="replace")
    return frame.with_columns(split=pl.lit(_SHARD.sub("", name)))


def write_folder(dataset: Dataset, folder: Path, record: dict[str, Any] | None = None) -> None:
    """Write a folder, whole; `record` is what the dataset was made with.

    Raises:
        UserError: there is a folder with other content.
        DataError: two splits would have the same name, or a column holds objects of Python.
    """
    check_folder(folder)
    check_columns(dataset.frame, str(folder))
    names = {split: re.sub(r"[^\w.]|^\.+|\.+$", "_", split) or "_" for split in dataset.splits}
    if len(set(names.values())) < len(names):
        raise DataError(f"{folder}: names of splits there have letters, digits and _: found {', '.join(names)}")
    with atomic_path(folder, directory=True) as temporary:
        (temporary / "data").mkdir()
        for split, name in names.items():
            with (temporary / "data" / f"{name}-00000-of-00001.parquet").open("wb") as stream:
                dataset.split(split).frame.write_parquet(stream)
        card = _card(dataset, folder.name, names, record)
        (temporary / CARD).write_text(card, encoding="utf-8", errors="replace")  # names of files need not be UTF-8


def _card(dataset: Dataset, title: str, names: dict[str, str], record: dict[str, Any] | None) -> str:
    files = "".join(f"  - split: {name}\n    path: data/{name}-*.parquet\n" for name in names.values())
    front = f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}{_MADE_BY}---\n"
    sizes = "".join(f"| {names[split]} | {count:,} |\n" for split, count in dataset.splits.items())
    columns = ", ".join(f"`{column}`" for column in dataset.frame.columns)
    about = (
        f"# {title}\n\n| split | examples |\n|---|---:|\n{sizes}\nColumns: {columns}. `source` and `target` are lists "
        "of tokens.\n\n"
        f'```python\nfrom datasets import load_dataset\n\ndata = load_dataset("{title}")\n```\n'
    )
    return front + about + ("" if record is None else _provenance(record))


def _provenance(record: dict[str, Any]) -> str:
    """Say how to make the data again."""
    data = record.get("data")
    if data and Path(data).is_file():
        record = record | {"data": Path(data).name, "sha256": sha256(Path(data))}
    shown = {key: value for key, value in record.items() if key not in ("command", "seconds")}
    command = f"\n```bash\n{record['command']}\n```\n" if "command" in record else ""
    return (
        f"\n## How it was made\n{command}\nThe same data (SHA-256), options and seed give the same examples, in the "
        f"same order.\n\n```json\n{json.dumps(shown, indent=1, ensure_ascii=False)}\n```\n"
    )
