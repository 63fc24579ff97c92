"""What a step of the decoder reads and leaves, and the products that its steps have in common.

Symbols as in `compgen.models.network`.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Memory(NamedTuple):
    """The n memories that a decoder attends to."""

    keys: Tensor  # (B, n, T, A)
    values: Tensor  # (B, n, T, A)
    inside: Tensor  # (B, n, T), true where a memory has a token


class Notes(NamedTuple):
    """The tokens written that a step may attend to; not read by a network without `own`."""

    notes: Tensor  # (B, S, A) from `Network.note`
    seen: Tensor  # (B, L, S) or (1, L, S), true where step l may look at token s


class Recurrence(NamedTuple):
    """What one step of the decoder leaves to the next."""

    hidden: Tensor  # (B, H)
    cell: Tensor  # (B, H)
    fed: Tensor  # (B, F), the last output u, at first zeros; not read without input feeding


class Terms(NamedTuple):
    """What an operand adds to the gates of the LSTM and to the queries of attention, or the matrices for that."""

    gates: Tensor  # (..., 4H)
    queries: Tensor  # (..., nA); empty without memories


def terms_of(x: Tensor, weights: Terms, biases: Terms) -> Terms:
    """What x (..., E) adds to gates and queries."""
    gates = F.linear(x, weights.gates, biases.gates)
    return Terms(gates, F.linear(x, weights.queries, biases.queries))


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and cell state from gate sums (B, 4H) in the order input, forget, candidate, output."""
    enter, forget, candidate, leave = gates.chunk(4, dim=1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
    return torch.sigmoid(leave) * torch.tanh(cell), cell
