"""Whether a network fits into memory for training, before any of it is allocated."""

import os

import torch

from compgen.errors import UserError
from compgen.models.build import build
from compgen.models.config import NetworkConfig, TransformerNetwork

BYTES = 4 * 4  # of a parameter in training: itself, its gradient, two moments of Adam, in float32


def check_memory(config: NetworkConfig | TransformerNetwork, vocabulary: int, device: str) -> None:
    """Raise UserError unless there is memory to train such a network, not counting that of its batches."""
    with torch.device("meta"):  # shapes only
        parameters = sum(parameter.numel() for parameter in build(config, vocabulary).parameters())
    needed, there = BYTES * parameters, _memory(device)
    if needed > there:
        lower = "network.size, network.inner or network.layers"
        if isinstance(config, NetworkConfig):
            lower = "network.hidden, network.encoder_hidden or network.embedding"
        raise UserError(
            f"not enough memory: training a network of {parameters:,} parameters takes more than "
            f"{needed / 2**30:,.1f} GiB, and there are {there / 2**30:,.1f} GiB: lower {lower}"
        )


def _memory(device: str) -> int:
    """The bytes of a device's memory."""
    if device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
