"""How many threads PyTorch computes by: one number for the process, which is the caller's, not ours, to choose."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Process:
    """The calls by a number of ours that are running, and the number that the process had before the first."""

    lock = threading.Lock()
    calls, number = 0, 1


class _Thread(threading.local):
    """The calls that are running in this thread, one in another."""

    calls = 0


_THREAD = _Thread()


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Compute by so many threads, or by as many as the caller has if None; then put back the caller's number.

    A thread begins with the number of the process, which may be that of a call in another thread: where several of them
    call, all put back the number that there was before the first.
    """
    if count is None:
        yield
        return
    import torch

    with _Process.lock:
        before = torch.get_num_threads()
        if not _Process.calls:
            _Process.number = before
        if not _THREAD.calls:
            before = _Process.number
        _Process.calls, _THREAD.calls = _Process.calls + 1, _THREAD.calls + 1
        torch.set_num_threads(count)
    try:
        yield
    finally:
        with _Process.lock:
            _Process.calls, _THREAD.calls = _Process.calls - 1, _THREAD.calls - 1
            torch.set_num_threads(before)
