"""Two methods on the same splits: the mean of their differences, its error, and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.runs.uncertainty import FAILS, HOLDS, LEVEL, UNDECIDED, reach, sign_test, standard_error, unrounded


def split_means(rows: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Test accuracy in percent of every split, the mean over its seeds.

    >>> split_means([dict(split=0, test_accuracy=0.5), dict(split=0, test_accuracy=0.7)])
    {0: 60.0}
    """
    found: dict[int, list[float]] = {}
    for row in rows:
        found.setdefault(int(row["split"]), []).append(100 * float(row["test_accuracy"]))
    return {split: float(np.mean(values)) for split, values in found.items()}


@dataclass(frozen=True)
class Paired:
    """The mean over the splits of a difference, and its standard error, nan for one split."""

    difference: float
    error: float
    splits: int

    @classmethod
    def of(cls, own: Mapping[int, float], other: Mapping[int, float]) -> Paired:
        """own - other, split by split, on those that both have.

        >>> Paired.of({0: 80.0, 1: 90.0}, {0: 79.0, 1: 87.0})
        Paired(difference=2.0, error=1.0, splits=2)
        """
        shared = sorted(set(own) & set(other))
        gaps = unrounded(np.array([own[split] - other[split] for split in shared]))
        if not gaps.size:
            return cls(math.nan, math.nan, 0)
        return cls(float(gaps.mean()), standard_error(float(gaps.std()), len(gaps)), len(gaps))

    @property
    def reach(self) -> float:
        """How far the difference may be from the mean of all such splits: Student's interval at 95 %; nan for one."""
        return reach(self.error, self.splits)

    @property
    def answer(self) -> str:
        """Whether the first is better: holds, fails, or undecided where the interval holds zero or there is none.

        >>> Paired(2.0, 0.1, 10).answer, Paired(-2.0, 0.1, 10).answer, Paired(2.0, 1.5, 10).answer
        ('holds', 'fails', 'undecided')
        >>> Paired(2.0, 0.0, 2).answer, Paired(2.0, 0.0, 10).answer
        ('undecided', 'holds')
        """
        if math.isnan(self.reach) or abs(self.difference) <= self.reach:
            return UNDECIDED
        if self.error == 0 and sign_test(self.splits) > 1 - LEVEL:
            return UNDECIDED
        return HOLDS if self.difference > 0 else FAILS

    @property
    def text(self) -> str:
        """The difference with its error, where there is one."""
        spread = "" if math.isnan(self.error) else f" (standard error {self.error:.2f})"
        return f"{self.difference:+z.2f}{spread}"
