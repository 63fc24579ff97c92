"""Writing samples as they come, to a file that appears whole or to standard output.

Samples are written as lines, JSON or tab-separated. For Parquet, lines of JSON are made a table when all are there.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compgen.errors import DataError, UserError
from compgen.files import STDOUT, atomic_path, open_text, writing

PLACES = 4  # of log-probabilities as they are written: further ones depend on which draws were computed together


@dataclass(frozen=True)
class Sample:
    """A synthesised example."""

    index: int  # its address
    source: list[str]
    target: list[str]
    log_prob: float  # of the whole, before temperature
    prototypes: tuple[int, ...]  # rows of the pool that it was made from
    votes: tuple[int, int] | None = None  # after a vote, those for this target and all of its source


def as_json(sample: Sample) -> str:
    """Return a sample as one JSON line with all its fields; data readers take the source and the target."""
    fields: dict[str, object] = {
        "source": sample.source,
        "target": sample.target,
        "index": sample.index,
        "log_prob": round(sample.log_prob, PLACES),
        "prototypes": sample.prototypes,
    }
    if sample.votes is not None:
        fields["votes"] = sample.votes
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def as_tsv(sample: Sample) -> str:
    """Return source and target, tokens separated by spaces; raises DataError for a token with a space."""
    for token in (*sample.source, *sample.target):
        if token.split() != [token]:
            raise DataError(f"tsv cannot hold the token {token!r}, which is empty or has spaces in it: write .jsonl")
    return " ".join(sample.source) + "\t" + " ".join(sample.target)


def pair_of_json(line: str) -> tuple[list[str], list[str]]:
    """Return source and target of a line that `as_json` wrote."""
    fields = json.loads(line)
    return fields["source"], fields["target"]


def pair_of_tsv(line: str) -> tuple[list[str], list[str]]:
    """Return source and target of a line that `as_tsv` wrote."""
    source, target = line.split("\t")
    return source.split(), target.split()


JSONL, TSV, PARQUET = ".jsonl", ".tsv", ".parquet"
READERS: dict[str, Callable[[str], tuple[list[str], list[str]]]] = {JSONL: pair_of_json, TSV: pair_of_tsv}
WRITERS: dict[str, Callable[[Sample], str]] = {JSONL: as_json, TSV: as_tsv}


def format_of(path: Path) -> str:
    """Return the suffix that names a sample file's format: JSONL, TSV or PARQUET; raises UserError for another."""
    packed = path.suffix == ".gz"
    suffix = path.with_suffix("").suffix if packed else path.suffix
    if suffix not in WRITERS and (packed or suffix != PARQUET):
        known = f".jsonl or .tsv (perhaps .gz) or .parquet, found suffix {path.suffix!r}"
        raise UserError(f"{path}: samples are written as {known}; `cgen data write` knows more formats")
    return suffix


def lines_of(suffix: str) -> str:
    """Return what the lines are that become a file with this suffix, JSONL or TSV."""
    return JSONL if suffix == PARQUET else suffix


def make_parquet(lines: Path, out: Path) -> None:
    """Write the table of samples that are lines of JSON, piece by piece."""
    import polars as pl

    tokens, numbers = pl.List(pl.String), pl.List(pl.Int64)
    schema: dict[str, pl.DataType] = {"source": tokens, "target": tokens, "index": pl.Int64()}
    schema |= {"log_prob": pl.Float64(), "prototypes": numbers}
    with lines.open(encoding="utf-8") as stream:
        if "votes" in json.loads(next(stream, "{}")):
            schema["votes"] = numbers
    with lines.open("rb") as stream, out.open("wb") as table:  # Polars takes no path that is not UTF-8
        pl.scan_ndjson(stream, schema=schema).sink_parquet(table)


@contextmanager
def sample_writer(out: str, check: Callable[[Path], None] = lambda _: None) -> Iterator[Callable[[Sample], object]]:
    """Yield a function that writes one sample to `out`: a path whose suffix `format_of` knows, or `-`.

    A file appears when the block ends without an error, and `check`, which is called with it, raises none. Raises
    UserError if it cannot be written.
    """
    if out == "-":
        with writing(STDOUT):
            sys.stdout.flush()  # bytes bypass its buffer: they are UTF-8 in any locale
            yield lambda sample: sys.stdout.buffer.write(f"{as_json(sample)}\n".encode())
            sys.stdout.buffer.flush()
        return
    path = Path(out)
    suffix = format_of(path)
    line = WRITERS[lines_of(suffix)]
    with atomic_path(path) as temporary:
        with open_text(temporary) as stream:
            yield lambda sample: print(line(sample), file=stream)
        check(temporary)
        if suffix == PARQUET:
            with atomic_path(temporary) as table:
                make_parquet(temporary, table)
