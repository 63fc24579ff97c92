"""The prototypes that a training example d is learned from: its neighborhood N(d) (R&R, equations 19 to 21).

Examples are the distinct training sequences `source → target` as token ids. Edit distances come from RapidFuzz (a
token is a character) and set differences from products of 0/1 token incidence matrices, in blocks of rows: no pair of
sequences is visited in Python. Similarity is 1 - lev(a, b) / max(|a|, |b|), and delta is its lower bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from compgen.data.random import Purpose, Stream, stream
from compgen.data.unimorph import is_tag
from compgen.data.vocabulary import SEP_ID, Vocabulary
from compgen.errors import DataError
from compgen.models.config import LONGEST, MOST
from compgen.recombine.tags import TagRule, tag_neighbors

Sequences = list[list[int]]
Row = tuple[int, int, int]  # the indices of d, d1 and d2
BLOCK = 256  # rows compared at a time: 256 x 20,000 float32 similarities are 20 MB

Kind = Literal["long-short", "long-long", "tags"]


class NeighborhoodConfig(BaseModel):
    """How to find the prototypes of a training example."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = Field(
        "long-short",
        description="how prototypes are chosen: long-short (equation 20), long-long (equation 21) or tags, for "
        "words (appendix B)",
    )
    delta: float = Field(0.5, ge=0, lt=1, description="least similarity (dist_thresh)")
    candidates: int = Field(10, ge=1, le=MOST, description="long-long: how many candidates to draw for an example")
    firsts: int = Field(5, ge=1, le=MOST, description="first prototypes kept for an example (max_cnt_nb)")
    seconds: int = Field(3, ge=1, le=MOST, description="second prototypes kept for a first one")
    cover: bool = Field(True, description="long-short: second prototypes hold every token that the first lacks")
    symmetric: bool = Field(False, description="long-long: the one different token counts both ways")
    longest: int | None = Field(
        None,
        ge=3,
        le=LONGEST,
        description="leave out rows with a longer sequence in them: training costs what its length costs",
    )
    nearest: bool = Field(True, description="long-long: keep the most similar candidates, not the first drawn")
    tags: TagRule = Field(TagRule(), description="tags: how prototypes of a word are chosen")


def incidence(sequences: Sequences, vocabulary: int) -> NDArray[np.float32]:
    """The tokens that each sequence holds: (N, V), 0 or 1."""
    table = np.zeros((len(sequences), vocabulary), dtype=np.float32)
    for row, sequence in enumerate(sequences):
        table[row, sequence] = 1
    return table


@dataclass(frozen=True)
class _Search:
    """A search for neighborhoods: examples from index `first`, prototypes among the first `pool` sequences."""

    sequences: Sequences
    vocabulary: Vocabulary
    config: NeighborhoodConfig
    rng: Stream
    pool: int
    first: int

    @cached_property
    def texts(self) -> list[str]:
        return [_as_text(sequence) for sequence in self.sequences]

    def blocks(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Blocks of examples: the index of the first, and similarities (R, pool) to all prototypes."""
        for start in range(self.first, len(self.texts), BLOCK):
            yield start, self.similar(self.texts[start : start + BLOCK])

    def similar(self, texts: list[str]) -> NDArray[np.float32]:
        """Similarities (R, pool) of texts to all prototypes; those of delta or less are 0."""
        prototypes = self.texts[: self.pool]
        table = cdist(texts, prototypes, scorer=Levenshtein.normalized_similarity, dtype=np.float32, workers=-1)
        table[table <= self.config.delta] = 0
        return table

    def pick(self, allowed: NDArray[np.bool_], count: int) -> list[NDArray[np.int64]]:
        """For every row of (R, C), up to `count` random columns among those allowed."""
        keys = np.where(allowed, self.rng.random(allowed.shape, dtype=np.float32), np.float32(2))  # (R, C)
        count = min(count, allowed.shape[1])
        best = np.argpartition(keys, count - 1, axis=1)[:, :count]  # (R, count)
        found = zip(best, np.take_along_axis(keys, best, axis=1), strict=True)
        return [columns[np.argsort(values)][: int((values < 2).sum())] for columns, values in found]


def build(
    sequences: Sequences,
    vocabulary: Vocabulary,
    prototypes: int,
    config: NeighborhoodConfig,
    seed: int,
    pool: int | None = None,
) -> NDArray[np.int32]:
    """Build training rows (M, 1 + n): the index of an example, then those of its n prototypes.

    With n = 0 a row is the example alone. With n = 1 the first prototypes of the n = 2 neighborhood are used, as in
    the paper's appendix B. With n > 2 further prototypes are drawn from the second prototypes of the same first one.

    Args:
        pool: if given, the first `pool` sequences are prototypes only, and the others examples only.

    Raises:
        DataError: no example has any prototype, all are longer than `longest`, or one has no tags to go by.
    """
    short = np.array([config.longest is None or len(sequence) <= config.longest for sequence in sequences])
    first = pool or 0
    if prototypes == 0:
        alone = np.flatnonzero(short)
        alone = alone[alone >= first]
        if not len(alone):
            raise DataError(
                f"none of {len(sequences)} examples has up to {config.longest} tokens (neighborhood.longest): give a "
                "higher number, or leave it out"
            )
        return alone[:, None].astype(np.int32)
    rng = stream(Purpose.NEIGHBORHOODS, seed)
    search = _Search(sequences, vocabulary, config, rng, len(sequences) if pool is None else pool, first)
    find = {"long-short": _long_short, "long-long": _long_long, "tags": _by_tags}[config.kind]
    rows = np.array(list(find(search)), dtype=np.int32).reshape(-1, 3)
    rows = rows[short[rows].all(axis=1)]
    if not len(rows):
        alike = "" if config.kind == "tags" else f" with similarity above {config.delta}"
        among = "" if config.longest is None else f" among examples of up to {config.longest} tokens (longest)"
        raise DataError(
            f"no neighborhoods: none of {len(sequences)} examples has {config.kind} prototypes{alike}{among}; "
            + ("a lower neighborhood.delta, " * bool(alike) + "a higher neighborhood.longest, " * bool(among))
            + "other or more examples may help, or the configuration auto, which finds settings from the data"
        )
    if prototypes == 1:
        return np.unique(rows[:, :2], axis=0)
    return rows if prototypes == 2 else _extend(rows, prototypes, rng)


def _as_text(sequence: list[int]) -> str:
    # RapidFuzz compares strings of single characters fastest. The offset keeps clear of control characters.
    return "".join(chr(token + 0x100) for token in sequence)


def _long_short(search: _Search) -> Iterator[Row]:
    """Equation 20: d1 is similar to d, and d2 to the tokens of d that d1 lacks.

        for d, for d1 with delta < similarity(d, d1) < 1:
            missing = the tokens of d that d1 lacks, once each, in order
            for d2 with similarity(d2, missing) > delta [and all of missing]: row d, d1, d2

    That d2 holds all that is missing is the paper's condition (`cover`), and not the reference's. That each missing
    token counts once is the reference's: the paper takes d without the tokens of d1, with repetitions.
    """
    held = [frozenset(sequence) for sequence in search.sequences]
    pairs: list[tuple[int, int, str]] = []  # d, d1, missing
    for start, similarity in search.blocks():
        chosen = search.pick((similarity > 0) & (similarity < 1), search.config.firsts)
        for row, firsts in enumerate(chosen, start):
            for first in firsts.tolist():
                missing = dict.fromkeys(token for token in search.sequences[row] if token not in held[first])
                if missing:
                    pairs.append((row, first, _as_text(list(missing))))
    matches = _holding(search, sorted({missing for _, _, missing in pairs}))
    for example, first, missing_text in pairs:
        seconds = matches[missing_text]
        seconds = seconds[seconds != example]  # the first has no token that is missing, and is not similar
        for second in search.rng.permutation(seconds)[: search.config.seconds].tolist():
            yield example, first, second


def _holding(search: _Search, differences: list[str]) -> dict[str, NDArray[np.int64]]:
    """The prototypes similar to each difference, which are few behind many pairs; with `cover`, only those with all."""
    table = incidence(search.sequences[: search.pool], len(search.vocabulary))  # (pool, V)
    matches: dict[str, NDArray[np.int64]] = {}
    for start in range(0, len(differences), BLOCK):
        block = differences[start : start + BLOCK]
        allowed = search.similar(block) > 0  # (R, pool)
        if search.config.cover:
            wanted = incidence([[ord(c) - 0x100 for c in text] for text in block], len(search.vocabulary))  # (R, V)
            allowed &= wanted @ table.T == wanted.sum(axis=1, keepdims=True)
        matches |= {text: np.flatnonzero(row) for text, row in zip(block, allowed, strict=True)}
    return matches


def _long_long(search: _Search) -> Iterator[Row]:
    """Equation 21: d1 and d2 are similar to d, each but for one token, and together they hold all its tokens.

    The one token differs both ways in the paper (`symmetric`); the reference counts only what d1 or d2 lacks. The
    reference takes d2 from the candidates for d1, and so do we. The paper asks of d2 that it is similar to d, and of
    the pair that it is in Omega.
    """
    config, pool = search.config, search.pool
    table = incidence(search.sequences, len(search.vocabulary))  # (N, V)
    sizes = table.sum(axis=1)
    for start, similarity in search.blocks():
        block = slice(start, start + len(similarity))
        common = table[block] @ table[:pool].T  # (R, pool)
        lacking = sizes[block, None] - common  # tokens of the example that the candidate lacks
        if config.symmetric:
            lacking = lacking + sizes[None, :pool] - common
        allowed = (lacking == 1) & (similarity > 0) & (similarity < 1)
        for row, drawn in enumerate(search.pick(allowed, config.candidates), start):
            if config.nearest:
                drawn = drawn[np.argsort(-similarity[row - start, drawn], kind="stable")]
            held = table[drawn].astype(bool)
            missing = table[row].astype(bool) & ~held  # (candidates, V)
            covered = missing.astype(np.float32) @ (~held).T.astype(np.float32) == 0  # (first, second)
            for first in range(min(config.firsts, len(drawn))):
                for second in np.flatnonzero(covered[first])[: config.seconds].tolist():
                    yield row, int(drawn[first]), int(drawn[second])


def _by_tags(search: _Search) -> Iterator[Row]:
    """Words with their analyses, by tags and lemmas (equations 29 and 30, see `compgen.recombine.tags`)."""
    config = search.config
    lemmas, tags = tagged(search.sequences, search.vocabulary)
    neighbors = tag_neighbors(tags, lemmas, search.pool, config.firsts, config.seconds, config.tags)
    for word, found in islice(enumerate(neighbors), search.first, None):
        for first, seconds, fallen in zip(found.firsts, found.seconds, found.fallen, strict=True):
            for second in seconds:
                pair = (first, second) if not fallen or search.rng.random() < 0.5 else (second, first)
                yield word, *pair


def tagged(sequences: Sequences, vocabulary: Vocabulary) -> tuple[Sequences, NDArray[np.bool_]]:
    """Return the lemma of each sequence `lemma tags SEP form`, and the tokens that are its tags (N, V).

    Raises:
        DataError: a source without a tag.
    """
    kinds = np.array([is_tag(token) for token in vocabulary])
    tags = np.zeros((len(sequences), len(vocabulary)), dtype=bool)
    lemmas = []
    for row, sequence in enumerate(sequences):
        source = sequence[: sequence.index(SEP_ID)]
        found = [token for token in source if kinds[token]]
        if not found:
            raise DataError(
                f"neighborhoods by tags need words of inflection, lemma and tags to form: found the source "
                f"{' '.join(vocabulary.decode(source))!r}, which has no tag (a token with a capital or a digit first)"
            )
        tags[row, found] = True
        lemmas.append([token for token in source if not kinds[token]])
    return lemmas, tags


def _extend(rows: NDArray[np.int32], prototypes: int, rng: Stream) -> NDArray[np.int32]:
    """Extend rows (M, 3) to (M, 1 + n), n > 2, by second prototypes of other rows with the same example and first."""
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    rows = rows[order]
    _, group, size = np.unique(rows[:, :2], axis=0, return_index=True, return_counts=True)
    first = np.repeat(group, size)
    count = np.repeat(size, size)
    more = [rows[first + rng.integers(0, count), 2] for _ in range(prototypes - 2)]
    return np.column_stack([rows, *more]).astype(np.int32)
