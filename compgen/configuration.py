"""Configurations: TOML tables, shipped in `compgen/configs` or a user's own, read into pydantic models.

A table may name another as its `base`, and `--set a.b=value` changes one value. Every key is checked: an unknown or
impossible one is an error that names it.
"""

import difflib
import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from inspect import Parameter, signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from compgen.errors import ConfigError, SettingsAskedError

LARGEST = 2**20  # bytes of a configuration file

_IN_PYTHON = " (in Python one of overrides=)"  # said of `--set`
_WIDEST = 40  # width of the column of settings in the list of them, at most
_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}

C = TypeVar("C", bound=BaseModel)


class _UnknownError(ConfigError):
    """A name that no file has, and none of the configurations that could be meant."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        near = difflib.get_close_matches(name, known, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        shown = name if name.isprintable() else repr(name)
        super().__init__(f"no configuration {shown}: {_expected(known)}{meant}")


def _expected(known: Sequence[str]) -> str:
    return f"expected a TOML file{' or one of ' * bool(known)}{', '.join(known)}"


def load_config(
    kind: type[C],
    name: str | Path | None,
    overrides: Sequence[str] | None = None,
    given: Mapping[str, Any] = MappingProxyType({}),
) -> C:
    """The configuration `name` (shipped, a TOML file, or None for an empty one), checked as `kind`.

    Values in `given` take the place of the configuration's, and `a.b=value` overrides that of both.

    Raises:
        ConfigError: no such configuration, not TOML, or a key or value that `kind` does not have.
        SettingsAskedError: `?` is among the overrides.
    """
    if name is not None and not isinstance(name, str | Path):
        raise ConfigError(f"configuration {name!r:.60}: expected a name")
    name, asked = None if name is None else str(name), _checked_overrides(overrides)
    changes = [one for one in asked if one != "?"]
    found = _loaded(kind, name, changes, given)
    if len(changes) < len(asked):
        listed = list(_listed(found))
        width = min(_WIDEST, max(len(setting) for setting, _ in listed))
        lines = [f"{setting:<{width}}  {description}".rstrip() for setting, description in listed]
        raise SettingsAskedError("\n  ".join(["settings for --set KEY=VALUE, with their current values:", *lines]))
    return found


def _checked_overrides(overrides: Any) -> Sequence[str]:
    """Return overrides, none for None; raise ConfigError unless they are a list of strings."""
    if isinstance(overrides, str):  # whose letters would be read one by one
        raise ConfigError(f"overrides {overrides!r:.60}: found a string, expected a list: [{overrides!r:.60}]")
    listed = [] if overrides is None else overrides
    if not (isinstance(listed, Sequence) and all(isinstance(one, str) for one in listed)):
        raise ConfigError(f"overrides {overrides!r:.60}: expected a list of strings, each as 'optimisation.batch=64'")
    return listed


def _loaded(kind: type[C], name: str | None, overrides: Sequence[str], given: Mapping[str, Any]) -> C:
    try:
        values = merged({} if name is None else values_of(name), dict(given))
    except _UnknownError as error:
        raise _UnknownError(error.name, shipped_for(kind)) from None
    for override in overrides:
        _override(values, override)
    try:
        return kind.model_validate(values)
    except (ValidationError, ConfigError) as error:  # the latter of a model that checks itself
        if name in shipped() and name not in shipped_for(kind):
            raise ConfigError(f"configuration {name} is of another command: {_expected(shipped_for(kind))}") from error
        if isinstance(error, ConfigError) and (name is None or name in shipped()):
            raise
        place = "options" if name is None else f"configuration {name}"
        what = explained(kind, error) if isinstance(error, ValidationError) else error
        raise ConfigError(f"{place}: {what}") from error


def _listed(config: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Each setting with its value, as `--set` takes it, and what it is in a sentence."""
    for name, field in type(config).model_fields.items():
        value, text = getattr(config, name), _SENTENCES.split(field.description or "")[0]
        if isinstance(value, BaseModel):
            yield from _listed(value, f"{place}{name}.")
        elif value is None:
            yield f"{place}{name}, not set", text
        else:
            shown = value if isinstance(value, str) else json.dumps(value, default=str)
            yield f"{place}{name}={shown}", text


def _override(values: dict[str, Any], override: str) -> None:
    """Set what `a.b=value` says. Raises ConfigError if it says nothing, or `a` is no table."""
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {override}: expected KEY=VALUE, for instance optimisation.batch=64{_IN_PYTHON}")
    *parents, last = key.strip().split(".")
    table = values
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override}: {parent} is a value, not a table{_IN_PYTHON}")
    table[last] = _value(text.strip())


def check_one_value(option: str, setting: str, value: Any, overrides: Sequence[str]) -> None:
    """Refuse overrides of what an option sets: either might be the one that is meant, and only one can count.

    Raises:
        ConfigError: an override gives the setting another value than `value`, which `option` gives.
    """
    for override in overrides:
        key, _, text = override.partition("=")
        if key.strip() == setting and value != _value(text.strip()) and str(value) != text.strip():
            raise ConfigError(f"{option} and --set {override} give {setting} two values: leave out one of them")


def explained(kind: type[BaseModel], error: ValidationError) -> str:
    """What is wrong with the values given for a model, in one line, with settings of similar names."""
    known = [*settings_of(kind)]
    return "; ".join(_problem(found, known) for found in error.errors()[:5])


def check_options(who: str, given: Iterable[str], known: Sequence[str], elsewhere: str = "") -> None:
    """Refuse options of a call in Python that there are not; `elsewhere` says where what is meant may belong.

    Raises:
        ConfigError: with the name that may be meant, or else all that there are.
    """
    for name in given:
        if name not in known:
            instead = _instead(name, known)
            more = "" if instead.endswith("?") else elsewhere
            raise ConfigError(f"{who}: no option {name!r:.60}: {instead}{more}")


def names_of(*functions: Callable[..., Any]) -> list[str]:
    """The arguments of functions that can be given by name, each once."""
    kinds = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    found = (one for function in functions for one in signature(function).parameters.values() if one.kind in kinds)
    return [*dict.fromkeys(one.name for one in found if one.name != "self")]


def shipped_for(kind: type[BaseModel]) -> list[str]:
    """The names of the shipped configurations that fit a model."""
    return [name for name in shipped() if _fits(kind, values_of(name))]


def _fits(kind: type[BaseModel], values: Mapping[str, Any]) -> bool:
    try:
        kind.model_validate(values)
    except (ValidationError, ConfigError):
        return False
    return True


def settings_of(kind: type[BaseModel], table: str = "") -> Iterator[str]:
    """The names of all settings, those of tables with dots, and of the tables themselves."""
    for name, field in kind.model_fields.items():
        yield table + name
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from settings_of(part, f"{table}{name}.")


def _problem(found: Any, known: Sequence[str]) -> str:
    """One line on what pydantic found: at a place, with the value there, or between settings."""
    if not found["loc"]:
        return expected_of(found)
    place = ".".join(str(part) for part in found["loc"]) or "''"
    if found["type"] == "extra_forbidden":
        return f"{place:.100}: no such setting; {_instead(place, known)}".removesuffix("; ")
    if found["type"] == "missing":
        return f"{place}: missing, expected a setting of this name"
    expected = expected_of(found)
    if found["type"] in ("model_type", "model_attributes_type"):
        inner = next((name for name in known if name.startswith(f"{place}.")), f"{place}.NAME")
        expected = f"a table of settings, for instance --set {inner}=VALUE"
    return f"{place}: found {_shown(found['input'])[:100]}, expected {expected}"[:300]


def _instead(place: str, known: Sequence[str]) -> str:
    """What may be meant by an unknown setting, or all that there are in its table, as far as they fit on a line."""
    if place in known:  # given as one name, with dots
        outer, _, inner = place.partition(".")
        return f"expected a table: {outer} with {inner}; in Python {outer}={{{inner!r}: VALUE}}"
    table = place[: place.rfind(".") + 1]
    near = [name for name in known if name.endswith("." + place)] or difflib.get_close_matches(place, known, 1)
    if near and not place.startswith(f"{near[0]}."):  # its own table is no answer
        return f"did you mean {' or '.join(near)}?"
    names = [name.removeprefix(table) for name in known if name.startswith(table)]
    shown = ", ".join(
        name + ".NAME" * any(one.startswith(f"{name}.") for one in names) for name in names if "." not in name
    )
    return f"expected one of {textwrap.shorten(shown, 300, placeholder=' ...')}" if shown else ""


def extra_of(field: FieldInfo) -> dict[str, Any]:
    """The extra keys of a field (`json_schema_extra`)."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def expected_of(found: Any) -> str:
    """What pydantic expected, in words that fit behind "expected", or the message of a check of our own."""
    kind = str(found["type"]).partition("_")[0]
    if found["type"] in (f"{kind}_parsing", f"{kind}_type", "int_from_float") and kind in _KINDS:
        return _KINDS[kind]
    if found["type"] == "int_parsing_size":
        return "a number of fewer digits"
    message = str(found["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
    return f"a number {message}" if message.startswith(("greater", "less")) else message


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return "tables too deep in each other"


def shipped() -> list[str]:
    """Names of the configurations that come with the package."""
    folder = resources.files("compgen") / "configs"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def values_of(name: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """The values of a configuration and its bases, unchecked. Raises ConfigError as `load_config`."""
    own = name not in shipped()
    content = _own(name) if own else (resources.files("compgen") / "configs" / f"{name}.toml").read_bytes()
    place = str(Path(name).resolve()) if own else name  # a file may be named in several ways, with `..` say
    if place in seen:
        raise ConfigError(f"configuration {name}: its base leads back to it: {' -> '.join([*seen, place])}")
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ConfigError(
            f"configuration {name}: not TOML that can be read: brackets too deep in each other"
        ) from error
    except ValueError as error:
        raise ConfigError(f"configuration {name}: not TOML: {error}") from error
    base = values.pop("base", None)
    if base is None:
        return values
    if own and base not in shipped():
        base = Path(name).parent / str(base)  # beside the file that names it
    return merged(values_of(str(base), (*seen, place)), values)


def _own(name: str) -> bytes:
    """The content of a user's file."""
    path, shown = Path(name), name if name.isprintable() else repr(name)
    try:
        if not path.is_file():
            raise _UnknownError(name, shipped())
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"configuration {shown}: cannot be read: {getattr(error, 'strerror', error)}") from error
    if len(content) > LARGEST:
        raise ConfigError(f"configuration {name}: more than {LARGEST:,} bytes, expected a TOML file of settings")
    return content


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with some values changed."""
    made = dict(base)
    for key, value in change.items():
        both = isinstance(value, Mapping) and isinstance(made.get(key), Mapping)
        made[key] = merged(made[key], value) if both else value
    return made


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, or a number of too many digits
        return text  # a bare word is a string
