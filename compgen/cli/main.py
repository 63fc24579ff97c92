"""The command `cgen`: mounts the verbs, and turns errors into one clear message and an exit code."""

import errno
import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from compgen.cli import streams
from compgen.cli.lazy import lazy_group
from compgen.errors import Interrupted, Remark, SettingsAskedError, UserError, printable
from compgen.interrupts import TOGETHER

NAME = "cgen"  # of the command; bash has a builtin `compgen`, which hides a program of that name
COMPLETE = "_CGEN_COMPLETE"  # set by the scripts of `cgen completion` where they ask for completions
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM

HELP = """Augment training data: recombine the examples you have, train on them, and measure whether that helps.

A first round, on SCAN (compgen generates this data set itself):

\b
    cgen train recombine scan/jump -o recomb2.pt
    cgen export recomb2.pt -o exported/mine
    cgen sample exported/mine --draws 5000 --filter novel,rare --prototypes rare --vote --best 1000 -o augmented.jsonl
    cgen train seq2seq scan/jump --augmented augmented.jsonl -o predictor.pt
    cgen evaluate predictor.pt scan/jump
"""

# Typer has its own copy of Click, and exports only subclasses of the error of parsing.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
# Messages of torch, ONNX Runtime and Polars, whose errors have no type of their own.
NO_MEMORY = (
    "Cannot allocate memory",
    "can't allocate memory",
    "not enough memory",
    "CUDA out of memory",
    "Failed to allocate memory",
)

COMMANDS = {
    "data": ("compgen.cli.data:app", "List, show, compare, convert and split data sets."),
    "check": ("compgen.cli.check:check", "Check a table: what is wrong, where, and which methods apply."),
    "train": ("compgen.cli.train:app", "Train a generator or a predictor."),
    "export": ("compgen.cli.export:export", "Export a checkpoint to a bundle, which runs without torch."),
    "verify": (
        "compgen.cli.verify:verify",
        "Check that a bundle gives the same results here as where it was exported.",
    ),
    "sample": ("compgen.cli.sample:sample", "Draw new examples from a generator, and filter them."),
    "compare": ("compgen.cli.compare:compare", "Find out which augmentation helps on DATA, and how certain that is."),
    "augment": ("compgen.cli.augment:app", "Make more examples from those in DATA."),
    "select": ("compgen.cli.select:select", "Select some of many synthetic examples to train on."),
    "confirm": ("compgen.cli.confirm:confirm", "Keep those synthetic examples that predictors confirm."),
    "evaluate": ("compgen.cli.evaluate:evaluate", "Predict the targets of DATA and score them."),
    "report": ("compgen.cli.report:report", "Write the report of a comparison again."),
    "predict": ("compgen.cli.predict:predict", "Predict the targets of sources, from a file or a pipe."),
    "explain": ("compgen.cli.explain:app", "Show why a synthetic example exists."),
    "lm": ("compgen.cli.lm:app", "Estimate, measure and mix n-gram language models."),
    "completion": ("compgen.cli.completion:completion", "Print a script for shell completion on TAB."),
}

app = typer.Typer(
    cls=lazy_group(COMMANDS),
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from compgen import __version__

        print(f"compgen {__version__}")
        raise typer.Exit


def _fail(message: str, code: int) -> NoReturn:
    print(f"{NAME}: {message}", file=sys.stderr)
    with suppress(OSError):
        sys.stdout.flush()
    # At exit Python flushes standard output again; what could not be written must not fail a second time.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print our own warnings on one line, those of libraries as Python does."""
    if issubclass(category, Remark):
        print(f"{NAME}: {printable(message)}", file=sys.stderr)
    else:
        _show_warning(message, category, *place, **more)


_show_warning = warnings.showwarning


def _terminated(*_: object) -> None:
    """On SIGTERM, unwind as on Ctrl-C, so that no half-written file and no temporary folder is left.

    Signals that come together with the first are ignored: they would cut the unwinding short.
    """
    if _signals and time.monotonic() < _signals[0] + TOGETHER:
        return
    _signals[:] = [time.monotonic()]
    sys.exit(TERMINATED)


_signals: list[float] = []  # the time of the SIGTERM that ends the command, if one has come


def _call() -> int | None:
    """Run the command and return its exit code."""
    streams.prepare()
    try:
        if COMPLETE in os.environ:
            os.environ["COLUMNS"] = "10000"  # a shell reads one line for each word, however long its description is
            import_module("typer.completion").completion_init()
        code: int | None = app(prog_name=NAME, standalone_mode=False)
        sys.stdout.flush()
        return code
    except SettingsAskedError as answer:
        print(answer, flush=True)
        return 0
    except Exception:
        if not _signals:
            raise
        sys.exit(TERMINATED)  # SystemExit was raised in a library's callback, and the library made an error of it


def _explained(error: Exception) -> str | None:
    """Return the message to a user for an error that is not a bug; None for a bug."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError) and (message := _of_the_system(error)):
        return message
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | OSError) and any(words in str(error) for words in NO_MEMORY)
    ):
        return f"not enough memory: {' '.join(str(error).split())[:200] or 'ask for less at a time'}"
    return None


def _of_the_system(error: OSError) -> str | None:
    """Return the message for an error of the system that code for files has not turned into a UserError."""
    unusable = (errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP, errno.ENOTDIR, errno.EROFS)
    if error.errno in unusable and error.filename:
        return f"{error.filename}: {error.strerror}"  # an impossible name, or one that may not be looked up
    if error.errno == errno.ENOENT and "temporary directory" in str(error):  # `tempfile` tried all that it knows
        return f"{error.strerror}: set TMPDIR to a folder that can be written"
    if error.errno == errno.ENOENT and not error.filename:  # of `getcwd`
        return "the current folder has been deleted: change to another"
    if error.errno == errno.ENOSPC:
        return f"standard output: cannot be written: {error.strerror}"  # files have messages of their own
    if error.errno == errno.EIO:
        return "a file or standard output cannot be read or written: a disk, a terminal or a network drive failed"
    return None


def run() -> NoReturn:
    """Run the command and exit.

    Exit codes: 0 done, 1 a bug (with its traceback), 2 a user's error, 130 interrupted, 141 the reader of standard
    output has gone, 143 terminated.
    """
    warnings.showwarning = _warn
    signal.signal(signal.SIGTERM, _terminated)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `cgen ... | head` ends quietly, like any filter
    try:
        code = _call()
    except USAGE_ERROR as error:
        error.show()
        sys.exit(2)
    except Interrupted as error:
        _fail(str(error), 128 + error.number)
    except Exception as error:
        message = _explained(error)
        if message is None:
            raise
        _fail(message, 2)
    if code == INTERRUPTED:  # Typer turns Ctrl-C into this code
        print(f"{NAME}: interrupted", file=sys.stderr)
    sys.exit(code or 0)
