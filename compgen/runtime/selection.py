"""Choosing among kept samples: the most probable ones, those that draws agree on, those whose novelty is no slip."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from compgen.runtime.output import Sample


def most_probable(samples: Iterable[Sample]) -> list[Sample]:
    """All samples, most probable first: the reference keeps 400 of 500 by this order."""
    return sorted(samples, key=lambda one: -one.log_prob)


def elect(samples: Iterable[Sample], margin: int | None = None) -> list[Sample]:
    """One sample for each source: the target that most of its draws have; clear decisions first.

    The draws of one source are made from many pairs of prototypes, so their targets stand for p(target | source) with
    the prototypes marginalised out (eq. 7), and the target drawn most often wins; of equals, the more probable. Sources
    rank by the margin, which is the draws for the winner less all those against it, then by votes, then by probability;
    those of a smaller margin than `margin` are left out. The paper has no such step; `docs/results.md` has figures.
    """
    found = [(tuple(one.source), tuple(one.target), one) for one in samples]
    cast = Counter(source for source, _, _ in found)
    won = Counter((source, target) for source, target, _ in found)
    winners: dict[tuple[str, ...], tuple[int, Sample]] = {}
    for source, target, one in sorted(found, key=lambda row: (-won[row[0], row[1]], -row[2].log_prob)):
        votes = won[source, target], cast[source]
        winners.setdefault(source, (2 * votes[0] - votes[1], replace(one, votes=votes)))
    clearest = sorted(winners.values(), key=lambda row: -row[0])  # keeps the order by votes and probability within
    return [one for by, one in clearest if margin is None or by >= margin]


def supported(samples: Sequence[Sample], known: Iterable[Sequence[str]], share: float) -> list[Sample]:
    """The samples whose new pairs of neighbouring source tokens are each held by a share of all samples, or by more.

    New is what no `known` source has; both ends of a source count as neighbours. A combination that training happens to
    lack is made in many samples, while slips of a generator differ from one another. The paper has no such step.
    """
    old = {pair for source in known for pair in _neighbours(source)}
    new = [_neighbours(one.source) - old for one in samples]
    held = Counter(pair for pairs in new for pair in pairs)
    return [one for one, pairs in zip(samples, new, strict=True) if all(held[p] >= share * len(new) for p in pairs)]


def _neighbours(source: Sequence[str]) -> set[tuple[str | None, str | None]]:
    return set(zip([None, *source], [*source, None], strict=True))
