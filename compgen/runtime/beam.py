"""Beam search over any decoder, with w hypotheses a row.

A hypothesis may end when it is among the w best of its step, so a width of 1 is greedy decoding. The search of a row
stops when no live hypothesis can overtake the best ended ones, as many as are asked for:

    live = {()}                                          in `_Beam`, for all rows at once in `_search`
    at each step: rank live x V by log-probability; those of the first w that end are ended; live = the first w others
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import EOS_ID, forbidden
from compgen.errors import UserError
from compgen.runtime.backend import Backend, Decoder, Floats, Ints, State
from compgen.runtime.predict import Recurrent, Scored, as_sources, by_length, keep, opening

WIDEST = 1024  # hypotheses a row
BATCH = 32  # sources searched at once; each has as many rows as the beam is wide


def beam(
    decoder: Decoder,
    sources: Sequence[Sequence[int]],
    width: int,
    max_length: int,
    *,
    batch: int = BATCH,
) -> list[Scored]:
    """Return the best target found for each source of token ids; arguments as for `nbest`."""
    return [found[0] for found in nbest(decoder, sources, 1, width, max_length, batch=batch)]


def nbest(
    decoder: Decoder,
    sources: Sequence[Sequence[int]],
    count: int,
    width: int,
    max_length: int,
    *,
    batch: int = BATCH,
) -> list[list[Scored]]:
    """Return the best targets found for each source, the best first.

    Args:
        decoder, sources, max_length: as for `greedy`.
        count: how many targets, at most `width`. There are fewer where fewer end; where none ends, the best live one.
        width: hypotheses kept a row.
        batch: sources searched at once.

    Raises:
        UserError: `width` is not from 1 to WIDEST, or `count` not from 1 to `width`.
        BundleError: a damaged network gives probabilities that are no numbers.
    """
    results: dict[int, list[Scored]] = {}
    for rows in by_length(sources, batch):
        state = decoder.open(as_sources([sources[row] for row in rows]))
        found = _search(decoder, state, width, max_length, count)
        results |= dict(zip(rows, found, strict=True))
    return [results[row] for row in range(len(sources))]


def beam_over(
    backend: Backend,
    memory_tokens: Ints,
    width: int,
    max_length: int,
    *,
    fed: Floats | None = None,
) -> list[Scored]:
    """Return the best output of a generator found for each row of prototypes (B, n, T), padded with 0.

    Args:
        backend: of the model.
        memory_tokens: the prototypes, each with its end symbol.
        width: hypotheses kept a row.
        max_length: of an output, the end symbol included. Where nothing ends by then, the best live one counts.
        fed: see `first_state`.
    """
    if not len(memory_tokens):  # ONNX Runtime would end the process
        return []
    found = _search(Recurrent(backend), opening(backend, memory_tokens, 0, fed), width, max_length, 1)
    return [best for (best,) in found]


def _search(decoder: Decoder, state: State, width: int, max_length: int, count: int) -> list[list[Scored]]:
    """Return the best outputs for each row of `state`, the state before the first token; the best first."""
    if not 1 <= width <= WIDEST:
        raise UserError(f"beam width {width}: expected 1 to {WIDEST:,}")
    if not 1 <= count <= width:
        raise UserError(f"best {count}: expected 1 to {width:,}, the beam's width")
    beams = [_Beam(count) for _ in state["token"]]
    running = list(beams)
    for step in range(max_length):
        state, log_probs = decoder.advance(state)
        allowed = log_probs.astype(np.float64)  # (hypotheses of all running rows, V)
        allowed[:, forbidden(step)] = -np.inf
        parents, first = [], 0
        for one in running:
            rows = len(one.tokens)
            parents.append(first + one.extend(allowed[first : first + rows], width))
            first += rows
        going = [place for place, one in enumerate(running) if not one.settled()]
        if not going:
            break
        state = keep(state, np.concatenate([parents[place] for place in going]))
        running = [running[place] for place in going]
        state["token"] = np.concatenate([one.tokens[:, -1] for one in running])
    return [one.best() for one in beams]


@dataclass
class _Beam:
    """The hypotheses of one row: K live ones, and the best `count` that have ended."""

    count: int
    tokens: Ints = field(default_factory=lambda: np.zeros((1, 0), dtype=np.int64))  # (K, L)
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))  # (K)
    ended: list[Scored] = field(default_factory=list)  # the best first

    def extend(self, log_probs: NDArray[np.float64], width: int) -> Ints:
        """Add a token to each live hypothesis, given log-probabilities (K, V); return the parents of the new ones.

        Among the best 2 * width continuations at least `width` do not end, as each hypothesis can end in one way only.
        """
        total = self.scores[:, None] + log_probs  # (K, V)
        order = np.argsort(-total, axis=None, kind="stable")[: 2 * width]  # (2w) places in total, flat
        parent, token = np.divmod(order, log_probs.shape[1])
        score = total[parent, token]
        for place in np.flatnonzero(token[:width] == EOS_ID).tolist():
            self._end(int(parent[place]), float(score[place]))
        live = np.flatnonzero((token != EOS_ID) & (score > -np.inf))[:width]
        self.tokens = np.concatenate([self.tokens[parent[live]], token[live, None]], axis=1)
        self.scores = score[live]
        return np.asarray(parent[live], dtype=np.int64)

    def settled(self) -> bool:
        """Whether no live hypothesis can overtake one of the best that have ended; a log-probability only falls."""
        if not len(self.scores):
            return True
        if len(self.ended) < self.count:
            return False
        return self.ended[-1][1] >= float(self.scores.max())

    def best(self) -> list[Scored]:
        """The best ended hypotheses, else the best live one, else (no token may be written) an empty one."""
        live = [(self.tokens[0].tolist(), float(self.scores[0]))] if len(self.scores) else [([], 0.0)]
        return self.ended or live

    def _end(self, parent: int, score: float) -> None:
        if score > -np.inf:
            self.ended.append((self.tokens[parent].tolist(), score))
            self.ended.sort(key=lambda one: -one[1])  # of equal ones, the earlier stays first
            del self.ended[self.count :]
