"""Accuracies of methods and the significance of their differences: one statistic for all reports.

Accuracies are percentages, one for every split; seeds on one split share it and are averaged first.

**± and brackets.** `86.00 ± 1.50` is one method: the mean and the population standard deviation over the splits, as
the published tables have it. `+2.00 (standard error 0.50)` is a difference: the mean over the splits and its standard
error. ± never stands for a standard error.

**Which of two methods is more accurate?** Random splits of one graph share training nodes, so their results are
correlated and s²/k understates the variance of a mean over k of them. `Comparison` and `mean_interval` take it as

    s² (1/k + n_test/n_train),

s² the unbiased variance over the splits, with Student's quantile of k - 1 degrees of freedom: the corrected resampled
t-test (Nadeau and Bengio, Inference for the Generalization Error, Machine Learning 52, 2003). Independent units, such
as graphs or data sets, have the ratio 0, which gives the plain paired t-test.

- With two or three splits Student's quantile has one or two degrees of freedom, so only large differences are
  significant.
- Differences that are equal on all splits have no spread, since accuracies are counts of few nodes. These are decided
  by the sign test, which needs six splits.
- Differences below `ROUNDING` are ties: accuracies of networks are in single precision.
- `holm` corrects the p values of several tests.

**Is a printed accuracy reproduced?** Both means are of one method on one graph. What all splits of the graph share
adds the same to both and cancels, so each mean has the error s/sqrt(k) for s unbiased, and `Gap` is Welch's test; it
is conservative where the splits are the same. The paper prints no splits, so a paired test is impossible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgraph.errors import InvalidArgument

if TYPE_CHECKING:
    from gread.datasets.node_data import NodeData

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
#: The confidence of intervals, and the p value below which a difference is significant.
CONFIDENCE, LEVEL = 0.95, 0.05
#: Differences in percent below this count as zero: accuracies of networks are in single precision.
ROUNDING = 2e-5
#: Standard errors within which a difference from a printed mean counts as chance, and the splits of such a mean.
ERRORS, SPLITS = 2.0, 10
REPRODUCED, NOISE, ABOVE, BELOW, NONE = "reproduced", "within noise", "above", "below", "undecided"
WORDS = (REPRODUCED, NOISE, ABOVE, BELOW, NONE)
#: The words of a difference within its errors.
AGREES = (REPRODUCED, NOISE)
#: The points of accuracy that count as the same number.
POINTS = 1.0
EXPLAINED = (
    f"reproduced: the difference is within {ERRORS:g} of its standard errors and at most {POINTS:g} point; within "
    f"noise: within {ERRORS:g} standard errors but more than {POINTS:g} point, so that the splits cannot tell; above, "
    f"below: beyond {ERRORS:g} standard errors; undecided: there is no error to judge by. Where ours is over fewer "
    f"than {SPLITS} splits, Student's quantile with Welch's degrees stands for {ERRORS:g}. Errors take both means as "
    "independent over splits, since the paper does not print its splits; where it prints no standard deviation, ours "
    "stands for it."
)


# ---------------------------------------------------------------------- samples
def split_means(rows: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Test accuracy in percent of every split, the mean over its seeds.

    >>> split_means([dict(split=0, test_accuracy=0.5), dict(split=0, test_accuracy=0.7)])
    {0: 60.0}
    """
    values: dict[int, list[float]] = {}
    for row in rows:
        values.setdefault(int(row["split"]), []).append(100 * float(row["test_accuracy"]))
    return {split: float(np.mean(each)) for split, each in values.items()}


def share_ratio(data: NodeData | Sequence[NodeData]) -> float:
    """n_test/n_train of a data set, the mean over its splits; of several data sets their mean.

    >>> from gread import karate
    >>> round(share_ratio(karate()), 2)
    0.44
    """
    if isinstance(data, Sequence):
        return float(np.mean([share_ratio(one) for one in {id(one): one for one in data}.values()]))
    masks = data.masks
    return float(np.mean(masks.test.sum(1) / np.maximum(1, masks.train.sum(1))))


def corrected_error(std: float, count: int, ratio: float) -> float:
    """The corrected standard error of a mean over `count` splits with the population standard deviation `std`.

    std sqrt(k/(k - 1)) sqrt(1/k + ratio); `ratio` is n_test/n_train. nan for a single split.

    >>> round(corrected_error(3.0, 10, 20 / 48), 4), corrected_error(3.0, 10, 0.0), corrected_error(3.0, 1, 0.0)
    (2.273, 1.0, nan)
    """
    return standard_error(std, count) * math.sqrt(1 + count * ratio)


def standard_error(std: float, count: int) -> float:
    """The standard error of a mean over independent samples with the population standard deviation `std`.

    std/sqrt(count - 1), which is the unbiased deviation over sqrt(count); nan for a single sample.

    >>> standard_error(3.0, 10), round(float(np.std([1.0, 2.0, 4.0], ddof=1)) / 3**0.5, 12)
    (1.0, 0.881917103688)
    >>> round(standard_error(float(np.std([1.0, 2.0, 4.0])), 3), 12)
    0.881917103688
    """
    return std / math.sqrt(count - 1) if count > 1 else math.nan


def reach(error: float, count: int, tests: int = 1) -> float:
    """Half the width of Student's interval of a mean over `count` units; nan for fewer than two.

    Its level is 95 % for all of several tests together.

    >>> round(reach(1.0, 3), 2), round(reach(1.0, 10), 2), round(reach(1.0, 3, tests=10), 2), reach(0.0, 1)
    (4.3, 2.26, 14.09, nan)
    """
    return _quantile(count - 1, 1 - (1 - CONFIDENCE) / (2 * tests)) * error if count > 1 else math.nan


def _quantile(freedom: float, share: float) -> float:
    """A quantile of Student's distribution; scipy is imported on use, since the command line starts without it."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def _two_sided(t: float, freedom: float) -> float:
    """The two-sided p of Student's t."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(t)))


def mean_interval(values: Sequence[float], ratio: float) -> tuple[float, float]:
    """The corrected 95 % interval of a mean accuracy over splits, in percent; nan for a single split.

    `ratio` is n_test/n_train.

    >>> [round(end, 4) for end in mean_interval([80.0, 90.0, 85.0, 95.0], 0.0)]
    [77.2287, 97.7713]
    >>> [round(end, 4) for end in mean_interval([80.0, 90.0, 85.0, 95.0], 0.5)]
    [69.7096, 100.0]
    """
    if not len(values):
        raise InvalidArgument("expected values to average, got none")
    return accuracy_interval(float(np.mean(values)), float(np.std(values)), len(values), ratio)


def accuracy_interval(mean: float, std: float, count: int, ratio: float) -> tuple[float, float]:
    """The corrected 95 % interval of a mean accuracy in percent, within 0 and 100; nan for a single split."""
    width = reach(corrected_error(std, count, ratio), count)
    return (math.nan, math.nan) if math.isnan(width) else (max(0.0, mean - width), min(100.0, mean + width))


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


def holm(values: Sequence[float]) -> list[float]:
    """Holm's corrected p of several tests, in their order; nan stays nan and does not count.

    >>> holm([0.01, 0.04, math.nan, 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    order = sorted((p, k) for k, p in enumerate(values) if not math.isnan(p))
    corrected = [math.nan] * len(values)
    largest = 0.0
    for rank, (p, k) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        corrected[k] = largest
    return corrected


def at_most(value: float, width: float, most: float) -> str:
    """Whether a number known up to `width` is at most `most`.

    >>> at_most(2.0, 1.0, 5.0), at_most(8.0, 1.0, 5.0), at_most(2.0, 4.0, 5.0), at_most(2.0, math.nan, 5.0)
    ('holds', 'fails', 'undecided', 'undecided')
    """
    return HOLDS if value + width <= most else FAILS if value - width > most else UNDECIDED


# ---------------------------------------------------------------------- two methods on the same splits
@dataclass(frozen=True)
class Comparison:
    """The mean difference of two methods over the splits that both have, and its corrected standard error.

    The posterior of the mean difference in the correlated Bayesian t-test (Corani and Benavoli, 2015) is Student's with
    the same mean, error and degrees of freedom, so `probability` is that of the first method being better.

    >>> ten = [1.0 + 1.2 * d for d in (-1.5, -1.2, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.2, 1.5)]
    >>> own, other = dict(enumerate(ten)), dict.fromkeys(range(10), 0.0)
    >>> Comparison.of(own, other, 20 / 48).answer, Comparison.of(own, other, 0.0).answer
    ('undecided', 'holds')
    """

    difference: float
    error: float
    splits: int

    @classmethod
    def of(cls, first: Mapping[int, float], other: Mapping[int, float], ratio: float) -> Comparison:
        """own - other, split by split; `ratio` is n_test/n_train, 0 where the units are independent.

        >>> Comparison.of({0: 80.0, 1: 90.0}, {0: 79.0, 1: 87.0}, 0.0)
        Comparison(difference=2.0, error=1.0, splits=2)
        >>> test = Comparison.of({0: 2.0, 1: 4.0, 2: 6.0}, {0: 1.0, 1: 2.0, 2: 3.0}, 0.0)
        >>> test.difference, round(test.t, 4), round(test.p, 4)
        (2.0, 3.4641, 0.0742)
        """
        gaps = unrounded(np.array([first[split] - other[split] for split in sorted(set(first) & set(other))]))
        if not gaps.size:
            return cls(math.nan, math.nan, 0)
        return cls(float(gaps.mean()), corrected_error(float(gaps.std()), gaps.size, ratio), gaps.size)

    @property
    def is_constant(self) -> bool:
        """Whether several splits have the same difference, so that the sign test decides."""
        return self.error == 0 and self.splits > 1

    @property
    def t(self) -> float:
        """Student's t; nan for a single split, infinite for equal differences that are not zero."""
        if self.is_constant:
            return math.copysign(math.inf, self.difference) if self.difference else 0.0
        return self.difference / self.error if self.splits > 1 else math.nan

    @property
    def p(self) -> float:
        """The two-sided p value; nan for a single split.

        >>> Comparison(2.0, 0.0, 3).p, Comparison(0.0, 0.0, 3).p, round(Comparison(2.0, 1.0, 10).p, 4)
        (0.25, 1.0, 0.0766)
        """
        if self.is_constant:
            return sign_test(self.splits) if self.difference else 1.0
        return _two_sided(self.t, self.splits - 1) if self.splits > 1 else math.nan

    @property
    def probability(self) -> float:
        """The posterior probability that the first method is better; nan for a single split."""
        return 1 - self.p / 2 if self.difference > 0 else self.p / 2

    @property
    def reach(self) -> float:
        """Half the width of the 95 % interval of the difference; nan for a single split."""
        return reach(self.error, self.splits)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference; nan for a single split."""
        return self.difference - self.reach, self.difference + self.reach

    @property
    def answer(self) -> str:
        """Whether the first is better: holds, fails, or undecided where the difference is not significant.

        >>> Comparison(2.0, 0.1, 10).answer, Comparison(-2.0, 0.1, 10).answer, Comparison(2.0, 1.5, 10).answer
        ('holds', 'fails', 'undecided')
        >>> Comparison(2.0, 0.0, 2).answer, Comparison(2.0, 0.0, 10).answer, Comparison(2.0, math.nan, 1).answer
        ('undecided', 'holds', 'undecided')
        """
        if not self.p < LEVEL:
            return UNDECIDED
        return HOLDS if self.difference > 0 else FAILS

    @property
    def text(self) -> str:
        """The difference with its error, where there is one.

        >>> Comparison(2.0, 0.5, 10).text, Comparison(2.0, 0.0, 3).text, Comparison(2.0, math.nan, 1).text
        ('+2.00 (standard error 0.50)', '+2.00 (the same on all 3 splits)', '+2.00')
        """
        return f"{self.difference:+z.2f}{self.spread}"

    @property
    def spread(self) -> str:
        """The error of the difference in brackets; "" for one split."""
        if self.is_constant:
            return f" (the same on all {self.splits} splits)"
        return "" if math.isnan(self.error) else f" (standard error {self.error:.2f})"

    @property
    def test(self) -> str:
        """The test behind the comparison in words, with its p value and interval.

        >>> Comparison(2.0, 0.0, 3).test, Comparison(2.0, 0.5, 3).test
        ('sign test, p = 0.25', 'corrected resampled t-test, p = 0.057, 95 % interval -0.15 to 4.15')
        """
        if self.splits < 2:
            return "one split"
        if self.is_constant:
            return f"sign test, p = {self.p:.2g}"
        low, high = self.interval
        return f"corrected resampled t-test, p = {self.p:.2g}, 95 % interval {low:.2f} to {high:.2f}"

    @property
    def doubt(self) -> str:
        """What follows a difference that is not significant; "" where it is.

        >>> Comparison(2.0, 1.5, 10).doubt, Comparison(2.0, 0.0, 3).doubt, Comparison(2.0, 0.1, 10).doubt
        (', not significant: the 95 % interval contains 0', ', not significant: sign test, p = 0.25', '')
        """
        if self.answer != UNDECIDED:
            return ""
        if self.splits == 1:
            return ", from one split alone"
        return f", not significant: {self.test if self.is_constant else 'the 95 % interval contains 0'}"


def none_beyond(tests: Sequence[Comparison], most: float) -> str:
    """Whether none of several differences is larger than `most`; undecided where there are none.

    It holds where each is within for sure, and fails where one is beyond for sure, by an interval that is corrected for
    their number, since any of them may be the largest.

    >>> near, far = (Comparison(d, 0.5, 10) for d in (1.0, 9.0))
    >>> none_beyond([near, near], 5.0), none_beyond([near, far], 5.0), none_beyond([], 5.0)
    ('holds', 'fails', 'undecided')
    """
    if tests and all(at_most(t.difference, t.reach, most) == HOLDS for t in tests):
        return HOLDS
    beyond = any(at_most(t.difference, reach(t.error, t.splits, len(tests)), most) == FAILS for t in tests)
    return FAILS if beyond else UNDECIDED


def all_pairs(points: Mapping[float, Mapping[int, float]], ratio: float) -> list[Comparison]:
    """The larger mean minus the smaller one for every two points of a curve, unit by unit.

    >>> [test.difference for test in all_pairs({0.0: {0: 1.0, 1: 3.0}, 1.0: {0: 2.0, 1: 5.0}}, 0.0)]
    [1.5]
    """
    means = {x: float(np.mean(list(values.values()))) for x, values in points.items()}
    order = sorted(points, key=lambda x: means[x])
    return [Comparison.of(points[high], points[low], ratio) for low, high in combinations(order, 2)]


# ---------------------------------------------------------------------- means alone
@dataclass(frozen=True)
class Estimate:
    """A mean in percent over `count` splits with their population standard deviation."""

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Estimate:
        """Mean, deviation and number of splits from rows of trainings; a split with several seeds counts with its mean.

        >>> Estimate.of([dict(split=0, test_accuracy=0.5), dict(split=1, test_accuracy=0.7)])
        Estimate(mean=60.0, std=10.0, count=2)
        """
        values = np.array(list(split_means(rows).values()))
        if not values.size:
            return cls(math.nan, math.nan, 0)
        return cls(round(float(values.mean()), 10), round(float(values.std()), 10), values.size)

    @property
    def text(self) -> str:
        """The mean ± the standard deviation over the splits, of a single split the mean alone.

        >>> Estimate(86.0, 9.0, 10).text, Estimate(86.0, 0.0, 1).text, Estimate(math.nan, math.nan, 0).text
        ('86.00 ± 9.00', '86.00', '-')
        """
        if math.isnan(self.mean):
            return "-"
        return f"{self.mean:.2f} ± {self.std:.2f}" if self.count > 1 else f"{self.mean:.2f}"


def difference_error(std: float, count: int, other_std: float, other_count: int) -> float:
    """The standard error of the difference of two independent means, from their population standard deviations.

    >>> difference_error(9.0, 10, 12.0, 10), difference_error(9.0, 1, 12.0, 10)
    (5.0, nan)
    """
    return math.hypot(standard_error(std, count), standard_error(other_std, other_count))


def welch_freedom(error: float, count: int, other_error: float, other_count: int) -> float:
    """Welch's degrees of freedom of the difference of two means, from their standard errors.

    >>> welch_freedom(1.0, 10, 1.0, 10), round(welch_freedom(3 / 2**0.5, 3, 1.0, 10), 2), welch_freedom(0.0, 3, 0.0, 10)
    (18.0, 2.96, inf)
    """
    if min(count, other_count) < 2:
        return math.nan
    variance, other_variance = error**2, other_error**2
    denominator = variance**2 / (count - 1) + other_variance**2 / (other_count - 1)
    return (variance + other_variance) ** 2 / denominator if denominator else math.inf


def welch(own: Estimate, other: Estimate, ratio: float = 0.0, other_ratio: float = 0.0) -> tuple[float, float]:
    """Welch's t and its two-sided p, from means and population standard deviations; nan with fewer than two each.

    The ratios n_test/n_train correct for splits that share nodes, where the means are of different methods or graphs;
    without them the samples are independent.

    >>> t, p = welch(Estimate(88.71, 3.24, 100), Estimate(76.10, 6.03, 100))
    >>> round(t, 1), p < 1e-30
    (18.3, True)
    >>> ten = Estimate(74.3, 5.7, 10), Estimate(83.5, 6.7, 10)
    >>> [round(p, 3) for _, p in (welch(*ten), welch(*ten, 0.4, 0.4))]
    [0.006, 0.178]
    """
    errors = corrected_error(own.std, own.count, ratio), corrected_error(other.std, other.count, other_ratio)
    error, difference = math.hypot(*errors), own.mean - other.mean
    if math.isnan(error) or math.isnan(difference):
        return math.nan, math.nan
    if error == 0:
        return (0.0, 1.0) if difference == 0 else (math.copysign(math.inf, difference), 0.0)
    freedom = welch_freedom(errors[0], own.count, errors[1], other.count)
    return difference / error, _two_sided(difference / error, freedom)


# ---------------------------------------------------------------------- a measured mean and a printed one
def chance_errors(std: float, count: int, other_std: float, other_count: int = SPLITS) -> float:
    """Standard errors of the difference from a printed mean that count as chance.

    Two where both are over ten splits; over fewer it is Student's quantile with Welch's degrees of freedom.

    >>> chance_errors(3.0, 10, 3.0), round(chance_errors(3.0, 3, 3.0), 2), round(chance_errors(3.0, 2, 3.0), 2)
    (2.0, 3.21, 8.23)
    """
    errors = standard_error(std, count), standard_error(other_std, other_count)
    freedom = welch_freedom(errors[0], count, errors[1], other_count)
    if min(count, other_count) >= SPLITS or not math.isfinite(freedom):
        return ERRORS
    return max(ERRORS, _quantile(freedom, (1 + CONFIDENCE) / 2))


@dataclass(frozen=True)
class Gap:
    """own - other in percent, its standard error, and the p of Welch's test; nan where there is none.

    A difference of at most `chance` standard errors is no difference, see `chance_errors`.
    """

    difference: float
    error: float
    p: float
    chance: float = ERRORS

    @classmethod
    def between(cls, own: Estimate, other: float, other_std: float | None, other_count: int = SPLITS) -> Gap:
        """Between a measured mean and a published one of the same method over the ten public splits.

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
    """Count each word of a verdict and list the counts in one line.

    >>> tally(["below", "reproduced", "below"])
    '1 reproduced, 2 below'
    """
    given = list(words)
    return ", ".join(f"{given.count(word)} {word}" for word in WORDS if word in given) or "no cell"
