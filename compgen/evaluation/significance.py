"""Whether one system is better than another on the same items: paired tests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.errors import UserError

Floats = NDArray[np.float64]
AT_ONCE = 1 << 22  # random numbers


@dataclass(frozen=True)
class Paired:
    """The difference of the losses of two systems, first less second, so that what is below zero favours the first.

    Attributes:
        mean: difference an item.
        t, t_p: Student's paired t and its two-sided p.
        sign_p: two-sided p of the sign test; ties are left out.
        bootstrap_p: twice the share of resamples of the items in which the difference has not the sign that it has.
        low, high: the 95% interval of the mean by the bootstrap.
    """

    mean: float
    t: float
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
    try:
        from scipy import stats
    except ModuleNotFoundError as error:
        raise UserError("tests of significance need SciPy: pip install 'compgen[lm]'") from error
    if first.shape != second.shape or len(first) < 2:
        raise UserError(f"a paired test needs two items or more of both systems: found {len(first)} and {len(second)}")
    difference = first - second
    if not difference.any():
        return Paired(0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    t = stats.ttest_rel(first, second)
    unequal = int((difference != 0).sum())
    sign = stats.binomtest(int((difference < 0).sum()), unequal)
    means = _resampled(difference, resamples, seed)
    opposite = float((means * np.sign(difference.mean()) <= 0).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return Paired(
        float(difference.mean()),
        float(t.statistic),
        float(t.pvalue),
        float(sign.pvalue),
        min(1.0, 2 * max(opposite, 1 / resamples)),
        float(low),
        float(high),
    )


def _resampled(values: Floats, resamples: int, seed: int) -> Floats:
    """Means of samples with replacement."""
    random = np.random.Generator(np.random.Philox(seed))
    size = max(1, AT_ONCE // len(values))
    parts = [values[random.integers(0, len(values), (min(size, resamples - done), len(values)))].mean(axis=1)
             for done in range(0, resamples, size)]  # fmt: skip
    return np.concatenate(parts)
