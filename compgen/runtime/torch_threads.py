"""The number of threads of PyTorch: one setting for the whole process, which is the caller's to choose, not ours."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Process:
    """In the process: how many running calls have set a number of their own, and the number before the first."""

    lock = threading.Lock()
    calls, number = 0, 1


class _Thread(threading.local):
    """In this thread: how many running calls, one inside another, have set a number of their own."""

    calls = 0


_THREAD = _Thread()


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Compute with `count` threads, or with the caller's number if None; then put the caller's number back.

    A new thread starts with the process's number, which a call in another thread may have set. So the outermost call of
    each thread puts back the number from before the first call of all.
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
