"""Enclosures function by function, undefined values, branches, and the three-valued truth of conditions."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import sympy as sp
from flint import ctx

from rdgraph.reals.enclosure import NotEnclosed, bounds, enclose, holds, sign_of, touches_zero
from rdgraph.vocabulary.functions import relu, sigmoid, softplus
from tests.naming import shown

X, Y = sp.symbols("x y", real=True)
#: Zero, but no enclosure can tell.
HIDDEN_ZERO = sp.sin(sp.S(1)) ** 2 + sp.cos(sp.S(1)) ** 2 - 1


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (sp.exp, math.exp), (sp.log, math.log), (sp.tanh, math.tanh), (sp.sin, math.sin), (sp.cos, math.cos),
        (sp.tan, math.tan), (sp.atan, math.atan), (sp.asin, math.asin), (sp.acos, math.acos), (sp.atanh, math.atanh),
        (sp.sinh, math.sinh), (sp.cosh, math.cosh), (sigmoid, lambda x: 1 / (1 + math.exp(-x))),
        (softplus, lambda x: math.log1p(math.exp(x))), (sp.LambertW, lambda x: 0.3517337112491958),
    ],
    ids=shown,
)  # fmt: skip
def test_functions_are_enclosed(function: Callable[[sp.Expr], sp.Expr], value: Callable[[float], float]) -> None:
    ball = enclose(function(sp.Rational(1, 2)), 128)
    assert float(ball.mid()) == pytest.approx(value(0.5), rel=1e-15)
    assert ball.rad() < 1e-30


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (sp.Abs(X), 0.75), (relu(X), 0.0), (relu(-X), 0.75), (sp.sign(X), -1.0), (sp.sign(-X), 1.0),
        (sp.sign(X - X), 0),
        (sp.Heaviside(X), 0.0), (sp.Heaviside(-X), 1.0), (sp.Max(X, 2 * X), -0.75), (sp.Min(X, 2 * X, -1), -1.5),
        (softplus(40 * X), math.log1p(math.exp(-30))), (sigmoid(X), 1 / (1 + math.exp(0.75))), (X**3, -0.421875),
        (X**-2, 1 / 0.5625), (sp.sqrt(-X), math.sqrt(0.75)), (1 / sp.sqrt(-X), 1 / math.sqrt(0.75)),
        ((-X) ** sp.Rational(1, 3), 0.75 ** (1 / 3)), ((-X) ** sp.pi, 0.75**math.pi), (sp.pi * X, -0.75 * math.pi),
        (X + sp.E, math.e - 0.75), (sp.Piecewise((1, X > 0), (2, X > -1), (3, True)), 2.0),
        (sp.CRootOf(Y**5 - Y - 1, 0) + X, 1.1673039782614187 - 0.75),
    ],
    ids=shown,
)  # fmt: skip
def test_expressions_are_enclosed(expression: sp.Expr, value: float) -> None:
    """At x = -3/4, which is not put in by sympy but stands inside an unevaluated number."""
    number = expression.xreplace({X: sp.Rational(-3, 4)})
    lower, upper = bounds(number)
    assert lower <= upper
    assert float(lower) == pytest.approx(value, rel=1e-14)
    assert upper - lower < sp.Rational(1, 10**30)


def test_steps_at_zero_and_about_it() -> None:
    """Zero at zero; where zero cannot be separated the ball contains both values."""
    assert enclose(sp.sign(sp.S.Zero, evaluate=False)) == 0
    both = enclose(sp.sign(HIDDEN_ZERO, evaluate=False))
    assert both.contains(-1)
    assert both.contains(1)
    assert not both.contains(1.25)
    assert not both.contains(-1.25)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (sp.log(sp.S(-1), evaluate=False), "not a finite real number"),
        (sp.Pow(sp.S.Zero, -1, evaluate=False), "not a finite real number"),
        (sp.sqrt(-sp.pi), "not a finite real number|no enclosure"),
        (sp.gamma(sp.Rational(1, 3)), r"no enclosure for gamma\(1/3\)"),
        (sp.atan2(sp.Rational(1, 3), sp.pi, evaluate=False), "no enclosure"),
        (sp.Symbol("a"), "no enclosure for a"),
        (sp.CRootOf(Y**3 - Y - 1, 1), "is not real"),
        (sp.Pow(-sp.pi, sp.Rational(1, 3), evaluate=False), "a base that may be zero or negative"),
        (sp.Pow(HIDDEN_ZERO, sp.Rational(1, 3), evaluate=False), "a base that may be zero or negative"),
        (sp.Piecewise((sp.S.One, sp.Gt(HIDDEN_ZERO, 0, evaluate=False)), (sp.S(2), True)), "cannot tell whether"),
        (sp.Piecewise((sp.S.One, sp.Gt(sp.pi, 4, evaluate=False)), evaluate=False), "no branch applies"),
    ],
    ids=shown,
)
def test_what_has_no_enclosure(expression: sp.Expr, reason: str) -> None:
    with pytest.raises(NotEnclosed, match=reason):
        enclose(expression)


def test_the_precision_is_put_back() -> None:
    before = ctx.prec
    enclose(sp.pi, 999)
    with pytest.raises(NotEnclosed):
        bounds(sp.log(sp.S(-1), evaluate=False), 77)
    assert ctx.prec == before
    lower, upper = bounds(sp.pi, 300)
    assert 0 < upper - lower < sp.Rational(1, 2**290)
    assert enclose(sp.pi, 300).rad() < 2.0**-290
    assert enclose(sp.pi).rad() > 2.0**-70


def test_signs() -> None:
    assert [sign_of(v) for v in (sp.Rational(-1, 3), sp.S.Zero, sp.Integer(7))] == [-1, 0, 1]
    assert sign_of(X - 2, {X: sp.pi}) == 1
    assert sign_of(sp.exp(X) - 3, {X: sp.S.One}) == -1
    assert sign_of(HIDDEN_ZERO) is None
    assert sign_of(sp.gamma(sp.Rational(1, 3))) is None
    assert sign_of(HIDDEN_ZERO + sp.Rational(1, 2**200)) == 1, "told by the second precision"
    assert sign_of(HIDDEN_ZERO - sp.Rational(1, 2**900)) == -1, "told by the third"
    assert sign_of(HIDDEN_ZERO - sp.Rational(1, 2**1500)) is None
    assert sign_of(sp.sign(sp.S.Zero, evaluate=False) * sp.pi) == 0


def test_numbers_that_touch_zero() -> None:
    assert touches_zero(HIDDEN_ZERO)
    assert not touches_zero(HIDDEN_ZERO + sp.Rational(1, 2**900))
    assert touches_zero(HIDDEN_ZERO + sp.Rational(1, 2**1500))
    assert not touches_zero(sp.log(sp.S(-1), evaluate=False)), "what has no enclosure touches nothing"


RELATIONS = (sp.Gt, sp.Ge, sp.Lt, sp.Le, sp.Eq, sp.Ne)


@pytest.mark.parametrize(
    ("value", "truth"),
    [
        (sp.S(2), (True, True, False, False, False, True)),
        (sp.S.One, (False, True, False, True, True, False)),
        (sp.S.Zero, (False, False, True, True, False, True)),
    ],
)
def test_relations_at_a_point(value: sp.Expr, truth: tuple[bool, ...]) -> None:
    assert tuple(holds(r(X, 1, evaluate=False), {X: value}) for r in RELATIONS) == truth


def test_truth_has_three_values() -> None:
    unknown, yes, no = (
        sp.Gt(HIDDEN_ZERO, 0, evaluate=False),
        sp.Gt(sp.pi, 3, evaluate=False),
        sp.Lt(X, X - 1, evaluate=False),
    )
    assert (holds(unknown), holds(yes), holds(no, {X: sp.S.One})) == (None, True, False)
    at = {X: sp.S.One}
    assert holds(sp.And(unknown, yes, evaluate=False), at) is None
    assert holds(sp.And(unknown, no, evaluate=False), at) is False
    assert holds(sp.Or(unknown, yes, evaluate=False), at) is True
    assert holds(sp.Or(unknown, no, evaluate=False), at) is None
    assert holds(sp.And(yes, yes, evaluate=False), at) is True
    assert holds(sp.Or(no, no, evaluate=False), at) is False
    assert holds(sp.Not(unknown, evaluate=False)) is None
    assert holds(sp.Not(yes, evaluate=False)) is False
    assert (holds(sp.true), holds(sp.false)) == (True, False)


def test_agreement_to_the_last_digit_counts_only_where_it_is_asked_for() -> None:
    at = {X: sp.S.One}
    zero = sp.sin(X) ** 2 + sp.cos(X) ** 2 - 1
    equal, above = sp.Eq(zero, 0, evaluate=False), sp.Gt(zero, 0, evaluate=False)
    assert holds(equal, at) is None
    assert holds(equal, at, to_the_last_digit=False) is True
    assert holds(above, at, to_the_last_digit=False) is False
    assert holds(sp.And(equal, sp.Gt(X, 0), evaluate=False), at, to_the_last_digit=False) is True
    assert holds(sp.Not(equal, evaluate=False), at, to_the_last_digit=False) is False
    assert holds(sp.Ge(sp.log(X - 2), 0, evaluate=False), at, to_the_last_digit=False) is None
