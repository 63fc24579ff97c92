"""The verbs in Python: train, export, predict and more. The command line goes by these, or by what they call.

Nothing here imports torch until something needs it: sampling from a bundle does not.
"""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compgen.errors import Remark, UserError, checked_draws
from compgen.sampling.output import Sample
from compgen.trained.generator import Generator
from compgen.trained.limits import token_lists
from compgen.trained.predictor import Predictor

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores

__all__ = [
    "Generator",
    "Predictor",
    "Sample",
    "evaluate",
    "export_bundle",
    "predict",
    "train_generator",
    "train_predictor",
    "train_pretrained",
]


def evaluate(
    model: "str | Path | Predictor | Generator | Iterable[str | Sequence[str]]",
    data: "Dataset | str | Path",
    split: str | None = "test",
    beam: int = 1,
) -> "Scores":
    """Score a model's answers, or given ones, against the targets of some examples, as `cgen evaluate` does.

    Args:
        model: a predictor, or where one is; an opened generator, which answers directly; or a target for each example,
            a string or a list of tokens.
        data: what is asked. Sources that have several targets are a `Remark`: one of them is predicted. So are
            examples that the model was trained on, as far as it knows them: see `memory`.
        split: of several, the one to ask; None for all of them.
        beam: the width of a predictor's beam search; 1 is greedy.

    Raises:
        UserError: there are no targets to score by, or there are not as many answers as examples.
    """
    from compgen.data.catalog import given
    from compgen.evaluation.metrics import check_scorable, most_right, score, spaces_alone

    asked = given(data).part(split, "test")
    pairs = asked.pairs()
    check_scorable(asked, every=not isinstance(model, str | Path | Predictor))
    sources, targets = ([list(pair[side]) for pair in pairs] for side in (0, 1))
    if isinstance(model, str | Path):
        model = Predictor.load(model)
    if isinstance(model, Predictor | Generator):
        for remark in model.memory(asked):
            warnings.warn(remark, Remark, stacklevel=2)
    if isinstance(model, Predictor | Generator):
        answers = _answers(model, sources, beam, 3)
    else:
        answers = _given_answers(model, len(targets), beam)
    for remark in (*most_right(pairs), *spaces_alone(answers, targets)):
        warnings.warn(remark, Remark, stacklevel=2)
    return score(answers, targets)


def _given_answers(answers: Any, count: int, beam: int) -> list[list[str]]:
    """Given answers as lists of tokens; UserError for what cannot be those of `count` examples."""
    if beam != 1:
        raise UserError("answers that are given take no beam: leave it out")
    if not isinstance(answers, Iterable):
        raise UserError(f"found {type(answers).__name__}, expected a model, or a list of answers")
    found = [answer.split() if isinstance(answer, str) else answer for answer in answers]
    for answer in found:
        if not isinstance(answer, list | tuple) or not all(isinstance(token, str) for token in answer):
            raise UserError(f"found the answer {answer!r:.60}, expected a string, or a list of tokens")
    if len(found) != count:
        raise UserError(f"found {len(found):,} answers, and {count:,} examples: expected one for each")
    return [list(answer) for answer in found]


def train_generator(
    dataset: "Dataset | str | Path",
    config: str | Path,
    out: str | Path,
    overrides: Sequence[str] = (),
    *,
    split: str | None = "train",
    **options: Any,
) -> dict[str, Any]:
    """Train a generator by a named configuration; return what it was trained on and the result.

    `dataset` may be a name, as for `load_dataset`. Of several splits it learns from `split`; from all if that is None.
    `config` is a shipped configuration or a TOML file. Trainings in several threads wait for one another.
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
    config: str | Path,
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
    config: str | Path,
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
    asked = list(sources)
    tokens = token_lists(source.split() if isinstance(source, str) else source for source in asked)
    found = _answers(model, tokens, beam, 3)
    return [
        " ".join(target) if isinstance(source, str) else target for source, target in zip(asked, found, strict=True)
    ]


def _answers(model: "Predictor | Generator", sources: list[list[str]], beam: int, level: int) -> list[list[str]]:
    """The target of each source, an empty one for a source without tokens; what is not known is a warning."""
    if isinstance(model, Generator) and beam != 1:
        raise UserError("direct inference answers greedily: leave out beam")
    some = [source for source in sources if source]
    for remark in model.remarks(some) if isinstance(model, Predictor) else ():
        warnings.warn(remark, Remark, stacklevel=level)
    left = iter(model.answer(some) if isinstance(model, Generator) else model.predict(some, beam, unknown=True))
    return [next(left) if source else [] for source in sources]


def export_bundle(checkpoint: str | Path, out: str | Path, **options: Any) -> Any:
    """Export a checkpoint or a grammar to a verified bundle; see `compgen.export.bundle_writer.export`."""
    from compgen.export.bundle_writer import export

    return export(Path(checkpoint), Path(out), **options)
