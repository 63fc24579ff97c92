"""Runs the steps of a comparison, several at a time, in processes of this machine or on a Ray cluster."""

import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from compgen.cluster import results
from compgen.comparison.options import Engine
from compgen.comparison.steps import Step, perform, result_of
from compgen.errors import Interrupted, UserError
from compgen.interrupts import TOGETHER, interruptible
from compgen.processors import processors

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = 0.5  # seconds, after which a signal is looked for
GRACE, SHORT = 10.0, 0.05  # seconds that workers have to save a state, and between two looks whether they did
Finished = Callable[[Step], Sequence[Step]]  # is told what is done, and returns what to run then


class Workers(Protocol):
    """Runs steps, `count` at a time, and those that `finished` returns when one is done."""

    count: int

    def run(self, steps: Sequence[Step], finished: Finished) -> None:
        """Run all steps, in order as workers become free.

        Raises:
            UserError: a step failed; the message is the step's.
        """


class _Process(SpawnProcess):
    """A fresh process that does not import the caller's script, which may call `compare` wherever it is imported."""

    def start(self) -> None:
        """Start it while the script's module seems to have neither name nor file, so that it imports none."""
        main = sys.modules["__main__"].__dict__
        known: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
        main.pop("__file__", None)
        main["__spec__"] = None
        try:
            super().start()
        finally:
            main.update(known)


class _Context(SpawnContext):
    """Starts such processes, and lists them: only these are ended, not others that the caller started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Process] = []

    def Process(self, *args: Any, **given: Any) -> _Process:  # type: ignore[override]  # noqa: N802 - its name there
        self.started.append(_Process(*args, **given))
        return self.started[-1]


@contextmanager
def workers(folder: Path, engine: Engine, jobs: int | None) -> "Iterator[Workers]":
    """Workers, for as long as the context lasts: `jobs` of them, by default one for each processor, or of the cluster.

    Each process computes by one thread, whatever OMP_NUM_THREADS says: networks of this size gain little by a second
    one. With `ray`, FOLDER must be on a file system that all machines of the cluster share.
    """
    if engine == "ray":
        from compgen.cluster import cluster

        with cluster(jobs) as (ray, cpus):
            yield _Ray(folder, ray, cpus)
        return
    context, jobs = _Context(), jobs or processors()
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield _Processes(folder, pool, jobs)
    except BaseException:
        _end([worker for worker in context.started if worker.is_alive()])
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end(workers: Sequence[_Process]) -> None:
    """End all workers, whatever they do, but let a training save its state; another signal cuts that short."""
    began = time.monotonic()
    with interruptible() as again:
        for worker in workers:
            worker.terminate()
        while any(worker.is_alive() for worker in workers):
            if time.monotonic() > began + (TOGETHER if again else GRACE):
                for worker in workers:
                    worker.kill()
            time.sleep(SHORT)


class _Processes:
    def __init__(self, folder: Path, pool: ProcessPoolExecutor, count: int) -> None:
        self.folder, self.pool, self.count = folder, pool, count

    def run(self, steps: Sequence[Step], finished: Finished) -> None:
        try:
            running = {self.pool.submit(_perform, self.folder, step): step for step in steps}
            # An exception out of a handler of signals could leave locks of the pool taken, and it would wait for ever.
            with interruptible() as interrupted:
                while running and not interrupted:
                    done, _ = wait(running, TICK, FIRST_COMPLETED)
                    for future in done:
                        step = running.pop(future)
                        future.result()
                        running |= {self.pool.submit(_perform, self.folder, more): more for more in finished(step)}
            if interrupted:
                raise Interrupted("stopped", interrupted[0])
        except BrokenProcessPool as error:
            raise UserError(
                "a process of the comparison was killed, perhaps for want of memory; the same command resumes it, with "
                "--jobs 1 in less memory"
            ) from error


def _perform(folder: Path, step: Step) -> None:
    """Run a step in a worker, which ends where it is interrupted: the pool may have given it the next one already."""
    try:
        perform(folder, step)
    except (Interrupted, KeyboardInterrupt):
        os._exit(1)


def _begin(parent: int) -> None:
    """Prepare a worker: one thread, signals from the parent alone, and an end with it, as it may be killed."""
    os.setpgrp()  # a terminal's Ctrl-C is for the parent
    import torch

    torch.set_num_threads(1)

    def watch() -> None:
        process = multiprocessing.parent_process()
        assert process is not None and process.pid == parent
        process.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Ray:
    def __init__(self, folder: Path, ray: Any, count: int) -> None:
        self.folder, self.ray, self.count = folder.resolve(), ray, count

    def run(self, steps: Sequence[Step], finished: Finished) -> None:
        task = self.ray.remote(_perform_alone).options(num_cpus=1, max_retries=3)
        waiting, running = deque(steps), dict[Any, Step]()
        with interruptible() as interrupted:
            while (waiting or running) and not interrupted:
                while waiting and len(running) < self.count:  # the cluster may have more CPUs
                    step = waiting.popleft()
                    running[task.remote(self.folder, step)] = step
                done, _ = self.ray.wait(list(running), num_returns=1, timeout=TICK)
                for one in done:
                    self._require_done(one, running[one])
                    waiting += finished(running.pop(one))
        if interrupted:
            raise Interrupted("stopped", interrupted[0])

    def _require_done(self, task: Any, step: Step) -> None:
        """Raise the error of a task, or UserError if what it has written is not here."""
        lost = f"{step.name} was lost with its worker, retries included; the same command resumes the comparison"
        with results(self.ray, lost):
            self.ray.get(task)
        if not result_of(self.folder, step.name).exists():
            raise UserError(
                f"{self.folder}: another machine wrote there, and it is not seen here: expected a shared folder"
            )


def _perform_alone(folder: Path, step: Step) -> None:
    """Run a step by one thread."""
    import torch

    torch.set_num_threads(1)
    perform(folder, step)
