"""Slopes on both sides of a place, against differences."""

from __future__ import annotations

import pytest
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.branches import sided_slope
from rdgraph.reals.domain import Domain
from rdgraph.vocabulary.functions import relu

X = sp.Symbol("x", real=True)
A, B = sp.symbols("a b", positive=True)
C = sp.Symbol("c", real=True)


@pytest.mark.parametrize(
    ("formula", "place"),
    [
        (sp.Abs(X), 0), (sp.Abs(X), 2), (relu(A * X) - B * X, 0), (relu(-X), 0), (relu(X) - relu(-X), 0),
        (X * sp.Abs(X), 0), (relu(relu(X)), 0), (sp.Abs(X - 1) * X**2, 1), (relu(X - A) + relu(X), 0),
        (sp.Abs(2 - B * X), 2 / B), (relu(X) * relu(-X), 0), (sp.tanh(sp.Abs(3 * X)), 0), (sp.Abs(sp.Abs(X) - 1), 1),
    ],
    ids=str,
)  # fmt: skip
def test_slopes_agree_with_differences(formula: sp.Expr, place: sp.Expr) -> None:
    found = sided_slope(sp.diff(formula, X), X, sp.sympify(place), Domain())
    numbers, step = {A: sp.Rational(3, 2), B: sp.Rational(5, 4)}, sp.Rational(1, 10**8)
    at = sp.sympify(place).subs(numbers)
    values = [float(formula.subs(numbers).subs(X, at + k * step)) for k in (-1, 0, 1)]
    below, above = (float(side.subs(numbers)) for side in (found.below, found.above))
    assert below == pytest.approx((values[1] - values[0]) / float(step), abs=1e-5)
    assert above == pytest.approx((values[2] - values[1]) / float(step), abs=1e-5)
    assert found.agree == (abs(below - above) < 1e-9)


def test_a_jump_that_may_be_there_or_not_is_undecided() -> None:
    with pytest.raises(Undecided, match="on which side of its jump"):
        sided_slope(sp.diff(sp.Abs(X - C), X), X, sp.S.Zero, Domain())
    with pytest.raises(Undecided, match="on which side of its jump"):
        sided_slope(sp.diff(sp.Abs(C * X), X), X, sp.S.Zero, Domain())
    assert sided_slope(sp.diff(sp.Abs(X - C), X), X, sp.S.Zero, Domain((C > 1,))).above == -1
