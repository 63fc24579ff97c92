"""`cgen augment NAME`: a command for each method of the registry, made from its options."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from compgen.augmenters.registry import find, summaries
from compgen.cli.common import (
    LEARNT,
    DataArgument,
    FormatOption,
    LearnOption,
    OutOption,
    SeedOption,
    SetOption,
    called,
    check_out,
    load_split,
    need_torch,
    say,
    write_out,
)
from compgen.cli.lazy import lazy_group
from compgen.cli.options import as_given, with_options
from compgen.cli.quality import StrictOption, judged
from compgen.configuration import check_one_value, load_config
from compgen.data.named import Columns
from compgen.errors import UserError
from compgen.files import check_apart, check_writable
from compgen.progress import stages
from compgen.record import named, record_of, write_record

if TYPE_CHECKING:
    from compgen.augmenters.base import Augmenter, Options

A = TypeVar("A", bound="Augmenter[Any]")


def command(name: str) -> Callable[..., None]:
    """The function of `cgen augment NAME`; its parameters are the common options and those of the method."""
    kind = find(name)
    usual = "all there are" if kind.usual is None else f"{kind.usual:,}"
    settings = "Take options from a TOML file" + f", or from {kind.configurations}" * bool(kind.configurations) + "."

    def augment(
        data: DataArgument,
        out: OutOption,
        options: dict[str, Any],
        columns: Columns,
        count: Annotated[
            int | None,
            typer.Option("-n", min=1, metavar="N", help=f"Make N examples. By default, {usual}.", show_default=False),
        ] = None,
        config: Annotated[
            str | None, typer.Option("--config", metavar="C", help=settings, show_default=kind.configuration or False)
        ] = None,
        set_: SetOption = None,
        split: LearnOption = LEARNT,
        seed: SeedOption = 0,
        format: FormatOption = None,
        strict: StrictOption = False,
    ) -> None:
        check_settings(kind, set_ or [], options)
        method = configured(kind, config, set_ or [], options, beside=out)
        read = (data, config, *method.reads())
        check_out(out, format, *read)
        check_written(method, (out, record_of(out)), *read)
        asked: dict[str, Any] = {"data": named(data), "split": split, "n": count, "seed": seed, "format": format}
        asked |= {"config": named(config or kind.configuration), "columns": columns.given, "command": called()}
        _run(method, load_split(data, split, columns=columns), out, asked, strict)

    examples = f"Example{'s' if chr(10) in kind.example else ''}: {kind.example}" if kind.example else ""
    about = (kind.__doc__ or "").partition("\n    Attributes")[0].rstrip()
    augment.__doc__ = f"{about}\n\n    {examples}"
    return with_options(augment, options=kind.options_type)


def check_settings(kind: type[A], changes: Sequence[str], given: dict[str, Any]) -> None:
    """Raise ConfigError for an option that `--set` gives another value, which would silently win."""
    for name, value in given.items():
        check_one_value(as_given(name, kind.options_type.model_fields[name], value), name, value, changes)


def configured(
    kind: type[A], config: str | None, changes: list[str], given: dict[str, Any], beside: Path | None = None
) -> A:
    """Return a method with the options of a configuration; `given` options override these, and `changes` both.

    Raises:
        UserError: an option is unknown or out of range, or has no effect beside another; or torch is missing.
    """
    options: Options = load_config(kind.options_type, config or kind.configuration, changes, given)
    for option, table in kind.clashes.items():
        if getattr(options, option) and any(change.startswith(f"{table}.") for change in changes):
            raise UserError(f"--{option} makes no use of {table}: leave out --set {table}")
    method = kind(options, beside=beside)
    if method.needs_torch():
        need_torch("training")
    return method


def check_written(method: "Augmenter[Any]", others: Sequence[Path], *read: str | None) -> None:
    """Check that files named by a method's options can be written, and are none of `others` nor of those read."""
    for option, path in method.writes().items():
        if str(path) == "-" or path.resolve() in {other.resolve() for other in others}:
            raise UserError(f"{option} {path}: expected the name of a file, and another than OUT's")
        check_apart(path, *read)
        check_writable(path)


def _run(method: "Augmenter[Any]", dataset: Any, out: Path, asked: dict[str, Any], strict: bool) -> None:
    from compgen.augmenters.base import HOST, METHOD, HandedOver

    began = time.monotonic()
    try:
        with stages() as watch:
            samples = method.fit(dataset, asked["seed"], watch).sample(asked["n"], asked["seed"], watch)
    except HandedOver as elsewhere:
        say(elsewhere)
        return
    seconds = round(time.monotonic() - began, 1)
    say(f"{method.described()}; {seconds:.1f} s")
    report = method.report()
    kept = f"{out} is not written" if strict else None
    quality = judged(samples, dataset, asked["n"], method.warnings(), kept)
    read = set(method.reads())
    given = method.options.model_dump(mode="json")
    options = {
        name: named(value) if isinstance(value, str) and value in read else value for name, value in given.items()
    }
    made = {"options": options, "report": report, "quality": quality.to_dict(), "seconds": seconds}
    record = {METHOD: method.name} | asked | {"n": report["asked"]} | made
    write_out(samples, out, asked["format"], record)
    replaced = [name for name in (METHOD, *method.columns) if name in dataset.frame.columns]
    if replaced and HOST in method.columns:  # else no further columns are kept
        say(f"{out}: {', '.join(replaced)}: by {method.name}, in place of the data's own: rename those to keep them")
    method.close()
    write_record(out, record)


app = typer.Typer(
    cls=lazy_group({name: (partial(command, name), summary) for name, summary in summaries().items()}),
    no_args_is_help=True,
    help="Make more examples from those in DATA, by one of these methods.",
)
