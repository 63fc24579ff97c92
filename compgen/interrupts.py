"""Signals: Ctrl-C and SIGTERM between two steps of the work, so that its state can be saved; and broken pipes."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

TOGETHER = 1.0  # seconds in which signals count as one: `timeout` sends its signal to the process and to its group


@contextmanager
def interruptible() -> Iterator[Sequence[int]]:
    """Yield a list that gets the number of a SIGINT or SIGTERM; another, TOGETHER later, raises KeyboardInterrupt."""
    got: list[int] = []
    again = 0.0
    if threading.current_thread() is not threading.main_thread():
        yield got
        return

    def note(number: int, _frame: object) -> None:
        nonlocal again
        if not got:
            got.append(number)
            again = time.monotonic() + TOGETHER
        elif time.monotonic() > again:
            raise KeyboardInterrupt

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield got
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@contextmanager
def broken_pipes_raise() -> Iterator[None]:
    """Within it, writing to a process that has ended raises BrokenPipeError in this thread.

    SIGPIPE would end a command without a word: commands leave it to the system, so that `cgen ... | head` ends quietly.
    """
    if not hasattr(signal, "SIGPIPE"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        yield
    finally:
        if signal.SIGPIPE not in before and signal.SIGPIPE in signal.sigpending():
            signal.sigwait({signal.SIGPIPE})  # else it would be delivered now
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
