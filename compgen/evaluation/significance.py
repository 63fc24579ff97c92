"""Whether one system is better than another on the same items: paired tests, of two systems or of all pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.random import Purpose, stream
from compgen.errors import UserError

Floats = NDArray[np.float64]
AT_ONCE = 1 << 22  # random numbers
_SAME = 1e-12  # differences that differ by no more are equal


@dataclass(frozen=True)
class Comparison:
    """Two of several systems compared over the same seeds.

    Attributes:
        first, second: their names.
        mean: the first's score less the second's, an item.
        items_p: two-sided p of Student's paired t over the items of all seeds together, as in R&R's tables 9 to 11.
        corrected_p: the same by Bonferroni, for as many comparisons as were made.
        seeds_p: two-sided p of Student's paired t over the means of the seeds; None with one seed, or if all differ
            alike, which says nothing of how seeds vary. Items that one training run decides together are not
            independent: `items_p` is too sure of what another seed may undo.
    """

    first: str
    second: str
    mean: float
    items_p: float
    corrected_p: float
    seeds_p: float | None


def compare(scores: Mapping[str, Sequence[Floats]]) -> list[Comparison]:
    """All pairs of systems, in the order given.

    Args:
        scores: by system, the scores of the test items of each seed; seed by seed on the same items for all.

    Raises:
        UserError: systems have not as many seeds or items, there are fewer than two items, or SciPy is not installed.
    """
    pairs = list(combinations(scores, 2))
    found = []
    for first, second in pairs:
        mine, other = scores[first], scores[second]
        if [len(seed) for seed in mine] != [len(seed) for seed in other]:
            raise UserError(f"{first} and {second} cannot be compared: they have not the same seeds and test items")
        difference = np.concatenate(mine) - np.concatenate(other)
        seeds = np.array([a.mean() - b.mean() for a, b in zip(mine, other, strict=True)])
        p = _t_test(difference)[1]
        by_seed = _t_test(seeds)[1] if len(seeds) > 1 and (np.ptp(seeds) > _SAME or not seeds.any()) else None
        found.append(Comparison(first, second, float(difference.mean()), p, min(1.0, p * len(pairs)), by_seed))
    return found


@dataclass(frozen=True)
class Paired:
    """The difference of the losses of two systems, first less second, so that what is below zero favours the first.

    Attributes:
        mean: difference an item.
        t, t_p: Student's paired t, None if all items differ alike, and its two-sided p.
        sign_p: two-sided p of the sign test; ties are left out.
        bootstrap_p: twice the share of resamples of the items in which the difference has not the sign that it has.
        low, high: the 95% interval of the mean by the bootstrap.
    """

    mean: float
    t: float | None
    t_p: float
    sign_p: float
    bootstrap_p: float
    low: float
    high: float


def paired(first: Floats, second: Floats, resamples: int = 10_000, seed: int = 0) -> Paired:
    """Compare two systems by their losses on the same items.

    Raises:
        UserError: there are fewer than two items, not as many of the one as of the other, or SciPy is not installed.
    """
    if first.shape != second.shape or len(first) < 2:
        raise UserError(f"a paired test needs two items or more of both systems: found {len(first)} and {len(second)}")
    difference = first - second
    t, t_p = _t_test(difference)
    if not difference.any():
        return Paired(0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    unequal = int((difference != 0).sum())
    sign = _stats().binomtest(int((difference < 0).sum()), unequal)
    means = _resampled(difference, resamples, seed)
    opposite = float((means * np.sign(difference.mean()) <= 0).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return Paired(
        float(difference.mean()),
        t,
        t_p,
        float(sign.pvalue),
        min(1.0, 2 * max(opposite, 1 / resamples)),
        float(low),
        float(high),
    )


def need_scipy() -> None:
    """Say at once, and say how to mend it, if SciPy is not installed.

    Raises:
        UserError: it is not.
    """
    _stats()


def _t_test(difference: Floats) -> tuple[float | None, float]:
    """Student's t of paired differences and its two-sided p; differences that are all zero are no evidence.

    Those that are all alike have no t, which would be infinite.
    """
    if len(difference) < 2:
        raise UserError(f"a paired test needs two items or more of both systems: found {len(difference)}")
    stats = _stats()
    if not difference.any():
        return 0.0, 1.0
    if np.ptp(difference) <= _SAME:  # no spread at all
        return None, 0.0
    found = stats.ttest_1samp(difference, 0.0)
    return float(found.statistic), float(found.pvalue)


def _stats() -> Any:
    try:
        from scipy import stats
    except ModuleNotFoundError as error:
        raise UserError("tests of significance need SciPy: pip install 'compgen[lm]'") from error
    return stats


def _resampled(values: Floats, resamples: int, seed: int) -> Floats:
    """Means of samples with replacement."""
    random = stream(Purpose.BOOTSTRAP, seed)
    size = max(1, AT_ONCE // len(values))
    parts = [values[random.integers(0, len(values), (min(size, resamples - done), len(values)))].mean(axis=1)
             for done in range(0, resamples, size)]  # fmt: skip
    return np.concatenate(parts)
