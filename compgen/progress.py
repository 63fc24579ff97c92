"""Progress of long work on standard error: a bar on a terminal, a line now and then in a pipe.

Workers that run side by side write lines on a terminal, too: their bars would overwrite each other.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

LINE_EVERY = 15.0  # seconds between lines when there is no terminal
# Called with a stage of the work, the share of it that is done (None if nobody can know when it ends), and a note.
Watch = Callable[[str, float | None, str], None]


def unwatched(stage: str, share: float | None, note: str = "") -> None:
    """Ignore progress: the `Watch` of work that nobody looks at."""


def note(text: str, quiet: bool = False) -> None:
    """Print a line about long work that begins."""
    if not quiet:
        print(text, file=sys.stderr)


def rate(count: float, seconds: float = 1.0) -> str:
    """Write how many there were in a second; what is slow is not zero."""
    found = count / seconds
    return f"{found:,.0f}" if found >= 10 else f"{found:.2g}"


@contextmanager
def stages() -> Iterator[Watch]:
    """Yield a `Watch` that shows stages of work one after another: in percent, or in steps if the end is unknown."""
    current, bar = "", Progress("", 100)
    with ExitStack() as shown:

        def watch(stage: str, share: float | None, note: str = "") -> None:
            nonlocal current, bar
            if stage != current:
                shown.close()
                named = Progress(f"{stage}, steps", None) if share is None else Progress(f"{stage}, %", 100)
                current, bar = stage, shown.enter_context(named)
            bar.update(bar.done + 1 if share is None else int(100 * share), note)

        yield watch


def _is_worker() -> bool:
    import multiprocessing

    return multiprocessing.parent_process() is not None


class Progress:
    """A count towards a total, None if it is unknown, with a few figures beside it. Use as a context manager."""

    def __init__(self, label: str, total: int | None, done: int = 0, *, quiet: bool = False) -> None:
        self.label, self.total, self.done, self.quiet = label, total, done, quiet
        self.began, self.first, self.said = time.monotonic(), done, time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> "Progress":
        if not self.quiet and sys.stderr.isatty() and not _is_worker():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            # Labels and notes may hold names of files, which may have brackets: they are no markup.
            label, count, figures = (
                TextColumn(text, markup=False)
                for text in ("{task.description}", f"{{task.completed}}{self._of}", "{task.fields[note]}")
            )
            columns = (label, BarColumn(), count, figures, TimeElapsedColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(stderr=True))
            self.bar.start()
            self.task = self.bar.add_task(self.label, total=self.total, completed=self.done, note="")
        return self

    def update(self, done: int, note: str = "") -> None:
        """Say how far the work is; cheap enough to call at every step."""
        self.done = done
        if self.bar is not None:
            self.bar.update(self.task, completed=done, note=note)
        elif not self.quiet and time.monotonic() - self.said >= LINE_EVERY:
            self.said = time.monotonic()
            spent = self.said - self.began
            left = ""
            if self.total is not None and done > self.first:  # before, nobody can know
                left = f", {spent * (self.total - done) / (done - self.first):.0f} s left"
            print(f"{self.label}: {done}{self._of} {note} {spent:.0f} s{left}", file=sys.stderr)

    @property
    def _of(self) -> str:
        return "" if self.total is None else f"/{self.total}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
