"""How data are divided for a comparison: a test part, opened once, and validation parts carved out of training.

Validation is carved at random and so that it asks for generalisation: to combinations that training lacks, and to a
word that training has once. A random part alone is soon at 100 %, and tells methods apart no more.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from compgen.augmenters.base import counted
from compgen.comparison.options import By
from compgen.data.compounds import Ngrams, usual_inventory
from compgen.data.examples import SIDES, TRAIN, Dataset
from compgen.data.ragged import Ints
from compgen.data.random import Purpose, Stream, stream
from compgen.data.splits import TEST, at_random, by_length, by_template, in_both, tmcd
from compgen.data.unimorph import split_tags
from compgen.errors import DataError
from compgen.morphology.alignment import words

RANDOM, COMBINATIONS, ONCE, UNUSED = "random", "combinations", "once", "unused"
LEAST_TEST = 20  # test examples: with fewer, an interval is 40 points wide
LEAST_TRAIN = 20
SHARE = 0.1  # of the training examples, for each validation part
FEWEST, MOST = 10, 300  # examples of a validation part
MOST_HELD = 0.1  # of the examples, with one compound
MOST_ONCE = 0.6  # of the examples, with the token that training keeps once
OWN = 0.8  # Dice coefficient of the examples with a source token and those with its target token
LARGE = 500  # training examples from which one carving is enough
SEED = 0  # of all that is drawn here
_USUAL_TEST = 0.2  # of all examples, where the data have no test part


class Divided(NamedTuple):
    """Training and test examples, and in words how the test part came about."""

    train: Dataset
    test: Dataset
    by: str


def divide(dataset: Dataset, test: int | None = None, by: By | None = None) -> Divided:
    """Return the training and the test part of some data: those that they have, or new ones.

    Splits `train` and `test` are taken as they are, unless `test` or `by` ask for another division; other splits are
    left out. Else all examples are divided anew, `test` of them to test on, by default a fifth; repetitions are left
    out, so that no test example is trained on.

    Raises:
        DataError: there is no split `train`, so that names of splits may be something else; there are too few examples
            for either part, or the data do not allow the division.
    """
    names = dataset.splits
    if TRAIN not in names and len(dataset):
        dataset.split(TRAIN)  # whose error lists the splits
    if TRAIN in names and TEST in names and test is None and by is None:
        train, tested, how = dataset.split(TRAIN), dataset.split(TEST), "the split test of the data"
    else:
        train, tested, how = _made(dataset, test, by or usual_division(dataset))
    for part, found, least in (("train", train, LEAST_TRAIN), ("test", tested, LEAST_TEST)):
        if len(found) < least:
            raise DataError(
                f"found {counted(len(found), 'example')} to {part} on, expected {least} or more: nothing could be "
                f"told; {LEAST_TRAIN + 3 * FEWEST} distinct examples to train on and {LEAST_TEST} to test on are enough"
            )
    return Divided(train, tested, how)


def remembered(divided: Divided) -> list[str]:
    """Return what to say of test examples that are training examples, too; nothing if there are none."""
    count, _ = in_both(divided.train + divided.test)
    said = (
        f"{count:,} of {len(divided.test):,} test examples are training examples, too, whose answers may be from memory"
    )
    return [f"{said}; `cgen check DATA` lists them."] if count else []


def usual_division(dataset: Dataset) -> By:
    """Return how a test part is made unless asked: by template, or at random where nearly every target is another."""
    targets = dataset.frame["target"]
    return "template" if targets.n_unique() < 0.8 * len(targets) and targets.n_unique() > LEAST_TEST else "random"


def _made(dataset: Dataset, test: int | None, by: By) -> Divided:
    dataset = Dataset(dataset.frame.unique(SIDES, keep="first", maintain_order=True))
    count = len(dataset)
    size = max(LEAST_TEST, round(_USUAL_TEST * count)) if test is None else test
    if not 0 < size < count:
        advice = "give more examples" if test is None else "give more examples, or a smaller --test"
        raise DataError(f"found {count:,} examples, expected more than the {size:,} to test on: {advice}")
    found = _DIVISIONS[by](dataset, count - size, SEED)
    tested = found.split(TEST)
    return Divided(found.split(TRAIN), tested, f"{len(tested):,} examples taken out of the data by {by}")


_DIVISIONS: dict[By, Callable[[Dataset, int, int], Dataset]] = {
    "template": by_template,
    "length": lambda dataset, train, _: by_length(dataset, train),
    "tmcd": tmcd,
    "random": at_random,
}


def inflected(dataset: Dataset) -> bool:
    """Return whether all examples are words of inflection: letters of a lemma and tags, and letters of a form."""
    try:
        words(dataset)
    except DataError:
        return False
    return True


def carvings(train: Dataset) -> int:
    """Return how often validation is carved anew: few examples need more than one carving to tell methods apart."""
    return 1 if len(train) >= LARGE else 3


def carve(train: Dataset, number: int) -> Dataset:
    """Carve the validation parts out of training, for the carving of some number; the splits say which is which.

    - `combinations`: compounds are drawn, such as two words in a row or a function and the head of its argument (see
      `data.compounds`), and all examples with one of them are held out. Of inflected words, bundles of tags are drawn.
    - `once`: a source token is drawn that has its own target token; of all examples with it one is kept, of the fewest
      distinct tokens. Inflected words, and data without such a token, have no such part.
    - `random`: drawn from what is left.

    The first two leave every token in training. `random` leaves the one example that `once` keeps there and, while
    there are others to draw, the last example of each token that the first two ask for. At most MOST of what is held
    out make a part; the rest is in no split but `unused`. Repeated examples are left out first, so that no validation
    example is trained on.

    Raises:
        DataError: there are too few examples.
    """
    distinct = train.unique()
    size = min(MOST, max(FEWEST, round(SHARE * len(distinct))))
    least = LEAST_TRAIN + 3 * size
    if len(distinct) < least:
        raise DataError(
            f"found {len(distinct):,} distinct training examples, expected {least} or more: {size} for each validation "
            f"part, and {LEAST_TRAIN} to train on"
        )
    carving = Carving(distinct, size, lambda what: stream(Purpose.COMPARISON, SEED, 1, number, what))
    return carving.divided()


class Carving:
    """One carving: which examples are held out, and how many training examples each token is left in."""

    def __init__(self, distinct: Dataset, size: int, random: Callable[[int], Stream]) -> None:
        self.dataset, self.size, self.random = distinct, size, random
        self.part = np.full(len(distinct), TRAIN, dtype=object)
        sides = (distinct.frame["source"].to_list(), distinct.frame["target"].to_list())
        self.tokens = [{(side, token) for side in (0, 1) for token in sides[side][row]} for row in range(len(distinct))]
        self.left = Counter(token for tokens in self.tokens for token in tokens)  # training examples with each token

    def divided(self) -> Dataset:
        """Carve all parts."""
        words = inflected(self.dataset)
        self.hold_combinations(words)
        kept = None if words else self.hold_word()
        drawn = self.random(0).permutation(np.flatnonzero(self.part == TRAIN))
        # Without the example kept, `once` could not be answered.
        self.hold(self.spare_first(drawn[drawn != kept])[: self.size], RANDOM)
        frame = self.dataset.frame.with_columns(pl.Series("split", self.part.tolist(), dtype=pl.String))
        return Dataset(frame)

    def hold_combinations(self, words: bool) -> None:
        """Hold out all examples with some compounds, until there are enough."""
        rows, held = _by_compound(self.dataset, words), 0
        names = sorted(rows, key=repr)
        for at in self.random(1).permutation(len(names)):
            more = [row for row in rows[names[at]] if self.part[row] == TRAIN]
            if held < self.size and len(more) <= MOST_HELD * len(self.part) and self.stays(more):
                held += len(more)
                self.hold(np.array(more, dtype=np.int64), COMBINATIONS)
        self.thin(COMBINATIONS)

    def hold_word(self) -> int | None:
        """Hold out all examples but one with some source token, if one has a target token of its own.

        Return the row of the one that stays, which has the fewest distinct tokens.
        """
        order = self.random(2)
        with_token = defaultdict[tuple[int, str], list[int]](list)
        free = np.flatnonzero(self.part == TRAIN)
        for row in free:
            for token in self.tokens[row]:
                with_token[token].append(int(row))
        most = min(MOST_ONCE * len(self.part), len(free) - self.size - LEAST_TRAIN)  # `random` is still to be drawn
        sources = sorted(token for token, rows in with_token.items() if not token[0] and FEWEST < len(rows) <= most)
        for at in order.permutation(len(sources)):
            rows = with_token[sources[at]]
            kept = min(rows, key=lambda row: len(self.tokens[row]))
            others = [row for row in rows if row != kept]
            if self.has_own(rows, with_token) and self.stays(others):
                self.hold(np.array(others, dtype=np.int64), ONCE)
                self.thin(ONCE)
                return kept
        return None

    def has_own(self, rows: list[int], with_token: Mapping[tuple[int, str], list[int]]) -> bool:
        """Whether a target token stands in nearly the same examples: their Dice coefficient is OWN or more."""
        shared = Counter(token for row in rows for token in self.tokens[row] if token[0])
        return any(2 * count >= OWN * (len(rows) + len(with_token[token])) for token, count in shared.items())

    def spare_first(self, rows: Ints) -> Ints:
        """Rows in their order, but last those with the last training example of a token that other parts ask for."""
        held = np.flatnonzero(np.isin(self.part, (COMBINATIONS, ONCE)))
        asked, left = {token for row in held for token in self.tokens[row]}, self.left.copy()
        spare, needed = list[int](), list[int]()
        for row in rows:
            tokens = self.tokens[row] & asked
            if all(left[token] > 1 for token in tokens):
                spare.append(row)
                left.subtract(tokens)
            else:
                needed.append(row)
        return np.array([*spare, *needed], dtype=np.int64)

    def stays(self, rows: list[int]) -> bool:
        """Whether every token of these examples is in other training examples, too."""
        lost = Counter(token for row in rows for token in self.tokens[row])
        return all(count < self.left[token] for token, count in lost.items())

    def hold(self, rows: Ints, part: str) -> None:
        """Take examples out of training."""
        self.part[rows] = part
        self.left.subtract(token for row in rows for token in self.tokens[row])

    def thin(self, part: str) -> None:
        """Leave at most `size` examples in a part."""
        rows = np.flatnonzero(self.part == part)
        self.part[self.random(3).permutation(rows)[self.size :]] = UNUSED


def _by_compound(dataset: Dataset, words: bool) -> dict[Hashable, list[int]]:
    """Return the rows that have each compound."""
    if words:
        bags: Iterable[Iterable[Hashable]] = ([tuple(split_tags(s)[1])] for s in dataset.frame["source"].to_list())
    else:
        try:
            bags = usual_inventory(dataset).compounds(dataset)
        except DataError:  # brackets that do not match
            bags = Ngrams().compounds(dataset)
    rows = defaultdict[Hashable, list[int]](list)
    for row, bag in enumerate(bags):
        for compound in {*bag}:
            rows[compound].append(row)
    return dict(rows)
