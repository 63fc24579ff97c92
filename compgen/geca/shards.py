"""One job on several machines or processes, which share nothing but a folder.

Each shard enumerates its share of the examples and writes their rows; when all have, it finds the licences among its
share of the partitions; when all have, it composes by the hosts among them; and one of them merges what all have
made. A step that is done is a file that is there, and so is the reason why a shard gave up, which ends those that wait
for it; shards need no other word of each other. One that was lost or gave up is started again and goes on, with others
in any order: what was there when a shard started ends it no more. The examples are those of one process.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from compgen import __version__
from compgen.cluster import cluster, first_line
from compgen.data.examples import Dataset
from compgen.errors import UserError
from compgen.files import atomic_path, writing
from compgen.geca.augmenter import Row, check_licensed, first, frame_of, merged
from compgen.geca.corpus import Corpus
from compgen.geca.options import GecaOptions
from compgen.geca.spans import Spans
from compgen.geca.tables import CollisionError, Tables, enumerate_rows, find_licences, memory_for, start

POLL = 0.5  # seconds between two looks into the folder
RETRIES = 5  # of a step whose worker was lost
MADE = {"key": pl.UInt64, "rank": pl.UInt64, "tokens": pl.Binary, "template": pl.UInt64, "fragment": pl.UInt64}


@dataclass(frozen=True)
class Reason:
    """Why a shard gave up, and when."""

    when: int
    text: str


@dataclass(frozen=True)
class Job:
    """What all shards have in common.

    Attributes:
        dataset: the same examples, in the same order, for all.
        options, count, seed: as for `Geca`; each shard may use `options.memory`.
        folder: where the shards meet; it must be on a file system that all of them see.
        shards: how many there are.
    """

    dataset: Dataset
    options: GecaOptions
    count: int | None
    seed: int
    folder: Path
    shards: int

    def open(self) -> None:
        """Make the folder, or see that it is this job's.

        Raises:
            UserError: it is another's or holds something else, or cannot be written; or the drawing has a `reach`.
        """
        if self.options.reach is not None:
            raise UserError("GECA: --reach looks at all templates of a fragment, which no shard has: leave one out")
        mine: dict[str, object] = {
            "compgen": __version__,
            "polars": pl.__version__,
            "count": self.count,
            "seed": self.seed,
        }
        mine |= {"shards": self.shards, "data": self._identity()} | self.options.identity()
        path = self.folder / "job.json"
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            others = [entry for entry in self.folder.iterdir() if not re.fullmatch(r"\.job\..*|job\.json", entry.name)]
            if others and not path.exists():  # looked for last: who has begun has made it first
                raise UserError(f"{self.folder}: found other files, expected a folder to work in: move them elsewhere")
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self.folder, prefix=".job.") as stream:
                json.dump(mine, stream, indent=1)
                stream.flush()
                with suppress(FileExistsError):  # the first shard wins, whole; the others compare
                    os.link(stream.name, path)
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise UserError(f"{path}: found no record of a job: delete the folder") from error
        other = [name for name, value in mine.items() if found.get(name) != value]
        if other:
            raise UserError(f"{self.folder}: found the work of another job (other {', '.join(other)}): delete it")

    def _identity(self) -> str:
        rows = self.dataset.frame.select("source", "target").hash_rows(seed=0)
        return hashlib.sha256(rows.to_numpy().tobytes()).hexdigest()

    def files(self, step: str) -> list[Path]:
        """The files that say that a step is done, one a shard."""
        return [self.folder / f"{step}-{number}.arrow" for number in range(self.shards)]

    def missing(self, step: str, known: Mapping[int, Reason]) -> dict[int, str]:
        """The shards that have not done a step, each with the known reason why it gave up, or an empty one.

        Raises:
            UserError: one of them gave up, for a reason that is not known yet; the message says which.
        """
        missing = [number for number, path in enumerate(self.files(step)) if not path.exists()]
        reasons = self.reasons(missing)
        for number, reason in reasons.items():
            if known.get(number) != reason:
                raise UserError(f"share {number + 1} gave up: {reason.text}")
        return {number: reasons[number].text if number in reasons else "" for number in missing}

    def reasons(self, numbers: Iterable[int]) -> dict[int, Reason]:
        """Why those of some shards that gave up did."""
        found: dict[int, Reason] = {}
        for number in numbers:
            with suppress(FileNotFoundError):
                path = self._reason(number)
                found[number] = Reason(path.stat().st_mtime_ns, path.read_text(encoding="utf-8"))
        return found

    @contextmanager
    def giving_up(self, number: int) -> Iterator[None]:
        """What ends a shard is left in the folder for the others, who wait for it; a new start takes it away."""
        self._reason(number).unlink(missing_ok=True)
        try:
            yield
        except Exception as error:  # not Ctrl-C: who stops a shard starts it again
            with suppress(OSError):
                self._reason(number).write_text(str(error) or type(error).__name__, encoding="utf-8")
            raise

    def _reason(self, number: int) -> Path:
        return self.folder / f"failed-{number}.txt"

    def close(self) -> None:
        """Delete the folder: the examples are written."""
        shutil.rmtree(self.folder, ignore_errors=True)


STEPS = ("rows", "licences", "made")


class Shard:
    """One share of a job's work."""

    def __init__(self, job: Job, number: int) -> None:
        """Shard `number`, from 0, of `job.shards`."""
        self.job, self.number = job, number

    def do(self, step: str) -> None:
        """Do one of the STEPS, unless it is done. All shards must have done the step before.

        Raises:
            UserError: the memory is too little, or the folder cannot be written.
        """
        if self.job.files(step)[self.number].exists():
            return
        corpus, spans = self._corpus
        try:
            with memory_for(corpus, spans, self.job.options.bytes) as most, writing(self.job.folder):
                share = (self.number, self.job.shards)
                tables = start(corpus, spans, self.job.options, most, folder=self.job.folder, share=share)
                result = {"rows": self._rows, "licences": self._licences, "made": self._made}[step](tables)
                with atomic_path(self.job.files(step)[self.number]) as temporary:
                    result.write_ipc(temporary)
        except CollisionError:
            raise UserError(
                "GECA: two templates have one hash; one process can choose another: leave out shards"
            ) from None

    @cached_property
    def _corpus(self) -> tuple[Corpus, Spans]:
        corpus = Corpus.of(self.job.dataset, self.job.options.longest)
        return corpus, Spans.of(corpus, self.job.options.span, self.job.options.limit)

    def _rows(self, tables: Tables) -> pl.DataFrame:
        for path in self.job.folder.glob(f"*-{self.number}-*-*.arrow"):
            path.unlink()  # of a run that did not end
        enumerate_rows(tables, tables.examples()[self.number :: self.job.shards])
        tables.store.spill()
        return pl.DataFrame()

    def _licences(self, tables: Tables) -> pl.DataFrame:
        return find_licences(tables).licences

    def _made(self, tables: Tables) -> pl.DataFrame:
        job = self.job
        licences = pl.concat(map(pl.read_ipc, job.files("licences")))
        tables = replace(tables, licences=licences)
        check_licensed(tables)
        rows = first(tables, job.options, job.count, job.seed)
        return pl.DataFrame([(*row[0], *row[1:]) for row in rows], schema=MADE, orient="row")

    def merge(self) -> pl.DataFrame:
        """The examples that all shards have made.

        Raises:
            ExhaustedError: there are none.
        """
        job = self.job
        parts = (map(_row, pl.read_ipc(path).iter_rows()) for path in job.files("made"))
        rows = merged(parts, job.count, job.options.bytes)
        with memory_for(*self._corpus, job.options.bytes) as most:
            tables = start(*self._corpus, job.options, most, folder=job.folder)
            return frame_of(tables, rows, job.count)


def _row(made: tuple[Any, ...]) -> Row:
    """A row of MADE as it was."""
    key, rank, tokens, template, fragment = made
    return (key, rank), tokens, template, fragment


def run_shard(job: Job, number: int, watch: Callable[[str, dict[int, str]], None]) -> pl.DataFrame | None:
    """All that one shard has to do. Shard 0 merges and returns the examples, the others return None.

    `watch` is called while this shard waits: for which step, and for which other shards, each with the reason why it
    gave up before this one started, or an empty one. The job's folder stays, until `job.close`, so that what is
    returned is not lost before it is written.

    Raises:
        UserError, ExhaustedError: as `Geca`; or another shard gave up.
    """
    job.open()
    shard = Shard(job, number)
    known = job.reasons(range(job.shards))  # of earlier attempts: those shards have to be started again, too
    for step in STEPS:
        with job.giving_up(number):
            shard.do(step)
        if step == STEPS[-1] and number:
            return None
        while missing := job.missing(step, known):
            watch(step, missing)
            time.sleep(POLL)
    return shard.merge()


def run_on_ray(job: Job, workers: int | None = None) -> pl.DataFrame:
    """All shards, one a CPU, as tasks of a Ray cluster (see `compgen.cluster`), whose machines see the job's folder.

    The folder stays until `job.close`.

    Raises:
        UserError, ExhaustedError: as `Geca`; or Ray is not there, or lost the workers of a step again and again.
    """
    with cluster(workers) as (ray, cpus):
        job = replace(job, shards=cpus)
        job.open()
        task = ray.remote(_step).options(num_cpus=1, max_retries=RETRIES)
        shared = ray.put(job)
        for step in STEPS:
            try:
                ray.get([task.remote(shared, number, step) for number in range(job.shards)])
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, UserError):
                    raise UserError(f"on a worker of the Ray cluster: {error.cause}") from None
                raise
            except ray.exceptions.RayError as error:
                raise UserError(f"a step of GECA was lost with its worker: {first_line(error)}") from error
    return Shard(job, 0).merge()


def _step(job: Job, number: int, step: str) -> None:
    Shard(job, number).do(step)
