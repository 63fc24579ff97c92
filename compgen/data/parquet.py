"""Tables of Parquet, whose columns have types: read as examples, and written."""

import io

import polars as pl

from compgen.data.examples import COLUMNS, SCHEMA, SIDES, TOKENS, TRAIN, Dataset
from compgen.data.named import Columns, beside_words, tell_unread_split
from compgen.data.records import word
from compgen.data.tables import TOKEN, Placed, tell_joined
from compgen.errors import DataError


def read(content: bytes, name: str, columns: Columns) -> Placed:
    """Read the content of a file of Parquet."""
    try:
        frame = pl.read_parquet(io.BytesIO(content)) if content else pl.DataFrame(schema=SCHEMA)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{name}: found damaged data or none of Parquet, expected a Parquet file: {reason}") from None
    return of_frame(frame, name, columns)


def of_frame(frame: pl.DataFrame, name: str, columns: Columns) -> Placed:
    """Return the rows of a table of Parquet, of a file or of a folder, as examples."""
    tell_unread_split(frame.columns, name)
    if words := columns.words(frame.columns):
        rows = enumerate(zip(*(frame[column].to_list() for column in words), strict=True), start=1)
        made = [word(f"{name}, row {number}", cells) for number, cells in rows]
        sides = pl.DataFrame(made, schema={"source": TOKENS, "target": TOKENS})
        frame = sides.with_columns(column.alias(beside_words(column.name)) for column in frame.drop({*words}))
    else:
        frame = frame.rename(columns.renaming(frame.columns, name))
    if "target" not in columns.sides:
        frame = frame.with_columns(target=pl.lit([], dtype=TOKENS))
    lines = [pl.col(side).str.strip_chars().str.contains("\n") for side in SIDES if frame.schema[side] == pl.String]
    tell_joined(frame.select(pl.any_horizontal(pl.lit(False), *lines).sum()).item(), name)
    if "split" not in frame.columns:
        frame = frame.with_columns(split=pl.lit(TRAIN))
    checked = [_column(frame[column], name) for column in COLUMNS]
    places = pl.Series(range(1, frame.height + 1), dtype=pl.Int64)
    return Placed(frame.with_columns(checked).select(*COLUMNS, pl.exclude(COLUMNS)), places)


def _column(values: pl.Series, name: str) -> pl.Series:
    """Return one of COLUMNS with its type in a dataset, if it can have it and no value is missing."""
    if values.dtype == pl.String and SCHEMA[values.name] == TOKENS:
        values = values.str.extract_all(TOKEN)
    if values.dtype == pl.List(pl.Null):
        # What a column of empty lists is written as by programs that have no other sign of its type.
        values = values.cast(TOKENS)
    if values.dtype != SCHEMA[values.name]:
        expected = "a string" if values.name == "split" else "a list of strings, or a string"
        raise DataError(f"{name}: found column {values.name!r} of type {values.dtype}, expected {expected}")
    missing = values.is_null()
    if values.dtype == TOKENS:
        missing |= values.list.eval(pl.element().is_null()).list.any().fill_null(False)
    if missing.any():
        row = missing.arg_true()[0] + 1
        raise DataError(f"{name}, row {row}: found a missing value in column {values.name!r}, expected none")
    return values


def write(dataset: Dataset, name: str) -> bytes:
    """Write a file of Parquet."""
    check_columns(dataset.frame, name)
    buffer = io.BytesIO()
    dataset.frame.write_parquet(buffer)
    return buffer.getvalue()


def check_columns(frame: pl.DataFrame, name: str) -> None:
    """Raise DataError if a column has objects of Python, which Parquet cannot hold."""
    for column, kind in frame.schema.items():
        if kind == pl.Object:
            raise DataError(
                f"{name}: found the column {column!r} of type {kind}, expected one of another type of Polars: cast it, "
                "or leave it out"
            )
