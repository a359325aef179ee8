"""Two methods on splits that share their nodes: the corrected resampled t-test.

Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 2003: the training sets of random splits
overlap, so that the variance of a mean over k of them does not fall as 1/k; it is taken as (1/k + n_test/n_train) s^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rdgraph.errors import InvalidArgument
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

#: How sure a difference has to be.
LEVEL = 0.95


@dataclass(frozen=True)
class ResampledTest:
    """The mean of the differences of two methods over k splits and its corrected standard error, nan for one split."""

    difference: float
    error: float
    splits: int

    @classmethod
    def of(cls, own: Sequence[float], other: Sequence[float], test_to_train: float) -> ResampledTest:
        """own - other, split by split; `test_to_train` is the number of test nodes per training node.

        >>> ResampledTest.of([80.0, 90.0], [79.0, 87.0], 0.5)
        ResampledTest(difference=2.0, error=1.4142135623730951, splits=2)
        """
        if len(own) != len(other):
            raise InvalidArgument(f"expected results on the same splits, got {len(own)} and {len(other)}")
        gaps, k = np.subtract(own, other), len(own)
        error = math.sqrt((1 / k + test_to_train) * gaps.var(ddof=1)) if k > 1 else math.nan
        return cls(float(gaps.mean()) if k else math.nan, error, k)

    @property
    def p(self) -> float:
        """The probability of such a difference or a larger one, either way, if there were none; nan for one split.

        >>> round(ResampledTest(2.0, 1.0, 10).p, 4)
        0.0766
        """
        if math.isnan(self.error):
            return math.nan
        if not self.error:
            return 0.0 if self.difference else 1.0
        from scipy.stats import t  # here, since it takes longer to import than all the rest of a page

        return float(2 * t.sf(abs(self.difference) / self.error, self.splits - 1))

    @property
    def answer(self) -> str:
        """Whether the first is better: holds, fails, or undecided where chance may be the reason."""
        if not self.p < 1 - LEVEL:
            return UNDECIDED
        return HOLDS if self.difference > 0 else FAILS
