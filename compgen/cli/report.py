"""`cgen report`: the page of a comparison, made again, and the same in short on the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import JsonOption, say, show, show_json, table

if TYPE_CHECKING:
    from compgen.comparison.result import Result


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `cgen compare` wrote.")],
    json: JsonOption = False,
) -> None:
    """Write report.html of a comparison again, and print the results.

    The page is made from compare.json alone; nothing is trained. It needs no network and no other file, so you can
    send it as it is. The table shows, for each system tried on the test part, its accuracy, its gain over the training
    examples alone with a 95 % interval, and its gain over the control (training examples drawn again) with a
    p-value, corrected for the number of systems. Below it is what to know before you trust the answer.

    Example: cgen report comparison
    """
    from compgen.comparison.report import read, write_report

    path = write_report(folder)
    summary(read(folder), path, json)


def summary(result: "Result", report: Path, json: bool = False) -> None:
    """Print the answer and a table of the systems tested, or the systems as JSON, and where the report is."""
    from compgen.comparison.words import notes, together

    if json:
        for one in result.tested:
            show_json(one.model_dump())
    else:
        headings = ("system", "test", "over bare", "95 % interval", "over control", "p")
        title = f"Accuracy on the test part ({result.metric}); gains in percentage points:"
        show(result.answer, "", table(headings, _rows(result), title, whole=1, words=1))
        show(*filter(None, [together(result)]))
        show("", "What to know:", *(f"- {note}" for note in notes(result)))
    say(f"report: {report}")


def _rows(result: "Result") -> list[list[str]]:
    """A row for each system tested; cells stay empty where there is nothing to compare with."""
    from compgen.comparison.words import between, chance, percent, points

    rows = []
    for one in result.tested:
        mark = " (chosen)" if one.system == result.choice.system else " (control)" if one.role == "control" else ""
        bare, control = one.over_bare, one.over_control
        row = [one.system + mark, percent(one.accuracy)]
        row += [points(bare.mean), between(bare)] if bare else ["", ""]
        if control:
            row += [points(control.mean), chance(control.final_p)]
        rows.append(row)
    return rows
