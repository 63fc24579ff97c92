"""`python -m compgen`: the same as the `compgen` command."""

from compgen.cli.main import run

run()
