"""What a few samples say: the standard error of a mean, the interval of a share, and what a count decides."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, nan, sqrt

import numpy as np
from scipy.special import betaincinv

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


def standard_error(std: float, count: int) -> float:
    """The standard error of a mean over `count` samples with the population standard deviation `std`.

    std/sqrt(count - 1), which is the unbiased deviation over sqrt(count); nan for a single sample.

    >>> standard_error(3.0, 10), round(float(np.std([1.0, 2.0, 4.0], ddof=1)) / 3**0.5, 12)
    (1.0, 0.881917103688)
    >>> round(standard_error(float(np.std([1.0, 2.0, 4.0])), 3), 12)
    0.881917103688
    """
    return std / sqrt(count - 1) if count > 1 else nan


def difference_error(std: float, count: int, other_std: float, other_count: int) -> float:
    """The standard error of the difference of two independent means, from their population standard deviations.

    >>> difference_error(9.0, 10, 12.0, 10), difference_error(9.0, 1, 12.0, 10)
    (5.0, nan)
    """
    return hypot(standard_error(std, count), standard_error(other_std, other_count))


def interval(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """The exact (Clopper and Pearson) interval of a share of which `count` of `total` were seen.

    Its ends are quantiles of beta distributions.

    >>> [round(bound, 3) for bound in interval(20, 20)]
    [0.832, 1.0]
    """
    if total == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = betaincinv(count, total - count + 1, tail) if count else 0.0
    high = betaincinv(count + 1, total - count, 1 - tail) if count < total else 1.0
    return float(low), float(high)


def agreed(truths: np.ndarray) -> str:
    """holds where a statement is true on every sample (S,), fails where it is on none, undecided between.

    >>> agreed(np.array([True, True])), agreed(np.array([False])), agreed(np.array([True, False]))
    ('holds', 'fails', 'undecided')
    """
    if not len(truths) or np.any(truths) != np.all(truths):
        return UNDECIDED
    return HOLDS if np.all(truths) else FAILS


def decide(truths: np.ndarray) -> str:
    """holds, fails or undecided, of a statement's truth on every sample (S,).

    It holds if it is true on most, fails if it is not, and is undecided where the 95 % interval of the share contains
    one half.

    >>> decide(np.ones(20)), decide(np.zeros(20)), decide(np.arange(20) < 14)
    ('holds', 'fails', 'undecided')
    """
    low, high = interval(int(np.sum(truths)), len(truths))
    return HOLDS if low > 0.5 else FAILS if high < 0.5 else UNDECIDED


def interval_cells(values: Sequence[float], interval: tuple[float, float]) -> dict[str, float | str]:
    """The ends of the interval of a mean over splits in percent, as cells of a table; of one split there is none.

    >>> interval_cells([0.5, 1.0], (0.5, 1.0)), interval_cells([0.5], (0.5, 0.5))
    ({'low': 50.0, 'high': 100.0}, {'low': '', 'high': ''})
    """
    low, high = (100 * end if len(values) > 1 else "" for end in interval)
    return {"low": low, "high": high}
