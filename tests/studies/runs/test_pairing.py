"""Pairs of methods: ties are ties, and equal differences on few splits decide nothing."""

from __future__ import annotations

import numpy as np
import pytest

from studies.cells.corrected_test import CorrectedTest
from studies.runs.pairing import Paired


def single(values: list[float]) -> dict[int, float]:
    """Percents of shares that were kept in single precision."""
    return {k: 100 * float(np.float32(v)) for k, v in enumerate(values)}


def double(values: list[float]) -> dict[int, float]:
    return {k: 100 * v for k, v in enumerate(values)}


def test_a_tie_of_two_precisions_is_a_tie() -> None:
    shares = [0.7, 1 / 3, 14 / 37, 0.9]
    for own, other in ((single(shares), double(shares)), (double(shares), single(shares))):
        found, test = Paired.of(own, other), CorrectedTest.of(own, other, 0.4)
        assert (found.difference, found.error, found.answer) == (0.0, 0.0, "undecided")
        assert (test.difference, test.p, test.answer) == (0.0, 1.0, "undecided")


@pytest.mark.parametrize(("splits", "answer"), [(2, "undecided"), (5, "undecided"), (6, "fails"), (10, "fails")])
def test_the_same_difference_on_all_splits_is_judged_by_its_sign(splits: int, answer: str) -> None:
    own, other = single([0.5] * splits), double([0.75] * splits)
    assert Paired.of(own, other).answer == answer
    assert CorrectedTest.of(own, other, 0.4).answer == answer


def test_a_single_node_of_many_is_a_difference() -> None:
    nodes = 1_000_000
    own, other = double([0.5 + 1 / nodes] * 10), double([0.5] * 10)
    assert Paired.of(own, other).difference == pytest.approx(100 / nodes)
