"""Choosing among kept samples: the most probable ones, those that draws agree on, those whose novelty is no slip."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compgen.data.vocabulary import PAD_ID
from compgen.errors import UserError, real, whole
from compgen.sampling.batching import Tokens
from compgen.sampling.resampling import FilterConfig, Kept, Rarity, Training

Votes = tuple[int, int]  # of a source's draws, those for the target, and all
Chosen = tuple[Kept, Votes | None]


@dataclass(frozen=True)
class Choice:
    """How to choose among the kept samples once all are drawn; by default all are taken, as they come.

    Attributes:
        vote: one target for each source, by `elect`; else the most probable come first.
        margin: of a vote, by how many votes the target must have won; see `elect`.
        support: see `supported`.
        best: the most samples to take, from the first on.
    """

    vote: bool = False
    margin: int | None = None
    support: float | None = None
    best: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError for a margin without a vote, or a number that is impossible."""
        for name, number in (("best", self.best), ("margin", self.margin)):
            if number is not None and ((found := whole(number)) is None or found < 0):
                raise UserError(f"{name} {number!r:.60}: expected a whole number of 0 or more")
        if self.support is not None and not 0 <= real(self.support) < math.inf:
            raise UserError(f"support {self.support!r:.60}: expected a share of the samples, 0 or more")
        if self.margin is not None and not self.vote:
            raise UserError("a margin says by how many votes a vote must be won: use it with --vote")

    @property
    def made(self) -> bool:
        """Whether there is anything to choose, so that samples must be collected first."""
        return self != Choice()

    def drawing(self, filters: FilterConfig) -> FilterConfig:
        """Return the filters to draw with.

        Known targets and pairs vote too, and some win, as do those that are not rare: what must be new beside the
        source, and what must be rare, is asked of winners alone.

        Raises:
            UserError: the filter `unique` before a vote.
        """
        if not self.vote:
            return filters
        if "unique" in filters.names:
            raise UserError("a vote counts repeated draws, which the filter unique drops: leave unique out")
        filters = replace(filters, voting=True)
        if "novel" not in filters.names:
            return filters
        if filters.novelty == "pair":
            return replace(filters, names=tuple(name for name in filters.names if name != "novel"), novelty="both")
        return replace(filters, novelty="source")

    def of(self, samples: Iterable[Kept], filters: FilterConfig, training: Training) -> list[Chosen]:
        """Choose among samples that were drawn with `drawing(filters)`."""
        chosen: list[Chosen]
        chosen = elect(samples, self.margin) if self.vote else [(one, None) for one in most_probable(samples)]
        if self.vote and "novel" in filters.names:
            chosen = [one for one in chosen if not training.knows(one[0][1], one[0][2], filters.novelty)]
        if self.vote and "rare" in filters.names:
            rarity = Rarity(filters, training)
            chosen = [one for one in chosen if rarity.u(one[0][1], one[0][2])]
        if self.support is not None:
            held = supported([source for (_, source, _), _ in chosen], training.sources, self.support)
            chosen = [one for one, enough in zip(chosen, held, strict=True) if enough]
        return chosen[: self.best]


def most_probable(samples: Iterable[Kept]) -> list[Kept]:
    """Return all samples, most probable first: the reference keeps 400 of 500 by this order."""
    return sorted(samples, key=lambda one: -one[0].log_prob)


def elect(samples: Iterable[Kept], margin: int | None = None) -> list[Chosen]:
    """Return one sample for each source, with the target drawn most often; clear decisions first.

    The draws of one source are made from many tuples of prototypes, so their targets stand for p(target | source) with
    the prototypes marginalised out (eq. 7), and the target drawn most often wins; of equals, the more probable. Sources
    rank by the margin, which is the draws for the winner less all those against it, then by votes, then by probability;
    those of a smaller margin than `margin` are left out. The paper has no such step; `docs/results.md` has figures.

    Of draws that are alike in prototypes, too, the first is taken: their probabilities differ by rounding alone, unless
    a grammar derived them in several ways or latent vectors differ.
    """
    found = list(samples)
    cast = Counter(source for _, source, _ in found)
    won = Counter((source, target) for _, source, target in found)
    first: dict[object, Kept] = {}
    for one in found:
        first.setdefault((one[1], one[2], tuple(one[0].prototypes)), one)
    winners: dict[Tokens, tuple[int, Chosen]] = {}
    for one in sorted(first.values(), key=lambda row: (-won[row[1], row[2]], -row[0].log_prob)):
        _, source, target = one
        votes = won[source, target], cast[source]
        winners.setdefault(source, (2 * votes[0] - votes[1], (one, votes)))
    clearest = sorted(winners.values(), key=lambda row: -row[0])  # keeps the order by votes and probability within
    return [one for by, one in clearest if margin is None or by >= margin]


def supported(sources: Sequence[Tokens], known: Iterable[Tokens], share: float) -> list[bool]:
    """Return which sources have only new pairs of neighbouring tokens that a share of all sources has, or more.

    New is what no `known` source has; both ends of a source count as neighbours. A combination that training happens to
    lack is made in many samples, while slips of a generator differ from one another. The paper has no such step.
    """
    old = {pair for source in known for pair in _neighbours(source)}
    new = [_neighbours(source) - old for source in sources]
    held = Counter(pair for pairs in new for pair in pairs)
    return [all(held[pair] / len(new) >= share for pair in pairs) for pairs in new]


def _neighbours(source: Tokens) -> set[tuple[int, int]]:
    """Return the pairs of neighbouring ids, with padding beyond both ends."""
    return set(zip([PAD_ID, *source], [*source, PAD_ID], strict=True))
