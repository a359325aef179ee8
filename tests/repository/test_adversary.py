"""Random systems that the adversary may not refute: three hundred of all kinds, and some for single families."""

from __future__ import annotations

import pytest

from tests.adversary import suite
from tests.adversary.runner import Plan, run
from tests.adversary.summary import Summary

SLICE = Plan(count=300, seed=20230723, questions=1, seconds=4.0)
#: Systems of one test: the slice is spread over processes.
SHARE = 20


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize(
    "first", [pytest.param(k, marks=[pytest.mark.slow] if k > SHARE else []) for k in range(0, SLICE.count, SHARE)]
)
def test_no_answer_about_three_hundred_random_systems_is_refuted(first: int) -> None:
    others = frozenset(range(SLICE.count)) - frozenset(range(first, first + SHARE))
    summary = Summary.of(run(SLICE, skip=others))
    assert summary.systems == SHARE
    assert summary.decided > SHARE // 3
    assert not summary.refuted, "\n\n".join(map(str, summary.refuted))


def test_the_slice_asks_every_family() -> None:
    asked = {q.family for i in range(SLICE.count) for q in suite.planned(SLICE.seed, i, (), SLICE.questions)[1]}
    assert asked == set(suite.FAMILIES)


CONDITIONS = Plan(count=240, seed=20261118, families=("state_conditions",), questions=1, seconds=10.0)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize(
    "first",
    [pytest.param(k, marks=[pytest.mark.slow] if k else []) for k in range(0, CONDITIONS.count, SHARE)],
)
def test_steady_states_hold_at_special_coefficients(first: int) -> None:
    others = frozenset(range(CONDITIONS.count)) - frozenset(range(first, first + SHARE))
    summary = Summary.of(run(CONDITIONS, skip=others))
    assert summary.decided > SHARE // 3
    assert not summary.refuted, "\n\n".join(map(str, summary.refuted))
