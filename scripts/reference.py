"""Writes the reference pages of the documentation, docs/reference, from what the code declares.

    python scripts/reference.py

Commands come from their help, augmenters and configurations from their pydantic models, data sets from the catalog. The
pages are not kept in the repository: `make docs` writes them anew.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from compgen.augmenters.registry import BUILT_IN, find
from compgen.cli.main import app
from compgen.configuration import load_config, shipped, values_of
from compgen.data.catalog import DATASETS
from compgen.recombine.config import RecombineConfig
from compgen.training.config import PretrainedConfig, Seq2SeqConfig, TransformerConfig
from compgen.training.identity import flat

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
CONFIGURED = {
    "recombine": ("cgen train recombine", RecombineConfig, "recombine_small"),
    "seq2seq": ("cgen train seq2seq", Seq2SeqConfig, "seq2seq_small"),
    "transformer": ("cgen train transformer", TransformerConfig, "transformer_small"),
    "pretrained": ("cgen train pretrained", PretrainedConfig, "t5"),
}


def commands() -> str:
    """The help of all commands, and of the groups they are in."""
    return "# Commands\n\n" + "".join(_helps(typer.main.get_command(app), "cgen"))


def _helps(command: Any, name: str, group: Any = None) -> Iterator[str]:
    context = command.make_context(name, [], parent=group, resilient_parsing=True)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n\n"
    for word, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, word, context)


def augmenters() -> str:
    """What each method takes, makes and can be told."""
    return "# Augmenters\n\n" + "\n".join(_augmenter(name, summary) for name, (_, summary) in BUILT_IN.items())


def _augmenter(name: str, summary: str) -> str:
    method = find(name)
    usual = "all there are" if method.usual is None else f"{method.usual:,}"
    columns = ", ".join(f"`{column}`" for column in ("method", *method.columns))
    facts = [
        f"## {name}\n",
        f"{summary}\n",
        f"- takes: {', '.join(sorted(method.takes))}",
        f"- makes, unless told: {usual}; samples can be training examples: {'yes' if method.copies else 'no'}",
        f"- columns beside source, target and split: {columns}",
        f"- configuration: {f'`{method.configuration}`' if method.configuration else 'none'}\n",
    ]
    options = load_config(method.options_type, method.configuration)
    return "\n".join(facts) + "\n" + _table(options) + "\n"


def configurations() -> str:
    """The settings of everything that is trained, and the shipped files that change them."""
    parts = ["# Configurations\n", "A file (`--config`) or `--set KEY=VALUE` changes these.\n"]
    for command, kind, name in CONFIGURED.values():
        parts += [f"## {command}\n", f"Values are those of `{name}`.\n", _table(load_config(kind, name))]
    parts.append("## Shipped files\n")
    for name in shipped():
        parts += [f"### {name}\n", "```text", *(f"{key} = {value!r}" for key, value in flat(values_of(name))), "```\n"]
    return "\n".join(parts)


def _table(model: BaseModel) -> str:
    rows = [f"| `{key}` | {kind} | `{value}` | {text} |" for key, kind, value, text in _fields(model)]
    return "\n".join(["| key | type | value | meaning |", "|---|---|---|---|", *rows, ""])


def _fields(model: BaseModel, before: str = "") -> Iterator[tuple[str, str, object, str]]:
    """Each setting with its type, value and meaning; a table of settings is a model."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _fields(value, f"{before}{name}.")
        else:
            shown = value if value is not None else "none"
            text = (field.description or "").replace("|", "\\|").replace("<", "&lt;")
            yield before + name, ", ".join([_type(field.annotation), *_bounds(field)]), shown, text


def _type(kind: Any) -> str:
    """A type as people read it."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type(args[0])
    if origin is Literal:
        return ", ".join(map(repr, args))
    if origin in (Union, UnionType):
        return " or ".join(map(_type, args)).replace("NoneType", "None")
    if args:
        return f"{origin.__name__}[{', '.join('...' if one is ... else _type(one) for one in args)}]"
    return str(kind.__name__)


def _bounds(field: FieldInfo) -> list[str]:
    return [f"{sign} {getattr(one, key)}" for one in field.metadata for key, sign in SIGNS.items() if hasattr(one, key)]


def data_sets() -> str:
    """The known data sets, their splits and where they come from."""
    parts = ["# Data sets\n", "`cgen data show NAME` says where to get the files of one that has to be downloaded.\n"]
    for name, known in DATASETS.items():
        splits = [f"| `{name}/{split}` | {novelty} |" for split, (_, novelty) in known.splits.items()]
        head = ["| name | new in its test |", "|---|---|"]
        parts += [f"## {name}\n", f"{known.description}. {known.citation}.\n", *head, *splits, ""]
    return "\n".join(parts)


PAGES = {
    "commands.md": commands,
    "augmenters.md": augmenters,
    "configurations.md": configurations,
    "data-sets.md": data_sets,
}


def write(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write(FOLDER)
