"""Gradients of a batch by several threads, each with a part of its rows.

The operations of small networks are too small to share one among cores. Parts of a batch are as large as there are
threads, and each is computed from beginning to end by its own:

    part k = rows k, k + K, k + 2K, ...        gradient = the sum of the gradients of the K parts

A part draws its random numbers (dropout) from a generator of its own, whose seed is drawn for each update: the result
is a function of the seed and of K, and not of how threads take turns.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from compgen.data.vocabulary import PAD_ID
from compgen.models.seeding import own_stream
from compgen.models.trainable import Trainable

LEAST_ROWS = 16  # of a part: products of fewer rows are slower each
Found = tuple[Tensor, tuple[Tensor | None, ...]]  # loss of a part, and gradients


def parts(network: Trainable, batch: int) -> int:
    """How many parts batches of some size are computed in: as many as torch has threads, unless they are too small."""
    return max(1, min(torch.get_num_threads(), batch // LEAST_ROWS)) if network.divisible() else 1


class Divided:
    """A network whose losses and gradients are computed in parts, on the CPU."""

    def __init__(
        self, network: Trainable, count: int, context: Callable[[], AbstractContextManager[Any]] = nullcontext
    ) -> None:
        """Prepare to compute gradients of `network` in `count` parts, the loss of each in a `context` of its own."""
        self.network, self.count, self.context = network, count, context
        self.weights = [weight for weight in network.parameters() if weight.requires_grad]
        self.threads = max(1, torch.get_num_threads() // count)  # of each part's operations
        self.pool = ThreadPoolExecutor(count, "part")

    def backward(self, sequences: Tensor, memories: Tensor) -> Tensor:
        """Set the gradients of the mean loss over the rows; return the sum of losses, see `Trainable.loss`."""
        seeds = torch.randint(2**62, (self.count,)).tolist()
        places = [slice(part, None, self.count) for part in range(self.count)]
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            found = list(
                self.pool.map(self._part, [sequences[at] for at in places], [memories[at] for at in places], seeds)
            )
        finally:
            torch.set_num_threads(before)
        for weight, *gradients in zip(self.weights, *(gradients for _, gradients in found), strict=True):
            some = [gradient for gradient in gradients if gradient is not None]
            weight.grad = sum(some[1:], some[0]) / len(sequences) if some else None
        return torch.stack([loss for loss, _ in found]).sum()

    def _part(self, sequences: Tensor, memories: Tensor, seed: int) -> Found:
        sequences, memories = _without_padding(sequences), _without_padding(memories)
        with own_stream(seed):
            with self.context():
                loss = self.network.loss(sequences, memories).sum()
            return loss.detach(), torch.autograd.grad(loss, self.weights, allow_unused=True)


def _without_padding(tokens: Tensor) -> Tensor:
    """Tokens (B, ..., T) without the last places, where all have padding."""
    used = (tokens != PAD_ID).flatten(0, -2).any(dim=0).nonzero()
    return tokens[..., : int(used.max()) + 1 if len(used) else 0]
