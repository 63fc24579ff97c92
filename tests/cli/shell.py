"""The command line as a user calls it."""

import subprocess
import sys


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
