"""Runs commands in forks of a process that has imported what they need once, or as programs.

The process itself must have no second thread, as a fork would have no such thread and might wait for it. So it imports
and does no work: what computes is done in a fork (`in_fork`). Threads that Polars starts when it is imported sleep, and
its allocator knows of forks.
"""

import atexit
import contextlib
import ctypes
import importlib
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from injection.jobs import Job
from injection.shim import MEMORY

SECONDS = 300  # of a processor, after which a run hangs
WALL = 3600
HARMLESS = ("jemalloc_bg", "polars-ooc")
STARTING = {"onnxruntime", "ray"}  # start threads when they are imported
_die_with_parent = ctypes.CDLL(None).prctl


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code (negative: the signal) and what it wrote to standard error."""

    code: int
    said: str


def import_more(names: set[str]) -> None:
    """Import what a fork has imported."""
    for name in sorted(name for name in names - sys.modules.keys() if name.partition(".")[0] not in STARTING):
        try:
            importlib.import_module(name)
        except Exception:
            continue  # made, not imported
    threads = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()][1:]
    if others := [name for name in threads if not name.startswith(HARMLESS)]:
        raise RuntimeError(f"threads in the process that is forked, expected one: {', '.join(others)}")


def run(words: list[str], job: Job, home: Path, learn: bool = False) -> Ended:
    """Run a command with `home/run` as its folder of outputs and of temporary files, and wait for its end."""
    said = home / "stderr"
    child = os.fork()
    if child == 0:
        _become(words, job, home, learn)
    code = _wait(child)
    return Ended(code, said.read_text(encoding="utf-8", errors="replace"))


def in_fork(function: Callable[..., Any], *given: Any) -> Any:
    """What a function returns, called in a fork."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            result = (True, function(*given))
        except BaseException:
            result = (False, traceback.format_exc())
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(result, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    _wait(child)
    good, value = pickle.loads(content) if content else (False, "ended without a result")
    if not good:
        raise RuntimeError(value)
    return value


def _wait(child: int) -> int:
    """Wait for a process and end what it has left; return its code."""
    until = time.monotonic() + WALL
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # the run's own group
    return os.waitstatus_to_exitcode(status)


def _become(words: list[str], job: Job, home: Path, learn: bool) -> None:
    """Be the command; never return."""
    code = 70
    try:
        os.setpgid(0, 0)
        _die_with_parent(1, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_RDWR)
        error = os.open(home / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for given, number in ((null, 0), (null, 1), (error, 2)):
            os.dup2(given, number)
        os.environ["TMPDIR"] = str(home / "run" / "tmp") if job.temporary else str(home)
        os.chdir(home)
        if job.program is not None:
            os.environ |= {MEMORY: "1"} if job.memory else {}
            os.execv(job.program, [str(job.program), *words])
        tempfile.tempdir = None
        code = _called(words, job)
        if learn:
            (home / "modules").write_text("\n".join(sys.modules))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _called(words: list[str], job: Job) -> int:
    """Call the command line as Python does, up to what is done at its exit."""
    from compgen.__main__ import main

    for name, value in job.settings:
        module, _, attribute = name.partition(":")
        setattr(importlib.import_module(module), attribute, value)
    sys.argv = ["cgen", *words]
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code
