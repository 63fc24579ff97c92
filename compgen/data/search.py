"""A search for the split whose compounds diverge most, or as much as is wanted, while its atoms do not.

Examples are swapped between the parts, always those that promise most. What each example's move would do to a
divergence is exact and found for all of them at once: the Chernoff coefficient is a sum over items, to which an
example that has item k m times adds a term that depends on (k, m) alone. These *features* are few, so their terms are
worked out once, and an example's effect is the sum of its features' terms.
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

TRAIN, TEST, REST = 0, 1, 2  # where an example is; what is in the rest is in neither part
_KINDS = ((TRAIN, REST), (TEST, REST), (TRAIN, TEST))
_BATCH = 64  # swaps at once, at most: larger steps are faster, and end in worse splits
# The last of the way is long and leads nowhere: of 1,000 rounds one expects this much.
_ROUNDS, _PROGRESS = 1_000, 2e-3
# Of atoms' divergence above what is allowed, in units of compounds' divergence: first so that the search can pass
# through splits that are not allowed, which ends in far better ones, then so that it does not stay in one.
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
    """A split as `goal` wants it, found by swaps from the split `part`, so that parts keep their sizes.

    `part` (N,) says for each example where it is: TRAIN, TEST or REST. The result is a local optimum, or where
    rounds hardly help any more; it is the same for the same arguments.

    Raises:
        DataError: not every atom of a test example can be in `goal.least` training examples.
    """
    split = _Split(_Bags(atoms), _Bags(compounds), part.copy(), goal)
    split.balance()
    for penalty in _PENALTIES:
        split.climb(penalty)
    return split.part


class _Bags:
    """Bags of all examples as arrays: what features there are, and which of them each example has.

    Feature f is item `item[f]`, `times[f]` times. Example i has the features `features[starts[i]:starts[i + 1]]`, of
    which the first is feature 0, no item at all: `reduceat` knows no empty stretches.
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
        item, count = np.array([*numbers], dtype=np.int64).T
        self.items = max(len(items), 1)
        self.item: Ints = item
        self.times: Floats = count.astype(np.float64)
        self.features: Ints = np.array(features, dtype=np.int64)
        self.starts: Ints = np.array(starts, dtype=np.int64)
        self.sizes: Floats = np.array([bag.total() for bag in bags], dtype=np.float64)

    def of(self, rows: Ints) -> Ints:
        """The features of some examples, one after the other."""
        starts = self.starts[rows]
        found: Ints = self.features[ranges(starts, self.starts[rows + 1] - starts)[1]]
        return found

    def count(self, rows: Ints) -> tuple[Floats, Ints]:
        """How often each item is in some examples, and in how many of them it is."""
        found = self.of(rows)
        item, times = self.item[found], self.times[found]
        often = np.bincount(item, weights=times, minlength=self.items).astype(np.float64)
        return often, np.bincount(item[times > 0], minlength=self.items).astype(np.int64)

    def sums(self, terms: Floats) -> Floats:
        """For each example the sum of its features' terms."""
        return np.add.reduceat(terms[self.features], self.starts[:-1])

    def least(self, values: Ints) -> Floats:
        """For each example the least value of its items; infinity for one that has none."""
        terms = np.where(self.times > 0, values[self.item], math.inf)
        return np.minimum.reduceat(terms[self.features], self.starts[:-1])


class _Contrast:
    """The divergence of train and test in one kind of items, kept up to date while examples move."""

    def __init__(self, bags: _Bags, alpha: float, part: Ints) -> None:
        self.bags = bags
        self.powers = (alpha, 1 - alpha)
        self.often = [np.zeros(bags.items), np.zeros(bags.items)]
        self.held = [np.zeros(bags.items, dtype=np.int64), np.zeros(bags.items, dtype=np.int64)]
        for side in (TRAIN, TEST):
            self.add(np.flatnonzero(part == side), side, 1)

    def add(self, rows: Ints, side: int, sign: int) -> None:
        """Count examples in (sign 1) or out (-1) of a part."""
        if side != REST:
            often, held = self.bags.count(rows)
            self.often[side] += sign * often
            self.held[side] += sign * held

    def value(self) -> float:
        """The divergence; 1 if a part has no items."""
        totals = self._totals()
        return 1 - float(self._overlap(self.often[TRAIN], TRAIN).sum() / totals) if totals else 1.0

    def after(self, side: int, sign: int) -> Floats:
        """For each example the divergence if it alone went into (sign 1) or out of (-1) a part."""
        bags, often = self.bags, self.often[side]
        now = self._overlap(often, side)
        changed = np.maximum(often[bags.item] + sign * bags.times, 0)
        terms = (changed ** self.powers[side] - often[bags.item] ** self.powers[side]) * (
            self.often[1 - side][bags.item] ** self.powers[1 - side]
        )
        total = np.maximum(often.sum() + sign * bags.sizes, 1.0) ** self.powers[side]
        other = max(self.often[1 - side].sum(), 1.0) ** self.powers[1 - side]
        result: Floats = 1 - (now.sum() + bags.sums(terms)) / (total * other)
        return result

    def _overlap(self, often: Floats, side: int) -> Floats:
        result: Floats = often ** self.powers[side] * self.often[1 - side] ** self.powers[1 - side]
        return result

    def _totals(self) -> float:
        return float(np.prod([often.sum() ** power for often, power in zip(self.often, self.powers, strict=True)]))


class _Split:
    """A split under way."""

    def __init__(self, atoms: _Bags, compounds: _Bags, part: Ints, goal: Goal) -> None:
        self.part = part
        self.goal = goal
        self.penalty = 0.0
        self.atoms = _Contrast(atoms, ATOM_ALPHA, part)
        self.compounds = _Contrast(compounds, COMPOUND_ALPHA, part)

    def balance(self) -> None:
        """Swap test examples with atoms that training has too rarely for training examples that it can do without.

        Raises:
            DataError: there is none that it can do without.
        """
        while True:
            rare = (self.atoms.held[TRAIN] < self.goal.least) & (self.atoms.held[TEST] > 0)
            lacking = np.flatnonzero((self.part == TEST) & (self.atoms.bags.least((~rare).astype(np.int64)) < 1))
            if not len(lacking):
                return
            spare = np.flatnonzero((self.part == TRAIN) & self._may_leave(TRAIN, TEST))
            if not len(spare):
                raise DataError(
                    f"found no way to have every atom of the test part in {self.goal.least} training examples: "
                    "expected more examples to train on, or a smaller number"
                )
            self._swap(spare[:1], lacking[:1], TRAIN, TEST)

    def climb(self, penalty: float) -> None:
        """Swap batches while that leads nearer to the goal: as large as they may be, halved where they fail."""
        self.penalty = penalty
        kinds = [(one, two) for one, two in _KINDS if (self.part == two).any()]
        batches = dict.fromkeys(kinds, _BATCH)
        score = self._score()
        past = -math.inf
        for number in itertools.count():
            if number % _ROUNDS == 0:
                if score - past < _PROGRESS:
                    return
                past = score
            kind = kinds[number % len(kinds)]
            if not any(batches.values()) or self._reached():
                return
            if not batches[kind]:
                continue
            better = self._try(kind, batches[kind], score)
            if better is None:
                batches[kind] //= 2
                continue
            score = better
            batches = {other: max(size, 1) for other, size in batches.items()}
            batches[kind] = min(2 * batches[kind], _BATCH)

    def _try(self, kind: tuple[int, int], batch: int, score: float) -> float | None:
        """Swap up to `batch` examples of two parts: the new score, or None if it is no better and all is as it was."""
        one, two = kind
        out = self._best(one, two, batch)
        if not len(out):
            return None
        self._move(out, one, two)
        # Now without those that just came, and knowing what they changed.
        back = self._best(two, one, len(out), without=out)
        if len(back) == len(out):
            self._move(back, two, one)
            new = self._score()
            if new > score + 1e-9 and self._enough_atoms():
                return new
            self._move(back, one, two)
        self._move(out, two, one)
        return None

    def _best(self, source: int, target: int, count: int, without: Ints | None = None) -> Ints:
        """The examples of one part that are best in another, the better first."""
        may = (self.part == source) & self._may_leave(source, target)
        if without is not None:
            may[without] = False
        rows = np.flatnonzero(may)
        moves = ((source, -1), (target, 1))
        scores = sum(self._scores(side, sign)[rows] for side, sign in moves if side != REST)
        # Not argpartition: which of equals it takes depends on the processor.
        return rows[np.argsort(-np.asarray(scores), kind="stable")[:count]]

    def _may_leave(self, source: int, target: int) -> NDArray[np.bool_]:
        """Which examples can go from one part to another, each alone, and leave training enough of every atom."""
        if source != TRAIN and target != TEST:
            return np.ones(len(self.part), dtype=np.bool_)
        least = self.goal.least + (source == TRAIN)
        return self.atoms.bags.least(self.atoms.held[TRAIN]) >= least

    def _enough_atoms(self) -> bool:
        return not ((self.atoms.held[TRAIN] < self.goal.least) & (self.atoms.held[TEST] > 0)).any()

    def _move(self, rows: Ints, source: int, target: int) -> None:
        for contrast in (self.atoms, self.compounds):
            contrast.add(rows, source, -1)
            contrast.add(rows, target, 1)
        self.part[rows] = target

    def _swap(self, ours: Ints, theirs: Ints, one: int, two: int) -> None:
        self._move(ours, one, two)
        self._move(theirs, two, one)

    def _score(self) -> float:
        atoms = max(self.atoms.value() - self.goal.atoms, 0.0)
        return -abs(self.goal.wanted - self.compounds.value()) - self.penalty * atoms

    def _scores(self, side: int, sign: int) -> Floats:
        scores: Floats = -np.abs(self.goal.wanted - self.compounds.after(side, sign))
        if self.goal.atoms < math.inf:
            scores -= self.penalty * np.maximum(self.atoms.after(side, sign) - self.goal.atoms, 0)
        return scores

    def _reached(self) -> bool:
        return -self._score() < _CLOSE_ENOUGH
