"""`compgen select`: which of many synthetic examples to train on."""

import time
from typing import Annotated

import typer

from compgen.cli.common import (
    DataArgument,
    FormatOption,
    OutOption,
    SeedOption,
    console,
    load_split,
    say_remarks,
    writable_format,
)
from compgen.record import named, write_record


def select(
    candidates: DataArgument,
    out: OutOption,
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")],
    strategy: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="STRATEGY",
            help="random; umt or emt (diverse: templates are drawn uniformly, or as often as they occur); highloss or "
            "lowloss (what MODEL finds least or most probable); umt+loss, emt+loss (both: the least probable example "
            "of each template drawn).",
        ),
    ] = "umt+loss",
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="For losses: a predictor, trained on the original examples."),
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            "--template",
            metavar="T",
            help="What examples are to differ in: tags (of inflection), or template: that column of DATA, which JSON "
            "lines and Parquet can have, and GECA's examples do.",
        ),
    ] = "tags",
    split: Annotated[str, typer.Option("--split", metavar="S", help="The split of DATA to select from.")] = "train",
    seed: SeedOption = 0,
    format: FormatOption = None,
) -> None:
    """Select N of the synthetic examples in DATA, of any augmenter, to train on beside the original ones.

    Uncertain and diverse examples teach more than random ones (Samir and Silfverberg 2023), where they are right.

    Example: compgen select more.jsonl -n 512 --by umt+loss --model original.pt -o chosen.jsonl
    """
    from compgen.augmenters import selection
    from compgen.data.formats import write_dataset
    from compgen.errors import UserError

    if strategy not in selection.STRATEGIES:
        raise UserError(f"--by {strategy}: expected one of {', '.join(selection.STRATEGIES)}")
    how = selection.STRATEGIES[strategy]
    if bool(how.sign) != (model is not None):
        raise UserError(f"--by {strategy} " + ("looks at no losses: leave out --model" if model else "needs a --model"))
    if template not in ("tags", "template"):
        raise UserError(f"--template {template}: expected tags or template")
    if template != "tags" and how.alpha is None:
        raise UserError(f"--by {strategy} looks at no templates: leave out --template")
    format = writable_format(out, format, candidates, model)
    began = time.monotonic()
    dataset = load_split(candidates, split)
    given = dataset.frame.get_column("template", default=None) if template == "template" else None
    if template == "template" and (given is None or given.has_nulls() or given.dtype.is_nested()):
        raise UserError(f"{candidates}: expected a `template` with every example, as JSON lines and Parquet can have")
    given = None if given is None else given.cast(str)
    # An error now, not after computing losses.
    templates = selection.templates_of(dataset, count, strategy, given)
    losses = None
    if model is not None:
        from compgen.api import Predictor
        from compgen.progress import Progress

        predictor = Predictor.load(model)
        say_remarks(model, predictor, dataset.frame["source"].to_list())
        with Progress("losses", len(dataset)) as progress:
            losses = predictor.losses(dataset, watch=progress.update)
    chosen = selection.select(dataset, count, strategy, templates=templates, losses=losses, seed=seed)
    write_dataset(chosen, out, format)
    seconds = round(time.monotonic() - began, 1)
    asked = {
        "data": named(candidates),
        "n": count,
        "by": strategy,
        "model": named(model),
        "template": template,
        "split": split,
    }
    write_record(out, asked | {"seed": seed, "candidates": len(dataset), "seconds": seconds})
    console().print(f"{len(chosen):,} of {len(dataset):,} examples by {strategy}", highlight=False, markup=False)
