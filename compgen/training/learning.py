"""Whether a training learns anything: said early, before an hour is spent on it."""

import torch
from torch import Tensor

from compgen.models.seeding import undrawn
from compgen.models.trainable import Trainable

AFTER = 60.0  # seconds of training after which the question is asked
LEAST_UPDATES = 100
FALLS = 0.98  # a loss has fallen if it is less than this share of the first
LOW = 0.1  # nats a token: a loss that may stay where it is
LEAST_ROWS = 8  # too few rows, below this, to tell whether memories matter
BEYOND = 2.0  # standard errors above 0 from where on a mean difference is no chance


def trouble(network: Trainable, sequences: Tensor, memories: Tensor, first: float, now: float, rate: float) -> str:
    """What says that nothing is learned, in words; empty if something is.

    Either the loss does not fall, or it is no worse with the memories of other rows, so that what is read says nothing
    about what is written: of the differences of rows, the mean is to be above 0 by two standard errors.

    Args:
        network: in training mode; random numbers are left as they are.
        sequences, memories: of some rows, as for `Trainable.loss`.
        first, now: the mean loss of the first and of the last updates, nats a token.
        rate: the learning rate.
    """
    if now > LOW and now > FALLS * first:
        return (
            f"the loss does not fall: {first:.2f} nats a token at first, {now:.2f} now; try another "
            f"optimisation.learning_rate than {rate:g}"
        )
    if memories.numel() and len(memories) >= LEAST_ROWS:
        own, others = (losses(network, sequences, some) for some in (memories, memories.roll(1, dims=0)))
        gained = others - own  # (B)
        if float(gained.mean()) <= BEYOND * float(gained.std()) / len(gained) ** 0.5:
            return (
                f"what is read makes no difference yet: given that of other examples, the loss is {others.mean():.2f} "
                f"nats an example, and {own.mean():.2f} given their own; do the two sides belong together?"
            )
    return ""


@torch.no_grad()
def losses(network: Trainable, sequences: Tensor, memories: Tensor) -> Tensor:
    """The loss (B) of rows without dropout; see `trouble`."""
    with undrawn(sequences.device):
        found = network.eval().loss(sequences, memories).sum(dim=1).double()
    network.train()
    return found
