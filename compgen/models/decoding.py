"""One decoding step with its choice of token: what sampling, TorchScript and ONNX all run.

The choice is by inverse CDF from a uniform number that is passed in, so that a sample depends on its address alone.
Each half of an example has its temperature: T > 0 draws from p^(1/T), T = 0 takes the most probable token. The
reference's "mixed" decoding is (T, 0): draw the source, then answer greedily.
"""

import torch
from torch import Tensor, nn

from compgen.models.network import Network

PAD, BOS, EOS, SEP, UNK = range(5)  # the order of the vocabulary's special symbols
BANNED = -1e9


class DecodingStep(nn.Module):
    """`Network.step`, then the choice of the next token. `network` is public: its `encode` and `start` come before."""

    banned: Tensor  # (2, V) tokens that may not come: at later steps, and at the first

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.separator, self.low = SEP, BANNED  # attributes, because TorchScript does not read a module's globals
        never = torch.zeros(network.vocabulary, dtype=torch.bool)
        never[[PAD, BOS, UNK]] = True
        first = never.clone()
        first[[EOS, SEP]] = True
        self.register_buffer("banned", torch.stack([never, first]), persistent=False)

    def forward(
        self,
        token: Tensor,
        hidden: Tensor,
        cell: Tensor,
        fed: Tensor,
        position: Tensor,
        half: Tensor,
        uniform: Tensor,
        temperature: Tensor,
        memory: Tensor,
        memory_tokens: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Advance every row by one token.

        Args:
            token, position, half: (B) ids, step numbers from 0, and 0 before the separator was written, 1 after.
            hidden, cell, fed: (B, H), (B, H), (B, F), the network's state.
            uniform: (B) numbers in [0, 1).
            temperature: (2), of the source half and of the target half.
            memory, memory_tokens: (B, n, T, 2A), (B, n, T).

        Returns:
            next token (B), log-probabilities (B, V) before bans and temperature, next half (B), next hidden, cell, fed.
        """
        log_probs, hidden, cell, fed = self.network.step(token, hidden, cell, fed, position, memory, memory_tokens)
        banned = self.banned[(position == 0).to(torch.int64)]
        allowed = torch.where(banned, torch.full_like(log_probs, self.low), log_probs)
        warmth = temperature[half].unsqueeze(1)  # (B, 1)
        heat = torch.where(warmth > 0, warmth, torch.ones_like(warmth))
        cdf = torch.cumsum(torch.softmax(allowed / heat, dim=1), dim=1)
        edge = uniform.unsqueeze(1) * cdf[:, -1:]
        drawn = (cdf <= edge).to(torch.int64).sum(dim=1).clamp(max=log_probs.shape[1] - 1)
        chosen = torch.where(warmth[:, 0] > 0, drawn, allowed.argmax(dim=1))
        return chosen, log_probs, torch.maximum(half, (chosen == self.separator).to(torch.int64)), hidden, cell, fed
