"""Writing samples as they come: JSON lines or tab-separated, to a file that appears whole, or to standard output."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compgen.errors import DataError, UserError
from compgen.files import STDOUT, atomic_path, open_text, writing


@dataclass(frozen=True)
class Sample:
    """A synthesised example: which address it has, what it says, how probable it was, and what it was made from.

    `votes`, after a vote, are those for this target and all of its source.
    """

    index: int
    source: list[str]
    target: list[str]
    log_prob: float
    prototypes: tuple[int, ...]
    votes: tuple[int, int] | None = None


def as_json(sample: Sample) -> str:
    """A sample as one JSON line with all its fields; data readers take the source and the target."""
    fields: dict[str, object] = {
        "source": sample.source,
        "target": sample.target,
        "index": sample.index,
        "log_prob": round(sample.log_prob, 4),
        "prototypes": sample.prototypes,
    }
    if sample.votes is not None:
        fields["votes"] = sample.votes
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def as_tsv(sample: Sample) -> str:
    """Source and target, tokens separated by blanks.

    Raises:
        DataError: a token holds a blank.
    """
    for token in (*sample.source, *sample.target):
        if token.split() != [token]:
            raise DataError(f"tsv cannot hold the token {token!r}, which has blanks or nothing in it: write .jsonl")
    return " ".join(sample.source) + "\t" + " ".join(sample.target)


def pair_of_json(line: str) -> tuple[list[str], list[str]]:
    """Source and target of a line that `as_json` wrote."""
    fields = json.loads(line)
    return fields["source"], fields["target"]


def pair_of_tsv(line: str) -> tuple[list[str], list[str]]:
    """Source and target of a line that `as_tsv` wrote."""
    source, target = line.split("\t")
    return source.split(), target.split()


READERS: dict[str, Callable[[str], tuple[list[str], list[str]]]] = {".jsonl": pair_of_json, ".tsv": pair_of_tsv}
WRITERS: dict[str, Callable[[Sample], str]] = {".jsonl": as_json, ".tsv": as_tsv}


def format_of(path: Path) -> str:
    """The suffix, .jsonl or .tsv, by which a file of samples says its format.

    Raises:
        UserError: it has none of these.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in WRITERS:
        raise UserError(f"{path}: samples are written as {', '.join(WRITERS)} (perhaps .gz), found suffix {suffix!r}")
    return suffix


@contextmanager
def sample_writer(out: str) -> Iterator[Callable[[Sample], object]]:
    """A function that writes one sample to `out`: a path with suffix .jsonl or .tsv, perhaps .gz, or `-`.

    A file appears when the block ends without an error.

    Raises:
        UserError: the suffix is none of these, or the file cannot be written.
    """
    if out == "-":
        with writing(STDOUT):
            sys.stdout.flush()  # of what was printed before: bytes go round it, UTF-8 whatever the locale
            yield lambda sample: sys.stdout.buffer.write(f"{as_json(sample)}\n".encode())
            sys.stdout.buffer.flush()
        return
    path = Path(out)
    line = WRITERS[format_of(path)]
    with atomic_path(path) as temporary, open_text(temporary) as stream:
        yield lambda sample: print(line(sample), file=stream)
