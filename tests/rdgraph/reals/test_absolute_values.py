"""Absolute values in place of cases: the same number everywhere."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from rdgraph.reals.branches import with_moduli

A, B, C = sp.symbols("a b c", real=True)
NUMBERS = st.integers(-4, 4)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (sp.Piecewise((-A, A <= 0), (A, True)), "Abs(a)"),
        (sp.Piecewise((A, A >= 0), (-A, True)), "Abs(a)"),
        (sp.Piecewise((-2 * A * B, A * B < 0), (2 * A * B, True)), "2*Abs(a*b)"),
        (sp.Piecewise((A - B, A > B), (B - A, True)), "Abs(a - b)"),
        (sp.Max(0, A, -A), "Abs(a)"),
        (sp.Max(A + B, A - B), "a + Abs(b)"),
        (sp.Max(A + B, A - B, -A + B, -A - B, 0), "Abs(a) + Abs(b)"),
        (sp.Max(3 * A + B, 3 * A - B, A + B, A - B, -A + B, -A - B, -3 * A + B, -3 * A - B), "3*Abs(a) + Abs(b)"),
        (1 / (C**2 + sp.Max(A, -A)), "1/(c**2 + Abs(a))"),
    ],
)
def test_cases_of_a_sign_are_a_modulus(expression: sp.Expr, told: str) -> None:
    assert str(with_moduli(expression)) == told


@pytest.mark.parametrize(
    "expression",
    [
        sp.Piecewise((A, A <= 0), (-A, True)), sp.Piecewise((-A, B <= 0), (A, True)), sp.Max(A, B), sp.Max(0, A),
        sp.Piecewise((-A, A <= 1), (A, True)), sp.Max(A + B, A - C), sp.Piecewise((B, A <= 0), (A, True)),
    ],
    ids=str,
)  # fmt: skip
def test_other_cases_stay_as_they_are(expression: sp.Expr) -> None:
    assert with_moduli(expression) == expression


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([0, A, C])), min_size=1, max_size=3),
    st.booleans(),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
)
def test_the_number_is_the_same(
    parts: list[tuple[int, int, sp.Expr]], signed: bool, places: tuple[int, int, int]
) -> None:
    values = [m * A + n * B + rest for m, n, rest in parts]
    largest = sp.Max(*values, *((-v for v in values) if signed else (v.subs(B, -B) for v in values)))
    numbers = dict(zip((A, B, C), places, strict=True))
    assert with_moduli(largest).subs(numbers) == largest.subs(numbers)
