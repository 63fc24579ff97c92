"""The verbs in Python: train, export, predict and more. The command line calls these, or what they call.

Nothing here imports torch until something needs it: sampling from a bundle does not.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from compgen.errors import UserError, checked_draws, tell
from compgen.sampling.output import Sample
from compgen.trained.generator import Generator
from compgen.trained.limits import token_lists
from compgen.trained.predictor import Predictor

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.metrics import Scores
    from compgen.runtime.manifest import Manifest

__all__ = [
    "Generator",
    "Predictor",
    "Sample",
    "confirm",
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
        model: a predictor or its path; an opened generator, which answers directly; or the answers, one for each
            example, as strings or lists of tokens.
        data: the examples to score on. A `Remark` says how many sources have several targets, of which only one can be
            predicted, and how many examples the model was trained on, as far as it knows (see `memory`).
        split: the split to score on, if there are several; None for all of them.
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
            tell(remark)
        answers = _answers(model, sources, beam)
    else:
        answers = _given_answers(model, len(targets), beam)
    for remark in (*most_right(pairs), *spaces_alone(answers, targets)):
        tell(remark)
    return score(answers, targets)


def _given_answers(answers: Any, count: int, beam: int) -> list[list[str]]:
    """Return given answers as lists of tokens; raise UserError if they cannot be those of `count` examples."""
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

    Trainings in several threads wait for one another.

    Args:
        dataset: examples, or the name of some, as for `load_dataset`.
        config: a TOML file, or a shipped configuration, such as recombine_small, recombine_scan, recombine_morphology
            or auto (settings found from the data); the error for an unknown name lists all.
        out: the checkpoint, a `.pt` file.
        overrides: settings to change, each as `optimisation.steps=3000`; `["?"]` raises an error that lists all.
        split: the split to learn from, if there are several; None for all of them.
        options: seed (0), resume (an interrupted training), device (auto, cpu or cuda), quiet (without progress) and
            name (of the data, for the record).

    Raises:
        UserError: there is no such configuration, setting or option, or the data cannot be learned from.
    """
    from compgen.configuration import load_config
    from compgen.data.catalog import given
    from compgen.recombine.config import RecombineConfig
    from compgen.recombine.training import train_generator as train

    checked = _checked(train_generator, train, options)
    described = load_config(RecombineConfig, config, overrides)
    checkpoint, _ = train(given(dataset).part(split), described, Path(out), **checked)
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
    """Train a predictor by a named configuration; return what it was trained on and the result.

    Args:
        dataset, out, overrides, split: as for `train_generator`.
        config: a TOML file, or a shipped configuration, such as seq2seq_small, seq2seq_scan or seq2seq_morphology; for
            the architecture transformer: transformer, transformer_small or transformer_relative.
        architecture: recurrent or transformer.
        options: those of `train_generator`; `augmented`: more examples to train on, or their file, of whose splits
            `train` is taken if there are several; or `fresh`: a `compgen.training.pairs.Fresh`, with a fitted
            augmenter that makes others in each epoch.

    Raises:
        UserError: as `train_generator`.
    """
    from compgen.data.catalog import given
    from compgen.training.predictors import named_config
    from compgen.training.predictors import train_predictor as train

    checked = _checked(train_predictor, train, options)
    described = named_config(architecture, config, overrides)
    checkpoint, _ = train(given(dataset).part(split), described, Path(out), **checked)
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
    """Fine-tune a pretrained encoder-decoder by a named configuration; return what it was trained on and the result.

    Args:
        dataset, overrides, split: as for `train_generator`.
        model: a folder, or a name on the Hugging Face hub.
        config: a TOML file, or a shipped configuration: t5 or t5_small.
        out: a folder.
        options: as for `train_predictor`.

    Raises:
        UserError: as `train_generator`.
    """
    from compgen.configuration import load_config
    from compgen.data.catalog import given
    from compgen.training.config import PretrainedConfig
    from compgen.training.pretrained import train_pretrained as train

    checked = _checked(train_pretrained, train, options)
    described = load_config(PretrainedConfig, config, overrides)
    return train(given(dataset).part(split), model, described, Path(out), **checked)


def confirm(
    dataset: "Dataset | str | Path",
    augmented: "Dataset | str | Path",
    config: str | Path = "seq2seq_small",
    overrides: Sequence[str] = (),
    *,
    architecture: str = "recurrent",
    parts: int = 2,
    seed: int = 0,
    split: str | None = "train",
    folder: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> "Dataset":
    """Return the augmented examples that a predictor which has not learnt them answers alike, as `cgen confirm` does.

    Args:
        dataset, config, overrides, architecture, split: as for `train_predictor`.
        augmented: the examples, or their file, of whose splits `train` is taken if there are several.
        parts, seed, resume, device, quiet: see `compgen.training.confirmation.confirmed`.
        folder: where predictors are kept, so that a second call goes on; none are kept if it is None.

    Raises:
        UserError: as `train_predictor`, or there are fewer sources than parts.
    """
    from tempfile import TemporaryDirectory

    from compgen.data.catalog import given
    from compgen.training.confirmation import confirmed
    from compgen.training.predictors import named_config

    described = named_config(architecture, config, overrides)
    original, made = given(dataset).part(split), _made(augmented)
    _, fixed = checked_draws("confirm", None, seed)
    asked: dict[str, Any] = {"parts": parts, "seed": fixed, "resume": resume, "device": device, "quiet": quiet}
    with TemporaryDirectory() as nowhere:
        right = confirmed(original, made, described, Path(folder or nowhere), **asked)
    kept = type(made)(made.frame.filter(right))
    if 2 * len(kept) < len(made):
        tell(
            f"{len(kept):,} of {len(made):,} examples are confirmed: either most are wrong, or the predictors have not "
            "learnt enough to tell (more updates: optimisation.steps)"
        )
    return kept


def _checked(verb: Callable[..., Any], training: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Check the options of a training; return them with the seed as Python's int, for records, and examples loaded.

    Raises:
        ConfigError: there is no such option.
    """
    from compgen.configuration import check_options, names_of

    elsewhere = "; settings of the configuration are changed by overrides=['NAME=VALUE']"
    check_options(verb.__name__, options, names_of(verb, training), elsewhere)
    checked = dict(options)
    if "seed" in options:
        _, checked["seed"] = checked_draws("training", None, options["seed"])
    if (augmented := options.get("augmented")) is not None:
        checked["augmented"] = _made(augmented)
    return checked


def _made(augmented: Any) -> "Dataset":
    """Return augmented examples; of a file with several splits `train` alone, as the others are probably for tests."""
    from compgen.data.catalog import given

    return given(augmented).part("train") if isinstance(augmented, str | Path) else given(augmented)


@overload
def predict(
    model: "str | Path | Predictor | Generator", sources: Iterable[str], beam: int = 1, *, direct: bool = False
) -> list[str]: ...


@overload
def predict(
    model: "str | Path | Predictor | Generator",
    sources: Iterable[list[str] | tuple[str, ...]],
    beam: int = 1,
    *,
    direct: bool = False,
) -> list[list[str]]: ...


def predict(
    model: "str | Path | Predictor | Generator",
    sources: Iterable[str | Sequence[str]],
    beam: int = 1,
    *,
    direct: bool = False,
) -> list[Any]:
    """Predict the target of each source: a string for a string, with spaces between tokens, else a list of tokens.

    Args:
        model: an opened model or its path, as for `Predictor.load`. A `Remark` names tokens that it does not know.
        sources: each a string with spaces between tokens, or a list of tokens.
        beam: the width of beam search; 1 is greedy.
        direct: let a generator or a grammar answer; a source that it has no answer to gets an empty target. So does a
            source without tokens, in any case.

    Raises:
        UserError: the model cannot be used, or `sources` is one string.
    """
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        kind = "a string" if isinstance(sources, str) else type(sources).__name__
        raise UserError(f"sources {sources!r:.40}: found {kind}, expected a list of sources")
    if isinstance(model, str | Path):
        model = Generator.load(model) if direct else Predictor.load(model)
    if not isinstance(model, Predictor | Generator):
        several = "; several predictors form a Committee" if isinstance(model, list | tuple) else ""
        raise UserError(f"found {type(model).__name__}, expected an opened model or its path{several}")
    asked = list(sources)
    tokens = token_lists(source.split() if isinstance(source, str) else source for source in asked)
    found = _answers(model, tokens, beam)
    return [
        " ".join(target) if isinstance(source, str) else target for source, target in zip(asked, found, strict=True)
    ]


def _answers(model: "Predictor | Generator", sources: list[list[str]], beam: int) -> list[list[str]]:
    """Return the target of each source, an empty one for a source without tokens; warn of unknown tokens."""
    if isinstance(model, Generator) and beam != 1:
        raise UserError("direct inference answers greedily: leave out beam")
    some = [source for source in sources if source]
    for remark in model.remarks(some) if isinstance(model, Predictor) else ():
        tell(remark)
    left = iter(model.answer(some) if isinstance(model, Generator) else model.predict(some, beam, unknown=True))
    return [next(left) if source else [] for source in sources]


def export_bundle(checkpoint: str | Path, out: str | Path, **options: Any) -> "Manifest":
    """Export a checkpoint (`.pt`) or a grammar (`.grammar`) to a bundle, verified; return its manifest.

    A bundle that is at `out` already is replaced.

    Args:
        checkpoint: what training wrote.
        out: the bundle's folder.
        options: int8 (large products in 8-bit integers), torchscript (write that file too), quiet (without progress)
            and batches (how many samples to verify with by size of batch, for instance {1: 100, 64: 1000}).

    Raises:
        UserError: there is no such option, or the checkpoint cannot be read or exported.
    """
    from compgen.configuration import check_options, names_of
    from compgen.export.bundle_writer import export

    check_options("export_bundle", options, names_of(export)[2:])
    return export(Path(checkpoint), Path(out), **options)
