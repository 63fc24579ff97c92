"""Which prototypes a training example is learned from: the neighborhoods N(d) of R&R, equations 19 to 21.

Everything works on the distinct training sequences `source → target` as token ids. Edit distances come from RapidFuzz
(tokens mapped to characters) and set differences from products of 0/1 token incidence matrices, in blocks of rows,
so that no pair is ever visited in Python. Similarity is 1 - lev(a, b) / max(|a|, |b|), and delta the least allowed.

Three kinds, each with the choices in which paper and reference differ as options:

- long-short (eq. 20): d1 similar to d, d2 similar to what d1 lacks. The paper lets d2 cover all that is missing
  (`cover`); the reference does not ask for it, and takes the missing tokens once each, in order.
- long-long (eq. 21): d1 and d2 both similar to d, and together they hold all its tokens. d1 differs from d by one
  token: in the paper both ways (`symmetric`), in the reference counting only what d1 lacks.
- tags: for words with their analyses, by tags and lemmas (see `compgen.recombine.tags`).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from compgen.data.random import Purpose, Stream, stream
from compgen.data.unimorph import is_tag
from compgen.data.vocabulary import SEP_ID, SPECIALS, Vocabulary
from compgen.errors import DataError
from compgen.models.config import LONGEST, MOST
from compgen.recombine.tags import TagRule, tag_neighbors

Sequences = list[list[int]]
BLOCK = 256  # rows compared at a time: 256 x 20,000 float32 similarities are 20 MB


Kind = Literal["long-short", "long-long", "tags"]


class NeighborhoodConfig(BaseModel):
    """How prototypes are found for a training example."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = "long-short"
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
    """Which tokens a sequence holds: (N, V), 0 or 1."""
    table = np.zeros((len(sequences), vocabulary), dtype=np.float32)
    for row, sequence in enumerate(sequences):
        table[row, sequence] = 1
    return table


def build(
    sequences: Sequences,
    vocabulary: Vocabulary,
    prototypes: int,
    config: NeighborhoodConfig,
    seed: int,
    pool: int | None = None,
) -> NDArray[np.int32]:
    """Training rows (M, 1 + n): the index of an example, then those of its n prototypes.

    With `pool` the first so many sequences are prototypes alone, and the others examples alone.

    With n = 0 a row is the example alone. With n = 1 the first prototypes of the n = 2 neighborhood are used, as in
    the paper's appendix B. With n > 2 further prototypes are drawn from the second prototypes of the same first one.

    Raises:
        DataError: no example has any prototype, or one has no tags to go by.
    """
    short = np.array([config.longest is None or len(sequence) <= config.longest for sequence in sequences])
    if prototypes == 0:
        alone = np.flatnonzero(short)
        return alone[alone >= (pool or 0), None].astype(np.int32)
    rng = stream(Purpose.NEIGHBORHOODS, seed)
    first = 0 if pool is None else pool  # of the examples
    pool = len(sequences) if pool is None else pool
    find = {"long-short": _long_short, "long-long": _long_long, "tags": _by_tags}[config.kind]
    rows = np.array(list(find(sequences, vocabulary, config, rng, pool, first)), dtype=np.int32).reshape(-1, 3)
    rows = rows[short[rows].all(axis=1)]
    if not len(rows):
        alike = "" if config.kind == "tags" else f" with similarity above {config.delta}"
        among = "" if config.longest is None else f" among examples of up to {config.longest} tokens (longest)"
        raise DataError(
            f"no neighborhoods: none of {len(sequences)} examples has {config.kind} prototypes{alike}{among}; "
            + ("a lower delta, " * bool(alike) + "a higher longest, " * bool(among) + "other or more examples may help")
        )
    if prototypes == 1:
        return np.unique(rows[:, :2], axis=0)
    return rows if prototypes == 2 else _extend(rows, prototypes, rng)


def _similar(rows: list[str], columns: list[str], delta: float) -> NDArray[np.float32]:
    """Similarities (R, C); what is not above delta is 0."""
    table = cdist(rows, columns, scorer=Levenshtein.normalized_similarity, dtype=np.float32, workers=-1)
    table[table <= delta] = 0
    return table


def _as_text(sequence: list[int]) -> str:
    # RapidFuzz compares strings of single characters fastest. The offset keeps clear of control characters.
    return "".join(chr(token + 0x100) for token in sequence)


def _pick(allowed: NDArray[np.bool_], count: int, rng: Stream) -> list[NDArray[np.int64]]:
    """For every row, up to `count` random columns among those allowed."""
    keys = np.where(allowed, rng.random(allowed.shape, dtype=np.float32), np.float32(2))
    count = min(count, allowed.shape[1])
    best = np.argpartition(keys, count - 1, axis=1)[:, :count]
    order = np.take_along_axis(keys, best, axis=1)
    return [columns[np.argsort(values)][: int((values < 2).sum())] for columns, values in zip(best, order, strict=True)]


def _long_short(
    sequences: Sequences,
    vocabulary: Vocabulary,
    config: NeighborhoodConfig,
    rng: Stream,
    pool: int,
    first_example: int,
) -> Iterator[tuple[int, int, int]]:
    texts = [_as_text(sequence) for sequence in sequences]
    held = [frozenset(sequence) for sequence in sequences]
    pairs: list[tuple[int, int, str]] = []
    for start in range(first_example, len(texts), BLOCK):
        similarity = _similar(texts[start : start + BLOCK], texts[:pool], config.delta)
        chosen = _pick((similarity > 0) & (similarity < 1), config.firsts, rng)
        for row, firsts in enumerate(chosen, start):
            for first in firsts.tolist():
                missing = [token for token in sequences[row] if token not in held[first]]
                if missing:
                    pairs.append((row, first, _as_text(list(dict.fromkeys(missing)))))
    # Few distinct differences stand behind many pairs: compare each with the pool once.
    differences = sorted({difference for _, _, difference in pairs})
    table = incidence(sequences[:pool], len(vocabulary))
    matches: dict[str, NDArray[np.int64]] = {}
    for start in range(0, len(differences), BLOCK):
        block = differences[start : start + BLOCK]
        allowed = _similar(block, texts[:pool], config.delta) > 0
        if config.cover:
            wanted = incidence([[ord(c) - 0x100 for c in text] for text in block], len(vocabulary))
            allowed &= wanted @ table.T == wanted.sum(axis=1, keepdims=True)
        matches |= {text: np.flatnonzero(row) for text, row in zip(block, allowed, strict=True)}
    for example, first, difference in pairs:
        seconds = matches[difference]
        seconds = seconds[(seconds != example) & (seconds != first)]
        for second in rng.permutation(seconds)[: config.seconds].tolist():
            yield example, first, second


def _long_long(
    sequences: Sequences,
    vocabulary: Vocabulary,
    config: NeighborhoodConfig,
    rng: Stream,
    pool: int,
    first_example: int,
) -> Iterator[tuple[int, int, int]]:
    texts = [_as_text(sequence) for sequence in sequences]
    table = incidence(sequences, len(vocabulary))
    sizes = table.sum(axis=1)
    for start in range(first_example, len(texts), BLOCK):
        similarity = _similar(texts[start : start + BLOCK], texts[:pool], config.delta)
        block = slice(start, start + len(similarity))
        common = table[block] @ table[:pool].T
        lacking = sizes[block, None] - common  # tokens of the example that the candidate lacks
        if config.symmetric:
            lacking = lacking + sizes[None, :pool] - common
        allowed = (lacking == 1) & (similarity > 0) & (similarity < 1)
        for row, drawn in enumerate(_pick(allowed, config.candidates, rng), start):
            if config.nearest:
                drawn = drawn[np.argsort(-similarity[row - start, drawn], kind="stable")]
            held = table[drawn].astype(bool)
            missing = table[row].astype(bool) & ~held  # (candidates, V)
            covered = missing.astype(np.float32) @ (~held).T.astype(np.float32) == 0  # (first, second)
            for first in range(min(config.firsts, len(drawn))):
                for second in np.flatnonzero(covered[first])[: config.seconds].tolist():
                    yield row, int(drawn[first]), int(drawn[second])


def _by_tags(
    sequences: Sequences,
    vocabulary: Vocabulary,
    config: NeighborhoodConfig,
    rng: Stream,
    pool: int,
    first_example: int,
) -> Iterator[tuple[int, int, int]]:
    lemmas, tags = tagged(sequences, vocabulary)
    neighbors = tag_neighbors(tags, lemmas, pool, config.firsts, config.seconds, config.tags)
    for word, found in islice(enumerate(neighbors), first_example, None):
        for first, seconds, fallen in zip(found.firsts, found.seconds, found.fallen, strict=True):
            for second in seconds:
                pair = (first, second) if not fallen or rng.random() < 0.5 else (second, first)
                yield word, *pair


def tagged(sequences: Sequences, vocabulary: Vocabulary) -> tuple[Sequences, NDArray[np.bool_]]:
    """The lemma of each word of inflection, `lemma tags SEP form`, and which tokens are its tags (N, V).

    Raises:
        DataError: a source without a tag.
    """
    kinds = np.array([is_tag(token) for token in vocabulary])
    kinds[: len(SPECIALS)] = False
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
    """Rows (M, 1 + n), n > 2: each row of two prototypes with others of its group (same example, same first) behind."""
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    rows = rows[order]
    _, group, size = np.unique(rows[:, :2], axis=0, return_index=True, return_counts=True)
    first = np.repeat(group, size)
    count = np.repeat(size, size)
    more = [rows[first + rng.integers(0, count), 2] for _ in range(prototypes - 2)]
    return np.column_stack([rows, *more]).astype(np.int32)
