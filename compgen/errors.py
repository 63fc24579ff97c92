"""Errors that a user can correct. The command line prints the message and exits with code 2."""

import math
import operator
import re
import signal
import sys
import warnings
from numbers import Real

_PACKAGE = __name__.partition(".")[0]
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but TAB and line feed


def printable(text: object) -> str:
    """Return text without control characters, which steer a terminal: it may quote anybody's file. Each is a space."""
    return _CONTROL.sub(" ", str(text))


class UserError(Exception):
    """The user's input cannot be used; the message says what was found, where, and what was expected."""

    def __str__(self) -> str:
        """Return the message without control characters."""
        return printable(super().__str__())


def whole(number: object) -> int | None:
    """Return a whole number, also one of NumPy's, as Python's int; None for anything else."""
    try:
        return None if isinstance(number, bool) else operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        return None


def real(number: object) -> float:
    """Return a real number, also one of NumPy's, as Python's float; NaN, which is in no range, for anything else."""
    return float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan


def checked_draws(who: str, count: object, seed: object) -> tuple[int | None, int]:
    """Return a number of samples (None: all) and a seed as Python's ints; raise UserError if one is impossible."""
    samples, fixed = whole(0 if count is None else count), whole(seed)
    if samples is None or fixed is None or not (0 <= samples < 2**64 and 0 <= fixed < 2**64):
        asked = "" if count is None else f"count {count!r}, "
        raise UserError(f"{who}: {asked}seed {seed!r}: expected whole numbers of 0 or more, less than 2^64")
    return (None if count is None else samples), fixed


def how_it_ended(program: str, code: int) -> str:
    """Say how a program ended that left no message: with its exit code, or by a signal if the code is negative."""
    if code >= 0:
        return f"{program} ended with code {code}"
    name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")  # some have no name
    return f"{program} was ended by {name}{', perhaps for want of memory' if name == 'SIGKILL' else ''}"


class Remark(UserWarning):
    """A warning for the user. The command line prints it on one line of standard error."""


def tell(remark: str) -> None:
    """Issue a `Remark` that points to the user's line: the nearest one that is not of this package."""
    frame, level = sys._getframe(), 1  # Python 3.12 has `skip_file_prefixes` for this
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(remark, Remark, stacklevel=level)


class DataError(UserError):
    """A data file, a split or a token is not as expected."""


class CheckpointError(UserError):
    """A checkpoint is missing, truncated, of another version, or of another program."""


class BundleError(UserError):
    """A bundle is missing, truncated, altered, of another version, or of another program."""


class ConfigError(UserError):
    """A configuration has an unknown option or an impossible value."""


class SettingsAskedError(ConfigError):
    """`?` among the overrides asks for the settings; the message lists them, and the command line prints it."""


class Interrupted(BaseException):
    """The user stopped long work, whose state is saved; the message says how to continue.

    Like KeyboardInterrupt it is no `Exception`, so that code that continues after errors does not continue after
    Ctrl-C. `number` is that of the signal. The exit code is 128 more: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class ExhaustedError(UserError):
    """The data and options give no samples, or too few, or finding more would take too long; the message says which."""
