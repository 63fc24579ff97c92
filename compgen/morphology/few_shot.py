"""Few-shot splits of inflection data: hardly any past and future forms in training (R&R, section 5.2).

The splits are the published ones. Two streams of random numbers run through all of them, and the reference's search for
neighborhoods takes from one; so each split requires those before it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from compgen.data.random import LegacyStream, few_shot_streams
from compgen.data.unimorph import Word
from compgen.errors import DataError
from compgen.recombine.tags import REFERENCE, tag_neighbors

HINTS = (4, 8, 16)
SEEDS = 5
TRAIN, EVALUATION = 1000, 100  # words in training, and in each other part
PER_TYPE = 20  # words of a combination of tags in a pool
HARD = ("PST", "FUT")


@dataclass(frozen=True)
class FewShot:
    """One split: its words by part. The last words of `train` are the hints, first those in the past."""

    hints: int
    seed: int
    parts: dict[str, list[Word]]


def few_shot(words: Sequence[Word], language: str, hints: Sequence[int] = HINTS) -> Iterator[FewShot]:
    """Yield SEEDS splits for each number of hints in turn.

    Args:
        words: of one language, in the order of the file.
        language: its name, for messages.
        hints: words of the past, and as many of the future, in training. HINTS, in order, give the published splits.
    """
    if 2 * max(hints) > TRAIN:
        raise DataError(f"{max(hints)} hints of past and future each do not fit into the {TRAIN:,} words of training")
    words = _in_order(words)
    pools = [[word for word in words if tag in word[2]] for tag in HARD]
    rest = [word for word in words if not set(HARD) & set(word[2])]
    easy, held_out = few_shot_streams()
    for count, seed in product(hints, range(SEEDS)):
        chosen = [_some_of_each_type(pool, held_out) for pool in pools]
        others = _shuffled(rest, easy)
        past, future = (_shuffled(pool, held_out) for pool in chosen)
        parts = {
            "train": others[: TRAIN - 2 * count] + past[:count] + future[:count],
            "dev": others[TRAIN : TRAIN + EVALUATION],
            "past": past[count : count + EVALUATION],
            "other": others[TRAIN + EVALUATION : TRAIN + 2 * EVALUATION],
            "future": future[count : count + EVALUATION],
        }  # in the order in which the reference goes through them
        _check(parts, count, language)
        yield FewShot(count, seed, parts)
        _spend(easy, [word for part in parts.values() for word in part])


def _shuffled(words: Sequence[Word], rng: LegacyStream) -> list[Word]:
    return [words[place] for place in rng.permutation(len(words))]


def _in_order(words: Sequence[Word]) -> list[Word]:
    """Sort words as the reference does: by numbers of letters and tags, in the order of their first occurrence."""
    numbers: dict[str, int] = {}
    keyed = []
    for lemma, form, tags in words:
        for token in (*form, *lemma, *tags):
            numbers.setdefault(token, len(numbers))
        # The reference's separator sorts before all letters.
        key = [numbers[token] for token in (*lemma, *tags)] + [-1] + [numbers[token] for token in form]
        keyed.append((key, (lemma, form, tags)))
    return [word for _, word in sorted(keyed)]


def _some_of_each_type(pool: Sequence[Word], rng: LegacyStream) -> list[Word]:
    """Draw at most PER_TYPE words of each combination of tags, combination after combination."""
    types: dict[tuple[str, ...], list[Word]] = defaultdict(list)
    for word in pool:
        types[word[2]].append(word)
    return [word for tags in sorted(types) for word in _shuffled(types[tags], rng)[:PER_TYPE]]


def _check(parts: dict[str, list[Word]], hints: int, language: str) -> None:
    for part, words in parts.items():
        wanted = TRAIN if part == "train" else EVALUATION
        if len(words) < wanted:
            raise DataError(
                f"{language or 'the language'}: too few words for {hints} hints: found {len(words)} for the part "
                f"{part}, expected {wanted}; past and future are the words tagged {' and '.join(HARD)}, up to "
                f"{PER_TYPE} with the same tags; give more words, or split them by `cgen data split lemma` or `random`"
            )


def _spend(rng: LegacyStream, words: Sequence[Word]) -> None:
    """Take the random numbers that the reference's search for the neighborhoods of a split takes.

    It shuffles each word's candidates before sorting, and draws the order of each pair that it has to make up.
    """
    kinds = [frozenset(tags) for _, _, tags in words]
    names = sorted(frozenset().union(*kinds))
    held = np.array([[name in kind for name in names] for kind in kinds])
    same = Counter(kinds[:TRAIN])
    lemmas = [lemma for lemma, _, _ in words]
    for row, found in enumerate(tag_neighbors(held, lemmas, TRAIN, 4, 1, REFERENCE)):
        own = int(row < TRAIN)
        excluded = same[kinds[row]] if row % 2 == 0 else own
        rng.shuffle(np.arange(TRAIN - max(own, excluded)))
        for _ in range(sum(found.fallen)):
            rng.permutation(2)
