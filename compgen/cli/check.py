"""`cgen check`: what a table is taken for, what is wrong in it, and which methods apply."""

import shlex
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from pydantic import BaseModel

from compgen.cli.common import DataArgument, JsonOption, check_out, say, show, show_json, table, write_out
from compgen.cli.options import option, with_options
from compgen.data.content import name_of, typed
from compgen.data.named import Columns
from compgen.errors import DataError, UserError

if TYPE_CHECKING:
    from compgen.data.checks import Finding
    from compgen.data.examples import Dataset
    from compgen.data.lenient import Table

COMPARED = 100  # examples, from which on a comparison can tell something
SHOWN = 5  # lines of a finding that are printed
# Methods to name as the next command: fast ones, those most likely to help first.
PREFERRED = ("stemcorrupt", "geca", "csl", "substitute", "lexsym")


class Options(BaseModel):
    """The options of `cgen check`."""

    fix: Path | None = option(
        None,
        "Write a mended table here: with quotes, ids, ||| and odd characters put right, and without header lines, "
        "empty sides, unbalanced brackets, repetitions and contradictions.",
        "--fix",
        metavar="OUT",
    )
    keep_targets: bool = option(
        False, "With --fix: keep sources with several targets, as is right for pronunciations or paraphrases."
    )
    as_json: JsonOption = False


@with_options
def check(data: DataArgument, options: Options, columns: Columns) -> None:
    """Check a table: how it is read, what is wrong with it and where, and which methods apply to it.

    An error is something that no command can read or learn from. A warning is something that may be read differently
    from what you meant. A note is for your information.
    The exit code is 0 if DATA can be read and learnt from, as it is or as mended by --fix, and 2 if not.

    Examples: cgen check pairs.tsv

        cgen check questions.csv --source question --target sql

        cgen check pairs.tsv --fix mended.tsv
    """
    from compgen.data.checks import APART, SEVERITIES, Finding, findings
    from compgen.data.content import read_bytes
    from compgen.data.formats import FORMATS, is_pipe
    from compgen.data.lenient import read_table

    _check_fix(options, data)
    content = read_bytes(data, None) if is_pipe(data) else None
    found = read_table(data, columns, content)
    dataset, error = _read(found, data, columns, content)
    everything = sorted([*found.findings, *findings(found.rows)], key=lambda one: SEVERITIES.index(one.severity))
    if error and not any(one.severity == "error" for one in everything):
        everything.insert(0, Finding("error", error, [], "mend it"))
    wrong = dataset is None or any(one.severity == "error" for one in everything)
    applies, said = _methods(None if wrong else dataset, found)
    if options.as_json:
        _print_json(data, found, dataset, everything, applies, said)
    else:
        saved = None if content is None else f"data{FORMATS[found.format].suffix}"  # a pipe cannot be read again
        words = (saved or typed(data)) + columns.options
        _print(words, name_of(data), found, dataset, everything, applies, said)
        if options.fix is None:  # what follows a mended table is said by `_fix`
            save = f"save the input as {saved}, then " * bool(saved)
            glued = any(APART in one.advice for one in everything)
            show(f"\nNext: {save}{_next(words, found, dataset, applies, glued)}")
    if options.fix is not None:
        _fix(found, options.fix, options.keep_targets)
    elif wrong:
        raise typer.Exit(2)


def _check_fix(options: Options, data: str) -> None:
    """Raise UserError for a mended table that cannot be written, or for its options without it."""
    if options.fix is not None:
        if str(options.fix) == "-":
            raise UserError("--fix -: the report goes to standard output: give the name of a file")
        check_out(options.fix, None, data)
    elif options.keep_targets:
        raise UserError("--keep-targets is for a mended table: add --fix OUT")


def _read(found: "Table", data: str, columns: Columns, content: bytes | None) -> "tuple[Dataset | None, str]":
    """The dataset as commands read it, or why they refuse."""
    from compgen.data.catalog import load

    if found.dataset is not None:
        return found.dataset, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load(data, columns=columns, content=content, checked=True), ""
    except DataError as error:
        return None, str(error)


def _methods(dataset: "Dataset | None", found: "Table") -> tuple[dict[str, str | None], list[str]]:
    """Which methods apply to data to be learned from, with reasons, and remarks on these; nothing for other data."""
    from compgen.augmenters.applicable import applicable, remarks
    from compgen.data.checks import unformed

    if dataset is None or unformed(found.rows):
        return {}, []
    applies = applicable(dataset)
    return applies, remarks(dataset, applies)


def _print_json(
    data: str,
    found: "Table",
    dataset: "Dataset | None",
    everything: "list[Finding]",
    applies: dict[str, str | None],
    said: list[str],
) -> None:
    """Print a line for the table, one for each finding, one for each method, and one for each remark on these."""
    splits = None if dataset is None else dataset.splits
    show_json(
        {"data": data, "format": found.format, "read_as": found.meaning, "readable": dataset is not None}
        | {"splits": splits}
    )
    for one in everything:
        show_json(one._asdict() | {"count": len(one.lines), "lines": one.lines[:SHOWN]})
    for name, why in applies.items():
        show_json({"method": name, "applies": why is None, "why": why})
    for remark in said:
        show_json({"remark": remark})


def _print(
    words: str,
    name: str,
    found: "Table",
    dataset: "Dataset | None",
    everything: "list[Finding]",
    applies: dict[str, str | None],
    said: list[str],
) -> None:
    """Print what a table is taken for, the findings, the methods, and remarks on these.

    `words` are DATA and the options of its columns, as to be typed.
    """
    unread = f"no command reads it as it is; examples that can be made out: {found.rows.height:,}"
    show(f"{name}: {found.format}; {found.meaning}; {unread if dataset is None else dataset.sizes()}")
    for one in everything:
        advice = one.advice.replace("cgen data write DATA --signs apart -o OUT", _apart(words, found))
        show(f"\n{one.severity:<8} {_places(one.lines, found.place)}{one.what}", f"         {advice}")
    if not everything:
        show("\nNothing is wrong.")
    if applies:
        rows = [(name, "yes" if why is None else "no", why or "") for name, why in applies.items()]
        show("", table(("method", "applies", "why not"), rows, whole=2))
    if said:
        show("", *said)


def _places(lines: list[int], place: str) -> str:
    """Where a finding is: the first few lines, and how many more."""
    if not lines:
        return ""
    more = f" and {len(lines) - SHOWN:,} more" if len(lines) > SHOWN else ""
    return f"{place}{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:SHOWN]))}{more}: "


def _next(words: str, found: "Table", dataset: "Dataset | None", applies: dict[str, str | None], glued: bool) -> str:
    """The next command to type, on `words`; `glued` if their signs should be set apart first."""
    from compgen.data.checks import unformed
    from compgen.data.fields import NAME
    from compgen.data.lenient import KNOWN, RENAME
    from compgen.data.mending import mend

    if (lacking := unformed(found.rows)) and lacking.severity == "warning":
        return f"cgen predict MODEL {words} -o inflected.tsv"
    try:
        mended = mend(found, keep_targets=True)  # which of several targets is right, only people know
    except DataError:
        named = f"cgen check {words} {found.naming}; if its first line is no names of columns, " if found.naming else ""
        return f"{named}mend it by hand, then cgen check {words}"
    by_hand = (NAME, RENAME)  # --fix cannot do that
    wrong = (one for one in (*mended.left_out, *found.findings) if one.advice not in by_hand)
    worse = any(one.severity != "note" for one in wrong)
    if dataset is None or (found.format != KNOWN and (mended.rewritten or worse)):
        return f"cgen check {words} --fix mended.{_suffix(found)}"
    onward = _onward(words, dataset, applies)
    if not onward:
        return _apart(words, found) if glued else f"add examples that share parts with these, then cgen check {words}"
    return f"{_apart(words, found)}; or as they are, {onward}" if glued else onward


def _apart(words: str, found: "Table") -> str:
    """The command that sets signs apart."""
    return f"cgen data write {words} --signs apart -o apart.{_suffix(found)}"


def _suffix(found: "Table") -> str:
    """The suffix of a file for what a table is taken for."""
    if found.format == "unimorph" or found.meaning.startswith("words"):
        return "unimorph"
    if found.rows["rest"].is_not_null().any():
        return "jsonl"  # tsv has no place for further columns
    return "txt" if found.rows["target"].str.strip_chars().eq("").all() else "tsv"


def _onward(words: str, dataset: "Dataset", applies: dict[str, str | None]) -> str:
    """The next command to type on data of which nothing has to be mended; empty if no method makes new examples."""
    method = next((name for name in PREFERRED if name in applies and applies[name] is None), None)
    if method is None:
        return ""
    split = "" if "train" in dataset.splits else f" --split {shlex.quote(next(iter(dataset.splits)))}"
    pairs = (dataset.frame["target"].list.len() > 0).any()
    if len(dataset) >= COMPARED and not split and pairs and find_spec("torch") is not None:
        return f"cgen compare {words} -o comparison"
    return f"cgen augment {method} {words}{split} -o {'more.jsonl' if pairs else 'more.txt'}"


def _fix(found: "Table", out: Path, keep_targets: bool) -> None:
    """Write a mended table, and say what was left out, and what to type next."""
    from compgen.data.mending import mend

    mended = mend(found, keep_targets)
    write_out(mended.dataset, out)
    for one in mended.left_out:
        lines = ", ".join(map(str, one.lines))
        say(f"left out {len(one.lines):,}: {one.what}: {found.place}{'s' * (len(one.lines) > 1)} {lines}")
    say(f"{out}: {mended.dataset.sizes()}; sides rewritten: {mended.rewritten:,}")
    say(f"\nNext: cgen check {typed(out)}")
