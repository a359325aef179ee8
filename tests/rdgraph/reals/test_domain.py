"""Exact decisions against sampling: a definite answer is never wrong, maxima are maxima, borders are where they are."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rdgraph.errors import AssumptionError, Undecided
from rdgraph.reals.domain import Domain, Sign
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum, rational_candidates
from tests.property_examples import examples

SIGNS = ("positive", "negative", "nonnegative", "nonpositive", "real")
#: What a sampled value may be under each answer.
ALLOWED = {
    Sign.POSITIVE: {1}, Sign.NONNEGATIVE: {0, 1}, Sign.ZERO: {0}, Sign.NONPOSITIVE: {0, -1}, Sign.NEGATIVE: {-1},
    Sign.BOTH: {-1, 0, 1}, Sign.UNKNOWN: {-1, 0, 1},
}  # fmt: skip
#: Values of a letter, dense near 0 and with its end where it belongs to the range.
SIZES = [
    sp.Rational(n, d)
    for n, d in ((1, 1000), (1, 7), (1, 3), (1, 2), (2, 3), (1, 1), (3, 2), (2, 1), (3, 1), (9, 2), (40, 1))
]
X = sp.Symbol("x", real=True)


def letter(name: str, sign: str) -> sp.Symbol:
    return sp.Symbol(name, real=True) if sign == "real" else sp.Symbol(name, **{sign: True})


def values_of(x: sp.Symbol) -> list[sp.Expr]:
    found = [] if x.is_positive or x.is_negative else [sp.S.Zero]
    if not x.is_nonpositive:
        found += SIZES
    if not x.is_nonnegative:
        found += [-v for v in SIZES]
    return found


@st.composite
def polynomials(draw: Any, letters: int, degree: int = 3, terms: int = 4) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    symbols = tuple(letter(name, draw(st.sampled_from(SIGNS))) for name in "abc"[:letters])
    total = sp.S.Zero
    for _ in range(draw(st.integers(1, terms))):
        powers = [draw(st.integers(0, degree)) for _ in symbols]
        total += draw(st.integers(-4, 4)) * sp.Mul(*(x**k for x, k in zip(symbols, powers, strict=True)))
    return sp.expand(total), symbols


@st.composite
def domains(draw: Any, symbols: tuple[sp.Symbol, ...]) -> Domain:
    """Up to two linear constraints between the coefficients."""
    constraints = []
    for _ in range(draw(st.integers(0, 2))):
        first, second = draw(st.sampled_from(symbols)), draw(st.sampled_from(symbols))
        gap = (
            draw(st.sampled_from([1, 2, -1])) * first
            + draw(st.sampled_from([1, -1, -3])) * second
            + draw(st.sampled_from([0, 0, 1]))
        )
        if sp.expand(gap).free_symbols:
            constraints.append(above_zero(sp.expand(gap), draw(st.booleans())))
    return Domain(tuple(constraints))


def above_zero(gap: sp.Expr, strict: bool) -> sp.Basic:
    return (sp.Gt if strict else sp.Ge)(gap, 0, evaluate=False)


def sampled_signs(expression: sp.Expr, symbols: tuple[sp.Symbol, ...], domain: Domain) -> set[int]:
    """Signs that occur on a grid of exact points of the domain."""
    function = sp.lambdify(symbols, [expression, *(c.lhs for c in domain.conditions)], modules="math")
    seen = set()
    points = itertools.product(*([Fraction(int(v.p), int(v.q)) for v in values_of(x)] for x in symbols))
    for point in points:
        value, *gaps = function(*point)
        if all(g > 0 or (g == 0 and isinstance(c, sp.Ge)) for g, c in zip(gaps, domain.conditions, strict=True)):
            seen.add((value > 0) - (value < 0))
    return seen


@settings(max_examples=examples(80))
@given(st.integers(1, 3).flatmap(lambda n: polynomials(n)), st.data())
def test_signs_are_never_wrong(drawn: tuple[sp.Expr, tuple[sp.Symbol, ...]], data: Any) -> None:
    expression, symbols = drawn
    domain = data.draw(domains(symbols))
    seen = sampled_signs(expression, symbols, domain)
    assume(seen)
    try:
        answer = domain.sign(expression)
    except AssumptionError:
        raise AssertionError("the domain has points, yet it was called empty") from None
    assert seen <= ALLOWED[answer], (answer, expression, domain)


@settings(max_examples=examples(60))
@given(polynomials(1, degree=4, terms=5), st.data())
def test_one_letter_is_always_decided(drawn: tuple[sp.Expr, tuple[sp.Symbol, ...]], data: Any) -> None:
    """Polynomials are decided completely: never "unknown", and "both" only where both occur."""
    expression, (x,) = drawn
    domain = data.draw(domains((x,)))
    assume(sampled_signs(expression, (x,), domain))
    answer = domain.sign(expression)
    assert answer is not Sign.UNKNOWN
    if answer is Sign.BOTH:
        polynomial, step = sp.Poly(expression, x), sp.Rational(1, 10**6)
        near = [sp.Rational(str(sp.N(r, 20))) + e for r in sp.real_roots(polynomial) for e in (step, -step)]
        kept = [v for v in [*values_of(x), *near] if _inside(v, x, domain)]
        assert {1, -1} <= {int(sp.sign(polynomial.eval(v))) for v in kept}, (expression, domain)


def _inside(value: sp.Rational, x: sp.Symbol, domain: Domain) -> bool:
    right = (not x.is_positive or value > 0) and (not x.is_negative or value < 0)
    right = right and (not x.is_nonnegative or value >= 0) and (not x.is_nonpositive or value <= 0)
    gaps = [(c.lhs.subs(x, value), isinstance(c, sp.Gt)) for c in domain.conditions]
    return bool(right and all(g > 0 or (g == 0 and not strict) for g, strict in gaps))


@pytest.mark.parametrize(
    ("text", "signs", "constraints", "expected"),
    [
        ("a - b", "positive positive", [], "+-"),
        ("a - b", "positive negative", [], "+"),
        ("a - b", "nonnegative nonpositive", [], "0+"),
        ("a**2 + b**2", "real real", [], "0+"),
        ("a**2 - 2*a*b + b**2", "positive positive", [], "0+"),
        ("a**2 - a*b + b**2", "positive positive", [], "+"),
        ("a**2 - a*b + b**2", "real real", [], "0+"),
        ("a**3 - b**3", "positive positive", [("a - b", True)], "+"),
        ("a**3 - b**3", "positive positive", [("a - b", False)], "0+"),
        ("a - 2*b", "positive positive", [("b - a", False)], "-"),
        ("a", "real real", [("a - b", True), ("b - 1", False)], "+"),
        ("a*b", "negative negative", [], "+"),
        ("a**2", "real real", [], "0+"),
        ("a**2 + 1", "real real", [], "+"),
        ("a - a", "real real", [], "0"),
        ("1/a - 1/b", "positive positive", [("b - a", True)], "+"),
        ("(a - b)/(a + b)", "positive positive", [], "+-"),
        ("a - sqrt(2)", "positive positive", [("a - 3", False)], "+"),
        ("sqrt(a**2 + b**2) - a", "positive positive", [], "+"),
        ("sqrt(-1 - a)", "positive positive", [], "?"),
        ("a/(b - b)", "positive positive", [], "?"),
        ("a**2*b - 3*a*b + 3*b", "real positive", [], "+"),
        ("Abs(a) - a", "real real", [], "0+"),
        ("Max(a, b) - Min(a, b)", "real real", [("a - b", True)], "+"),
        ("exp(a) - 1 - a", "real real", [], "0+"),
        ("exp(a) - 1", "positive real", [], "+"),
        ("tanh(a) - 1", "real real", [], "-"),
        ("sin(a)*cos(a) - 1/2", "real real", [], "0-"),
        ("a*b - pi", "positive positive", [("3 - a*b", False)], "-"),
    ],
)
def test_known_signs(text: str, signs: str, constraints: list[tuple[str, bool]], expected: str) -> None:
    a, b = (letter(name, sign) for name, sign in zip("ab", signs.split(), strict=True))
    names = {"a": a, "b": b}
    domain = Domain(tuple(above_zero(sp.sympify(c, locals=names), strict) for c, strict in constraints))
    assert domain.sign(sp.sympify(text, locals=names)) is Sign(expected)


def test_impossible_assumptions_are_refused() -> None:
    a = letter("a", "positive")
    with pytest.raises(AssumptionError, match="contradict each other: no values satisfy -a - 1 >= 0 with"):
        Domain((above_zero(-a - 1, False), above_zero(a - 2, False))).check()


# ---------------------------------------------------------------------- maxima
@st.composite
def families(draw: Any, letters: int) -> tuple[sp.Expr, tuple[sp.Symbol, ...], bool]:
    """A polynomial in x of degree <= 3 with coefficients that are linear in the symbols."""
    symbols = tuple(letter(name, draw(st.sampled_from(SIGNS[:2] + SIGNS[4:]))) for name in "ab"[:letters])
    homogeneous = letters == 2
    total = sp.S.Zero
    for k in range(draw(st.integers(1, 3)) + 1):
        part = sum((draw(st.integers(-2, 2)) * s for s in symbols), sp.S.Zero)
        total += (part + (0 if homogeneous else draw(st.integers(-2, 2)))) * X**k
    return sp.expand(total), symbols, homogeneous


GRID = np.linspace(-1, 2, 6001)


def grid_maximum(expression: sp.Expr) -> float:
    return float(np.max(sp.lambdify(X, expression)(GRID) * np.ones_like(GRID)))


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(st.integers(1, 2).flatmap(families), st.integers(0, 2**20))
def test_maxima_on_an_interval(drawn: tuple[sp.Expr, tuple[sp.Symbol, ...], bool], seed: int) -> None:
    expression, symbols, _ = drawn
    assume(expression.has(X))
    domain = Domain()
    try:
        found = maximum(interval_candidates(expression, X, sp.Integer(-1), sp.Integer(2), domain), domain)
    except Undecided:
        assume(False)
    generator = np.random.default_rng(seed)
    for _ in range(8):
        point = {s: generator.choice(values_of(s)) for s in symbols}
        best = grid_maximum(expression.subs(point))
        assert float(found.subs(point)) == pytest.approx(best, rel=1e-5, abs=1e-5), (point, found)


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(families(2), st.integers(0, 2**20))
def test_places_of_maxima(drawn: tuple[sp.Expr, tuple[sp.Symbol, ...], bool], seed: int) -> None:
    expression, symbols, _ = drawn
    assume(expression.has(X))
    domain = Domain()
    try:
        place = maximum(interval_candidates(expression, X, sp.Integer(-1), sp.Integer(2), domain), domain, place=True)
    except Undecided:
        assume(False)
    generator = np.random.default_rng(seed)
    for _ in range(8):
        point = {s: generator.choice(values_of(s)) for s in symbols}
        where = float(place.subs(point))
        assert -1 <= where <= 2
        best = grid_maximum(expression.subs(point))
        assert float(expression.subs(point).subs(X, where)) == pytest.approx(best, rel=1e-5, abs=1e-5), point


@cache
def border_cases() -> list[tuple[sp.Expr, sp.Piecewise, tuple[sp.Symbol, sp.Symbol]]]:
    """Families in two positive symbols whose maximum changes its formula."""
    a, b = sp.symbols("a b", positive=True)
    families = [
        b * X * (1 - X) - a * X,
        a * X - b * X**2,
        (a - b) * X + a,
        a * X**3 - b * X,
        b * X**2 - a * X**3 + a,
        (2 * a - b) * X + (b - a) * X**2,
        -a * X**3 + 2 * b * X**2 - a * X,
    ]
    found = []
    for expression in families:
        domain = Domain()
        largest = maximum(interval_candidates(sp.expand(expression), X, sp.Integer(-1), sp.Integer(2), domain), domain)
        found.append((expression, largest, (a, b)))
    return found


@pytest.mark.parametrize("index", range(7))
def test_pieces_are_right_on_both_sides_of_each_border(index: int) -> None:
    expression, found, (a, b) = border_cases()[index]
    borders = []
    if isinstance(found, sp.Piecewise):
        for _, condition in found.args[:-1]:
            assert condition.free_symbols == {a, b}
            borders += sp.solve(condition.lhs.subs(b, 1) - condition.rhs.subs(b, 1), a)
    for border in [*borders, sp.S.One]:
        for nudge in (sp.Rational(-1, 1000), sp.S.Zero, sp.Rational(1, 1000)):
            for scale in (1, sp.Rational(7, 2)):
                point = {a: scale * (border + nudge), b: sp.sympify(scale)}
                best = grid_maximum(expression.subs(point))
                assert float(found.subs(point)) == pytest.approx(best, rel=1e-6, abs=1e-6), point


def test_there_are_borders_to_look_at() -> None:
    assert sum(len(m.args) - 1 for _, m, _ in border_cases() if isinstance(m, sp.Piecewise)) >= 7


@pytest.mark.parametrize("sign", ["positive", "real"])
def test_rational_functions_without_poles(sign: str) -> None:
    a = letter("a", sign)
    expression = (a * X + 1) / (1 + X**2)
    domain = Domain()
    found = maximum(rational_candidates(expression, X, -sp.oo, sp.oo, domain), domain)
    wide = np.tan(np.linspace(-1.5707, 1.5707, 200_001))
    for value in (sp.Rational(1, 3), sp.Integer(2), sp.Integer(5)):
        best = np.max(sp.lambdify(X, expression.subs(a, value))(wide))
        assert float(found.subs(a, value)) == pytest.approx(best, rel=1e-6)


def test_unbounded_ends() -> None:
    a, b = letter("a", "positive"), letter("b", "real")
    domain = Domain()
    assert maximum(interval_candidates(a * X**2, X, -sp.oo, sp.oo, domain), domain) == sp.oo
    assert maximum(interval_candidates(1 - a * X**2, X, -sp.oo, sp.oo, domain), domain) == 1
    with pytest.raises(Undecided, match="assume a sign"):
        interval_candidates(b * X**2, X, -sp.oo, sp.oo, domain)


def test_maximum_of_explicit_candidates() -> None:
    a, b = sp.symbols("a b", positive=True)
    assert maximum([Candidate(a), Candidate(a + b)], Domain()) == a + b
    conditional = maximum([Candidate(sp.S.Zero), Candidate(a - b), Candidate(5 * a, (a - 2 * b,))], Domain())
    for point, expected in (({a: 3, b: 1}, 15), ({a: 2, b: 1}, 10), ({a: 1, b: 1}, 0), ({a: 3, b: 2}, 1)):
        assert conditional.subs(point) == expected
    with pytest.raises(Undecided, match="no candidate"):
        maximum([Candidate(a, (-a,))], Domain())


def test_a_candidate_that_begins_at_a_border_counts_there() -> None:
    a = sp.Symbol("a", positive=True)
    jump = [Candidate(sp.S.One, at=sp.Integer(7)), Candidate(sp.Integer(5), (a - 2,), at=sp.Integer(8))]
    for place, below, above in ((False, 1, 5), (True, 7, 8)):
        found = maximum(jump, Domain(), place=place)
        assert [found.subs(a, value) for value in (1, 2, 3)] == [below, above, above]


def test_three_ratios_leave_a_max() -> None:
    a, b, c = sp.symbols("a b c", positive=True)
    found = maximum([Candidate(a), Candidate(b), Candidate(c)], Domain())
    assert found == sp.Max(a, b, c)
    with pytest.raises(Undecided, match="several ratios"):
        maximum([Candidate(x, at=x) for x in (a, b, c)], Domain(), place=True)
