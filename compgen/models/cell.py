"""The LSTM cell, forward and backward, on buffers: for recurrences that are one operation to autograd.

Gates are here in the order input, forget, output, candidate, so that the three sigmoids lie together. All functions
write where they are told to and allocate next to nothing.
"""

from typing import Any

import torch
from torch import Tensor

_OPS: Any = torch.ops.aten


def sigmoids_first(weights: Tensor, dim: int) -> Tensor:
    """Put weights of gates, 4H along `dim`, into this order, from torch's: input, forget, candidate, output."""
    enter, forget, candidate, leave = weights.chunk(4, dim=dim)
    return torch.cat([enter, forget, leave, candidate], dim=dim)


def tanh(x: Tensor, out: Tensor) -> Tensor:
    """The tanh of x as 2 sigmoid(2x) - 1: torch's own takes several times as long. Its error is that of 1 in float."""
    return torch.mul(x, 2, out=out).sigmoid_().mul_(2).sub_(1)


def forward(gates: Tensor, before: Tensor, cell: Tensor, squashed: Tensor, hidden: Tensor) -> None:
    """Take a step: turn sums (..., 4H) into gates in place, and write the cell state, its tanh, and the hidden state.

        cell = forget * before + input * candidate          hidden = output * tanh(cell)

    Args:
        gates: (..., 4H).
        before: (..., H), the cell state of the step before.
        cell, squashed, hidden: (..., H), written to.
    """
    size = cell.shape[-1]
    gates[..., : 3 * size].sigmoid_()
    candidate = gates[..., 3 * size :]
    tanh(candidate, out=candidate)
    torch.mul(gates[..., size : 2 * size], before, out=cell)
    cell.addcmul_(gates[..., :size], candidate)
    torch.mul(gates[..., 2 * size : 3 * size], tanh(cell, out=squashed), out=hidden)


def backward(
    gates: Tensor, before: Tensor, squashed: Tensor, d_hidden: Tensor, d_cell: Tensor, d_gates: Tensor
) -> None:
    """Take a step back: from the gradient of the hidden state write that of the sums, and pass on that of the cell.

    Args:
        gates, before, squashed: as `forward` left them.
        d_hidden: (..., H).
        d_cell: (..., H), of the cell state; becomes that of `before`.
        d_gates: (..., 4H), written to.
    """
    size = squashed.shape[-1]
    enter, forget, leave, candidate = (gates[..., size * part : size * (part + 1)] for part in range(4))
    d_enter, d_forget, d_leave, d_candidate = (d_gates[..., size * part : size * (part + 1)] for part in range(4))
    d_cell.add_(_OPS.tanh_backward(d_hidden * leave, squashed))
    torch.mul(d_cell, candidate, out=d_enter)
    torch.mul(d_cell, before, out=d_forget)
    torch.mul(d_hidden, squashed, out=d_leave)
    sigmoids, d_sigmoids = gates[..., : 3 * size], d_gates[..., : 3 * size]
    _OPS.sigmoid_backward.grad_input(d_sigmoids, sigmoids, grad_input=d_sigmoids)
    _OPS.tanh_backward.grad_input(d_cell * enter, candidate, grad_input=d_candidate)
    d_cell.mul_(forget)
