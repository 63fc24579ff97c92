"""Errors that are a user's to mend. The command line prints them on one screen and exits with code 2."""

import signal


class UserError(Exception):
    """Something the user gave cannot be used: the message says what, where, and what was expected."""


def check_draws(who: str, count: int | None, seed: int) -> None:
    """Raise UserError unless `count` samples (None for all) can be asked for, and drawn by `seed`."""
    if not 0 <= seed < 2**64 or (count is not None and count < 0):
        raise UserError(f"{who}: count {count}, seed {seed}: expected 0 or more, and a seed less than 2^64")


class Remark(UserWarning):
    """What a user should know, though the work goes on. The command line prints it on one line of standard error."""


class DataError(UserError):
    """A data file, a split or a token is not what it should be."""


class CheckpointError(UserError):
    """A checkpoint is missing, cut short, of another version, or not ours."""


class BundleError(UserError):
    """A bundle is missing, cut short, altered, of another version, or not ours."""


class ConfigError(UserError):
    """A configuration names an unknown option or an impossible value."""


class Interrupted(UserError):  # noqa: N818 - nothing went wrong
    """The user stopped long work, and what was done is safe; the message says how to go on.

    `number` is the signal's: the exit code is 128 more, 130 for Ctrl-C and 143 for SIGTERM.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class ExhaustedError(UserError):
    """Sampling stopped because too few samples pass the filters; the message holds the counts."""
