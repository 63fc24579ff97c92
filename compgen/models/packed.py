"""A bidirectional LSTM that reads no padding: what `Encoder` computes, as one operation with its own backward pass.

Sequences are sorted by length, the longest first, so that step t has the first `counts[t]` of them. Their tokens are
packed step by step, without gaps: token t of sequence r is in row `offsets[t] + r`. The backward direction reads each
sequence from its own end, so that both directions have the same steps:

    for t = 0, 1, ...:  the rows of step t = cell(given gates + W (the first counts[t] states of step t - 1))

Symbols: R sequences, N tokens of them all, T steps, H units in each direction; a leading 2 stands for the directions.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from compgen.models import cell, compiled
from compgen.models.attention import Attention
from compgen.models.cell import sigmoids_first
from compgen.models.encoder import Encoder
from compgen.models.products import product

_OPS: Any = torch.ops.aten


class Packing(NamedTuple):
    """Where tokens of sequences go, (N) each, but for the first two."""

    counts: list[int]  # (T), sequences that have a token t
    last: Tensor  # (R), the row of the last step of each sequence, in the order of the sequences given
    row: Tensor  # which sequence, in the order given
    place: Tensor  # which token of it
    mirrored: Tensor  # the row of the token as far from the end as this is from the beginning
    before: Tensor  # (N - R), for the tokens from step 1 on: the row of the sequence's step before


def pack(lengths: Tensor) -> Packing:
    """Pack sequences of some lengths (R), all from 1 on."""
    order = torch.argsort(lengths, descending=True, stable=True)  # (R)
    steps = torch.arange(int(lengths.max()), device=lengths.device)
    counts = (lengths.unsqueeze(0) > steps.unsqueeze(1)).sum(dim=1)  # (T)
    offsets = counts.cumsum(0) - counts
    place = torch.repeat_interleave(steps, counts)  # (N)
    rank = torch.arange(len(place), device=lengths.device) - offsets[place]
    row = order[rank]
    mirrored = offsets[lengths[row] - 1 - place] + rank
    ranks = torch.empty_like(order)
    ranks[order] = torch.arange(len(order), device=lengths.device)
    later = place > 0
    before = offsets[place[later] - 1] + rank[later]
    return Packing(counts.tolist(), offsets[lengths - 1] + ranks, row, place, mirrored, before)


def encode_packed(encoder: Encoder, embeddings: Tensor, tokens: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
    """Encode packed sequences; what embeddings add to gates is computed once for each word of the vocabulary.

    Args:
        encoder: gives the weights.
        embeddings: (V, E).
        tokens: (N), numbers of embeddings.
        packing: of the tokens.

    Returns:
        states (N, 2H) of all tokens, and both last states of each sequence side by side (R, 2H).
    """
    directions = [list(lstm.parameters()) for lstm in (encoder.forwards, encoder.backwards)]
    ways = [
        (from_input, input_bias + hidden_bias, from_hidden)
        for from_input, from_hidden, input_bias, hidden_bias in directions
    ]
    stacked = (torch.stack(each) for each in zip(*ways, strict=True))
    given, bias, recurrent = (sigmoids_first(each, dim=1) for each in stacked)  # (2, 4H, E), (2, 4H), (2, 4H, H)
    read = torch.stack([tokens, tokens[packing.mirrored] + len(embeddings)])  # (2, N)
    with torch.autocast("cpu", enabled=False):  # in float32, whatever is around it
        words = torch.baddbmm(bias.unsqueeze(1), embeddings.expand(2, -1, -1), given.transpose(1, 2))  # (2, V, 4H)
        gates = functional.embedding(read, words.flatten(0, 1))  # (2, N, 4H), in the order that each direction reads
        both: Tensor = _Packed.apply(gates, recurrent, packing)  # type: ignore[no-untyped-call]
    size = both.shape[1] // 2
    return both, torch.cat([both[packing.last, :size], both[packing.mirrored[packing.last], size:]], dim=1)


class Slot(NamedTuple):
    """Where the tokens of one memory slot come from and go to, (M) each."""

    encoder: int  # which encoder has read them
    rows: Tensor  # of its packed states
    places: Tensor  # in the memories (B, n, T), counted through


def prepare_packed(
    attention: Attention, states: list[Tensor], slots: list[Slot], shape: tuple[int, int, int]
) -> tuple[Tensor, Tensor]:
    """Keys and values (B, n, T, A) of packed states (N, D), each in the role of its slot; zeros elsewhere.

    Args:
        attention: gives the weights.
        states: of each encoder; each of their rows belongs to one slot.
        slots: all n of them.
        shape: B, n, T.
    """
    weight, bias = attention.key_value.weight, attention.key_value.bias
    with torch.autocast("cpu", enabled=False):  # in float32, whatever is around it
        keys, values = _Prepared.apply(attention.tanh, slots, math.prod(shape), weight, bias, *states)  # type: ignore[no-untyped-call]
    return keys.view(*shape, -1), values.view(*shape, -1)


class _Prepared(torch.autograd.Function):
    """See `prepare_packed`."""

    @staticmethod
    def forward(
        ctx: Any, tanh: bool, slots: list[Slot], places: int, weight: Tensor, bias: Tensor, *states: Tensor
    ) -> tuple[Tensor, Tensor]:
        size = len(weight) // len(slots) // 2
        found = weight.new_zeros(places, size), weight.new_zeros(places, size)
        kept = []
        for number, slot in enumerate(slots):
            role = slice(2 * size * number, 2 * size * (number + 1))
            read = states[slot.encoder].index_select(0, slot.rows)
            sums = product(read, weight[role].t(), bias[role])
            if tanh:
                sums.tanh_()
            for each, part in zip(found, sums.chunk(2, dim=1), strict=True):
                each.index_copy_(0, slot.places, part)
            kept += [read, sums]
        ctx.save_for_backward(weight, *kept)
        ctx.tanh, ctx.slots, ctx.rows = tanh, slots, [len(each) for each in states]
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_keys: Tensor, of_values: Tensor) -> tuple[Tensor | None, ...]:
        weight, *kept = ctx.saved_tensors
        size = of_keys.shape[1]
        d_weight, d_bias = torch.empty_like(weight), weight.new_empty(len(weight))
        d_states = [weight.new_empty(rows, weight.shape[1]) for rows in ctx.rows]
        for number, slot in enumerate(ctx.slots):
            role = slice(2 * size * number, 2 * size * (number + 1))
            read, sums = kept[2 * number : 2 * number + 2]
            d = torch.cat([each.index_select(0, slot.places) for each in (of_keys, of_values)], dim=1)
            if ctx.tanh:
                _OPS.tanh_backward.grad_input(d, sums, grad_input=d)
            product(d.t(), read, out=d_weight[role])
            torch.sum(d, 0, out=d_bias[role])
            d_states[slot.encoder].index_copy_(0, slot.rows, product(d, weight[role]))
        return None, None, None, d_weight, d_bias, *d_states


class _Packed(torch.autograd.Function):
    """See the module; states of both directions side by side (N, 2H), in the order of the forward one.

    What is given to gates (2, N, 4H) is written over: they become the gates.
    """

    @staticmethod
    def forward(ctx: Any, given: Tensor, weights: Tensor, packing: Packing) -> Tensor:
        counts = packing.counts
        gates, weights = given.contiguous(), weights.contiguous()
        directions, total, size = gates.shape[0], gates.shape[1], gates.shape[2] // 4
        states, cells, tanhs = (gates.new_empty(directions, total, size) for _ in range(3))
        if compiled.runs(gates):
            arrays = {"weights": weights, "gates": gates, "states": states, "cells": cells, "tanhs": tanhs}
            _call("compgen_packed_forward", counts, arrays)
        else:
            _forward(weights, counts, gates, states, cells, tanhs)
        ctx.save_for_backward(gates, states, cells, tanhs, weights, packing.before, packing.mirrored)
        ctx.counts = counts
        return torch.cat([states[0], states[1].index_select(0, packing.mirrored)], dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_both: Tensor) -> tuple[Tensor | None, ...]:
        gates, states, cells, tanhs, weights, before, mirrored = ctx.saved_tensors
        d_states, d_gates = torch.empty_like(states), torch.empty_like(gates)
        size = states.shape[2]
        d_states[0].copy_(of_both[:, :size])
        torch.index_select(of_both[:, size:], 0, mirrored, out=d_states[1])  # mirrored twice, a token is where it was
        if compiled.runs(gates):
            arrays = {"weights": weights, "gates": gates, "states": states, "cells": cells, "tanhs": tanhs}
            _call("compgen_packed_backward", ctx.counts, arrays | {"d_states": d_states, "d_gates": d_gates})
        else:
            _backward(gates, cells, tanhs, weights, ctx.counts, d_states, d_gates)
        first = ctx.counts[0]
        pairs = zip(states, d_gates, strict=True)
        d_weights = [product(those[first:].t(), some.index_select(0, before)) for some, those in pairs]
        return d_gates, torch.stack(d_weights), None


def _call(function: str, counts: list[int], arrays: dict[str, Tensor]) -> None:
    gates = arrays["gates"]
    numbers = {"total": gates.shape[1], "size": gates.shape[2] // 4, "steps": len(counts)}
    compiled.call(function, compiled.Packed, numbers, arrays | {"counts": torch.tensor(counts)})


def _forward(weights: Tensor, counts: list[int], gates: Tensor, states: Tensor, cells: Tensor, tanhs: Tensor) -> None:
    """The loop in Python, which `cpp_runner/src/recurrence.cpp` has in C++."""
    directions, _, size = states.shape
    start, former = 0, slice(0, 0)
    for step, count in enumerate(counts):
        here = slice(start, start + count)
        former = slice(former.start, former.start + count)  # the same sequences at the step before
        now = gates[:, here]
        if step:
            for w, sums, state in zip(weights, now, states[:, former], strict=True):
                product(state, w.t(), sums, out=sums)
        past = cells[:, former] if step else gates.new_zeros(directions, count, size)
        cell.forward(now, past, cells[:, here], tanhs[:, here], states[:, here])
        start, former = start + count, here


def _backward(
    gates: Tensor, cells: Tensor, tanhs: Tensor, weights: Tensor, counts: list[int], d_states: Tensor, d_gates: Tensor
) -> None:
    """The loop in Python, back, which `cpp_runner/src/recurrence.cpp` has in C++."""
    directions, end, size = d_states.shape
    d_cell = gates.new_zeros(directions, counts[0], size)
    for step in reversed(range(len(counts))):
        count = counts[step]
        here = slice(end - count, end)
        begin = here.start - counts[step - 1] if step else 0
        former = slice(begin, begin + count)
        past = cells[:, former] if step else gates.new_zeros(directions, count, size)
        now = d_gates[:, here]
        cell.backward(gates[:, here], past, tanhs[:, here], d_states[:, here], d_cell[:, :count], now)
        if step:
            for direction in range(directions):
                d_states[direction, former].add_(product(now[direction], weights[direction]))
        end = here.start
