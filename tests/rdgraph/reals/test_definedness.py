"""Conditions under which formulas are real numbers, against their values in complex arithmetic."""

from __future__ import annotations

import cmath

import pytest
import sympy as sp

from rdgraph.reals.branches import is_defined
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import holds
from rdgraph.reals.regions import defining_conditions
from rdgraph.vocabulary.functions import softplus

X = sp.Symbol("x", real=True)
Y = sp.Symbol("y", positive=True)


def is_real(expression: sp.Expr, value: sp.Rational) -> bool:
    """Whether the value of an expression in complex numbers is finite and real."""
    number = expression.subs(X, value)
    if number.has(sp.zoo, sp.nan, sp.oo):
        return False
    return abs(cmath.phase(complex(number) ** 2)) < 1e-9 or complex(number) == 0


@pytest.mark.parametrize(
    "expression",
    [
        sp.sqrt(X - 1), 1 / sp.sqrt(X - 1), 1 / X, X ** sp.Rational(-3, 2), sp.log(X + 1),
        sp.acos(1 / X), sp.asin(X - 1), sp.atanh(X / 2), sp.acosh(X), sp.LambertW(X), sp.LambertW(X / 8, -1),
        sp.sqrt(1 - sp.sqrt(X)), sp.atan(X), sp.sinh(X) / (X**2 + 1), 1 / (sp.sqrt(X) - 1), sp.log(-1 / X),
    ],
    ids=str,
)  # fmt: skip
def test_conditions_hold_where_the_value_is_real(expression: sp.Expr) -> None:
    conditions = defining_conditions(expression)
    values = [sp.Rational(k, 4) for k in range(-17, 18)]
    held = [all(holds(c, {X: v}) is True for c in conditions) for v in values]
    assert held == [is_real(expression, v) for v in values]


def test_smooth_formulas_have_no_root_of_zero() -> None:
    assert defining_conditions(sp.sqrt(X)) == (sp.Ge(X, 0, evaluate=False),)
    assert defining_conditions(sp.sqrt(X), smooth=True) == (sp.Gt(X, 0, evaluate=False),)
    assert defining_conditions(sp.sqrt(Y) / Y + softplus(X)) == ()


def test_what_is_unknown_is_never_defined() -> None:
    assert not is_defined(sp.gamma(Y), Domain())
    assert not is_defined(sp.log(-1 / Y), Domain())
    assert not is_defined(sp.acos(1 / Y), Domain())
    assert is_defined(sp.acos(1 / Y), Domain((Y > 2,)))
    assert is_defined(sp.log(Y) + sp.atan(X), Domain())
