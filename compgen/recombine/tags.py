"""Neighborhoods of words by their tags and lemmas (R&R, appendix B, equations 29 and 30).

The first prototypes of a word d are the words d1 whose tags differ least, and of those the ones of nearest lemma:

    score_1(d, d1) = (|tags(d) ^ tags(d1)|, lemma distance of d and d1)          the four least       (29)

and the second prototypes to each go by how little their tags differ from those of d1:

    score_2(d, d1, d2) = (tags(d) != tags(d2), |tags(d1) ^ tags(d2)|)            the four least       (30)

The reference does otherwise in each of them, and its ways are the options of `TagRule`: it sorts by the
*similarity* of lemmas and so prefers the farthest (`lemma`); words of an even number have no first prototype with
their own tags (`parity`); there is one second prototype, with other tags than d and than d1, that has all tags which d1
lacks (`second = "cover"`), and where there is none, the first prototype and another are taken, in random order.
"""

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
    """What a word's prototypes are: first ones, and for each its second ones; `fallen` where none was to be had."""

    firsts: list[int]
    seconds: list[list[int]]
    fallen: list[bool]


def tag_neighbors(
    tags: NDArray[np.bool_], lemmas: Sequence[Sequence[object]], pool: int, firsts: int, seconds: int, rule: TagRule
) -> Iterator[Neighbors]:
    """The neighbors of each word, among the first `pool` words.

    Args:
        tags: (N, T) which tags each word has, as a set.
        lemmas: the letters of each word's lemma.
        pool: how many of the words, the first, may be prototypes.
        firsts, seconds: how many first prototypes of a word, and second ones to each.
        rule: which rule.
    """
    held = tags.astype(np.float32)
    sizes = held.sum(axis=1)
    letters = _letters(lemmas)
    inside = held[:pool]
    for word in range(len(held)):
        apart = (sizes[word] + sizes[:pool] - 2 * (inside @ held[word])).astype(np.int64)  # |tags ^ tags'|
        allowed = np.arange(pool) != word
        if rule.parity and word % 2 == 0:
            allowed &= apart > 0
        chosen = _firsts(np.where(allowed, apart, FAR), letters, word, firsts, rule)
        others, fallen = [], []
        for first in chosen:
            between = (sizes[first] + sizes[:pool] - 2 * (inside @ held[first])).astype(np.int64)
            other = np.arange(pool)
            fit = (other != word) & (other != first)
            if rule.second == "cover":
                missing = held[word] * (1 - held[first])
                fit &= (apart > 0) & (between > 0) & (inside @ missing == missing.sum())
                order = np.lexsort((other, between))
            else:
                order = np.lexsort((other, between, apart > 0))
            found = order[fit[order]][:seconds].tolist()
            fallen.append(not found)
            others.append(found or [other for other in chosen if other != first][:1])
        yield Neighbors(chosen, others, fallen)


def _firsts(apart: NDArray[np.int64], letters: NDArray[np.int16], word: int, firsts: int, rule: TagRule) -> list[int]:
    """The first prototypes by score_1; words that are FAR are none."""
    count = min(firsts, len(apart))
    limit = np.partition(apart, count - 1)[count - 1]
    near = np.flatnonzero((apart <= limit) & (apart < FAR))
    # Likeness is the Jaccard similarity of the multisets of letters; no letters at all are alike.
    common = np.minimum(letters[near], letters[word]).sum(axis=1)
    union = np.maximum(letters[near], letters[word]).sum(axis=1)
    alike = np.where(union > 0, common / np.maximum(union, 1), 1.0)
    order = np.lexsort((near, alike if rule.lemma == "farthest" else -alike, apart[near]))
    return [int(other) for other in near[order][:count]]


def _letters(lemmas: Sequence[Sequence[object]]) -> NDArray[np.int16]:
    """How often each letter is in each lemma, (N, letters)."""
    alphabet = dict.fromkeys(letter for lemma in lemmas for letter in lemma)
    place = {letter: number for number, letter in enumerate(alphabet)}
    table = np.zeros((len(lemmas), len(place)), dtype=np.int16)
    for row, lemma in enumerate(lemmas):
        np.add.at(table[row], [place[letter] for letter in lemma], 1)
    return table
