"""Writing samples to a file so that a run that is killed can be resumed.

Samples are appended to OUT.partial. Every few seconds it is synced to disk, and then OUT.partial.json, the journal,
records the options, how many bytes of OUT.partial are good, and the counts up to there. When all samples are written,
OUT.partial becomes OUT.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from compgen.errors import ExhaustedError, UserError
from compgen.files import atomic_path, linked, remove, take_place, writing
from compgen.sampling.output import PARQUET, READERS, WRITERS, Sample, format_of, lines_of, make_parquet
from compgen.sampling.resampling import Counts

SAVE_EVERY = 2.0  # seconds


class PartialFile:
    """OUT.partial, open for writing, and its journal; the caller keeps `counts` up to date."""

    def __init__(self, path: Path, stream: BinaryIO, options: dict[str, Any], suffix: str) -> None:
        self.path, self.journal, self.stream = path, path.with_name(path.name + ".json"), stream
        self.options = json.loads(json.dumps(options))  # as read back from the journal
        self.line, self.pair = WRITERS[lines_of(suffix)], READERS[lines_of(suffix)]
        self.counts = Counts()
        self.began = self.saved = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds that the run has taken, the parts before interruptions included."""
        return time.monotonic() - self.began

    def write(self, sample: Sample) -> None:
        """Append a sample."""
        self.stream.write((self.line(sample) + "\n").encode())

    def save(self, every: float = 0.0) -> None:
        """Make this a point to resume from, unless the last one is less than `every` seconds old.

        `counts` must count the draws up to the last sample written, or up to a later one that was not kept.
        """
        if time.monotonic() - self.saved < every:
            return
        self.stream.flush()
        os.fsync(self.stream.fileno())  # first: a crash must not lose bytes that the journal counts
        state = {
            "options": self.options,
            "next": self.options["start"] + self.counts.drawn,
            "bytes": self.stream.tell(),
            "counts": self.counts.to_dict() | {"last": self.counts.last},
            "seconds": round(self.seconds, 2),
        }
        with atomic_path(self.journal) as temporary:
            temporary.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        self.saved = time.monotonic()

    def pairs(self) -> Iterator[tuple[list[str], list[str]]]:
        """Yield source and target of the samples already written; raise UserError for a line in another format."""
        with self.path.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield self.pair(line)
                except (ValueError, KeyError, TypeError) as error:
                    raise UserError(f"{self.path}, line {number}: not a sample: the file was altered") from error

    def begin(self) -> None:
        """Start anew and delete what an earlier run has left."""
        remove(self.journal)  # first: it must never describe another run's bytes
        self._cut(0)

    def restore(self) -> None:
        """Go back to the state in the journal.

        Raises:
            UserError: the journal cannot be read, is of a run with other options, or counts more bytes than there are.
        """
        options, size, counts, seconds = _read(self.journal)
        differing = [
            f"{name} was {options.get(name)!r:.40}, is {asked!r:.40}"
            for name, asked in self.options.items()
            if asked != options.get(name)
        ]
        if differing:
            message = f"{self.journal}: the interrupted run had other options: {'; '.join(differing)}"
            raise UserError(f"{message}; give the same, or leave out --resume to start anew")
        found = self.stream.seek(0, os.SEEK_END)
        if found < size:
            raise UserError(f"{self.path}: {found:,} bytes, expected {size:,} or more: cut short or altered")
        self._cut(size)
        self.counts, self.began = counts, time.monotonic() - seconds

    def _cut(self, size: int) -> None:
        self.stream.truncate(size)
        self.stream.seek(size)


def partial_path(out: Path) -> Path:
    """OUT.partial, beside OUT or what that links to."""
    real = linked(out)
    return real.with_name(real.name + ".partial")


@contextmanager
def partial_file(out: Path, options: dict[str, Any], *, resume: bool = False) -> Iterator[PartialFile]:
    """Open a `PartialFile` that becomes `out` when the block ends without an error.

    After an error it stays, to be resumed, unless it was never saved or the samples asked for cannot be had.

    Args:
        out: the path of the finished file, whose suffix `format_of` knows; PARQUET is made when all is written.
        options: everything that the samples depend on, JSON-able, with the first address as `start`.
        resume: go on with what is there, if anything is.

    Raises:
        UserError: the suffix is another, the file cannot be written or another run writes it; or as `restore`.
    """
    suffix, path = format_of(out), partial_path(out)
    with writing(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        resume = resume and path.exists()  # a run killed as it ended can leave a journal of nothing
        with path.open("ab") as stream:
            _lock(stream, path)
            partial = PartialFile(path, stream, options, suffix)
            partial.restore() if resume and partial.journal.exists() else partial.begin()
            try:
                yield partial
            except BaseException as error:
                if isinstance(error, ExhaustedError) or not partial.journal.exists():
                    remove(path)
                    remove(partial.journal)
                raise
            stream.flush()
            # While the lock is held: no other run may resume from it.
            if suffix == PARQUET:
                with atomic_path(out) as table:
                    make_parquet(path, table)
                remove(path)
            else:
                take_place(path, out)
            remove(partial.journal)


def _lock(stream: BinaryIO, path: Path) -> None:
    """Lock the file against another run; the lock ends with the process, however that ends."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return  # Windows
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(f"{path}: another run is writing it") from error
    except OSError:
        return  # a file system without locks
    if not path.exists() or path.stat().st_ino != os.fstat(stream.fileno()).st_ino:
        raise UserError(f"{path}: another run has just ended and taken it: try again")


def _read(journal: Path) -> tuple[dict[str, Any], int, Counts, float]:
    try:
        state = json.loads(journal.read_text("utf-8"))
        return state["options"], int(state["bytes"]), Counts.of(**state["counts"]), float(state["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{journal}: not a journal of sampling: leave out --resume to start anew") from error
