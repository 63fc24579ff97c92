"""The decoder's recurrence with input feeding over all steps, as one operation with a backward pass of its own.

`Network.advance`, step after step, is the definition. Left to autograd it is some hundred small operations a step, most
of the time of which is not arithmetic. Here each step writes into buffers that hold all steps, and the gradients of all
weights, keys, values and positions are products over all steps at once. Where the runner's library is built, the loops
themselves are its own (`compgen.models.compiled`):

    for t = 0, 1, ...:     gates_t   = given gates_t + [h_(t-1), fed_(t-1)] W_gates         then the LSTM cell: h_t, c_t
                           q_t       = f(given queries_t + [fed_(t-1), h_t] W_queries)      f: tanh, or nothing
                           score_tj  = q_t . (key_j + PK[j - t]) / sqrt(A)                  masked where j is outside
                           context_t = sum_j softmax_j(score_t) (value_j + PV[j - t])
                           u_t       = combine [dropout(h_t), context_t];  fed_t = dropout(u_t)
    for t = ..., 1, 0:     the gradients of gates_t, q_t, score_t, u_t, in reverse
    at last:               gradient of W = (what it multiplies, of all steps)^T (gradient of the product, of all steps)

Symbols as in `compgen.models.network`; steps come first in all buffers: (L, B, ...).
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from compgen.models import cell, compiled
from compgen.models.attention import MASKED
from compgen.models.products import exact, product

_OPS: Any = torch.ops.aten


class Weights(NamedTuple):
    """What the recurrence is multiplied by."""

    gates: Tensor  # (4H, H + F), of [hidden, fed] of the step before; gates in the order of `compgen.models.cell`
    queries: Tensor  # (nA, F + H), of [fed of the step before, hidden]
    combine: Tensor  # (F, H + nA)
    bias: Tensor  # (F)


class Attended(NamedTuple):
    """What is attended to."""

    keys: Tensor  # (B, n, T, A)
    values: Tensor  # (B, n, T, A)
    inside: Tensor  # (B, n, T), true where a memory has a token
    position_keys: Tensor  # (n, L - 1 + T, A), from j - t = 1 - L on, see `by_distance`; or empty
    position_values: Tensor  # likewise


class Dropped(NamedTuple):
    """Factors of dropout, 0 or 1 / (1 - p); None where nothing is dropped."""

    hidden: Tensor | None  # (L, B, H)
    fed: Tensor | None  # (L, B, F)


def by_distance(table: Tensor, steps: int, tokens: int) -> Tensor:
    """The rows of a position table (n, 2K + 1, A), clipped distances, for j - t from 1 - L to T - 1: (n, L - 1 + T, A).

    The rows of step t and all tokens j are then those from L - 1 - t on, as they lie.
    """
    clip = table.shape[1] // 2
    distance = torch.arange(1 - steps, tokens, device=table.device).clamp(-clip, clip)
    return table.index_select(1, distance + clip)


def fed_loop(
    gates: Tensor,
    queries: Tensor,
    weights: Weights,
    attended: Attended,
    dropped: Dropped,
    start: tuple[Tensor, Tensor],
    tanh: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the recurrence.

    Args:
        gates, queries: (L, B, 4H), (L, B, nA), what does not depend on the state; they are written over.
        weights, attended, dropped: as above.
        start: the first hidden and cell state, (B, H) each.
        tanh: whether queries go through tanh.

    Returns:
        states (L, B, H), outputs u (L, B, F) and masked scores (L, B, n, T).
    """
    given = [gates, queries, *weights, *attended, *dropped, *start]
    with torch.autocast("cpu", enabled=False):  # in float32, whatever is around it
        found = _FedLoop.apply(*(x if x is None else exact(x).contiguous() for x in given), tanh)  # type: ignore[no-untyped-call]
    states, outputs, scores = found
    return states, outputs, scores


class _Attending:
    """Attention of one step after the other, see `compgen.models.attention`: n memories as B * n, where they may.

    A row times a matrix that lies by rows is several times as fast as a matrix times a column: hence `by_size`.
    """

    def __init__(self, keys: Tensor, values: Tensor, inside: Tensor, position_keys: Tensor, position_values: Tensor):
        rows, self.memories, self.tokens = inside.shape
        self.size, self.flat = keys.shape[3], rows * self.memories
        self.keys, self.values = (some.reshape(self.flat, self.tokens, self.size) for some in (keys, values))
        self.position_keys, self.position_values = position_keys, position_values
        self.outside, self.scale = ~inside, 1 / math.sqrt(self.size)
        self.steps = position_keys.shape[1] - self.tokens + 1

    def by_size(self, some: Tensor) -> Tensor:
        """Keys or values as (B * n, A, T)."""
        return some.transpose(1, 2).contiguous()

    def near(self, table: Tensor, t: int) -> Tensor:
        """The rows of a position table for step t and all tokens: (n, T, A)."""
        return table[:, self.steps - 1 - t : self.steps - 1 - t + self.tokens]

    def by_memory(self, vectors: Tensor) -> Tensor:
        """Vectors (B, n * A) as (n, B, A)."""
        return vectors.view(len(vectors), self.memories, self.size).transpose(0, 1)

    def forward(self, t: int, asked: Tensor, keys_by_size: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
        """Return the contexts (B, n * A) of queries (B, n * A), and write scores and weights (B, n, T)."""
        rows = len(asked)
        torch.bmm(asked.view(self.flat, 1, self.size), keys_by_size, out=scores.view(self.flat, 1, self.tokens))
        if self.position_keys.numel():
            near = self.near(self.position_keys, t).transpose(1, 2)
            scores.transpose(0, 1).add_(torch.bmm(self.by_memory(asked), near))
        scores.mul_(self.scale).masked_fill_(self.outside, MASKED)
        torch.softmax(scores, 2, out=weights)
        context = torch.bmm(weights.view(self.flat, 1, self.tokens), self.values).view(rows, -1)
        if self.position_values.numel():
            near = self.near(self.position_values, t)
            self.by_memory(context).add_(torch.bmm(weights.transpose(0, 1), near))
        return context

    def backward(
        self, t: int, weights: Tensor, of_context: Tensor, of_scores: Tensor | None, values_by_size: Tensor,
        d_scores: Tensor, d_asked: Tensor,
    ) -> None:  # fmt: skip
        """From the gradients of contexts (B, n * A) and scores write those of sums (B, n, T) and queries (B, n * A)."""
        d_weights = torch.bmm(of_context.view(self.flat, 1, self.size), values_by_size).view_as(weights)
        if self.position_values.numel():
            near = self.near(self.position_values, t).transpose(1, 2)
            d_weights.transpose(0, 1).add_(torch.bmm(self.by_memory(of_context), near))
        _OPS._softmax_backward_data(d_weights, weights, 2, weights.dtype, grad_input=d_scores)
        if of_scores is not None:
            d_scores.add_(of_scores)
        d_scores.mul_(self.scale).masked_fill_(self.outside, 0)
        torch.bmm(d_scores.view(self.flat, 1, self.tokens), self.keys, out=d_asked.view(self.flat, 1, self.size))
        if self.position_keys.numel():
            near = self.near(self.position_keys, t)
            self.by_memory(d_asked).add_(torch.bmm(d_scores.transpose(0, 1), near))


class _Kept(NamedTuple):
    """What the loop reads and writes that its backward pass reads, too, by the names that `compiled.FedLoop` has."""

    w_gates: Tensor
    w_queries: Tensor
    w_combine: Tensor
    keys: Tensor
    values: Tensor
    inside: Tensor
    position_keys: Tensor
    position_values: Tensor
    keep_hidden: Tensor | None
    keep_fed: Tensor | None
    states: Tensor  # (B, L + 1, H + F); of row b h_-1, fed_-1, h_0, ...: what gates and queries read are slices of it
    gates: Tensor  # (L, B, 4H), what was given, then gates behind their functions
    cells: Tensor  # (L + 1, B, H)
    squashed: Tensor  # (L, B, H), tanh of cells
    asked: Tensor  # (L, B, nA), what was given, then queries
    combined: Tensor  # (L, B, H + nA), [dropout(h), context]
    weights: Tensor  # (L, B, n, T)

    def numbers(self, tanh: bool) -> dict[str, int]:
        """The sizes, by the names that `compiled.FedLoop` has."""
        (length, rows, hidden), fed = self.squashed.shape, len(self.w_combine)
        memories, tokens, size = self.keys.shape[1:]
        named = {"length": length, "rows": rows, "hidden": hidden, "fed": fed}
        return named | {"memories": memories, "size": size, "tokens": tokens, "tanh": int(tanh)}


class _Gradients(NamedTuple):
    """What the backward pass gets and writes; the last four change from step to step."""

    of_states: Tensor | None
    of_scores: Tensor | None
    d_gates: Tensor
    d_asked: Tensor
    d_scores: Tensor
    d_combined: Tensor
    d_outputs: Tensor
    d_hidden: Tensor
    d_cell: Tensor
    d_fed: Tensor


class _FedLoop(torch.autograd.Function):
    """See the module. Buffers that the backward pass reads are kept in `ctx.saved_tensors`."""

    @staticmethod
    def forward(
        ctx: Any, given: Tensor, queries: Tensor, w_gates: Tensor, w_queries: Tensor, w_combine: Tensor, bias: Tensor,
        keys: Tensor, values: Tensor, inside: Tensor, position_keys: Tensor, position_values: Tensor,
        keep_hidden: Tensor | None, keep_fed: Tensor | None, hidden: Tensor, first_cell: Tensor, tanh: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        length, rows, size, fed = len(given), len(hidden), hidden.shape[1], len(bias)
        new = given.new_empty
        kept = _Kept(
            w_gates, w_queries, w_combine, keys, values, inside, position_keys, position_values, keep_hidden, keep_fed,
            states=given.new_zeros(rows, length + 1, size + fed), gates=given,
            cells=new(length + 1, rows, size), squashed=new(length, rows, size), asked=queries,
            combined=new(length, rows, w_combine.shape[1]), weights=new(length, *inside.shape),
        )  # fmt: skip
        kept.states[:, 0, :size] = hidden
        kept.cells[0] = first_cell
        outputs, scores = new(length, rows, fed), new(length, *inside.shape)
        if compiled.runs(given):
            arrays = kept._asdict() | {"bias": bias, "scores": scores, "outputs": outputs}
            compiled.call("compgen_fed_forward", compiled.FedLoop, kept.numbers(tanh), arrays)
        else:
            _forward(kept, bias, outputs, scores, tanh)
        ctx.save_for_backward(*kept)
        ctx.tanh = tanh
        ctx.set_materialize_grads(False)
        return kept.states[:, 1:, :size].transpose(0, 1), outputs, scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, of_states: Tensor | None, of_outputs: Tensor | None, of_scores: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        kept = _Kept(*ctx.saved_tensors)
        (length, rows, size), fed = kept.squashed.shape, len(kept.w_combine)
        zeros = kept.gates.new_zeros
        got = _Gradients(
            None if of_states is None else of_states.contiguous(),
            None if of_scores is None else of_scores.contiguous(),
            torch.empty_like(kept.gates),
            torch.empty_like(kept.asked),
            torch.empty_like(kept.weights),
            torch.empty_like(kept.combined),
            d_outputs=zeros(length, rows, fed),
            d_hidden=zeros(rows, size),
            d_cell=zeros(rows, size),
            d_fed=zeros(rows, fed),
        )
        if of_outputs is not None:
            got.d_outputs.copy_(of_outputs)
        if compiled.runs(kept.gates):
            compiled.call(
                "compgen_fed_backward", compiled.FedLoop, kept.numbers(ctx.tanh), kept._asdict() | got._asdict()
            )
        else:
            _backward(kept, got, ctx.tanh)

        # What gates read is [h, fed] of the step before, what queries read [fed] of that and [h] of this one.
        read = kept.states[:, :-1], kept.states.view(rows, -1)[:, size:-fed].view(rows, length, size + fed)
        d_w_gates, d_w_queries = (
            _product(d, some.transpose(0, 1)) for some, d in zip(read, (got.d_gates, got.d_asked), strict=True)
        )
        of_contexts = got.d_combined[:, :, size:]
        return (
            got.d_gates, got.d_asked, d_w_gates, d_w_queries, _product(got.d_outputs, kept.combined),
            got.d_outputs.sum(dim=(0, 1)), _over_steps(got.d_scores, kept.asked),
            _over_steps(kept.weights, of_contexts), None, _by_distance(got.d_scores, kept.asked, kept.position_keys),
            _by_distance(kept.weights, of_contexts, kept.position_values), None, None, got.d_hidden, got.d_cell, None,
        )  # fmt: skip


def _forward(kept: _Kept, bias: Tensor, outputs: Tensor, scores: Tensor, tanh: bool) -> None:
    """The loop in Python, which `cpp_runner/src/recurrence.cpp` has in C++."""
    (length, rows, size), both = kept.squashed.shape, kept.states.shape[2]
    attending, states = _Attending(*kept[3:8]), kept.states.view(rows, -1)
    keys_by_size = attending.by_size(attending.keys)
    for t in range(length):
        before, now = t * both, (t + 1) * both
        h, back = states[:, now : now + size], states[:, now + size : now + both]
        product(states[:, before:now], kept.w_gates.t(), kept.gates[t], out=kept.gates[t])
        cell.forward(kept.gates[t], kept.cells[t], kept.cells[t + 1], kept.squashed[t], h)
        product(states[:, before + size : now + size], kept.w_queries.t(), kept.asked[t], out=kept.asked[t])
        if tanh:
            cell.tanh(kept.asked[t], out=kept.asked[t])
        kept.combined[t, :, size:] = attending.forward(t, kept.asked[t], keys_by_size, scores[t], kept.weights[t])
        _times(h, kept.keep_hidden, t, out=kept.combined[t, :, :size])
        product(kept.combined[t], kept.w_combine.t(), bias, out=outputs[t])
        _times(outputs[t], kept.keep_fed, t, out=back)


def _backward(kept: _Kept, got: _Gradients, tanh: bool) -> None:
    """The loop in Python, back, which `cpp_runner/src/recurrence.cpp` has in C++."""
    (length, _, size), fed = kept.squashed.shape, len(kept.w_combine)
    attending = _Attending(*kept[3:8])
    values_by_size = attending.by_size(attending.values)
    d_hidden, d_fed = got.d_hidden, got.d_fed
    for t in reversed(range(length)):
        got.d_outputs[t].add_(_times(d_fed, kept.keep_fed, t, out=d_fed))
        product(got.d_outputs[t], kept.w_combine, out=got.d_combined[t])
        of_hidden = got.d_combined[t, :, :size]
        d_hidden.add_(_times(of_hidden, kept.keep_hidden, t, out=of_hidden))
        if got.of_states is not None:
            d_hidden.add_(got.of_states[t])
        of_context, of_score = (
            got.d_combined[t, :, size:].contiguous(),
            None if got.of_scores is None else got.of_scores[t],
        )
        attending.backward(t, kept.weights[t], of_context, of_score, values_by_size, got.d_scores[t], got.d_asked[t])
        if tanh:
            _OPS.tanh_backward.grad_input(got.d_asked[t], kept.asked[t], grad_input=got.d_asked[t])
        of_queries = product(got.d_asked[t], kept.w_queries)  # (B, F + H): of [fed, hidden]
        d_hidden.add_(of_queries[:, fed:])
        cell.backward(kept.gates[t], kept.cells[t], kept.squashed[t], d_hidden, got.d_cell, got.d_gates[t])
        before = product(got.d_gates[t], kept.w_gates)  # (B, H + F): of [hidden, fed]
        d_hidden, d_fed = before[:, :size], before[:, size:].add_(of_queries[:, :fed])
    got.d_hidden.copy_(d_hidden)


def _times(x: Tensor, factors: Tensor | None, t: int, out: Tensor) -> Tensor:
    """Write x times the factors of step t; x itself without factors."""
    if factors is not None:
        return torch.mul(x, factors[t], out=out)
    return out if x is out else out.copy_(x)


def _product(d_sums: Tensor, read: Tensor) -> Tensor:
    """The gradient (O, I) of weights, from that of the sums (L, B, O) and what they multiply, (L, B, I)."""
    return product(d_sums.reshape(-1, d_sums.shape[2]).t(), read.reshape(-1, read.shape[2]))


def _over_steps(shares: Tensor, vectors: Tensor) -> Tensor:
    """Sum shares (L, B, n, T) times vectors (L, B, n * A) over steps: (B, n, T, A)."""
    length, rows, memories, tokens = shares.shape
    by_token = shares.reshape(length, rows * memories, tokens).permute(1, 2, 0)  # (B * n, T, L)
    found = torch.bmm(by_token, vectors.reshape(length, rows * memories, -1).transpose(0, 1))
    return found.view(rows, memories, tokens, -1)


def _by_distance(shares: Tensor, vectors: Tensor, table: Tensor) -> Tensor | None:
    """Sum shares (L, B, n, T) times vectors (L, B, n * A) over rows, at the distances of `table`: as that."""
    if not table.numel():
        return None
    length, rows, memories, _ = shares.shape
    distances = table.shape[1]
    # Tokens of step t begin at distance L - 1 - t. Laid so, shares of all steps are one matrix a memory.
    laid = shares.new_zeros(length, rows, memories, distances)
    strides = rows * memories * distances - 1, memories * distances, distances, 1
    laid.as_strided(shares.shape, strides, length - 1).copy_(shares)
    by_distance = laid.view(length * rows, memories, distances).permute(1, 2, 0)
    return torch.bmm(by_distance, vectors.reshape(length * rows, memories, -1).transpose(0, 1))
