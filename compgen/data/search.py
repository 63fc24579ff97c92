"""A search for the split whose compounds diverge most, or as much as wanted, while its atoms do not.

Examples are swapped between the parts, the most promising first. The effect of each example's move on a divergence is
exact, and computed for all examples at once: the Chernoff coefficient is a sum over items, to which an example that has
item k m times adds a term that depends on (k, m) alone. There are few such *features*; their terms are computed once,
and an example's effect is the sum of its features' terms.
"""

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.data.compounds import ATOM_ALPHA, COMPOUND_ALPHA, Bag
from compgen.data.ragged import Ints, ranges
from compgen.errors import DataError

TRAIN, TEST, REST = 0, 1, 2  # where an example is; the rest is in neither part
_KINDS = ((TRAIN, REST), (TEST, REST), (TRAIN, TEST))
_BATCH = 64  # swaps at once, at most: larger steps are faster, and end in worse splits
_ROUNDS, _PROGRESS = 1_000, 2e-3  # the search ends when this many rounds raise the score by less than this
# The weight of atoms' divergence above what is allowed: first low, so that the search can pass through splits that are
# not allowed, which ends in far better ones; then high, so that it does not stay in one.
_PENALTIES = (10.0, 10_000.0)
_CLOSE_ENOUGH = 5e-4  # to the divergence wanted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Goal:
    """What to look for.

    Attributes:
        wanted: the divergence of compounds to come close to; 1 asks for the largest.
        atoms: the largest divergence of atoms allowed.
        least: every atom of a test example is in at least so many training examples.
    """

    wanted: float = 1.0
    atoms: float = math.inf
    least: int = 1


def search(atoms: Sequence[Bag], compounds: Sequence[Bag], part: Ints, goal: Goal) -> Ints:
    """Return a split as `goal` wants it, found by swaps from the split `part`, so that parts keep their sizes.

    `part` (N,) is TRAIN, TEST or REST for each example. The result is a local optimum, or a split that many rounds
    hardly improve; it is the same for the same arguments.

    Raises:
        DataError: not every atom of a test example can be in `goal.least` training examples.
    """
    split = _Split(_Bags(atoms), _Bags(compounds), part.copy(), goal)
    split.balance()
    for penalty in _PENALTIES:
        split.climb(penalty)
    return split.part


class _Bags:
    """Bags of all examples as arrays: the distinct features, and those of each example.

    Feature f is item `item[f]`, `times[f]` times. Example i has the features `features[starts[i]:starts[i + 1]]`. The
    first of these is feature 0, no item at all, because `reduceat` needs stretches that are not empty.
    """

    def __init__(self, bags: Sequence[Bag]) -> None:
        items: dict[Hashable, int] = {}
        numbers: dict[tuple[int, int], int] = {(0, 0): 0}
        features, starts = [], [0]
        for bag in bags:
            features.append(0)
            for item, times in bag.items():
                key = (items.setdefault(item, len(items)), times)
                features.append(numbers.setdefault(key, len(numbers)))
            starts.append(len(features))
        table = np.array([*numbers], dtype=np.int64)  # (F, 2)
        self.items = max(len(items), 1)
        self.item: Ints = table[:, 0]
        self.times: Floats = table[:, 1].astype(np.float64)
        self.features: Ints = np.array(features, dtype=np.int64)
        self.starts: Ints = np.array(starts, dtype=np.int64)
        self.sizes: Floats = np.array([bag.total() for bag in bags], dtype=np.float64)

    def count(self, rows: Ints) -> tuple[Floats, Ints]:
        """Return how often each item occurs in some examples, and in how many of them."""
        starts = self.starts[rows]
        found = self.features[ranges(starts, self.starts[rows + 1] - starts)[1]]
        item, times = self.item[found], self.times[found]
        often = np.bincount(item, weights=times, minlength=self.items).astype(np.float64)
        return often, np.bincount(item[times > 0], minlength=self.items).astype(np.int64)

    def sums(self, terms: Floats) -> Floats:
        """Return for each example the sum of its features' terms."""
        return np.add.reduceat(terms[self.features], self.starts[:-1])

    def least(self, values: Ints) -> Floats:
        """Return for each example the least value of its items; infinity for an example without any."""
        terms = np.where(self.times > 0, values[self.item], math.inf)
        return np.minimum.reduceat(terms[self.features], self.starts[:-1])


class _Contrast:
    """The divergence of train and test in one kind of items, kept up to date while examples move."""

    def __init__(self, bags: _Bags, alpha: float, part: Ints) -> None:
        self.bags = bags
        self.powers = (alpha, 1 - alpha)
        self.often = [np.zeros(bags.items), np.zeros(bags.items)]  # occurrences of each item in train and test
        self.held = [np.zeros(bags.items, dtype=np.int64), np.zeros(bags.items, dtype=np.int64)]  # examples with it
        for side in (TRAIN, TEST):
            self.add(np.flatnonzero(part == side), side, 1)

    def add(self, rows: Ints, side: int, sign: int) -> None:
        """Add examples to a part (sign 1) or take them out (-1)."""
        if side != REST:
            often, held = self.bags.count(rows)
            self.often[side] += sign * often
            self.held[side] += sign * held

    def value(self) -> float:
        """Return the divergence; 1 if a part has no items."""
        whole = float(self.often[TRAIN].sum() ** self.powers[TRAIN] * self.often[TEST].sum() ** self.powers[TEST])
        return 1 - float(self._overlap(TRAIN).sum() / whole) if whole else 1.0

    def after(self, side: int, sign: int) -> Floats:
        """Return for each example the divergence if it alone went into (sign 1) or out of (-1) a part.

        The Chernoff coefficient is the sum over items of overlap / whole; the example changes both:

            overlap + sum over its features of ((often + sign * times)^power - often^power) * other often^other power
            whole = (total + sign * its size)^power * other total^other power
        """
        bags, often, other = self.bags, self.often[side][self.bags.item], self.often[1 - side]
        power, other_power = self.powers[side], self.powers[1 - side]
        changed = np.maximum(often + sign * bags.times, 0)  # (F,)
        terms = (changed**power - often**power) * other[bags.item] ** other_power
        total = np.maximum(self.often[side].sum() + sign * bags.sizes, 1.0) ** power  # (N,)
        result: Floats = 1 - (self._overlap(side).sum() + bags.sums(terms)) / (
            total * max(other.sum(), 1.0) ** other_power
        )
        return result

    def _overlap(self, side: int) -> Floats:
        result: Floats = self.often[side] ** self.powers[side] * self.often[1 - side] ** self.powers[1 - side]
        return result


class _Split:
    """A split in the course of the search."""

    def __init__(self, atoms: _Bags, compounds: _Bags, part: Ints, goal: Goal) -> None:
        self.part, self.goal, self.penalty = part, goal, 0.0
        self.atoms = _Contrast(atoms, ATOM_ALPHA, part)
        self.compounds = _Contrast(compounds, COMPOUND_ALPHA, part)

    def balance(self) -> None:
        """Swap test examples whose atoms are too rare in training for training examples that are not needed there.

        Raises:
            DataError: all are needed.
        """
        while True:
            rare = self._rare()
            lacking = np.flatnonzero((self.part == TEST) & (self.atoms.bags.least((~rare).astype(np.int64)) < 1))
            if not len(lacking):
                return
            spare = np.flatnonzero((self.part == TRAIN) & self._may_leave(TRAIN, TEST))
            if not len(spare):
                raise DataError(
                    f"found no way to have every atom of the test part in {self.goal.least} training examples: "
                    "expected more training examples, so fewer test examples, or a smaller number (--least of "
                    "`cgen data split tmcd`)"
                )
            self._move(spare[:1], TRAIN, TEST)
            self._move(lacking[:1], TEST, TRAIN)

    def climb(self, penalty: float) -> None:
        """Swap batches while that improves the score: as large as possible, halved where they fail."""
        self.penalty = penalty
        kinds = [(one, two) for one, two in _KINDS if (self.part == two).any()]
        batches = dict.fromkeys(kinds, _BATCH)
        score, past = self._score(), -math.inf
        for number in itertools.count():
            if number % _ROUNDS == 0:
                if score - past < _PROGRESS:
                    return
                past = score
            kind = kinds[number % len(kinds)]
            if not any(batches.values()) or -self._score() < _CLOSE_ENOUGH:
                return
            if batches[kind]:
                better = self._try(kind, batches[kind], score)
                if better is None:
                    batches[kind] //= 2
                else:
                    score = better
                    batches = {other: max(size, 1) for other, size in batches.items()}
                    batches[kind] = min(2 * batches[kind], _BATCH)

    def _try(self, kind: tuple[int, int], batch: int, score: float) -> float | None:
        """Swap up to `batch` examples of two parts; return the new score, or undo that and return None if no better."""
        one, two = kind
        out = self._best(one, two, batch)
        if not len(out):
            return None
        self._move(out, one, two)
        # None of those that just came; the scores already take their move into account.
        back = self._best(two, one, len(out), without=out)
        if len(back) == len(out):
            self._move(back, two, one)
            new = self._score()
            if new > score + 1e-9 and not self._rare().any():
                return new
            self._move(back, one, two)
        self._move(out, two, one)
        return None

    def _best(self, source: int, target: int, count: int, without: Ints | None = None) -> Ints:
        """Return the examples of one part whose move to another scores best, the best first."""
        may = (self.part == source) & self._may_leave(source, target)
        if without is not None:
            may[without] = False
        rows = np.flatnonzero(may)
        moves = ((source, -1), (target, 1))
        scores = sum(self._scores(side, sign)[rows] for side, sign in moves if side != REST)
        # Not argpartition: which of equals it takes depends on the processor.
        return rows[np.argsort(-np.asarray(scores), kind="stable")[:count]]

    def _may_leave(self, source: int, target: int) -> NDArray[np.bool_]:
        """Return which examples can move, each alone, and leave training enough of every atom (N,)."""
        if source != TRAIN and target != TEST:
            return np.ones(len(self.part), dtype=np.bool_)
        least = self.goal.least + (source == TRAIN)
        return self.atoms.bags.least(self.atoms.held[TRAIN]) >= least

    def _rare(self) -> NDArray[np.bool_]:
        """Return which atoms of the test part are in too few training examples."""
        return (self.atoms.held[TRAIN] < self.goal.least) & (self.atoms.held[TEST] > 0)

    def _move(self, rows: Ints, source: int, target: int) -> None:
        for contrast in (self.atoms, self.compounds):
            contrast.add(rows, source, -1)
            contrast.add(rows, target, 1)
        self.part[rows] = target

    def _score(self) -> float:
        atoms = max(self.atoms.value() - self.goal.atoms, 0.0)
        return -abs(self.goal.wanted - self.compounds.value()) - self.penalty * atoms

    def _scores(self, side: int, sign: int) -> Floats:
        scores: Floats = -np.abs(self.goal.wanted - self.compounds.after(side, sign))
        if self.goal.atoms < math.inf:
            scores -= self.penalty * np.maximum(self.atoms.after(side, sign) - self.goal.atoms, 0)
        return scores
