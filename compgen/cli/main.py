"""The `compgen` command: mounts the verbs, and turns errors into one clear message and an exit code."""

import errno
import os
import signal
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from compgen.cli.lazy import lazy_group
from compgen.errors import Interrupted, Remark, UserError
from compgen.files import STDOUT

INTERRUPTED = 128 + signal.SIGINT

HELP = """Make the training examples that people lack: recombine what you have, train on it, show that it generalises.

A first round, on SCAN (which compgen makes itself):

\b
    compgen train recombine scan/jump -o recomb2.pt
    compgen export recomb2.pt -o exported/mine
    compgen sample exported/mine --draws 150000 --filter novel,rare --vote --best 1000 -o augmented.jsonl
    compgen train seq2seq scan/jump --augmented augmented.jsonl -o predictor.pt
    compgen evaluate predictor.pt scan/jump
"""

# Typer carries its own copy of Click and exports the errors of parsing only by their subclasses.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
# How torch and ONNX Runtime say it, whose errors have no type of their own.
NO_MEMORY = ("can't allocate memory", "not enough memory", "CUDA out of memory", "Failed to allocate memory")

COMMANDS = {
    "data": ("compgen.cli.data:app", "List, show, compare, convert and split data sets."),
    "train": ("compgen.cli.train:app", "Train a generator or a predictor."),
    "export": ("compgen.cli.export:export", "Export a checkpoint to a bundle, which runs without torch."),
    "verify": ("compgen.cli.verify:verify", "Check that a bundle gives here what it gave where it was exported."),
    "sample": ("compgen.cli.sample:sample", "Draw new examples from a generator, and filter them."),
    "augment": ("compgen.cli.augment:app", "Make more examples from those in DATA."),
    "select": ("compgen.cli.select:select", "Select some of many synthetic examples to train on."),
    "evaluate": ("compgen.cli.evaluate:evaluate", "Predict the targets of DATA and score them."),
    "explain": ("compgen.cli.explain:app", "Show why a synthetic example exists."),
    "lm": ("compgen.cli.lm:app", "Estimate, measure and mix n-gram language models."),
}

app = typer.Typer(
    cls=lazy_group(COMMANDS),
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from compgen import __version__

        print(f"compgen {__version__}")
        raise typer.Exit


def _fail(message: str, code: int) -> NoReturn:
    print(f"compgen: {message}", file=sys.stderr)
    with suppress(OSError):
        sys.stdout.flush()
    # What standard output could not take must not fail once more when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a remark of ours as one line; those of libraries as Python does."""
    if issubclass(category, Remark):
        print(f"compgen: {message}", file=sys.stderr)
    else:
        _show_warning(message, category, *place, **more)


_show_warning = warnings.showwarning


def _terminated(*_: object) -> NoReturn:
    """SIGTERM unwinds like Ctrl-C, so that nothing half-written and no temporary folder stays."""
    _signals.append(signal.SIGTERM)
    sys.exit(128 + signal.SIGTERM)


_signals: list[int] = []  # that ended the command


def _call() -> int | None:
    """The command, and its exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever called
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until Python ends
    try:
        code: int | None = app(prog_name="compgen", standalone_mode=False)
        sys.stdout.flush()
        return code
    except Exception:
        if not _signals:
            raise
        sys.exit(128 + _signals[0])  # a library that was calling back has made an error of its own of the exit


def run() -> NoReturn:
    """Entry point of the command.

    Exit codes: 0 done, 1 a bug (with its traceback), 2 a user's error, 130 interrupted, 141 the reader went away, 143
    terminated.
    """
    warnings.showwarning = _warn
    signal.signal(signal.SIGTERM, _terminated)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `compgen ... | head` ends quietly, like any filter
    try:
        code = _call()
    except UserError as error:
        _fail(str(error), 128 + error.number if isinstance(error, Interrupted) else 2)
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP, errno.ENOTDIR) and error.filename:
            _fail(f"{error.filename}: {error.strerror}", 2)  # no name that a file can have, or that may be looked up
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        _fail(f"{STDOUT}: cannot be written: {error.strerror}", 2)  # files have messages of their own
    except USAGE_ERROR as error:
        error.show()
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in NO_MEMORY):
            raise
        _fail(f"not enough memory: {' '.join(str(error).split())[:200] or 'lower what is done at a time'}", 2)
    if code == INTERRUPTED:  # Typer turns Ctrl-C into this code
        print("compgen: interrupted", file=sys.stderr)
    sys.exit(code or 0)
