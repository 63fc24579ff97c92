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
BOS_ID, EOS_ID = 1, 2


@dataclass(frozen=True)
class Shape:
    """What a decoder's state looks like."""

    hidden: int
    output: int
    dtype: str  # float32 or float64


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


class Memories:
    """Encoded prototypes, each encoded when first used and then kept (two thirds of the work of a naive loop)."""

    def __init__(self, backend: Backend, pool: PrototypePool, block: int = 128) -> None:
        self.backend, self.pool, self.block = backend, pool, block
        self.width = pool.longest
        self.known = np.zeros(len(pool.tokens), dtype=bool)
        self.memory: Floats | None = None
        self.final: Floats | None = None
        self.lock = threading.Lock()

    def fetch(self, chosen: Ints) -> tuple[Floats, Ints, Floats]:
        """Memory (B, n, T, 2A), tokens (B, n, T) and last encoder states (B, n, D) for prototypes (B, n)."""
        with self.lock:
            self._encode(np.unique(chosen[~self.known[chosen]]))
        assert self.memory is not None, "prototypes are encoded before they are fetched"
        assert self.final is not None, "as are their last states"
        slots = np.arange(chosen.shape[1])
        tokens = self.pool.tokens[chosen, : self.width].astype(np.int64)
        return self.memory[chosen, slots], tokens, self.final[chosen, slots]

    def _encode(self, missing: Ints) -> None:
        for start in range(0, len(missing), self.block):
            rows = missing[start : start + self.block]
            memory, final = self.backend.encode(self.pool.tokens[rows, : self.width].astype(np.int64))
            if self.memory is None or self.final is None:
                # Pages of an empty array take memory only once they are written to.
                self.memory = np.empty((len(self.known), *memory.shape[1:]), dtype=memory.dtype)
                self.final = np.empty((len(self.known), *final.shape[1:]), dtype=final.dtype)
            self.memory[rows], self.final[rows] = memory, final
            self.known[rows] = True


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
