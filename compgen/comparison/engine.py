"""Runs the steps of a comparison, several at a time, in processes of this machine or on a Ray cluster."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from compgen.comparison.options import Engine
from compgen.comparison.steps import Step, perform, result_of
from compgen.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

Finished = Callable[[Step], None]


class Workers(Protocol):
    """Runs steps that are not done; each calls `finished` when it is."""

    def run(self, steps: Sequence[Step], finished: Finished) -> None:
        """Run all steps, in order as workers become free.

        Raises:
            UserError: a step failed; the message is the step's.
        """


@contextmanager
def workers(folder: Path, engine: Engine, jobs: int) -> "Iterator[Workers]":
    """Workers, for as long as the context lasts.

    Each process computes by one thread: networks of this size gain little by a second one. With `ray`, FOLDER must be
    on a file system that all machines of the cluster share.
    """
    if engine == "ray":
        from compgen.cluster import cluster

        with cluster(jobs) as (ray, cpus):
            yield _Ray(folder, ray, cpus)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield _Processes(folder, pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Processes:
    def __init__(self, folder: Path, pool: ProcessPoolExecutor) -> None:
        self.folder, self.pool = folder, pool

    def run(self, steps: Sequence[Step], finished: Finished) -> None:
        futures: dict[Future[None], Step] = {self.pool.submit(perform, self.folder, step): step for step in steps}
        try:
            left = set(futures)
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    finished(futures[future])
        except BrokenProcessPool as error:
            raise UserError(
                "a process of the comparison was killed, perhaps for want of memory; the same command goes on, with "
                "--jobs 1 in less memory"
            ) from error
        finally:
            for future in futures:
                future.cancel()


def _begin(parent: int) -> None:
    """Prepare a worker: one thread, and an end with the parent, which may be killed."""
    import torch

    torch.set_num_threads(1)

    def watch() -> None:
        process = multiprocessing.parent_process()
        assert process is not None and process.pid == parent
        process.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Ray:
    def __init__(self, folder: Path, ray: Any, cpus: int) -> None:
        self.folder, self.ray, self.cpus = folder.resolve(), ray, cpus

    def run(self, steps: Sequence[Step], finished: Finished) -> None:
        task = self.ray.remote(_perform).options(num_cpus=1, max_retries=3)
        waiting = {task.remote(self.folder, step): step for step in steps}
        while waiting:
            (done,), _ = self.ray.wait(list(waiting), num_returns=1)
            try:
                self.ray.get(done)
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, UserError) else error from None
            step = waiting.pop(done)
            if not result_of(self.folder, step.name).exists():
                raise UserError(
                    f"{self.folder}: another machine wrote there, and it is not seen here: expected a shared folder"
                )
            finished(step)


def _perform(folder: Path, step: Step) -> None:
    import torch

    torch.set_num_threads(1)
    perform(folder, step)
