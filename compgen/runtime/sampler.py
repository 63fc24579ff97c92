"""Continuous batching: rows that finish are refilled at once, so that every step works on a full batch.

A draw is a function of (generator, seed, address) alone, because its prototypes and uniform numbers are addressed and
a row never sees its neighbours. So the order of work is free: worker threads share one counter of addresses, each
keeps its own batch full, and `draws` puts the results back in order.
"""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from compgen.runtime import random
from compgen.runtime.pool import PrototypePool

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
BOS_ID, EOS_ID, UNK_ID = 1, 2, 4


@dataclass(frozen=True)
class Shape:
    """What a decoder's state looks like."""

    hidden: int
    output: int
    dtype: str  # float32 or float64
    hide_difference: bool = False  # whether tokens that the first memory lacks are shown as unknown


class Backend(Protocol):
    """Something that can run a network: ONNX Runtime, TorchScript or PyTorch. Arrays in, arrays out."""

    shape: Shape

    def encode(self, tokens: Ints) -> tuple[Floats, Floats]:
        """Tokens (B, T) to memory (B, n, T, 2A) and last encoder states (B, n, D)."""

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        """Last encoder states (B, n, D) to the first hidden and cell (B, H)."""

    def step(self, state: dict[str, NDArray[Any]]) -> tuple[Ints, Floats, Ints, Floats, Floats, Floats]:
        """Named inputs of the decoding step to token, log-probabilities, half, hidden, cell, fed."""


@dataclass(frozen=True)
class Draw:
    """One sample as it was drawn, before any filter."""

    index: int
    tokens: tuple[int, ...]  # source SEP target, without the end symbol
    finished: bool  # false when the length limit came first
    log_prob: float  # of all tokens and the end symbol, before temperature
    prototypes: tuple[int, ...]  # rows of the pool


def shown(memory_tokens: Ints, shape: Shape) -> Ints:
    """Memories (B, n, T) as an encoder sees them: with `hide_difference`, tokens that the first lacks are unknown."""
    if not shape.hide_difference:
        return memory_tokens
    first = memory_tokens[:, None, :1, :, None]  # (B, 1, 1, T, 1) against (B, n, T) spread over (B, n, 1, 1, T)
    held = (first == memory_tokens[:, :, None, None, :]).any(axis=3)[:, :, 0]
    return np.where(held | (memory_tokens == 0), memory_tokens, UNK_ID)


class Memories:
    """Encoded prototypes, each encoded when first used and then kept (two thirds of the work of a naive loop).

    With `hide_difference` a prototype looks different beside different first ones; each look is encoded once.
    """

    def __init__(self, backend: Backend, pool: PrototypePool, block: int = 128) -> None:
        self.backend, self.pool, self.block = backend, pool, block
        self.width = pool.longest
        self.places: dict[bytes, int] = {}  # where in `memory` the encoding of a shown sequence is
        self.memory: Floats = np.empty((0,))
        self.final: Floats = np.empty((0,))
        self.lock = threading.Lock()

    def fetch(self, chosen: Ints) -> tuple[Floats, Ints, Floats]:
        """Memory (B, n, T, 2A), tokens (B, n, T) and last encoder states (B, n, D) for prototypes (B, n)."""
        tokens = self.pool.tokens[chosen, : self.width].astype(np.int64)
        seen = shown(tokens, self.backend.shape)
        flat = seen.astype(np.int32).reshape(-1, self.width)
        keys = [row.tobytes() for row in flat]
        with self.lock:
            new = {key: row for row, key in enumerate(keys) if key not in self.places}
            self._encode(list(new), flat[list(new.values())].astype(np.int64))
            places = np.array([self.places[key] for key in keys]).reshape(chosen.shape)
            slots = np.arange(chosen.shape[1])
            return self.memory[places, slots], tokens, self.final[places, slots]

    def _encode(self, keys: list[bytes], tokens: Ints) -> None:
        for start in range(0, len(keys), self.block):
            part = keys[start : start + self.block]
            memory, final = self.backend.encode(tokens[start : start + self.block])
            end = len(self.places) + len(part)
            self.memory, self.final = _room(self.memory, memory, end), _room(self.final, final, end)
            self.memory[end - len(part) : end], self.final[end - len(part) : end] = memory, final
            self.places |= {key: end - len(part) + row for row, key in enumerate(part)}


def _room(array: Floats, like: Floats, rows: int) -> Floats:
    """An array with room for so many rows, `array` its beginning; it grows by doubling."""
    if rows <= len(array):
        return array
    grown = np.empty((max(rows, 2 * len(array)), *like.shape[1:]), dtype=like.dtype)
    grown[: len(array)] = array.reshape(len(array), *like.shape[1:])
    return grown


class Addresses:
    """The addresses still to be drawn, handed out under a lock."""

    def __init__(self, start: int, stop: int) -> None:
        self.next, self.stop = start, stop
        self.lock = threading.Lock()

    def take(self, count: int) -> Ints:
        """Up to `count` further addresses; none when all are taken or work was cancelled."""
        with self.lock:
            first = self.next
            self.next = max(first, min(self.stop, first + count))
            return np.arange(first, self.next, dtype=np.int64)

    def cancel(self) -> None:
        """Hand out nothing more."""
        with self.lock:
            self.stop = min(self.stop, self.next)


def run_slots(
    backend: Backend,
    pool: PrototypePool,
    memories: Memories,
    addresses: Addresses,
    *,
    seed: int,
    slots: int,
    max_length: int,
    temperature: tuple[float, float],
) -> Iterator[list[Draw]]:
    """Draw all addresses that can be had with a batch of at most `slots` rows; yield draws as they finish."""
    shape = backend.shape
    warmth = np.array(temperature, dtype=shape.dtype)

    def fresh(samples: Ints) -> dict[str, NDArray[Any]]:
        picked = pool.choose(seed, samples)
        rows = len(samples)
        new: dict[str, NDArray[Any]] = {
            "token": np.full(rows, BOS_ID, dtype=np.int64),
            "position": np.zeros(rows, dtype=np.int64),
            "half": np.zeros(rows, dtype=np.int64),
            "hidden": np.zeros((rows, shape.hidden), dtype=shape.dtype),
            "cell": np.zeros((rows, shape.hidden), dtype=shape.dtype),
            "fed": np.zeros((rows, shape.output), dtype=shape.dtype),
            "index": samples,
            "chosen": picked,
            "written": np.zeros((rows, max_length), dtype=np.int64),
            "numbers": random.uniforms(seed, samples, max_length),
            "log_prob": np.zeros(rows),
        }
        if pool.prototypes:
            new["memory"], new["memory_tokens"], final = memories.fetch(picked)
            new["hidden"], new["cell"] = backend.start(final)
        return new

    opening = addresses.take(slots)
    if not len(opening):  # others were quicker
        return
    state = fresh(opening)
    while len(state["index"]):
        rows = np.arange(len(state["index"]))
        position = state["position"]
        inputs = {name: state[name] for name in STATE if name in state}
        inputs["uniform"] = state["numbers"][rows, position].astype(shape.dtype)
        inputs["temperature"] = warmth
        token, log_probs, half, hidden, cell, fed = backend.step(inputs)
        state["log_prob"] += log_probs[rows, token]
        state["written"][rows, position] = token
        state.update(token=token, half=half, hidden=hidden, cell=cell, fed=fed, position=position + 1)
        done = np.flatnonzero((token == EOS_ID) | (position + 1 >= max_length))
        if not len(done):
            continue
        yield [_draw(state, row) for row in done.tolist()]
        refill = addresses.take(len(done))
        if len(refill):
            for name, values in fresh(refill).items():
                state[name][done[: len(refill)]] = values
        if len(refill) < len(done):  # nothing left to draw: go on with the rows that are not done
            keep = np.delete(rows, done[len(refill) :])
            state = {name: values[keep] for name, values in state.items()}


STATE = ("token", "hidden", "cell", "fed", "position", "half", "memory", "memory_tokens")


def _draw(state: dict[str, NDArray[Any]], row: int) -> Draw:
    length = int(state["position"][row])
    tokens = state["written"][row, :length].tolist()
    finished = tokens[-1] == EOS_ID
    return Draw(
        index=int(state["index"][row]),
        tokens=tuple(tokens[:-1] if finished else tokens),
        finished=finished,
        log_prob=float(state["log_prob"][row]),
        prototypes=tuple(state["chosen"][row].tolist()),
    )


def draws(
    backend: Backend,
    pool: PrototypePool,
    *,
    seed: int,
    start: int,
    stop: int,
    max_length: int,
    temperature: tuple[float, float],
    slots: int = 256,
    workers: int = 1,
) -> Iterator[Draw]:
    """Draws of addresses start .. stop - 1, in order, computed by `workers` threads of `slots` rows each.

    Closing the iterator stops the workers. An exception in a worker is raised here.
    """
    memories = Memories(backend, pool)
    addresses = Addresses(start, stop)
    results: queue.Queue[list[Draw] | BaseException | None] = queue.Queue(maxsize=64)

    def work() -> None:
        try:
            for finished in run_slots(
                backend,
                pool,
                memories,
                addresses,
                seed=seed,
                slots=slots,
                max_length=max_length,
                temperature=temperature,
            ):
                results.put(finished)
            results.put(None)
        except BaseException as error:
            results.put(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    waiting: dict[int, Draw] = {}
    following, running = start, workers
    try:
        while running:
            got = results.get()
            if got is None:
                running -= 1
                continue
            if isinstance(got, BaseException):
                raise got
            waiting |= {draw.index: draw for draw in got}
            while following in waiting:
                yield waiting.pop(following)
                following += 1
    finally:
        addresses.cancel()
        while any(thread.is_alive() for thread in threads):
            try:
                results.get(timeout=0.01)  # a worker may wait for room
            except queue.Empty:
                continue
