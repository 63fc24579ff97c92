"""Linear interpolation of language models, token by token.

    p(w | h) = sum over m of v[c(h), m] p_m(w | h),    sum over m of v[c, m] = 1

p_m are models over one vocabulary, so p sums to one. c(h) is one class for all histories, or the number of words of the
history that the first model knows: where it knows many, it deserves more weight. Weights maximise the likelihood of a
text by expectation maximisation (Jelinek and Mercer 1980); in a class with few tokens they stay close to those of all.

The paper's program does something else: it mixes whole sentences, and logarithms of two bases.
"""

import json
import math
import os
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from compgen.errors import DataError, UserError
from compgen.files import atomic_path, check_apart, linked
from compgen.lm.estimation import MAX_ORDER
from compgen.lm.scoring import Scores, is_neural, paths_of, place_of, require_one_vocabulary, words_of
from compgen.runtime.manifest import strict_json

Floats = NDArray[np.float64]
FORMAT = "compgen mixture of n-gram models 1"
LN10 = math.log(10)
ROUNDS = 1000  # of expectation maximisation, at most
CLOSE = 1e-7  # it ends when no weight changes more
PSEUDO = 20.0  # in a class of histories, the weights of all histories count like this number of tokens


@dataclass(frozen=True)
class Mixture:
    """Models and their weights.

    Attributes:
        models: KenLM's or recurrent ones, over one vocabulary.
        weights: (classes, models) one class, or one for each number of known words of history, from 0.
    """

    models: tuple[Path, ...]
    weights: Floats

    def __post_init__(self) -> None:
        """Take paths as text, too."""
        object.__setattr__(self, "models", tuple(paths_of(self.models)))

    @classmethod
    def open(cls, path: str | Path) -> "Mixture":
        """Read a mixture, or make one of a single model.

        Raises:
            UserError: the file is missing, a broken mixture, or a mixture of which a model is missing.
        """
        path = Path(path)
        if not path.exists():
            raise UserError(f"{path}: no such file, expected a language model or a mixture")
        if path.is_dir() or not _begins_json(path):
            return cls((path,), np.ones((1, 1)))
        content = _object(path)
        models = _models(content.get("models"), linked(path).parent, path)
        weights = _weights(content.get("weights"), len(models), path)
        for model in models:
            if not os.path.exists(model):  # noqa: PTH110 - of an impossible name, Path raises an error
                raise UserError(f"{path}: its model {model} is missing: put it there, or make the mixture again")
        return cls(models, weights)

    def save(self, path: str | Path) -> None:
        """Write what `open` reads. The models stay where they are; their paths are relative to `path`.

        Raises:
            UserError: the weights are no numbers from 0 on that sum to one, or the file cannot be written or is one of
                the models.
        """
        path = Path(path)
        check_apart(path, *self.models)
        _weights(self.weights.tolist(), len(self.models), path)
        folder = os.path.realpath(linked(path).parent)  # a link may lead to where `..` is another folder
        names = [os.path.relpath(Path(os.path.realpath(model.parent), model.name), folder) for model in self.models]
        content = {"format": FORMAT, "models": names, "weights": self.weights.tolist()}
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @np.errstate(divide="ignore")  # of a weight of 0, and of what is impossible
    def log_probs(self, scores: Scores) -> Floats:
        """Return ln p of each token, (T), from the scores of these models; -inf of what is impossible.

        A probability may be too small for a number: the sum is of shares in the largest of its parts.
        """
        weights = np.log(self.weights)
        weight = weights[0][:, None] if len(weights) == 1 else weights[scores.known[0]].T  # (M, 1) or (M, T)
        each = weight + scores.log10.astype(np.float64) * LN10  # (M, T)
        largest = each.max(axis=0)
        shares = np.exp(each - np.where(np.isfinite(largest), largest, 0))
        return np.asarray(largest + np.log(shares.sum(axis=0)), dtype=np.float64)


def is_model(path: Path) -> bool:
    """Whether a path is a recurrent model's, by its name, or one of KenLM's or a mixture, by its beginning."""
    begins = _beginning(path).lstrip() if path.is_file() else b""
    return is_neural(path) or begins.startswith((b"mmap lm ", b"\\data\\")) or FORMAT.encode() in begins


def _begins_json(path: Path) -> bool:
    return _beginning(path)[:1] == b"{"


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(100)


def _object(path: Path) -> dict[str, Any]:
    """Return the object that a file of FORMAT has; compgen-ngram reads it by the same rules, with the same messages."""
    try:
        content: dict[str, Any] = strict_json(path.read_bytes())
    except ValueError as error:
        message = f"{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers"
        raise UserError(message) from error
    found = content.get("format")
    if found != FORMAT:
        shown = json.dumps(found, separators=(",", ":"), sort_keys=True)[:60]
        raise UserError(f'{path}: found the format {shown}, expected "{FORMAT}"')
    return content


def _models(names: object, folder: Path, path: Path) -> tuple[Path, ...]:
    good = isinstance(names, list) and names and all(isinstance(name, str) and "\0" not in name for name in names)
    if not good:
        raise UserError(f"{path}: models: expected a list of names of files")
    return tuple(folder / name for name in cast(list[str], names))


def _weights(rows: object, models: int, path: Path) -> Floats:
    good = isinstance(rows, list) and len(rows) in (1, MAX_ORDER) and all(_is_row(row, models) for row in rows)
    if not good:
        expected = f"1 row or {MAX_ORDER}, each of {models} numbers, one for each model"
        raise UserError(f"{path}: weights: expected {expected}")
    weights = np.array(rows, dtype=np.float64)
    if not ((weights >= 0).all() and np.allclose(weights.sum(axis=1), 1)):
        raise UserError(f"{path}: weights: expected numbers from 0 on that sum to one in each row")
    return weights


def _is_row(row: object, models: int) -> bool:
    return isinstance(row, list) and len(row) == models and all(type(number) in (int, float) for number in row)


def tuned(models: Sequence[str | Path], scores: Scores, by_history: bool = False) -> Mixture:
    """Return the mixture that makes a text most probable.

    Args:
        models: over one vocabulary.
        scores: of the text by these models.
        by_history: whether weights depend on the number of words of history that the first model knows.

    Raises:
        DataError: the text has no token, or one that is impossible for all models.
        UserError: there is no model, the models know different words, or are not those of the scores; or `by_history`,
            and the first model is recurrent.
    """
    paths = paths_of(models)
    found = fitted(paths, scores, by_history)
    check_vocabularies(paths)
    return found


def fitted(models: Sequence[Path], scores: Scores, by_history: bool, text: str | Path = "the text") -> Mixture:
    """Do as `tuned`, for models whose vocabularies have been compared; messages call the text by its name."""
    if not models:
        raise UserError("models: found none to mix, expected one or more")
    if by_history and is_neural(models[0]):
        raise UserError(f"{models[0]}: weights by history need an n-gram model: name one first")
    if len(scores.log10) != len(models):
        raise UserError(f"found scores by {len(scores.log10)} models, expected those of the {len(models)} to be mixed")
    largest = _largest(scores, text)
    each = np.power(10.0, scores.log10.astype(np.float64) - largest)  # (M, T), as shares: only they matter
    overall = _maximised(each, np.full(len(models), 1 / len(models)), 0.0)
    if not by_history:
        return Mixture(tuple(models), overall[None])
    classes = (each[:, scores.known[0] == count] for count in range(MAX_ORDER))
    return Mixture(tuple(models), np.stack([_maximised(part, overall, PSEUDO) for part in classes]))


def best_of(models: Sequence[Path], scores: Scores, weights: Sequence[float], text: str | Path = "the text") -> Mixture:
    """Return the mixture of two models that makes a text most probable, for some weights of the second.

    The paper's weights are 0.05, 0.1 and 0.5.

    Raises:
        DataError: the text has no token, or one that is impossible for both models, or with each of the weights.
        UserError: there are not two models.
    """
    if len(models) != 2:
        raise UserError(f"a grid of weights is for two models, found {len(models)}: leave it out")
    _largest(scores, text)
    mixtures = [Mixture(tuple(models), np.array([[1 - weight, weight]])) for weight in weights]
    sums = [float(mixture.log_probs(scores).sum()) for mixture in mixtures]
    if max(sums) == -math.inf:
        raise DataError(f"{text}: impossible with each of these weights: give one between 0 and 1")
    return mixtures[int(np.argmax(sums))]


def _largest(scores: Scores, text: str | Path) -> Floats:
    """Return the largest log10 p of each token, (T), of all models; DataError for no token, or an impossible one."""
    if not scores.log10.shape[1]:
        raise DataError(f"{text}: found no sentence to tune weights on")
    largest: Floats = scores.log10.max(axis=0).astype(np.float64)
    if impossible := np.flatnonzero(largest == -math.inf).tolist():
        sentence = int(np.searchsorted(scores.starts, impossible[0], side="right")) - 1
        token, length = impossible[0] - int(scores.starts[sentence]), int(scores.lengths[sentence])
        raise DataError(
            f"{place_of(text, sentence, token, length)}: impossible for all models, so no weights are the best: leave "
            "the sentence out, or add a model that gives each token a probability"
        )
    return largest


def _maximised(each: Floats, start: Floats, pseudo: float) -> Floats:
    """Return weights (M) for tokens (M, T) by expectation maximisation; `start` counts as `pseudo` tokens."""
    weights = start
    for _ in range(ROUNDS):
        joint = weights[:, None] * each
        counts = (joint / joint.sum(axis=0)).sum(axis=1) + pseudo * start
        new: Floats = counts / counts.sum()
        if np.abs(new - weights).max() < CLOSE:
            return new
        weights = new
    return weights


def check_vocabularies(models: Sequence[Path], text: Set[str] | None = None) -> None:
    """Raise UserError unless all models have one vocabulary: otherwise a mixture does not sum to one.

    It is the first model's, or the words of a `text` whose model is yet to be estimated.
    """
    if not models:
        return
    for model in models:
        if model.is_file() and _begins_json(model):
            raise UserError(f"{model}: found a mixture, expected a single model: give the models of the mixture")
    known = ((model, words_of(model)) for model in models)
    require_one_vocabulary(known if text is None else [("the training text", text), *known])


@dataclass
class Perplexity:
    """The loss of a text, summed block by block.

    Attributes:
        sentences, tokens: how many; the end of a sentence is a token.
        unknown: tokens out of vocabulary.
        loss, loss_known: -ln p of all tokens, and of those in the vocabulary.
        losses: of each sentence, block by block.
    """

    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    loss: float = 0.0
    loss_known: float = 0.0
    losses: list[Floats] = field(default_factory=list)

    def add(self, scores: Scores, log_probs: Floats) -> None:
        """Add a block of sentences, whose tokens have these natural logarithms of probabilities, (T)."""
        surprise = -log_probs
        unknown = scores.matched[0] == 0
        self.sentences += len(scores.lengths)
        self.tokens += len(surprise)
        self.unknown += int(unknown.sum())
        self.loss += float(surprise.sum())
        self.loss_known += float(surprise[~unknown].sum())
        self.losses.append(np.add.reduceat(surprise, scores.starts) if len(scores.lengths) else surprise)

    @property
    def including(self) -> float:
        """The perplexity of all tokens."""
        return _exp(self.loss / self.tokens)

    @property
    def excluding(self) -> float:
        """The perplexity of the tokens in the vocabulary."""
        return _exp(self.loss_known / max(1, self.tokens - self.unknown))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name: perplexities to 12 digits, as those behind them depend on the order of a sum."""
        counts = {"sentences": self.sentences, "tokens": self.tokens, "unknown": self.unknown}
        figures = {"perplexity": self.including, "perplexity_without_unknown": self.excluding}
        return counts | {name: float(f"{figure:.12g}") for name, figure in figures.items()}


def _exp(power: float) -> float:
    """Return e to a power; infinity beyond any number, as compgen-ngram."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def perplexity(mixture: Mixture, scores: Scores) -> Perplexity:
    """Return the perplexity of a text for a mixture, from the scores of its models.

    Raises:
        DataError: the text has no sentence.
    """
    if not len(scores.lengths):
        raise DataError("found no sentence to measure")
    result = Perplexity()
    result.add(scores, mixture.log_probs(scores))
    return result
