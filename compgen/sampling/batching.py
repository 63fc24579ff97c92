"""Continuous batching: rows that finish are refilled at once, so that every step works on a full batch.

A draw is a function of (generator, seed, address) alone, because its prototypes and uniform numbers are addressed and
a row never sees its neighbours. So the order of work is free: worker threads share one counter of addresses, each
keeps its own batch full, and `draws` puts the results back in order.

A row can be given up when its source half is complete: a filter that asks for new sources has no use for the target
of a known one, and on SCAN nearly all sources are known and two thirds of the tokens are targets.
"""

import queue
import threading
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data import random
from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.runtime.backend import STATE, Backend, Floats, Ints, check_numbers, check_tokens
from compgen.runtime.pool import PrototypePool

WORKERS = 1024  # threads, at most

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Draw:
    """One sample as it was drawn, before any filter."""

    index: int
    tokens: Tokens  # source SEP target, without the end symbol
    finished: bool  # false when the length limit came first
    log_prob: float  # of all tokens and the end symbol, before temperature
    prototypes: tuple[int, ...]  # rows of the pool
    given_up: bool = False  # at the end of the source: nothing follows the separator


class Memories:
    """Encoded prototypes, each encoded when first asked for and then kept (two thirds of the work of a naive loop).

    Threads share it: what one is encoding, others wait for, and meanwhile encode what else they need.
    """

    NEW, CLAIMED, ENCODED = 0, 1, 2

    def __init__(self, backend: Backend, pool: PrototypePool, block: int = 128, width: int | None = None) -> None:
        """Nothing is encoded yet; `width` tokens are kept of each, by default those of what sampling may choose."""
        self.backend, self.pool, self.block = backend, pool, block
        self.width = pool.longest if width is None else width
        self.lengths = (pool.tokens != 0).sum(axis=1)
        self.status = np.full(len(pool.tokens), self.NEW, dtype=np.int8)
        self.changed = threading.Condition()
        self.encoded: list[Floats] = []  # keys, values and last states of each sequence in each role

    def prepare(self, chosen: Ints) -> None:
        """Encode those of some prototypes that are not encoded yet; many at once are cheaper than few."""
        wanted = np.unique(chosen)
        while True:
            with self.changed:
                mine = wanted[self.status[wanted] == self.NEW]
                if not len(mine):
                    if (self.status[wanted] == self.ENCODED).all():
                        return
                    self.changed.wait()
                    continue
                self.status[mine] = self.CLAIMED
            outcome = self.NEW  # if encoding fails, others may try, and fail for themselves
            try:
                self._encode(mine)
                outcome = self.ENCODED
            finally:
                with self.changed:
                    self.status[mine] = outcome
                    self.changed.notify_all()

    def fetch(self, chosen: Ints) -> dict[str, NDArray[Any]]:
        """Keys, values (B, n, T, A), tokens (B, n, T) and last states (B, n, D) of prepared prototypes (B, n)."""
        slots = np.arange(chosen.shape[1])
        keys, values, final = (part[chosen, slots] for part in self.encoded)
        tokens = self.pool.tokens[chosen, : self.width].astype(np.int64)
        return {"keys": keys, "values": values, "memory_tokens": tokens, "final": final}

    def _encode(self, rows: Ints) -> None:
        rows = rows[np.argsort(self.lengths[rows], kind="stable")]
        for start in range(0, len(rows), self.block):
            block = rows[start : start + self.block]
            longest = int(self.lengths[block[-1]])
            keys, values, final = self.backend.encode(self.pool.tokens[block, :longest].astype(np.int64))
            with self.changed:
                if not self.encoded:
                    # Pages of zeros take memory only once they are written to.
                    shape = (len(self.status), keys.shape[1], self.width, keys.shape[3])
                    shapes = (shape, shape, (len(self.status), *final.shape[1:]))
                    self.encoded = [np.zeros(shape, dtype=keys.dtype) for shape in shapes]
            self.encoded[0][block, :, :longest], self.encoded[1][block, :, :longest] = keys, values
            self.encoded[2][block] = final


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


class _Supply:
    """Rows yet to be begun. What an address decides is worked out for a block of addresses at a time."""

    def __init__(
        self,
        backend: Backend,
        pool: PrototypePool,
        memories: Memories,
        addresses: Addresses,
        seed: int,
        max_length: int,
    ) -> None:
        self.backend, self.pool, self.memories, self.addresses = backend, pool, memories, addresses
        self.seed, self.max_length = seed, max_length
        self.block = FIRST  # addresses at a time; doubles, so that the first sample need not wait for hundreds
        self.ready: dict[str, NDArray[Any]] = self._begin(0)

    def take(self, count: int) -> dict[str, NDArray[Any]]:
        """The state of up to `count` rows at their first step; fewer when the addresses are used up."""
        while len(self.ready["index"]) < count:
            block = self._begin(self.block)
            self.block = min(BLOCK, 2 * self.block)
            if not len(block["index"]):
                break
            self.ready = {name: np.concatenate([values, block[name]]) for name, values in self.ready.items()}
        taken = {name: values[:count] for name, values in self.ready.items()}
        self.ready = {name: values[count:] for name, values in self.ready.items()}
        rows, shape = len(taken["index"]), self.backend.shape
        taken["token"] = np.full(rows, BOS_ID, dtype=np.int64)
        taken["position"], taken["half"] = np.zeros((2, rows), dtype=np.int64)
        taken["hidden"], taken["cell"] = np.zeros((2, rows, shape.hidden), dtype=shape.dtype)
        taken["fed"] = shape.fed(self.seed, taken["index"])
        taken["written"] = np.zeros((rows, self.max_length), dtype=np.int64)
        taken["log_prob"] = np.zeros(rows)
        if self.pool.prototypes and rows:
            taken |= self.memories.fetch(taken["chosen"])
            taken["hidden"], taken["cell"] = self.backend.start(taken.pop("final"))
        return taken

    def _begin(self, count: int) -> dict[str, NDArray[Any]]:
        samples = self.addresses.take(count)
        chosen = self.pool.choose(self.seed, samples)
        if self.pool.prototypes and len(samples):
            self.memories.prepare(chosen)
        return {
            "index": samples,
            "chosen": chosen,
            "numbers": random.uniforms(self.seed, samples, self.max_length).astype(self.backend.shape.dtype),
        }


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
    unwanted: Container[Tokens] = (),
) -> Iterator[list[Draw]]:
    """Draw all addresses that can be had with a batch of at most `slots` rows; yield draws as they finish.

    The batch starts small and doubles whenever rows finish, so that the first draws are there at once.
    """
    warmth = np.array(temperature, dtype=backend.shape.dtype)
    supply = _Supply(backend, pool, memories, addresses, seed, max_length)
    state = supply.take(min(slots, FIRST))
    rows = np.arange(len(state["index"]))
    while len(rows):
        position = state["position"]
        inputs = {name: state[name] for name in STATE if name in state}
        inputs["uniform"] = state["numbers"][rows, position]
        inputs["temperature"] = warmth
        token, log_probs, half, hidden, cell, fed = backend.step(inputs)
        check_tokens(backend.name, token, log_probs.shape[1])
        gained = log_probs[rows, token]
        check_numbers(backend.name, gained)
        state["log_prob"] += gained
        state["written"][rows, position] = token
        position += 1
        given_up = _with_source(state, np.flatnonzero(half > state["half"]), unwanted) if unwanted else []
        state.update(token=token, half=half, hidden=hidden, cell=cell, fed=fed)
        ended = (token == EOS_ID) | (position >= max_length)
        ended[given_up] = True
        done = np.flatnonzero(ended)
        if not len(done):
            continue
        yield _finished(state, done, set(given_up))
        fresh = supply.take(len(done) + min(len(rows), slots - len(rows)))
        refilled = done[: len(fresh["index"])]
        if len(refilled):
            for name, values in fresh.items():
                state[name][refilled] = values[: len(refilled)]
        if len(refilled) < len(done):  # nothing left to draw: go on with the rows that are not done
            keep = np.delete(rows, done[len(refilled) :])
            state = {name: values[keep] for name, values in state.items()}
        elif len(fresh["index"]) > len(done):
            state = {name: np.concatenate([values, fresh[name][len(done) :]]) for name, values in state.items()}
        rows = np.arange(len(state["index"]))


FIRST, BLOCK = 16, 256  # rows that a batch starts with; most addresses that are worked out together


def _with_source(state: dict[str, NDArray[Any]], rows: Ints, unwanted: Container[Tokens]) -> list[int]:
    """Those of `rows`, which have just written their separator, whose source is unwanted."""
    sources = zip(rows.tolist(), state["written"][rows].tolist(), state["position"][rows].tolist(), strict=True)
    return [row for row, written, length in sources if tuple(written[: length - 1]) in unwanted]


def _finished(state: dict[str, NDArray[Any]], done: Ints, given_up: set[int]) -> list[Draw]:
    """The draws in some rows that are done."""
    names = ("index", "written", "position", "token", "log_prob", "chosen")
    columns = (done.tolist(), *(state[name][done].tolist() for name in names))
    return [
        Draw(
            index=index,
            tokens=tuple(written[: length - (last == EOS_ID)]),
            finished=last == EOS_ID,
            log_prob=log_prob,
            prototypes=tuple(chosen),
            given_up=row in given_up,
        )
        for row, index, written, length, last, log_prob, chosen in zip(*columns, strict=True)
    ]


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
    unwanted: Container[Tokens] = (),
) -> Iterator[Draw]:
    """Draws of addresses start .. stop - 1, in order, computed by `workers` threads of `slots` rows each.

    A draw whose source is `unwanted` is given up there and has no target.

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
                unwanted=unwanted,
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
