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
    load_split,
    say,
    writable_format,
)
from compgen.cli.options import option, with_options
from compgen.record import named, write_record


class Options(BaseModel):
    """The options of `cgen select`."""

    out: OutOption
    count: int = option(..., "How many.", "-n", ge=1, metavar="N")
    by: str = option(
        "umt+loss",
        "random; umt or emt (diverse: templates are drawn uniformly, or as often as they occur); highloss or lowloss "
        "(what MODEL finds least or most probable); umt+loss, emt+loss (both: the least probable example of each "
        "template drawn).",
        metavar="STRATEGY",
    )
    model: str | None = option(None, "For losses: a predictor, trained on the original examples.", metavar="MODEL")
    template: Literal["tags", "shape", "length", "template"] | None = option(
        None,
        "What selected examples should differ in: tags (of inflection), shape (the target without what it shares with "
        "the source), length (of the source), or template: that column of DATA, which JSON lines and Parquet can have, "
        "and GECA's examples do. By default tags, or shape where there are none.",
        metavar="T",
    )
    split: list[str] = option(LEARNT, "The split of DATA to select from.", metavar="S")
    seed: SeedOption = 0
    format: FormatOption = None


@with_options
def select(candidates: DataArgument, options: Options) -> None:
    """Select N of the synthetic examples in DATA, of any augmenter, to train on beside the original ones.

    Uncertain and diverse examples teach more than random ones (Samir and Silfverberg 2023), where they are right. For
    tests that are longer than training, --by umt --template length takes as many long ones as short ones.

    Example: cgen select more.jsonl -n 512 --by umt+loss --model original.pt -o chosen.jsonl
    """
    from compgen.api_data import select as select_
    from compgen.data.formats import write_dataset

    format = writable_format(options.out, options.format, candidates, options.model)
    began = time.monotonic()
    dataset = load_split(candidates, options.split)
    asked = options.model_dump(include={"model", "template", "seed"})
    chosen = select_(dataset, options.count, options.by, split=None, quiet=False, **asked)
    write_dataset(chosen, options.out, format)
    asked = {"data": named(candidates), "n": options.count, "by": options.by, "model": named(options.model)}
    asked |= options.model_dump(include={"template", "split", "seed"})
    write_record(options.out, asked | {"candidates": len(dataset), "seconds": round(time.monotonic() - began, 1)})
    say(f"{len(chosen):,} of {len(dataset):,} examples by {options.by}")
