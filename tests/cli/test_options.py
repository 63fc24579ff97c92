"""Options that are declared as the fields of a model."""

from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import BaseModel, Field, model_validator
from typer.testing import CliRunner

from compgen.cli.options import argument, as_given, option, with_options
from compgen.errors import UserError


class Table(BaseModel):
    """What no option can be."""

    key: int = 0


class Options(BaseModel):
    """One field of each kind."""

    count: int | None = option(None, "How many.", "-n", metavar="N", ge=1)
    beam: int = Field(1, ge=1, le=1024, description="Width of beam search.")
    theta: float = Field(0.5, gt=0, le=1, description="A probability.")
    mode: Literal["published", "reference"] = Field("published", description="Which rule.")
    rare: tuple[str, ...] = option((), "A rare token.", "--rare-token", metavar="TOKEN")
    sizes: list[Annotated[int, Field(gt=1)]] = Field([3, 4], description="Sizes.")
    vote: bool = Field(False, description="Vote.")
    keep_all: bool = Field(True, description="Keep.")
    torchscript: bool | None = Field(None, description="Keep the file.")
    secret: int = Field(0, json_schema_extra={"hidden": True})
    table: Table = Table()

    @model_validator(mode="after")
    def _consistent(self) -> "Options":
        if self.vote and self.beam > 1:
            raise ValueError("leave out --beam")
        return self


class Needed(BaseModel):
    """One required field."""

    out: str = option(..., "Where to write.", "--output", "-o")


def run(*words, kind=Options, annotation=None):
    """The exit code, the output or error, and what the command got."""
    got = []
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    def call(data, options):
        got.append((data, options))

    call.__annotations__ = {"data": str, "options": annotation or kind}
    app.command()(with_options(call, options=kind))
    done = CliRunner().invoke(app, list(map(str, words)))
    return done, got[0][1] if got else None


def test_defaults_are_the_model_s():
    assert run("d")[1] == Options()


def test_every_kind_of_field_is_an_option():
    words = ["-n", 3, "--beam", 2, "--theta", 0.25, "--mode", "reference", "--rare-token", "a", "--rare-token", "b"]
    words += ["--sizes", 5, "--no-keep-all", "--no-torchscript", "--secret", 4]
    done, options = run("d", *words)
    assert done.exit_code == 0, done.output
    expected = {"count": 3, "beam": 2, "theta": 0.25, "mode": "reference", "rare": ("a", "b"), "sizes": [5]}
    assert options == Options(**expected, keep_all=False, torchscript=False, secret=4)
    assert run("d", "--vote")[1].vote


def test_help_shows_flags_bounds_choices_and_defaults():
    text = " ".join(run("--help")[0].output.split())
    for words in ("-n N", "How many. [x>=1]", "1<=x<=1024", "[published|reference]", "default: published"):
        assert words in text
    for words in (
        "--rare-token TOKEN",
        "--keep-all / --no-keep-all",
        "--torchscript / --no-torchscript",
        "default: 0.5",
    ):
        assert words in text
    assert "--no-vote" not in text and "--secret" not in text and "--table" not in text


@pytest.mark.parametrize(
    "words", [["-n", 0], ["--beam", 1025], ["--theta", 2], ["--theta", "x"], ["--sizes", 1], ["--table", 1]]
)
def test_click_refuses_impossible_values(words):
    done, got = run("d", *words)
    assert done.exit_code == 2 and words[0] in done.output and got is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mode", "other"], "--mode other: expected published or reference"),
        (["--theta", 0], "--theta 0.0: expected a number greater than 0"),
        (["--vote", "--beam", 2], "leave out --beam"),
    ],
)
def test_the_model_refuses_the_rest(words, message):
    error = run("d", *words)[0].exception
    assert isinstance(error, UserError) and str(error) == message


def test_a_field_without_a_default_is_required():
    done, _ = run("d", kind=Needed)
    assert done.exit_code == 2 and "--output" in done.output
    assert run("d", "-o", "x", kind=Needed)[1] == Needed(out="x")


def test_given_values_can_be_told_from_defaults():
    assert run("d", "--beam", 1, annotation=dict[str, Any])[1] == {"beam": 1}


def test_parameters_can_be_fields_themselves():
    got = []
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command()
    @with_options
    def call(
        models: Annotated[list[str], argument("MODEL...", "Some models.")],
        shared: Annotated[int, typer.Option("--other", min=1)] = 2,
        side: Literal["source", "target"] = option("source", "Whose."),
        sizes: tuple[Annotated[int, Field(ge=0)], ...] = option((0, 128), "How many.", "--size"),
        names: tuple[str, ...] = option((), "Which."),
    ) -> None:
        got.append((models, shared, side, tuple(sizes), names))

    def run(*words):
        return CliRunner().invoke(app, words)

    assert run("a", "b").exit_code == run("a", "--other", "5", "--side", "target", "--size", "7").exit_code == 0
    assert got == [(["a", "b"], 2, "source", (0, 128), ()), (["a"], 5, "target", (7,), ())]
    assert run("a", "--size", "-1").exit_code == run("a", "--other", "0").exit_code == run().exit_code == 2
    assert str(run("a", "--side", "left").exception) == "--side left: expected source or target"
    assert "MODEL..." in run("--help").output


def test_a_model_can_use_typer_s_own_options():
    class Mixed(BaseModel):
        seed: Annotated[int, typer.Option("--seed", min=0, help="Fixes draws.")] = 3

    assert run("d", kind=Mixed)[1].seed == 3 and run("d", "--seed", 4, kind=Mixed)[1].seed == 4
    assert run("d", "--seed", -1, kind=Mixed)[0].exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("beam", 2, "--beam 2"),
        ("rare", ["a", "b"], "--rare-token a --rare-token b"),
        ("vote", True, "--vote"),
        ("keep_all", False, "--no-keep-all"),
    ],
)
def test_an_option_is_named_as_one_writes_it(name, value, written):
    assert as_given(name, Options.model_fields[name], value) == written
