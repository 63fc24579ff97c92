"""The verbs in Python: train, export, predict and more. The command line goes by these, or by what they call.

Nothing here imports torch until something needs it: sampling from a bundle does not.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compgen.errors import Remark, UserError, checked_draws
from compgen.sampling.output import Sample
from compgen.trained.generator import Generator
from compgen.trained.limits import token_lists
from compgen.trained.predictor import Predictor

if TYPE_CHECKING:
    from compgen.data.checks import Finding
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores
    from compgen.evaluation.quality import Quality

__all__ = [
    "Generator",
    "Predictor",
    "Sample",
    "augment",
    "check",
    "evaluate",
    "export_bundle",
    "load_dataset",
    "mask",
    "measure_quality",
    "predict",
    "select",
    "split",
    "train_generator",
    "train_predictor",
    "train_pretrained",
    "unmask",
    "write_dataset",
]


def load_dataset(
    spec: str | Path, format: str | None = None, *, source: str | None = None, target: str | None = None
) -> "Dataset":
    """A file or folder, `-` for standard input, or NAME/SPLIT of a known data set; see `compgen.data.catalog.load`.

    `source` and `target` name the columns of a table; by default they are found by usual names.
    """
    from compgen.data.catalog import load
    from compgen.data.named import Columns

    return load(str(spec), format, columns=Columns(source=source, target=target))


def write_dataset(dataset: "Dataset", path: str | Path, format: str | None = None) -> None:
    """Write a dataset to a file or folder, whole or not at all; see `compgen.data.formats.write_dataset`."""
    from compgen.data.formats import write_dataset

    write_dataset(dataset, path, format)


def measure_quality(made: "Dataset | str | Path", training: "Dataset | str | Path") -> "Quality":
    """What made examples are like beside those they were made from; see `compgen.evaluation.quality.quality`.

    `print("\\n".join(found.warnings()))` says what is wrong with them, if anything.
    """
    from compgen.data.catalog import given
    from compgen.evaluation.quality import quality

    return quality(given(made), given(training))


def check(data: "Dataset | str | Path") -> "list[Finding]":
    """What is wrong, or odd, in a table or a dataset: findings with severity, lines (or examples) and advice.

    Raises:
        DataError: there is no such file, or no line of it can be understood.
    """
    from compgen.data.catalog import given
    from compgen.data.checks import findings, rows_of
    from compgen.data.lenient import read_table
    from compgen.data.named import Columns

    if not isinstance(data, str | Path):
        return findings(rows_of(given(data)))
    table = read_table(str(data), Columns())
    return [*table.findings, *findings(table.rows)]


def augment(
    data: "Dataset | str | Path",
    method: str,
    count: int | None = None,
    seed: int = 0,
    *,
    split: str | None = "train",
    **options: Any,
) -> "Dataset":
    """Make more examples of `data` by a method, as `cgen augment METHOD` does; return the new ones alone.

    Where there are fewer than asked for, a `Remark`, which is a warning, says why.

    Args:
        data: what to learn from; or a file, or NAME/SPLIT of a known data set.
        method: one of `compgen.augmenters.registry.summaries()`, for instance geca, csl or stemcorrupt.
        count: how many; by default as many as the method makes.
        seed: fixes all that is drawn.
        split: of several, the one to learn from; None for all of them.
        options: of the method, as in `cgen augment METHOD --help`.

    Raises:
        UserError: there is no such method, option or split, or nothing can be made of the data.
    """
    from compgen.augmenters.registry import make
    from compgen.data.catalog import given

    fitted = make(method, **options).fit(given(data).part(split), seed)
    made = fitted.sample(count, seed)
    if count is not None and len(made) < count:
        warnings.warn(f"{method}: {fitted.described()}", Remark, stacklevel=2)
    return made


def split(
    data: "Dataset | str | Path",
    by: str = "template",
    train: float | None = None,
    *,
    test: float | None = None,
    dev: float = 0,
    seed: int = 0,
    **options: Any,
) -> "Dataset":
    """Divide examples anew into `train` and `test`, and `dev` if asked for, as `cgen data split` does.

    `by` is random, template, length, tmcd or mcd; sizes are numbers of examples, or shares below 1. For options and
    errors see `compgen.data.splits.divided`.
    """
    from compgen.data.catalog import given
    from compgen.data.splits import divided

    return divided(given(data), by, train, test, dev=dev, seed=seed, **options)


def select(
    candidates: "Dataset | str | Path",
    count: int,
    by: str = "umt+loss",
    *,
    model: "str | Path | Predictor | None" = None,
    template: str | None = None,
    seed: int = 0,
    split: str | None = "train",
    quiet: bool = True,
) -> "Dataset":
    """Select synthetic examples to train on, as `cgen select` does; see `compgen.augmenters.selection`.

    Args:
        candidates: of any augmenter; or a file.
        count: how many.
        by: a strategy of `compgen.augmenters.selection.STRATEGIES`.
        model: for strategies that use losses: a predictor that was trained on the original examples.
        template: what selected examples should differ in: tags, shape, length or template (the column of that name); by
            default tags, or shape where there are none.
        seed: of what is drawn.
        split: of several, the one to select from; None for all of them.
        quiet: without progress.

    Raises:
        UserError: there is no such strategy, template or split, too few candidates, or a model that is not used.
    """
    from compgen.augmenters import selection
    from compgen.data.catalog import given
    from compgen.progress import Progress

    some = given(candidates).part(split)
    templates = selection.templates_of(some, count, by)  # an error now, not after computing losses
    strategy = selection.STRATEGIES[by]
    if bool(strategy.sign) != (model is not None):
        raise UserError(f"{by} {'needs a model' if model is None else 'uses no losses: leave out the model'}")
    if template is not None and templates is None:
        raise UserError(f"{by} uses no templates: leave out the template")
    if template is not None:
        templates = selection.templates_by(some, template)
    losses = None
    if model is not None:
        predictor = Predictor.load(model) if isinstance(model, str | Path) else model
        _warn(predictor, some.frame["source"].to_list())
        with Progress("losses", len(some), quiet=quiet) as progress:
            losses = predictor.losses(some, watch=progress.update)
    return selection.select(some, count, by, templates=templates, losses=losses, seed=seed)


def mask(
    data: "Dataset | str | Path", names: "Mapping[tuple[str, ...], str] | None" = None, prefix: str = "name"
) -> "Dataset":
    """Put placeholders for names, alike in sources and targets, as `cgen data mask` does.

    Args:
        data: sources and targets.
        names: the tokens of each, and its type; by default what sources and targets share, of type `prefix`.
        prefix: what placeholders of names without a type begin with.

    Returns:
        The data with a column `names`, by which `unmask` puts names back.

    Raises:
        UserError: nothing is shared, or a type cannot be one.
    """
    from compgen.data import placeholders
    from compgen.data.catalog import given

    some = given(data)
    return placeholders.mask(some, placeholders.shared_names(some, usual=prefix) if names is None else dict(names))


def unmask(predicted: "Dataset | str | Path", masked: "Dataset | str | Path") -> "Dataset":
    """Put names back in sources and predicted targets, which are in the order of `masked`, by `mask`."""
    from compgen.data.catalog import given
    from compgen.data.placeholders import unmasked

    return unmasked(given(predicted), given(masked))[0]


def evaluate(
    model: "str | Path | Predictor | Iterable[str | Sequence[str]]",
    data: "Dataset | str | Path",
    split: str | None = "test",
    beam: int = 1,
) -> "Scores":
    """Score a model's answers, or given ones, against the targets of some examples.

    Args:
        model: a predictor, or where one is; or a target for each example, a string or a list of tokens.
        data: what is asked.
        split: of several, the one to ask; None for all of them.
        beam: the width of a predictor's beam search; 1 is greedy.

    Raises:
        UserError: there is nothing to score, or there are not as many answers as examples.
    """
    from compgen.data.catalog import given
    from compgen.evaluation.metrics import score

    asked = given(data).part(split, "test")
    sources, targets = ([list(example[side]) for example in asked.pairs()] for side in (0, 1))
    if isinstance(model, str | Path):
        model = Predictor.load(model)
    if isinstance(model, Predictor):
        answers = predict(model, sources, beam)
    else:
        answers = token_lists(answer.split() if isinstance(answer, str) else answer for answer in model)
    if not targets or len(answers) != len(targets):
        raise UserError(f"found {len(answers):,} answers, and {len(targets):,} examples: expected one for each")
    return score(answers, targets)


def train_generator(
    dataset: "Dataset | str | Path",
    config: str,
    out: str | Path,
    overrides: Sequence[str] = (),
    *,
    split: str | None = "train",
    **options: Any,
) -> dict[str, Any]:
    """Train a generator by a named configuration; return what it was trained on and the result.

    `dataset` may be a name, as for `load_dataset`. Of several splits it learns from `split`; from all if that is None.
    Options (seed, resume, device, quiet, name) as in `compgen.recombine.training.train_generator`.
    """
    from compgen.configuration import load_config
    from compgen.data.catalog import given
    from compgen.recombine.config import RecombineConfig
    from compgen.recombine.training import train_generator

    described = load_config(RecombineConfig, config, list(overrides))
    checkpoint, _ = train_generator(given(dataset).part(split), described, Path(out), **_checked(options))
    return checkpoint.trained_on


def train_predictor(
    dataset: "Dataset | str | Path",
    config: str,
    out: str | Path,
    overrides: Sequence[str] = (),
    *,
    architecture: str = "recurrent",
    split: str | None = "train",
    **options: Any,
) -> dict[str, Any]:
    """Train a predictor by a named configuration, with `augmented=` data or without; `split` and result as above.

    `architecture` is a tag of `compgen.trained.architectures`: recurrent, transformer.
    """
    from compgen.configuration import load_config
    from compgen.data.catalog import given
    from compgen.training.predictors import config_of, train_predictor

    described = load_config(config_of(architecture), config, list(overrides))
    checkpoint, _ = train_predictor(given(dataset).part(split), described, Path(out), **_checked(options))
    return checkpoint.trained_on


def train_pretrained(
    dataset: "Dataset | str | Path",
    model: str,
    config: str,
    out: str | Path,
    overrides: Sequence[str] = (),
    *,
    split: str | None = "train",
    **options: Any,
) -> dict[str, Any]:
    """Fine-tune a pretrained encoder-decoder by a named configuration; `split` and result as of `train_generator`.

    `model` is a folder or a name on the Hugging Face hub. Options (augmented, seed, resume, device, quiet, name) as in
    `compgen.training.pretrained.train_pretrained`.
    """
    from compgen.configuration import load_config
    from compgen.data.catalog import given
    from compgen.training.config import PretrainedConfig
    from compgen.training.pretrained import train_pretrained

    described = load_config(PretrainedConfig, config, list(overrides))
    return train_pretrained(given(dataset).part(split), model, described, Path(out), **_checked(options))


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a training: the seed as a number of Python's, as records are to hold it; augmented examples read."""
    from compgen.data.catalog import given

    checked = dict(options)
    if "seed" in options:
        _, checked["seed"] = checked_draws("training", None, options["seed"])
    if options.get("augmented") is not None:
        checked["augmented"] = given(options["augmented"])
    return checked


def predict(
    model: "str | Path | Predictor | Generator",
    sources: Iterable[str | Sequence[str]],
    beam: int = 1,
    *,
    direct: bool = False,
) -> list[Any]:
    """Predict the target of each source: a string for a string, with spaces between tokens, else a list of tokens.

    Args:
        model: an opened one, or where it is, as for `Predictor.load`; tokens that it does not know are a `Remark`.
        sources: of which each is a string with spaces between tokens, or a list of tokens.
        beam: the width of beam search; 1 is greedy.
        direct: let a generator or a grammar answer; a source that it has no answer to gets an empty target. So does a
            source without tokens, in any case.

    Raises:
        UserError: the model cannot be used, or `sources` is one string.
    """
    if isinstance(sources, str):
        raise UserError(f"sources {sources!r:.40}: found a string, expected a list of sources")
    if isinstance(model, str | Path):
        model = Generator.load(model) if direct else Predictor.load(model)
    if isinstance(model, Generator) and beam != 1:
        raise UserError("direct inference answers greedily: leave out beam")
    asked = list(sources)
    tokens = token_lists(source.split() if isinstance(source, str) else source for source in asked)
    some = [source for source in tokens if source]
    left = iter(model.answer(some) if isinstance(model, Generator) else _predicted(model, some, beam))
    found = [next(left) if source else [] for source in tokens]
    return [
        " ".join(target) if isinstance(source, str) else target for source, target in zip(asked, found, strict=True)
    ]


def _predicted(model: "Predictor", sources: list[list[str]], beam: int) -> list[list[str]]:
    _warn(model, sources)
    return model.predict(sources, beam, unknown=True)


def _warn(model: "Predictor", sources: list[list[str]]) -> None:
    """Warn of what a predictor cannot read of its sources."""
    for remark in model.remarks(sources):
        warnings.warn(remark, Remark, stacklevel=4)


def export_bundle(checkpoint: str | Path, out: str | Path, **options: Any) -> Any:
    """Export a checkpoint or a grammar to a verified bundle; see `compgen.export.bundle_writer.export`."""
    from compgen.export.bundle_writer import export

    return export(Path(checkpoint), Path(out), **options)
