"""What formats share: examples as read, each with its line or row, and what a format cannot hold."""

from typing import NamedTuple

import polars as pl

from compgen.data.content import check_line_ends, decoded
from compgen.data.examples import Dataset
from compgen.errors import DataError, tell

BLANK = r"\s"  # what separates tokens: a token that holds it cannot be written between spaces
TOKEN = r"\S+"
SCAN = r"^\s*IN:(|\s.*?)\sOUT:(|\s.*)$"  # a line of SCAN, with source and target


class Placed(NamedTuple):
    """Examples as read, and for messages the number of each one's line or row, from 1."""

    frame: pl.DataFrame
    places: pl.Series


def lines_of(content: bytes, name: str) -> pl.DataFrame:
    """Return the lines of a text that are not blank, as `lines_in`.

    Raises:
        DataError: the text is not UTF-8, or its lines end with CR alone.
    """
    text = decoded(content, name)
    check_line_ends(content, name)
    return lines_in(text, " ")  # a TAB alone is not blank: in tsv it is an example with two empty sides, and refused


def lines_in(text: str, blank: str | None = None) -> pl.DataFrame:
    """Return the lines that are not blank: columns `number`, from 1, and `line`, without line ends.

    Blank are lines of white space, or of the characters of `blank` if these are given.
    """
    # splitlines() would also cut at form feeds and the like, inside tokens that JSON may hold.
    lines = pl.Series("line", text.split("\n"), dtype=pl.String).str.strip_chars_end("\r")
    written = pl.col("line").str.strip_chars(blank) != ""
    return pl.DataFrame({"line": lines}).with_row_index("number", offset=1).filter(written)


def without_blanks(found: Placed, content: bytes | None, name: str) -> Placed:
    """Leave out examples without a token, as predictions for blank lines are; say how many, and how many blank lines.

    Args:
        found: what was read.
        content: the text, if its blank lines were left out already: they are counted.
        name: what messages call it.
    """
    none = (found.frame["source"].list.len() == 0) & (found.frame["target"].list.len() == 0)
    lines = (content or b"").rstrip().split(b"\n")
    count = int(none.sum()) + sum(not line.strip(b" \r") for line in lines[: len(lines) if content else 0])
    if count:
        what = f"{count:,} example{'s' * (count > 1)} without a token left out"
        tell(f"{name}: {what}: lines of the output will not correspond to its lines")
    return Placed(found.frame.filter(~none), found.places.filter(~none))


def tell_joined(count: int, name: str) -> None:
    """Issue a Remark if there are texts of several lines, whose line ends are read as the spaces between tokens."""
    if count:
        examples = f"{count:,} example{'s have' if count > 1 else ' has'} a side of several lines, read as one"
        advice = "where lines matter, as in code or comments, write line ends as tokens of their own"
        tell(f"{name}: {examples}: {advice}")


def check_tokens(dataset: Dataset, forbidden: str, why: str) -> None:
    """Raise DataError if a token matches the pattern `forbidden`, or is empty."""
    for column in ("source", "target"):
        tokens = dataset.frame[column].explode().drop_nulls()
        bad = tokens.filter((tokens == "") | tokens.str.contains(forbidden))
        if len(bad):
            raise DataError(f"{why}: found the {column} token {bad[0]!r:.80}; write jsonl or parquet instead")


def check_one_split(dataset: Dataset, what: str) -> None:
    """Raise DataError if a dataset has several splits."""
    if len(dataset.splits) > 1:
        raise DataError(f"{what} holds one split a file: found {', '.join(dataset.splits)}; write one of them")
