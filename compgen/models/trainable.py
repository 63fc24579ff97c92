"""What the training loop asks of a network."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn


class Trainable(nn.Module, ABC):
    """A network that can be trained on sequences, each written given memories: prototypes, or one source."""

    architecture: ClassVar[str]  # its tag in `trained.architectures`

    @abstractmethod
    def loss(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Return the loss (B, L - 1) of the tokens after the first, 0 at padding.

        Args:
            sequences: (B, L) ids that begin with the start symbol and end with the end symbol, padded with 0.
            memory_tokens: (B, n, T) ids with their end symbols, padded with 0.
        """

    @abstractmethod
    def predicts(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Return whether greedy decoding from the first token of each sequence writes the rest: (B), boolean."""
