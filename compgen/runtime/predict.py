"""Greedy decoding: the answers of a predictor, and how probable it finds given targets.

Sources of like length share a batch, and a row leaves the batch once it has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.padding import padded
from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.errors import UserError, whole
from compgen.runtime.backend import (
    REPLACED,
    STATE,
    Backend,
    Decoder,
    Floats,
    Ints,
    State,
    StepInputs,
    check_numbers,
    check_tokens,
)

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

    def advance(self, state: State) -> tuple[State, Floats]:
        """See `Decoder`."""
        return advance(self.backend, state)


def greedy(decoder: Decoder, sources: Sequence[Sequence[int]], max_length: int, batch: int = 256) -> list[Scored]:
    """Write the target of each source greedily, with the most probable token at each step.

    Args:
        decoder: of a predictor.
        sources: ids without start or end symbol.
        max_length: of a target, the end symbol included; a longer one is cut.
        batch: rows decoded at once.
    """
    results: dict[int, Scored] = {}
    for rows in by_length(sources, batch):
        state = decoder.open(as_sources([sources[row] for row in rows]))
        written, (_, scores) = write(decoder, state, padded([[]] * len(rows)), max_length)
        results |= dict(zip(rows, zip(written, scores.tolist(), strict=True), strict=True))
    return [results[row] for row in range(len(sources))]


def losses(
    decoder: Decoder,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    batch: int = 256,
    watch: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """The loss (N) of each target given its source, in nats a token, the end symbol counted as one.

    `watch` is called with the number of pairs that are done.
    """
    found = np.zeros(len(pairs))
    done = 0
    for rows in by_length([target for _, target in pairs], batch):
        state = decoder.open(as_sources([pairs[row][0] for row in rows]))
        targets = as_sources([pairs[row][1] for row in rows])
        _, (scores, _) = write(decoder, state, targets, targets.shape[1])
        found[rows] = -scores / (targets != PAD_ID).sum(axis=1)
        done += len(rows)
        if watch is not None:
            watch(done)
    return found


def write(decoder: Decoder, state: State, given: Ints, max_length: int) -> tuple[list[list[int]], Floats]:
    """Write given tokens (B, G), padded with 0, then go on greedily; a row ends with its end symbol, given or not.

    Args:
        decoder: of the model.
        state: before the first token.
        given: tokens to write first, whatever their probability (teacher forcing).
        max_length: most steps.

    Returns:
        the tokens written after those given, without the end symbol, and log-probabilities (2, B): of what was given,
        and of what was written after it, the end symbol included.
    """
    count, lengths = len(given), (given != PAD_ID).sum(axis=1)
    running = np.arange(count)
    written = np.full((count, max_length), PAD_ID)  # padding is never chosen, so it marks what was not written
    scores = np.zeros((2, count))
    for step in range(max_length):
        state, log_probs = decoder.advance(state)
        forced = step < lengths[running]
        if forced.any():
            state["token"] = np.where(forced, given[running, min(step, given.shape[1] - 1)], state["token"])
        token = state["token"]
        scores[np.where(forced, 0, 1), running] += log_probs[np.arange(len(running)), token]
        going = token != EOS_ID
        written[running, step] = np.where(going & ~forced, token, PAD_ID)
        running = running[going]
        if not len(running):
            break
        if not going.all():
            state = keep(state, going)
    return [row[row != PAD_ID].tolist() for row in written], scores


def by_length(sources: Sequence[Sequence[int]], batch: int) -> list[list[int]]:
    """The indices of sources in batches of like length.

    Raises:
        UserError: `batch` is less than 1.
    """
    if (whole(batch) or 0) < 1:
        raise UserError(f"batch {batch!r:.60}: expected a whole number of 1 or more")
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    return [order[start : start + batch] for start in range(0, len(order), batch)]


def as_sources(sources: Sequence[Sequence[int]]) -> Ints:
    """Sources as a predictor reads them, each with its end symbol: (B, T), padded with 0."""
    return padded([[*source, EOS_ID] for source in sources])


def opening(backend: Backend, memory_tokens: Ints, half: int, fed: Floats | None = None) -> State:
    """The state before the first step, from memories (B, n, T); other arguments as for `first_state`."""
    rows, memories, _ = memory_tokens.shape
    if not memories:
        return first_state(backend, rows, half, fed)
    encoded = [backend.encode(np.ascontiguousarray(memory_tokens[:, slot])) for slot in range(memories)]
    keys, values, final = (
        np.stack([part[:, slot] for slot, part in enumerate(parts)], axis=1) for parts in zip(*encoded, strict=True)
    )
    remembered = {"keys": keys, "values": values, "memory_tokens": memory_tokens, "final": final}
    return first_state(backend, rows, half, fed, remembered)


def first_state(
    backend: Backend, rows: int, half: int = 0, fed: Floats | None = None, remembered: State | None = None
) -> State:
    """The state before the first step of a number of rows.

    Args:
        backend: of the model.
        rows: B.
        half: 0 for generators, which begin with a source; 1 for predictors.
        fed: (B, C) from `Shape.fed` where rows are samples with addresses; else zeros.
        remembered: keys, values, memory_tokens as in `StepInputs` and last encoder states `final` (B, n, D); None
            without memories.
    """
    shape = backend.shape
    state: State = {
        "token": np.full(rows, BOS_ID, dtype=np.int64),
        "fed": np.zeros((rows, shape.output), dtype=shape.dtype) if fed is None else fed,
        "position": np.zeros(rows, dtype=np.int64),
        "half": np.full(rows, half, dtype=np.int64),
    }
    if remembered is None:
        hidden, cell = np.zeros((2, rows, shape.hidden), dtype=shape.dtype)
        nothing = np.zeros((rows, 0, 0, 0), dtype=shape.dtype)
        remembered = {"keys": nothing, "values": nothing, "memory_tokens": np.zeros((rows, 0, 0), dtype=np.int64)}
    else:
        hidden, cell = backend.start(remembered["final"])
    return state | {"hidden": hidden, "cell": cell} | {name: remembered[name] for name in STATE if name in remembered}


def advance(
    backend: Backend, state: State, uniform: Floats | None = None, temperature: Floats | None = None
) -> tuple[State, Floats]:
    """Take one step, greedily unless uniform numbers (B) and temperatures (2) are given.

    Returns:
        the new state and log-probabilities (B, V).

    Raises:
        BundleError: a damaged network gives a token outside the vocabulary, or probabilities that are no numbers.
    """
    uniform = np.zeros(len(state["token"]), dtype=backend.shape.dtype) if uniform is None else uniform
    temperature = np.zeros(2, dtype=backend.shape.dtype) if temperature is None else temperature
    outputs = backend.step(step_inputs(state, uniform, temperature))
    check_tokens(backend.name, outputs.token, outputs.log_probs.shape[1])
    check_numbers(backend.name, outputs.log_probs)
    new = {name: getattr(outputs, name) for name in REPLACED}
    return state | new | {"position": state["position"] + 1}, outputs.log_probs


def step_inputs(state: State, uniform: Floats, temperature: Floats) -> StepInputs:
    """The inputs of a step from the state of rows, which may hold more."""
    return StepInputs(uniform=uniform, temperature=temperature, **{name: state[name] for name in STATE})


def keep(state: State, rows: NDArray[Any] | slice) -> State:
    """The state of some rows, by mask, index or slice."""
    return {name: values[rows] for name, values in state.items()}
