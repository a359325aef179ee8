"""The cost of selection by validation: the selection gap and its growth, intervals over splits, selection per split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gread.comparison import accuracy_interval, mean_interval
from gread.tuning.candidates import TrialResult
from rdgraph.errors import InvalidArgument

#: Bootstrap samples.
SAMPLES = 10_000


def eligible(results: Sequence[TrialResult]) -> list[TrialResult]:
    """The trials that may be chosen: those trained to the last epoch."""
    return [r for r in results if r.is_eligible]


def chosen(results: Sequence[TrialResult]) -> TrialResult | None:
    """The trial with the best mean validation accuracy, the first of equals; test labels are not used."""
    return max(eligible(results), key=lambda r: (r.val_accuracy, -r.number), default=None)


def require_chosen(results: Sequence[TrialResult], what: str) -> TrialResult:
    """The chosen result; an error that names a reason if there is none."""
    if (best := chosen(results)) is None:
        note = next((r.note for r in results if r.note), "none was trained to the last epoch")
        raise InvalidArgument(f"expected a {what} that could be trained, got {len(results)} without: {note}")
    return best


def best_by_test(results: Sequence[TrialResult]) -> TrialResult | None:
    """The trial with the best test accuracy: the reference of the selection gap, never reported as a result."""
    return max(eligible(results), key=lambda r: (r.test_accuracy, -r.number), default=None)


@dataclass(frozen=True)
class GapPoint:
    """Expected test accuracies of `trials` random trials: of the one chosen by validation, and of the best by test."""

    trials: int
    by_validation: float
    by_test: float

    @property
    def gap(self) -> float:
        return self.by_test - self.by_validation


def gap_curve(results: Sequence[TrialResult]) -> list[GapPoint]:
    """The selection gap after 1, 2, ... trials: exact means over all subsets of these trials of that size.

    A trial with r others below it is the best of n out of N with probability C(r, n - 1)/C(N, n).

    >>> two = [TrialResult(0, "complete", 9, (0.9,), (0.5,)), TrialResult(1, "complete", 9, (0.8,), (0.7,))]
    >>> [(p.trials, round(p.by_validation, 6), round(p.by_test, 6)) for p in gap_curve(two)]
    [(1, 0.6, 0.6), (2, 0.5, 0.7)]
    """
    candidates = eligible(results)
    by_val = sorted(candidates, key=lambda r: (r.val_accuracy, -r.number))
    by_test = sorted(candidates, key=lambda r: (r.test_accuracy, -r.number))
    val_tests, tests = (np.array([r.test_accuracy for r in order]) for order in (by_val, by_test))
    points = []
    for n in range(1, len(candidates) + 1):
        weights = best_of(n, len(candidates))
        points.append(GapPoint(n, float(weights @ val_tests), float(weights @ tests)))
    return points


def best_of(n: int, total: int) -> np.ndarray:
    """The probability (total,) that the trial with r below it is the best of n random ones, r = 0, 1, ...

    >>> best_of(2, 3)
    array([0.        , 0.33333333, 0.66666667])
    """
    weights = np.array([math.comb(r, n - 1) / math.comb(total, n) for r in range(total)])
    return weights / weights.sum()


def interval_text(values: Sequence[float], ratio: float) -> str:
    """The corrected 95 % interval of a mean over splits, in percent and words.

    >>> interval_text([0.5, 0.5], 0.4), interval_text([0.5], 0.4)
    ('95 % interval over the splits: 50.00 to 50.00', 'a single split has no interval')
    """
    if len(values) == 1:
        return "a single split has no interval"
    low, high = mean_interval([100 * value for value in values], ratio)
    return f"95 % interval over the splits: {low:.2f} to {high:.2f}"


def searched_interval(results: Sequence[TrialResult], ratio: float, seed: int = 0) -> tuple[float, float]:
    """The corrected 95 % interval of the whole search, in percent; `ratio` is n_test/n_train.

    Its deviation is that of the accuracy of the chosen trial under resampling of the splits.
    """
    known = eligible(results)
    if not known:
        raise InvalidArgument("expected trials that were trained to the last epoch, got none")
    val, test = (np.array([getattr(r, name) for r in known]) for name in ("val", "test"))
    splits = val.shape[1]
    drawn = np.random.default_rng(seed).integers(0, splits, (SAMPLES, splits))
    counts = np.stack([(drawn == k).sum(1) for k in range(splits)], axis=1) / splits
    picks = (counts @ val.T).argmax(1)
    means = 100 * (counts * test[picks]).sum(1)
    # The deviation of a resampled mean is the population deviation of one split over sqrt(splits).
    return accuracy_interval(float(means.mean()), float(means.std()) * math.sqrt(splits), splits, ratio)


def nested(results: Sequence[TrialResult]) -> list[TrialResult]:
    """For every split the trial with the best accuracy on its validation nodes, the first of equals."""
    known = eligible(results)
    if not known:
        return []
    best_trials = []
    for values in zip(*(r.val for r in known), strict=True):
        _, _, best = max((value, -r.number, r) for value, r in zip(values, known, strict=True))
        best_trials.append(best)
    return best_trials


def nested_accuracies(results: Sequence[TrialResult]) -> list[float]:
    """For every split the test accuracy of the trial with the best accuracy on its validation nodes."""
    return [trial.test[split] for split, trial in enumerate(nested(results))]
