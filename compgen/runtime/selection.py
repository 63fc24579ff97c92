"""Choosing among kept samples: the most probable ones, or those that draws agree on."""

from collections import Counter
from collections.abc import Iterable

from compgen.runtime.output import Sample


def most_probable(samples: Iterable[Sample]) -> list[Sample]:
    """All samples, most probable first: the reference keeps 400 of 500 by this order."""
    return sorted(samples, key=lambda one: -one.log_prob)


def elect(samples: Iterable[Sample]) -> list[Sample]:
    """One sample for each source: the target that most of its draws have; clear decisions first.

    The draws of one source are made from many pairs of prototypes, so their targets stand for p(target | source) with
    the prototypes marginalised out (eq. 7), and the target drawn most often wins; of equals, the more probable. Sources
    rank by the draws for the winner less those against it, then by votes, then by probability. The paper has no such
    step; `docs/results.md` has figures.
    """
    found = [(tuple(one.source), tuple(one.target), one) for one in samples]
    cast = Counter(source for source, _, _ in found)
    votes = Counter((source, target) for source, target, _ in found)
    elected: dict[tuple[str, ...], tuple[int, Sample]] = {}
    for source, target, one in sorted(found, key=lambda row: (-votes[row[0], row[1]], -row[2].log_prob)):
        elected.setdefault(source, (votes[source, target], one))
    ranked = sorted(
        elected.items(), key=lambda item: (cast[item[0]] - 2 * item[1][0], -item[1][0], -item[1][1].log_prob)
    )
    return [one for _, (_, one) in ranked]
