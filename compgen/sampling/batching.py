"""Continuous batching: rows that finish are refilled at once, so that every step works on a full batch.

A draw is a function of (generator, seed, address) alone, because its prototypes and uniform numbers are addressed and
a row never sees its neighbours. So the order of work is free: worker threads share one counter of addresses, each
keeps its own batch full, and `draws` puts the results back in order.

A row can be given up when its source is complete: a filter for new sources does not need the target of a known one.
On SCAN nearly all sources are known, and two thirds of the tokens are targets.
"""

import queue
import threading
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from compgen.data import random
from compgen.data.vocabulary import EOS_ID, PAD_ID
from compgen.runtime.backend import REPLACED, Backend, Floats, Ints, State, check_numbers, check_tokens
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import first_state, keep, step_inputs

Tokens = tuple[int, ...]

FIRST, BLOCK = 16, 256  # rows that a batch starts with; most addresses that are worked out together
ROWS = 256  # that a worker decodes together
TOGETHER = 128  # prototypes encoded together


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
    """Encoded prototypes: each is encoded when first asked for, then kept (two thirds of the work of a naive loop).

    Threads share it. A thread waits for what another one is encoding, and meanwhile encodes what else it needs.
    """

    NEW, CLAIMED, ENCODED = 0, 1, 2

    def __init__(self, backend: Backend, pool: PrototypePool, width: int | None = None) -> None:
        """Encode nothing yet; keep `width` tokens of each, by default those of the longest that sampling may choose."""
        self.backend, self.pool = backend, pool
        self.width = pool.longest if width is None else width
        self.lengths = (pool.tokens != PAD_ID).sum(axis=1)
        self.status = np.full(len(pool.tokens), self.NEW, dtype=np.int8)
        self.changed = threading.Condition()
        self.encoded: list[Floats] = []  # keys, values (P, n, T, A) and last states (P, n, D), in each of n roles

    def prepare(self, chosen: Ints) -> None:
        """Encode those of the `chosen` prototypes that are not encoded yet; many at once are cheaper than few."""
        wanted, _ = np.unique(chosen, return_counts=True)  # without counts, numpy imports its masked arrays
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

    def fetch(self, chosen: Ints) -> State:
        """What `first_state` asks for as remembered, of prepared prototypes (B, n)."""
        roles = np.arange(chosen.shape[1])
        keys, values, final = (part[chosen, roles] for part in self.encoded)
        tokens = self.pool.tokens[chosen, : self.width].astype(np.int64)
        return {"keys": keys, "values": values, "memory_tokens": tokens, "final": final}

    def _encode(self, rows: Ints) -> None:
        rows = rows[np.argsort(self.lengths[rows], kind="stable")]
        for start in range(0, len(rows), TOGETHER):
            block = rows[start : start + TOGETHER]
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
        self.next, self.stop, self.cancelled = start, stop, False
        self.lock = threading.Lock()

    def take(self, count: int) -> Ints:
        """Up to `count` further addresses; none when all are taken or work was cancelled."""
        with self.lock:
            first = self.next
            self.next = max(first, min(self.stop, first + count))
            return np.arange(first, self.next, dtype=np.int64)

    def cancel(self) -> None:
        """Hand out nothing more, and let those who draw stop before their next step."""
        with self.lock:
            self.stop, self.cancelled = min(self.stop, self.next), True


class _Supply:
    """Rows yet to begin. What an address decides is computed for a block of addresses at a time."""

    def __init__(self, memories: Memories, addresses: Addresses, seed: int, max_length: int, first: int) -> None:
        self.memories, self.addresses, self.seed, self.max_length = memories, addresses, seed, max_length
        self.block = first  # addresses at a time; doubles, so that the first sample need not wait for hundreds
        self.ready = self._begin(0)

    def take(self, count: int) -> State:
        """The state of up to `count` rows at their first step; fewer when the addresses are used up."""
        while len(self.ready["index"]) < count:
            block = self._begin(self.block)
            self.block = min(BLOCK, 2 * self.block)
            if not len(block["index"]):
                break
            self.ready = {name: np.concatenate([values, block[name]]) for name, values in self.ready.items()}
        taken = keep(self.ready, slice(count))
        self.ready = keep(self.ready, slice(count, None))
        rows, backend = len(taken["index"]), self.memories.backend
        taken["written"] = np.zeros((rows, self.max_length), dtype=np.int64)
        taken["log_prob"] = np.zeros(rows)
        fed = backend.shape.fed(self.seed, taken["index"])
        remembered = self.memories.fetch(taken["chosen"]) if self.memories.pool.prototypes and rows else None
        return taken | first_state(backend, rows, fed=fed, remembered=remembered)

    def _begin(self, count: int) -> State:
        samples, pool = self.addresses.take(count), self.memories.pool
        chosen = pool.choose(self.seed, samples)
        if pool.prototypes and len(samples):
            self.memories.prepare(chosen)
        numbers = random.uniforms(self.seed, samples, self.max_length).astype(self.memories.backend.shape.dtype)
        return {"index": samples, "chosen": chosen, "numbers": numbers}


def run_slots(
    memories: Memories,
    addresses: Addresses,
    *,
    seed: int,
    slots: int,
    max_length: int,
    temperature: tuple[float, float],
    unwanted: Container[Tokens] = (),
    first: int = FIRST,
) -> Iterator[list[Draw]]:
    """Draw the addresses that are left, with a batch of at most `slots` rows; yield draws as they finish.

    The batch starts with `first` rows and doubles whenever rows finish, so that the first draws are there at once.
    """
    heat = np.array(temperature, dtype=memories.backend.shape.dtype)
    supply = _Supply(memories, addresses, seed, max_length, first)
    state = supply.take(min(slots, first))
    while (rows := len(state["index"])) and not addresses.cancelled:
        given_up = _step(memories.backend, state, heat, unwanted)
        ended = (state["token"] == EOS_ID) | (state["position"] >= max_length)
        ended[given_up] = True
        done = np.flatnonzero(ended)
        if len(done):
            yield _finished(state, done, set(given_up))
            state = _refilled(state, done, supply.take(len(done) + min(rows, slots - rows)))


def _step(backend: Backend, state: State, heat: Floats, unwanted: Container[Tokens]) -> list[int]:
    """Take one step, changing the state in place; return the rows to give up at their separator."""
    rows, position = np.arange(len(state["index"])), state["position"]
    outputs = backend.step(step_inputs(state, state["numbers"][rows, position], heat))
    check_tokens(backend.name, outputs.token, outputs.log_probs.shape[1])
    gained = outputs.log_probs[rows, outputs.token]
    check_numbers(backend.name, gained)
    state["log_prob"] += gained
    state["written"][rows, position] = outputs.token
    position += 1
    given_up = _with_source(state, np.flatnonzero(outputs.half > state["half"]), unwanted) if unwanted else []
    state.update({name: getattr(outputs, name) for name in REPLACED})
    return given_up


def _refilled(state: State, done: Ints, fresh: State) -> State:
    """The state with fresh rows in the place of rows that are done; the batch shrinks or grows if numbers differ."""
    refilled = done[: len(fresh["index"])]
    if len(refilled):
        for name, values in fresh.items():
            state[name][refilled] = values[: len(refilled)]
    if len(refilled) < len(done):  # nothing left to draw: go on with the rows that are not done
        return keep(state, np.delete(np.arange(len(state["index"])), done[len(refilled) :]))
    if len(fresh["index"]) > len(done):
        return {name: np.concatenate([values, fresh[name][len(done) :]]) for name, values in state.items()}
    return state


def _with_source(state: State, rows: Ints, unwanted: Container[Tokens]) -> list[int]:
    """Those of `rows`, which have just written their separator, whose source is unwanted."""
    sources = zip(rows.tolist(), state["written"][rows].tolist(), state["position"][rows].tolist(), strict=True)
    return [row for row, written, length in sources if tuple(written[: length - 1]) in unwanted]


def _finished(state: State, done: Ints, given_up: set[int]) -> list[Draw]:
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


Results = queue.Queue[list[Draw] | BaseException | None]  # draws, the error of a worker, or the end of one


def draws(
    backend: Backend,
    pool: PrototypePool,
    *,
    seed: int,
    start: int,
    stop: int,
    max_length: int,
    temperature: tuple[float, float],
    slots: int = ROWS,
    workers: int = 1,
    unwanted: Container[Tokens] = (),
    enough: int | None = None,
) -> Iterator[Draw]:
    """Yield the draws of addresses start .. stop - 1, in order, computed by `workers` threads of `slots` rows each.

    A draw whose source is `unwanted` is given up there and has no target. Where a few draws may be `enough`, workers
    begin with no more. Closing the iterator stops the workers before their next step. An exception in a worker is
    raised here.
    """
    addresses = Addresses(start, stop)
    results: Results = queue.Queue(maxsize=64)
    first = FIRST if enough is None else min(FIRST, -(-enough // workers))
    run = partial(run_slots, Memories(backend, pool), addresses, seed=seed, slots=slots, max_length=max_length)

    def work() -> None:
        try:
            for finished in run(temperature=temperature, unwanted=unwanted, first=first):
                results.put(finished)
            results.put(None)
        except BaseException as error:
            results.put(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    try:
        yield from _in_order(results, workers, start)
    finally:
        addresses.cancel()
        for thread in threads:
            while thread.is_alive():
                with suppress(queue.Empty):
                    while True:
                        results.get_nowait()  # a worker may wait for room
                thread.join(0.01)


def _in_order(results: Results, workers: int, start: int) -> Iterator[Draw]:
    """The draws that workers put into a queue, in order of address from `start` on."""
    waiting: dict[int, Draw] = {}
    following, running = start, workers
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
