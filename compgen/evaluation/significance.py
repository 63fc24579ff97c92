"""Paired tests of whether one system is better than another on the same items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.random import Purpose, stream
from compgen.errors import UserError

Floats = NDArray[np.float64]
AT_ONCE = 1 << 22  # random numbers in memory
_SAME = 1e-12  # differences that are closer than this count as equal


@dataclass(frozen=True)
class Comparison:
    """Two of several systems compared over the same seeds.

    Attributes:
        mean: the second's score minus the first's, per item: above 0 the second is better.
        items_p: two-sided p of Student's paired t over the items of all seeds, as in R&R's tables 9 to 11.
        corrected_p: `items_p` with Bonferroni's correction for the number of comparisons made.
        seeds_p: two-sided p of Student's paired t over the means of the seeds; None with one seed, or if all seeds have
            the same difference, which says nothing about their spread (but 1 if it is 0). Items of one training run
            are not independent, so `items_p` overrates differences that another seed may undo.
    """

    first: str
    second: str
    mean: float
    items_p: float
    corrected_p: float
    seeds_p: float | None


def compare(scores: Mapping[str, Sequence[Floats]]) -> list[Comparison]:
    """Compare all pairs of systems, in the order given.

    Args:
        scores: for each system and seed, the scores (N,) of the N test items, which are the same for all.

    Raises:
        UserError: systems differ in seeds or items, there are fewer than two items, or SciPy is not installed.
    """
    pairs = list(combinations(scores, 2))
    found = []
    for first, second in pairs:
        mine, other = scores[first], scores[second]
        if [len(seed) for seed in mine] != [len(seed) for seed in other]:
            raise UserError(f"{first} and {second} cannot be compared: their seeds or test items differ")
        difference = np.concatenate(other) - np.concatenate(mine)
        seeds = np.array([b.mean() - a.mean() for a, b in zip(mine, other, strict=True)])
        p = _t_test(difference)[1]
        by_seed = _t_test(seeds)[1] if len(seeds) > 1 and (np.ptp(seeds) > _SAME or _is_zero(seeds)) else None
        found.append(Comparison(first, second, float(difference.mean()), p, min(1.0, p * len(pairs)), by_seed))
    return found


@dataclass(frozen=True)
class Paired:
    """The difference of the losses of two systems, first minus second: below zero the first is better.

    Attributes:
        mean: the difference per item.
        t, t_p: Student's paired t, None if all items have the same difference other than 0, and its two-sided p.
        sign_p: two-sided p of the sign test, ties left out.
        bootstrap_p: twice the share of resamples of the items in which the mean is 0 or has the other sign, but at
            least 2 / resamples and at most 1; and at least 2 / 2^N, the sign test's if all items agree, because
            resamples of a few items vary too little.
        low, high: the 95% interval of the mean by the bootstrap.
    """

    mean: float
    t: float | None
    t_p: float
    sign_p: float
    bootstrap_p: float
    low: float
    high: float


def paired(first: Floats, second: Floats, resamples: int = 10_000) -> Paired:
    """Compare two systems by their losses (N,) on the same N items.

    Raises:
        UserError: fewer than two items, different numbers of items, or SciPy is not installed.
    """
    if first.shape != second.shape or len(first) < 2:
        raise UserError(f"a paired test needs two items or more of both systems: found {len(first)} and {len(second)}")
    difference = first - second
    difference[np.abs(difference) <= _SAME] = 0.0  # else resamples of ties alone would have the sign of rounding
    t, t_p = _t_test(difference)
    if _is_zero(difference):
        return Paired(0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    mean = float(difference.mean())
    sign = _stats().binomtest(int((difference < -_SAME).sum()), int((np.abs(difference) > _SAME).sum()))
    means = _resampled(difference, resamples)
    opposite = float((means * np.sign(mean) <= 0).mean())
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    chance = min(1.0, 2 * max(opposite, 1 / resamples, 0.5 ** len(difference)))
    return Paired(mean, t, t_p, float(sign.pvalue), chance, low, high)


def need_scipy() -> None:
    """Raise a UserError, before any work, if SciPy is not installed."""
    _stats()


def _t_test(difference: Floats) -> tuple[float | None, float]:
    """Return Student's t of paired differences (N,) and its two-sided p.

    Differences that are all zero are no evidence: t = 0, p = 1. If all are equal otherwise, t is infinite, given as
    None, and p = 0.
    """
    if len(difference) < 2:
        raise UserError(f"a paired test needs two items or more of both systems: found {len(difference)}")
    stats = _stats()
    if _is_zero(difference):
        return 0.0, 1.0
    if np.ptp(difference) <= _SAME:
        return None, 0.0
    found = stats.ttest_1samp(difference, 0.0)
    return float(found.statistic), float(found.pvalue)


def _is_zero(difference: Floats) -> bool:
    """Whether all differences are zero; what sums leave by rounding is no difference."""
    return bool(np.abs(difference).max() <= _SAME)


def _stats() -> Any:
    try:
        from scipy import stats
    except ModuleNotFoundError as error:
        raise UserError("tests of significance need SciPy: pip install 'compgen[lm]'") from error
    return stats


def _resampled(values: Floats, resamples: int) -> Floats:
    """Return the means (resamples,) of samples of the values (N,), each of N values drawn with replacement."""
    random = stream(Purpose.BOOTSTRAP, 0)
    size = max(1, AT_ONCE // len(values))
    rows = [min(size, resamples - done) for done in range(0, resamples, size)]
    return np.concatenate(
        [values[random.integers(0, len(values), (count, len(values)))].mean(axis=1) for count in rows]
    )
