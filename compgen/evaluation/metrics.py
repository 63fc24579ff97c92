"""Scores of predictions: exact match, token F1 and execution, with a signature that says how they were computed."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compgen.data import scan
from compgen.data.examples import Dataset
from compgen.data.sources import is_tagged
from compgen.data.unimorph import BLANK, split_tags
from compgen.errors import DataError, UserError

Tokens = Sequence[str]
# What F1 counts, by unit: see `f1_counts`.
SIGNATURES = {
    "token": "exact:whole-sequence|f1:micro,multiset",
    "analysis": "exact:whole-sequence|f1:micro,membership,lemma-and-tags",
    "analysis-words": "exact:whole-sequence|f1:micro,membership,words-of-lemma-and-tags",
}
# Interpreters of targets: each returns the source that a target stands for, or raises DataError.
INTERPRETERS: dict[str, Callable[[Tokens], list[str]]] = {"scan": scan.interpret}


@dataclass(frozen=True)
class Scores:
    """Scores of predictions on a set of examples.

    Attributes:
        examples: the number of predictions.
        exact_match: the share of predictions equal to their reference.
        f1, precision, recall: micro-averages over the items that `f1_counts` counts.
        executes: the share of predictions whose execution gives their source; None if nothing was executed.
        signature: how the scores were computed.
    """

    examples: int
    exact_match: float
    f1: float
    precision: float
    recall: float
    executes: float | None = None
    signature: str = SIGNATURES["token"]

    def to_dict(self) -> dict[str, Any]:
        """All figures and the signature, for JSON; `executes` only if it was asked for."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def check_scorable(dataset: Dataset, *, every: bool) -> None:
    """Raise UserError unless some examples have targets to score by; with `every`, unless all have.

    Where there is no target, an empty answer would count as right.
    """
    if is_tagged(dataset):
        raise UserError("found lemmas with tags, without forms to score by; `cgen predict` writes the forms")
    given = dataset.frame["target"].list.len() > 0
    if not (given.all() if every else given.any()) or not len(given):
        raise UserError("found an example without a target, expected targets to score by")


def most_right(pairs: Iterable[tuple[Tokens, Tokens]]) -> list[str]:
    """Return a remark on how many examples can be right at most, if sources have several targets."""
    targets: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
    for source, target in pairs:
        targets.setdefault(tuple(source), Counter())[tuple(target)] += 1
    every, most = (sum(each(counts.values()) for counts in targets.values()) for each in (sum, max))
    if most == every:
        return []
    several = sum(len(counts) > 1 for counts in targets.values())
    can = f"{most:,} of {every:,} examples can be right"
    return [f"{several:,} sources have several targets, of which one is predicted: {can}"]


def spaces_alone(predictions: Sequence[Tokens], references: Sequence[Tokens]) -> list[str]:
    """Return a remark on how many predictions are wrong in the spaces between tokens alone, if any are."""
    answers = zip(map(list, predictions), map(list, references), strict=True)
    apart = sum(found != target and "".join(found) == "".join(target) for found, target in answers)
    if not apart:
        return []
    return [
        f"{apart:,} of {len(references):,} predictions differ from their targets in spaces alone, and count as wrong: "
        "write DATA as the training data were (`cgen data write DATA --signs apart -o OUT` puts spaces around brackets "
        "and other signs)"
    ]


def score(
    predictions: Sequence[Tokens],
    references: Sequence[Tokens],
    sources: Sequence[Tokens] | None = None,
    execute: str | None = None,
    unit: str = "token",
) -> Scores:
    """Score predictions against references.

    Args:
        sources: what was predicted from; only execution needs it.
        execute: one of INTERPRETERS, to score by execution too.
        unit: what F1 counts, see `f1_counts`.

    Raises:
        ValueError: the numbers differ, or there is nothing to score.
        UserError: no such interpreter or unit, or a unit that the references do not have.
    """
    check_unit(references, unit)
    if len(predictions) != len(references) or not references:
        raise ValueError(f"{len(predictions)} predictions for {len(references)} references")
    pairs = list(zip(predictions, references, strict=True))
    exact = sum(list(prediction) == list(reference) for prediction, reference in pairs)
    right, wrong, missed = (sum(counts) for counts in zip(*(f1_counts(*pair, unit) for pair in pairs), strict=True))
    precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    scores = Scores(len(references), exact / len(references), f1, precision, recall, signature=SIGNATURES[unit])
    if execute is None:
        return scores
    share = sum(executes(predictions, sources or [], execute)) / len(references)
    return replace(scores, executes=share, signature=f"{SIGNATURES[unit]}|executes:{execute},equals-source")


def check_unit(references: Sequence[Tokens], unit: str) -> None:
    """Raise UserError if there is no such unit of F1, or if it counts tags and no reference has one."""
    if unit not in SIGNATURES:
        raise UserError(f"no unit {unit!r}: expected one of {', '.join(SIGNATURES)}")
    if unit != "token" and references and not any(split_tags(reference)[1] for reference in references):
        raise UserError(
            f"unit {unit}: it counts the tags of a lemma, and no reference has tags after letters: expected unit token"
        )


def f1_counts(prediction: Tokens, reference: Tokens, unit: str = "token") -> tuple[int, int, int]:
    """Count the right, the wrong and the missed items of a prediction.

    By unit:

    - `token`: a repeated token counts as often as it is in both.
    - `analysis`: the target is letters and tags (morphological analysis). The lemma is one item and so is each tag. An
      item that is anywhere in the reference is right, as often as it is predicted (R&R's code). A prediction without
      tags is a lemma alone; in R&R's code each of its letters is an item.
    - `analysis-words`: the same, but each word of a lemma with spaces is an item (R&R's tables).
    """
    if unit == "token":
        right = (Counter(prediction) & Counter(reference)).total()
        return right, len(prediction) - right, len(reference) - right
    found, wanted = (_items(side, unit == "analysis-words") for side in (prediction, reference))
    right = sum(item in wanted for item in found)
    return right, len(found) - right, sum(item not in found for item in wanted)


def item_f1(prediction: Tokens, reference: Tokens, unit: str = "token") -> float:
    """F1 of one prediction, for paired tests; 1 if prediction and reference are empty."""
    right, wrong, missed = f1_counts(prediction, reference, unit)
    return 2 * right / (2 * right + wrong + missed) if right + wrong + missed else 1.0


def _items(tokens: Tokens, words: bool) -> list[str]:
    """Return the lemma of an analysis, whole or in words, and its tags."""
    lemma, tags = split_tags(tokens)
    text = "".join(lemma)
    return [item for item in (text.split(BLANK) if words else [text]) if item] + tags


def executes(targets: Sequence[Tokens], sources: Sequence[Tokens], execute: str) -> list[bool]:
    """Execute each target and compare the result with its source; False if the target cannot be executed.

    NACS, from actions to commands (Bastings et al. 2018), is scored this way, by `scan`: several commands stand for the
    same actions, and only one of them is the reference.

    Raises:
        ValueError: the numbers differ.
        UserError: no such interpreter.
    """
    if execute not in INTERPRETERS:
        raise UserError(f"no interpreter {execute!r}: expected one of {', '.join(INTERPRETERS)}")
    if len(targets) != len(sources):
        raise ValueError(f"{len(targets)} targets to execute for {len(sources)} sources")
    return [_gives(target, source, INTERPRETERS[execute]) for target, source in zip(targets, sources, strict=True)]


def _gives(target: Tokens, source: Tokens, interpret: Callable[[Tokens], list[str]]) -> bool:
    try:
        return interpret(target) == list(source)
    except DataError:
        return False


def check_executes(references: Sequence[Tokens], sources: Sequence[Tokens], execute: str) -> None:
    """Check that every reference executes to its source; otherwise scores by execution would be meaningless.

    Raises:
        DataError: one does not, e.g. because the data go from commands to actions; the message shows the first.
    """
    for reference, source, right in zip(references, sources, executes(references, sources, execute), strict=True):
        if not right:
            raise DataError(
                f"execution by {execute} needs targets that execute to their sources: found the source "
                f"{' '.join(source)!r:.200} with the target {' '.join(reference)!r:.200}"
            )
