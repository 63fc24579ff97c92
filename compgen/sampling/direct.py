"""Direct inference: what a generator answers to a source, without a predictor (R&R, appendix E).

Prototypes are retrieved for the source, the generator is made to write the source and answers greedily, once for each
choice of prototypes; then all answers are ranked by how probable source and answer are with the prototypes summed out
(equation 7).

First prototypes have sources like the one asked for; second prototypes have sources like what the first one's lacks, in
the order in which it is asked for. Where nothing is that near, the nearest is taken; the reference draws one at random.
It also leaves the probability of the source out of the ranking, which is then no longer equation 7. A latent vector is
zero here.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from compgen.data.vocabulary import BOS_ID, EOS_ID, SEP_ID
from compgen.errors import UserError
from compgen.runtime.backend import Backend, Floats, Ints, State
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import advance, keep
from compgen.sampling.batching import Memories

NEAR = 0.5  # similarity
SPAN = 4  # how much longer or shorter than what is missing a second prototype's source may be
ROWS = 256  # decoded together
BLOCK = 256  # sources compared with the pool at a time


class Direct:
    """Answers by retrieval, of a generator with one prototype or two."""

    def __init__(self, backend: Backend, pool: PrototypePool, max_length: int, each: int = 5) -> None:
        """Read the pool.

        Args:
            backend, pool, max_length: of the generator.
            each: how many first prototypes of a source, and how many second ones to each.

        Raises:
            UserError: a generator with no prototypes, or with more than two; or `each` is not one at least.
        """
        if each < 1:
            raise UserError(f"found each = {each}, expected one prototype or more to answer by")
        if pool.prototypes not in (1, 2):
            raise UserError(f"direct inference is for one prototype or two: found a generator with {pool.prototypes}")
        self.backend, self.pool, self.max_length, self.each = backend, pool, max_length, each
        self.memories = Memories(backend, pool, width=int((pool.tokens != 0).sum(axis=1).max()))
        rows = [row[: row.index(SEP_ID)] if SEP_ID in row else row for row in pool.tokens.tolist()]
        self.sources = [_text(row) for row in rows]
        self.held = [frozenset(row) for row in rows]

    def answers(self, sources: Sequence[Sequence[int]], watch: Callable[[int], None] | None = None) -> list[list[int]]:
        """The best answer to each source of ids; `watch` hears how many sources are done."""
        found: list[list[int]] = []
        for first in range(0, len(sources), BLOCK):
            block = [list(source) for source in sources[first : first + BLOCK]]
            found += self._block(block)
            if watch is not None:
                watch(len(found))
        return found

    def _block(self, sources: list[list[int]]) -> list[list[int]]:
        chosen = self.retrieved(sources)
        asked = np.repeat(np.arange(len(sources)), [len(rows) for rows in chosen])
        tuples = np.array([row for rows in chosen for row in rows], dtype=np.int64)
        self.memories.prepare(tuples)
        prefixes = [[*source, SEP_ID] for source in sources]
        written, _ = self._forced([prefixes[source] for source in asked.tolist()], tuples, answer=True)
        candidates: list[dict[tuple[int, ...], None]] = [{} for _ in sources]
        for source, answer in zip(asked.tolist(), written, strict=True):
            candidates[source][tuple(answer)] = None
        # Every candidate with every choice of prototypes; one candidate alone need not be ranked.
        jobs = [
            (source, number, row)
            for source, given in enumerate(candidates)
            if len(given) > 1
            for number in range(len(given))
            for row in chosen[source]
        ]
        best = [next(iter(given)) for given in candidates]
        if jobs:
            answers = [list(given) for given in candidates]
            whole = [[*prefixes[source], *answers[source][number], EOS_ID] for source, number, _ in jobs]
            _, scores = self._forced(whole, np.array([row for _, _, row in jobs], dtype=np.int64), answer=False)
            totals: dict[tuple[int, int], float] = {}
            for (source, number, _), score in zip(jobs, scores.tolist(), strict=True):
                totals[source, number] = float(np.logaddexp(totals.get((source, number), -np.inf), score))
            for source, given in enumerate(answers):
                if len(given) > 1:
                    best[source] = given[max(range(len(given)), key=lambda number: totals[source, number])]
        return [list(answer) for answer in best]

    def retrieved(self, sources: list[list[int]]) -> list[list[tuple[int, ...]]]:
        """The choices of prototypes for each source: pool indices."""
        similarity = _similarity([_text(source) for source in sources], self.sources)
        firsts = []
        for source, row in zip(sources, similarity, strict=True):
            allowed = row < 1
            if self.pool.prototypes == 2:
                wanted = set(source)
                allowed &= np.array([bool(wanted - held) for held in self.held])
            firsts.append(_best(row, allowed, self.each))
        if self.pool.prototypes == 1:
            return [[(first,) for first in row] for row in firsts]
        missing = [
            [token for token in source if token not in self.held[first]]
            for source, row in zip(sources, firsts, strict=True)
            for first in row
        ]
        texts = [_text(list(dict.fromkeys(tokens))) for tokens in missing]
        distinct = sorted(set(texts))
        lengths = np.array([len(text) for text in self.sources])
        nearest = {}
        for text, row in zip(distinct, _similarity(distinct, self.sources), strict=True):
            nearest[text] = _best(row, np.abs(lengths - len(text)) <= SPAN, self.each)
        pairs = iter(texts)
        return [[(first, second) for first in row for second in nearest[next(pairs)]] for row in firsts]

    def _forced(
        self, given: list[list[int]], tuples: Ints, answer: bool
    ) -> tuple[list[list[int]], NDArray[np.float64]]:
        """Write what is given, with these prototypes (N, n), and if asked for go on greedily to the end.

        Returns:
            what was written after it, without the end symbol, and the log-probability of all that was given.
        """
        order = np.argsort([len(row) for row in given], kind="stable")
        written: list[list[int]] = [[] for _ in given]
        scores = np.zeros(len(given))
        for first in range(0, len(order), ROWS):
            rows = order[first : first + ROWS]
            self._batch(given, tuples, answer, rows, written, scores)
        return written, scores

    def _batch(
        self,
        given: list[list[int]],
        tuples: Ints,
        answer: bool,
        rows: Ints,
        written: list[list[int]],
        scores: NDArray[np.float64],
    ) -> None:
        state = self._opening(tuples[rows])
        lengths = np.array([len(given[row]) for row in rows.tolist()])
        table = np.zeros((len(rows), int(lengths.max())), dtype=np.int64)
        for place, row in enumerate(rows.tolist()):
            table[place, : lengths[place]] = given[row]
        running = np.arange(len(rows))
        for step in range(self.max_length if answer else int(lengths.max())):
            state, log_probs = advance(self.backend, state)
            forced = step < lengths[running]
            if forced.any():
                token = np.where(forced, table[running, min(step, table.shape[1] - 1)], state["token"])
                gained = log_probs[np.arange(len(running)), token]
                scores[rows[running[forced]]] += gained[forced]
                state["token"] = token
            for place in np.flatnonzero(~forced & (state["token"] != EOS_ID)).tolist():
                written[rows[running[place]]].append(int(state["token"][place]))
            going = forced | (state["token"] != EOS_ID) if answer else step + 1 < lengths[running]
            running = running[going]
            if not len(running):
                break
            if not going.all():
                state = keep(state, going)

    def _opening(self, tuples: Ints) -> State:
        shape, rows = self.backend.shape, len(tuples)
        fetched = self.memories.fetch(tuples)
        hidden, cell = self.backend.start(fetched.pop("final"))
        zeros: Floats = np.zeros((rows, shape.output), dtype=shape.dtype)
        numbers = np.zeros(rows, dtype=np.int64)
        opening = {"token": numbers + BOS_ID, "position": numbers, "half": numbers.copy()}
        return opening | {"hidden": hidden, "cell": cell, "fed": zeros} | fetched


def _text(sequence: Sequence[int]) -> str:
    return "".join(chr(token + 0x100) for token in sequence)  # RapidFuzz compares strings fastest


def _similarity(rows: list[str], columns: list[str]) -> NDArray[np.float32]:
    return cdist(rows, columns, scorer=Levenshtein.normalized_similarity, dtype=np.float32, workers=-1)


def _best(similarity: NDArray[np.float32], allowed: NDArray[np.bool_], count: int) -> list[int]:
    """Up to `count` of the allowed that are near, the nearest first; else the nearest allowed, else the nearest."""
    ranked = np.where(allowed, similarity, np.float32(-1)) if allowed.any() else similarity
    best = np.argsort(-ranked, kind="stable")[:count]
    near = [int(place) for place in best if ranked[place] > NEAR]
    return near or [int(best[0])]
