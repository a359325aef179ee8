"""Suprema on the line, against dense samples; exact ones against their closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from rdgraph.errors import Undecided
from rdgraph.reals.budget import limited
from rdgraph.reals.line_extents import (
    MAX_CELLS,
    RESERVED_SECONDS,
    Extreme,
    in_decimals,
    infimum,
    round_up,
    supremum,
)
from rdgraph.reals.line_pieces import Piece
from rdgraph.vocabulary.functions import relu, sigmoid, softplus
from tests.rdgraph.reals.real_functions import numeric, x

GRID = np.unique(np.concatenate([np.linspace(-40, 40, 40001), np.sinh(np.linspace(-9, 9, 20001))]))


def sampled(formula: sp.Expr) -> float:
    with np.errstate(all="ignore"):
        values = numeric(formula)(GRID)
    return float(np.nanmax(np.where(np.isfinite(values), values, -np.inf)))


REACTIONS = (
    x * sp.exp(-(x**2)), sp.exp(-(x**2)), x * sp.tanh(1 - x), x * sp.tanh(x), sp.tanh(x) * (1 - x),
    x * sigmoid(x), x / sp.sqrt(1 + x**2), sp.sin(x) + sp.cos(x), sp.tanh(sp.sin(x)), sp.sin(x) ** 2, softplus(x),
    sp.sqrt(1 + x**2), x**2 / (1 + x**2), sp.sin(x) * sp.exp(-(x**2)), sp.Abs(x), relu(x) - sp.tanh(x),
    sp.sin(x) / (1 + x**2), sp.tanh(x) ** 2, sp.cos(2 * x) - sp.sin(x),
)  # fmt: skip


@pytest.mark.parametrize("reaction", [relu(x), relu(x) - 2 * relu(-x), sp.Abs(x - 1) + relu(x)], ids=str)
def test_slopes_of_straight_pieces_are_exact(reaction: sp.Expr) -> None:
    slope = sp.diff(reaction, x)
    for found, sign in ((supremum(slope, x), 1), (infimum(slope, x), -1)):
        assert found.exact
        assert found.value.is_Integer
        assert float(found.value) == sign * sampled(sign * slope)


@pytest.mark.parametrize("reaction", REACTIONS, ids=str)
def test_slopes_are_bounded_closely_from_both_sides(reaction: sp.Expr) -> None:
    slope = sp.expand(sp.diff(reaction, x))
    for formula, found in ((slope, supremum(slope, x)), (-slope, supremum(-slope, x))):
        assert sampled(formula) <= float(found.value) + 1e-12
        assert sampled(formula) >= float(found.value) - 2e-4 * (1 + abs(float(found.value)))
    assert infimum(slope, x).value == -supremum(-slope, x).value


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (sp.exp(-(x**2)), 1), (x * sp.exp(-x), sp.exp(-1)), (-sp.exp(x), 0), (1 - sp.Abs(x), 1),
        (relu(x) - x**2, sp.Rational(1, 4)), (x**3, sp.oo), (sp.exp(x) - x**5, sp.oo), (x / (1 + x**2), sp.S.Half),
        (x * sp.Abs(x), sp.oo), (-x * sp.Abs(x), sp.oo), (-x * x * sp.Abs(x), 0),
    ],
)  # fmt: skip
def test_exact_ones(formula: sp.Expr, expected: sp.Expr) -> None:
    found = supremum(formula, x)
    assert found.exact
    assert sp.simplify(found.value - expected) == 0 if expected != sp.oo else found.value == sp.oo


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 3), st.integers(-2, 2)), min_size=1, max_size=3),
    st.sampled_from([sp.tanh, sigmoid, sp.sin]),
)
def test_random_sums_are_never_underestimated(terms: list[tuple[int, int, int]], function: object) -> None:
    formula = sp.Add(*(a * function(b * x + c) / (1 + x**2) for a, b, c in terms))
    if not formula.has(x):
        return
    found = supremum(formula, x)
    assert sampled(formula) <= float(found.value) + 1e-12
    assert sampled(formula) >= float(found.value) - 1e-3


def test_what_is_not_known_far_out_is_undecided() -> None:
    with pytest.raises(Undecided):
        supremum(x * sp.sin(x), x)


def test_bounds_are_shown_on_the_safe_side() -> None:
    bound = supremum(sp.diff(x * sp.tanh(x), x), x).value
    assert sp.Rational(str(in_decimals(bound))) == bound
    assert str(in_decimals(bound * sp.Symbol("a"))) == "1.1997*a"


@pytest.mark.parametrize(
    ("slope", "ends"),
    [
        (sp.diff(sp.tanh(x) + sp.tanh(2 * x), x), (0, 3)),
        (sp.diff(sp.sin(sp.tanh(x)), x), (0, 1)),
        (sp.diff(softplus(sp.Abs(x)), x), (-1, 1)),
    ],
    ids=str,
)
def test_what_comes_near_a_known_value_is_cut_until_it_lies_below(slope: sp.Expr, ends: tuple[int, int]) -> None:
    """A bound of 1e-7 in the place of 0 made a step limit of 20 million of no limit."""
    low, high = map(sp.Integer, ends)
    assert (infimum(slope, x), supremum(slope, x)) == (Extreme(low, True), Extreme(high, True))


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**9))
def test_a_bound_is_rounded_up_to_five_digits(top: int, bottom: int) -> None:
    number = sp.Rational(top, bottom)
    value = round_up(number)
    assert number <= value
    assert value - number <= max(abs(number) / 10**4, sp.Rational(1, 10**7))
    assert value.q == 1 or len(str(abs(int(value * 10**7))).rstrip("0")) <= 6


def test_bounds_that_stay_wide_end_by_a_count_and_not_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    places = 0

    def counted(self: Piece, *given: object) -> object:
        nonlocal places
        places += 1
        return enclosed(self, *given)

    enclosed = Piece.values
    monkeypatch.setattr(Piece, "values", counted)
    nothing = 4 * sp.cos(2 * x) - 4 * sp.cos(x) ** 2 + 4 * sp.sin(x) ** 2  # zero, which intervals see only slowly
    found = supremum(nothing, x)
    assert not found.exact
    assert 0 < found.value < 0.01
    assert 2 * MAX_CELLS <= places <= 2 * MAX_CELLS + 10
    with pytest.raises(Undecided, match="not enclosed closely"):  # without time, the first bound
        limited(RESERVED_SECONDS / 2, supremum, nothing, x)
