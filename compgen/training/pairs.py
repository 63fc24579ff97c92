"""Pairs of ids as batches: original examples with augmented ones, fixed or drawn anew in each epoch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from compgen.augmenters.base import Augmenter
from compgen.data.examples import Dataset
from compgen.data.padding import padded
from compgen.data.random import Purpose, Stream, stream
from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.models.trainable import Trainable
from compgen.training.batches import Rows, bucketed

Pairs = list[tuple[list[int], list[int]]]
P_FRESH = 0.5  # the share of fresh examples unless `p_aug` says otherwise
CANDIDATES = 4  # for each fresh example that is chosen by its loss
_BATCH = 256  # whose losses are computed together


def synthetic(original: int, p_aug: float) -> int:
    """How many synthetic examples an epoch takes with its original ones; if any are asked for, one at least."""
    return max(1, round(original * p_aug / (1 - p_aug))) if p_aug else 0


class PairExamples:
    """Original and augmented pairs as batches.

    Without `p_aug` an epoch is their union. With it, an example is an augmented one with that probability: an epoch
    holds every original once (the reference's mixture) and augmented pairs, shuffled and cycled.
    """

    def __init__(self, original: Pairs, augmented: Pairs, p_aug: float | None, batch: int, seed: int) -> None:
        self.original, self.p_aug = len(original), p_aug if augmented else None
        self.batch, self.seed = batch, seed
        self.chosen: dict[int, list[int]] = {}
        self.hold(original + augmented)

    def hold(self, pairs: Pairs) -> None:
        """Take the pairs, the originals first."""
        self.augmented = len(pairs) - self.original
        self.targets = padded([[BOS_ID, *target, EOS_ID] for _, target in pairs])
        self.sources = padded([[*source, EOS_ID] for source, _ in pairs])
        self.source_lengths = np.array([len(source) + 1 for source, _ in pairs])
        self.target_lengths = np.array([len(target) + 2 for _, target in pairs])

    def plan(self, epoch: int) -> list[Rows]:
        """The epoch's rows, in batches of like target length."""
        rng = stream(Purpose.BATCHES, self.seed, epoch)
        rows = self._mixture(rng) if self.p_aug is not None else np.arange(self.original + self.augmented)
        return [rows[batch] for batch in bucketed(self.target_lengths[rows], self.batch, rng)]

    def _mixture(self, rng: Stream) -> NDArray[np.int64]:
        assert self.p_aug is not None
        drawn = synthetic(self.original, self.p_aug)
        cycles = -(-drawn // self.augmented)
        order = np.concatenate([rng.permutation(self.augmented) for _ in range(max(1, cycles))])[:drawn]
        return np.concatenate([np.arange(self.original), self.original + order])

    def collate(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Targets (B, L) with start and end symbols, and sources (B, 1, T)."""
        targets = self.targets[rows, : self.target_lengths[rows].max()]
        sources = self.sources[rows, : self.source_lengths[rows].max()]
        return torch.from_numpy(targets), torch.from_numpy(sources[:, None])


@dataclass(frozen=True)
class Fresh:
    """A fitted augmenter that training draws from.

    Attributes:
        augmenter: fitted to the training examples.
        hard: draw four times as many, and keep some in proportion to what the predictor loses on them.
    """

    augmenter: Augmenter[Any]
    hard: bool = False

    def draw(self, count: int, seed: int, epoch: int) -> Dataset:
        """The examples of an epoch, a function of the seed and the epoch."""
        return self.augmenter.sample(count, int(stream(Purpose.FRESH, seed, epoch).integers(2**32)))

    def described(self) -> dict[str, Any]:
        """What is drawn from, as JSON values."""
        return {"augment": self.augmenter.name, "options": self.augmenter.options.identity(), "hard": self.hard}


class FreshExamples(PairExamples):
    """Original pairs, and augmented ones that are drawn anew in each epoch (RandS2 in Li et al. 2023).

    With a network, four candidates are drawn for each example that is needed, and a fourth of them is kept, drawn
    without replacement, each with a weight of its loss a token at the beginning of the epoch. (In Li et al. an
    augmenter is trained to find them.) In the first epoch the network knows nothing, and the first are kept. What was
    kept is in `chosen`, by epoch, and goes on after an interruption.
    """

    def __init__(
        self,
        original: Pairs,
        draw: Callable[[int, int], Pairs],
        p_aug: float,
        batch: int,
        seed: int,
        network: Trainable | None = None,
    ) -> None:
        self.pairs, self.draw, self.network = original, draw, network
        self.needed = synthetic(len(original), p_aug)
        super().__init__(original, draw(self.needed, 0), p_aug, batch, seed)

    def plan(self, epoch: int) -> list[Rows]:
        """Draw the epoch's examples, and plan as for others."""
        if self.network is None:
            self.hold(self.pairs + self.draw(self.needed, epoch))
        else:
            candidates = self.draw(CANDIDATES * self.needed, epoch)
            if epoch not in self.chosen:
                self.chosen = {epoch: self._choose(candidates, self.network, epoch)}
            self.hold(self.pairs + [candidates[place] for place in self.chosen[epoch]])
        return super().plan(epoch)

    def _choose(self, candidates: Pairs, network: Trainable, epoch: int) -> list[int]:
        """The places of the candidates that are kept."""
        if not epoch:
            return list(range(min(self.needed, len(candidates))))
        some = PairExamples(candidates, [], None, _BATCH, self.seed)
        losses = np.zeros(len(candidates))
        device, training = next(network.parameters()).device, network.training
        network.eval()
        with torch.no_grad():
            for rows in np.array_split(np.arange(len(candidates)), -(-len(candidates) // _BATCH)):
                targets, sources = (tensor.to(device) for tensor in some.collate(rows))
                losses[rows] = network.loss(targets, sources).sum(dim=1).double().cpu().numpy()
        network.train(training)
        losses /= some.target_lengths - 1
        random = stream(Purpose.FRESH, self.seed, epoch, 1).random(len(losses))
        race = -np.log1p(-random) / np.maximum(losses, 1e-9)  # the first to finish, at speeds of their losses
        return [int(place) for place in np.argsort(race, kind="stable")[: self.needed]]
