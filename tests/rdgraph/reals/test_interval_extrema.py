"""Candidates for extremes on an interval, one kind of polynomial at a time, and the largest of candidates."""

from __future__ import annotations

import pytest
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.domain import Domain
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum, rational_candidates, tidy
from tests.naming import shown

A, B = sp.symbols("a b", positive=True)
X, Y = sp.symbols("x y", real=True)
N = sp.Symbol("n", negative=True)
ONE, TWO, OO = sp.S.One, sp.Integer(2), sp.oo
ALL = Domain()


def test_a_constant_is_its_own_candidate() -> None:
    assert interval_candidates(A + B, X, ONE, TWO, ALL) == [Candidate(A + B)]
    assert interval_candidates(X - X + A, X, ONE, TWO, ALL) == [Candidate(A)]


def test_ends_and_the_critical_point_of_a_parabola() -> None:
    found = interval_candidates(A * X**2 - B * X, X, sp.S.Zero, TWO, ALL)
    assert found[0] == Candidate(sp.S.Zero, (), sp.S.Zero)
    assert found[1] == Candidate(4 * A - 2 * B, (), TWO)
    assert found[2] == Candidate(-(B**2) / (4 * A), (B / (2 * A), (4 * A - B) / (2 * A)), B / (2 * A))
    assert len(found) == 3


@pytest.mark.parametrize(
    ("expression", "lower", "upper"),
    [
        (A * X**3, OO, -OO), (-A * X**3, -OO, OO), (A * X**2, OO, OO), (N * X**2, -OO, -OO), (X, OO, -OO),
        (-B * X, -OO, OO),
    ],
    ids=shown,
)  # fmt: skip
def test_infinite_ends(expression: sp.Expr, lower: sp.Expr, upper: sp.Expr) -> None:
    """The values at oo and at -oo, by the sign of the leading coefficient and the parity of the degree."""
    below, above = interval_candidates(expression, X, -OO, OO, ALL)[:2]
    assert (above.value, below.value) == (lower, upper)
    assert (below.valid, below.at, above.at) == ((), None, None)


def test_an_infinite_end_without_a_sign_is_undecided() -> None:
    with pytest.raises(Undecided, match=r"the sign of y decides whether x\*\*2\*y is bounded; assume a sign"):
        interval_candidates(Y * X**2, X, ONE, OO, ALL)


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        (X**3 - 3 * X, 2), (X**3 + X, 0), (X**4 / 4 - X, 1), (X**3 / 3 - A * X, 2), (X**3 / 3 + A * X, 0),
        (X**6 / 6 - X**2, 3),
        (A * X**4 / 4 + A * X**2 / 2, 1),
    ],
    ids=shown,
)  # fmt: skip
def test_critical_points_that_can_be_real(expression: sp.Expr, count: int) -> None:
    critical = interval_candidates(expression, X, sp.Integer(-3), sp.Integer(3), ALL)[2:]
    assert len(critical) == count
    for c in critical:
        at = {A: sp.Rational(1, 3)}
        assert sp.diff(expression, X).subs(X, c.at).subs(at).evalf() == pytest.approx(0, abs=1e-12)
        assert sp.simplify((expression.subs(X, c.at) - c.value).subs(at)).evalf() == pytest.approx(0, abs=1e-12)
        inside = all(v.subs(at) >= 0 for v in c.valid)
        assert inside == bool(-3 <= c.at.subs(at) <= 3)


def test_a_leading_coefficient_that_may_vanish_has_a_root_of_its_own() -> None:
    """y x^3/3 + a x^2/2 - b x with y = 0 has the critical point b/a."""
    found = interval_candidates(Y * X**3 / 3 + A * X**2 / 2 - B * X, X, ONE, TWO, ALL)[2:]
    assert len(found) == 3
    special = found[-1]
    assert special.at == B / A
    assert special.valid[:2] == (Y, -Y)
    assert len(interval_candidates(A * X**3 / 3 + Y * X**2 / 2 - B * X, X, ONE, TWO, ALL)[2:]) == 2


def test_half_open_intervals_have_one_condition() -> None:
    (point,) = interval_candidates(X**2 - A * X, X, ONE, OO, ALL)[2:]
    assert point.valid == (sp.together(A / 2 - 1),)
    (point,) = interval_candidates(-(X**2) + A * X, X, -OO, ONE, ALL)[2:]
    assert point.valid == (sp.together(1 - A / 2),)


def test_high_degrees_are_undecided_unless_they_keep_their_sign() -> None:
    rising = X**5 / 5 + A * X**3 / 3 + B * X**2 / 2 + X  # slope x^4 + a x^2 + b x + 1
    with pytest.raises(Undecided, match="no closed form for the zeros of"):
        interval_candidates(rising, X, sp.Integer(-9), ONE, ALL)
    assert interval_candidates(rising, X, sp.S.Zero, ONE, ALL)[2:] == []
    assert interval_candidates(rising, X, sp.S.Zero, OO, ALL)[2:] == []
    with pytest.raises(Undecided, match="no closed form"):
        interval_candidates(rising, X, -OO, sp.S.Zero, ALL)


def test_rational_functions_at_their_ends() -> None:
    ends = rational_candidates((A * X + 1) / (1 + X**2), X, -OO, TWO, ALL)[:2]
    assert (ends[0].value, ends[0].at, ends[1].at) == (0, -OO, 2)
    assert ends[1].value == (2 * A + 1) / 5
    points = rational_candidates(X / (1 + X**2), X, -OO, OO, ALL)[2:]
    assert {(c.at, c.value) for c in points} == {(1, sp.Rational(1, 2)), (-1, sp.Rational(-1, 2))}


# ---------------------------------------------------------------------- the largest
def test_conditions_that_always_or_never_hold_are_dropped() -> None:
    assert maximum([Candidate(B, (A,)), Candidate(A + B, (-A,))], ALL) == B
    assert maximum([Candidate(B), Candidate(2 * B, (Y**2, A))], ALL) == 2 * B
    assert maximum([Candidate(B), Candidate(2 * B, (Y, -1 - Y))], ALL) == B, "the second presumes the first"


def test_a_candidate_keeps_all_its_conditions() -> None:
    found = maximum([Candidate(ONE), Candidate(sp.Integer(5), (A - 1, 3 - A))], ALL)
    assert [found.subs(A, v) for v in (sp.Rational(1, 2), 1, 2, 3, 4)] == [1, 5, 5, 5, 1]


def test_infinite_candidates() -> None:
    assert maximum([Candidate(A), Candidate(OO)], ALL) == OO
    assert maximum([Candidate(A), Candidate(-OO)], ALL) == A
    with pytest.raises(Undecided, match="no candidate for the maximum is valid on the whole domain"):
        maximum([Candidate(-OO)], ALL)
    partly = maximum([Candidate(A), Candidate(OO, (A - 2,))], ALL)
    assert partly.subs(A, 1) == 1
    assert partly.subs(A, 3) == OO


def test_formulas_and_places() -> None:
    two = [Candidate(A, at=ONE), Candidate(B, at=TWO)]
    for place, expected in ((False, (3, 3)), (True, (1, 2))):
        found = maximum(two, ALL, place=place)
        assert (found.subs({A: 3, B: 1}), found.subs({A: 1, B: 3})) == expected
    assert maximum([Candidate(A, at=TWO)], ALL, place=True) == 2
    assert maximum([Candidate(A)], ALL, place=True) == A
    assert maximum([Candidate(A, at=TWO)], ALL) == A
    with pytest.raises(Undecided, match="which of a, b, x is largest depends on several ratios"):
        maximum([Candidate(v, at=v) for v in (A, B, X)], ALL, place=True)


def test_degrees_that_differ_leave_a_max() -> None:
    assert maximum([Candidate(A**2), Candidate(B)], ALL) == sp.Max(A**2, B)
    assert maximum([Candidate(A**2), Candidate(B)], Domain((sp.Gt(A**2, B),))) == A**2
    with pytest.raises(Undecided, match="depends on several ratios"):
        maximum([Candidate(A**2, at=ONE), Candidate(B, at=TWO)], ALL, place=True)
    one = maximum([Candidate(A**2), Candidate(A)], ALL)
    assert [one.subs(A, v) for v in (sp.Rational(1, 2), 1, 3)] == [sp.Rational(1, 2), 1, 9]


def test_conditional_candidates_of_several_ratios() -> None:
    found = maximum([Candidate(A**2), Candidate(B), Candidate(3 * A + B / A, (A - B - 1,))], ALL)
    for point, expected in (({A: 4, B: 1}, 16), ({A: 2, B: 1}, sp.Rational(13, 2)), ({A: 2, B: 5}, 5)):
        assert found.subs(point) == expected
    with pytest.raises(Undecided, match="every candidate for the maximum depends on a condition"):
        maximum([Candidate(A**2, (Y,)), Candidate(B, (-Y,))], ALL)
    poles = maximum([Candidate(A), Candidate(B), Candidate(1 / Y, (Y,))], ALL)
    assert poles.subs({A: 1, B: 2, Y: 0}) == 2
    assert poles.subs({A: 1, B: 2, Y: sp.Rational(1, 9)}) == 9


def test_no_candidate_at_a_sample_is_undecided() -> None:
    with pytest.raises(Undecided, match="no candidate for the maximum is valid at a sample point"):
        maximum([Candidate(A, (A - 2,)), Candidate(2 * A, (A - 3,))], ALL)


@pytest.mark.parametrize(
    ("expression", "short"),
    [
        (A * B + A, A * (B + 1)), ((A**2 - B**2) / (A - B), A + B), (sp.exp(A) * B + sp.exp(A), (B + 1) * sp.exp(A)),
        (A + B, A + B), (OO, OO), (-OO, -OO), (sp.Integer(3), 3), ((A + 1) * (A - 1) - A**2, sp.S.NegativeOne),
        (A**2 + 2 * A * B + B**2, (A + B) ** 2),
    ],
    ids=shown,
)  # fmt: skip
def test_short_forms(expression: sp.Expr, short: sp.Expr) -> None:
    assert tidy(expression) == short
