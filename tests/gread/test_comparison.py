"""Comparisons of accuracies: against scipy, by hand, and the coverage of their intervals on splits that share nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gread import karate
from gread.comparison import (
    Comparison,
    Estimate,
    Gap,
    chance_errors,
    corrected_error,
    difference_error,
    holm,
    mean_interval,
    share_ratio,
    standard_error,
    unrounded,
    welch,
)
from rdgraph.errors import InvalidArgument

#: The ratio of the public splits, 48 % for training and 20 % for testing.
RATIO = 20 / 48


def of(values: np.ndarray, ratio: float) -> Comparison:
    """The comparison whose differences are `values`."""
    return Comparison.of(dict(enumerate(values.tolist())), dict.fromkeys(range(len(values)), 0.0), ratio)


def exactly(mean: float, deviation: float, count: int) -> np.ndarray:
    """Numbers with that mean and unbiased standard deviation."""
    values = np.random.default_rng(0).normal(size=count)
    return mean + deviation * (values - values.mean()) / values.std(ddof=1)


# ---------------------------------------------------------------------- two methods
def test_without_shared_nodes_it_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    for count, shift in ((2, 0.0), (3, 2.0), (10, 0.5), (10, -3.0), (40, 0.3)):
        own = rng.normal(80, 3, count)
        other = own - shift + rng.normal(0, 2, count)
        plain = stats.ttest_rel(own, other)
        test = Comparison.of(dict(enumerate(own)), dict(enumerate(other)), 0.0)
        assert (test.t, test.p) == (pytest.approx(plain.statistic), pytest.approx(plain.pvalue))
        assert test.interval == pytest.approx(tuple(plain.confidence_interval(0.95)))
        answer = "undecided" if plain.pvalue >= 0.05 else "holds" if test.difference > 0 else "fails"
        assert test.answer == answer
        nearly = Comparison.of(dict(enumerate(own)), dict(enumerate(other)), 1e-9)
        assert nearly.p == pytest.approx(plain.pvalue, rel=1e-6)


def test_ten_splits_that_students_test_calls_significant() -> None:
    values = exactly(1.0, 1.2, 10)
    plain, corrected = of(values, 0.0), of(values, RATIO)
    assert (plain.answer, corrected.answer) == ("holds", "undecided")
    assert plain.p == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    # by hand: 1.44 (1/10 + 20/48) = 0.744, its root 0.8626, t = 1.1593 with 9 degrees
    assert corrected.error == pytest.approx(0.8626, abs=1e-4)
    assert corrected.t == pytest.approx(1.1593, abs=1e-4)
    assert corrected.p == pytest.approx(0.276, abs=5e-4)
    assert corrected.probability == pytest.approx(1 - corrected.p / 2)
    assert corrected.doubt == ", not significant: the 95 % interval contains 0"
    assert corrected.reach == pytest.approx(stats.t.ppf(0.975, 9) * corrected.error)


def test_answer_interval_and_p_say_the_same() -> None:
    for shift in np.linspace(-4.0, 4.0, 81):
        test = of(exactly(float(shift), 1.5, 10), RATIO)
        low, high = test.interval
        expected = "holds" if low > 0 else "fails" if high < 0 else "undecided"
        assert test.answer == expected
        assert (test.p < 0.05) == (expected != "undecided")


def test_two_and_three_splits_have_wide_intervals() -> None:
    assert of(np.array([3.0, 5.0]), RATIO).answer == "undecided"
    assert of(np.array([2.0, 3.0, 4.0]), 0.0).answer == "holds"
    assert of(np.array([2.0, 3.0, 4.0]), RATIO).answer == "undecided"
    assert of(np.array([20.0, 21.0, 22.0]), RATIO).answer == "holds"


def test_one_split_and_none_decide_nothing() -> None:
    one, none = Comparison.of({0: 1.0}, {0: 0.0}, RATIO), Comparison.of({0: 1.0}, {1: 0.0}, RATIO)
    assert (one.difference, one.answer, one.doubt) == (1.0, "undecided", ", from one split alone")
    assert all(map(math.isnan, (one.error, one.t, one.p, one.reach, none.difference, none.p)))
    assert none.answer == "undecided"


def test_what_is_not_known_decides_nothing() -> None:
    missing = Comparison.of({0: 1.0, 1: math.nan, 2: 3.0}, dict.fromkeys(range(3), 0.0), RATIO)
    assert math.isnan(missing.p)
    unknown = of(np.array([20.0, 21.0, 22.0]), math.nan)
    assert (missing.answer, unknown.answer) == ("undecided", "undecided")


def single(values: list[float]) -> dict[int, float]:
    """Percentages of shares that were kept in single precision."""
    return {k: 100 * float(np.float32(v)) for k, v in enumerate(values)}


def double(values: list[float]) -> dict[int, float]:
    return {k: 100 * v for k, v in enumerate(values)}


def test_a_tie_of_two_precisions_is_a_tie() -> None:
    shares = [0.7, 1 / 3, 14 / 37, 0.9]
    for own, other in ((single(shares), double(shares)), (double(shares), single(shares))):
        test = Comparison.of(own, other, RATIO)
        assert (test.difference, test.error, test.p, test.answer) == (0.0, 0.0, 1.0, "undecided")


@pytest.mark.parametrize(("splits", "answer"), [(2, "undecided"), (5, "undecided"), (6, "fails"), (10, "fails")])
def test_the_same_difference_on_all_splits_is_judged_by_its_sign(splits: int, answer: str) -> None:
    test = Comparison.of(single([0.5] * splits), double([0.75] * splits), RATIO)
    assert test.answer == answer
    assert test.p == pytest.approx(stats.binomtest(0, splits).pvalue)
    assert test.t == -math.inf


def test_a_single_node_of_many_is_a_difference() -> None:
    nodes = 1_000_000
    test = Comparison.of(double([0.5 + 1 / nodes] * 10), double([0.5] * 10), RATIO)
    assert test.difference == pytest.approx(100 / nodes)
    assert unrounded(np.array([5.0, 5.1])).tolist() == [5.0, 5.1]


# ---------------------------------------------------------------------- resampled splits of one pool
def accuracies_of_splits(pools: int, splits: int, features: int, seed: int) -> np.ndarray:
    """Accuracies in percent (pools, splits, features) of classifiers that see one feature each.

    Every pool has 100 points of two classes; a split takes 48 for training and 20 for testing. The features are equally
    good, so that no classifier is better than another on pools that are drawn anew.
    """
    rng = np.random.default_rng(seed)
    label = np.resize([-1.0, 1.0], 100)
    values = 0.5 * label[:, None] + rng.normal(size=(pools, 100, features))
    rows = np.empty((pools, splits, features))
    for k in range(splits):
        order = rng.random((pools, 100)).argsort(1)
        train, test = order[:, :48], order[:, 48:68]
        seen, truth = np.take_along_axis(values, train[:, :, None], 1), label[train][:, :, None]
        above = (seen * (truth > 0)).sum(1) / (truth > 0).sum(1)
        below = (seen * (truth < 0)).sum(1) / (truth < 0).sum(1)
        guessed = np.take_along_axis(values, test[:, :, None], 1) - (above + below)[:, None] / 2
        guessed = np.sign(guessed) * np.sign(above - below)[:, None]
        rows[:, k] = 100 * (guessed == label[test][:, :, None]).mean(1)
    return rows


def test_intervals_of_splits_that_share_nodes_hold_the_truth_as_often_as_they_say() -> None:
    first, second = np.moveaxis(accuracies_of_splits(1500, 10, 2, seed=0), 2, 0)
    inside = {
        ratio: np.mean([abs(test.difference) <= test.reach for test in (of(row, ratio) for row in first - second)])
        for ratio in (0.0, RATIO)
    }
    assert 0.94 < inside[RATIO] < 0.99
    assert inside[0.0] < 0.8  # Student's interval

    truth = accuracies_of_splits(20_000, 1, 1, seed=1).mean()  # expected accuracy after training on 48 points
    held = {
        ratio: np.mean([low <= truth <= high for low, high in (mean_interval(row, ratio) for row in first.tolist())])
        for ratio in (0.0, RATIO)
    }
    assert 0.94 < held[RATIO] < 0.99
    assert held[0.0] < 0.8


def test_the_same_method_on_other_splits_of_the_same_nodes_is_welchs_test() -> None:
    """What splits share is common to both means, so that nothing has to be corrected next to a printed mean."""
    rows = accuracies_of_splits(1500, 20, 1, seed=2)[:, :, 0]
    estimates = [[Estimate(float(half.mean()), float(half.std()), 10) for half in (row[:10], row[10:])] for row in rows]
    gaps = [Gap.between(own, other.mean, other.std) for own, other in estimates]
    assert np.mean([gap.p < 0.05 for gap in gaps]) == pytest.approx(0.05, abs=0.02)
    corrected = [welch(own, other, RATIO, RATIO)[1] for own, other in estimates]
    assert np.mean([p < 0.05 for p in corrected]) < 0.005


# ---------------------------------------------------------------------- means
def test_an_interval_of_a_mean() -> None:
    assert mean_interval([50.0] * 4, RATIO) == (50.0, 50.0)
    assert np.isnan(mean_interval([50.0], RATIO)).all()
    values = [70.27, 72.97, 62.16]
    plain = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert mean_interval(values, 0.0) == pytest.approx(plain)
    wide = stats.t.interval(0.95, 9, loc=80, scale=2 * math.sqrt(0.1 + RATIO))
    assert mean_interval(exactly(80, 2, 10).tolist(), RATIO) == pytest.approx(wide)
    assert mean_interval([99.0, 97.0], RATIO)[1] == 100.0
    with pytest.raises(InvalidArgument, match="got none"):
        mean_interval([], RATIO)


def test_standard_errors_are_scipys() -> None:
    ours, theirs = np.random.default_rng(0).normal(80.0, 3.0, (2, 10))
    assert standard_error(ours.std(), 10) == pytest.approx(stats.sem(ours))
    assert corrected_error(ours.std(), 10, RATIO) == pytest.approx(ours.std(ddof=1) * math.sqrt(0.1 + RATIO))
    assert difference_error(ours.std(), 10, theirs.std(), 10) == pytest.approx(
        math.hypot(stats.sem(ours), stats.sem(theirs))
    )
    assert math.isnan(standard_error(1.0, 1))
    assert math.isnan(difference_error(1.0, 1, 1.0, 10))
    assert standard_error(0.0, 5) == 0.0


def test_the_ratio_of_a_data_set_is_that_of_its_masks() -> None:
    data = karate()
    expected = np.mean([data.masks.test[k].sum() / data.masks.train[k].sum() for k in range(data.num_splits)])
    assert share_ratio(data) == pytest.approx(expected)
    assert share_ratio([data, data]) == pytest.approx(expected)
    assert 0.3 < expected < 0.6


def test_welch_is_scipys() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.normal(80, 3, 10), draw.normal(78, 5, 7)
    own, other = (Estimate(float(x.mean()), float(x.std()), x.size) for x in (a, b))
    theirs = stats.ttest_ind(a, b, equal_var=False)
    assert welch(own, other) == (pytest.approx(theirs.statistic), pytest.approx(theirs.pvalue))
    low, high = theirs.confidence_interval(0.95)
    error = difference_error(own.std, 10, other.std, 7)
    assert chance_errors(own.std, 10, other.std, 7) * error == pytest.approx((high - low) / 2)
    assert welch(own, other, RATIO, RATIO)[1] > theirs.pvalue
    assert all(math.isnan(x) for x in welch(Estimate(1.0, 0.0, 1), Estimate(2.0, 1.0, 5)))
    assert welch(Estimate(1.0, 0.0, 3), Estimate(1.0, 0.0, 3)) == (0.0, 1.0)


def test_holm_by_its_definition() -> None:
    values = [0.04, 0.001, 0.03, 0.2]
    for level in np.linspace(0.001, 0.999, 57):
        kept, order = set(), np.argsort(values)
        for rank, k in enumerate(order):  # step down until the first that is not small enough
            if values[k] > level / (len(values) - rank):
                break
            kept.add(int(k))
        assert {k for k, p in enumerate(holm(values)) if p <= level} == kept
