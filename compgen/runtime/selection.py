"""Choosing among kept samples: the most probable ones, or those that most draws agree on."""

from collections import Counter
from collections.abc import Iterable

from compgen.runtime.output import Sample


def elect(samples: Iterable[Sample], best: int | None, vote: bool) -> list[Sample]:
    """The `best` of `samples` (all, if None), best first.

    Without `vote` they rank by probability, as in the reference, which keeps 400 of 500. With `vote` a source keeps one
    target: the draws of one source, made from many prototypes, stand for p(target | source) marginalised over
    prototypes (eq. 7), and the target drawn most often wins; sources rank by the draws behind their target, then by
    its probability. The paper has no such step; `docs/results.md` has figures.
    """
    found = list(samples)
    if not vote:
        return sorted(found, key=lambda one: -one.log_prob)[:best]
    votes = Counter((tuple(one.source), tuple(one.target)) for one in found)
    ranked = sorted(found, key=lambda one: (-votes[tuple(one.source), tuple(one.target)], -one.log_prob))
    elected: dict[tuple[str, ...], Sample] = {}
    for one in ranked:
        elected.setdefault(tuple(one.source), one)
    return list(elected.values())[:best]
