"""Every command says what it is for and gives an example, and the examples are ones that it would take."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from compgen.cli.main import COMMANDS as VERBS
from compgen.cli.main import app
from tests.cli.shell import compgen, refused, started


def leaves(command, path=()):
    """All commands that do something, by the words that call them."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


def groups(command, path=()):
    """All groups, by the words that call them."""
    if hasattr(command, "commands"):
        yield path
        for name, inner in command.commands.items():
            yield from groups(inner, (*path, name))


ROOT = typer.main.get_command(app)
COMMANDS = dict(leaves(ROOT))


def examples(command):
    """The calls of `cgen` in a command's help, each as its words."""
    calls = re.findall(r"^ *(?:Example: )?cgen (.+)", command.help, re.MULTILINE)
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


TRAIN = ["train", "seq2seq", "scan/jump", "-o", "x.pt", "--set"]
SCREEN = 45  # lines
MANY, SCREENS = 12, 75  # parameters, and lines that the help of so many may have


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_short_and_long_flags_print_the_same_help_on_a_screen(path):
    short, long = (CliRunner().invoke(app, [*path, flag], prog_name="cgen") for flag in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0 and short.output == long.output
    assert short.output.startswith(f"Usage: cgen {' '.join(path)} ")
    assert "-h, --help" in short.output and "Example" in short.output
    assert not re.search(r"\d{10}", short.output)  # bounds that only a machine has
    assert len(short.output.splitlines()) <= (SCREEN if len(COMMANDS[path].params) < MANY else SCREENS)


@pytest.mark.parametrize("path", list(groups(ROOT)), ids=" ".join)
def test_groups_say_what_their_commands_do_in_whole_sentences(path):
    output = CliRunner().invoke(app, [*path, "-h"]).output
    listed = output.partition("Commands:\n")[2].splitlines()
    sentences = " ".join("| " + line.strip() if line[2:3].strip() else line.strip() for line in listed)
    assert listed and all(re.fullmatch(r"[\w-]+ .+[^.]\.", one.strip()) for one in sentences.split("| ")[1:])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evalute"], "Did you mean 'evaluate'?"),
        (["data", "shw"], "Did you mean 'show'?"),
        (["data", "split", "lenght"], "Did you mean 'length'?"),
        (["sample", "recomb2", "--draw", "5"], "--draws"),
        (
            [*TRAIN, "optimization.steps=9"],
            "did you mean optimisation?",
        ),
        ([*TRAIN, "steps=9"], "did you mean optimisation.steps?"),
        (
            [*TRAIN, "optimisation.step=9"],
            "did you mean optimisation.steps?",
        ),
        (["sample", "recmb2", "-n", "1"], "recomb2"),
        (["completion", "tcsh"], "expected bash, zsh or fish"),
    ],
)
def test_what_is_misspelt_has_a_suggestion(words, says):
    refused(compgen(*words), says)


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(shell, marks=pytest.mark.long) for shell in ("zsh", "fish"))])
def test_shells_complete_commands_and_options(shell):
    script = compgen("completion", shell)
    assert script.returncode == 0 and "cgen" in script.stdout and "_CGEN_COMPLETE=complete_" in script.stdout

    def completed(text):
        words = text.split(" ")
        asked = {"COMP_WORDS": text, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": text}
        asked |= {"_CGEN_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        done = started(env=os.environ | asked)
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"^[^\w-]*([\w-]+)", done.stdout.replace("_arguments '*: :((", ""), re.MULTILINE))

    assert completed("cgen ") == set(VERBS)
    assert completed("cgen ev") == {"evaluate"}
    assert completed("cgen data sh") == {"show"}
    assert completed("cgen data split te") == {"template"}
    assert completed("cgen sample --nov") == {"--novelty"}
    assert completed("cgen augment substitute x.tsv --classes t") == {"token", "types"}


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes(tmp_path):
    (tmp_path / "cgen").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m compgen "$@"\n')
    (tmp_path / "cgen").chmod(0o755)
    script = """
        eval "$(cgen completion bash)"
        COMP_WORDS=(cgen data sp) COMP_CWORD=2
        _cgen_completion cgen sp data
        echo "${COMPREPLY[@]}"
    """
    path = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=path)
    assert done.stdout == "split\n", done.stderr


def test_commands_work_with_the_oldest_typer(tmp_path, oldest):
    (tmp_path / "d.tsv").write_text("walk\tWALK\n")
    said = []
    for words in ([], ["--nosuch"], ["-n", "1", "-n", "2"]):
        command = [oldest / "bin" / "python", "-m", "compgen", "data", "show", "d.tsv", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        said.append((done.returncode, done.stdout[:9], done.stderr.strip().splitlines()[-1:]))
    assert said[0] == (0, "walk\tWALK", [])
    assert said[1][0] == 2 and said[1][2][0].startswith("Error: No such option")
    assert said[2] == (2, "", ["cgen: -n: given 2 times, expected once"])
