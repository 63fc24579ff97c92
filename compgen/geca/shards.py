"""One job on several machines or processes, which share nothing but a folder.

Each shard takes three steps, and each step waits until all shards have done the one before:

    rows:      enumerate every n-th batch of examples, and write the rows by partition
    licences:  find the licences in every n-th partition
    made:      compose by the hosts in these partitions

Shard 0 merges what all have made. A step that is done is a file; so is the reason why a shard gave up, which ends those
that wait for it. A shard that was lost or gave up is started again and goes on; reasons that were there before it
started do not end it. The examples are those of one process.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from compgen import __version__
from compgen.cluster import cluster, results
from compgen.data.examples import Dataset
from compgen.errors import UserError, tell
from compgen.files import atomic_path, beside, create, is_beside, remove, writing
from compgen.geca.augmenter import check_licensed, spelled
from compgen.geca.building import first, merged
from compgen.geca.corpus import Corpus
from compgen.geca.options import GecaOptions
from compgen.geca.spans import Spans
from compgen.geca.tables import CollisionError, Tables, find_spans, memory_for, put, read_again

POLL = 0.5  # seconds between two looks into the folder
RETRIES = 5  # of a step whose worker was lost
UNWRITTEN = "its own output says why, as nothing could be written here"  # the reason of a full disk
STEPS = ("rows", "licences", "made")
Reasons = dict[int, tuple[int, str]]  # when and why each shard gave up


@dataclass(frozen=True)
class Job:
    """What all shards have in common, and the work of each."""

    dataset: Dataset  # the same examples, in the same order, for all
    options: GecaOptions  # each shard may use `options.memory`
    count: int | None
    seed: int
    folder: Path  # on a file system that all shards see
    shards: int

    def open(self) -> None:
        """Make the folder, or check that it is this job's."""
        if self.options.reach is not None:
            raise UserError("GECA: --reach looks at all templates of a fragment, which no shard has: leave one out")
        mine: dict[str, Any] = {
            "compgen": __version__,
            "polars": pl.__version__,
            "count": self.count,
            "seed": self.seed,
        }
        mine |= {"shards": self.shards, "data": self._identity()} | self.options.identity()
        path = self.folder / "job.json"
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            others = [entry for entry in self.folder.iterdir() if entry != path and not is_beside(entry)]
            if not path.exists():  # checked last: other shards write nothing before it
                if others:
                    raise UserError(
                        f"{self.folder}: found other files, expected a folder to work in: move them elsewhere"
                    )
                create(path, json.dumps(mine, indent=1))  # by the first shard; the others compare
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

    def close(self) -> None:
        """Delete the folder, renamed first: if some of it cannot be deleted, that is in no later run's way."""
        gone = beside(self.folder)
        with suppress(OSError):  # if it cannot be renamed, it stays whole, and the next run goes on with it
            self.folder.rename(gone)
            remove(gone)

    def files(self, step: str) -> list[Path]:
        """Return the files that say that a step is done, one a shard."""
        return [self.folder / f"{step}-{number}.arrow" for number in range(self.shards)]

    @cached_property
    def _corpus(self) -> tuple[Corpus, Spans]:
        corpus = Corpus.of(self.dataset, self.options.longest)
        return corpus, find_spans(corpus, self.options)

    def do(self, number: int, step: str) -> None:
        """Do one of the STEPS for a shard, unless it is done."""
        done = self.files(step)[number]
        if done.exists():
            return
        try:
            with memory_for(*self._corpus, self.options.bytes) as most, writing(self.folder):
                share = (number, self.shards)
                tables = Tables(*self._corpus, self.options, most, folder=self.folder, share=share)
                result = getattr(self, f"_{step}")(tables)
                with atomic_path(done) as temporary:
                    put(result, temporary)
        except CollisionError:
            raise UserError(
                "GECA: two templates have the same hash, and only one process can choose another: leave out shards"
            ) from None

    def _rows(self, tables: Tables) -> pl.DataFrame:
        number, _ = tables.store.share
        for path in self.folder.glob(f"*-{number}-*-*.arrow"):
            path.unlink()  # of a run that did not end
        tables.enumerate()
        tables.store.spill()
        return pl.DataFrame()

    def _licences(self, tables: Tables) -> pl.DataFrame:
        tables.find_licences()
        return tables.licences

    def _made(self, tables: Tables) -> pl.DataFrame:
        tables.licences = pl.concat(map(read_again, self.files("licences")))
        check_licensed(tables)
        return first(tables, self.options, self.count, self.seed)

    def merge(self) -> pl.DataFrame:
        """Return the examples that all shards have made."""
        rows = merged(([read_again(path)] for path in self.files("made")), self.count, self.options.bytes)
        with memory_for(*self._corpus, self.options.bytes) as most:
            return spelled(Tables(*self._corpus, self.options, most, folder=self.folder), rows, self.count)

    def reasons(self) -> Reasons:
        """Return the shards that gave up."""
        found: Reasons = {}
        for number in range(self.shards):
            with (
                suppress(FileNotFoundError),
                self._reason(number).open(encoding="utf-8", errors="surrogatepass") as stream,
            ):
                found[number] = os.fstat(stream.fileno()).st_mtime_ns, stream.read() or UNWRITTEN
        return found

    def _reason(self, number: int) -> Path:
        return self.folder / f"failed-{number}.txt"

    @contextmanager
    def giving_up(self, number: int) -> Iterator[None]:
        """Remove the reason why a shard gave up earlier; write a new one if an error is raised."""
        self._reason(number).unlink(missing_ok=True)
        try:
            yield
        except Exception as error:  # not Ctrl-C: who stops a shard starts it again
            self._tell(number, str(error) or type(error).__name__)
            raise

    def _tell(self, number: int, reason: str) -> None:
        """Write why a shard gives up; on a full disk an empty file, which most file systems have room for."""
        made = beside(self._reason(number))
        try:
            made.write_text(reason, encoding="utf-8", errors="surrogatepass")
            made.replace(self._reason(number))  # who waits finds it whole or not at all
        except OSError:
            with suppress(OSError):
                remove(made)
                self._reason(number).touch()

    def missing(self, step: str, known: Reasons) -> dict[int, str]:
        """Return the shards that have not done a step, each with the known reason why it gave up, or "".

        Raises:
            UserError: one of them gave up for a reason that is not known yet.
        """
        missing = [number for number, path in enumerate(self.files(step)) if not path.exists()]
        reasons = self.reasons()
        for number in missing:
            if number in reasons and known.get(number) != reasons[number]:
                raise UserError(f"share {number + 1} gave up: {reasons[number][1]}")
        return {number: reasons.get(number, (0, ""))[1] for number in missing}


def run_shard(job: Job, number: int) -> pl.DataFrame | None:
    """Do all steps of one shard; shard 0 returns the examples, the others None.

    The folder stays until `job.close`, so that examples are not lost before they are written.
    """
    job.open()
    known = job.reasons()  # of earlier attempts: those shards have to be started again, too
    for step in STEPS:
        with job.giving_up(number):
            job.do(number, step)
        if step == STEPS[-1] and number:
            return None
        said = None
        while missing := job.missing(step, known):
            if said != missing:
                announce(job, step, missing)
            said = missing
            time.sleep(POLL)
    return job.merge()


def announce(job: Job, step: str, missing: dict[int, str]) -> None:
    """Say which shards this one waits for."""
    names = ", ".join(
        f"{number + 1}/{job.shards}" + (f" (to be started again; it gave up: {reason})" if reason else "")
        for number, reason in missing.items()
    )
    tell(f"waiting for the {step} of share {names}")


def run_on_ray(job: Job, workers: int | None = None) -> pl.DataFrame:
    """Run all shards, one a CPU, as tasks of a Ray cluster whose machines see the job's folder."""
    with cluster(workers) as (ray, cpus):
        job = replace(job, shards=cpus)
        job.open()
        task = ray.remote(_do).options(num_cpus=1, max_retries=RETRIES)
        shared = ray.put(job)
        for step in STEPS:
            with results(ray, "a step of GECA was lost with its worker"):
                ray.get([task.remote(shared, number, step) for number in range(job.shards)])
    return job.merge()


def _do(job: Job, number: int, step: str) -> None:
    job.do(number, step)
