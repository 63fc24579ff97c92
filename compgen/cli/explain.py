"""`cgen explain`: why a synthetic example exists."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compgen.augmenters.registry import LEARNED, find, summaries
from compgen.cli.common import LAST_SEED, need_torch, output, say, show
from compgen.cli.lazy import lazy_group
from compgen.cli.options import at_most
from compgen.data.named import USUALLY, Columns
from compgen.errors import UserError
from compgen.record import record_of
from compgen.trained.limits import ADDRESSES

if TYPE_CHECKING:
    import polars as pl
    from rich.text import Text

    from compgen.augmenters.base import Augmenter, Shown
    from compgen.data.examples import Dataset
    from compgen.trained.generator import Generator

LineOption = Annotated[
    int, typer.Option("--line", min=1, metavar="N", help="Start at line N of OUT; 1 is the first example.")
]
CountOption = Annotated[int, typer.Option("-n", min=1, metavar="N", help="Explain N examples from there on.")]

COLOURS = ("bold red", "bold blue", "bold green", "bold magenta", "bold cyan")


class _Record(BaseModel):
    """What is read of the record that `cgen augment` leaves."""

    model_config = ConfigDict(strict=True)

    method: str
    data: str
    split: str | Annotated[list[str], Field(min_length=1)]  # one in records of older versions
    format: str | None
    n: int | None
    seed: int
    options: dict[str, Any]
    columns: Columns = USUALLY


def command(name: str) -> Callable[..., None]:
    """The function of `cgen explain NAME`."""

    def explain(
        out: Annotated[
            Path,
            typer.Argument(
                metavar="OUT", help=f"The file that `cgen augment {name}` wrote. Its data must still be there."
            ),
        ],
        line: LineOption = 1,
        count: CountOption = 1,
    ) -> None:
        kind = find(name)
        if not kind.explains():
            raise UserError(f"{name} does not say what its samples are made from")
        record = _record(out, name)
        method, samples = _made_again(kind(**kind.options_type(**record.options).identity(), beside=out), record, out)
        _print(method, samples, out, line, count)

    explain.__doc__ = f"""Show which training examples an example made by {name} comes from.

    OUT is made again in memory, with the options in OUT.run.json. Whatever was exchanged is shown in [brackets], and in
    colour on a terminal.

    Example: cgen explain {name} more.tsv --line 7
    """
    return explain


def csl(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="The file that `cgen augment csl` wrote, whose data must still be there, or that "
            "`cgen sample G.grammar` wrote.",
        ),
    ],
    line: LineOption = 1,
    count: CountOption = 1,
) -> None:
    """Show the rules that derive a sample of a grammar.

    If `cgen augment csl` made OUT, each rule is followed by a training example that also uses it; the grammar is then
    induced again, with the options in OUT.run.json. If there are several derivations, the least deep is shown.

    Example: cgen explain csl more.tsv --line 7
    """
    from compgen.csl.augmenter import Csl
    from compgen.csl.options import CslOptions
    from compgen.data.catalog import load
    from compgen.trained.grammar import GrammarGenerator

    match _read(out):
        case {"model": _}:
            drawn, method, format = _drawn(out), Csl(), None
            model = drawn.generator(out).model
            if not isinstance(model, GrammarGenerator):
                raise UserError(f"{out}: not drawn from a grammar: call `cgen explain recombine`")
            method.grammar = model.trained.grammar
        case _:
            record = _record(out, "csl")
            options = CslOptions(**record.options | {"uniform": True, "unlabelled": None})  # only its rules are needed
            method, format = Csl(**options.identity(), beside=out).fit(_data(record), record.seed), record.format
    _print(method, load(str(out), format).frame, out, line, count)


def recombine(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="The .jsonl, .json or .parquet file that `cgen augment recombine` or `cgen sample` wrote.",
        ),
    ],
    line: LineOption = 1,
    count: CountOption = 1,
) -> None:
    """Show the prototypes that samples of a generator were made from.

    The generator must still be where it was: OUT.pt, or the MODEL that was sampled. For more detail, use
    `cgen explain attention`.

    Example: cgen explain recombine more.jsonl --line 7
    """
    import polars as pl

    from compgen.data.catalog import load
    from compgen.recombine.augmenter import Recombine

    drawn = _drawn(out)
    samples = load(str(out), drawn.format).frame
    if samples.schema.get("prototypes") != pl.List(pl.Int64):
        raise UserError(
            f"{out}: has no column prototypes, which .jsonl, .json and .parquet have: write one of these; samples of a "
            "grammar have none: call `cgen explain csl`"
        )
    method = Recombine()
    method.generator = drawn.generator(out)
    _print(method, samples, out, line, count)


class _Drawn(NamedTuple):
    """What samples were drawn from and how they were written, according to their record."""

    model: str
    identity: object  # None in records of older versions
    format: str | None

    def generator(self, out: Path) -> "Generator":
        """Open what OUT was drawn from; raise UserError if it is another one now."""
        from compgen.trained.generator import Generator

        generator = Generator.load(self.model)
        if self.identity not in (None, generator.identity):
            raise UserError(f"{self.model}: another generator than the one that {out} was drawn from")
        return generator


def _drawn(out: Path) -> _Drawn:
    """What the record beside samples says.

    Raises:
        UserError: there is no record, or it is of something else.
    """
    match _read(out):
        case {"method": "recombine", "report": dict(report), "format": str() | None as format}:
            return _Drawn(f"{out}.pt", report.get("identity"), format)
        case {"model": str(model), "prototypes": _, **rest}:
            return _Drawn(model, rest.get("identity"), None)
    raise UserError(
        f"{record_of(out)}: expected the record of `cgen augment recombine` or `cgen sample`: explain the file "
        "that they wrote, before others put it together or chose from it"
    )


def attention(
    model: Annotated[Path, typer.Argument(metavar="MODEL.pt", help="A generator's checkpoint.")],
    index: Annotated[
        int,
        typer.Option("--index", min=0, callback=at_most(ADDRESSES), metavar="I", help="The `index` of the sample."),
    ] = 0,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, callback=at_most(LAST_SEED), help="The seed that the sample was drawn with."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Also write a picture: .png, .svg or .pdf.", show_default=False
        ),
    ] = None,
) -> None:
    """Show what a generator looked at while it wrote a sample, and what each token came from (R&R, figure 3).

    The sample is drawn again as `cgen sample` does by default. Of what was drawn with --temperature, --beam or
    --prototypes rare, the sample of that index is another one.

    Each token gets a line with its likeliest origin, and the share of its probability that is due to it. The picture
    shows all attention over each prototype and, if the generator looks at that, over what it has written.

    Example: cgen explain attention recomb2.pt --index 12 -o sample12.svg
    """
    from compgen.evaluation.plots import check_picture, heat_maps

    need_torch("a generator's attention")
    from compgen.recombine.origins import as_text
    from compgen.recombine.origins import attention as look
    from compgen.trained.checkpoint import Checkpoint

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
            say(f"{out}: no font here has {missing}, so boxes stand for them; in .svg they are text")


def _read(out: Path) -> Any:
    """The JSON of the record beside OUT."""
    path = record_of(out)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not out.exists():
            raise UserError(f"{out}: no such file, expected samples") from None
        beside = "expected the record that `cgen augment` and `cgen sample` leave beside samples: name their OUT"
        raise UserError(f"{path}: no such file, {beside}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: found no JSON: {error}") from None


def _record(out: Path, method: str) -> _Record:
    """The record of `cgen augment METHOD` beside OUT."""
    path = record_of(out)
    read = _read(out)
    if isinstance(read, dict) and {"model", "asked"} <= read.keys():
        raise UserError(f"{out}: drawn by `cgen sample`: call `cgen explain recombine`, or csl if from a grammar")
    try:
        record = _Record.model_validate(read)
    except ValidationError as error:
        wrong = error.errors()[0]
        if wrong["type"] == "missing":
            raise UserError(
                f"{path}: does not say the {wrong['loc'][0]}, as records of `cgen augment` do: explain the file that "
                "it wrote, before others put it together or chose from it"
            ) from None
        what = f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" if wrong["loc"] else "found no JSON object"
        raise UserError(f"{path}: {what}; expected what `cgen augment` writes") from None
    if record.data == "-":
        raise UserError(f"{out}: its data came from a pipe or standard input and are gone: make it from a file")
    if record.method != method:
        raise UserError(f"{out}: made by {record.method}: call `cgen explain {record.method}`")
    return record


def _data(record: _Record) -> "Dataset":
    """The examples that a method learned from."""
    from compgen.data.catalog import load

    splits = [record.split] if isinstance(record.split, str) else record.split
    return load(record.data, columns=record.columns).split(*splits)


def _made_again(method: "Augmenter[Any]", record: _Record, out: Path) -> "tuple[Augmenter[Any], pl.DataFrame]":
    """The method, fitted, and its samples, if they are those in OUT.

    Raises:
        UserError: they are not.
    """
    from compgen.data.catalog import load

    made = method.fit(_data(record), record.seed).sample(record.n, record.seed)
    if load(str(out), record.format).pairs() != made.pairs():
        raise UserError(f"{out}: found other examples than {record.data} gives by {out}.run.json: one has changed")
    return method, made.frame


def _print(method: "Augmenter[Any]", samples: "pl.DataFrame", out: Path, line: int, count: int) -> None:
    """What some samples, from a line on, were made from.

    Raises:
        UserError: there is no such line, or the method does not say what its sample was made from.
    """
    if line > len(samples):
        raise UserError(f"{out}: it has {len(samples):,} examples, no line {line:,}")
    for number, sample in enumerate(samples[line - 1 : line - 1 + count].iter_rows(named=True), start=line):
        found = method.explain(sample)
        show(f"{number}. {' -> '.join(' '.join(side) for side in (sample['source'], sample['target']) if side)}:")
        for shown in found:
            output().print(_line(shown))


def _line(shown: "Shown") -> "Text":
    from rich.text import Text

    text = Text(f"  {shown.label:<12}")
    for name, pieces in (("", shown.source), ("->", shown.target)):
        if pieces:
            text.append(f" {name}" if name else "")
        for piece, gap in pieces:
            text.append(" ")
            text.append(f"[{piece}]" if gap >= 0 else piece, COLOURS[gap % len(COLOURS)] if gap >= 0 else "")
    return text


explaining = [name for name in summaries() if name not in LEARNED]
app = typer.Typer(
    cls=lazy_group(
        {name: (partial(command, name), f"Show where an example made by {name} comes from.") for name in explaining}
        | {"csl": (lambda: csl, "Show the rules that an example of a grammar was derived by.")}
        | {"recombine": (lambda: recombine, "Show the prototypes that samples of a generator were made from.")}
        | {"attention": (lambda: attention, "What a generator looked at while it wrote a sample.")}
    ),
    no_args_is_help=True,
    help="Show why a synthetic example exists.",
)
