"""The report of a comparison: one HTML page that needs no network, no script and no other file."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from compgen.comparison import differences, words
from compgen.comparison.result import BARE, Group, Result, Tested
from compgen.comparison.systems import MOST
from compgen.errors import DataError
from compgen.files import atomic_path

if TYPE_CHECKING:
    from jinja2 import Template

RESULT, REPORT = "compare.json", "report.html"
CLAIM = "comparison.json"  # says what a folder is for, from the beginning, and is locked while a comparison runs
SHOWN = 20  # examples of a kind on the page
EDGE = 5  # percent of a plot's width left free on either side
LARGEST = 1e15  # number of a file; what is computed of such numbers is finite


def read(folder: Path) -> Result:
    """Read what `cgen compare` found.

    Raises:
        DataError: the folder has no `compare.json`, not one of this version, or a comparison that is not finished.
    """
    path = Path(folder) / RESULT
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text, parse_float=_finite, parse_int=lambda one: int(_finite(one)), parse_constant=_finite)
    except (FileNotFoundError, NotADirectoryError):
        if (Path(folder) / CLAIM).is_file():
            raise DataError(
                f"{folder}: the comparison is not finished: it runs, or was interrupted, and goes on by the same "
                "`cgen compare`"
            ) from None
        raise DataError(f"{path}: no such file, expected the folder that `cgen compare` writes") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: found no JSON: {error}; make it again by `cgen compare`") from None
    ours = Result.model_fields["version"].default
    if isinstance(found, dict) and (theirs := found.get("version", ours)) != ours:
        raise DataError(f"{path}: version {theirs!r}, expected {ours}: it is of another compgen; compare again")
    try:
        return Result.model_validate_json(text)  # which also refuses half of a surrogate pair
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, wrong["loc"])) or "the file"
        raise DataError(f"{path}: {where}: {wrong['msg']}; expected what `cgen compare` writes") from None


def _finite(text: str) -> float:
    """A number of a file; raises ValueError for NaN and what is too large, which have no place in a plot."""
    number = float(text)
    if not abs(number) <= LARGEST:  # nor NaN
        raise ValueError(f"the number {text:.40}")
    return number


def write_report(folder: Path) -> Path:
    """Write `report.html` beside the `compare.json` that it is made from, and return its path.

    Raises:
        DataError: as `read`.
        UserError: the page cannot be written.
    """
    page = render(read(folder))
    path = Path(folder) / REPORT
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path


def render(result: Result) -> str:
    """The page, as text."""
    chosen = words.chosen(result)
    roles = {one.role: one for one in result.tested}
    bare, control = roles.get("bare"), roles.get("control")
    main = [one for one in (bare, control) if one]
    main += [chosen] if chosen and chosen not in main else []
    return _template().render(
        result=result,
        bare=bare,
        control=control,
        chosen=chosen,
        together=words.together(result),
        main=main,
        gains=_gains(result),
        updates=scale([0, result.predictor.updates, *(point.updates for point in result.predictor.curve)]),
        accuracy=scale([0, *(share for point in result.predictor.curve for share in point.accuracy.values())]),
        groups=[
            ("length", "By length of the source", _known(result.by_length)),
            ("novelty", "By novelty of the template", _known(result.by_template)),
        ],
        summaries={method.name: method.summary for method in result.methods},
        BARE=BARE,
        MOST=MOST,
        SHOWN=SHOWN,
    )


@dataclass(frozen=True)
class Scale:
    """An axis: where values stand between its first and its last tick."""

    ticks: Sequence[float]

    def share(self, value: float) -> float:
        """How far along the axis a value is, from 0 to 1."""
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])

    def at(self, value: float) -> str:
        """The value's place across a plot's width, for SVG."""
        return f"{EDGE + (100 - 2 * EDGE) * self.share(value):.2f}%"


def scale(values: Iterable[float]) -> Scale:
    """An axis with three to eight round ticks that holds all values."""
    values = list(values)
    low, high = min(values), max(values)
    rough = max(high - low, 0.01) / 4
    power = 10 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return Scale([number * step for number in range(first, max(last, first + 1) + 1)])


@dataclass(frozen=True)
class Gains:
    """The plot of all systems' gains over one of them; `field` says where in `Tested` they are."""

    field: str
    over: str
    rows: list[Tested]
    scale: Scale


def _gains(result: Result) -> list[Gains]:
    """Gains over the bare data and over the control, largest first, on the same scale."""
    fields = {"over_bare": "the bare data", "over_control": "the control"}
    known = {field: [one for one in result.tested if getattr(one, field)] for field in fields}
    found = [getattr(one, field) for field, rows in known.items() for one in rows]
    axis = scale([0, *(end for one in found for end in (one.low, one.mean, one.high))])
    return [
        Gains(field, over, sorted(known[field], key=lambda one: -getattr(one, field).mean), axis)
        for field, over in fields.items()
        if known[field]
    ]


def _known(groups: list[Group]) -> list[Group]:
    return [group for group in groups if group.examples]


def _figure(value: Any) -> str:
    """One of a method's figures, whose type is the method's choice."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= differences.MOST else f"{text[: differences.MOST]} …"


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("compgen", "comparison"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for make in (words.percent, words.points, words.between, words.span, words.chance, words.duration):
        environment.filters[make.__name__] = make
    for look in (differences.beside, differences.judged, differences.plain):
        environment.filters[look.__name__] = look
    environment.filters["figure"] = _figure
    environment.filters["signed"] = lambda number: f"{number:+.3g}".replace("-", "\N{MINUS SIGN}")
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment.get_template("report.html.j2")
