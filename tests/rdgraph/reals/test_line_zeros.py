"""All zeros on the line, against a scan of scipy's and against zeros that were put in."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from rdgraph.reals.zeros import line_zeros, period
from rdgraph.vocabulary.functions import sigmoid
from tests.rdgraph.reals.real_functions import KINKED, SMOOTH, numeric, x

GRID = np.unique(np.concatenate([np.linspace(-60, 60, 997), np.sinh(np.linspace(-4, 4, 801))]))


def scanned(formula: sp.Expr) -> list[float]:
    """Places at which the sign changes on a grid."""
    rate = numeric(formula)
    values = rate(GRID)
    pairs = zip(GRID, GRID[1:], values, values[1:], strict=False)
    return [brentq(lambda h: float(rate(h)), a, b, xtol=1e-13) for a, b, y, z in pairs if y * z < 0]


@pytest.mark.parametrize("formula", [*SMOOTH, *KINKED], ids=str)
def test_zeros_and_signs_are_those_of_a_scan(formula: sp.Expr) -> None:
    found = line_zeros(formula, x)
    assert found.is_complete
    for root in scanned(formula):
        assert any(float(z.lower) - 1e-6 <= root <= float(z.upper) + 1e-6 for z in found.zeros), root
    places = [float(z.value if z.value is not None else (z.lower + z.upper) / 2) for z in found.zeros]
    assert np.abs(numeric(formula)(np.array(places))).max(initial=0.0) < 1e-9
    ends = np.array([-20.0, *places, 20.0])
    assert np.sign(numeric(formula)((ends[1:] + ends[:-1]) / 2)).tolist() == list(found.signs)


@pytest.mark.slow
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=4, unique=True), st.integers(0, 3), st.integers(1, 3))
def test_zeros_that_were_put_in_are_found(places: list[int], kind: int, power: int) -> None:
    """Products of tanh(x - k), one factor to a power, times something positive."""
    positive = (sp.exp(-x), sigmoid(x), 1 / (1 + x**2), sp.S.One)[kind]
    formula = positive * sp.Mul(*(sp.tanh(x - k) for k in places[1:])) * sp.tanh(x - places[0]) ** power
    found = line_zeros(formula, x)
    assert [zero.value for zero in found.zeros] == sorted(places)
    assert found.is_complete


def test_a_zero_of_higher_order_is_the_only_one_near() -> None:
    found = line_zeros(sp.sin(x) - x + x**3 / 6, x)
    assert [zero.value for zero in found.zeros] == [0]
    assert found.signs == (-1, 1)


def test_enclosures_are_narrow() -> None:
    (zero,) = line_zeros(x / sp.sqrt(1 + x**2) - sp.Rational(1, 3), x).zeros
    assert abs(float(zero.lower) - 8**-0.5) < 1e-12
    assert zero.upper - zero.lower < sp.Rational(1, 10**30)


def test_near_zeros_are_told_apart_and_near_misses_are_none() -> None:
    small = sp.Rational(1, 10**6)
    assert len(line_zeros(sp.cosh(x).rewrite(sp.exp) - 1 - small, x).zeros) == 2
    assert line_zeros(sp.cosh(x).rewrite(sp.exp) - 1 + small, x).zeros == ()


def test_waves_are_searched_in_reach_and_have_a_period() -> None:
    found = line_zeros(sp.sin(x), x, (sp.Integer(-10), sp.Integer(10)))
    assert [zero.value for zero in found.zeros] == [k * sp.pi for k in range(-3, 4)]
    assert not found.is_complete
    assert period(sp.sin(x / 2) + sp.cos(x / 3), x) == 12 * sp.pi
    assert period(sp.sin(x) * x, x) is None
    assert period(sp.sin(x**2), x) is None


def test_touching_zeros_without_closed_form_are_reported_as_gaps() -> None:
    found = line_zeros((sp.cos(x) - x) ** 2 + (sp.cos(x) - x) ** 4, x)
    assert found.zeros or found.gaps
    assert all(abs(sum(gap) / 2 - 0.739085) < 1e-3 for gap in found.gaps)
