"""`cgen compare`: which augmentation helps on some data?"""

import signal
from pathlib import Path
from typing import Annotated

import typer

from compgen.cli.common import DataArgument, called, need_torch, say
from compgen.cli.options import with_options
from compgen.comparison.options import CompareOptions
from compgen.data.named import Columns
from compgen.errors import Interrupted


@with_options
def compare(
    data: DataArgument,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Write all results to this folder.")],
    options: CompareOptions,
    columns: Columns,
) -> None:
    """Find out which augmentation helps on DATA and how certain that is, and get the data and the model.

    Every method that applies makes examples, in two amounts. The same predictor is trained on the bare data, on each
    augmentation and on the control (training examples drawn again); validation parts of the training data decide which
    is chosen. Then bare, control, chosen and, as time allows, the best of each other method are trained on all training
    examples with several seeds, and scored once on the test part: the split test of DATA, or one made from DATA. The
    folder gets report.html, the chosen data, the predictor and its bundle. To continue an interrupted run, repeat the
    command.

    Examples: cgen compare pairs.tsv -o runs/pairs

        cgen compare geo.tsv --test 200 --methods geca,csl --minutes 30 -o runs/geo
    """
    need_torch("a comparison")
    from compgen.cli.report import summary
    from compgen.comparison.run import compare
    from compgen.data.catalog import load

    dataset = load(data, columns=columns)
    broken = signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # pipes to workers break with them
    try:
        result = compare(dataset, out, options, name=data, command=called(), say=say)
    except (KeyboardInterrupt, Interrupted) as error:
        number = error.number if isinstance(error, Interrupted) else signal.SIGINT
        raise Interrupted(f"{out}: stopped; the same command resumes it", number) from error
    finally:
        signal.signal(signal.SIGPIPE, broken)
    summary(result, out / "report.html")
