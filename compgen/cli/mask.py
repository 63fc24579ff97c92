"""`cgen data mask` and `cgen data unmask`: placeholders for names, and names put back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import (
    DataArgument,
    FormatOption,
    OutOption,
    SplitOption,
    check_input_once,
    check_out,
    load_split,
    say,
    write_out,
)
from compgen.cli.options import argument, option, with_options
from compgen.data.content import typed
from compgen.data.named import Columns
from compgen.errors import DataError, UserError
from compgen.files import atomic_path, check_apart, check_writable
from compgen.record import record_of

if TYPE_CHECKING:
    from compgen.data.examples import Dataset


MOST = 0.25  # the default of `placeholders.shared_names`, whose import would slow down --help


@with_options
def mask(
    data: DataArgument,
    out: OutOption,
    columns: Columns,
    names: str | None = option(
        None, "Mask the names in this file: one per line, optionally with TAB and a type.", metavar="FILE"
    ),
    found: Path | None = option(None, "Write the names found here, to mask other data with --names.", metavar="FILE"),
    prefix: str = option("name", "Begin placeholders of names without a type with this word.", metavar="WORD"),
    most: float | None = option(
        None, f"Without --names: take only names that at most this share of examples have. Default: {MOST}.", gt=0, le=1
    ),
    split: SplitOption = None,
    format: FormatOption = None,
) -> None:
    """Replace names by placeholders (name0, name1), in source and target alike, so that all names are learnt as one.

    Without --names, names are what sources and targets share literally: tokens with a letter or digit that each example
    has on both sides or on neither, the longest spans first. With --names, you can also mask sources alone (.txt).

    OUT (.jsonl, .csv, .parquet) has a column `names`, from which `cgen data unmask` restores the names, also in
    predictions. A placeholder begins with the name's type, if it has one (city0). Where the data already contain such
    a token, placeholders get a `_` (name_0).

    Examples:

    \b
        cgen data mask geo/sql-query --found names.txt -o masked.jsonl
        cgen data mask questions.txt --names names.txt -o asked.jsonl
    """
    from compgen.data import placeholders
    from compgen.data.formats import format_of, write_dataset

    for given, flag in ((found, "--found"), (most, "--most")):
        if names is not None and given is not None:
            raise UserError(f"{flag} is for names that are found: leave out --names, which lists them")
    check_out(out, format, data, names, found)
    if (format or ("jsonl" if str(out) == "-" else format_of(out))) in ("tsv", "scan", "text", "unimorph"):
        raise UserError(f"{out}: its format has no place for the names: write .jsonl, .csv or .parquet")
    if found is not None:
        if found.resolve() in {out.resolve(), record_of(out).resolve()}:
            raise UserError(f"--found {found}: expected the name of a file, and another than OUT's and its record's")
        check_apart(found, data)
        check_writable(found)
    check_input_once(data, names)
    dataset = load_split(data, split, columns=columns)
    if names is None and not any(dataset.frame["target"].list.len()):
        raise UserError(f"{data}: names are found by what targets share with sources, and there are none: give --names")
    if names is None:
        listed = placeholders.shared_names(dataset, most or MOST, prefix)
    else:
        listed = placeholders.read_names(names, prefix)
    masked = placeholders.mask(dataset, listed)
    if found is not None:
        with atomic_path(found) as temporary:
            temporary.write_text("".join(f"{' '.join(name)}\n" for name in sorted(listed)), encoding="utf-8")
    write_dataset(masked, out, format)
    say(_summary(dataset, masked, len(listed), found))


def _summary(dataset: "Dataset", masked: "Dataset", names: int, listed: Path | None) -> str:
    """Say how much was masked, and what to do with the file in which names that were found are `listed`."""
    some = sum(text != "{}" for text in masked.frame["names"])
    before, after = (one.frame["target"].n_unique() for one in (dataset, masked))
    found = f"{names:,} names, found in {some:,} of {len(masked):,} examples"
    without = not dataset.frame["target"].list.len().sum()  # questions that are to be answered
    found += "" if without else f"; {before:,} distinct targets, {after:,} when masked"
    if listed is None:
        return found
    return f"{found}; delete words that are no names from {typed(listed)}, and mask again with --names {typed(listed)}"


@with_options
def unmask(
    predicted: Annotated[
        str, argument("PREDICTED", "Predictions for masked sources: .tsv, .jsonl or .parquet, or lines (.txt, -).")
    ],
    masked: Annotated[
        str,
        typer.Option(
            "--masked", metavar="MASKED", help="The masked data that was predicted from, as `cgen data mask` wrote it."
        ),
    ],
    out: OutOption,
    format: FormatOption = None,
) -> None:
    """Put names back in place of their placeholders, in sources and predicted targets.

    PREDICTED must be in the order of MASKED, as `cgen predict` writes it; with --best, as .jsonl. Given MASKED itself,
    the command restores the data that it was made from.

    Examples:

    \b
        cgen predict predictor.pt asked.jsonl -o predicted.jsonl
        cgen data unmask predicted.jsonl --masked asked.jsonl -o answers.tsv
    """
    from compgen.data.catalog import load
    from compgen.data.placeholders import NAMES, predictions, unmasked

    check_input_once(predicted, masked)
    check_out(out, format, predicted, masked)
    asked = load(masked, answers=True)
    answers = predictions(predicted, asked)
    if NAMES not in asked.frame.columns:
        raise DataError(f"{masked}: found no column {NAMES!r}, expected what `cgen data mask` wrote")
    dataset, left = unmasked(answers, asked)
    write_out(dataset, out, format)
    say(
        f"{len(dataset):,} examples" + (f"; {left:,} placeholders without a name were left as they are" if left else "")
    )
