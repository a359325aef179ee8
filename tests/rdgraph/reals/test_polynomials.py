"""Factors and fractions, with coefficients that FLINT takes and those that it does not."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from rdgraph.errors import Undecided
from rdgraph.reals import polynomials
from rdgraph.reals.polynomials import expanded, factors, reduced
from tests.naming import shown

A, B, X = sp.symbols("a b x")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (A**2 * X - X**3, {(X, 1), (A + X, 1), (A - X, 1)}),
        (4 * (A - B) ** 2 * (A + 1), {(A - B, 2), (A + 1, 1)}),
        (A**2 / 4 - B**2 / 9, {(3 * A - 2 * B, 1), (3 * A + 2 * B, 1)}),
        (A**2 + B**2, {(A**2 + B**2, 1)}),
        ((A - 1) / (B + 1), {(A - 1, 1)}),
        (1 / (A + B), set()),
        (sp.Integer(6), set()),
        (sp.sqrt(2) * A**2, {(A, 2)}),
    ],
    ids=shown,
)
def test_factors(expression: sp.Expr, expected: set[tuple[sp.Expr, int]]) -> None:
    """Up to a number, which is left out."""
    found = [(sp.Poly(f, *sorted(f.free_symbols, key=str)), k) for f, k in factors(expression)]
    wanted = [(sp.Poly(f, *sorted(f.free_symbols, key=str)), k) for f, k in expected]
    assert sorted(str((f.monic(), k)) for f, k in found) == sorted(str((f.monic(), k)) for f, k in wanted)
    assert [type(k) for _, k in factors(expression)] == [int] * len(expected)


def test_short_factors_come_first() -> None:
    found = [f for f, _ in factors(X * (A + B + X) * (A + X) * (A**2 + B))]
    sizes = [f.count_ops() for f in found]
    assert sizes == sorted(sizes)
    assert found[0] == X


@pytest.mark.parametrize(
    ("expression", "top", "bottom"),
    [
        (1 / (1 + 1 / (1 + X**2)), X**2 + 1, X**2 + 2),
        ((A**2 - B**2) / (A - B), A + B, 1),
        ((A * X + A) / (X**2 - 1), A, X - 1),
        (A / 2 + B / 3, 3 * A + 2 * B, 6),
        (A / B, A, B),
        (sp.sqrt(2) * A / A**2, sp.sqrt(2), A),
        (sp.Rational(4, 6), 2, 3),
    ],
    ids=shown,
)
def test_fractions_are_reduced(expression: sp.Expr, top: sp.Expr, bottom: sp.Expr) -> None:
    above, below = reduced(expression)
    assert sp.expand(above * bottom - below * top) == 0
    assert sp.Poly(below, A, B, X, extension=True).total_degree() == sp.Poly(bottom, A, B, X).total_degree()
    assert (
        sp.Poly(above, A, B, X, extension=True).total_degree() == sp.Poly(top, A, B, X, extension=True).total_degree()
    )


def test_what_would_hold_the_clock_up_is_not_factored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polynomials, "MAX_TERMS", 3)
    assert len(factors(A**2 * X - X**3)) == 3
    with pytest.raises(Undecided, match="a polynomial of 4 terms is too long"):
        factors((A + 1) * (B + 1))


def test_common_divisors_are_taken_of_short_fractions_only() -> None:
    with pytest.raises(Undecided, match="degree 201"):
        reduced((X**201 - 1) / (X**2 - 1))
    assert reduced((X**200 - 1) / (X**100 - 1)) == (X**100 + 1, 1)


def _joined(parts: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    sums = st.lists(parts, min_size=2, max_size=3).map(lambda p: sp.Add(*p))
    return sums | st.lists(parts, min_size=2, max_size=3).map(lambda p: sp.Mul(*p)) | parts.map(lambda p: p**3)


LEAVES = st.sampled_from([A, B, X, sp.Integer(-2), sp.Rational(3, 7), sp.Integer(0), sp.sqrt(2), 1 / A, sp.exp(X)])


@given(st.recursive(LEAVES, _joined, max_leaves=6))
def test_what_is_expanded_is_what_sympy_expands(expression: sp.Expr) -> None:
    assert expanded(expression) == sp.expand(expression)


def test_a_product_that_is_too_long_is_left_to_sympy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polynomials, "MAX_PRODUCT", 3)
    product = (A + B) * (A - B) * (1 + X)
    assert expanded(product) == sp.expand(product)
    with pytest.raises(Undecided, match="too long to be expanded"):
        factors(product)
