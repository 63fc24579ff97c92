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
    load_split,
    say,
    writable_format,
)
from compgen.cli.options import argument, option, with_options
from compgen.data.named import Columns
from compgen.errors import DataError, UserError
from compgen.files import atomic_path, check_apart, check_writable
from compgen.record import record_of

if TYPE_CHECKING:
    from compgen.data.examples import Dataset


MOST = 0.25  # as `placeholders.shared_names` has it, which is not imported for the sake of help


@with_options
def mask(
    data: DataArgument,
    out: OutOption,
    columns: Columns,
    names: str | None = option(
        None, "Names: one a line, perhaps of several tokens, perhaps with TAB and a type.", metavar="FILE"
    ),
    found: Path | None = option(None, "Write the names found, to mask other data by --names.", metavar="FILE"),
    prefix: str = option("name", "What placeholders of names without a type begin with.", metavar="WORD"),
    most: float | None = option(
        None, f"Without --names: a name is in at most this share of examples. Default: {MOST}.", gt=0, le=1
    ),
    split: SplitOption = None,
    format: FormatOption = None,
) -> None:
    """Put placeholders (name0, name1) for names, alike in source and target, so that all names are learnt as one.

    Without --names, a name is what sources and targets share literally: tokens with a letter or digit that each example
    has on both sides or on neither, the longest spans first. With --names, sources alone (.txt) can be masked, too.

    OUT (.jsonl, .csv, .parquet) has a column `names`, by which `cgen data unmask` puts names back, in predictions too.
    Types are placeholders' beginnings (city0). Where a token of the data looks like one, it gets a `_` (name_0).

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
    format = writable_format(out, format, data, names, found)
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
    say(_summary(dataset, masked, len(listed)))


def _summary(dataset: "Dataset", masked: "Dataset", names: int) -> str:
    """Say how much was masked."""
    some = sum(text != "{}" for text in masked.frame["names"])
    before, after = (one.frame["target"].n_unique() for one in (dataset, masked))
    return f"{names:,} names, in {some:,} of {len(masked):,} examples; distinct targets {before:,}, masked {after:,}"


@with_options
def unmask(
    predicted: Annotated[
        str, argument("PREDICTED", "Predictions for masked sources (.tsv, .jsonl, .parquet; .txt or -: lines).")
    ],
    masked: Annotated[
        str, typer.Option("--masked", metavar="MASKED", help="What was predicted from, by `cgen data mask`.")
    ],
    out: OutOption,
    format: FormatOption = None,
) -> None:
    """Put names back in the place of their placeholders, in sources and predicted targets.

    PREDICTED is in the order of MASKED, as `cgen predict` writes it; of --best as .jsonl. MASKED itself
    gives back what it was made from.

    Examples:

    \b
        cgen predict predictor.pt asked.jsonl -o predicted.jsonl
        cgen data unmask predicted.jsonl --masked asked.jsonl -o answers.tsv
    """
    from compgen.data.catalog import load
    from compgen.data.formats import write_dataset
    from compgen.data.placeholders import NAMES, predictions, unmasked

    check_input_once(predicted, masked)
    format = writable_format(out, format, predicted, masked)
    asked = load(masked, answers=True)
    answers = predictions(predicted, asked)
    if NAMES not in asked.frame.columns:
        raise DataError(f"{masked}: found no column {NAMES!r}, expected what `cgen data mask` wrote")
    dataset, left = unmasked(answers, asked)
    write_dataset(dataset, out, format)
    say(f"{len(dataset):,} examples" + (f"; {left:,} placeholders without a name stay" if left else ""))
