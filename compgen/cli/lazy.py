"""Groups: their help has a whole sentence for each command, and commands may be imported only when they are called."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from compgen.errors import UserError

F = TypeVar("F", bound=Callable[..., Any])
Loader = Callable[[], typer.Typer | Callable[..., Any]]


class Command(TyperCommand):
    """A command that refuses an option given twice, where Click silently takes the last.

    With `--set '?'`, which asks for the list of settings, it needs neither data nor an output.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = list(args)
        if ("--set", "?") in pairwise(words) or "--set=?" in words:
            for parameter in self.get_params(ctx):
                parameter.required = False
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # which completions set
            _, _, given = self.make_parser(ctx).parse_args(args=words)
            for option, times in Counter(given).items():
                if times > 1 and not (option.multiple or getattr(option, "is_flag", False)):
                    raise UserError(f"{option.opts[0]}: given {times} times, expected once")
        return rest


class App(typer.Typer):
    """An app whose commands are of the class `Command`."""

    def command(self, name: str | None = None, **attributes: Any) -> Callable[[F], F]:
        return super().command(name, **({"cls": Command} | attributes))


class _Group(TyperGroup):
    """A group that answers the name of a file, where a command is expected, with the order of the two."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        file = os.path.isfile(args[0])  # noqa: PTH113 - of an impossible name, Path raises an error
        if file and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}: a file. The command comes first: {ctx.command_path} COMMAND ...")
        return super().resolve_command(ctx, args)


class Group(_Group):
    """A group whose help has the whole first sentence of each command's help; Typer would cut it to fit the line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(found.help or "")) for name, found in commands if found is not None])


def _sentence(help: str) -> str:
    """Return the first sentence; `et al.` does not end one."""
    text = " ".join(help.split())
    return re.split(r"(?<=\.)(?<!\bal\.) ", text, maxsplit=1)[0]


def lazy_group(commands: Mapping[str, tuple[str | Loader, str]]) -> type[TyperGroup]:
    """Return a class for `typer.Typer(cls=...)` whose commands are not imported before they are called.

    Args:
        commands: for each name, the place of its command and one line of help. The place is "module:attribute", or a
            function without arguments that returns what is there: a `typer.Typer`, or the function of a single command.
    """

    class Lazy(_Group):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = _Commands(commands)  # type: ignore[assignment]

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
            return list(commands)

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
            with formatter.section("Commands"):
                formatter.write_dl([(name, help) for name, (_, help) in commands.items()])

    return Lazy


class _Commands(Mapping[str, Any]):
    """Commands by name, imported when one is looked up."""

    def __init__(self, commands: Mapping[str, tuple[str | Loader, str]]) -> None:
        self.places = {name: place for name, (place, _) in commands.items()}

    def __getitem__(self, name: str) -> Any:
        place = self.places[name]
        if isinstance(place, str):
            module, _, attribute = place.partition(":")
            found = getattr(import_module(module), attribute)
        else:
            found = place()
        parent = App(rich_markup_mode=None, add_completion=False)
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=name)
        else:
            parent.command(name)(found)
        return typer.main.get_group(parent).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)
