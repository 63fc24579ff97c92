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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.errors import DataError, UserError
from compgen.files import atomic_path, linked
from compgen.lm.estimation import MAX_ORDER
from compgen.lm.scoring import Scores, is_neural, words_of

Floats = NDArray[np.float64]
FORMAT = "compgen mixture of n-gram models 1"
ROUNDS = 1000  # of expectation maximisation, at most
CLOSE = 1e-7  # it ends when no weight changes more
PSEUDO = 20.0  # tokens that the weights of all count for in a class


@dataclass(frozen=True)
class Mixture:
    """Models and their weights.

    Attributes:
        models: KenLM's or recurrent ones, over one vocabulary.
        weights: (classes, models) one class, or one for each number of known words of history, from 0.
    """

    models: tuple[Path, ...]
    weights: Floats

    @classmethod
    def open(cls, path: Path) -> "Mixture":
        """Read a mixture, or make one of a single model.

        Raises:
            UserError: the file is missing, or a broken mixture.
        """
        if not path.exists():
            raise UserError(f"{path}: no such file, expected a language model or a mixture")
        if path.is_dir() or not _begins_json(path):
            return cls((path,), np.ones((1, 1)))
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise UserError(f"{path}: found the format {content['format']!r}, expected {FORMAT!r}")
            weights = np.array(content["weights"], dtype=np.float64)
            models = tuple(linked(path).parent / str(name) for name in content["models"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}: not a mixture: {error}") from error
        if weights.ndim != 2 or weights.shape[1] != len(models) or len(weights) not in (1, MAX_ORDER):
            raise UserError(f"{path}: found weights of the shape {weights.shape} for {len(models)} models")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and np.allclose(weights.sum(axis=1), 1)):
            raise UserError(f"{path}: found weights that do not sum to one")
        return cls(models, weights)

    def save(self, path: Path) -> None:
        """Write what `open` reads. The models stay where they are; their paths are relative to `path`."""
        folder = os.path.realpath(linked(path).parent)  # a link may lead to where `..` is another folder
        names = [os.path.relpath(Path(os.path.realpath(model.parent), model.name), folder) for model in self.models]
        content = {"format": FORMAT, "models": names, "weights": self.weights.tolist()}
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def probabilities(self, scores: Scores) -> Floats:
        """Return p of each token, (T), from the scores of these models."""
        each = np.power(10.0, scores.log10, dtype=np.float64)  # (M, T)
        if len(self.weights) == 1:
            return np.asarray(self.weights[0] @ each, dtype=np.float64)
        return np.asarray((self.weights[scores.known[0]].T * each).sum(axis=0), dtype=np.float64)


def _begins_json(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(1) == b"{"


def tuned(models: Sequence[Path], scores: Scores, by_history: bool = False) -> Mixture:
    """Return the mixture that makes a text most probable.

    Args:
        models: over one vocabulary (see `check_vocabularies`).
        scores: of the text by these models.
        by_history: whether weights depend on the number of words of history that the first model knows.

    Raises:
        DataError: the text has no token.
        UserError: `by_history`, and the first model is recurrent.
    """
    if by_history and is_neural(models[0]):
        raise UserError(f"{models[0]}: weights by history need an n-gram model: name one first")
    each = np.power(10.0, scores.log10, dtype=np.float64)  # (M, T)
    if not each.shape[1]:
        raise DataError("found no sentence to tune weights on")
    overall = _maximised(each, np.full(len(models), 1 / len(models)), 0.0)
    if not by_history:
        return Mixture(tuple(models), overall[None])
    classes = (each[:, scores.known[0] == count] for count in range(MAX_ORDER))
    return Mixture(tuple(models), np.stack([_maximised(part, overall, PSEUDO) for part in classes]))


def best_of(models: Sequence[Path], scores: Scores, weights: Sequence[float]) -> Mixture:
    """Return the mixture of two models that makes a text most probable, for some weights of the second.

    The paper's weights are 0.05, 0.1 and 0.5.
    """
    if len(models) != 2:
        raise UserError(f"a grid of weights is for two models, found {len(models)}")
    mixtures = [Mixture(tuple(models), np.array([[1 - weight, weight]])) for weight in weights]
    return max(mixtures, key=lambda mixture: float(np.log(mixture.probabilities(scores)).sum()))


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
    name, words = (str(models[0]), words_of(models[0])) if text is None else ("the training text", text)
    for model in models:
        found = words_of(model)
        if found != words:
            raise UserError(
                f"mixed vocabularies: {name} knows {len(words):,} words, {model} {len(found):,} or others; "
                "estimate both from texts with the same words, for instance the second from the first's text and more"
            )


@dataclass
class Perplexity:
    """The loss of a text, summed block by block.

    Attributes:
        sentences, tokens: how many; the end of a sentence is a token.
        unknown: tokens out of vocabulary.
        loss, loss_unknown: -ln p of all tokens, and of those out of vocabulary.
        losses: of each sentence, block by block.
    """

    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    loss: float = 0.0
    loss_unknown: float = 0.0
    losses: list[Floats] = field(default_factory=list)

    def add(self, scores: Scores, probabilities: Floats) -> None:
        """Add a block of sentences."""
        surprise = -np.log(probabilities)
        unknown = scores.matched[0] == 0
        self.sentences += len(scores.lengths)
        self.tokens += len(surprise)
        self.unknown += int(unknown.sum())
        self.loss += float(surprise.sum())
        self.loss_unknown += float(surprise[unknown].sum())
        self.losses.append(np.add.reduceat(surprise, scores.starts) if len(scores.lengths) else surprise)

    @property
    def including(self) -> float:
        """The perplexity of all tokens."""
        return math.exp(self.loss / self.tokens)

    @property
    def excluding(self) -> float:
        """The perplexity of the tokens in the vocabulary."""
        return math.exp((self.loss - self.loss_unknown) / max(1, self.tokens - self.unknown))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        counts = {"sentences": self.sentences, "tokens": self.tokens, "unknown": self.unknown}
        return counts | {"perplexity": self.including, "perplexity_without_unknown": self.excluding}


def perplexity(mixture: Mixture, scores: Scores) -> Perplexity:
    """Return the perplexity of a text for a mixture, from the scores of its models.

    Raises:
        DataError: the text has no sentence.
    """
    if not len(scores.lengths):
        raise DataError("found no sentence to measure")
    result = Perplexity()
    result.add(scores, mixture.probabilities(scores))
    return result
