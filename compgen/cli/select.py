"""`cgen select`: which of many synthetic examples to train on."""

import time
from typing import Literal

from pydantic import BaseModel

from compgen.cli.common import (
    LEARNT,
    DataArgument,
    FormatOption,
    OutOption,
    SeedOption,
    check_out,
    load_split,
    say,
    write_out,
)
from compgen.cli.options import option, with_options
from compgen.record import named, write_record


class Options(BaseModel):
    """The options of `cgen select`."""

    out: OutOption
    count: int = option(..., "Select N examples.", "-n", ge=1, metavar="N")
    by: str = option(
        "umt+loss",
        "Select at random (random), for diversity (umt draws templates uniformly, emt as often as they occur), what "
        "MODEL finds least or most probable (highloss, lowloss), or by both (umt+loss and emt+loss: the least "
        "probable example of each template drawn).",
        metavar="STRATEGY",
    )
    model: str | None = option(
        None, "For strategies with a loss: a predictor trained on the original examples.", metavar="MODEL"
    )
    template: Literal["tags", "shape", "length", "template"] | None = option(
        None,
        "What selected examples should differ in: tags (of inflection), shape (the target without what it shares with "
        "the source), length (of the source), or template (that column of DATA, in JSON lines or Parquet; GECA writes "
        "it). By default tags, or shape if there are no tags.",
        metavar="T",
    )
    split: list[str] = option(LEARNT, "Select from this split of DATA.", metavar="S")
    seed: SeedOption = 0
    format: FormatOption = None


@with_options
def select(candidates: DataArgument, options: Options) -> None:
    """Select N of the synthetic examples in DATA, made by any method, to train on with the original ones.

    Uncertain and diverse examples teach more than random ones (Samir and Silfverberg 2023), if they are right. For
    tests that are longer than training, --by umt --template length selects as many long examples as short ones.

    Example: cgen select more.jsonl -n 512 --by umt+loss --model original.pt -o chosen.jsonl
    """
    from compgen.api_data import select as select_

    check_out(options.out, options.format, candidates, options.model)
    began = time.monotonic()
    dataset = load_split(candidates, options.split)
    asked = options.model_dump(include={"model", "template", "seed"})
    chosen = select_(dataset, options.count, options.by, split=None, quiet=False, **asked)
    write_out(chosen, options.out, options.format)
    asked = {"data": named(candidates), "n": options.count, "by": options.by, "model": named(options.model)}
    asked |= options.model_dump(include={"template", "split", "seed"})
    write_record(options.out, asked | {"candidates": len(dataset), "seconds": round(time.monotonic() - began, 1)})
    say(f"{len(chosen):,} of {len(dataset):,} examples by {options.by}")
