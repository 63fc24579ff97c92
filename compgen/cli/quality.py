"""The quality of made examples, which `cgen augment` and `cgen sample` show and `cgen data quality` measures.

With --strict a warning is an error, and the file is not written.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel

from compgen.cli.common import (
    JsonOption,
    check_input_once,
    load_both,
    say,
    show,
    show_json,
    usual_split,
)
from compgen.cli.options import argument, option, with_options
from compgen.errors import UserError

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.quality import Derives, Quality

StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Treat quality warnings as errors."),
]


def say_warnings(warnings: Sequence[str]) -> None:
    """Print warnings to standard error."""
    for warning in warnings:
        say(f"warning: {warning}")


def refuse(warnings: Sequence[str], what: str) -> None:
    """Raise UserError, which says what that means for the examples, if there are warnings."""
    if warnings:
        raise UserError(f"--strict: {len(warnings)} warning{'s' if warnings[1:] else ''} above: {what}")


def judged(made: "Dataset", training: "Dataset", asked: int | None, more: Sequence[str], kept: str | None) -> "Quality":
    """Measure examples; print that and warnings, `more` among them, to standard error.

    Raises:
        UserError: there are warnings, and `kept`, with --strict, says what becomes of the examples.
    """
    from compgen.evaluation.quality import quality

    found = quality(made, training, asked)
    for line in found.in_words():
        say(line)
    warnings = [*more, *found.warnings()]
    say_warnings(warnings)
    if kept is not None:
        refuse(warnings, kept)
    return found


class QualityOptions(BaseModel):
    """The options of `cgen data quality`."""

    train: str = option(..., "The training data that MADE was made from.", metavar="DATA")
    train_split: str | None = option(
        None, "Use this split of the training data. By default, train or the only one.", metavar="S"
    )
    split: str | None = option(None, "Use this split of MADE. By default, train or the only one.", metavar="S")
    asked: int | None = option(None, "Warn if there are fewer than N examples.", "-n", ge=1, metavar="N")
    targets: str | None = option(
        None, "Report how many targets this grammar derives; see --targets of `cgen augment csl`.", metavar="G"
    )
    strict: StrictOption = False
    as_json: JsonOption = False


@with_options
def command(
    made: Annotated[str, argument("MADE", "The examples to judge, in any form that DATA of other commands can have.")],
    options: QualityOptions,
) -> None:
    """Measure the quality of examples made from training data: form, contradictions, novelty, diversity.

    \b
    new         n-grams (ends count as tokens) and templates not in training;
                a template is the target, with tokens of its source blanked
    distance    edit distance / longer length, mean over random pairs
    divergence  Jensen-Shannon divergence of the token distributions, in bits

    Whether an example is right cannot be measured. Warnings, with advice, go to standard error: too few examples,
    unbalanced brackets, contradictions, repetitions. The commands `augment`, and `sample` to a file, print the same.

    Example: cgen data quality more.jsonl --train pairs.tsv
    """
    from compgen.evaluation.quality import quality

    check_input_once(made, options.train)
    examples, training = load_both(made, options.train)
    examples = examples.split(options.split or usual_split(examples, "train"))
    training = training.split(options.train_split or usual_split(training, "train"))
    found = quality(examples, training, options.asked, _derives(options.targets, training))
    if options.as_json:
        show_json(found.to_dict() | {"warnings": found.warnings()})
    else:
        show(*found.in_words())
        say_warnings(found.warnings())
    if options.strict:
        refuse(found.warnings(), f"{made} is not as it should be")


def _derives(targets: str | None, training: "Dataset") -> "Derives | None":
    from compgen.csl.augmenter import target_grammar

    found = None if targets is None else target_grammar(targets, training)
    return None if found is None else found.derives
