"""`cgen lm`: n-gram language models, by KenLM."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from compgen.cli.common import JsonOption, check_input_once, part_of, say, show, show_json, table, usual_split
from compgen.cli.lazy import App, Group
from compgen.cli.options import argument, option, with_options
from compgen.errors import UserError
from compgen.files import atomic_path, check_apart, check_writable
from compgen.processors import processors
from compgen.record import named, write_record

if TYPE_CHECKING:
    from compgen.lm.experiment import Scheme
    from compgen.lm.mixture import Mixture, Perplexity
    from compgen.lm.report import Report

app = App(
    cls=Group,
    no_args_is_help=True,
    help="N-gram language models of sentences, by KenLM: estimate, measure perplexity, interpolate, and find out "
    "whether synthetic sentences lower it. `cgen lm install` builds KenLM's programs, once.",
)

SOURCES = ", or the sources of .jsonl, .json, .csv, .tsv, .parquet"
TextArgument = Annotated[list[Path], argument("TEXT", f"Sentences, one a line{SOURCES}; also with .gz.")]
OrderOption = Annotated[int, typer.Option("--order", min=2, max=9, help="Words of the longest n-grams.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads that compute scores; by default one per core.")
]
ValidationOption = Annotated[
    Path, typer.Option("--validation", metavar="TEXT", help="Sentences that the weights are chosen for.")
]


@app.command()
@with_options
def install(folder: Path | None = option(None, "Where to put the programs; by default beside this Python.")) -> None:
    """Build KenLM's programs from its source package: lmplz, build_binary, query, and compgen-ngram, which scores.

    Needs a C++ compiler, make, CMake and Boost; where apt-get is available, Boost need not be installed. What is
    downloaded is checked by its SHA-256. Programs that exist are kept while their sources are the same.

    Example: cgen lm install
    """
    from compgen.lm.install import FOLDER, installed
    from compgen.lm.install import install as build

    goal = folder or Path(sys.executable).parent
    if installed(goal):
        say(f"the programs are already in {goal}")
        return
    build(goal, watch=say)
    say(f"the programs are in {goal}" + (f"; set {FOLDER}={goal}" if folder is not None else ""))


class TrainOptions(BaseModel):
    """The options of `cgen lm train`."""

    out: Path = option(..., "The model; ARPA if it ends in .arpa, else binary.", "--output", "-o", metavar="OUT")
    order: OrderOption = 5
    prune: str | None = option(None, "Leave out n-grams that occur at most N times, by order.", metavar="N,N..")
    fallback: bool = option(
        False,
        "Use fixed discounts (0.5, 1, 1.5) for an order of n-grams whose own cannot be estimated, as in a small or "
        "repetitive text; the output and the record say for which.",
        "--discount-fallback",
    )
    memory: str = option("1G", "For sorting, e.g. 2G or 50%; beyond it, disk.", metavar="SIZE")
    temporary: Path | None = option(None, "Folder for temporary files.")
    kind: str = option("probing", "Of a binary model: probing is fast, trie is small.")
    quantise: int | None = option(None, "Bits of each number in a trie; by default floats.", ge=2, le=25)


@app.command()
@with_options
def train(texts: TextArgument, options: TrainOptions) -> None:
    """Estimate a model of TEXT by modified Kneser-Ney smoothing (KenLM's lmplz).

    Example: cgen lm train sentences.txt -o base.bin
    """
    from compgen.lm.estimation import Estimation, estimate, fixed_discounts

    counts = _words(options.prune or "")
    if not all(count.isdecimal() for count in counts):
        raise UserError(f"--prune {options.prune}: expected counts between commas, for instance 0,0,1")
    chosen = options.model_dump(include={"order", "fallback", "memory", "kind", "quantise"})
    estimation = Estimation(prune=tuple(map(int, counts)), **chosen)
    check_input_once(*map(str, texts))
    check_apart(options.out, *texts)
    found = estimate(texts, options.out, estimation, options.temporary)
    write_record(options.out, {"texts": list(map(str, texts)), **found})
    grams = " ".join(f"{count:,}" for count in found["ngrams"])
    say(f"{found['sentences']:,} sentences, {found['tokens']:,} tokens; n-grams {grams}; {found['seconds']} s")
    if found["fallback_orders"]:
        say(f"fixed discounts, as the text gives none, for {fixed_discounts(found['fallback_orders'])}")


@app.command()
@with_options
def perplexity(
    model: Annotated[Path, argument("MODEL", "A model of KenLM, a mixture (.json), or a recurrent one (.pt).")],
    texts: TextArgument,
    sentences: Path | None = option(None, "Each sentence's tokens and loss, as TSV.", metavar="OUT"),
    tokens: Path | None = option(None, "Each token's score, as Parquet, or TSV if OUT ends in .tsv.", metavar="OUT"),
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the perplexity of each TEXT, sentence ends included, with and without tokens that MODEL does not know.

    Example: cgen lm perplexity base.bin test.txt
    """
    from compgen.lm.measuring import measure
    from compgen.lm.mixture import Mixture

    check_input_once(*map(str, texts))
    mixture = Mixture.open(model)
    if len(texts) > 1 and (sentences or tokens):
        raise UserError("--sentences and --tokens are for one text")
    if sentences is not None and sentences == tokens:
        raise UserError(f"--sentences and --tokens would both be {tokens}: give two names")
    for path in filter(None, (sentences, tokens)):
        check_apart(path, model, *mixture.models, *texts)
        check_writable(path)
    cells = []
    for text in texts:
        found = measure(mixture, text, threads or processors(), sentences=sentences, tokens=tokens)
        if as_json:
            show_json({"model": str(model), "text": str(text)} | found.to_dict())
        counts = (f"{count:,}" for count in (found.sentences, found.tokens, found.unknown))
        cells.append([text, *counts, f"{found.including:.4f}", f"{found.excluding:.4f}"])
    if not as_json:
        show(table(("text", "sentences", "tokens", "unknown", "perplexity", "without unknown"), cells))


@app.command()
@with_options
def rescore(
    model: Annotated[Path, argument("MODEL", "A model of KenLM, a mixture (.json), or a recurrent one (.pt).")],
    text: Annotated[
        Path, argument("TEXT", f"Hypotheses, one a line{SOURCES}; a file also with .gz; - is standard input.")
    ],
    threads: ThreadsOption = None,
) -> None:
    """Print a line for each line of TEXT: its log probability (natural), tokens, and tokens that MODEL does not know.

    The end of a sentence is a token, and a blank line has no other. Columns are parted by TABs, so `paste` puts them
    beside the hypotheses, which may be of any number of sources.

    Examples:

        cgen lm rescore mix.json hypotheses.txt

        cut -f 2 answers.tsv | cgen lm rescore mix.json - | paste answers.tsv -
    """
    from compgen.lm.measuring import rescore as scored
    from compgen.lm.mixture import Mixture

    for line in scored(Mixture.open(model), text, threads or processors()):
        print(f"{line.log_prob:.6f}\t{line.tokens}\t{line.unknown}")


@app.command()
@with_options
def interpolate(
    models: Annotated[list[Path], argument("MODEL", "Models over one vocabulary, also recurrent ones (.pt).")],
    validation: ValidationOption,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The mixture (.json).")],
    grid: str | None = option(None, "Choose the second weight among these, e.g. 0.05,0.1,0.5.", metavar="V,V.."),
    by_history: bool = option(False, "Weights for each number of words of history that the first MODEL knows."),
    threads: ThreadsOption = None,
) -> None:
    """Mix models token by token, with the weights that make a text most probable (by expectation maximisation).

    OUT names the models and is for `cgen lm perplexity`; the models stay where they are.

    Examples:

        cgen lm interpolate base.bin augmented.bin --validation val.txt -o mix.json

        cgen train recombine train.txt --config rnnlm_small -o lstm.pt

        cgen lm interpolate base.bin lstm.pt --validation val.txt -o mix.json
    """
    from compgen.lm.mixture import best_of, check_vocabularies, fitted, perplexity
    from compgen.lm.scoring import score_all

    if len(models) < 2:
        raise UserError("interpolation takes two models or more")
    if grid is not None and by_history:
        raise UserError("--grid chooses one weight: leave out --by-history")
    check_apart(out, validation, *models)
    check_writable(out)
    check_vocabularies(models)
    scores = score_all(models, validation, threads or processors())
    if grid is None:
        mixture = fitted(models, scores, by_history, validation)
    else:
        mixture = best_of(models, scores, _weights(grid), validation)
    mixture.save(out)
    say(f"weights {_rows(mixture)}; perplexity of {validation} {perplexity(mixture, scores).including:.4f}")


class AugmentOptions(BaseModel):
    """The options of `cgen lm augment`."""

    validation: ValidationOption
    test: Path = option(..., "Sentences that are measured at the end.", metavar="TEXT")
    out: Path = option(
        ..., "A folder for models and report.json: new, empty, or of the same run.", "--output", "-o", metavar="DIR"
    )
    scheme: str = option(
        "worth",
        "worth: weight synthetic n-grams by how much of the history the text itself has. paper: as published.",
    )
    count: int | None = option(None, "Most synthetic sentences of a kind.", "-n", ge=1, metavar="N")
    window: int | None = option(None, "Tokens around a gap that must agree; by default the scheme's.", ge=0)
    seeds: str = option("0,1,2", "One run each.", metavar="S,S..")
    partners: list[Path] = option([], "One more model for mixture and control.", "--with", metavar="MODEL")
    order: OrderOption = 5
    fallback: bool = option(False, "Fixed discounts for the base model too.", "--discount-fallback")
    as_json: JsonOption = False

    def runs(self) -> list[int]:
        """The numbers in --seeds."""
        numbers = _words(self.seeds)
        if not numbers or not all(seed.isdecimal() for seed in numbers) or len({*map(int, numbers)}) < len(numbers):
            raise UserError(f"--seeds {self.seeds}: expected different numbers between commas")
        return list(map(int, numbers))

    def chosen(self) -> "Scheme":
        """The scheme, with a count and a window of its own if they are given."""
        from compgen.lm.experiment import SCHEMES

        if self.scheme not in SCHEMES:
            raise UserError(f"no scheme {self.scheme!r}: expected {', '.join(SCHEMES)}")
        scheme = SCHEMES[self.scheme]
        if self.count is not None:
            scheme = replace(scheme, count=self.count)
        if self.window is not None:
            window = {"window": self.window}
            scheme = replace(scheme, kinds=tuple(kind.model_copy(update=window) for kind in scheme.kinds))
        return scheme


@app.command()
@with_options
def augment(
    data: Annotated[str, argument("DATA", "Sentences to learn from, one a line.")], options: AugmentOptions
) -> None:
    """Find out whether synthetic sentences (GECA) lower perplexity, and keep the mixture.

    The gain is reported with its control: a mixture of as many models in which training sentences, drawn again, take
    the place of the synthetic ones. Any second model would gain as much as the control.

    Models with synthetic or resampled sentences have fixed discounts (KenLM's --discount_fallback) for orders of
    n-grams whose own cannot be estimated. The output says which, as does `fallback_orders` in report.json.

    Where DIR holds another run, or other files, nothing is done: its mixtures name models that would be replaced.

    Example: cgen lm augment train.txt --validation val.txt --test test.txt -o runs/lm
    """
    from compgen.data.catalog import load
    from compgen.lm.estimation import Estimation
    from compgen.lm.experiment import experiment, outputs
    from compgen.lm.report import summary

    scheme, seeds, out = options.chosen(), options.runs(), options.out
    for path in (out / "report.json", *outputs(out, scheme, seeds)):
        check_apart(path, data, options.validation, options.test, *options.partners)
    check_writable(out / "report.json")
    estimation = Estimation(options.order, fallback=options.fallback)
    texts = (options.validation, options.test)
    dataset = load(data)
    learnt = part_of(data, dataset, usual_split(dataset, "train"))
    report = experiment(learnt, *texts, out, scheme, estimation, seeds, options.partners, watch=say)
    asked: dict[str, Any] = {"data": named(data), "validation": named(str(texts[0])), "test": named(str(texts[1]))}
    settings = asdict(scheme) | {"kinds": [kind.model_dump(mode="json") for kind in scheme.kinds]}
    asked |= {"scheme": options.scheme, "settings": settings, "estimation": asdict(estimation)}
    written = asked | {"with": list(map(str, options.partners))} | summary(report)
    with atomic_path(out / "report.json") as path:
        path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    if options.as_json:
        show_json(written)
    else:
        _show(report)


def _show(report: "Report") -> None:
    """Print a table of the runs, and what follows from it."""
    cells = [["base", *_figures(report.base)]]
    for trial in report.trials:
        found = trial.against_control
        tests = (f"{p:.2g}" for p in (found.t_p, found.sign_p, found.bootstrap_p))
        cells.append([f"control, seed {trial.seed}", *_figures(trial.control)])
        cells.append([f"augmented, seed {trial.seed}", *_figures(trial.mixture), *tests])
    show(
        table(("", "validation", "test", "p: t", "sign", "bootstrap"), cells),
        "Perplexities; p is of the difference of sentence losses on the test text, augmented against control.",
        report.fallback,
        report.verdict,
        report.decisive,
    )
    test = report.base["test"]
    if 2 * test.unknown > test.tokens:
        say(
            f"warning: {test.unknown / test.tokens:.0%} of the test's tokens are unknown to the models: is it of "
            "another language than the training text, or are its signs set apart otherwise?"
        )


def _figures(sides: "dict[str, Perplexity]") -> list[str]:
    return [f"{side.including:.4f}" for side in sides.values()]


def _words(text: str) -> list[str]:
    """Split at commas and spaces."""
    return text.replace(",", " ").split()


def _weights(text: str) -> list[float]:
    """The numbers in --grid."""
    try:
        weights = [float(word) for word in _words(text)]
    except ValueError:
        weights = []
    if not weights or not all(0 <= weight <= 1 for weight in weights):
        raise UserError(f"--grid {text}: expected weights from 0 to 1 between commas, for instance 0.05,0.1,0.5")
    return weights


def _rows(mixture: "Mixture") -> str:
    return "; ".join(" ".join(f"{weight:.4f}" for weight in row) for row in mixture.weights)
