"""Processes of a comparison: a script that compares may be without a guard around the call."""

import multiprocessing
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from compgen.comparison.engine import Workers, workers
from compgen.comparison.steps import Step, result_of
from compgen.errors import UserError

SCRIPT = """
from pathlib import Path
from compgen.comparison.engine import Workers, workers
print("read")
with workers(Path("."), "processes", 1) as pool:
    print(pool.pool.submit(len, "abc").result())
    print(__file__ == __import__("sys").argv[0])
"""


def test_a_script_is_not_read_again_by_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n3\nTrue\n"), done.stderr


def fail(pool: Workers) -> None:
    """Raise while a worker works."""
    running = pool.pool.submit(time.sleep, 600)
    while not running.running():
        time.sleep(0.01)
    raise ValueError("fails")


def test_a_failure_ends_the_workers_and_no_other_process_of_the_caller() -> None:
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    other.start()
    try:
        with pytest.raises(ValueError, match="fails"), workers(Path(), "processes", 1) as pool:
            fail(pool)
        assert multiprocessing.active_children() == [other] and other.is_alive()
    finally:
        other.kill()
        other.join()


def test_a_worker_that_is_killed_while_it_waits_is_told_like_one_that_works(tmp_path: Path) -> None:
    with workers(tmp_path, "processes", 1) as pool:
        pool.pool.submit(len, "abc").result()
        (worker,) = multiprocessing.active_children()
        worker.kill()
        while not pool.pool._broken:
            time.sleep(0.01)
        with pytest.raises(UserError, match="was killed, perhaps for want of memory"):
            pool.run([Step("a", "trial", {})], lambda _: ())


class Cluster:
    """Ray with any number of CPUs: tasks are done in the order in which they began, when it is waited for one."""

    def __init__(self) -> None:
        self.exceptions = SimpleNamespace(RayTaskError=OSError)
        self.begun, self.together = list[str](), list[int]()

    def remote(self, *given: object) -> "Cluster | str":
        """Take a function; or begin a task, whose result is there."""
        if len(given) == 1:
            return self
        folder, step = given
        result_of(folder, step.name).touch()
        self.begun.append(step.name)
        return step.name

    def options(self, **_: object) -> "Cluster":
        """Take all options."""
        return self

    def wait(self, running: list[str], **_: object) -> tuple[list[str], list[str]]:
        """Return the first task as done."""
        self.together.append(len(running))
        return running[:1], running[1:]

    def get(self, _: str) -> None:
        """Return no result."""


@pytest.mark.parametrize("jobs", [1, 2, 50])
def test_no_more_steps_than_jobs_run_on_a_cluster_at_a_time(tmp_path, jobs, monkeypatch) -> None:
    cluster = Cluster()
    monkeypatch.setattr("compgen.cluster.cluster", lambda asked: nullcontext((cluster, asked)))
    (tmp_path / "steps").mkdir()
    steps = [Step(f"{number}", "trial", {}) for number in range(5)]
    with workers(tmp_path, "ray", jobs) as pool:
        pool.run(steps, lambda step: [Step(f"{step.name}more", "trial", {})] if len(step.name) == 1 else [])
    assert cluster.begun[:5] == [step.name for step in steps] and len(cluster.begun) == 10
    assert max(cluster.together) == min(jobs, 5)


class Losing(Cluster):
    """Loses the worker of each task."""

    def get(self, _: str) -> None:
        """Raise what Ray raises in place of a result."""
        self.exceptions.RayError = LookupError
        raise LookupError("The worker died unexpectedly\nwhile executing this task.")


def test_a_step_that_a_cluster_loses_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("compgen.cluster.cluster", lambda asked: nullcontext((Losing(), asked)))
    (tmp_path / "steps").mkdir()
    said = "test-bare-0 was lost with its worker, .*; the same command resumes .*: The worker died unexpectedly while"
    with pytest.raises(UserError, match=said), workers(tmp_path, "ray", 1) as pool:
        pool.run([Step("test-bare-0", "test", {})], lambda _: [])
