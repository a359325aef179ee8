"""Canonical forms of elementwise functions: values kept, dependent functions equal, independence with its reason."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.language.normal_form import H0, Act, Algebra, H, Mix
from rdgraph.language.tree import Kind
from rdgraph.systems.canonical.cancelled_parts import where_defined
from rdgraph.systems.canonical.function_identities import canonical, is_zero, vanishes
from rdgraph.vocabulary.functions import relu, sigmoid, softplus
from tests.property_examples import examples

ALPHA, BETA = sp.symbols("alpha beta", positive=True)
M = sp.Symbol("M", real=True)
ALGEBRA = Algebra({"M": M}, {"alpha": Kind.SCALAR, "beta": Kind.SCALAR, "M": Kind.NODE})
FUNCTIONS: tuple[Any, ...] = (sp.tanh, sp.exp, sp.Abs, sp.sin, sp.cos, relu, sigmoid, softplus, sp.sqrt)
HIGH_PRECISION: dict[Any, Callable[[Any], Any]] = {
    sp.tanh: mpmath.tanh,
    sp.exp: mpmath.exp,
    sp.Abs: abs,
    sp.sin: mpmath.sin,
    sp.cos: mpmath.cos,
    relu: lambda x: max(x, mpmath.mpf(0)),
    sigmoid: lambda x: 1 / (1 + mpmath.exp(-x)),
    softplus: lambda x: mpmath.log(1 + mpmath.exp(x)),
}


class Undefined(Exception):
    """The point lies outside the domain of the expression, or its values are too large to compare."""


def value(e: Any, point: dict[sp.Symbol, Any]) -> Any:
    """An expression in 60 digits, by its tree alone."""
    if e.is_Rational:
        return mpmath.mpf(int(e.p)) / int(e.q)
    if e == sp.E:
        return mpmath.e + 0
    if e.is_Symbol:
        return point[e]
    parts = [value(a, point) for a in e.args]
    if isinstance(e, sp.Add):
        result = mpmath.fsum(parts)
    elif isinstance(e, sp.Mul):
        result = mpmath.fprod(parts)
    elif isinstance(e, sp.Pow):
        base, power = parts
        if (base < 0 and not e.exp.is_Integer) or (base == 0 and power < 0):
            raise Undefined
        result = mpmath.power(base, power)
    else:
        result = HIGH_PRECISION[e.func](parts[0])
    if abs(result) > 1e30:
        raise Undefined
    return result


# ---------------------------------------------------------------------- values are kept
LEAVES = st.sampled_from([H, H0, ALPHA, BETA, M, sp.Integer(1), sp.Rational(1, 2), sp.Integer(-2)])


def _grown(inner: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    call = st.builds(lambda f, x: f(x), st.sampled_from(FUNCTIONS), inner)
    total = st.builds(lambda q, a, b: q * a + b, st.sampled_from([1, -1, 2, sp.Rational(1, 3)]), inner, inner)
    product = st.builds(lambda a, b: a * b, inner, inner)
    quotient = st.builds(lambda a, b: a / (1 + b**2), inner, inner)
    return call | call | total | product | quotient


EXPRESSIONS = st.recursive(LEAVES, _grown, max_leaves=4)
POINTS = st.fixed_dictionaries(
    {
        H: st.fractions(-3, 3, max_denominator=16),
        H0: st.fractions(-3, 3, max_denominator=16),
        ALPHA: st.fractions(Fraction(1, 8), 3, max_denominator=16),
        BETA: st.fractions(Fraction(1, 8), 3, max_denominator=16),
        M: st.sampled_from([Fraction(0), Fraction(1)]),
    }
)


@settings(max_examples=examples(50))
@given(EXPRESSIONS, st.lists(POINTS, min_size=4, max_size=4))
def test_the_form_has_the_value_of_the_expression(expression: sp.Expr, points: list[dict[sp.Symbol, Fraction]]) -> None:
    assume(expression.is_real is not False and not expression.has(sp.I, sp.zoo, sp.nan))
    try:
        form = canonical(expression, ALGEBRA).expression
    except NotApplicable:
        assume(False)
    with mpmath.workdps(60):
        for point in points:
            numbers = {x: mpmath.mpf(q.numerator) / q.denominator for x, q in point.items()}
            try:
                expected, got = value(expression, numbers), value(form, numbers)
            except Undefined:
                continue
            assert abs(expected - got) <= mpmath.mpf(10) ** -25 * (1 + abs(expected))


@settings(max_examples=examples(25))
@given(EXPRESSIONS)
def test_an_expression_less_its_form_vanishes(expression: sp.Expr) -> None:
    assume(not expression.has(sp.I, sp.zoo, sp.nan))
    try:
        form = canonical(expression, ALGEBRA)
        difference = canonical(expression - form.expression, ALGEBRA)
    except NotApplicable:
        assume(False)
    assume(not form.obstacle)
    assert difference.numerator == 0


# ---------------------------------------------------------------------- identities
IDENTITIES = [
    ("relu(H) - relu(-H)", "H"),
    ("relu(H) + relu(-H)", "abs(H)"),
    ("abs(-3*H)", "3*abs(H)"),
    ("abs(H)*abs(H0)", "abs(H*H0)"),
    ("abs(H)**3", "H**2*abs(H)"),
    ("sqrt(H**2)", "abs(H)"),
    ("sqrt(H**4 + 2*H**2 + 1)", "H**2 + 1"),
    ("sqrt(8*exp(H))", "2*sqrt(2)*exp(H/2)"),
    ("1/(1 + sqrt(exp(H)))", "(1 - exp(H/2))/(1 - exp(H))"),
    ("2*sigmoid(2*H) - 1", "tanh(H)"),
    ("sigmoid(H) + sigmoid(-H)", "H/H"),
    ("tanh(2*H)*(1 + tanh(H)**2)", "2*tanh(H)"),
    ("tanh(H + H0)*(1 + tanh(H)*tanh(H0))", "tanh(H) + tanh(H0)"),
    ("exp(H/2)**2*exp(-H)*H", "H"),
    ("exp(tanh(H))", "exp(1)*exp(-2/(exp(2*H) + 1))"),
    ("softplus(H) - softplus(-H)", "H"),
    ("exp(softplus(H))", "1 + exp(H)"),
    ("sin(H)**2 + cos(H)**2", "H/H"),
    ("sin(5*H/3)", "16*sin(H/3)**5 - 20*sin(H/3)**3 + 5*sin(H/3)"),
    ("sin(H - H0)", "sin(H)*cos(H0) - cos(H)*sin(H0)"),
    ("cos(tanh(-H))", "cos(tanh(H))"),
    ("tanh(M*H)", "M*tanh(H)"),
    ("cos(M*H)", "1 - M + M*cos(H)"),
    ("exp(M)*H", "H + (exp(1) - 1)*M*H"),
    ("relu(M*H - M)", "M*relu(H - 1)"),
    ("A@relu(H)", "(A@H + A@abs(H))/2"),
    ("A@relu(A@H)@W", "(A@A@H + A@abs(A@H))@W/2"),
    ("A@sigmoid(H) + A@sigmoid(-H)", "A@(H/H)"),
    ("A@(beta*tanh(M*H)/alpha)", "beta/alpha*A@(M*tanh(H))"),
    ("A@abs(tanh(H))", "A@tanh(abs(H))"),
    ("abs(tanh(L@H))", "tanh(abs(H - A@H))"),
    ("A@tanh(abs(A@tanh(abs(H))))", "A@abs(tanh(A@abs(tanh(H))))"),
]
#: Functions of an absolute value with one form for both, so that sums of them with coefficients are compared, too.
SIGNED = [
    ("abs(tanh(H))", "tanh(abs(H))"),
    ("abs(tanh(5*H))", "tanh(5*abs(H))"),
    ("abs(tanh(tanh(3*H)))", "tanh(tanh(3*abs(H)))"),
    ("abs(tanh(alpha*H - alpha*H0))", "tanh(alpha*abs(H - H0))"),
    ("abs(H*tanh(H))", "H*tanh(H)"),
    ("relu(tanh(H))", "tanh(relu(H))"),
    ("relu(exp(H) - 1)", "exp(relu(H)) - 1"),
    ("abs(exp(2*H) - exp(H0))", "(exp(2*H) - exp(H0))*abs(2*H - H0)/(2*H - H0)"),
    ("abs(sigmoid(H) - 1/2)", "sigmoid(abs(H)) - 1/2"),
    ("softplus(2*abs(H))", "softplus(2*H) - H + abs(H)"),
    ("cos(abs(H) + H0)", "cos(H)*cos(H0) - sin(abs(H))*sin(H0)"),
    ("H*sin(abs(H))", "abs(H)*sin(H)"),
    ("exp(abs(H)*abs(H0))", "exp(abs(H*H0))"),
    ("tanh(H*abs(H))*abs(H)", "H*tanh(H**2)"),
]


@pytest.mark.parametrize(("first", "second"), IDENTITIES + SIGNED)
def test_dependent_functions_become_equal(first: str, second: str) -> None:
    s, t = rd.parse(first), rd.parse(second)
    algebra = Algebra({**s.algebra.symbols, **t.algebra.symbols}, {**s.algebra.kinds, **t.algebra.kinds})
    assert is_zero(where_defined(s.normal - t.normal), algebra)
    assert not is_zero(s.normal - t.normal + H0 / 7, algebra)


@pytest.mark.parametrize(("first", "second"), SIGNED)
def test_functions_of_absolute_values_have_one_form(first: str, second: str) -> None:
    forms = [canonical(rd.parse(text).normal) for text in (first, second)]
    assert forms[0].expression == forms[1].expression


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("abs(sin(H))", "sin(abs(H))"), ("abs(exp(H) - 1)", "exp(abs(H)) - 1"), ("tanh(H*abs(H))", "tanh(H**2)"),
        ("abs(exp(H) - 2)", "(exp(H) - 2)*abs(H)/H"), ("exp(abs(H))", "exp(H)"), ("softplus(abs(H))", "softplus(H)"),
        ("relu(H)", "H"), ("abs(H + 1)", "abs(H) + 1"), ("tanh(2*H)", "2*tanh(H)"), ("sin(2*H)", "2*sin(H)"),
        ("softplus(H)", "relu(H)"), ("sqrt(H**2)", "H"), ("tanh(M*H)", "tanh(H)"), ("A@relu(H)", "relu(A@H)"),
        ("sqrt(exp(H) + 1)", "exp(H/2) + 1"), ("sigmoid(H)", "tanh(H)"), ("cos(H)", "sin(H)"), ("exp(H)", "1 + H"),
    ],
)  # fmt: skip
def test_different_functions_stay_apart(first: str, second: str) -> None:
    s, t = rd.parse(first), rd.parse(second)
    algebra = Algebra({**s.algebra.symbols, **t.algebra.symbols}, {**s.algebra.kinds, **t.algebra.kinds})
    assert vanishes(s.normal - t.normal, algebra) is not True


def test_signs_come_from_the_domain() -> None:
    gap = ALPHA - BETA
    for sign, text in ((1, "beta <= alpha"), (-1, "alpha <= beta")):
        domain = rd.parse("alpha*H + beta*H", assume=text).domain
        for expression in (sp.Abs(gap * H) - sign * gap * sp.Abs(H), relu(gap) - (sign + 1) * gap / 2):
            assert is_zero(expression, ALGEBRA, domain)
            assert not is_zero(expression, ALGEBRA)
        assert is_zero(sp.tanh(sp.sqrt(gap**2) * H) - sign * sp.tanh(gap * H), ALGEBRA, domain)


# ---------------------------------------------------------------------- independence
@pytest.mark.parametrize(
    "expression",
    [
        H + sp.Abs(H) + sp.tanh(H) + sp.sin(H),
        sp.exp(H) + sp.exp(H0) + softplus(H) + softplus(2 * H),
        sp.Abs(H) + sp.Abs(H0 - 1),
        sp.exp(1 / (1 + H**2)) + sp.exp(H / (1 + H**2)),
        sp.sqrt(2) * H + sp.E * H0,
    ],
)  # fmt: skip
def test_generators_known_to_be_independent(expression: sp.Expr) -> None:
    form = canonical(expression)
    assert form.obstacle == ""
    assert form.is_independent


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (sp.exp(H / 1000) + sp.exp(997 * H), "common unit"),
        (sp.exp(1 / (1 + H)) + sp.exp(1 / (1 + H) ** 2), "denominators"),
        (sp.exp(softplus(H) / 2), "roots of 1 \\+ exp"),
        (softplus(sp.S.One) * H, "constant"),
        (sp.Abs(sp.sqrt(H) - 1), "inside"),
        (sp.sinh(H), "nothing is known"),
    ],
)
def test_reasons_why_independence_is_not_claimed(expression: sp.Expr, reason: str) -> None:
    form = canonical(expression)
    assert not form.is_independent
    assert re.search(reason, form.obstacle)


def test_absolute_values_that_share_a_letter_are_not_claimed_independent() -> None:
    """abs(h) + abs(h + 1) - abs(abs(h) + ...) know each other's signs: h > 0 implies h + 1 > 0."""
    assert not canonical(sp.Abs(H) + sp.Abs(H + 1)).is_independent


def test_coefficients_are_collected_over_the_generators() -> None:
    form = canonical(ALPHA * sigmoid(2 * H) - BETA * (1 + sp.tanh(H)))
    assert form.collected([ALPHA, BETA]) == {sp.exp(2 * H): ALPHA - 2 * BETA}
    bound = canonical(ALPHA * sp.exp(BETA * H) + BETA * H)
    assert bound.collected([ALPHA, BETA]) == {sp.exp(BETA * H): ALPHA, H: BETA}


def test_atoms_keep_their_kinds() -> None:
    A, W = sp.symbols("A W")
    form = canonical(Act((A,), BETA * relu(H)) + Mix((W,), M * sp.Abs(H)), ALGEBRA)
    assert form.expression.expand() == sp.expand(
        BETA / 2 * (Act((A,), H) + Act((A,), sp.Abs(H))) + M * Mix((W,), sp.Abs(H))
    )


def test_what_is_defined_nowhere_is_refused() -> None:
    with pytest.raises(NotApplicable, match="not defined anywhere"):
        canonical(1 / (sp.sin(H) ** 2 + sp.cos(H) ** 2 - 1))


def test_functions_of_a_collected_state_are_collected_again() -> None:
    """Under an operator, denominators hold atoms of the same operator, one level deeper."""
    x, y, both = (rd.parse(f"A@({t})").normal for t in ("A@H/(1 + A@H)", "A@H/(1 - A@H)", "2*(A@H)/(1 - (A@H)**2)"))
    algebra = rd.parse("A@H").algebra
    assert vanishes(x + y - both, algebra) is True
    assert vanishes(x - y, algebra) is None
    assert canonical(x, algebra).obstacle
    assert not canonical(rd.parse("A@((A@H)**2) - A@(A@H)").normal, algebra).obstacle


def test_long_addition_theorems_are_not_written_out() -> None:
    """sin(19 x + 19 y) has 400 products; where they are not written out, nothing is claimed of it."""
    start = time.process_time()
    assert vanishes(sp.sin(19 * H + 19 * H0) - sp.sin(19 * H0 + 19 * H)) is True
    assert vanishes(sp.sin(19 * H + 19 * H0) - sp.sin(18 * H + 19 * H0)) is None
    assert time.process_time() - start < 2
    assert vanishes(sp.sin(2 * H + H0) - sp.sin(2 * H) * sp.cos(H0) - sp.cos(2 * H) * sp.sin(H0)) is True
