"""Whether a network fits into memory for training, before any of it is allocated."""

import os
from collections.abc import Callable

import torch
from torch import nn

from compgen.errors import UserError

BYTES = 4 * 4  # of a parameter in training: itself, its gradient, two moments of Adam, in float32


def check_memory(build: Callable[[], nn.Module], settings: str, device: str) -> None:
    """Raise UserError unless there is memory to train the network that `build` makes, not counting that of its batches.

    `settings` are those to lower if there is too little.
    """
    with torch.device("meta"):  # shapes only
        parameters = sum(parameter.numel() for parameter in build().parameters())
    needed, there = BYTES * parameters, _memory(device)
    if needed > there:
        raise UserError(
            f"not enough memory: training a network of {parameters:,} parameters takes more than "
            f"{needed / 2**30:,.1f} GiB, and there are {there / 2**30:,.1f} GiB: lower {settings}"
        )


def _memory(device: str) -> int:
    """The bytes of a device's memory."""
    if device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
