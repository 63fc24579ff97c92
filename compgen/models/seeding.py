"""PyTorch's random numbers: initial weights, dropout and latent vectors in training. All of them are seeded here.

What several threads draw must not depend on how they take turns: each may have a generator of its own, which dropout
asks for by `generator()`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_torch(seed: int) -> None:
    """Seed the generators that PyTorch draws from by default: initial weights, dropout, latent vectors of training."""
    torch.manual_seed(seed)


def torch_stream(seed: int) -> torch.Generator:
    """Return a generator apart from those: the initial scores of a grammar's rules."""
    return torch.Generator().manual_seed(seed)


class _Own(threading.local):
    generator: torch.Generator | None = None


_OWN = _Own()


@contextmanager
def own_stream(seed: int) -> Iterator[None]:
    """Let this thread draw from a generator of its own."""
    _OWN.generator = torch_stream(seed)
    try:
        yield
    finally:
        _OWN.generator = None


def generator() -> torch.Generator | None:
    """Return the generator of this thread, as torch's functions take it: None is PyTorch's own."""
    return _OWN.generator
