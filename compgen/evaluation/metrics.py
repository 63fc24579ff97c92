"""How good predictions are: exact match, token F1 and execution, with a signature that says how they were computed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compgen.data import scan
from compgen.errors import DataError, UserError

Tokens = Sequence[str]
SIGNATURE = "exact:whole-sequence|f1:micro,multiset"

# What executes a target: it returns the source that the target stands for, or raises DataError.
INTERPRETERS: dict[str, Callable[[Tokens], list[str]]] = {"scan": scan.interpret}


@dataclass(frozen=True)
class Scores:
    """Scores of predictions on a set of examples.

    Attributes:
        examples: how many were predicted.
        exact_match: share of predictions equal to their reference, token by token.
        f1: micro-averaged token F1; a repeated token counts as often as it stands in both.
        executes: share of predictions whose execution gives their source; None if nothing was executed.
        signature: how all this was computed.
    """

    examples: int
    exact_match: float
    f1: float
    precision: float
    recall: float
    executes: float | None = None
    signature: str = SIGNATURE

    def to_dict(self) -> dict[str, Any]:
        """All figures and the signature, for JSON; `executes` only if it was asked for."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def score(
    predictions: Sequence[Tokens],
    references: Sequence[Tokens],
    sources: Sequence[Tokens] | None = None,
    execute: str | None = None,
) -> Scores:
    """Score predictions against references of the same number.

    Args:
        predictions, references: target tokens.
        sources: what was predicted from; only execution looks at it.
        execute: one of INTERPRETERS, to score by execution too.

    Raises:
        ValueError: the numbers differ, or there is nothing to score.
        UserError: there is no such interpreter.
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
    scores = Scores(len(references), exact / len(references), f1, precision, recall)
    if execute is None:
        return scores
    share = sum(executes(predictions, sources or [], execute)) / len(references)
    return replace(scores, executes=share, signature=f"{SIGNATURE}|executes:{execute},equals-source")


def executes(targets: Sequence[Tokens], sources: Sequence[Tokens], execute: str) -> list[bool]:
    """Whether each target, executed, gives its source; one that cannot be executed does not.

    NACS, from actions to commands (Bastings et al. 2018), is scored so, by `scan`: several commands stand for the same
    actions, and only one of them is the reference.

    Raises:
        ValueError: the numbers differ.
        UserError: there is no such interpreter.
    """
    if execute not in INTERPRETERS:
        raise UserError(f"no interpreter {execute!r}: expected one of {', '.join(INTERPRETERS)}")
    if len(targets) != len(sources):
        raise ValueError(f"{len(targets)} targets to execute for {len(sources)} sources")
    return [_gives(target, source, INTERPRETERS[execute]) for target, source in zip(targets, sources, strict=True)]


def check_executes(references: Sequence[Tokens], sources: Sequence[Tokens], execute: str) -> None:
    """Raise unless every reference, executed, gives its source: else no score by execution would mean anything.

    Raises:
        DataError: one does not, e.g. because the data go from commands to actions; the message shows the first.
        UserError, ValueError: as `executes`.
    """
    for reference, source, right in zip(references, sources, executes(references, sources, execute), strict=True):
        if not right:
            raise DataError(
                f"execution by {execute} needs targets that execute to their sources: found the source "
                f"{' '.join(source)!r} with the target {' '.join(reference)!r}"
            )


def _gives(target: Tokens, source: Tokens, interpret: Callable[[Tokens], list[str]]) -> bool:
    try:
        return interpret(target) == list(source)
    except DataError:
        return False
