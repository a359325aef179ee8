"""What choosing costs, against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gread.comparison import mean_interval
from gread.tuning.candidates import TrialResult
from gread.tuning.selection import (
    best_by_test,
    best_of,
    chosen,
    gap_curve,
    nested,
    nested_accuracies,
    searched_interval,
)
from rdgraph.errors import InvalidArgument


def results(count: int = 7, splits: int = 4) -> list[TrialResult]:
    drawn = np.random.default_rng(3).random((count, 2, splits)).round(1)
    return [TrialResult(k, "complete", 20, tuple(val), tuple(test)) for k, (val, test) in enumerate(drawn.tolist())]


def test_the_gap_is_the_mean_over_all_ways_to_take_trials() -> None:
    known = results()
    for point in gap_curve(known):
        taken = list(combinations(known, point.trials))
        by_val = [max(some, key=lambda r: (r.val_accuracy, -r.number)).test_accuracy for some in taken]
        by_test = [max(r.test_accuracy for r in some) for some in taken]
        assert point.by_validation == pytest.approx(np.mean(by_val), abs=1e-12)
        assert point.by_test == pytest.approx(np.mean(by_test), abs=1e-12)
        assert point.gap >= -1e-12
    last = gap_curve(known)[-1]
    assert last.by_validation == chosen(known).test_accuracy
    assert last.by_test == best_by_test(known).test_accuracy


def test_five_hundred_trials_do_not_overflow() -> None:
    assert best_of(250, 500).sum() == pytest.approx(1)


def test_dropped_and_failed_trials_are_not_chosen() -> None:
    pruned = TrialResult(0, "pruned", 20, (1.0,), (1.0,))
    failed = TrialResult(1, "failed", 0, note="no memory")
    assert chosen([pruned, failed]) is None
    assert gap_curve([pruned, failed]) == []
    assert nested([pruned]) == []
    diverged = TrialResult(2, "diverged", 200, (0.25,), (0.5,))
    assert chosen([pruned, failed, diverged]) is diverged
    with pytest.raises(InvalidArgument, match="got none"):
        searched_interval([pruned], 0.4)


def test_the_test_labels_do_not_choose() -> None:
    known = results()
    turned = [TrialResult(r.number, r.state, r.epochs, r.val, tuple(1 - t for t in r.test)) for r in known]
    assert chosen(known).number == chosen(turned).number
    assert [r.number for r in nested(known)] == [r.number for r in nested(turned)]


def test_every_split_chooses_for_itself() -> None:
    known = results()
    for split, accuracy in enumerate(nested_accuracies(known)):
        best = max(r.val[split] for r in known)
        assert accuracy == next(r.test[split] for r in known if r.val[split] == best)


def test_intervals_of_a_search() -> None:
    known, ratio = results(), 20 / 48
    low, high = searched_interval(known, ratio)
    assert low < 100 * chosen(known).test_accuracy < high
    one = TrialResult(0, "complete", 20, (0.5,) * 4, (0.5, 0.6, 0.55, 0.62))
    alone = searched_interval([one], ratio)
    assert alone == pytest.approx(mean_interval([100 * value for value in one.test], ratio), abs=0.2)
    narrow = searched_interval([one], 0.0)
    assert (alone[1] - alone[0]) / (narrow[1] - narrow[0]) == pytest.approx((1 + 4 * ratio) ** 0.5)
