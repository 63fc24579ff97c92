"""Attention over n memories at once, with relative positions (R&R, appendix A.3).

Symbols: B batch, n memories, L decoder steps, T memory tokens, A attention size, K position clip.
Each memory has its own query, key and value maps, position tables and softmax. With tokens j and steps t counted from
0, the relative position is clip(j - t, -K, K) + K:

    score = Q . (key_j + PK[p(j, t)]) / sqrt(A)        context = sum_j softmax_j(score) (value_j + PV[p(j, t)])
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compgen.models.products import Linear, linear

MASKED = -1e9  # the score of what must not be chosen or attended to; finite, as a softmax over -inf alone is NaN


class Attention(nn.Module):
    """n independent attentions, evaluated as one batch of matrix products."""

    def __init__(self, memories: int, query: int, memory: int, size: int, positions: int, activation: str) -> None:
        super().__init__()
        self.memories, self.size, self.positions = memories, size, positions
        self.tanh = activation == "tanh"
        self.masked = MASKED  # an attribute, because TorchScript does not read a module's globals
        self.query = Linear(query, memories * size)
        self.key_value = Linear(memory, memories * 2 * size)
        rows = 2 * positions + 1 if positions else 0
        self.position_keys = nn.Parameter(torch.empty(memories, rows, size))
        self.position_values = nn.Parameter(torch.empty(memories, rows, size))
        if positions:
            nn.init.uniform_(self.position_keys, -1 / math.sqrt(rows), 1 / math.sqrt(rows))
            bound = math.sqrt(6 / (rows + size))
            nn.init.uniform_(self.position_values, -bound, bound)

    def prepare(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, n, T, A) of encoder states (B, T, D)."""
        prepared: Tensor = self.key_value(states)  # (B, T, n * 2A)
        if self.tanh:
            prepared = torch.tanh(prepared)
        prepared = prepared.reshape(states.shape[0], states.shape[1], self.memories, 2 * self.size).transpose(1, 2)
        keys, values = prepared.chunk(2, dim=3)
        return keys.contiguous(), values.contiguous()

    def prepare_one(self, states: Tensor, slot: int) -> tuple[Tensor, Tensor]:
        """Keys and values (..., A), in one memory's role alone, of encoder states (..., D)."""
        rows = slice(2 * self.size * slot, 2 * self.size * (slot + 1))
        prepared = linear(states, self.key_value.weight[rows], self.key_value.bias[rows], self.training)  # (..., 2A)
        if self.tanh:
            prepared = torch.tanh(prepared)
        keys, values = prepared.chunk(2, dim=-1)
        return keys, values

    def queries(self, x: Tensor) -> Tensor:
        """Queries (B, n, L, A) from the sums of the query map (B, L, n * A)."""
        if self.tanh:
            x = torch.tanh(x)
        return x.reshape(x.shape[0], x.shape[1], self.memories, self.size).transpose(1, 2)

    def forward(
        self, query: Tensor, keys: Tensor, values: Tensor, inside: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            query: (B, n, L, A) from `queries`.
            keys, values: (B, n, T, A) from `prepare`.
            inside: (B, n, T), true where the memory has a token.
            step: (B, L) or (1, L), the decoder step of each query.

        Returns:
            contexts (B, L, n * A) and masked scores (B, n, L, T), the copy logits of appendix A.3.
        """
        batch, memories, length = query.shape[0], query.shape[1], query.shape[2]
        scores = torch.matmul(query, keys.transpose(2, 3))  # (B, n, L, T)
        distance = step.unsqueeze(2)  # overwritten below; TorchScript wants it defined on both paths
        if self.positions > 0:
            distance = torch.arange(keys.shape[2], device=step.device) - step.unsqueeze(2)  # j - t: (B, L, T)
            relative = distance.clamp(-self.positions, self.positions) + self.positions
            by_row = each(query, self.position_keys.transpose(1, 2))  # (B, n, L, 2K + 1)
            relative = relative.unsqueeze(1).expand(batch, memories, length, keys.shape[2])
            scores = scores + torch.gather(by_row, 3, relative)
        scores = (scores / math.sqrt(self.size)).masked_fill(~inside.unsqueeze(2), self.masked)
        weights = torch.softmax(scores, dim=3)
        context = torch.matmul(weights, values)  # (B, n, L, A)
        if self.positions > 0:
            context = context + each(self._by_position(weights, distance, step), self.position_values)
        return context.transpose(1, 2).reshape(batch, length, memories * self.size), scores

    def _by_position(self, weights: Tensor, distance: Tensor, step: Tensor) -> Tensor:
        """Sum weights (B, n, L, T) by relative position: (B, n, L, 2K + 1).

            result[r] = sum of weights[j] over tokens j with clip(j - t, -K, K) + K = r

        All positions but the two clipped ones have one token at most and are gathered: the scatter that this is takes
        ONNX Runtime ten times as long.
        """
        clip, time = self.positions, weights.shape[3]
        offsets = torch.arange(1 - clip, clip, device=step.device)
        token = step.unsqueeze(2) + offsets  # (B, L, 2K - 1), the token at each offset, if there is one
        token = torch.where((token >= 0) & (token < time), token, time).unsqueeze(1)
        token = token.expand(weights.shape[0], weights.shape[1], weights.shape[2], 2 * clip - 1)
        between = torch.gather(F.pad(weights, [0, 1]), 3, token)  # (B, n, L, 2K - 1)
        before = (weights * (distance <= -clip).unsqueeze(1)).sum(dim=3, keepdim=True)
        after = (weights * (distance >= clip).unsqueeze(1)).sum(dim=3, keepdim=True)
        return torch.cat([before, between, after], dim=3)


def each(x: Tensor, matrices: Tensor) -> Tensor:
    """Multiply x (B, n, L, I) by n matrices (n, I, O): (B, n, L, O).

    These are n large products; a broadcast `matmul` would copy every matrix for every row of the batch.
    """
    batch, memories, length = x.shape[0], x.shape[1], x.shape[2]
    rows = x.transpose(0, 1).reshape(memories, batch * length, x.shape[3])  # (n, B * L, I)
    product = torch.bmm(rows, matrices)  # (n, B * L, O)
    return product.reshape(memories, batch, length, matrices.shape[2]).transpose(0, 1)
