"""Dropout with bytes as random numbers."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout in a fraction of the time of PyTorch's, which on a CPU draws 32 random bits for each number, not 8.

    The share is rounded to 1 / 256, and what is kept is scaled by the rounded share.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropped = round(share * 256)

    def forward(self, x: Tensor) -> Tensor:
        """Drop some of x, in training."""
        return x * self.factors(x, list(x.shape)) if self.training and self.dropped > 0 else x

    @torch.jit.unused  # what is exported drops nothing
    def factors(self, like: Tensor, shape: list[int]) -> Tensor:
        """Random factors of some shape, and of a tensor's type: 0, or 1 / (1 - share)."""
        kept = like.new_empty(shape)
        eighth = torch.empty((kept.numel() + 7) // 8, dtype=torch.int64, device=like.device).random_(-(2**63), None)
        # Numbers of the tensor's own type: products with booleans would convert them, forwards and backwards.
        torch.ge(eighth.view(torch.uint8)[: kept.numel()].view(shape), self.dropped, out=kept)
        return kept.mul_(256 / (256 - self.dropped))
