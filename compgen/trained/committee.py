"""Several predictors that answer together.

    for each source: let each member propose its best targets
        rank what was proposed by its mean log-probability over all members

A committee gains because trainings that differ only in their seed, or in their synthetic examples, err on different
sources. Members need not be of one architecture, nor know the same tokens. Where decoding averages
distributions token by token, members must share a vocabulary; here what one of them would write is to be proposed by
some member, which loses little, as members mostly propose the right target if any does.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.errors import UserError
from compgen.trained.limits import token_lists
from compgen.trained.predictor import Answer, Predictor


class Committee(Predictor):
    """Predictors that answer together, each with the same say. Their `names` are put before what they remark.

    Raises:
        UserError: there are fewer than two, one is no predictor or cannot score, or there are not as many names.
    """

    def __init__(self, members: Sequence[Predictor], names: Sequence[str] = ()) -> None:
        if not isinstance(members, Sequence):
            raise UserError(f"found {type(members).__name__}, expected a list of predictors")
        if len(members) < 2:
            raise UserError(f"found {len(members)} predictors to answer together, expected two or more")
        if names and len(names) != len(members):
            raise UserError(f"found {len(names)} names of {len(members)} predictors: expected one for each, or none")
        for member in members:
            if not isinstance(member, Predictor):
                raise UserError(
                    f"found {type(member).__name__} {member!r:.60}, expected predictors: Predictor.load opens one"
                )
            if member.unscored:
                raise UserError(member.unscored)
        self.members, self.names = list(members), list(names)

    def best(
        self,
        sources: Sequence[Sequence[str]],
        count: int,
        beam: int | None = None,
        batch: int = 256,
        unknown: bool = False,
    ) -> list[list[Answer]]:
        """See `Predictor`; each member proposes its `count` best. The log-probability is the mean of the members'."""
        sources = token_lists(sources)
        every = [member.best(sources, count, beam, batch, unknown) for member in self.members]
        proposed = [
            (row, list(target))
            for row, found in enumerate(zip(*every, strict=True))
            for target in dict.fromkeys(tuple(target) for ranked in found for target, _ in ranked)
        ]
        examples = Dataset.from_pairs((sources[row], target) for row, target in proposed)
        scores = self.log_probs(examples, batch)
        ranked: list[list[Answer]] = [[] for _ in sources]
        for (row, target), score in zip(proposed, scores.tolist(), strict=True):
            ranked[row].append((target, score))
        return [sorted(found, key=lambda answer: -answer[1])[:count] for found in ranked]

    def losses(
        self, dataset: Dataset, batch: int = 256, watch: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """The mean of the members' losses; see `Predictor`. A pretrained member's are in nats a piece."""
        count = len(self.members)
        parts = [
            one.losses(dataset, batch, _part_of(watch, number * len(dataset), count))
            for number, one in enumerate(self.members)
        ]
        found: NDArray[np.float64] = np.mean(parts, axis=0)
        return found

    def log_probs(self, dataset: Dataset, batch: int = 256) -> NDArray[np.float64]:
        """The mean of the members' log-probabilities in nats, each of the whole target; see `Predictor`."""
        found: NDArray[np.float64] = np.mean([one.log_probs(dataset, batch) for one in self.members], axis=0)
        return found

    def learnt_from(self, dataset: Dataset) -> bool:
        """Whether these are the examples that a member was trained on; see `Predictor`."""
        return any(member.learnt_from(dataset) for member in self.members)

    def remarks(self, sources: Sequence[Sequence[str]]) -> list[str]:
        """What any member cannot read of these sources."""
        names = self.names or [""] * len(self.members)
        remarks = (
            f"{name}: {remark}" if name else remark
            for name, member in zip(names, self.members, strict=True)
            for remark in member.remarks(sources)
        )
        return [*dict.fromkeys(remarks)]


def _part_of(watch: Callable[[int], None] | None, before: int, members: int) -> Callable[[int], None] | None:
    """Return what a member tells how many examples it has done; of all that members do, `before` is done already."""
    return None if watch is None else lambda done: watch((before + done) // members)
