"""A Ray cluster, used for as long as it is needed: a running one, a named one, or one started here."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compgen.errors import UserError


@contextmanager
def cluster(workers: int | None) -> Iterator[tuple[Any, int]]:
    """Yield the module `ray`, connected to a cluster, and the number of CPUs to use.

    The cluster is the one that this process is connected to, else the one that the environment variable RAY_ADDRESS
    names, else one on this machine with `workers` CPUs (by default all), which lasts as long as the context.

    Raises:
        UserError: Ray is not installed, or its cluster cannot be reached.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise UserError("the engine ray needs Ray: pip install 'compgen[ray]'") from error
    started = not ray.is_initialized()
    if started:
        _start(ray, workers)
    try:
        yield ray, workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if started:
            ray.shutdown()


def _start(ray: Any, workers: int | None) -> None:
    address, on_sigterm = os.environ.get("RAY_ADDRESS"), signal.getsignal(signal.SIGTERM)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if address:
        _check_reachable(address)
    try:
        if address:
            ray.init("auto", **quiet)
        else:
            ray.init("local", num_cpus=workers, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"Ray at RAY_ADDRESS={address}" if address else "a Ray on this machine"
        raise UserError(f"{where} cannot be used: {_first_line(error)}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own handler ends the process at once


def _check_reachable(address: str) -> None:
    """Raise UserError if nothing answers at an address; Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # `auto`, or another name that only Ray resolves
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"Ray at RAY_ADDRESS={address} cannot be reached: {error}") from error


@contextmanager
def results(ray: Any, lost: str) -> Iterator[None]:
    """Turn the errors of tasks into a `UserError`: that of a task, or that all its workers were `lost`."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise UserError(f"on a worker of the Ray cluster: {error.cause}") from None
        raise
    except ray.exceptions.RayError as error:
        raise UserError(f"{lost}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the beginning of an error's text on one line; Ray's errors can be pages long."""
    return " ".join(str(error).split())[:200]
