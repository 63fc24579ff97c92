"""PyTorch's random numbers: initial weights, dropout and latent vectors in training. All of them are seeded here."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_torch(seed: int) -> None:
    """Seed the generators that PyTorch draws from by default: initial weights, dropout, latent vectors of training."""
    torch.manual_seed(seed)


@contextmanager
def undrawn(device: torch.device | str) -> Iterator[None]:
    """Put the random state of the CPU back in the end, and that of the GPU if `device` is one."""
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if torch.device(device).type == "cuda" else []):
        yield


_DRAWING = threading.RLock()


@contextmanager
def draws_alone() -> Iterator[None]:
    """Put the random state back in the end, and let one thread at a time draw.

    All threads of a process draw from one stream. A second thread waits for the first, so that what each draws depends
    on its seed alone.
    """
    with _DRAWING, undrawn("cpu"):
        yield


def torch_stream(seed: int) -> torch.Generator:
    """Return a generator of its own, for the initial scores of a grammar's rules."""
    return torch.Generator().manual_seed(seed)
