"""`cgen confirm`: which synthetic examples a predictor confirms that has not learnt them."""

import shutil
import time
from typing import Annotated, Literal

import typer
from pydantic import BaseModel

from compgen.cli.common import (
    LEARNT,
    DataArgument,
    FormatOption,
    LearnOption,
    OutOption,
    ResumeOption,
    SeedOption,
    SetOption,
    check_input_once,
    check_out,
    load_split,
    need_torch,
    say,
    write_out,
)
from compgen.cli.options import option, with_options
from compgen.data.named import Columns
from compgen.errors import UserError
from compgen.record import named, write_record


class Options(BaseModel):
    """The options of `cgen confirm`."""

    augmented: Annotated[
        str, typer.Option("--augmented", metavar="DATA", help="The synthetic examples, made from DATA by any method.")
    ]
    out: OutOption
    parts: int = option(2, "Number of parts, and of predictors, each of which does not learn one.", ge=2, le=20)
    predictor: Literal["seq2seq", "transformer"] = option("seq2seq", "Train predictors of this kind.")
    config: str | None = option(
        None, "Their configuration. By default, seq2seq_small or transformer_small.", metavar="C"
    )
    changes: SetOption = None
    split: LearnOption = LEARNT
    seed: SeedOption = 0
    resume: ResumeOption = False
    device: str = option("auto", "Train on cpu, cuda, or auto: CUDA if there is a GPU.")
    format: FormatOption = None


@with_options
def confirm(data: DataArgument, options: Options, columns: Columns) -> None:
    """Keep those synthetic examples that predictors confirm which have not learnt them.

    The synthetic examples are dealt into two parts. A predictor learns DATA and one part, and answers the sources of
    the other; examples with another target than its answer are left out (cross-validated filtering, Brodley and Friedl
    1999). Where most examples are right, what is wrong contradicts the others. Where most are wrong, errors are kept.
    What is hard for predictors is left out, too: it helps if some per cent of the examples are wrong, else it may harm.

    Use the settings by which the predictor of the examples will be trained; half of its updates are often enough.

    Example: cgen confirm scan/jump --augmented samples.jsonl --set optimisation.steps=2000 -o confirmed.jsonl
    """
    from compgen.api import confirm as confirm_
    from compgen.comparison.predictors import SCRATCH

    check_input_once(data, options.augmented)
    if str(options.out) == "-":
        raise UserError("predictors are kept beside OUT until all are trained: give a file by -o, not -")
    check_out(options.out, options.format, data, options.augmented)
    need_torch("training")
    began = time.monotonic()
    original = load_split(data, options.split, columns=columns)
    made = load_split(options.augmented, LEARNT)
    architecture, usual = SCRATCH[options.predictor]
    config, changes = options.config or usual, options.changes or []
    folder = options.out.with_name(f"{options.out.name}.partial")
    if not options.resume:
        shutil.rmtree(folder, ignore_errors=True)
    asked = options.model_dump(include={"parts", "seed", "resume", "device"})
    kept = confirm_(original, made, config, changes, architecture=architecture, split=None, folder=folder, **asked)
    write_out(kept, options.out, options.format)
    shutil.rmtree(folder)
    record = {"data": named(data), "augmented": named(options.augmented), "config": config, "set": changes}
    record |= options.model_dump(include={"parts", "predictor", "split", "seed"}) | {"examples": len(made)}
    write_record(options.out, record | {"seconds": round(time.monotonic() - began, 1)})
    say(f"{len(kept):,} of {len(made):,} examples are confirmed")
