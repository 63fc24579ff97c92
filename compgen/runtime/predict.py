"""Greedy decoding: what a predictor does with sources, and how probable it finds given targets.

Sources of like length share a batch, and a row leaves the batch once it has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.errors import UserError
from compgen.runtime.backend import Backend, Decoder, Floats, Ints, State, check_numbers, check_tokens

Scored = tuple[list[int], float]  # tokens without the end symbol, and the log-probability of all with it


@dataclass(frozen=True)
class Recurrent:
    """A recurrent predictor as a `Decoder`."""

    backend: Backend

    @property
    def name(self) -> str:
        """See `Decoder`."""
        return self.backend.name

    def open(self, sources: Ints) -> State:
        """See `Decoder`."""
        return opening(self.backend, sources[:, None], half=1)

    def advance(self, state: State) -> tuple[State, NDArray[np.floating[Any]]]:
        """See `Decoder`."""
        return advance(self.backend, state)


def greedy(decoder: Decoder, sources: Sequence[Sequence[int]], max_length: int, batch: int = 256) -> list[Scored]:
    """The target that taking the most probable token at each step gives, for each source of token ids.

    Args:
        decoder: of a predictor.
        sources: ids without start or end symbol.
        max_length: most tokens to write, the end symbol included; what is longer is cut.
        batch: rows decoded at once.
    """
    results: dict[int, Scored] = {}
    for rows in by_length(sources, batch):
        state = decoder.open(as_sources([sources[row] for row in rows]))
        results |= dict(zip(rows, _greedy(decoder, state, max_length), strict=True))
    return [results[row] for row in range(len(sources))]


def losses(
    decoder: Decoder,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    batch: int = 256,
    watch: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """How improbable each target is given its source: nats a token, (N), the end symbol counted as one.

    `watch` hears how many pairs are done.
    """
    found = np.zeros(len(pairs))
    done = 0
    for rows in by_length([target for _, target in pairs], batch):
        state = decoder.open(as_sources([pairs[row][0] for row in rows]))
        targets = as_sources([pairs[row][1] for row in rows])
        lengths = (targets != 0).sum(axis=1)
        for step, tokens in enumerate(targets.T):
            state, log_probs = decoder.advance(state)
            found[rows] -= np.where(step < lengths, log_probs[np.arange(len(rows)), tokens], 0)
            state["token"] = np.where(step < lengths, tokens, EOS_ID)
        found[rows] /= lengths
        done += len(rows)
        if watch is not None:
            watch(done)
    return found


def by_length(sources: Sequence[Sequence[int]], batch: int) -> list[list[int]]:
    """Indices of the sources in batches of like length.

    Raises:
        UserError: there can be no such batch.
    """
    if batch < 1:
        raise UserError(f"batch {batch}: expected 1 or more")
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    return [order[start : start + batch] for start in range(0, len(order), batch)]


def as_sources(sources: Sequence[Sequence[int]]) -> Ints:
    """Sources as a predictor reads them, each with its end symbol: (B, T), padded with 0."""
    tokens = np.zeros((len(sources), max(map(len, sources)) + 1), dtype=np.int64)
    for row, source in enumerate(sources):
        tokens[row, : len(source) + 1] = [*source, EOS_ID]
    return tokens


def opening(backend: Backend, memory_tokens: Ints, half: int, fed: Floats | None = None) -> State:
    """The state before the first greedy step, from memories (B, n, T); half 0 for generators, 1 for predictors.

    `fed`, (B, shape.output), is from `Shape.fed` where rows are samples with addresses; else zeros.
    """
    rows, memories, _ = memory_tokens.shape
    shape = backend.shape
    state: State = {
        "token": np.full(rows, BOS_ID, dtype=np.int64),
        "position": np.zeros(rows, dtype=np.int64),
        "half": np.full(rows, half, dtype=np.int64),
        "hidden": np.zeros((rows, shape.hidden), dtype=shape.dtype),
        "cell": np.zeros((rows, shape.hidden), dtype=shape.dtype),
        "fed": np.zeros((rows, shape.output), dtype=shape.dtype) if fed is None else fed,
    }
    if memories:
        encoded = [backend.encode(np.ascontiguousarray(memory_tokens[:, slot])) for slot in range(memories)]
        state["keys"], state["values"], final = (
            np.stack([part[:, slot] for slot, part in enumerate(parts)], axis=1) for parts in zip(*encoded, strict=True)
        )
        state["memory_tokens"] = memory_tokens
        state["hidden"], state["cell"] = backend.start(final)
    return state


def advance(backend: Backend, state: State) -> tuple[State, NDArray[np.floating[Any]]]:
    """One greedy step: the new state, whose `token` is the most probable one, and log-probabilities (B, V).

    Raises:
        BundleError: a damaged network gives a token that there is not, or probabilities that are no numbers.
    """
    dtype = backend.shape.dtype
    inputs = state | {"uniform": np.zeros(len(state["token"]), dtype=dtype), "temperature": np.zeros(2, dtype=dtype)}
    token, log_probs, half, hidden, cell, fed = backend.step(inputs)
    check_tokens(backend.name, token, log_probs.shape[1])
    check_numbers(backend.name, log_probs)
    position = state["position"] + 1
    new = {"token": token, "half": half, "hidden": hidden, "cell": cell, "fed": fed, "position": position}
    return state | new, log_probs


def keep(state: State, rows: NDArray[Any]) -> State:
    """The state of some rows, by mask or index."""
    return {name: values[rows] for name, values in state.items()}


def _greedy(decoder: Decoder, state: State, max_length: int) -> list[Scored]:
    count = len(state["token"])
    running = np.arange(count)
    written = np.zeros((count, max_length), dtype=np.int64)
    score = np.zeros(count)
    for step in range(max_length):
        state, log_probs = decoder.advance(state)
        token = state["token"]
        score[running] += log_probs[np.arange(len(running)), token]
        going = token != EOS_ID
        written[running, step] = np.where(going, token, 0)  # 0 is never chosen, so it marks the end
        running = running[going]
        if not len(running):
            break
        if not going.all():
            state = keep(state, going)
    return [(row[row != 0].tolist(), float(total)) for row, total in zip(written, score, strict=True)]
