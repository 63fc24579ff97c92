"""PyTorch's random numbers: initial weights, dropout and latent vectors in training. All of them are seeded here."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from typing import cast

import torch


def seed_torch(seed: int) -> None:
    """Seed the generators that PyTorch draws from by default: initial weights, dropout, latent vectors of training."""
    torch.manual_seed(seed)


def keeps_random_state() -> ContextDecorator:
    """Return a decorator that puts the CPU's random state back as it was before the function drew from it."""
    return cast(ContextDecorator, torch.random.fork_rng(devices=[]))


def undrawn(device: torch.device | str) -> AbstractContextManager[None]:
    """Return a context that puts the random states of the CPU, and of the GPU if the device is one, back in the end."""
    of_gpu = [torch.cuda.current_device()] if torch.device(device).type == "cuda" else []
    return cast(AbstractContextManager[None], torch.random.fork_rng(devices=of_gpu))


_DRAWING = threading.RLock()


@contextmanager
def draws_alone() -> Iterator[None]:
    """Put the random state back in the end, and let one thread at a time draw.

    All threads of a process draw from one stream. A second thread waits for the first, so that what each draws depends
    on its seed alone.
    """
    with _DRAWING, torch.random.fork_rng(devices=[]):
        yield


def torch_stream(seed: int) -> torch.Generator:
    """Return a generator of its own, for the initial scores of a grammar's rules."""
    return torch.Generator().manual_seed(seed)
