"""`compgen evaluate`: how well predictors predict."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from compgen.cli.common import DataArgument, TrustOption, console, output, say_remarks, usual_split, writable_format

if TYPE_CHECKING:
    from rich.table import Table

    from compgen.api import Generator, Predictor
    from compgen.evaluation.metrics import Scores
    from compgen.evaluation.significance import Comparison


def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Predictors, or with --direct or --perplexity generators: checkpoints (.pt), bundles, or folders of "
            "`compgen train pretrained`.",
        ),
    ],
    data: DataArgument,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="S", help="The split of DATA; by default test, or the only one there is."),
    ] = None,
    beam: Annotated[int, typer.Option("--beam", min=1, max=1024, help="Width of beam search; 1 is greedy.")] = 1,
    direct: Annotated[
        bool,
        typer.Option(
            "--direct",
            help="Let generators answer: by prototypes retrieved for each source, answers ranked with the prototypes "
            "summed out (R&R, appendix E).",
        ),
    ] = False,
    execute: Annotated[
        str | None,
        typer.Option(
            "--execute",
            metavar="LANGUAGE",
            help="Also execute each prediction, and score the share that gives its source: scan, for predictors of "
            "SCAN commands from actions (NACS). What cannot be executed is wrong.",
        ),
    ] = None,
    otherwise: Annotated[
        str | None,
        typer.Option(
            "--otherwise",
            metavar="PREDICTOR",
            help="With --direct: what answers sources that the generator has no answer to: a grammar has none to "
            "what it cannot parse, a network to what has unknown tokens.",
        ),
    ] = None,
    perplexity: Annotated[
        bool,
        typer.Option(
            "--perplexity",
            help="Score generators (.pt) by how probable they find whole examples: a bound over neighborhoods, R&R's "
            "equation 4.",
        ),
    ] = False,
    unit: Annotated[
        str,
        typer.Option(
            "--unit",
            metavar="U",
            help="What F1 counts: token; analysis (of words: the lemma and each tag); analysis-words (each word of the "
            "lemma, as in R&R's tables).",
        ),
    ] = "token",
    predictions: Annotated[
        Path | None,
        typer.Option("--predictions", metavar="OUT", help="Write source and predicted target here (one MODEL)."),
    ] = None,
    errors: Annotated[
        int,
        typer.Option("--errors", min=0, metavar="N", help="Print the first N predictions other than their reference."),
    ] = 0,
    compare: Annotated[
        int | None,
        typer.Option(
            "--compare",
            min=1,
            metavar="SEEDS",
            help="Also compare the systems, each SEEDS models in a row (1: each model by itself): paired t-tests of "
            "F1 an item over all items, the same by Bonferroni, and over the means of the seeds.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one a model, in place of a table.")] = False,
    runtime: Annotated[
        str | None, typer.Option("--runtime", help="onnx or torchscript for bundles, torch for the rest.")
    ] = None,
    trust_code: TrustOption = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N examples.")] = None,
) -> None:
    """Predict the targets of DATA and score them: exact match and token F1, and with --execute by what they do.

    Example: compgen evaluate baseline.pt augmented.pt scan/jump
    """
    from json import dumps

    from compgen.api import Generator, Predictor
    from compgen.data.catalog import load
    from compgen.data.examples import Dataset
    from compgen.data.formats import write_dataset
    from compgen.errors import UserError
    from compgen.evaluation.metrics import SIGNATURES, check_executes, item_f1, score

    if unit not in SIGNATURES:
        raise UserError(f"--unit {unit}: expected one of {', '.join(SIGNATURES)}")
    if perplexity:
        others = (direct, otherwise, beam > 1, execute, predictions, errors, compare, unit != "token")
        if any(others) or runtime not in (None, "torch") or trust_code:
            raise UserError("--perplexity looks at examples as they are: leave out what is for predictions, but --json")
        _perplexity(models, data, split, limit, json)
        return
    if otherwise is not None and not direct:
        raise UserError("--otherwise answers what a generator does not: add --direct")
    if direct and beam > 1:
        raise UserError("direct inference answers greedily: leave out --beam")
    if compare is not None:
        _check_compared(models, compare)
    if predictions is not None:
        _check_predictions(predictions, data, models, otherwise)
    whole = load(data)
    split = split or usual_split(whole, "test")
    dataset = whole.split(split)
    pairs = dataset.pairs()[:limit]
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    if not all(references) and (direct or not any(references)):  # no answer would count as a right one
        raise UserError(f"{data}: found an example without a target, expected targets to score by")
    if execute is not None:
        check_executes(references, sources, execute)
    rows = []
    items = []
    # All are opened before one predicts, so that what cannot be is heard of at once.
    opened = [(Generator if direct else Predictor).load(model, runtime, trust_code=trust_code) for model in models]
    second = None if otherwise is None else Predictor.load(otherwise)
    for model, system in zip(models, opened, strict=True):
        console().print(f"{model}: {len(pairs):,} examples", highlight=False, markup=False)
        if isinstance(system, Predictor):
            predicted = _predictions(model, system, sources, beam)
        else:
            predicted = _answers(model, system, sources)
        if otherwise is not None and second is not None:
            predicted = _filled(predicted, otherwise, second, sources)
        rows.append((model, score(predicted, references, sources, execute, unit)))
        if compare is not None:
            items.append([item_f1(*row, unit) for row in zip(predicted, references, strict=True)])
        wrong = [row for row in zip(sources, references, predicted, strict=True) if row[1] != row[2]]
        _print_errors(wrong[:errors], sys.stderr if json else sys.stdout)
        if predictions is not None:
            write_dataset(Dataset.from_pairs(zip(sources, predicted, strict=True), "predicted"), predictions)
    way = {"direct": True, "otherwise": otherwise} if direct else {"beam": beam}
    signature = {"data": data, "split": split, "limit": limit} | way
    compared = [] if compare is None else _compared(models, items, compare)
    if json:
        for model, scores in rows:
            print(dumps({"model": model} | signature | scores.to_dict()))
        for comparison in compared:
            print(dumps(vars(comparison) | signature))
        return
    output().print(_scores(rows))
    said = "|".join(f"{name}:{value}" for name, value in signature.items() if value is not None)
    output().print(f"{said}|{rows[0][1].signature}", markup=False)
    if compared:
        output().print(_comparisons(compared))


def _check_predictions(out: Path, data: str, models: list[str], otherwise: str | None) -> None:
    """Raise unless predictions can go to this file."""
    from compgen.errors import UserError

    if len(models) > 1:
        raise UserError(f"--predictions are of one model, found {len(models)} models")
    if str(out) == "-":
        raise UserError("scores go to standard output: give --predictions the name of a file")
    writable_format(out, None, data, *models, otherwise)


def _print_errors(wrong: Sequence[tuple[list[str], list[str], list[str]]], stream: TextIO) -> None:
    """Sources, references and what was predicted in their place."""
    for source, reference, found in wrong:
        for label, tokens in (("source", source), ("expected", reference), ("found", [*found, "\n"])):
            print(f"{label:<10}{' '.join(tokens)}", file=stream)


def _scores(rows: "list[tuple[str, Scores]]") -> "Table":
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(Column("model", overflow="fold"), "examples", "exact match", "F1", box=None, pad_edge=False)
    if rows[0][1].executes is not None:
        table.add_column("executes")
    for model, scores in rows:
        shares = [scores.exact_match, scores.f1] + ([] if scores.executes is None else [scores.executes])
        table.add_row(Text(model), f"{scores.examples:,}", *(f"{share:.4f}" for share in shares))
    return table


def _check_compared(models: list[str], seeds: int) -> None:
    """Raise unless models are whole systems, each there once, that can be compared."""
    from compgen.errors import UserError
    from compgen.evaluation.significance import need_scipy

    if len(models) % seeds or len(models) == seeds:
        raise UserError(f"--compare {seeds} needs two or more systems of {seeds} models: found {len(models)} models")
    need_scipy()
    again = next((model for at, model in enumerate(models) if model in models[:at]), None)
    if again is not None:
        raise UserError(f"--compare needs systems that differ: found {again} twice")


def _compared(models: list[str], items: list[list[float]], seeds: int) -> list["Comparison"]:
    """All pairs of systems; a system has the name of its first model."""
    import numpy as np

    from compgen.evaluation.significance import compare

    scores = [np.array(row) for row in items]
    return compare({models[at]: scores[at : at + seeds] for at in range(0, len(models), seeds)})


def _comparisons(compared: list["Comparison"]) -> "Table":
    """A table of them."""
    from rich.table import Table
    from rich.text import Text

    table = Table("first", "second", "F1 an item", "p, items", "by Bonferroni", "p, seeds", box=None, pad_edge=False)
    for one in compared:
        ps = [one.items_p, one.corrected_p] + ([] if one.seeds_p is None else [one.seeds_p])
        table.add_row(Text(one.first), Text(one.second), f"{one.mean:+.4f}", *(f"{p:.2g}" for p in ps))
    return table


def _predictions(model: str, predictor: "Predictor", sources: list[list[str]], beam: int) -> list[list[str]]:
    """A predictor's targets; says what it cannot read of the sources."""
    say_remarks(model, predictor, sources)
    return predictor.predict(sources, beam, unknown=True)


def _answers(model: str, generator: "Generator", sources: list[list[str]]) -> list[list[str]]:
    """A generator's targets, empty where it has none; says how many it has."""
    from compgen.progress import Progress

    with Progress("answer", len(sources)) as progress:
        found = generator.answer(sources, watch=progress.update)
    console().print(f"{model}: {len(found) - found.count([]):,} answered", highlight=False, markup=False)
    return found


def _filled(answers: list[list[str]], model: str, predictor: "Predictor", sources: list[list[str]]) -> list[list[str]]:
    """Answers, and where there is none, a predictor's (Qiu et al. 2022, appendix C.2, where a grammar answers)."""
    lacking = [source for source, answer in zip(sources, answers, strict=True) if not answer]
    more = iter(_predictions(model, predictor, lacking, 1) if lacking else [])
    return [answer or next(more) for answer in answers]


def _perplexity(models: list[str], data: str, split: str | None, limit: int | None, json: bool) -> None:
    """Print the bound of each generator."""
    from json import dumps

    from rich.table import Column, Table
    from rich.text import Text

    from compgen.cli.common import need_torch
    from compgen.data.catalog import load
    from compgen.data.examples import Dataset

    need_torch("perplexity of a generator")
    from compgen.recombine.perplexity import bound
    from compgen.trained.checkpoint import Checkpoint

    whole = load(data)
    split = split or usual_split(whole, "test")
    dataset = whole.split(split)
    dataset = dataset if limit is None else Dataset(dataset.frame.head(limit))
    asked = {"data": data, "split": split, "limit": limit}
    figures_of = ("examples", "with a neighborhood", "nats a token", "perplexity")
    table = Table(Column("model", overflow="fold"), *figures_of, box=None, pad_edge=False)
    checkpoints = [Checkpoint.load(Path(model)) for model in models]  # what cannot be opened is heard of at once
    for model, checkpoint in zip(models, checkpoints, strict=True):
        found = bound(checkpoint, dataset)
        figures = (found.examples, found.covered, found.nats / found.tokens, found.perplexity)
        if json:
            names = ("examples", "covered", "nats_per_token", "perplexity")
            print(dumps({"model": model} | asked | {"tokens": found.tokens} | dict(zip(names, figures, strict=True))))
        table.add_row(Text(model), *map("{:,}".format, figures[:2]), *map("{:.4f}".format, figures[2:]))
    if not json:
        output().print(table)
        said = "|".join(f"{name}:{value}" for name, value in asked.items() if value is not None)
        output().print(f"{said}|bound:neighborhoods,all-tuples", markup=False)
