"""Standard streams that the caller has closed, or that nobody reads any longer."""

import os
import select
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO


def prepare() -> None:
    """Open what the caller has closed, and let work go on when nobody reads its notes any longer.

    With SIGPIPE as in other filters, `cgen ... | head` ends quietly. But notes on standard error are not what a command
    is for: `cgen train ... 2>&1 | head` must not end the training.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until Python ends
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files have any bytes, and are results, too
    if hasattr(select, "poll"):
        sys.stderr = _Notes(sys.stderr)


class _Notes:
    """Standard error, which goes nowhere once its reader has gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, unless a pipe or socket has no reader."""
        poll = select.poll()  # a new one for each call: two threads cannot poll the same one
        poll.register(self._stream.fileno(), 0)  # reports errors and hang-ups in any case, and nothing else
        if poll.poll(0):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        return self._stream.write(text)
