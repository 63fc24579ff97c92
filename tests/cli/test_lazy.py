"""Groups whose commands are imported when they are called."""

import sys

import typer
from typer.testing import CliRunner

from compgen.cli.lazy import lazy_group


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
