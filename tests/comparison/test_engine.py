"""Processes of a comparison: a script that compares may be without a guard around the call."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compgen.comparison.engine import Workers, workers

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
