"""Choosing among kept samples: the most probable ones, those that draws agree on, those whose novelty is no slip."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compgen.data.vocabulary import Vocabulary
from compgen.errors import UserError
from compgen.sampling.output import Sample
from compgen.sampling.resampling import FilterConfig, Training


@dataclass(frozen=True)
class Choice:
    """What is chosen of the kept samples once all are drawn; by default all of them, as they come.

    Attributes:
        vote: one target for each source, by `elect`; else the most probable come first.
        margin: by how many votes it must have won.
        support: see `supported`.
        best: no more than so many, the first.
    """

    vote: bool = False
    margin: int | None = None
    support: float | None = None
    best: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError for a margin without a vote, or a number that is impossible."""
        if (self.best or 0) < 0 or not 0 <= (self.support or 0) < math.inf:
            raise UserError(f"best {self.best}, support {self.support}: expected numbers of 0 or more")
        if self.margin is not None and not self.vote:
            raise UserError("a margin says by how many votes a vote must be won: use it with --vote")

    @property
    def made(self) -> bool:
        """Whether there is anything to choose, so that samples must be collected first."""
        return self != Choice()

    def drawing(self, filters: FilterConfig) -> FilterConfig:
        """The filters to draw with.

        Known targets and pairs have votes like others, and win some: what must be new beside the source is only asked
        of the winners.

        Raises:
            UserError: the filter `unique` before a vote.
        """
        if not self.vote:
            return filters
        if "unique" in filters.names:
            raise UserError("a vote counts repeated draws, which the filter unique drops: leave unique out")
        pairs = filters.novelty == "pair"
        return replace(filters, names=tuple(n for n in filters.names if n != "novel" or not pairs), novelty="source")

    def of(
        self, samples: Iterable[Sample], filters: FilterConfig, training: Training, vocabulary: Vocabulary
    ) -> list[Sample]:
        """What is chosen of samples that were drawn with `drawing(filters)`."""
        chosen = elect(samples, self.margin) if self.vote else most_probable(samples)
        if self.vote and "novel" in filters.names:
            sides = ([tuple(vocabulary.encode(side)) for side in (one.source, one.target)] for one in chosen)
            known = [training.knows(source, target, filters.novelty) for source, target in sides]
            chosen = [one for one, old in zip(chosen, known, strict=True) if not old]
        if self.support is not None:
            chosen = supported(chosen, map(vocabulary.decode, training.sources), self.support)
        return chosen[: self.best]


def most_probable(samples: Iterable[Sample]) -> list[Sample]:
    """All samples, most probable first: the reference keeps 400 of 500 by this order."""
    return sorted(samples, key=lambda one: -one.log_prob)


def elect(samples: Iterable[Sample], margin: int | None = None) -> list[Sample]:
    """One sample for each source: the target that most of its draws have; clear decisions first.

    The draws of one source are made from many tuples of prototypes, so their targets stand for p(target | source) with
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
