"""Whether a network that is to be trained fits into memory, before any of it is asked for."""

import os
from collections.abc import Callable

import torch
from torch import nn

from compgen.errors import UserError

# What a parameter takes in training: itself, its gradient, two moments of Adam, all in float32.
BYTES = 4 * 4


def check_memory(build: Callable[[], nn.Module], settings: str, device: str) -> None:
    """See that there is memory to train a network; what its batches take comes on top.

    Args:
        build: makes the network.
        settings: those to lower if there is too little.
        device: cpu or cuda.

    Raises:
        UserError: there is too little; says how much is needed and there.
    """
    with torch.device("meta"):  # shapes alone
        parameters = sum(parameter.numel() for parameter in build().parameters())
    needed, there = BYTES * parameters, _memory(device)
    if needed > there:
        raise UserError(
            f"not enough memory: to train a network of {parameters:,} parameters takes {needed / 2**30:,.1f} GiB and "
            f"more, and there are {there / 2**30:,.1f} GiB: lower {settings}"
        )


def _memory(device: str) -> int:
    """The bytes of a device's memory."""
    if device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
