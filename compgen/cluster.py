"""A Ray cluster, ours for as long as it is needed: the one that is running, one that is named, or one made here."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compgen.errors import UserError


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise UserError("the engine ray needs Ray: pip install 'compgen[ray]'") from error
    return ray


@contextmanager
def cluster(workers: int | None) -> Iterator[tuple[Any, int]]:
    """A running Ray: yields the module and how many CPUs to use.

    It is the Ray that is running in this process, else the cluster that the environment variable RAY_ADDRESS names,
    else one on this machine, with `workers` CPUs (all by default), for as long as the context lasts.

    Raises:
        UserError: Ray is not installed, or its cluster cannot be reached.
    """
    ray = _ray()
    started = not ray.is_initialized()
    if started:
        _start(ray, workers)
    try:
        yield ray, workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if started:
            ray.shutdown()


def _start(ray: Any, workers: int | None) -> None:
    address = os.environ.get("RAY_ADDRESS")
    terminated = signal.getsignal(signal.SIGTERM)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if address:
        _knock(address)
    try:
        if address:
            ray.init("auto", **quiet)
        else:
            ray.init("local", num_cpus=workers, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError) as error:
        where = f"Ray at RAY_ADDRESS={address}" if address else "a Ray on this machine"
        raise UserError(f"{where} cannot be used: {first_line(error)}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminated)  # Ray put its own in place, which ends the process at once


def _knock(address: str) -> None:
    """Ray would try an address where nobody answers for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # `auto`, or another name that only Ray can resolve
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"Ray at RAY_ADDRESS={address} cannot be reached: {error}") from error


def first_line(error: Exception) -> str:
    """An error of Ray's, which may run over pages, on one line of a message."""
    return " ".join(str(error).split())[:200]
