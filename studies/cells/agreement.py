"""A measured mean beside a published one: the difference, its error, and one word for what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.runs.pairing import split_means
from studies.runs.tables import NO_NUMBER, number_text
from studies.runs.uncertainty import (
    ERRORS,
    FAILS,
    HOLDS,
    SPLITS,
    UNDECIDED,
    chance_errors,
    difference_error,
    welch_freedom,
)

REPRODUCED, NOISE, ABOVE, BELOW, NONE = "reproduced", "within noise", "above", "below", "undecided"
WORDS = (REPRODUCED, NOISE, ABOVE, BELOW, NONE)
#: The words of a difference within its errors.
AGREES = (REPRODUCED, NOISE)
#: The points of accuracy that count as the same number.
POINTS = 1.0
#: How sure a difference has to be where several are asked at once.
LEVEL = 0.05
EXPLAINED = (
    f"reproduced: the difference is within {ERRORS:g} of its standard errors and at most {POINTS:g} point; within "
    f"noise: within {ERRORS:g} standard errors but more than {POINTS:g} point, so that the splits cannot tell; above, "
    f"below: beyond {ERRORS:g} standard errors; undecided: there is no error to judge by. Where ours is over fewer "
    f"than {SPLITS} splits, Student's quantile with Welch's degrees stands for {ERRORS:g}. Errors take both means as "
    "independent over splits, since the paper does not print its splits; where it prints no standard deviation, ours "
    "stands for it."
)


@dataclass(frozen=True)
class Estimate:
    """A mean in percent over `count` splits with their population standard deviation."""

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Estimate:
        """Of the rows of trainings; a split with several seeds counts with their mean.

        >>> Estimate.of([dict(split=0, test_accuracy=0.5), dict(split=1, test_accuracy=0.7)])
        Estimate(mean=60.0, std=10.0, count=2)
        """
        values = np.array(list(split_means(rows).values()))
        if not values.size:
            return cls(math.nan, math.nan, 0)
        return cls(round(float(values.mean()), 10), round(float(values.std()), 10), values.size)

    @property
    def text(self) -> str:
        """
        >>> Estimate(86.0, 9.0, 10).text, Estimate(math.nan, math.nan, 0).text
        ('86.00 ± 9.00', '-')
        """
        return NO_NUMBER if math.isnan(self.mean) else f"{self.mean:.2f} ± {number_text(self.std)}"


@dataclass(frozen=True)
class Gap:
    """own - other in percent, its standard error, and the p of Welch's test; nan where there is none.

    A difference of at most `chance` standard errors is no difference, see `studies.runs.uncertainty`.
    """

    difference: float
    error: float
    p: float
    chance: float = ERRORS

    @classmethod
    def between(cls, own: Estimate, other: float, other_std: float | None, other_count: int = SPLITS) -> Gap:
        """Between a measured mean and a published one over the ten public splits.

        >>> gap = Gap.between(Estimate(86.0, 9.0, 10), 85.0, 12.0)
        >>> gap.difference, gap.error, round(gap.p, 2)
        (1.0, 5.0, 0.84)
        """
        std = own.std if other_std is None else other_std
        error = difference_error(own.std, own.count, std, other_count)
        p = welch(own, Estimate(other, std, other_count))[1]
        return cls(own.mean - other, error, p, chance_errors(own.std, own.count, std, other_count))

    @property
    def word(self) -> str:
        """
        >>> [Gap(d, 0.6, 1.0).word for d in (-0.8, 1.1, 1.3, -1.3)], Gap(0.0, math.nan, 1.0).word
        (['reproduced', 'within noise', 'above', 'below'], 'undecided')
        """
        if math.isnan(self.error) or math.isnan(self.difference):
            return NONE
        if abs(self.difference) > self.chance * self.error:
            return ABOVE if self.difference > 0 else BELOW
        return REPRODUCED if abs(self.difference) <= POINTS else NOISE


def welch(own: Estimate, other: Estimate) -> tuple[float, float]:
    """Welch's t and its two-sided p, from means and population standard deviations; nan with fewer than two each.

    >>> t, p = welch(Estimate(88.71, 3.24, 100), Estimate(76.10, 6.03, 100))
    >>> round(t, 1), p < 1e-30
    (18.3, True)
    """
    error = difference_error(own.std, own.count, other.std, other.count)
    if math.isnan(error) or math.isnan(own.mean - other.mean):
        return math.nan, math.nan
    if error == 0:
        return (0.0, 1.0) if own.mean == other.mean else (math.copysign(math.inf, own.mean - other.mean), 0.0)
    from scipy.stats import t as student

    statistic = (own.mean - other.mean) / error
    freedom = welch_freedom(own.std, own.count, other.std, other.count)
    return statistic, float(2 * student.sf(abs(statistic), freedom))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's corrected p of several tests, in their order; nan stays nan and does not count.

    >>> holm([0.01, 0.04, math.nan, 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    order = sorted((p, k) for k, p in enumerate(values) if not math.isnan(p))
    found = [math.nan] * len(values)
    largest = 0.0
    for place, (p, k) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p))
        found[k] = largest
    return found


def row_answer(gaps: Sequence[Gap]) -> str:
    """Whether a published row is reproduced: fails where a cell differs for sure after Holm's correction.

    It holds where all cells are the same number, and is undecided between.

    >>> same, wide, far = Gap(0.1, 0.3, 0.7), Gap(3.0, 2.0, 0.2), Gap(-9.0, 1.0, 1e-6)
    >>> row_answer([same, same]), row_answer([same, wide]), row_answer([same, far]), row_answer([])
    ('holds', 'undecided', 'fails', 'undecided')
    """
    if any(p < LEVEL for p in holm([gap.p for gap in gaps])):
        return FAILS
    return HOLDS if gaps and all(gap.word == REPRODUCED for gap in gaps) else UNDECIDED


def tally(words: Iterable[str]) -> str:
    """How many of each word, in words.

    >>> tally(["below", "reproduced", "below"])
    '1 reproduced, 2 below'
    """
    found = list(words)
    return ", ".join(f"{found.count(word)} {word}" for word in WORDS if word in found) or "no cell"
