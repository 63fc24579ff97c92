"""Writing samples to a file so that a run that is killed can be resumed.

Samples are appended to OUT.partial. Every few seconds it is synced to disk, and then OUT.partial.json, the journal,
records the options, how many bytes of OUT.partial are good, the counts up to there, and a checksum that shows whether
either file was altered. When all samples are written, OUT.partial becomes OUT.
"""

import errno
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from compgen.errors import ExhaustedError, UserError
from compgen.files import atomic_path, linked, lock, remove, take_place, writing
from compgen.progress import note
from compgen.runtime.manifest import strict_json
from compgen.sampling.output import PARQUET, READERS, WRITERS, Sample, format_of, lines_of, make_parquet
from compgen.sampling.resampling import Counts

SAVE_EVERY = 2.0  # seconds
PIECE = 2**16  # bytes read at a time
LARGEST, LONGEST = 2**62, 1e9  # counts and seconds of a journal; the C++ runner counts no further


class PartialFile:
    """OUT.partial, open for writing, and its journal; the caller keeps `counts` up to date."""

    def __init__(self, path: Path, stream: BinaryIO, options: dict[str, Any], suffix: str) -> None:
        self.path, self.journal, self.stream = path, path.with_name(path.name + ".json"), stream
        self.options = json.loads(json.dumps(options))  # as read back from the journal
        self.line, self.pair = WRITERS[lines_of(suffix)], READERS[lines_of(suffix)]
        self.counts, self.sum = Counts(), 1  # zlib's adler32 of what is written
        self.began = self.saved = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds that the run has taken, the parts before interruptions included."""
        return time.monotonic() - self.began

    def write(self, sample: Sample) -> None:
        """Append a sample."""
        line = (self.line(sample) + "\n").encode()
        self.stream.write(line)
        self.sum = zlib.adler32(line, self.sum)

    def save(self, every: float = 0.0) -> None:
        """Make this a point to resume from, unless the last one is less than `every` seconds old.

        `counts` must count the draws up to the last sample written, or up to a later one that was not kept.
        """
        if time.monotonic() - self.saved < every:
            return
        self.stream.flush()
        os.fsync(self.stream.fileno())  # first: a crash must not lose bytes that the journal counts
        size = self.stream.tell()
        state = {
            "options": self.options,
            "next": self.options["start"] + self.counts.drawn,
            "bytes": size,
            "counts": self.counts.to_dict() | {"last": self.counts.last},
            "seconds": round(self.seconds, 2),
            "check": _check(self.sum, size, self.counts, step=""),
        }
        with atomic_path(self.journal) as temporary:
            temporary.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        self.saved = time.monotonic()

    def pairs(self) -> Iterator[tuple[list[str], list[str]]]:
        """Yield source and target of the samples already written; raise UserError for a line in another format."""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield self.pair(line.decode())
                except (ValueError, KeyError, TypeError) as error:
                    raise UserError(f"{self.path}, line {number}: not a sample: the file was altered") from error

    def begin(self) -> None:
        """Start anew and delete what an earlier run has left."""
        if _is_there(self.journal):
            note(f"{self.path}: the samples of an interrupted run are dropped (--resume would have kept them)")
        remove(self.journal)  # first: it must never describe another run's bytes
        self._cut(0)

    def restore(self) -> None:
        """Go back to the state in the journal.

        Raises:
            UserError: the journal cannot be read, is of a run with other options, or counts more bytes than there are,
                or other ones.
        """
        state = _read(self.journal)
        differing = [
            f"{name} was {state.options.get(name)!r:.40}, is {asked!r:.40}"
            for name, asked in self.options.items()
            if not same(asked, state.options.get(name))
        ]
        if differing:
            message = f"{self.journal}: the interrupted run had other options: {'; '.join(differing)}"
            raise UserError(f"{message}; give the same, or leave out --resume to start anew")
        found = self.stream.seek(0, os.SEEK_END)
        if found < state.size:
            cut = "cut short or altered: leave out --resume to start anew"
            raise UserError(f"{self.path}: {found:,} bytes, expected {state.size:,} or more: {cut}")
        self.sum = _sum(self.path, state.size)
        if _check(self.sum, state.size, state.counts, state.step) != state.check:
            altered = "one of them was altered: leave out --resume to start anew"
            raise UserError(f"{self.path}: not what {self.journal.name} says of it: {altered}")
        self._cut(state.size)
        self.counts, self.began = state.counts, time.monotonic() - state.seconds

    def _cut(self, size: int) -> None:
        self.stream.truncate(size)
        self.stream.seek(size)


def partial_path(out: Path) -> Path:
    """OUT.partial, beside OUT or what that links to."""
    real = linked(out)
    return real.with_name(real.name + ".partial")


def forget_journal(out: Path) -> None:
    """Delete the journal of a run that was killed when OUT was there already."""
    path = partial_path(out)
    with suppress(OSError):
        path.with_name(path.name + ".json").unlink()


@contextmanager
def partial_file(out: Path, options: dict[str, Any], *, resume: bool = False) -> Iterator[PartialFile]:
    """Open a `PartialFile` that becomes `out` when the block ends without an error.

    After an error it stays, to be resumed, unless it was never saved or there are no such samples (ExhaustedError).

    Args:
        out: the path of the finished file, whose suffix `format_of` knows; PARQUET is made when all is written.
        options: everything that the samples depend on, JSON-able, with the first address as `start`.
        resume: continue with the files of an interrupted run, if there are any.

    Raises:
        UserError: the suffix is another, the file cannot be written or another run writes it; or as `restore`.
    """
    suffix, path = format_of(out), partial_path(out)
    with writing(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        if out.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        resume = resume and _is_there(path)  # a run killed as it ended can leave a journal of nothing
        with path.open("ab") as stream:
            lock(stream, path)
            partial = PartialFile(path, stream, options, suffix)
            try:
                partial.restore() if resume and _is_there(partial.journal) else partial.begin()
                yield partial
            except BaseException as error:
                if isinstance(error, ExhaustedError) or not _is_there(partial.journal):
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


def _is_there(path: Path) -> bool:
    """Whether there is a file of that name; writing it will say so if the name is too long."""
    try:
        return path.exists()
    except OSError:
        return False


def same(one: object, other: object) -> bool:
    """Whether two values are written alike as JSON: true is not 1, nor is 1.0."""
    return json.dumps(one) == json.dumps(other)


def _sum(path: Path, size: int) -> int:
    """Return the sum of a file's first bytes."""
    total = 1
    with path.open("rb") as stream:
        while size and (piece := stream.read(min(size, PIECE))):
            total, size = zlib.adler32(piece, total), size - len(piece)
    return total


def _check(total: int, size: int, counts: Counts, step: str) -> int:
    """Return the sum of the bytes of OUT.partial, and of what the journal says of them."""
    rejected = (word for item in counts.rejected.items() for word in item)
    said = (step, size, counts.drawn, counts.kept, counts.last, *rejected)
    return zlib.adler32("\n".join(map(str, said)).encode(), total)


@dataclass(frozen=True)
class _State:
    """What a journal says; `step` is what the C++ runner decodes by, if it wrote it."""

    options: dict[str, Any]
    size: int
    counts: Counts
    seconds: float
    step: str
    check: int


def _read(journal: Path) -> _State:
    try:
        state = strict_json(journal.read_bytes())
        counts = Counts.of(**state["counts"])
        found = _State(
            state["options"], state["bytes"], counts, state["seconds"], state.get("step", ""), state["check"]
        )
        whole = (found.size, found.check, counts.drawn, counts.kept, counts.last, *counts.rejected.values())
        good = isinstance(found.options, dict) and isinstance(state["counts"]["rejected"], dict)
        good = good and isinstance(found.step, str) and all(map(is_count, whole))
        if not (good and type(found.seconds) in (int, float) and 0 <= found.seconds <= LONGEST):
            raise ValueError("other values")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{journal}: not a journal of sampling: leave out --resume to start anew") from error


def is_count(number: object) -> bool:
    """Whether a value of a journal or a record is a count, as the C++ runner has them."""
    return type(number) is int and 0 <= number <= LARGEST
