"""COGS (Kim and Linzen, EMNLP 2020): English sentences and their meanings, with a split `gen` that recombines.

A file is a part, with a pair on each line: sentence, TAB, target, and as published a third column, which is ignored.
Targets are in one of two forms:

    lf             rose ( x _ 1 ) AND help . theme ( x _ 3 , x _ 1 )     as published
    variable-free  help ( theme = rose )                                 Qiu et al., NAACL 2022

In logical forms ` _ ` becomes `_`, as in GECA's reference code, so that `x _ 1` is the one token `x_1`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import polars as pl

from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.errors import DataError

Form = Literal["lf", "variable-free"]

PARTS = ("train", "dev", "test", "gen")
# A token that only the other form has; files of both forms have the same names.
_FOREIGN: dict[Form, str] = {"lf": "=", "variable-free": "_"}


def read(files: Mapping[str, str | Path], form: Form) -> Dataset:
    """Return the pairs of some files, each in the split that `files` maps to it, in this order."""
    return Dataset(pl.concat([_part(path, part, form) for part, path in files.items()]))


def _part(path: str | Path, part: str, form: Form) -> pl.DataFrame:
    frame = read_dataset(path, "tsv").frame.with_columns(split=pl.lit(part))
    foreign = frame.filter(pl.col("target").list.contains(_FOREIGN[form]))
    if not foreign.is_empty():
        found = " ".join(foreign["target"][0])
        raise DataError(f"{path}: found the target {found!r:.80}, expected targets in the form {form!r}")
    joined = pl.col("target").list.join(" ").str.replace_all(" _ ", "_", literal=True)
    return frame.with_columns(target=joined.str.extract_all(r"\S+"))
