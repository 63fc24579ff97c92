"""`cgen train csl`: its options are those of `cgen augment csl`, and one for parsing."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from compgen.cli.augment import check_settings, check_written, configured
from compgen.cli.common import LEARNT, DataArgument, LearnOption, SeedOption, SetOption, load_split, say
from compgen.cli.options import with_options
from compgen.cli.quality import say_warnings
from compgen.csl.augmenter import Csl
from compgen.csl.options import CslOptions
from compgen.data.named import Columns
from compgen.errors import ExhaustedError
from compgen.files import as_utf8, check_apart, check_writable, require_name
from compgen.progress import stages


def csl(
    data: DataArgument,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The grammar file to write (.grammar).")],
    options: dict[str, Any],
    columns: Columns,
    copying: Annotated[
        bool, typer.Option("--copying", help="When parsing, copy words that no rule covers. Samples stay the same.")
    ] = False,
    config: Annotated[
        str, typer.Option("--config", metavar="C", help=f"Take options from a TOML file, or from {Csl.configurations}.")
    ] = "csl",
    set_: SetOption = None,
    split: LearnOption = LEARNT,
    seed: SeedOption = 0,
) -> None:
    """Induce a grammar from DATA and learn probabilities for its rules (CSL, Qiu et al. 2022).

    The grammar is a generator: draw pairs from it with `cgen sample`, let it parse with `cgen evaluate --direct`, or
    export it.

    Example: cgen train csl scan/jump --config csl_scan -o jump.grammar
    """
    check_settings(Csl, set_ or [], options)
    method = configured(Csl, config, set_ or [], options)
    require_name(out, ".grammar")
    check_writable(out)
    read = (data, config, *method.reads())
    check_apart(out, *read)
    check_written(method, (out,), *read)
    dataset, began = load_split(data, split, columns=columns), time.monotonic()
    with stages() as watch:
        method.fit(dataset, seed, watch)
    seconds = round(time.monotonic() - began, 1)
    done = method.save(out, copying=copying, data=as_utf8(data), seed=seed, seconds=seconds)
    assert method.trained is not None
    try:
        method.trained.sampler()
    except ExhaustedError as error:
        say(f"the grammar can parse, but cannot be sampled: {error}")
    say(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in done.items()))
    say_warnings(method.warnings())
    print(out)


command = with_options(csl, options=CslOptions)
