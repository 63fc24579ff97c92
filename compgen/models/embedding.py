"""Embeddings of tokens."""

from torch import nn


class Embedding(nn.Embedding):
    """PyTorch's, which costs nothing on the meta device, where a network is built for its shapes alone.

    There are no values there; PyTorch would import its compiler (2 s) only to draw none.
    """

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()
