"""`compgen lm`: n-gram language models, by KenLM."""

import os
import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compgen.cli.common import console, output
from compgen.record import named, write_record

if TYPE_CHECKING:
    from compgen.lm.experiment import Report
    from compgen.lm.mixture import Mixture, Perplexity

app = typer.Typer(
    no_args_is_help=True,
    help="N-gram language models of sentences, by KenLM: estimate, measure perplexity, interpolate, and find out "
    "whether synthetic sentences lower it. `compgen lm install` builds KenLM's programs, once.",
)

TextArgument = Annotated[list[Path], typer.Argument(metavar="TEXT...", help="Sentences, one a line; .gz too.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads that score; by default one a core.")
]
OrderOption = Annotated[int, typer.Option("--order", min=2, max=9, help="Words of the longest n-grams.")]
FallbackOption = Annotated[
    bool,
    typer.Option(
        "--discount-fallback",
        help="Fixed discounts (0.5, 1, 1.5) for an order of n-grams whose own cannot be estimated, as in a small or "
        "repetitive text; the output and the record say which.",
    ),
]
MemoryOption = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="For sorting, e.g. 2G or 50%; past it, disk.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Results as JSON.")]


@app.command()
def install(
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to put the programs; by default beside this Python.")
    ] = None,
) -> None:
    """Build KenLM's programs from its source package: lmplz, build_binary, query, and compgen-ngram, which scores.

    Needs a C++ compiler, make, CMake and Boost; where apt-get is there, Boost need not be installed. KenLM's archive is
    checked by its SHA-256. Programs that are there are kept while their sources are the same.

    Example: compgen lm install
    """
    from compgen.lm.install import FOLDER, installed
    from compgen.lm.install import install as build

    goal = folder or Path(sys.executable).parent
    if installed(goal):
        console().print(f"they are in {goal}", highlight=False, markup=False)
        return
    build(goal, watch=lambda step: console().print(step, highlight=False, markup=False))
    hint = f"; set {FOLDER}={goal}" if folder is not None else ""
    console().print(f"the programs are in {goal}{hint}", highlight=False, markup=False)


@app.command()
def train(
    texts: TextArgument,
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The model; ARPA if it ends in .arpa, else binary.")
    ],
    order: OrderOption = 5,
    prune: Annotated[
        str | None,
        typer.Option("--prune", metavar="N,N..", help="Leave out n-grams seen so often or less, for orders from 1."),
    ] = None,
    fallback: FallbackOption = False,
    memory: MemoryOption = "1G",
    temporary: Annotated[Path | None, typer.Option("--temporary", help="Folder for what is sorted.")] = None,
    kind: Annotated[str, typer.Option("--kind", help="Of a binary model: probing is fast, trie is small.")] = "probing",
    quantise: Annotated[
        int | None, typer.Option("--quantise", min=2, max=25, help="Bits of each number in a trie; by default floats.")
    ] = None,
) -> None:
    """Estimate a model of TEXT by modified Kneser-Ney smoothing (KenLM's lmplz).

    Example: compgen lm train sentences.txt -o base.bin
    """
    from compgen.errors import UserError
    from compgen.files import check_apart
    from compgen.lm.estimation import Estimation, estimate, fixed_discounts

    counts = (prune or "").replace(",", " ").split()
    if not all(count.isdecimal() for count in counts):
        raise UserError(f"--prune {prune}: expected counts between commas, for instance 0,0,1")
    estimation = Estimation(order, tuple(map(int, counts)), fallback, memory, kind, quantise)
    check_apart(out, *texts)
    found = estimate(texts, out, estimation, temporary)
    write_record(out, {"texts": list(map(str, texts)), **found})
    grams = " ".join(f"{count:,}" for count in found["ngrams"])
    console().print(
        f"{found['sentences']:,} sentences, {found['tokens']:,} tokens; n-grams {grams}; {found['seconds']} s",
        highlight=False,
        soft_wrap=True,
    )
    if found["fallback_orders"]:
        console().print(
            f"fixed discounts, as the text gives none, for {fixed_discounts(found['fallback_orders'])}",
            highlight=False,
            soft_wrap=True,
        )


@app.command()
def perplexity(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model of KenLM, a mixture (.json), or a recurrent one (.pt).")
    ],
    texts: TextArgument,
    sentences: Annotated[
        Path | None, typer.Option("--sentences", metavar="OUT", help="Each sentence's tokens and loss, as TSV.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="OUT", help="Each token's score, as Parquet.")
    ] = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Perplexity of each TEXT, sentence ends included, with and without the tokens that MODEL does not know.

    Example: compgen lm perplexity base.bin test.txt
    """
    from compgen.errors import UserError
    from compgen.files import check_apart, check_writable
    from compgen.lm.measuring import measure
    from compgen.lm.mixture import Mixture

    mixture = Mixture.open(model)
    if len(texts) > 1 and (sentences or tokens):
        raise UserError("--sentences and --tokens are for one text")
    if sentences is not None and sentences == tokens:
        raise UserError(f"--sentences and --tokens would both be {tokens}: give two names")
    for path in filter(None, (sentences, tokens)):
        check_apart(path, model, *texts)
        check_writable(path)
    rows = [
        (text, measure(mixture, text, threads or os.cpu_count() or 1, sentences=sentences, tokens=tokens))
        for text in texts
    ]
    if json:
        for text, found in rows:
            print(dumps({"model": str(model), "text": str(text)} | found.to_dict()))
        return
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(
        Column("text", overflow="fold"),
        "sentences",
        "tokens",
        "unknown",
        "perplexity",
        "without unknown",
        box=None,
        pad_edge=False,
    )
    for text, found in rows:
        counts = (f"{count:,}" for count in (found.sentences, found.tokens, found.unknown))
        table.add_row(Text(str(text)), *counts, f"{found.including:.4f}", f"{found.excluding:.4f}")
    output().print(table)


@app.command()
def interpolate(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Models over one vocabulary, recurrent ones (.pt) too.")
    ],
    validation: Annotated[
        Path, typer.Option("--validation", metavar="TEXT", help="Sentences that the weights are chosen for.")
    ],
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The mixture (.json).")],
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid", metavar="V,V..", help="Choose the second model's weight among these, e.g. 0.05,0.1,0.5."
        ),
    ] = None,
    by_history: Annotated[
        bool, typer.Option("--by-history", help="Weights for each number of words of history that MODEL 1 knows.")
    ] = False,
    threads: ThreadsOption = None,
) -> None:
    """Mix models token by token, with the weights that make a text most probable (by expectation maximisation).

    OUT names the models and is for `compgen lm perplexity`; the models stay where they are.

    Examples:

        compgen lm interpolate base.bin augmented.bin --validation val.txt -o mix.json

        compgen train recombine train.txt --config rnnlm_small -o lstm.pt

        compgen lm interpolate base.bin lstm.pt --validation val.txt -o mix.json
    """
    from compgen.errors import UserError
    from compgen.files import check_apart, check_writable
    from compgen.lm.mixture import best_of, check_vocabularies, perplexity, tuned
    from compgen.lm.scoring import score_all

    if len(models) < 2:
        raise UserError("interpolation takes two models or more")
    if grid is not None and by_history:
        raise UserError("--grid chooses one weight: leave out --by-history")
    check_apart(out, validation, *models)
    check_writable(out)
    check_vocabularies(models)
    scores = score_all(models, validation, threads or os.cpu_count() or 1)
    mixture = tuned(models, scores, by_history) if grid is None else best_of(models, scores, _weights(grid))
    mixture.save(out)
    console().print(
        f"weights {_rows(mixture)}; perplexity of {validation} {perplexity(mixture, scores).including:.4f}",
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def augment(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Sentences to learn from, one a line.")],
    validation: Annotated[
        Path, typer.Option("--validation", metavar="TEXT", help="Sentences that the weights are chosen for.")
    ],
    test: Annotated[Path, typer.Option("--test", metavar="TEXT", help="Sentences that are measured at the end.")],
    out: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A folder for models and report.json.")],
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            help="worth: synthetic n-grams weighted by how far the text itself knows the history. paper: as published.",
        ),
    ] = "worth",
    count: Annotated[
        int | None, typer.Option("-n", min=1, metavar="N", help="Most synthetic sentences of a kind.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option("--window", min=0, help="Tokens around a gap that must agree; by default the scheme's."),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="S,S..", help="One run each.")] = "0,1,2",
    partners: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="MODEL", help="One more model for mixture and control alike; may be repeated."),
    ] = None,
    order: OrderOption = 5,
    fallback: Annotated[
        bool,
        typer.Option(
            "--discount-fallback", help="Fixed discounts for the base model too, where its own cannot be estimated."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Find out whether synthetic sentences (GECA) lower perplexity, and keep the mixture.

    Beside the gain stands the control: a mixture of as many models in which training sentences, drawn again, take the
    place of the synthetic ones. What it gains, any second model would.

    Models with synthetic or resampled sentences have fixed discounts (KenLM's --discount_fallback) for orders of
    n-grams whose own cannot be estimated. The output says which, and report.json, by `fallback_orders`.

    Example: compgen lm augment train.txt --validation val.txt --test test.txt -o runs/lm
    """
    from dataclasses import asdict, replace

    from compgen.data.catalog import load
    from compgen.errors import UserError
    from compgen.files import atomic_path, check_apart, check_writable
    from compgen.lm.estimation import Estimation
    from compgen.lm.experiment import SCHEMES, experiment, outputs, summary

    if scheme not in SCHEMES:
        raise UserError(f"no scheme {scheme!r}: expected {', '.join(SCHEMES)}")
    chosen = SCHEMES[scheme] if count is None else replace(SCHEMES[scheme], count=count)
    if window is not None:
        kinds = (replace(kind, options=kind.options.model_copy(update={"window": window})) for kind in chosen.kinds)
        chosen = replace(chosen, kinds=tuple(kinds))
    numbers = seeds.replace(",", " ").split()
    if not numbers or not all(seed.isdecimal() for seed in numbers) or len({*map(int, numbers)}) < len(numbers):
        raise UserError(f"--seeds {seeds}: expected different numbers between commas")
    for path in (out / "report.json", *outputs(out, chosen, list(map(int, numbers)))):
        check_apart(path, data, validation, test, *(partners or []))
    check_writable(out / "report.json")
    estimation = Estimation(order, fallback=fallback)
    report = experiment(
        load(data),
        validation,
        test,
        out,
        chosen,
        estimation,
        list(map(int, numbers)),
        partners or [],
        watch=lambda step: console().print(step, highlight=False, markup=False),
    )
    asked: dict[str, Any] = {
        "data": named(data),
        "validation": named(str(validation)),
        "test": named(str(test)),
        "scheme": scheme,
    }
    asked |= {"settings": asdict(chosen), "estimation": asdict(estimation), "with": list(map(str, partners or []))}
    written = asked | summary(report)
    with atomic_path(out / "report.json") as path:
        path.write_text(dumps(written, indent=1) + "\n", encoding="utf-8")
    if json:
        print(dumps(written))
    else:
        _show(report)


def _show(report: "Report") -> None:
    from rich.table import Table

    table = Table("", "validation", "test", "p: t", "sign", "bootstrap", box=None, pad_edge=False)
    table.add_row("base", *_figures(report.base))
    for trial in report.trials:
        found = trial.against_control
        tests = (f"{p:.2g}" for p in (found.t_p, found.sign_p, found.bootstrap_p))
        table.add_row(f"control, seed {trial.seed}", *_figures(trial.control))
        table.add_row(f"augmented, seed {trial.seed}", *_figures(trial.mixture), *tests)
    output().print(table)
    output().print(
        "Perplexities; p is of the difference of sentence losses on the test text, augmented against control."
    )
    output().print(report.fallback)
    output().print(report.verdict)


def _figures(sides: "dict[str, Perplexity]") -> list[str]:
    return [f"{side.including:.4f}" for side in sides.values()]


def _weights(text: str) -> list[float]:
    """--grid as numbers."""
    from compgen.errors import UserError

    try:
        weights = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        weights = []
    if not weights or not all(0 <= weight <= 1 for weight in weights):
        raise UserError(f"--grid {text}: expected weights from 0 to 1 between commas, for instance 0.05,0.1,0.5")
    return weights


def _rows(mixture: "Mixture") -> str:
    return "; ".join(" ".join(f"{weight:.4f}" for weight in row) for row in mixture.weights)
