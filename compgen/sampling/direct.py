"""Direct inference: the answer of a generator to a source, without a predictor (R&R, appendix E).

Prototypes are retrieved for the source. The generator is made to write the source and answers greedily, once for each
choice of prototypes. All answers are ranked by the probability of source and answer with the prototypes summed out
(equation 7).

First prototypes have sources like the one asked for; second prototypes have sources like the tokens that the first
one lacks, in their order. Where no prototype is near, the nearest is taken; the reference draws one at random. It also
leaves the probability of the source out of the ranking, which is then no longer equation 7. A latent vector is zero
here.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from compgen.data.padding import padded
from compgen.data.vocabulary import EOS_ID, PAD_ID, SEP_ID
from compgen.errors import UserError, whole
from compgen.runtime.backend import Backend, Ints
from compgen.runtime.pool import NEAREST, PrototypePool
from compgen.runtime.predict import Recurrent, first_state, write
from compgen.sampling.batching import Memories, Tokens

NEAR = 0.5  # similarity
SPAN = 4  # how much longer or shorter than what is missing a second prototype's source may be
ROWS = 256  # decoded together
BLOCK = 256  # sources compared with the pool at a time


class Direct:
    """Answers by retrieval, of a generator with one prototype or two."""

    def __init__(self, backend: Backend, pool: PrototypePool, max_length: int, each: int = NEAREST) -> None:
        """Read the pool.

        Args:
            backend, pool, max_length: of the generator.
            each: how many first prototypes to retrieve for a source, and how many second ones for each of these.

        Raises:
            UserError: a generator without prototypes, or with more than two; or `each` is less than one.
        """
        if (whole(each) or 0) < 1:
            raise UserError(f"found each = {each!r:.60}, expected one prototype or more to answer by")
        pool.require_direct()
        self.backend, self.pool, self.max_length, self.each = backend, pool, max_length, each
        self.memories = Memories(backend, pool, width=int((pool.tokens != PAD_ID).sum(axis=1).max()))
        rows = [row[: row.index(SEP_ID)] if SEP_ID in row else row for row in pool.tokens.tolist()]
        self.sources = [_text(row) for row in rows]
        self.held = [frozenset(row) for row in rows]

    def answers(self, sources: Sequence[Sequence[int]], watch: Callable[[int], None] | None = None) -> list[list[int]]:
        """The best answer to each source of ids; `watch` is called with the number of sources that are done."""
        found: list[list[int]] = []
        for first in range(0, len(sources), BLOCK):
            found += self._block([list(source) for source in sources[first : first + BLOCK]])
            if watch is not None:
                watch(len(found))
        return found

    def _block(self, sources: list[list[int]]) -> list[list[int]]:
        """The best answer to each source:

        candidates(x) = the greedy answers to x, one for each choice c of prototypes
        answer(x)     = the candidate y with the largest sum over c of p(x SEP y EOS | c)    (equation 7)
        """
        chosen = self.retrieved(sources)
        candidates = self._candidates(sources, chosen)
        contested = [number for number, answers in enumerate(candidates) if len(answers) > 1]
        jobs = [
            (number, answer, prototypes)
            for number in contested
            for answer in candidates[number]
            for prototypes in chosen[number]
        ]
        totals: dict[tuple[int, Tokens], float] = {}
        if jobs:
            whole = [[*sources[number], SEP_ID, *answer, EOS_ID] for number, answer, _ in jobs]
            tuples = np.array([prototypes for *_, prototypes in jobs], dtype=np.int64)
            _, scores = self._forced(whole, tuples, answer=False)
            for (number, answer, _), score in zip(jobs, scores.tolist(), strict=True):
                key = number, answer
                totals[key] = float(np.logaddexp(totals.get(key, -np.inf), score))
        best = [answers[0] for answers in candidates]
        for number in contested:
            ranked = np.argmax([totals[number, answer] for answer in candidates[number]])
            best[number] = candidates[number][ranked]
        return [list(answer) for answer in best]

    def _candidates(self, sources: list[list[int]], chosen: list[list[Tokens]]) -> list[list[Tokens]]:
        """The distinct greedy answers to each source with its choices of prototypes."""
        asked = [number for number, choices in enumerate(chosen) for _ in choices]
        tuples = np.array([prototypes for choices in chosen for prototypes in choices], dtype=np.int64)
        self.memories.prepare(tuples)
        written, _ = self._forced([[*sources[number], SEP_ID] for number in asked], tuples, answer=True)
        answers: list[dict[Tokens, None]] = [{} for _ in sources]
        for number, answer in zip(asked, written, strict=True):
            answers[number][tuple(answer)] = None
        return [list(found) for found in answers]

    def retrieved(self, sources: list[list[int]]) -> list[list[Tokens]]:
        """The choices of prototypes for each source, as pool indices:

        firsts(x)     = the `each` nearest to x among sources that differ from x and lack a token of x
        seconds(x, f) = the `each` nearest to the tokens of x that f lacks, among sources of about that length
        """
        firsts = self._firsts(sources)
        if self.pool.prototypes == 1:
            return [[(first,) for first in row] for row in firsts]
        lacking = [
            [_text(dict.fromkeys(token for token in source if token not in self.held[first])) for first in row]
            for source, row in zip(sources, firsts, strict=True)
        ]
        seconds = self._seconds({text for row in lacking for text in row})
        return [
            [(first, second) for first, text in zip(row, texts, strict=True) for second in seconds[text]]
            for row, texts in zip(firsts, lacking, strict=True)
        ]

    def _firsts(self, sources: list[list[int]]) -> list[list[int]]:
        found = []
        for source, row in zip(sources, _similarity(map(_text, sources), self.sources), strict=True):
            allowed = row < 1
            if self.pool.prototypes == 2:
                allowed &= np.array([not held.issuperset(source) for held in self.held])
            found.append(_best(row, allowed, self.each))
        return found

    def _seconds(self, texts: set[str]) -> dict[str, list[int]]:
        lengths, distinct = np.array([len(text) for text in self.sources]), sorted(texts)
        return {
            text: _best(row, np.abs(lengths - len(text)) <= SPAN, self.each)
            for text, row in zip(distinct, _similarity(distinct, self.sources), strict=True)
        }

    def _forced(
        self, given: list[list[int]], tuples: Ints, answer: bool
    ) -> tuple[list[list[int]], NDArray[np.float64]]:
        """Write what is given with prototypes (N, n) and, if asked for an answer, go on greedily to the end.

        Returns:
            what was written after it, without the end symbol, and log-probabilities (N) of all that was given.
        """
        order = np.argsort([len(row) for row in given], kind="stable")
        written: list[list[int]] = [[] for _ in given]
        scores = np.zeros(len(given))
        for first in range(0, len(order), ROWS):
            rows = order[first : first + ROWS]
            table = padded([given[row] for row in rows])
            state = first_state(self.backend, len(rows), remembered=self.memories.fetch(tuples[rows]))
            limit = self.max_length if answer else table.shape[1]
            found, (scores[rows], _) = write(Recurrent(self.backend), state, table, limit)
            for row, tokens in zip(rows.tolist(), found, strict=True):
                written[row] = tokens
        return written, scores


def _text(tokens: Iterable[int]) -> str:
    return "".join(chr(token + 0x100) for token in tokens)  # RapidFuzz compares strings fastest


def _similarity(rows: Iterable[str], columns: list[str]) -> NDArray[np.float32]:
    """Normalised Levenshtein similarity (rows, columns)."""
    return cdist(list(rows), columns, scorer=Levenshtein.normalized_similarity, dtype=np.float32, workers=-1)


def _best(similarity: NDArray[np.float32], allowed: NDArray[np.bool_], count: int) -> list[int]:
    """Up to `count` of the allowed that are near, the nearest first; else the nearest allowed, else the nearest."""
    ranked = np.where(allowed, similarity, np.float32(-1)) if allowed.any() else similarity
    best = np.argsort(-ranked, kind="stable")[:count]
    near = [int(place) for place in best if ranked[place] > NEAR]
    return near or [int(best[0])]
