"""Options of commands, declared once: as fields of a pydantic model, or as parameters whose default is such a field.

    class Options(BaseModel):
        beam: int = option(1, "Width of beam search; 1 is greedy.", ge=1, le=1024)
        rare: tuple[str, ...] = option((), "A rare token.", "--rare-token", metavar="TOKEN")

    @app.command()
    @with_options
    def sample(data: DataArgument, options: Options, limit: int = option(9, "The most.", ge=0)) -> None: ...

A field `rare_tokens` is the option `--rare-tokens`. Its type, bounds, default and description become those of the
option. Extra keys of a field (`json_schema_extra`) change that: `flags`, a list of names to use; `metavar`; `hidden`;
`shown`, what the help says instead of the default; `argument`, true for a positional argument. Plain `pydantic.Field`
will do; `option` only writes these keys shorter. The help of a list says that the option may be repeated. In a model,
too, a type that is annotated with `typer.Option` or `typer.Argument` is taken as it is.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo
from typer.models import ParameterInfo

from compgen.configuration import expected_of, extra_of
from compgen.errors import UserError
from compgen.trained.limits import LIMITS

CONTEXT = "_context"
KEYWORD = inspect.Parameter.KEYWORD_ONLY
TECHNICAL = 2**31 - 1  # upper bounds from here on are technical limits: checked, but not shown in the help


def option(default: Any, help: str, *flags: str, metavar: str | None = None, **checks: Any) -> Any:
    """Return a field with a description, and with flags and a metavar of its own if they are given.

    A default of `...` makes the option required. `checks` are bounds and the like, as for `pydantic.Field`.
    """
    extra: dict[str, Any] = {"flags": list(flags), "metavar": metavar}
    return Field(default, description=help, json_schema_extra=extra, **checks)


def argument(metavar: str, help: str) -> Any:
    """Return a field that is a required positional argument."""
    return Field(description=help, json_schema_extra={"argument": True, "metavar": metavar})


def bounds(name: str) -> dict[str, Any]:
    """Return the bounds of one of LIMITS, for `option`."""
    least, most = LIMITS[name]
    return {"ge": least, "le": most}


def at_most(most: int) -> Callable[[typer.CallbackParam, int], int]:
    """Return a callback for `typer.Option` that checks a TECHNICAL bound."""

    def checked(parameter: typer.CallbackParam, value: int) -> int:
        _require_at_most(max(parameter.opts, key=len), most, value)
        return value

    return checked


def with_options(call: Callable[..., None], **models: type[BaseModel]) -> Callable[..., None]:
    """Replace each parameter that is a pydantic model by an option per field; `call` gets the model, checked.

    The result is for `app.command()`. `models` gives the models of parameters that are not annotated with one. If the
    annotation is `dict[str, Any]`, `call` gets the values that were given on the command line, unchecked.
    Called from Python, the result does what `call` does.
    """
    signature = inspect.signature(call, eval_str=True)
    kinds: dict[str, type[BaseModel]] = {}
    fields: dict[str, FieldInfo] = {}
    parameters = [inspect.Parameter(CONTEXT, KEYWORD, annotation=typer.Context)]
    for parameter in signature.parameters.values():
        kind = models.get(parameter.name, parameter.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kinds[parameter.name] = kind
            parameters += option_parameters(kind)
        elif field := _field_of(parameter):
            fields[parameter.name] = field
            parameters.append(_parameter(parameter.name, field))
        else:
            parameters.append(parameter.replace(kind=KEYWORD))

    @functools.wraps(call)
    def command(*arguments: Any, **values: Any) -> None:
        if CONTEXT not in values:
            return call(*arguments, **values)
        context: typer.Context = values.pop(CONTEXT)
        for name, field in fields.items():
            values[name] = _chosen(name, field, values[name])
        for name, kind in kinds.items():
            found = {field: values.pop(field) for field in kind.model_fields if field in values}
            given = {field: value for field, value in found.items() if _given(context, field)}
            raw = get_origin(signature.parameters[name].annotation) is dict
            values[name] = given if raw else _checked(kind, given)
        return call(**values)

    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def option_parameters(kind: type[BaseModel]) -> list[inspect.Parameter]:
    """Build a keyword parameter, annotated for typer, of each field but those that are models themselves."""
    return [_parameter(name, field) for name, field in kind.model_fields.items() if not _is_model(field.annotation)]


def spelled(name: str, field: FieldInfo) -> str:
    """Return an option as it is written: its first long flag; an argument by its name in the help."""
    if extra_of(field).get("argument"):
        return str(extra_of(field).get("metavar"))
    flags: list[str] = extra_of(field).get("flags") or [_flag(name)]
    return next((flag for flag in flags if flag.startswith("--")), flags[0]).partition("/")[0]


def as_given(name: str, field: FieldInfo, value: Any) -> str:
    """Return an option with its value as one writes them: `--span 4`, `--vote`, `--no-vote`, `--rare a --rare b`."""
    flag = spelled(name, field)
    if isinstance(value, bool):
        return flag if value else f"--no-{flag.removeprefix('--')}"
    return " ".join(f"{flag} {one}" for one in (value if isinstance(value, list) else [value]))


def alternatives(choices: Sequence[str]) -> str:
    """Join words as in "a, b or c"."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _field_of(parameter: inspect.Parameter) -> FieldInfo | None:
    """Return the field that a parameter has as its default or in its annotation."""
    if isinstance(parameter.default, FieldInfo):
        return FieldInfo.from_annotated_attribute(parameter.annotation, parameter.default)
    if any(isinstance(part, FieldInfo) for part in getattr(parameter.annotation, "__metadata__", ())):
        return FieldInfo.from_annotation(parameter.annotation)
    return None


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, _ = _typer_type(field.annotation)
    default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    found = next((part for part in field.metadata if isinstance(part, ParameterInfo)), None) or _typer_info(name, field)
    if default == () or default == []:
        kind, default = kind | None, None  # typer would show an empty list as a default
    if isinstance(default, tuple):
        default = list(default)
    annotation = Annotated[kind, found]  # type: ignore[valid-type]
    return inspect.Parameter(name, KEYWORD, annotation=annotation, default=default)


def _typer_info(name: str, field: FieldInfo) -> Any:
    """Return what typer has to know of a field, but its type and default."""
    extra, (kind, choices) = extra_of(field), _typer_type(field.annotation)
    repeated = " May be repeated." if list in (get_origin(kind), *map(get_origin, get_args(kind))) else ""
    if extra.get("argument"):
        return typer.Argument(metavar=extra.get("metavar"), help=field.description)
    flags = list(extra.get("flags") or [_flag(name)])
    if kind in (bool, bool | None) and field.default is not False and not any("/" in flag for flag in flags):
        flags[0] += f"/--no-{flags[0].removeprefix('--')}"
    return typer.Option(
        *flags,
        metavar=extra.get("metavar") or (f"[{'|'.join(choices)}]" if choices else None),
        help=f"{field.description or ''}{repeated}",
        hidden=bool(extra.get("hidden")),
        show_default=extra.get("shown", True),
        autocompletion=_completing(choices) if choices else None,
        **_bounds(field, whole=kind in (int, int | None, list[int])),
    )


def _completing(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """Return what shells ask for on TAB: the choices that begin as what was typed."""

    def completed(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return completed


def _typer_type(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the type of an option for typer, and the choices of a Literal.

    A Literal is text, a tuple of any length is a list; `X | None` stays as it is.
    """
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (part for part in get_args(annotation) if part is not NoneType)
        kind, choices = _typer_type(inner)
        return kind | None, choices
    if get_origin(annotation) is Literal:
        return str, get_args(annotation)
    if get_origin(annotation) in (list, tuple):
        kind, choices = _typer_type(get_args(annotation)[0])
        return list[kind], choices  # type: ignore[valid-type]
    if get_origin(annotation) is Annotated:
        return _typer_type(get_args(annotation)[0])
    return annotation, ()


def _bounds(field: FieldInfo, whole: bool) -> dict[str, Any]:
    """Return typer's `min` and `max` for an option, or for each of a list; from open bounds only for whole numbers."""
    found = {}
    inner = [part for one in get_args(field.annotation) for part in getattr(one, "__metadata__", ())]
    for bound in [*field.metadata, *(bound for part in inner for bound in getattr(part, "metadata", [part]))]:
        for name, side, step in (("ge", "min", 0), ("gt", "min", 1), ("le", "max", 0), ("lt", "max", -1)):
            if hasattr(bound, name) and (whole or not step):
                found[side] = getattr(bound, name) + step
    if found.get("max", 0) >= TECHNICAL:
        del found["max"]
    return found


def _is_model(annotation: Any) -> bool:
    parts = [part for part in (annotation, *get_args(annotation)) if isinstance(part, type)]
    return any(issubclass(part, BaseModel) for part in parts)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _chosen(name: str, field: FieldInfo, value: Any) -> Any:
    """Return the value of an option, checked; the default for None.

    Raises:
        UserError: a value is not allowed, see `_require_allowed`.
    """
    for one in value if isinstance(value, list) else [value]:
        if one is not None:
            _require_allowed(spelled(name, field), field, one)
    return field.get_default() if value is None and not field.is_required() else value


def _require_allowed(flag: str, field: FieldInfo, one: Any) -> None:
    """Check what typer does not: choices, open bounds of fractions, and TECHNICAL bounds.

    Raises:
        UserError: a value is none of the choices, or beyond a bound.
    """
    _, choices = _typer_type(field.annotation)
    if choices and one not in choices:
        raise UserError(f"{flag} {one}: expected {alternatives(choices)}")
    above = next((bound.gt for bound in field.metadata if hasattr(bound, "gt")), None)
    if above is not None and one <= above:
        raise UserError(f"{flag} {one}: expected a number greater than {above:g}")
    most = next((bound.le for bound in field.metadata if hasattr(bound, "le")), None)
    if most is not None:
        _require_at_most(flag, most, one)


def _require_at_most(flag: str, most: int, one: int) -> None:
    """Raise UserError for a larger number, in typer's words for other bounds, which the C++ runner has, too."""
    if one > most:
        raise UserError(f"Invalid value for '{flag}': Input should be less than or equal to {most}")


def _checked(kind: type[BaseModel], given: dict[str, Any]) -> BaseModel:
    """Build a model of what was given.

    Raises:
        UserError: a value is none of the choices, or the model refuses it.
    """
    values = {name: _chosen(name, kind.model_fields[name], value) for name, value in given.items()}
    try:
        return kind(**values)
    except ValidationError as error:
        problem = error.errors()[0]
        expected = expected_of(problem)
        if not problem["loc"]:
            raise UserError(expected) from None
        name = str(problem["loc"][0])
        message = expected if problem["type"] == "value_error" else f"expected {expected}"
        raise UserError(f"{spelled(name, kind.model_fields[name])} {problem['input']}: {message}") from None
