"""PyTorch's random numbers: initial weights, dropout and latent vectors in training. All of them are seeded here."""

from contextlib import ContextDecorator
from typing import cast

import torch


def seed_torch(seed: int) -> None:
    """Seed the generators that PyTorch draws from by default: initial weights, dropout, latent vectors of training."""
    torch.manual_seed(seed)


def keeps_random_state() -> ContextDecorator:
    """Return a decorator: what a function draws on the CPU leaves its caller's random numbers as they were."""
    return cast(ContextDecorator, torch.random.fork_rng(devices=[]))


def torch_stream(seed: int) -> torch.Generator:
    """Return a generator apart from those: the initial scores of a grammar's rules."""
    return torch.Generator().manual_seed(seed)
