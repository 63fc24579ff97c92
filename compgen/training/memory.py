"""Whether a network that is to be trained fits into memory, before any of it is asked for."""

import os

import torch

from compgen.errors import UserError
from compgen.models.build import build
from compgen.models.config import NetworkConfig, TransformerNetwork

# What a parameter takes in training: itself, its gradient, two moments of Adam, all in float32.
BYTES = 4 * 4


def check_memory(config: NetworkConfig | TransformerNetwork, vocabulary: int, device: str) -> None:
    """See that there is memory to train a network of this configuration; what its batches take comes on top.

    Raises:
        UserError: there is not; says how much is needed and there.
    """
    with torch.device("meta"):  # shapes alone
        parameters = sum(parameter.numel() for parameter in build(config, vocabulary).parameters())
    needed, there = BYTES * parameters, _memory(device)
    if needed > there:
        lower = "network.size, network.inner or network.layers"
        if isinstance(config, NetworkConfig):
            lower = "network.hidden, network.encoder_hidden or network.embedding"
        raise UserError(
            f"not enough memory: to train a network of {parameters:,} parameters takes {needed / 2**30:,.1f} GiB and "
            f"more, and there are {there / 2**30:,.1f} GiB: lower {lower}"
        )


def _memory(device: str) -> int:
    """The bytes of a device's memory."""
    if device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
