"""The command line as a user calls it."""

import inspect
import multiprocessing
import os
import runpy
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from threading import Timer

from typer.testing import CliRunner

from compgen.cli.main import _explained, app
from compgen.errors import Remark

OLD_CLICK = "mix_stderr" in inspect.signature(CliRunner).parameters  # before 8.2


def runner():
    """What calls a command within this process, with standard error apart, as older versions of click do if asked."""
    return CliRunner(mix_stderr=False) if OLD_CLICK else CliRunner()


# Most of a call's time is its imports. So calls are forks of one process, of a single thread, that has imported all.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.cli.shell", "torch", "polars", "onnxruntime", "tests.cli.imported"])


def compgen(*words, stdin="", cwd=None, env=None):
    """What a call in a process of its own comes to; `stdin` is text, `env` what is read after imports."""
    pipes = [os.pipe() for _ in range(3)]
    inner = [Connection(pipes[0][0], writable=False), *(Connection(pipe[1], readable=False) for pipe in pipes[1:])]
    process = FORKS.Process(target=_call, args=(inner, list(map(str, words)), cwd, dict(env or os.environ)))
    process.start()
    for end in inner:
        end.close()
    alarm = Timer(300, process.kill)
    alarm.start()
    with ThreadPoolExecutor(3) as threads:
        threads.submit(_write, pipes[0][1], stdin.encode())
        out, err = threads.map(_read, (pipes[1][0], pipes[2][0]))
    process.join()
    alarm.cancel()
    return subprocess.CompletedProcess(words, process.exitcode, out, err)


def started(*words, env):
    """The same by an interpreter of its own, which has another environment from its start."""
    command = [sys.executable, "-m", "compgen", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)


def _call(pipes, words, cwd, environment):
    """Be `python -m compgen`, with these pipes for standard input, output and error."""
    for number, pipe in enumerate(pipes):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - multiprocessing has closed the one there was
    os.chdir(cwd or ".")
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["compgen", *words]
    runpy.run_module("compgen", run_name="__main__", alter_sys=True)


def _write(end, content):
    with os.fdopen(end, "wb") as stream:
        stream.write(content)


def _read(end):
    with os.fdopen(end, encoding="utf-8") as stream:
        return stream.read()


def refused(done, *says):
    """See that a call ended with a user's error that says some words, and return it."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for words in says:
        assert words in done.stderr or words in " ".join(done.stderr.split())
    return done


def said(*words):
    """The exit code of a call in this process, and all that it says: output, notes, remarks and the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, [str(word) for word in words])
    text = result.output + "".join(f"{warning.message}\n" for warning in caught if warning.category is Remark)
    if result.exception is None or isinstance(result.exception, SystemExit):
        return result.exit_code, text
    explained = _explained(result.exception)
    assert explained is not None, f"a bug, with a traceback: {result.exception!r}"
    assert "\n" not in explained.strip()
    return 2, f"{text}{explained}\n"
