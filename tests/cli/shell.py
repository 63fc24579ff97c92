"""The command line as a user calls it."""

import subprocess
import sys
import warnings

from typer.testing import CliRunner

from compgen.cli.main import _explained, app
from compgen.errors import Remark


def compgen(*words, stdin=None, **options):
    """What a call comes to; `stdin` is text."""
    command = [sys.executable, "-m", "compgen", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300, **options)


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
