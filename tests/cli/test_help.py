"""Every command says what it is for and gives an example, and the examples are ones that it would take."""

import re
import shlex

import pytest
import typer.main

from compgen.cli.main import app


def leaves(command, path=()):
    """All commands that do something, by the words that call them."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


ROOT = typer.main.get_command(app)
COMMANDS = dict(leaves(ROOT))


def examples(command):
    """The calls of `compgen` in a command's help, each as its words."""
    calls = re.findall(r"^ *(?:Example: )?compgen (.+)", command.help, re.MULTILINE)
    return [shlex.split(call) for call in calls]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_has_an_example_that_can_be_run(path):
    found = examples(COMMANDS[path])
    assert any(tuple(words[: len(path)]) == path for words in found)
    for words in found:
        command, rest = ROOT, words
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(" ".join(words), rest)
