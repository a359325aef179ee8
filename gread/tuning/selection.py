"""What choosing by validation costs: the selection gap and how it grows, intervals over splits, choice per split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gread.comparison import accuracy_interval, mean_interval
from gread.tuning.candidates import TrialResult
from rdgraph.errors import InvalidArgument

#: Samples of a bootstrap.
SAMPLES = 10_000


def eligible(results: Sequence[TrialResult]) -> list[TrialResult]:
    """The trials that may be chosen: those that were trained to their ends."""
    return [r for r in results if r.is_eligible]


def chosen(results: Sequence[TrialResult]) -> TrialResult | None:
    """The trial with the best mean validation accuracy, the first of equals; no test label is looked at."""
    return max(eligible(results), key=lambda r: (r.val_accuracy, -r.number), default=None)


def best_by_test(results: Sequence[TrialResult]) -> TrialResult | None:
    """The trial that a look at the test labels would choose: what the gap is measured from, never what is reported."""
    return max(eligible(results), key=lambda r: (r.test_accuracy, -r.number), default=None)


@dataclass(frozen=True)
class GapPoint:
    """Expected test accuracies of `trials` random trials: chosen by validation, and best by test."""

    trials: int
    by_validation: float
    by_test: float

    @property
    def gap(self) -> float:
        return self.by_test - self.by_validation


def gap_curve(results: Sequence[TrialResult]) -> list[GapPoint]:
    """The selection gap after 1, 2, ... trials: exact means over all subsets of these trials of that size.

    The one with r others below it is the best of n out of N with probability C(r, n - 1)/C(N, n).

    >>> two = [TrialResult(0, "complete", 9, (0.9,), (0.5,)), TrialResult(1, "complete", 9, (0.8,), (0.7,))]
    >>> [(p.trials, round(p.by_validation, 6), round(p.by_test, 6)) for p in gap_curve(two)]
    [(1, 0.6, 0.6), (2, 0.5, 0.7)]
    """
    known = eligible(results)
    by_val = sorted(known, key=lambda r: (r.val_accuracy, -r.number))
    by_test = sorted(known, key=lambda r: (r.test_accuracy, -r.number))
    val_tests, tests = (np.array([r.test_accuracy for r in order]) for order in (by_val, by_test))
    found = []
    for n in range(1, len(known) + 1):
        weights = best_of(n, len(known))
        found.append(GapPoint(n, float(weights @ val_tests), float(weights @ tests)))
    return found


def best_of(n: int, total: int) -> np.ndarray:
    """The probability (total,) that the one with r below it is the best of n taken at random, r = 0, 1, ...

    >>> best_of(2, 3)
    array([0.        , 0.33333333, 0.66666667])
    """
    weights = np.array([math.comb(r, n - 1) / math.comb(total, n) for r in range(total)])
    return weights / weights.sum()


def told_interval(values: Sequence[float], ratio: float) -> str:
    """The corrected interval of a mean over splits in percent, in words; of one split there is none.

    >>> told_interval([0.5, 0.5], 0.4), told_interval([0.5], 0.4)
    ('95 % interval over the splits: 50.00 to 50.00', 'one split alone, of which there is no interval')
    """
    if len(values) == 1:
        return "one split alone, of which there is no interval"
    low, high = mean_interval([100 * value for value in values], ratio)
    return f"95 % interval over the splits: {low:.2f} to {high:.2f}"


def searched_interval(results: Sequence[TrialResult], ratio: float, seed: int = 0) -> tuple[float, float]:
    """The corrected 95 % interval of the whole search, in percent; `ratio` is n_test/n_train.

    Its deviation is that of the accuracy of the trial that is chosen when the splits are resampled.
    """
    known = eligible(results)
    if not known:
        raise InvalidArgument("expected trials that were trained to their ends, got none")
    val, test = (np.array([getattr(r, name) for r in known]) for name in ("val", "test"))
    splits = val.shape[1]
    drawn = np.random.default_rng(seed).integers(0, splits, (SAMPLES, splits))
    counts = np.stack([(drawn == k).sum(1) for k in range(splits)], axis=1) / splits
    picks = (counts @ val.T).argmax(1)
    means = 100 * (counts * test[picks]).sum(1)
    # The deviation of a resampled mean is the population deviation of one split over sqrt(splits).
    return accuracy_interval(float(means.mean()), float(means.std()) * math.sqrt(splits), splits, ratio)


def nested(results: Sequence[TrialResult]) -> list[TrialResult]:
    """For every split the trial that its own validation nodes choose, the first of equals."""
    known = eligible(results)
    if not known:
        return []
    found = []
    for values in zip(*(r.val for r in known), strict=True):
        _, _, best = max((value, -r.number, r) for value, r in zip(values, known, strict=True))
        found.append(best)
    return found


def nested_accuracies(results: Sequence[TrialResult]) -> list[float]:
    """The test accuracy on every split of the trial that its own validation nodes choose."""
    return [trial.test[split] for split, trial in enumerate(nested(results))]
