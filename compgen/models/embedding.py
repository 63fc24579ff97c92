"""Embeddings of tokens, and how their first weights are drawn."""

from torch import Tensor, nn


def draw(weights: Tensor, deviation: float = 1.0) -> None:
    """Draw normal numbers of this standard deviation, but on the meta device.

    A network is built there for its shapes alone; there are no values, and PyTorch would import its compiler (2 s) only
    to draw none.
    """
    if not weights.is_meta:
        nn.init.normal_(weights, std=deviation)


class Embedding(nn.Embedding):
    """PyTorch's embedding, whose first weights are drawn by `draw`."""

    def reset_parameters(self) -> None:
        """Draw normal numbers, as PyTorch does."""
        draw(self.weight)
