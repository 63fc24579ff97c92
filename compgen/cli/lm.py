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
    help="Work with n-gram language models (KenLM): estimate and interpolate them, measure perplexity, and find out "
    "whether synthetic sentences lower it. Run `cgen lm install` first; it builds KenLM's programs.",
)

MOST_DIGITS = 20  # of a seed or a count; numbers of some thousands of digits are an error in Python
TABLES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
SOURCES = f", or the sources in {', '.join(TABLES[:-1])} or {TABLES[-1]}"
TextArgument = Annotated[list[Path], argument("TEXT", f"Sentences, one per line{SOURCES}; also .gz.")]
ModelArgument = Annotated[
    Path, argument("MODEL", "A KenLM model, a mixture (.json), or a recurrent model (.pt, or a bundle).")
]
OrderOption = Annotated[int, typer.Option("--order", min=2, max=9, help="Length of the longest n-grams, in words.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Number of threads that compute scores. By default, one per core."),
]
ValidationOption = Annotated[
    Path, typer.Option("--validation", metavar="TEXT", help="Choose the weights that are best for these sentences.")
]


@app.command()
@with_options
def install(
    folder: Path | None = option(None, "Put the programs in this folder. By default, beside this Python."),
) -> None:
    """Build KenLM's programs lmplz, build_binary and query from source, and compgen-ngram, which computes scores.

    Needs a C++ compiler, make, CMake and Boost; with apt-get, Boost need not be installed. Downloads are checked by
    their SHA-256. Existing programs are kept as long as their sources have not changed.

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

    out: Path = option(
        ...,
        "Write the model here: as ARPA if the name ends in .arpa, otherwise in binary.",
        "--output",
        "-o",
        metavar="OUT",
    )
    order: OrderOption = 5
    prune: str | None = option(
        None, "Leave out n-grams that occur at most N times: one number for each order.", metavar="N,N.."
    )
    fallback: bool = option(
        False,
        "Use fixed discounts (0.5, 1, 1.5) for orders of n-grams whose discounts cannot be estimated, as in a small "
        "or repetitive text. The output and the record say which orders.",
        "--discount-fallback",
    )
    memory: str = option("1G", "Memory for sorting, e.g. 2G or 50%; the rest goes to disk.", metavar="SIZE")
    temporary: Path | None = option(None, "Put temporary files in this folder.")
    kind: str = option("probing", "Kind of binary model: probing is fast, trie is small.")
    quantise: int | None = option(
        None, "With --kind trie: store each number in this many bits. By default, as floats.", ge=2, le=25
    )


@app.command()
@with_options
def train(texts: TextArgument, options: TrainOptions) -> None:
    """Estimate a model of TEXT by modified Kneser-Ney smoothing (KenLM's lmplz).

    Example: cgen lm train sentences.txt -o base.bin
    """
    from compgen.lm.estimation import Estimation, estimate, fixed_discounts

    counts = _numbers(options.prune or "")
    if counts is None:
        raise UserError(f"--prune {options.prune}: expected counts between commas, for instance 0,0,1")
    chosen = options.model_dump(include={"order", "fallback", "memory", "kind", "quantise"})
    estimation = Estimation(prune=tuple(counts), **chosen)
    check_input_once(*map(str, texts))
    found = estimate(texts, options.out, estimation, options.temporary)
    write_record(options.out, {"texts": list(map(str, texts)), **found})
    grams = " ".join(f"{count:,}" for count in found["ngrams"])
    say(f"{found['sentences']:,} sentences, {found['tokens']:,} tokens; n-grams {grams}; {found['seconds']} s")
    if found["fallback_orders"]:
        say(f"fixed discounts, as the text gives none, for {fixed_discounts(found['fallback_orders'])}")


@app.command()
@with_options
def perplexity(
    model: ModelArgument,
    texts: TextArgument,
    sentences: Path | None = option(
        None,
        "Write the tokens, the unknown ones and the loss (natural logarithm) of each sentence here, as TSV.",
        metavar="OUT",
    ),
    tokens: Path | None = option(
        None,
        "Write the log10 probability of each token here, as Parquet, or as TSV if OUT ends in .tsv.",
        metavar="OUT",
    ),
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the perplexity of each TEXT, with and without tokens that MODEL does not know. Sentence ends count.

    These are the figures that KenLM's `query` calls including and excluding OOVs. Blank lines are left out.

    Example: cgen lm perplexity base.bin test.txt
    """
    from compgen.lm.measuring import measure
    from compgen.lm.mixture import Mixture

    check_input_once(*map(str, texts))
    _check_order(model, *texts)
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


def _check_order(model: Path, *texts: Path) -> None:
    """Raise UserError if a TEXT is a model and MODEL is none: they have changed places."""
    from compgen.lm.mixture import is_model

    if not is_model(model) and (swapped := [text for text in texts if is_model(text)]):
        raise UserError(f"{model}: not a model, and {swapped[0]} is one: the model comes first, then the text")


@app.command()
@with_options
def rescore(
    model: ModelArgument,
    text: Annotated[Path, argument("TEXT", f"Hypotheses, one per line{SOURCES}; also .gz; - for standard input.")],
    threads: ThreadsOption = None,
) -> None:
    """Print, for each line of TEXT, its natural log probability, its tokens, and the tokens that MODEL does not know.

    The end of a sentence counts as a token; a blank line has no other. Columns are separated by TABs, so that `paste`
    can put them beside the hypotheses, which may belong to any number of sources.

    Examples:

        cgen lm rescore mix.json hypotheses.txt

        cut -f 2 answers.tsv | cgen lm rescore mix.json - | paste answers.tsv -
    """
    from compgen.data.content import suffix_of
    from compgen.lm.measuring import rescore as scored
    from compgen.lm.mixture import Mixture

    _check_order(model, text)
    if suffix_of(str(text)) in TABLES:
        say(f"{text}: a table, of which the sources are scored; targets: cut -f 2 TABLE.tsv | cgen lm rescore MODEL -")
    for line in scored(Mixture.open(model), text, threads or processors()):
        print(f"{line.log_prob:.6f}\t{line.tokens}\t{line.unknown}")


@app.command()
@with_options
def interpolate(
    models: Annotated[
        list[Path], argument("MODEL", "Models with the same vocabulary; recurrent ones (.pt, or a bundle) too.")
    ],
    validation: ValidationOption,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Write the mixture here (.json).")],
    grid: str | None = option(
        None, "Choose the weight of the second model from these, e.g. 0.05,0.1,0.5.", metavar="V,V.."
    ),
    by_history: bool = option(
        False, "Use separate weights for each number of words of history that the first MODEL knows."
    ),
    threads: ThreadsOption = None,
) -> None:
    """Mix models token by token, with the weights that make a text most probable (found by expectation maximisation).

    OUT refers to the models, which must stay where they are. Use it as a MODEL of `cgen lm perplexity`.

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
    test: Path = option(..., "Measure perplexity on these sentences at the end.", metavar="TEXT")
    out: Path = option(
        ...,
        "Write models and report.json to this folder, which must be new, empty or of the same run.",
        "--output",
        "-o",
        metavar="DIR",
    )
    scheme: str = option(
        "worth",
        "worth: weight synthetic n-grams by how much of their history the text itself has. paper: as published.",
    )
    count: int | None = option(
        None,
        "Make at most N synthetic sentences of each kind. By default, the scheme decides.",
        "-n",
        ge=1,
        metavar="N",
    )
    window: int | None = option(
        None, "Tokens on each side of a gap that must agree. By default, the scheme decides.", ge=0
    )
    seeds: str = option("0,1,2", "Make one run with each of these seeds.", metavar="S,S..")
    partners: list[Path] = option([], "Add this model to both the mixture and the control.", "--with", metavar="MODEL")
    order: OrderOption = 5
    fallback: bool = option(False, "Use fixed discounts for the base model too.", "--discount-fallback")
    as_json: JsonOption = False

    def runs(self) -> list[int]:
        """The numbers in --seeds."""
        numbers = _numbers(self.seeds)
        if not numbers or len({*numbers}) < len(numbers) or max(numbers) >= 2**64:
            raise UserError(f"--seeds {self.seeds}: expected different numbers between commas, less than 2^64")
        return numbers

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
    data: Annotated[str, argument("DATA", "Sentences to learn from, one per line.")], options: AugmentOptions
) -> None:
    """Find out whether synthetic sentences (GECA) lower perplexity, and keep the mixture.

    The gain is reported beside that of a control: a mixture of as many models in which training sentences, drawn again,
    replace the synthetic ones. Any second model would gain as much as the control.

    Models of synthetic or resampled sentences use fixed discounts (KenLM's --discount_fallback) for orders of n-grams
    whose discounts cannot be estimated. The output names these orders, as does `fallback_orders` in report.json.

    If DIR holds another run, or other files, the command stops: mixtures there may refer to models it would replace.

    Example: cgen lm augment train.txt --validation val.txt --test test.txt -o runs/lm
    """
    from compgen.data.catalog import load
    from compgen.lm.estimation import Estimation
    from compgen.lm.experiment import experiment, outputs
    from compgen.lm.report import summary

    scheme, seeds, out = options.chosen(), options.runs(), options.out
    for path in (out / "report.json", *outputs(out, scheme, seeds)):
        check_apart(path, data, options.validation, options.test, *options.partners)
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
        "Perplexities, unknown words and sentence ends included; p is of the difference of sentence losses on the test "
        "text, augmented against control.",
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


def _numbers(text: str) -> list[int] | None:
    """The whole numbers between commas; None if a word is not one, or has more than MOST_DIGITS digits."""
    words = _words(text)
    return list(map(int, words)) if all(word.isdecimal() and len(word) <= MOST_DIGITS for word in words) else None


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
