"""`cgen compare` on tasks with a published test part, and beside what it chose what would have been best.

    COMPGEN_DATA=... python scripts/experiments/comparisons.py runs/comparisons
    COMPGEN_DATA=... python scripts/experiments/comparisons.py runs/others --tasks turkish -- --minutes 20

Words after `--` are options of `cgen compare`. Comparisons run one after another; one that was interrupted is resumed,
and one that is done is not run again. A row has the system chosen by validation, the best of those that were tested
(by the test part, so nobody could have chosen it), the difference between the two, and the gains of the chosen one over
the bare data and over the control, with 95 % intervals and p.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from cells import call, require_same

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset

DATA = Path(os.environ.get("COMPGEN_DATA", "."))


def files(train: str, test: str, format: str) -> Callable[[], Dataset]:
    """Training and test examples from two files."""

    def read() -> Dataset:
        parts = ((name, read_dataset(DATA / file, format)) for name, file in (("train", train), ("test", test)))
        first, second = (Dataset(found.frame.with_columns(split=pl.lit(name))) for name, found in parts)
        return first + second

    return read


def words(language: str) -> Callable[[], Dataset]:
    """SIGMORPHON 2018's hundred words of a language, and the words to test on."""

    def read() -> Dataset:
        whole = load(f"sigmorphon/{language}")
        few = whole.split("train-low").frame.with_columns(split=pl.lit("train"))
        return Dataset(few) + whole.split("test")

    return read


def geoquery(split: str) -> Callable[[], Dataset]:
    """A published split of GeoQuery with FunQL."""
    return files(f"geoquery/{split}.train.tsv", f"geoquery/{split}.test.tsv", "tsv")


TASKS: dict[str, Callable[[], Dataset]] = {
    "geo-template1": geoquery("template1"),
    "geo-length": geoquery("length"),
    "geo-logic-question": lambda: load("geo/logic-question"),
    "geo-sql-query": lambda: load("geo/sql-query"),
    "scan-jump": lambda: load("scan/jump"),
    "scan-around-right": lambda: load("scan/around_right"),
    "turkish": words("turkish"),
    "georgian": words("georgian"),
}


def main() -> None:
    """Compare and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("words", nargs="*")
    asked = parser.parse_intermixed_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    print("| task | min | updates | bare | control | chosen | best tested | behind | over bare | over control | p |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in asked.tasks:
        data, folder = asked.out / f"{name}.parquet", asked.out / name
        require_same(asked.out / f"{name}.txt", asked.words)
        if not data.exists():
            write_dataset(TASKS[name](), data)
        if not (folder / "compare.json").exists():
            call(asked.out, "compare", str(data), "-o", str(folder), *asked.words)
        print(row(name, json.loads((folder / "compare.json").read_text("utf-8"))), flush=True)


def row(name: str, found: dict[str, Any]) -> str:
    """The row of a comparison."""
    by_role = {one["role"]: one for one in found["tested"] if one["role"] != "other"}
    chosen, control = by_role.get("chosen") or by_role["bare"], by_role.get("control")
    best = max(found["tested"], key=lambda one: one["accuracy"] if one["role"] != "control" else -1)
    cells = [
        name,
        f"{found['seconds'] / 60:.0f}",
        f"{found['predictor']['updates']:,}",
        _accuracy(by_role.get("bare", chosen)),
        "" if control is None else _accuracy(control),
        f"{chosen['system']}: {_accuracy(chosen)}",
        f"{best['system']}: {_accuracy(best)}",
        f"{100 * (best['accuracy'] - chosen['accuracy']):.1f}",
        *(_gain(chosen.get(over)) for over in ("over_bare", "over_control")),
        _chance(chosen.get("over_control")),
    ]
    return f"| {' | '.join(cells)} |"


def _accuracy(one: dict[str, Any]) -> str:
    return f"{one['accuracy']:.3f}"


def _gain(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    mean, low, high = (f"{100 * found[name]:+.1f}" for name in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})"


def _chance(found: dict[str, Any] | None) -> str:
    return "" if found is None else f"{found['p']:.2g} ({found['corrected']:.2g})"


if __name__ == "__main__":
    main()
