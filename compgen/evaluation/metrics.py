"""How good predictions are: exact match and token F1, with a signature that says how they were computed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Tokens = Sequence[str]
SIGNATURE = "exact:whole-sequence|f1:micro,multiset"


@dataclass(frozen=True)
class Scores:
    """Scores of predictions on a set of examples.

    Attributes:
        examples: how many were predicted.
        exact_match: share of predictions equal to their reference, token by token.
        f1: micro-averaged token F1; a repeated token counts as often as it stands in both.
    """

    examples: int
    exact_match: float
    f1: float
    precision: float
    recall: float

    def to_dict(self) -> dict[str, Any]:
        """All figures and the signature, for JSON."""
        return asdict(self) | {"signature": SIGNATURE}


def score(predictions: Sequence[Tokens], references: Sequence[Tokens]) -> Scores:
    """Score predictions against references of the same number.

    Raises:
        ValueError: the numbers differ, or there is nothing to score.
    """
    if len(predictions) != len(references) or not references:
        raise ValueError(f"{len(predictions)} predictions for {len(references)} references")
    exact = shared = predicted = wanted = 0
    for prediction, reference in zip(predictions, references, strict=True):
        exact += list(prediction) == list(reference)
        shared += (Counter(prediction) & Counter(reference)).total()
        predicted += len(prediction)
        wanted += len(reference)
    precision, recall = shared / max(1, predicted), shared / max(1, wanted)
    f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
    return Scores(len(references), exact / len(references), f1, precision, recall)
