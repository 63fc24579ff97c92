"""Errors that a user can correct. The command line prints the message and exits with code 2."""

import signal


class UserError(Exception):
    """The user's input cannot be used; the message says what was found, where, and what was expected."""


def check_draws(who: str, count: int | None, seed: int) -> None:
    """Raise UserError for an impossible number of samples (None stands for all) or seed."""
    whole = all(type(number) is int for number in (seed, 0 if count is None else count))
    if not whole or not 0 <= seed < 2**64 or (count is not None and count < 0):
        raise UserError(
            f"{who}: count {count!r}, seed {seed!r}: expected whole numbers of 0 or more, and a seed less than 2^64"
        )


class Remark(UserWarning):
    """A warning for the user. The command line prints it on one line of standard error."""


class DataError(UserError):
    """A data file, a split or a token is not as expected."""


class CheckpointError(UserError):
    """A checkpoint is missing, truncated, of another version, or of another program."""


class BundleError(UserError):
    """A bundle is missing, truncated, altered, of another version, or of another program."""


class ConfigError(UserError):
    """A configuration has an unknown option or an impossible value."""


class Interrupted(UserError):  # noqa: N818 - nothing went wrong
    """The user stopped long work, whose state is saved; the message says how to continue.

    `number` is that of the signal. The exit code is 128 more: 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class ExhaustedError(UserError):
    """The data and options give no samples, or too few, or finding more would take too long; the message says which."""
