"""Enclosures far out, against mpmath at numbers beyond their start."""

from __future__ import annotations

import pytest
import sympy as sp
from flint import arb

from rdgraph.reals.enclosure import NotEnclosed, enclose_at, precision
from rdgraph.reals.line_pieces import CONSTANT, tail
from tests.rdgraph.reals.real_functions import KINKED, SMOOTH, digits, x

FUNCTIONS = [*SMOOTH, *KINKED, x * sp.cos(1 / x) - x, sp.exp(-sp.exp(x)), sp.sqrt(x**4 + x) - x**2, sp.tanh(1 / x) * x,
             sp.tanh(x - x**3), x**2 * (1 - sp.tanh(x**4 - x**3) ** 2), x**5 * sp.exp(9 * x**2 - x**3)]  # fmt: skip


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("formula", FUNCTIONS, ids=str)
def test_values_beyond_the_start_lie_in_the_sum_of_balls(formula: sp.Expr, way: int) -> None:
    turned = formula.xreplace({x: way * x})
    for start in (2, 32):
        with precision(160):
            try:
                found = tail(turned, x, sp.Integer(start))
            except NotEnclosed:
                continue
            for factor in (1, 1.25, 5):
                place = sp.Rational(start) * sp.Rational(factor)
                total = enclose_at(sp.S.Zero, {})
                for (*exponents, p), ball in found.terms.items():
                    exponent = sp.Poly([*exponents, 0], x).eval(place)
                    total += ball * enclose_at(sp.exp(exponent) * place**p, {})
                told = digits(formula, way * place)
                exact = arb(told, abs(arb(told)) * arb("1e-40") + arb("1e-60"))
                assert total.overlaps(exact), (place, total, told)
                if found.sign:
                    assert (exact > 0) == (found.sign > 0) or exact.contains(0)


@pytest.mark.parametrize(
    ("formula", "start", "is_known"),
    [
        (sp.exp(20 * x**2 - x**3), 13, False),  # rises up to 40/3
        (sp.exp(20 * x**2 - x**3), 14, True),
        (x**5 * sp.exp(-(x**3)), 1, False),  # rises up to (5/3)^(1/3)
        (x**5 * sp.exp(-(x**3)), 2, True),
        (x**2 * (1 - sp.tanh(x - x**3) ** 2), 32, True),
        (sp.exp(x**4 - x**6), 1, True),
    ],
    ids=str,
)
def test_what_falls_from_the_start_on_is_enclosed_and_nothing_else(
    formula: sp.Expr, start: int, is_known: bool
) -> None:
    with precision(160):
        found = tail(formula, x, sp.Integer(start))
        if not is_known:
            with pytest.raises(NotEnclosed):
                _ = found.values
            return
        for factor in (1, 1.1, 3):
            place = sp.Rational(start) * sp.Rational(factor)
            assert found.values.overlaps(enclose_at(formula.subs(x, place), {}))


@pytest.mark.parametrize("formula", [sp.sin(x), sp.sin(x) + sp.Rational(1, 2)], ids=str)
def test_waves_have_no_sign(formula: sp.Expr) -> None:
    with precision(128):
        assert tail(formula, x, sp.Integer(8)).sign is None


def test_limits_are_told_exactly() -> None:
    with precision(128):
        found = tail(sp.tanh(x) + 3, x, sp.Integer(4))
        assert found.terms[CONSTANT] == 4
        assert not found.grows
        with pytest.raises(NotEnclosed):
            _ = tail(x**2, x, sp.Integer(4)).values


def test_what_is_not_known_is_refused() -> None:
    with precision(128), pytest.raises(NotEnclosed):
        tail(sp.exp(sp.sin(x) * x), x, sp.Integer(4))
    with precision(128), pytest.raises(NotEnclosed):
        tail(sp.sqrt(-x), x, sp.Integer(4))
