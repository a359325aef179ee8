"""Decisions from few samples: the confidence interval of a share, and verdicts from counts.

The unit is what was drawn independently (a graph, a data set or a split), never the levels, reactions or seeds that
share one; values that share a unit are averaged first. `gread.comparison` compares accuracies.
"""

from __future__ import annotations

from math import isnan

import numpy as np

from gread import comparison

HOLDS, FAILS, UNDECIDED = comparison.HOLDS, comparison.FAILS, comparison.UNDECIDED
#: Confidence level of a verdict.
LEVEL = comparison.CONFIDENCE


def interval(count: int, total: int, level: float = LEVEL) -> tuple[float, float]:
    """Exact (Clopper-Pearson) confidence interval of a share, from `count` successes among `total`.

    Its ends are quantiles of beta distributions.

    >>> [round(bound, 3) for bound in interval(20, 20)]
    [0.832, 1.0]
    """
    if total == 0:
        return 0.0, 1.0
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = betaincinv(count, total - count + 1, tail) if count else 0.0
    high = betaincinv(count + 1, total - count, 1 - tail) if count < total else 1.0
    return float(low), float(high)


def agreed(truths: np.ndarray) -> str:
    """ "holds" if a statement is true on every sample (S,), "fails" if on none, else "undecided".

    >>> agreed(np.array([True, True])), agreed(np.array([False])), agreed(np.array([True, False]))
    ('holds', 'fails', 'undecided')
    """
    if not len(truths) or np.any(truths) != np.all(truths):
        return UNDECIDED
    return HOLDS if np.all(truths) else FAILS


def decide(truths: np.ndarray) -> str:
    """ "holds" or "fails" if a statement is significantly true or false on most samples (S,), else "undecided".

    It is undecided if the 95 % confidence interval of the share of true samples contains one half.

    >>> decide(np.ones(20)), decide(np.zeros(20)), decide(np.arange(20) < 14)
    ('holds', 'fails', 'undecided')
    """
    low, high = interval(int(np.sum(truths)), len(truths))
    return HOLDS if low > 0.5 else FAILS if high < 0.5 else UNDECIDED


def interval_cells(interval: tuple[float, float]) -> dict[str, float | str]:
    """Ends of an interval as cells of a table, empty if the interval is unknown.

    >>> interval_cells((50.0, 100.0)), interval_cells((float("nan"), float("nan")))
    ({'low': 50.0, 'high': 100.0}, {'low': '', 'high': ''})
    """
    low, high = interval
    return {"low": low, "high": high} if not isnan(low) else {"low": "", "high": ""}
