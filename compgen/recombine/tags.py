"""Neighborhoods of words by their tags and lemmas (R&R, appendix B, equations 29 and 30)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

FAR = 1 << 20  # more than any number of tags


class TagRule(BaseModel):
    """How prototypes of a word are chosen; the defaults are the paper's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lemma: Literal["nearest", "farthest"] = Field("nearest", description="of equal tags, which lemmas come first")
    parity: bool = Field(False, description="every other word has no first prototype with its own tags")
    second: Literal["paper", "cover"] = Field("paper", description="how second prototypes are chosen")


REFERENCE = TagRule(lemma="farthest", parity=True, second="cover")


@dataclass(frozen=True)
class Neighbors:
    """The first prototypes of a word, and for each its second ones; `fallen` where they are only a fallback."""

    firsts: list[int]
    seconds: list[list[int]]
    fallen: list[bool]


def tag_neighbors(
    tags: NDArray[np.bool_], lemmas: Sequence[Sequence[object]], pool: int, firsts: int, seconds: int, rule: TagRule
) -> Iterator[Neighbors]:
    """Find the neighbors of each word, among the first `pool` words.

    The first prototypes d1 of a word d have the tags nearest to its own, and among equals the nearest lemma:

        score_1(d, d1) = (|tags(d) ^ tags(d1)|, distance of the lemmas of d and d1)     the least four       (29)

    The second prototypes d2 have the tags of d if possible, and the tags nearest to those of d1:

        score_2(d, d1, d2) = (tags(d) != tags(d2), |tags(d1) ^ tags(d2)|)               the least four       (30)

    The reference deviates from each, by options of `TagRule`: it prefers the farthest lemmas (`lemma`); words at even
    places have no first prototype with their own tags (`parity`); the second prototype differs in tags from d and d1
    and has all tags that d1 lacks (`second = "cover"`). If there is none, another first prototype takes its place, and
    the order of the two is random.

    Args:
        tags: (N, T) the tags of each word, as a set.
        lemmas: the letters of each word's lemma.
        firsts, seconds: the number of first prototypes of a word, and of second ones to each.
    """
    held = tags.astype(np.float32)
    sizes = held.sum(axis=1)
    letters = _letters(lemmas)
    inside = held[:pool]
    other = np.arange(pool)

    def distances(word: int) -> NDArray[np.int64]:
        """|tags(word) ^ tags(d)| for each d of the pool."""
        return np.asarray(sizes[word] + sizes[:pool] - 2 * (inside @ held[word])).astype(np.int64)

    for word in range(len(held)):
        apart = distances(word)
        allowed = other != word
        if rule.parity and word % 2 == 0:
            allowed &= apart > 0
        chosen = _firsts(np.where(allowed, apart, FAR), letters, word, firsts, rule)
        others, fallen = [], []
        for first in chosen:
            between = distances(first)
            fit = (other != word) & (other != first)
            if rule.second == "cover":
                missing = held[word] * (1 - held[first])  # (T)
                fit &= (apart > 0) & (between > 0) & (inside @ missing == missing.sum())
                order = np.lexsort((other, between))
            else:
                order = np.lexsort((other, between, apart > 0))
            found = order[fit[order]][:seconds].tolist()
            fallen.append(not found)
            others.append(found or [instead for instead in chosen if instead != first][:1])
        yield Neighbors(chosen, others, fallen)


def _firsts(apart: NDArray[np.int64], letters: NDArray[np.int16], word: int, firsts: int, rule: TagRule) -> list[int]:
    """The first prototypes by score_1, among the words whose tags are not FAR."""
    count = min(firsts, len(apart))
    limit = np.partition(apart, count - 1)[count - 1]
    near = np.flatnonzero((apart <= limit) & (apart < FAR))
    # Jaccard similarity of the multisets of letters, 1 if both are empty.
    common = np.minimum(letters[near], letters[word]).sum(axis=1)
    union = np.maximum(letters[near], letters[word]).sum(axis=1)
    alike = np.where(union > 0, common / np.maximum(union, 1), 1.0)
    order = np.lexsort((near, alike if rule.lemma == "farthest" else -alike, apart[near]))
    return [int(other) for other in near[order][:count]]


def _letters(lemmas: Sequence[Sequence[object]]) -> NDArray[np.int16]:
    """The number of each letter in each lemma, (N, letters)."""
    alphabet = dict.fromkeys(letter for lemma in lemmas for letter in lemma)
    place = {letter: number for number, letter in enumerate(alphabet)}
    table = np.zeros((len(lemmas), len(place)), dtype=np.int16)
    for row, lemma in enumerate(lemmas):
        np.add.at(table[row], [place[letter] for letter in lemma], 1)
    return table
