"""A run of `cgen sample`: draws until it is done, exhausted or interrupted."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compgen import __version__
from compgen.errors import ExhaustedError, Interrupted, UserError
from compgen.interrupts import interruptible
from compgen.progress import Progress, rate
from compgen.record import record_of
from compgen.runtime.manifest import strict_json
from compgen.sampling.choice import Choice
from compgen.sampling.output import sample_writer
from compgen.sampling.partial import SAVE_EVERY, is_count, partial_file, partial_path, same
from compgen.sampling.resampling import Counts, FilterConfig, Kept
from compgen.trained.generator import Generator

# What a user typed for what the record has; all else is an option's name.
TYPED = {
    "compgen": "version of compgen",
    "identity": "model",
    "asked": "-n",
    "filters": "--filter",
    "rare_tokens": "--rare-token",
}


@dataclass(frozen=True)
class End:
    """The result of a run; counts and seconds include those of the run that it resumes.

    Attributes:
        written: the number of samples.
        stopped: what ended it early, though there are samples: an interruption, or that no more can be had.
        signals: those that interrupted it.
        alone: after a vote, how many samples have a source that was drawn only once.
    """

    counts: Counts
    written: int
    seconds: float
    stopped: BaseException | None
    signals: Sequence[int]
    alone: int = 0


@dataclass(frozen=True)
class Run:
    """Draws until `count` samples are kept, or to the end of the stream if it is None.

    Attributes:
        drawing: options of `Generator.stream` on which samples depend.
        running: the other options.
        check: called with the file of all samples, before it becomes OUT, the counts, and why there are fewer than
            asked for, or nothing; if it raises, OUT stays as it was.
    """

    generator: Generator
    count: int | None
    drawing: dict[str, Any]
    running: dict[str, Any]
    check: Callable[[Path, Counts, str], None] = lambda _path, _counts, _why: None

    def to_file(self, out: Path, resume: bool) -> End:
        """Write samples to a file as they come, so that an interrupted run can be resumed."""
        identity = {"compgen": __version__, "model": self.generator.identity, "-n": self.count}
        stopped: ExhaustedError | None = None
        self.generator.kept(self.count, **self.drawing, **self.running)  # errors before a run is dropped
        with interruptible() as signals, partial_file(out, identity | self.drawing, resume=resume) as partial:
            counts = partial.counts
            with self._progress(counts) as progress:

                def watch(counts: Counts) -> None:
                    self._show(progress, counts, partial.seconds)
                    partial.save(0 if signals else SAVE_EVERY)
                    if signals:
                        found = f"{counts.kept:,} samples are in {partial.path}, --resume goes on"
                        raise Interrupted(f"interrupted; {found}", *signals)

                stream = self.generator.stream(
                    self.count, **self.drawing, **self.running, counts=counts, watch=watch, earlier=partial.pairs()
                )
                try:
                    for one in stream:
                        partial.write(one)
                except ExhaustedError as error:
                    if not counts.kept:
                        raise
                    stopped = error
            _check_any(counts.kept, counts)
            stopped = stopped or self._short(counts)
            partial.save()
            self.check(partial.path, counts, _why(stopped))
        return End(counts, counts.kept, partial.seconds, stopped, signals)

    def to_stream(self, out: str, choice: Choice, config: FilterConfig) -> End:
        """Write samples as they come, or those chosen when all are drawn, to a stream that cannot be resumed."""
        counts, began, sample_of = Counts(), time.monotonic(), self.generator.sample_of
        stopped: BaseException | None = None
        kept: list[Kept] = []
        checked = sample_writer(out, lambda path: self.check(path, counts, _why(stopped)))
        with interruptible() as signals, checked as write, self._progress(counts) as progress:

            def watch(counts: Counts) -> None:
                self._show(progress, counts, time.monotonic() - began)
                if signals and not counts.kept:
                    raise Interrupted("interrupted; none kept", *signals)
                if signals:
                    raise KeyboardInterrupt  # what was kept is still written

            stream = self.generator.kept(self.count, **self.drawing, **self.running, counts=counts, watch=watch)
            try:
                for one in stream:
                    kept.append(one) if choice.made else write(sample_of(one))
            except (ExhaustedError, KeyboardInterrupt) as error:
                if not counts.kept:
                    raise
                stopped = error
            # Without a choice all that is kept has been written, and `kept` is empty.
            chosen = choice.of(kept, config, self.generator.training) if choice.made else []
            for one, votes in chosen:
                write(sample_of(one, votes))
            written = len(chosen) if choice.made else counts.kept
            if not written and isinstance(stopped, KeyboardInterrupt):
                raise Interrupted("interrupted; none kept", *signals)
            _check_any(written, counts)
            if not choice.made:
                stopped = stopped or self._short(counts)
        alone = sum(votes is not None and votes[1] == 1 for _, votes in chosen)
        return End(counts, written, time.monotonic() - began, stopped, signals, alone)

    def _short(self, counts: Counts) -> ExhaustedError | None:
        """Return why fewer samples than asked for were kept, where no error says so."""
        if self.count is None or counts.kept >= self.count:
            return None
        return ExhaustedError(f"all {self.drawing['draws']:,} draws of --draws are made")

    def _progress(self, counts: Counts) -> Progress:
        return Progress("sample", self.count or self.drawing["draws"] or 0, self._done(counts))

    def _show(self, progress: Progress, counts: Counts, seconds: float) -> None:
        progress.update(self._done(counts), f"{rate(counts.drawn, seconds)} draws/s, {counts.kept:,} kept")

    def _done(self, counts: Counts) -> int:
        return counts.kept if self.count else counts.drawn


def _check_any(written: int, counts: Counts) -> None:
    """Raise ExhaustedError if there is nothing to write: what an output held before is worth more."""
    if not written:
        what = "chosen" if counts.kept else "kept"
        raise ExhaustedError(f"no sample was {what}, and nothing is written: {counts}")


def _why(stopped: BaseException | None) -> str:
    return str(stopped) if isinstance(stopped, ExhaustedError) else ""


def finished(out: Path, asked: dict[str, Any]) -> bool:
    """Return whether OUT is what a run with these options and model wrote, by the record beside it.

    Raises:
        UserError: the record is none, or has other options, or another size than OUT.
    """
    record = record_of(out)
    if not (out.is_file() and record.exists()) or partial_path(out).exists():
        return False
    try:
        found = strict_json(record.read_bytes())
        if not (isinstance(found, dict) and is_count(found.get("bytes", 0))):
            raise ValueError("other values")
    except (OSError, ValueError) as error:
        raise UserError(f"{record}: not a record of sampling: leave out --resume to make {out} anew") from error
    differing = [name for name, value in json.loads(json.dumps(asked)).items() if not same(value, found.get(name))]
    if differing:
        typed = ", ".join(TYPED.get(name, f"--{name}") for name in differing)
        raise UserError(f"{out}: it was made with another {typed}: leave out --resume to make it anew")
    size = out.stat().st_size
    if size != (expected := found.get("bytes", size)):  # records of older versions do not say it
        altered = "cut short or altered: leave out --resume to make it anew"
        raise UserError(f"{out}: {size:,} bytes, expected {expected:,}: {altered}")
    return True
