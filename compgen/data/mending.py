"""Mends a table: what can be put right is, and what cannot is left out, with its lines."""

import json
from typing import NamedTuple

import polars as pl

from compgen.data import checks
from compgen.data.checks import Finding
from compgen.data.columns import from_json
from compgen.data.examples import COLUMNS, SIDES, Dataset
from compgen.data.lenient import NO_TEXT, SAVE, Table
from compgen.data.tables import BLANK, TOKEN
from compgen.data.vocabulary import CONTROL
from compgen.errors import DataError

LEFT_OUT = (
    *(checks.header, checks.empty, checks.special, checks.replacement, checks.brackets),
    *(checks.duplicates, checks.contradictions),
)


class Mended(NamedTuple):
    """A dataset, how many of its sides were rewritten, and what was left out."""

    dataset: Dataset
    rewritten: int
    left_out: list[Finding]


def mend(table: Table, keep_targets: bool = False) -> Mended:
    """Return a table without what `checks` finds; with `keep_targets`, a source keeps its several targets.

    Characters without width and control characters are removed, no-break spaces made plain, letters composed (NFC),
    and quotes of CSV taken off. Then these are left out: header lines, empty sides, special symbols, lost letters,
    unbalanced brackets, repetitions, later targets of a source, and lines that could not be read.

    Raises:
        DataError: nothing is left, or most lines would be left out, repetitions aside; or there is no split `train`.
    """
    if any(finding.what == NO_TEXT for finding in table.findings):
        raise DataError(f"nothing is written: {NO_TEXT}: {SAVE}")  # letters are not lost yet
    plain = table.rows.with_columns(_clean(side) for side in SIDES)
    _refuse(checks.unformed(plain))
    rewritten = sum(int((plain[side] != table.rows[side]).sum()) for side in SIDES)
    plain = plain.with_columns(pl.col(SIDES).str.replace_all(f"{BLANK}+", " "))  # equal tokens make equal texts
    numbers = {*table.rows["number"]}
    left_out = [finding for finding in table.findings if finding.lines and numbers.isdisjoint(finding.lines)]
    for check in LEFT_OUT:
        kept = keep_targets and check is checks.contradictions
        if not kept and (finding := check(plain)):
            left_out.append(finding)
            plain = plain.filter(~pl.col("number").is_in(finding.lines))
    _check_enough(table, plain.height, left_out)
    _refuse(checks.splits(plain))
    sides = [pl.col(side).str.extract_all(TOKEN) for side in SIDES]
    frame = plain.select(*sides, "split").with_columns(_further(plain["rest"]))
    return Mended(Dataset(frame), rewritten, left_out)


def _refuse(finding: Finding | None) -> None:
    """Raise DataError for a finding that is an error of the whole table."""
    if finding and finding.severity == "error":
        raise DataError(f"nothing is written: {finding.what}: {finding.advice}")


def _check_enough(table: Table, kept: int, left_out: list[Finding]) -> None:
    """Raise DataError, which says what to do, if a table loses most of its lines."""
    lost = sum(len(finding.lines) for finding in left_out if finding.what != checks.AGAIN)
    count = kept + sum(len(finding.lines) for finding in left_out)
    if kept and 2 * lost <= count:
        return
    whole = [finding for finding in table.findings if finding.severity == "error" and not finding.lines]
    cause = max([*whole, *left_out], key=lambda finding: len(finding.lines))
    lines = f"of {count:,} lines {lost:,} would be left out, " if lost else ""
    raise DataError(f"nothing is written: {lines}{'most for ' * bool(lost)}{cause.what}: {cause.advice}")


def _clean(side: str) -> pl.Expr:
    text = pl.col(side).str.replace_all(f"[{checks.INVISIBLE}]", "").str.replace_all(f"[{checks.NO_BREAK}]", " ")
    text = (
        text.str.replace_all(r"[\x0B\f]", " ")
        .str.replace_all(f"[{CONTROL}]", "")
        .str.normalize("NFC")
        .str.strip_chars()
    )
    # Within quotes, a doubled quote stands for one. A single one ends them: then the outer two are not a pair.
    bare = text.str.replace(checks.QUOTED, "${1}")
    return pl.when(text != bare).then(bare.str.replace_all('""', '"').str.strip_chars()).otherwise(text).alias(side)


def _further(rest: pl.Series) -> list[pl.Series]:
    """Return the further columns of a table."""
    records = [json.loads(text) if text else {} for text in rest.to_list()]
    names = dict.fromkeys(name for record in records for name in record if name not in COLUMNS)
    return [from_json(name, [record.get(name) for record in records]) for name in names]
