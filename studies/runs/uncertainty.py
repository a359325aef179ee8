"""What a few samples say: the error of a mean and how far it reaches, the interval of a share, what a count decides.

A verdict is no surer than its data:

- The unit is what was drawn independently: a graph, a data set or a split, never the levels, reactions or seeds that
  share one. What shares a unit is averaged over it first.
- A mean over n units reaches Student's quantile times its standard error, n - 1 degrees of freedom; of several that are
  asked at once the one that decides has a quantile corrected for their number.
- Differences that are the same on all units have no spread to judge them by: accuracies are counts of few nodes. There
  the sign test decides, which takes six units.
- Beside a printed mean over ten splits, two standard errors of the difference count as chance where ours is over ten
  splits too; over fewer it is Student's quantile with Welch's degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, inf, isfinite, nan, sqrt

import numpy as np
from scipy.special import betaincinv, stdtrit

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
#: How sure a verdict has to be.
LEVEL = 0.95
#: Standard errors of a difference that count as chance beside a printed mean, and the splits that such a mean is over.
ERRORS, SPLITS = 2.0, 10
#: Differences in percent that are none: accuracies of networks are in single precision.
ROUNDING = 2e-5


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


def reach(error: float, count: int, tests: int = 1) -> float:
    """How far a mean over `count` units may be from the true one: Student's interval; nan for fewer than two units.

    Its level is 95 % for all of several tests together.

    >>> round(reach(1.0, 3), 2), round(reach(1.0, 10), 2), round(reach(1.0, 3, tests=10), 2), reach(0.0, 1)
    (4.3, 2.26, 14.09, nan)
    """
    return float(stdtrit(count - 1, 1 - (1 - LEVEL) / (2 * tests))) * error if count > 1 else nan


def unrounded(gaps: np.ndarray) -> np.ndarray:
    """Differences in percent, without those of rounding: all are the same where they are within it of each other.

    >>> unrounded(np.array([2e-6, 0.0])), unrounded(np.array([5.0, 5.000001])), unrounded(np.array([5.0, 2e-6]))
    (array([0., 0.]), array([5., 5.]), array([5., 0.]))
    """
    if gaps.size and np.ptp(gaps) < ROUNDING:
        gaps = np.full(gaps.shape, gaps[0])
    return np.where(np.abs(gaps) < ROUNDING, 0.0, gaps)


def sign_test(count: int) -> float:
    """The two-sided p of `count` differences of one sign.

    >>> sign_test(2), sign_test(5), sign_test(6)
    (0.5, 0.0625, 0.03125)
    """
    return min(1.0, 2.0 ** (1 - count))


def at_most(value: float, reach: float, most: float) -> str:
    """Whether a number that is known up to its reach is at most so much.

    >>> at_most(2.0, 1.0, 5.0), at_most(8.0, 1.0, 5.0), at_most(2.0, 4.0, 5.0), at_most(2.0, nan, 5.0)
    ('holds', 'fails', 'undecided', 'undecided')
    """
    return HOLDS if value + reach <= most else FAILS if value - reach > most else UNDECIDED


def welch_freedom(std: float, count: int, other_std: float, other_count: int) -> float:
    """Welch's degrees of freedom of the difference of two means, from their population standard deviations.

    >>> welch_freedom(3.0, 10, 3.0, 10), round(welch_freedom(3.0, 3, 3.0, 10), 2), welch_freedom(0.0, 3, 0.0, 10)
    (18.0, 2.96, inf)
    """
    if min(count, other_count) < 2:
        return nan
    own, other = standard_error(std, count) ** 2, standard_error(other_std, other_count) ** 2
    below = own**2 / (count - 1) + other**2 / (other_count - 1)
    return (own + other) ** 2 / below if below else inf


def chance_errors(std: float, count: int, other_std: float, other_count: int = SPLITS) -> float:
    """Standard errors of the difference from a printed mean that count as chance.

    >>> chance_errors(3.0, 10, 3.0), round(chance_errors(3.0, 3, 3.0), 2), round(chance_errors(3.0, 2, 3.0), 2)
    (2.0, 3.21, 8.23)
    """
    freedom = welch_freedom(std, count, other_std, other_count)
    if min(count, other_count) >= SPLITS or not isfinite(freedom):
        return ERRORS
    return max(ERRORS, float(stdtrit(freedom, (1 + LEVEL) / 2)))


def interval(count: int, total: int, level: float = LEVEL) -> tuple[float, float]:
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
