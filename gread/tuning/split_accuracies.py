"""`SplitAccuracies`: what trials and equations are compared by."""

from __future__ import annotations

import math


class SplitAccuracies:
    """Means of accuracies on every split, of anything that has them as `val` and `test`; nan where there are none."""

    val: tuple[float, ...]
    test: tuple[float, ...]

    @property
    def val_accuracy(self) -> float:
        """The mean over the splits, which is compared."""
        return math.fsum(self.val) / len(self.val) if self.val else math.nan

    @property
    def test_accuracy(self) -> float:
        """The mean over the splits, which nothing is chosen by."""
        return math.fsum(self.test) / len(self.test) if self.test else math.nan
