"""Attention over n memories at once, with relative positions (R&R, appendix A.3).

Symbols: B batch, n memories, L decoder steps, T memory tokens, A attention size, K position clip.
Each memory has its own query, key and value maps, position tables and softmax. With tokens j and steps t counted from
0, the relative position is clip(j - t, -K, K) + K:

    score = Q . (key_j + PK[p(j, t)]) / sqrt(A)        context = sum_j softmax_j(score) (value_j + PV[p(j, t)])
"""

import math

import torch
from torch import Tensor, nn

MASKED = -1e9  # finite, so that a memory without tokens gives numbers and not NaN


class Attention(nn.Module):
    """n independent attentions, evaluated as one batch of matrix products."""

    def __init__(self, memories: int, query: int, memory: int, size: int, positions: int, activation: str) -> None:
        super().__init__()
        self.memories, self.size, self.positions = memories, size, positions
        self.tanh = activation == "tanh"
        self.masked = MASKED  # an attribute, because TorchScript does not read a module's globals
        self.query = nn.Linear(query, memories * size)
        self.key_value = nn.Linear(memory, memories * 2 * size)
        rows = 2 * positions + 1 if positions else 0
        self.position_keys = nn.Parameter(torch.empty(memories, rows, size))
        self.position_values = nn.Parameter(torch.empty(memories, rows, size))
        if positions:
            nn.init.uniform_(self.position_keys, -1 / math.sqrt(rows), 1 / math.sqrt(rows))
            bound = math.sqrt(6 / (rows + size))
            nn.init.uniform_(self.position_values, -bound, bound)

    def prepare(self, states: Tensor) -> Tensor:
        """Keys and values (B, n, T, 2A) that each of the n attentions makes of encoder states (B, T, D)."""
        prepared: Tensor = self.key_value(states)
        if self.tanh:
            prepared = torch.tanh(prepared)
        return prepared.reshape(states.shape[0], states.shape[1], self.memories, 2 * self.size).transpose(1, 2)

    def queries(self, x: Tensor) -> Tensor:
        """Queries (B, n, L, A) from decoder features (B, L, Q)."""
        query: Tensor = self.query(x)
        if self.tanh:
            query = torch.tanh(query)
        return query.reshape(x.shape[0], x.shape[1], self.memories, self.size).transpose(1, 2)

    def forward(
        self, query: Tensor, keys: Tensor, values: Tensor, inside: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            query: (B, n, L, A) from `queries`.
            keys, values: (B, n, T, A), the halves of what `prepare` gives. They come apart because a slice inside the
                decoding loop would cost its whole memory again in every backward step.
            inside: (B, n, T), true where the memory has a token.
            step: (B, L) or (1, L), the decoder step of each query.

        Returns:
            contexts (B, L, n * A) and masked scores (B, n, L, T), the copy logits of appendix A.3.
        """
        batch, memories, length = query.shape[0], query.shape[1], query.shape[2]
        scores = torch.matmul(query, keys.transpose(2, 3))
        relative = step  # overwritten below; TorchScript wants it defined on both paths
        if self.positions > 0:
            token = torch.arange(keys.shape[2], device=step.device)
            relative = (token - step.unsqueeze(2)).clamp(-self.positions, self.positions) + self.positions
            relative = relative.unsqueeze(1).expand(batch, memories, length, keys.shape[2])  # (B, n, L, T)
            by_row = torch.matmul(query, self.position_keys.transpose(1, 2))  # (B, n, L, 2K + 1)
            scores = scores + torch.gather(by_row, 3, relative)
        scores = (scores / math.sqrt(self.size)).masked_fill(~inside.unsqueeze(2), self.masked)
        weights = torch.softmax(scores, dim=3)
        context = torch.matmul(weights, values)
        if self.positions > 0:
            rows = torch.zeros(
                (batch, memories, length, 2 * self.positions + 1), dtype=weights.dtype, device=weights.device
            )
            context = context + torch.matmul(rows.scatter_add(3, relative, weights), self.position_values)
        return context.transpose(1, 2).reshape(batch, length, memories * self.size), scores
