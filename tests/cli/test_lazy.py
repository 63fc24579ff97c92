"""Groups whose commands are imported when they are called."""

import sys

import pytest
import typer
from typer.testing import CliRunner

from compgen.cli.lazy import lazy_group
from tests.cli.shell import compgen


def group(loaded):
    def one():
        loaded.append("one")
        return lambda: print("called")

    commands = {"one": (one, "The first."), "table": ("tabnanny:none", "Not there.")}
    app = typer.Typer(cls=lazy_group(commands), no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    app.callback()(lambda: None)
    return app


def test_help_loads_no_command():
    loaded = []
    text = CliRunner().invoke(group(loaded), ["--help"]).output
    assert "The first." in text and "Not there." in text and not loaded
    assert "tabnanny" not in sys.modules


def test_a_command_is_loaded_when_it_is_called():
    assert CliRunner().invoke(group([]), ["one"]).output == "called\n"


def test_a_misspelled_command_is_refused_with_a_guess():
    loaded = []
    done = CliRunner().invoke(group(loaded), ["tabel"])
    assert done.exit_code == 2 and "Did you mean 'table'?" in done.output and not loaded


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("train recombine --minutes 3", "minutes=3.0"),
        ("train seq2seq", "p_aug, not set"),
        ("train transformer --config transformer_relative", "network.relative=16"),
        ("train pretrained", "p_aug=0.5"),
        ("train csl", "seed_rules=auto"),
        ("augment geca --span 4", "span=4"),
    ],
)
def test_settings_are_listed_without_data_or_an_output(words, line):
    for asked in (["--set", "?"], ["--set=?"]):
        done = compgen(*words.split(), *asked)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("settings for --set KEY=VALUE, with their current values:\n")
        assert f"\n  {line}  " in done.stdout
