"""Copies of an object in processes of their own, which call its methods at the same time as this process does.

A copy is a Python process that reads pickles: first a callable that makes the object, then methods to call with their
arguments. What a method returns, if anything, comes back by its standard output. A copy ends with the process that
began it, however that ends.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any

from compgen.errors import UserError
from compgen.interrupts import broken_pipes_raise

_SERVE = "from compgen.copies import serve; serve()"
_MEMORY = (
    "a process that works beside this one has ended, perhaps for want of memory; OMP_NUM_THREADS=1 does without, "
    "in more time"
)


class Copies:
    """Running copies of an object, made by `copies`."""

    def __init__(self, processes: Sequence["subprocess.Popen[bytes]"]) -> None:
        self._processes = processes

    def call(self, method: str, *arguments: object) -> None:
        """Let all copies call a method; do not wait for them.

        Raises:
            UserError: a copy has ended.
        """
        message = pickle.dumps((method, arguments))
        for process in self._processes:
            assert process.stdin is not None
            try:
                with broken_pipes_raise():
                    process.stdin.write(message)
                    process.stdin.flush()
            except OSError as error:
                raise UserError(_MEMORY) from error

    def results(self) -> list[Any]:
        """Wait for the last method called that returns something; return its results, one from each copy.

        Raises:
            UserError: a copy has ended.
            Exception: the one that a copy has raised; this copy cannot be called again.
        """
        try:
            found = [pickle.load(process.stdout) for process in self._processes if process.stdout is not None]
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise UserError(_MEMORY) from error
        for one in found:
            if isinstance(one, Exception):
                raise one
        return found


@contextmanager
def copies(makers: Sequence[Callable[[], object]]) -> Iterator[Copies]:
    """Start a process for each maker, which makes its object there; end all processes with the context."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in makers:
            process = subprocess.Popen(
                [sys.executable, "-c", _SERVE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                process_group=0,  # a terminal's Ctrl-C is for the process that began it
            )
            processes.append(process)
        for process, make in zip(processes, makers, strict=True):
            assert process.stdin is not None
            with suppress(OSError), broken_pipes_raise():  # if the copy has ended, the first call says so
                pickle.dump(make, process.stdin)
                process.stdin.flush()
        yield Copies(processes)
    finally:
        for process in processes:
            process.kill()
            with suppress(OSError), broken_pipes_raise():  # there may be something left to write to it
                process.communicate()


def serve() -> None:
    """Be a copy: call what standard input says until it ends."""
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(messages,), daemon=True).start()
    try:
        own = messages.get()()
        while True:
            method, arguments = messages.get()
            result = getattr(own, method)(*arguments)
            if result is not None:
                _return(result)
    except MemoryError:
        os._exit(1)
    except Exception as error:
        _return(error)


def _return(result: Any) -> None:
    pickle.dump(result, sys.stdout.buffer)
    sys.stdout.flush()


def _listen(messages: "SimpleQueue[Any]") -> None:
    """Pass messages on while the process works; end it, even in the middle of work, once its parent is gone."""
    try:
        while True:
            messages.put(pickle.load(sys.stdin.buffer))
    except (EOFError, pickle.UnpicklingError):
        os._exit(0)
