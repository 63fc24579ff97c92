"""Few-shot splits of inflection data: hardly any past and future forms in training (R&R, section 5.2).

The procedure is that of the reference's preparation, random numbers and all, so that the splits are the published
ones. Two streams of random numbers run through all of them in turn, and the search for neighborhoods, which we have no
use for here, takes from one of them; so a split is made by making those before it, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compgen.data.random import LegacyStream, few_shot_streams
from compgen.data.unimorph import Word
from compgen.errors import DataError
from compgen.recombine.tags import REFERENCE, tag_neighbors

HINTS = (4, 8, 16)
SEEDS = 5
TRAIN, EVALUATION, PER_TYPE = 1000, 100, 20  # words to train on, in each other part, of a tag combination in a pool
HARD = ("PST", "FUT")


@dataclass(frozen=True)
class FewShot:
    """One split: its words by part, in order. The hints are the last words of `train`, first those in the past."""

    hints: int
    seed: int
    parts: dict[str, list[Word]]


def few_shot(words: Sequence[Word], language: str, hints: Sequence[int] = HINTS) -> Iterator[FewShot]:
    """The splits of a language's words, for each number of hints in turn SEEDS of them.

    Args:
        words: as `read_words` gives them, in the order of the file.
        language: its name, for messages.
        hints: of the past, and as many of the future, in training. The published splits are those of HINTS in order.

    Raises:
        DataError: too few words: past or future are not `hints` + 100, or others not 1,200; or more hints than that.
    """
    if 2 * max(hints) > TRAIN:
        raise DataError(f"{max(hints)} hints of past and future each do not fit into the {TRAIN:,} words of training")
    words = _in_order(words)
    pools = [[number for number, (_, _, tags) in enumerate(words) if tag in tags] for tag in HARD]
    hard = set(pools[0]) | set(pools[1])
    rest = [number for number in range(len(words)) if number not in hard]
    easy, held_out = few_shot_streams()
    for count in hints:
        for seed in range(SEEDS):
            chosen = [_some_of_each_type(words, pool, held_out) for pool in pools]
            others = [rest[place] for place in easy.permutation(len(rest))]
            past, future = ([pool[place] for place in held_out.permutation(len(pool))] for pool in chosen)
            parts = {
                "train": others[: TRAIN - 2 * count] + past[:count] + future[:count],
                "validation": others[TRAIN : TRAIN + EVALUATION],
                "past": past[count : count + EVALUATION],
                "other": others[TRAIN + EVALUATION : TRAIN + 2 * EVALUATION],
                "future": future[count : count + EVALUATION],
            }  # in the order in which the reference goes through them
            _check(parts, count, language)
            split = {part: [words[number] for number in numbers] for part, numbers in parts.items()}
            yield FewShot(count, seed, split)
            _spend(easy, [word for part in split.values() for word in part])


def _in_order(words: Sequence[Word]) -> list[Word]:
    """The words in the reference's order: it sorts them as numbers, letters and tags in order of first sight."""
    numbers: dict[str, int] = {}
    keyed = []
    for lemma, form, tags in words:
        for token in (*form, *lemma, *tags):
            numbers.setdefault(token, len(numbers))
        # The end of a part sorts before all letters: the reference's separator is older than they.
        key = [numbers[token] for token in (*lemma, *tags)] + [-1] + [numbers[token] for token in form]
        keyed.append((key, (lemma, form, tags)))
    return [word for _, word in sorted(keyed)]


def _some_of_each_type(words: Sequence[Word], pool: Sequence[int], rng: LegacyStream) -> list[int]:
    """At most PER_TYPE words of each combination of tags, drawn combination after combination."""
    types: dict[tuple[str, ...], list[int]] = {}
    for number in pool:
        types.setdefault(words[number][2], []).append(number)
    drawn: list[int] = []
    for tags in sorted(types):
        drawn += [types[tags][place] for place in rng.permutation(len(types[tags]))[:PER_TYPE]]
    return drawn


def _check(parts: dict[str, list[int]], hints: int, language: str) -> None:
    for part, numbers in parts.items():
        wanted = TRAIN if part == "train" else EVALUATION
        if len(numbers) < wanted:
            raise DataError(
                f"{language or 'the language'}: too few words for {hints} hints: found {len(numbers)} for the part "
                f"{part}, expected {wanted}; past and future are the words tagged {' and '.join(HARD)}"
            )


def _spend(rng: LegacyStream, words: Sequence[Word]) -> None:
    """Take from the random numbers what the reference's search for the neighborhoods of a split takes.

    It shuffles each word's candidates before it sorts them, and draws the order of each pair that it has to make up.
    """
    names = sorted({tag for _, _, tags in words for tag in tags})
    place = {tag: number for number, tag in enumerate(names)}
    held = np.zeros((len(words), len(names)), dtype=bool)
    for row, (_, _, tags) in enumerate(words):
        held[row, [place[tag] for tag in tags]] = True
    kinds = [frozenset(tags) for _, _, tags in words]
    same: dict[frozenset[str], int] = {}
    for kind in kinds[:TRAIN]:
        same[kind] = same.get(kind, 0) + 1
    lemmas = [lemma for lemma, _, _ in words]
    for row, found in enumerate(tag_neighbors(held, lemmas, TRAIN, 4, 1, REFERENCE)):
        own = int(row < TRAIN)
        excluded = same.get(kinds[row], 0) if row % 2 == 0 else own
        rng.shuffle(np.arange(TRAIN - max(own, excluded)))
        for _ in range(sum(found.fallen)):
            rng.permutation(2)
