"""Choosing among kept samples: the most probable ones, those that draws agree on, or some of each length."""

from collections import Counter
from collections.abc import Iterable, Sequence

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


def of_each_length(ranked: Sequence[Sample], count: int, lengths: Sequence[int]) -> list[Sample]:
    """`count` of some ranked samples, whose targets are as long as training's: the best ones of each length.

    Draws agree on short answers sooner than on long ones, so the first ones of a ranking are short. Here every target
    length has its share of `lengths` (those of training's targets; the remainder goes to the largest fractions), and
    what a length lacks goes to the best of the others. The order of the ranking is kept. Not in the paper.
    """
    exact = {length: count * held / len(lengths) for length, held in Counter(lengths).items()}
    places = {length: int(share) for length, share in exact.items()}
    for length in sorted(exact, key=lambda one: places[one] - exact[one])[: count - sum(places.values())]:
        places[length] += 1
    first, rest = [], []
    for rank, one in enumerate(ranked):
        if places.get(len(one.target), 0):
            places[len(one.target)] -= 1
            first.append(rank)
        else:
            rest.append(rank)
    return [ranked[rank] for rank in sorted(first + rest[: max(0, count - len(first))])]
