"""`cgen evaluate`: how well predictors predict."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from compgen.cli.answering import TOGETHER, Answering, Sequences, second_model
from compgen.cli.common import (
    DataArgument,
    JsonOption,
    TrustOption,
    check_order,
    check_out,
    check_together,
    load_usual,
    need_torch,
    say,
    show,
    show_json,
    signature,
    table,
)
from compgen.cli.options import argument, bounds, option, with_options
from compgen.cli.quality import say_warnings
from compgen.data.named import Columns
from compgen.errors import UserError
from compgen.progress import Progress

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores
    from compgen.evaluation.significance import Comparison

    Compared = list[tuple[str, Comparison]]  # by which measure

Measured = dict[str, list[float]]  # by measure, the score of each item


class Options(BaseModel):
    """The options of `cgen evaluate`."""

    split: str | None = option(None, "Use this split of DATA. By default, test or the only one.", metavar="S")
    beam: int = option(1, "Width of beam search; 1 is greedy decoding.", **bounds("beam"))
    together: bool = option(
        False, "Also score the answers of all MODELs together, as `cgen predict --with` gives them."
    )
    direct: bool = option(
        False,
        "Let generators answer: a network with prototypes retrieved for each source (R&R, appendix E), a grammar by "
        "its best parse.",
    )
    execute: str | None = option(
        None,
        "Also execute each prediction, and score how many give their source. scan: for predictors of SCAN commands "
        "from actions (NACS). Predictions that cannot be executed count as wrong.",
        metavar="LANGUAGE",
    )
    otherwise: str | None = option(
        None,
        "With --direct: use this predictor if the generator has no answer (no parse, or unknown tokens).",
        metavar="PREDICTOR",
    )
    perplexity: bool = option(
        False,
        "Score generators (.pt) by perplexity: a bound on the probability of whole examples (over "
        "neighborhoods, R&R eq. 4).",
    )
    unit: str = option(
        "token",
        "What F1 counts: token; analysis (of words: the lemma and each tag); or analysis-words (each word of the "
        "lemma, as in R&R's tables).",
        metavar="U",
    )
    predictions: Path | None = option(
        None, "With one MODEL, or --together: write sources and predicted targets to this file.", metavar="OUT"
    )
    errors: int = option(0, "Print the first N wrong predictions.", ge=0, metavar="N")
    compare: int | None = option(
        None,
        "Also compare systems, each made up of SEEDS successive models (1: each model is a system), by paired t-tests "
        "on exact match and F1: over all items, with Bonferroni correction, and over the means of the seeds.",
        ge=1,
        metavar="SEEDS",
    )
    as_json: JsonOption = False
    runtime: str | None = option(
        None, "For a bundle: onnx, native (the C++ runner) or torchscript. For anything else: torch."
    )
    trust_code: TrustOption = False
    limit: int | None = option(None, "Use only this many examples, drawn at random but the same each time.", ge=1)

    def for_predictions(self) -> bool:
        """Whether an option is given that only applies to predictions."""
        names = ("direct", "together", "otherwise", "execute", "predictions", "errors", "compare", "trust_code")
        others = self.beam > 1 or self.unit != "token" or self.runtime not in (None, "torch")
        return others or any(getattr(self, name) for name in names)


@with_options
def evaluate(
    models: Annotated[
        list[str],
        argument(
            "MODEL",
            "Predictors or, with --direct or --perplexity, generators: checkpoints (.pt), bundles, folders of "
            "`cgen train pretrained` or, with --direct, grammars.",
        ),
    ],
    data: DataArgument,
    options: Options,
    columns: Columns,
) -> None:
    """Predict the targets of DATA and score them by exact match and token F1 and, with --execute, by their effect.

    Examples: cgen evaluate baseline.pt augmented.pt scan/jump

        cgen evaluate seed0.pt seed1.pt seed2.pt test.tsv --together
    """
    from compgen.api import Generator, Predictor
    from compgen.data.examples import PREDICTED, Dataset
    from compgen.data.formats import write_dataset
    from compgen.evaluation.metrics import check_unit, spaces_alone
    from compgen.trained.committee import Committee

    _check(models, data, options)
    if options.perplexity:
        _perplexity(models, data, options, columns)
        return
    whole, sources, targets, split = _examples(data, options, columns)
    check_unit(targets, options.unit)
    # All models are opened before one predicts, so that errors are reported at once.
    kind = Generator if options.direct else Predictor
    systems = [kind.load(model, options.runtime, trust_code=options.trust_code) for model in models]
    second = second_model(options.otherwise, options.runtime)
    named = list(zip(models, systems, strict=True))
    if options.together:
        named.append((TOGETHER, Committee([one for one in systems if isinstance(one, Predictor)], models)))
    _say_learnt([*named, *([(str(options.otherwise), second)] if second else [])], data, whole)
    rows, items = [], []
    for model, system in named:
        say(f"{model}: {len(sources):,} examples")
        answering = Answering(model, system, options.otherwise, second, beam=options.beam)
        predicted = _predicted(answering, sources)
        scores, measured = _scored(sources, targets, predicted, options)
        say_warnings([f"{model}: {remark}" for remark in spaces_alone(predicted, targets)])
        rows.append((model, scores))
        items.append(measured)
    way = {"direct": True, "otherwise": options.otherwise} if options.direct else {"beam": options.beam}
    asked = {"data": data, "split": split, "limit": options.limit} | way
    compared = [] if options.compare is None else _compared(models, items[: len(models)], options.compare)
    try:
        if options.predictions is not None:  # of the last model: the only one, or all together
            written = Dataset.from_pairs(zip(sources, predicted, strict=True), PREDICTED)
            write_dataset(written, options.predictions)
    finally:  # scores took long to compute: they are printed even if the file cannot be written
        _print_scores(rows, compared, asked, options.as_json)


def _check(models: list[str], data: str, options: Options) -> None:
    """Raise UserError for options that exclude each other, before any work."""
    from compgen.evaluation.metrics import SIGNATURES

    check_order(models[0], data)
    refused = {
        f"--unit {options.unit}: expected one of {', '.join(SIGNATURES)}": options.unit not in SIGNATURES,
        "--perplexity scores examples as they are: leave out all options for predictions but --json": options.perplexity
        and options.for_predictions(),
        "predictors answer together, generators do not: leave out --direct or --together": options.together
        and options.direct,
        f"--together: found {models[0]} alone, expected two or more predictors": options.together and len(models) == 1,
        "--otherwise answers what a generator cannot: add --direct": options.otherwise is not None
        and not options.direct,
        "direct inference answers greedily: leave out --beam": options.direct and options.beam > 1,
    }
    check_together(refused)
    if options.compare is not None:
        _check_compared(models, options.compare)
    if options.predictions is not None:
        if len(models) > 1 and not options.together:
            raise UserError(f"--predictions are of one model, found {len(models)} models: name one, or add --together")
        if str(options.predictions) == "-":
            raise UserError("scores go to standard output: give --predictions the name of a file")
        check_out(options.predictions, None, data, *models, options.otherwise)


def _check_compared(models: list[str], seeds: int) -> None:
    """Raise UserError unless the models are two or more whole systems, and no model is named twice."""
    from compgen.evaluation.significance import need_scipy

    if len(models) % seeds or len(models) == seeds:
        raise UserError(f"--compare {seeds} needs two or more systems of {seeds} models: found {len(models)} models")
    need_scipy()
    again = next((model for at, model in enumerate(models) if model in models[:at]), None)
    if again is not None:
        raise UserError(f"--compare needs systems that differ: found {again} twice")


def _examples(data: str, options: Options, columns: Columns) -> "tuple[Dataset, Sequences, Sequences, str]":
    """A split, the sources and targets of it to predict, and its name."""
    from compgen.evaluation.metrics import check_executes, check_scorable, most_right

    whole, split = load_usual(data, options.split, "test", columns)
    dataset = _limited(whole, options.limit)
    pairs = dataset.pairs()
    if options.compare is not None and len(pairs) < 2:
        raise UserError(f"{data}: --compare needs two test examples or more, found {len(pairs)}")
    sources, targets = (dataset.frame[side].to_list() for side in ("source", "target"))
    try:
        check_scorable(dataset, every=options.direct)
    except UserError as error:
        raise UserError(f"{data}: {error}") from error
    if options.execute is not None:
        check_executes(targets, sources, options.execute)
    for remark in most_right(pairs):
        say(f"{data}: {remark}")
    return whole, sources, targets, split


def _limited(dataset: "Dataset", limit: int | None) -> "Dataset":
    """Some examples of a dataset, drawn at random and in its order, or all."""
    if limit is None or limit >= len(dataset):
        return dataset
    from compgen.data.examples import Dataset
    from compgen.data.random import Purpose, stream

    return Dataset(dataset.frame[sorted(stream(Purpose.LIMIT, 0).permutation(len(dataset))[:limit])])


def _predicted(answering: Answering, sources: Sequences) -> Sequences:
    """The targets that a model predicts."""
    from compgen.api import Predictor

    predicts = isinstance(answering.system, Predictor)
    with Progress("answer", len(sources), quiet=predicts) as progress:
        found = answering.to(sources, progress.update)
    if not predicts:
        say(f"{answering.name}: {answering.answered:,} answered")
    return [ranked[0][0] for ranked in found]


def _scored(
    sources: Sequences, references: Sequences, predicted: Sequences, options: Options
) -> "tuple[Scores, Measured]":
    """Score predictions, and print errors if asked to; also return items' scores for --compare."""
    from compgen.evaluation.metrics import item_f1, score

    wrong = [row for row in zip(sources, references, predicted, strict=True) if row[1] != row[2]]
    for row in wrong[: options.errors]:
        for label, tokens in zip(("source", "expected", "found"), row, strict=True):
            print(f"{label:<10}{' '.join(tokens)}", file=sys.stderr if options.as_json else sys.stdout)
        print(file=sys.stderr if options.as_json else sys.stdout)
    items: Measured = {}
    if options.compare is not None:
        answers = list(zip(predicted, references, strict=True))
        items["exact match"] = [float(answer == reference) for answer, reference in answers]
        items["F1 per item"] = [item_f1(*answer, options.unit) for answer in answers]
    return score(predicted, references, sources, options.execute, options.unit), items


def _say_learnt(named: Sequence[tuple[str, Any]], data: str, dataset: "Dataset") -> None:
    """Warn where a model is scored on examples that it has learnt from."""
    for model, system in named:
        say_warnings([f"{model}: {data}: {remark}" for remark in system.memory(dataset)])


def _compared(models: list[str], items: list[Measured], seeds: int) -> "Compared":
    """Compare all pairs of systems by each measure; a system has the name of its first model."""
    import numpy as np

    from compgen.evaluation.significance import compare

    found = []
    for measure in items[0]:
        scores = [np.array(measured[measure]) for measured in items]
        systems = {models[at]: scores[at : at + seeds] for at in range(0, len(models), seeds)}
        found += [(measure, one) for one in compare(systems)]
    return found


def _print_scores(rows: "list[tuple[str, Scores]]", compared: "Compared", asked: dict[str, Any], json: bool) -> None:
    if json:
        for model, scores in rows:
            show_json({"model": model} | asked | scores.to_dict())
        for measure, comparison in compared:
            show_json({"measure": measure} | vars(comparison) | asked)
        return
    headings = ["model", "examples", "exact match", "F1"] + ["executes"] * (rows[0][1].executes is not None)
    cells = []
    for model, scores in rows:
        shares = [scores.exact_match, scores.f1] + ([] if scores.executes is None else [scores.executes])
        cells.append([model, f"{scores.examples:,}", *map(_written, shares)])
    show(table(headings, cells), signature(asked, rows[0][1].signature))
    if compared:
        show(_comparisons(compared))


def _written(share: float) -> str:
    """A share to four digits. 1.0000 means all, and 0.0000 none."""
    if 0.99995 <= share < 1:
        return ">0.9999"
    return "<0.0001" if 0 < share < 0.00005 else f"{share:.4f}"


def _comparisons(compared: "Compared") -> Any:
    """Build a table of comparisons."""
    cells = []
    for measure, one in compared:
        ps = [one.items_p, one.corrected_p] + ([] if one.seeds_p is None else [one.seeds_p])
        cells.append([measure, one.first, one.second, f"{one.mean:+.4f}", *(f"{p:.2g}" for p in ps)])
    return table(("measure", "from", "to", "gain", "p, items", "by Bonferroni", "p, seeds"), cells)


def _perplexity(models: list[str], data: str, options: Options, columns: Columns) -> None:
    """Print the bound on the perplexity of each generator."""
    need_torch("perplexity of a generator")
    from compgen.recombine.perplexity import bound
    from compgen.trained.checkpoint import Checkpoint

    dataset, split = load_usual(data, options.split, "test", columns)
    dataset = _limited(dataset, options.limit)
    asked = {"data": data, "split": split, "limit": options.limit}
    cells = []
    checkpoints = [Checkpoint.load(Path(model)) for model in models]  # all, so that errors are reported at once
    for model, checkpoint in zip(models, checkpoints, strict=True):
        found = bound(checkpoint, dataset)
        nats = found.nats / found.tokens
        if options.as_json:
            figures = {"examples": found.examples, "covered": found.covered, "nats_per_token": nats}
            show_json({"model": model} | asked | {"tokens": found.tokens} | figures | {"perplexity": found.perplexity})
        cells.append([model, f"{found.examples:,}", f"{found.covered:,}", f"{nats:.4f}", f"{found.perplexity:.4f}"])
    if not options.as_json:
        headings = ("model", "examples", "with a neighborhood", "nats a token", "perplexity")
        show(table(headings, cells), signature(asked, "bound:neighborhoods,all-tuples"))
