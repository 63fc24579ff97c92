"""The known data sets, and `load`, which turns what a user calls DATA into a dataset."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from pathlib import Path

from compgen.data import scan
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.errors import DataError


@dataclasses.dataclass(frozen=True)
class Known:
    """A data set that the program can make: what it is, where it was published, and its splits.

    `splits` maps a name to the function that makes the split and to a few words on what is new in its test part.
    """

    description: str
    citation: str
    splits: Mapping[str, tuple[Callable[[], Dataset], str]]


DATASETS: dict[str, Known] = {
    "scan": Known(
        description="navigation commands and their action sequences, 20,910 in all",
        citation="Lake and Baroni (2018), Generalization without systematicity, ICML; "
        "Loula, Baroni and Lake (2018), Rearranging the familiar, BlackboxNLP",
        splits=scan.SPLITS,
    ),
}


def names() -> list[str]:
    """Everything that `load` knows by name, as NAME/SPLIT."""
    return [f"{name}/{split}" for name, known in DATASETS.items() for split in known.splits]


def load(spec: str, format: str | None = None) -> Dataset:
    """The dataset that `spec` stands for: a file, `-` for standard input, or NAME/SPLIT such as `scan/jump`.

    A file that exists wins over a name. `format` is for files whose name does not tell.

    Raises:
        DataError: if `spec` is none of these, or the file is not as it should be.
    """
    name, _, split = spec.partition("/")
    if spec == "-" or Path(spec).exists() or not _may_be_name(spec):
        return read_dataset(spec, format)
    if name not in DATASETS or split not in DATASETS[name].splits:
        raise DataError(_unknown(spec, name))
    if format is not None:
        raise DataError(f"{spec}: a known data set has no format: leave out {format!r}")
    make, _ = DATASETS[name].splits[split]
    return make()


def _may_be_name(spec: str) -> bool:
    """Whether a missing file is better called an unknown name: it has no suffix and at most one slash inside."""
    return not Path(spec).suffix and spec.strip("/").count("/") <= 1 and not spec.startswith((".", "/"))


def _unknown(spec: str, name: str) -> str:
    if name in DATASETS:
        return f"{spec}: no such split of {name}: expected {name}/ and one of {', '.join(DATASETS[name].splits)}"
    near = difflib.get_close_matches(spec, names(), n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"known data sets: {', '.join(names())}"
    return f"{spec}: neither a file nor a known data set; {hint}"
