"""Ctrl-C and SIGTERM are handled between two steps of the work, so that its state can be saved."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[Sequence[int]]:
    """Yield a list that collects SIGINT and SIGTERM; a second signal raises KeyboardInterrupt at once."""
    got: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield got
        return

    def note(number: int, _frame: object) -> None:
        if got:
            raise KeyboardInterrupt
        got.append(number)

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield got
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
