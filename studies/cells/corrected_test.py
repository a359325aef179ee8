"""The paired test of two methods on random splits whose training sets overlap (Nadeau and Bengio, 2003)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gread.datasets.node_data import NodeData
from studies.runs.uncertainty import FAILS, HOLDS, LEVEL, UNDECIDED, at_most, reach, sign_test, unrounded


@dataclass(frozen=True)
class CorrectedTest:
    """Differences on k splits: mean, its corrected standard error, Student's t with k - 1 degrees, two-sided p.

    Random splits share training nodes, so that their differences are not independent: the variance of the mean is
    s^2 (1/k + n_test/n_train) in place of s^2/k, s^2 the unbiased variance. The posterior of the mean difference in the
    correlated Bayesian t-test (Corani and Benavoli, 2015) is Student's with the same mean, error and degrees, so that
    `probability` is that of the first method being better.
    """

    difference: float
    error: float
    t: float
    p: float
    probability: float
    splits: int

    @classmethod
    def of(cls, own: Mapping[int, float], other: Mapping[int, float], ratio: float) -> CorrectedTest:
        """own - other on the splits that both have; `ratio` is n_test/n_train. nan with fewer than two splits.

        >>> found = CorrectedTest.of({0: 2.0, 1: 4.0, 2: 6.0}, {0: 1.0, 1: 2.0, 2: 3.0}, 0.0)
        >>> found.difference, round(found.t, 4), round(found.p, 4)
        (2.0, 3.4641, 0.0742)
        """
        gaps = unrounded(np.array([own[k] - other[k] for k in sorted(set(own) & set(other))]))
        if gaps.size < 2 or not np.all(np.isfinite(gaps)):
            mean = float(gaps.mean()) if gaps.size else math.nan
            return cls(mean, math.nan, math.nan, math.nan, math.nan, gaps.size)
        from scipy.stats import t as student

        mean, error = float(gaps.mean()), float(gaps.std(ddof=1) * math.sqrt(1 / gaps.size + ratio))
        if error == 0 and mean == 0:
            return cls(0.0, 0.0, 0.0, 1.0, 0.5, gaps.size)
        if error == 0:  # the same on all splits, no spread to judge it by: the sign test
            p = sign_test(gaps.size)
            sure = 1 - p / 2 if mean > 0 else p / 2
            return cls(mean, 0.0, math.copysign(math.inf, mean), p, sure, gaps.size)
        t = mean / error
        freedom = gaps.size - 1
        return cls(mean, error, t, float(2 * student.sf(abs(t), freedom)), float(student.cdf(t, freedom)), gaps.size)

    @property
    def answer(self) -> str:
        """Whether the first is better: holds, fails, or undecided where chance may be the reason.

        >>> both = dict.fromkeys(range(6), 2.0), dict.fromkeys(range(6), 1.0)
        >>> CorrectedTest.of(*both, 0.4).answer, CorrectedTest.of({0: 2.0, 1: 2.0}, {0: 1.0, 1: 1.0}, 0.4).answer
        ('holds', 'undecided')
        """
        if not self.p < 1 - LEVEL:
            return UNDECIDED
        return HOLDS if self.difference > 0 else FAILS


def none_beyond(tests: Sequence[CorrectedTest], most: float) -> str:
    """Whether none of several differences is larger than `most`; undecided where there are none.

    It holds where each is within for sure, and fails where one is beyond for sure, by an interval that is corrected for
    their number, since any of them may be the largest.

    >>> near, far = (CorrectedTest(d, 0.5, 0.0, 1.0, 0.5, 10) for d in (1.0, 9.0))
    >>> none_beyond([near, near], 5.0), none_beyond([near, far], 5.0), none_beyond([], 5.0)
    ('holds', 'fails', 'undecided')
    """
    if tests and all(at_most(t.difference, reach(t.error, t.splits), most) == HOLDS for t in tests):
        return HOLDS
    beyond = any(at_most(t.difference, reach(t.error, t.splits, len(tests)), most) == FAILS for t in tests)
    return FAILS if beyond else UNDECIDED


def all_pairs(points: Mapping[float, Mapping[int, float]], ratio: float) -> list[CorrectedTest]:
    """The larger mean minus the smaller one for every two points of a curve, unit by unit.

    >>> [test.difference for test in all_pairs({0.0: {0: 1.0, 1: 3.0}, 1.0: {0: 2.0, 1: 5.0}}, 0.0)]
    [1.5]
    """
    means = {x: float(np.mean(list(found.values()))) for x, found in points.items()}
    order = sorted(points, key=lambda x: means[x])
    return [CorrectedTest.of(points[high], points[low], ratio) for low, high in combinations(order, 2)]


def share_ratio(data: NodeData) -> float:
    """n_test/n_train, the mean over the splits of a data set."""
    masks = data.masks
    return float(np.mean(masks.test.sum(1) / np.maximum(1, masks.train.sum(1))))
