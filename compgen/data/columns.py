"""Further columns of a dataset, as JSON lines hold them: scalars, and lists of scalars.

JSON has fewer types than Polars, and its readers hold numbers in 64-bit floats. So:

- A key that a line lacks is null there.
- Values of different kinds in one column, objects, and lists in lists are kept as text: strings as they are, other
  values spelled in JSON. Whole numbers and fractions count as one kind.
- Integers that a 64-bit float cannot hold (LIMIT or more) are text, and with them their column, in reading as in
  writing. So are, in writing, NaN and infinite numbers, which JSON does not have; where a line has them, they are read.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from compgen.data.ragged import lists_of
from compgen.errors import DataError

LIMIT = 2**53  # integers nearer to 0 than this are exact in a 64-bit float
_TYPES: dict[frozenset[type], pl.DataType] = {
    frozenset(): pl.Null(),
    frozenset([bool]): pl.Boolean(),
    frozenset([int]): pl.Int64(),
    frozenset([float]): pl.Float64(),
    frozenset([int, float]): pl.Float64(),
}


def from_json(name: str, values: Sequence[Any]) -> pl.Series:
    """Return the column of values that `json.loads` gave."""
    given = [value for value in values if value is not None]
    if not given or not all(isinstance(value, list) for value in given):
        dtype = _common_type(given)
        return pl.Series(name, _as(dtype, values), dtype=dtype)
    dtype = _common_type(leaf for value in given for leaf in value)
    lists = lists_of([_as(dtype, value or []) for value in values], dtype).alias(name)
    return lists.set(pl.Series([value is None for value in values]), None)


def _common_type(values: Iterable[Any]) -> pl.DataType:
    kinds: set[type] = set()
    for value in values:
        if value is not None:
            kinds.add(str if type(value) is int and abs(value) >= LIMIT else type(value))
    return _TYPES.get(frozenset(kinds), pl.String())


def _as(dtype: pl.DataType, values: Iterable[Any]) -> list[Any]:
    return [_text(value) for value in values] if dtype == pl.String else list(values)


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def for_json(column: pl.Series, name: str) -> pl.Series:
    """Return a column as JSON can hold it, for the file `name`; objects, nested lists and bytes are a DataError."""
    leaves = column.explode() if isinstance(column.dtype, pl.List) else column
    kind = leaves.dtype
    if kind in (pl.Boolean, pl.String, pl.Null) or (kind.is_numeric() and _exact(leaves)):
        return column
    spelled = kind.is_numeric() or kind.is_temporal() or kind in (pl.Categorical, pl.Enum)
    if not spelled or kind == pl.Duration:  # which Polars spells in no text
        instead = "leave it out" if kind == pl.Object else "write parquet instead"
        raise DataError(
            f"{name}: found the column {column.name!r} of type {column.dtype}, expected numbers, strings, true, false, "
            f"or lists of these, as JSON and CSV hold them; {instead}"
        )
    return column.cast(pl.List(pl.String) if isinstance(column.dtype, pl.List) else pl.String)


def _exact(numbers: pl.Series) -> bool:
    """Whether a reader of JSON gets all the numbers as they are."""
    if numbers.dtype.is_float():
        return bool(numbers.is_finite().all())
    return numbers.dtype.is_integer() and bool(numbers.cast(pl.Int128).is_between(1 - LIMIT, LIMIT - 1).all())
