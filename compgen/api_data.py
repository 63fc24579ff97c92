"""The verbs for examples in Python: load, check, split, augment, select, mask and more.

The command line calls these, or what they call. Nothing here imports torch until something needs it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compgen.errors import UserError, checked_draws, tell
from compgen.trained.predictor import Predictor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from compgen.data.checks import Finding
    from compgen.data.compounds import Divergences, Inventory
    from compgen.data.examples import Dataset
    from compgen.data.named import Columns
    from compgen.evaluation.overlap import Overlap
    from compgen.evaluation.quality import Quality


def load_dataset(
    spec: str | Path, format: str | None = None, *, source: str | None = None, target: str | None = None
) -> "Dataset":
    """A file or folder, `-` for standard input, or NAME/SPLIT of a known data set; see `compgen.data.catalog.load`.

    `source` and `target` name the columns of a table; by default they are found by usual names.

    Raises:
        DataError: there is no such file, data set or column, or it cannot be read.
        UserError: `spec` is neither a string nor a path.
    """
    from compgen.data.catalog import load

    if not isinstance(spec, str | Path):
        raise UserError(
            f"found {type(spec).__name__}, expected the name of a file or of known data; of pairs, Dataset.from_pairs "
            "makes a dataset, of a Polars frame Dataset(frame)"
        )
    return load(str(spec), format, columns=_columns(source, target))


def _columns(source: str | None, target: str | None) -> "Columns":
    """Return the columns of a table by their names; raise UserError for a name that is no string."""
    from compgen.data.named import Columns

    for name in (source, target):
        if name is not None and not isinstance(name, str):
            raise UserError(f"found the column {name!r:.60}, expected its name")
    return Columns(source=source, target=target)


def write_dataset(dataset: "Dataset | str | Path", path: str | Path, format: str | None = None) -> None:
    """Write a dataset to a file or folder, whole or not at all; see `compgen.data.formats.write_dataset`."""
    from compgen.data.catalog import given
    from compgen.data.formats import write_dataset

    write_dataset(given(dataset), path, format)


def measure_quality(
    made: "Dataset | str | Path",
    training: "Dataset | str | Path",
    *,
    split: str | None = "train",
    train_split: str | None = "train",
) -> "Quality":
    """Measure made examples against those that they were made from, as `cgen data quality` does.

    `print("\\n".join(found.warnings()))` says what is wrong with them, if anything. See
    `compgen.evaluation.quality.quality`.

    Args:
        made: the examples to judge.
        training: the data that they were made from.
        split: the split of `made` to judge, if there are several; None for all of them.
        train_split: the split of `training` that they were made from, if there are several; None for all of them.
    """
    from compgen.data.catalog import given
    from compgen.evaluation.quality import quality

    return quality(given(made).part(split), given(training).part(train_split))


def measure_overlap(
    test: "Dataset | str | Path",
    training: "Dataset | str | Path | None" = None,
    *,
    split: str | None = "test",
    train_split: str | None = "train",
) -> "Overlap":
    """How much of test data is in the training data, as `cgen data overlap` does: examples, and pairs of tokens.

    Args:
        test: the data to test on.
        training: the data to train on, perhaps with augmented examples added; by default those of `test`.
        split: the split of `test` to test on, if there are several; None for all of them.
        train_split: the split of `training` to train on, if there are several; None for all of them.

    Raises:
        UserError: there is no such split, or test data would be compared with themselves, or have no tokens.
    """
    from compgen.evaluation.overlap import overlap

    return overlap(*_apart(test, training, split, train_split))


def measure_divergence(
    test: "Dataset | str | Path",
    training: "Dataset | str | Path | None" = None,
    *,
    split: str | None = "test",
    train_split: str | None = "train",
    inventory: "Inventory | None" = None,
) -> "Divergences":
    """How much test and training data diverge in atoms and in compounds, as `cgen data divergence` does.

    Arguments and errors are those of `measure_overlap`. The command measures all splits but `train` unless told; here
    `split` is `test`, without `dev`. `inventory` says what atoms and compounds are: `Trees()` or
    `Ngrams()` of `compgen.data.compounds`; by default, trees if most distinct targets have brackets.
    """
    from compgen.data.compounds import INVENTORY, Inventory, measure, remark_on_few, usual_inventory

    if not isinstance(inventory, Inventory | None):
        raise UserError(f"inventory {inventory!r:.40}: expected {INVENTORY}")
    tested, trained = _apart(test, training, split, train_split)
    every = trained + tested
    used = usual_inventory(every) if inventory is None else inventory
    remark_on_few(used.compounds(every))
    return measure(trained, tested, used)


def _apart(
    test: "Dataset | str | Path", training: "Dataset | str | Path | None", split: str | None, train_split: str | None
) -> "tuple[Dataset, Dataset]":
    """Test and training data; UserError if they are the same part of the same data."""
    from compgen.data.catalog import given

    whole = given(test)
    tested = whole.part(split, "test")
    trained = (whole if training is None else given(training)).part(train_split)
    if training is None and (tested is trained or split == train_split):
        raise UserError("test data would be compared with themselves: give training data, or other splits")
    return tested, trained


def check(data: "Dataset | str | Path", *, source: str | None = None, target: str | None = None) -> "list[Finding]":
    """What is wrong, or odd, in a table or a dataset: findings with severity, lines (or examples) and advice.

    `source` and `target` name the columns of a table, as for `load_dataset`.

    Raises:
        DataError: there is no such file or column, or no line of it can be understood.
        UserError: columns are named for a `Dataset`, which has no others than source and target.
    """
    from compgen.data.catalog import given
    from compgen.data.checks import Finding, findings, rows_of, unsplit
    from compgen.data.lenient import read_table

    columns = _columns(source, target)
    if not isinstance(data, str | Path):
        if columns.given:
            raise UserError("columns are named of a file: a Dataset has source and target")
        dataset = given(data)
        rows = rows_of(dataset)
        none = Finding("error", "no examples", [], "see what made the dataset: a filter may have kept nothing")
        return [*unsplit(dataset), *findings(rows)] if rows.height else [none]
    table = read_table(str(data), columns)
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

    Where there are fewer than asked for, a `Remark`, which is a warning, says why. So does what the method warns of.

    Args:
        data: what to learn from; or a file, or NAME/SPLIT of a known data set.
        method: one of `compgen.augmenters.registry.summaries()`, for instance geca, csl or stemcorrupt.
        count: how many to make; the default depends on the method.
        seed: fixes all that is drawn.
        split: the split to learn from, if there are several; None for all of them.
        options: of the method, and `config`, as in `cgen augment METHOD --help`.

    Raises:
        UserError: there is no such method, option or split, or nothing can be made of the data.
    """
    from compgen.augmenters.base import Augmenter
    from compgen.augmenters.registry import find, make, summaries
    from compgen.configuration import check_options, names_of, settings_of
    from compgen.data.catalog import given

    if isinstance(data, str) and data in summaries() and (not isinstance(method, str) or method not in summaries()):
        raise UserError(f"augment: found the method {data!r} first, expected the data: augment(data, {data!r})")
    known = [*names_of(augment)[2:], "config", *settings_of(find(method).options_type)]
    others = {*names_of(Augmenter.__init__), "overrides"}  # the augmenter refuses `overrides` with advice of its own
    check_options(method, [name for name in options if name not in others], known)
    fitted = make(method, **options).fit(given(data).part(split), seed)
    made = fitted.sample(count, seed)
    if count is not None and len(made) < count:
        tell(f"{method}: {fitted.described()}")
    for warning in fitted.warnings():
        tell(f"{method}: {warning}")
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
    errors see `compgen.data.splits.divided`. Test examples that training knows are a `Remark`.
    """
    from compgen.data.catalog import given
    from compgen.data.splits import divided, remarks

    parts = divided(given(data), by, train, test, dev=dev, seed=seed, **options)
    for remark in remarks(parts):
        tell(remark)
    return parts


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

    As published, a repeated candidate may be selected as often as it occurs; a `Remark` says if one is.

    Args:
        candidates: the examples of any augmenter, or their file.
        count: how many to select.
        by: a strategy of `compgen.augmenters.selection.STRATEGIES`.
        model: for strategies that use losses: a predictor that was trained on the original examples.
        template: what selected examples should differ in: tags, shape, length or template (the column of that name); by
            default tags, or shape where there are none.
        seed: fixes all that is drawn.
        split: the split to select from, if there are several; None for all of them.
        quiet: without progress.

    Raises:
        UserError: there is no such strategy, template or split; there are too few candidates; or a model is given that
            the strategy does not use, or none where it needs one, as the default does.
    """
    from compgen.augmenters import selection
    from compgen.data.catalog import given

    some = given(candidates).part(split)
    wanted, fixed = checked_draws("select", count, seed)
    templates = selection.templates_of(some, wanted or 0, by)  # an error now, not after computing losses
    if template is not None and templates is None:
        raise UserError(f"{by} uses no templates: leave out the template")
    if template is not None:
        templates = selection.templates_by(some, template)
    losses = _losses(some, by, model, quiet)
    chosen = selection.select(some, wanted or 0, by, templates=templates, losses=losses, seed=fixed)
    if (distinct := len(chosen.unique())) < len(chosen):
        tell(
            f"{distinct:,} of {len(chosen):,} selected examples are distinct, and {len(some.unique()):,} of "
            f"{len(some):,} candidates: `cgen check DATA --fix OUT --keep-targets` writes them without repetitions"
        )
    return chosen


def _losses(
    candidates: "Dataset", by: str, model: "str | Path | Predictor | None", quiet: bool
) -> "NDArray[np.float64] | None":
    """Return the losses that a strategy selects by; None if it uses none."""
    from compgen.augmenters.selection import STRATEGIES
    from compgen.progress import Progress

    if not STRATEGIES[by].sign:
        if model is not None:
            raise UserError(f"{by} uses no losses: leave out the model")
        return None
    if model is None:
        without = ", ".join(name for name, strategy in STRATEGIES.items() if not strategy.sign)
        raise UserError(
            f"{by} needs a model: name a predictor by --model (in Python model=), or choose --by (by=) one of {without}"
        )
    predictor = Predictor.load(model) if isinstance(model, str | Path) else model
    if not isinstance(predictor, Predictor):
        raise UserError(f"found {type(model).__name__} {model!r:.60}, expected a predictor: Predictor.load opens one")
    for remark in predictor.remarks(candidates.frame["source"].to_list()):
        tell(remark)
    with Progress("losses", len(candidates), quiet=quiet) as progress:
        return predictor.losses(candidates, watch=progress.update)


def signs(data: "Dataset | str | Path", form: str) -> "Dataset":
    """Split signs from words, or join what was split, as `cgen data write --signs` does.

    Args:
        data: sources and targets; or predictions.
        form: apart (for good), marked (with ￭ at what stood close to the token before), or joined (what is marked, put
            back; where nothing is marked is a `Remark`).

    Raises:
        UserError: there is no such form, or a token has the sign ￭ already.
    """
    from compgen.data.catalog import given
    from compgen.data.signs import JOINER, apart, together

    if form not in ("apart", "marked", "joined"):
        raise UserError(f"no form {form!r:.40} of signs: expected apart, marked or joined")
    some = given(data)
    if form != "joined":
        return apart(some, marked=form == "marked")
    if (found := together(some)) == some:
        tell(
            f"found no {JOINER}, so nothing is joined: the spaces of --signs apart cannot be told from others; answers "
            "of what learnt from --signs marked can be joined"
        )
    return found


def mask(
    data: "Dataset | str | Path",
    names: "str | Path | Mapping[str | tuple[str, ...], str] | Iterable[str | tuple[str, ...]] | None" = None,
    *,
    prefix: str = "name",
    most: float = 0.25,
) -> "Dataset":
    """Replace names by placeholders, the same in source and target, as `cgen data mask` does.

    Args:
        data: sources and targets.
        names: names, each a string with spaces between tokens or a tuple of tokens, perhaps with their types (a
            mapping); or a file of them, as `cgen data mask --names` reads. By default what sources and targets share.
        prefix: what placeholders begin with if their name has no type.
        most: if no names are given: the largest share of examples that may have a name.

    Returns:
        The data with a column `names`, by which `unmask` puts names back.

    Raises:
        UserError: sources and targets share nothing, a name has no tokens, or no placeholder can begin with a type.
    """
    from compgen.data import placeholders
    from compgen.data.catalog import given

    some = given(data)
    if names is None:
        listed = placeholders.shared_names(some, most, prefix)
    elif isinstance(names, str | Path):
        listed = placeholders.read_names(names, prefix)
    else:
        listed = placeholders.names_of(names, prefix)
    return placeholders.mask(some, listed)


def unmask(predicted: "Dataset | str | Path", masked: "Dataset | str | Path") -> "Dataset":
    """Put names back in sources and predicted targets, as `cgen data unmask` does.

    `predicted`, which may be a file of predicted lines (.txt), is in the order of `masked`, which `mask` made.
    Placeholders without a name stay, and are a `Remark`.
    """
    from compgen.data.catalog import given, load
    from compgen.data.placeholders import predictions, unmasked

    asked = load(str(masked), answers=True) if isinstance(masked, str | Path) else given(masked)
    answers = predictions(str(predicted), asked) if isinstance(predicted, str | Path) else given(predicted)
    found, left = unmasked(answers, asked)
    if left:
        tell(f"{left:,} placeholders without a name were left as they are")
    return found
