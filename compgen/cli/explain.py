"""`compgen explain`: why a synthesised example exists."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compgen.cli.common import console, need_torch, output
from compgen.record import record_of

if TYPE_CHECKING:
    from rich.text import Text

    from compgen.geca.licence import Marked

app = typer.Typer(no_args_is_help=True, help="Why a synthesised example exists.")

COLOURS = ("bold red", "bold blue", "bold green", "bold magenta", "bold cyan")


@app.command()
def geca(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="What `compgen augment geca` wrote; its data must be there.")
    ],
    line: Annotated[int, typer.Option("--line", min=1, metavar="N", help="Which example of OUT, from 1.")] = 1,
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many, from there on.")] = 1,
) -> None:
    """Show the three training examples that license an example that GECA made.

    OUT is made once more, by the options in OUT.run.json. Fragments are marked by [brackets], and by colours, one a
    gap, on a terminal.

    Example: compgen explain geca more.tsv --line 7
    """

    from compgen.data.catalog import load
    from compgen.errors import UserError
    from compgen.geca.augmenter import Geca
    from compgen.geca.compose import Composer, Drawing
    from compgen.geca.licence import explain
    from compgen.geca.tables import Config

    record = _record(out)
    config = Config(**{name: record[name] for name in Config.__dataclass_fields__})
    drawing = Drawing(**{name: record[name] for name in Drawing.__dataclass_fields__})
    augmenter = Geca(config, drawing, record["memory"]).fit(load(record["data"]).split(record["split"]))
    frame = augmenter.sample(record["n"], record["seed"]).frame
    made = zip(frame["source"].to_list(), frame["target"].to_list(), strict=True)
    if load(str(out), record["format"]).pairs() != list(made):
        raise UserError(f"{out}: found other examples than {record['data']} gives by {out}.run.json: one has changed")
    if line > frame.height:
        raise UserError(f"{out}: it has {frame.height:,} examples, no line {line:,}")
    assert augmenter.tables is not None
    composer = Composer(augmenter.tables, drawing, record["seed"])
    for row in frame[line - 1 : line - 1 + count].iter_rows(named=True):
        licence = explain(composer, row["template"], row["fragment"])
        output().print(f"{line}. made, since the fragment of the second stands where that of the first does:")
        line += 1
        for label, marked in (
            ("made", licence.made),
            ("first", licence.shares),
            ("second", licence.lends),
            ("template of", licence.hosts),
        ):
            output().print(_line(label, marked))


@app.command()
def attention(
    model: Annotated[Path, typer.Argument(metavar="MODEL.pt", help="A generator's checkpoint.")],
    index: Annotated[int, typer.Option("--index", min=0, max=2**61, metavar="I", help="Which sample, by `index`.")] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**64 - 1, help="The seed it was drawn with.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Also draw a picture: .png, .svg or .pdf.", show_default=False
        ),
    ] = None,
) -> None:
    """Show what a generator looked at while it wrote a sample, and what each token came from (R&R, figure 3).

    A line a token: how much of its probability is due to the likeliest origin, and which that is. The picture has the
    whole of the attention over each prototype, and over what was written, if it looks at that.

    Example: compgen explain attention recomb2.pt --index 12 -o sample12.svg
    """
    from compgen.errors import UserError
    from compgen.evaluation.plots import check_picture, heat_maps

    need_torch("a generator's attention")
    from compgen.recombine.origins import as_text
    from compgen.recombine.origins import attention as look
    from compgen.training.checkpoint import Checkpoint

    if out is not None:
        check_picture(out)
    if not model.is_file():
        raise UserError(f"{model}: no such file, expected a generator's checkpoint (.pt)")
    found = look(Checkpoint.load(model), index, seed)
    for line in as_text(found):
        typer.echo(line)
    if out is not None:
        origins = ["word", *(source.name for source in found.sources)][: found.shares.shape[1]]
        panels = [(source.name, source.tokens, source.weights) for source in found.sources]
        missing = heat_maps(found.written, [*panels, ("origin", origins, found.shares)], out)
        if missing:
            console().print(
                f"{out}: no font here has {missing}, so boxes stand for them; in .svg they are text", markup=False
            )


def _record(out: Path) -> dict[str, Any]:
    from json import loads
    from typing import get_type_hints

    from compgen.errors import UserError
    from compgen.geca.compose import Drawing
    from compgen.geca.tables import Config

    path = record_of(out)
    try:
        record = loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file, expected the record that `compgen augment geca` leaves") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: found no JSON: {error}") from None
    kinds = {"memory": int, "data": str, "split": str, "format": str | None, "n": int | None, "seed": int}
    kinds |= get_type_hints(Config) | get_type_hints(Drawing)
    if not isinstance(record, dict) or not kinds.keys() <= record.keys():
        raise UserError(f"{path}: found no options of GECA, expected what `compgen augment geca` writes")
    for name, kind in kinds.items():
        if not isinstance(record[name], kind) or isinstance(record[name], bool):
            raise UserError(f"{path}: found {record[name]!r} for {name}, which cannot be")
    if record["data"] == "-":
        raise UserError(f"{out}: its data came from a pipe or standard input and are gone: make it from a file")
    return record


def _line(label: str, marked: "Marked") -> "Text":
    from rich.text import Text

    text = Text(f"  {label:<12}")
    for name, pieces in (("", marked.source), ("->", marked.target)):
        if pieces:
            text.append(f" {name}" if name else "")
        for piece, gap in pieces:
            text.append(" ")
            text.append(f"[{piece}]" if gap >= 0 else piece, COLOURS[gap % len(COLOURS)] if gap >= 0 else "")
    return text
