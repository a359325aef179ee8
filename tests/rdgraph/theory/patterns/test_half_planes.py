"""Signs of the largest real part: exact, against numpy, and where roots lie on the imaginary axis."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rdgraph.theory.patterns.bands import characteristic, growth_sign, hurwitz_determinants
from tests.property_examples import examples

s = sp.Symbol("s")


def coefficients_of(polynomial: sp.Expr) -> list[sp.Expr]:
    return sp.Poly(sp.expand(polynomial), s).all_coeffs()


@pytest.mark.parametrize(
    ("polynomial", "sign"),
    [
        (s**2 + 4, 0),
        (s * (s + 1), 0),
        (s**2, 0),
        ((s**2 + 1) ** 2, 0),
        ((s**2 + 1) * (s**2 + 4), 0),
        ((s**2 + 1) * (s + 3), 0),
        ((s**2 - 1) * (s + 3), 1),
        (s**4 + 1, 1),
        ((s**2 + 1) * (s - 1), 1),
        ((s + 1) ** 3, -1),
        ((s**2 + s / 10**9 + 1), -1),
        ((s**2 - s / 10**9 + 1), 1),
        (s - sp.Rational(1, 10**30), 1),
        (s + sp.Rational(1, 10**30), -1),
        (s**4 + s**3 + 2 * s**2 + 2 * s + 3, 1),
    ],
)
def test_signs_that_are_hard_to_see(polynomial: sp.Expr, sign: int) -> None:
    assert growth_sign(coefficients_of(polynomial)) == sign


@settings(max_examples=examples(150))
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5))
def test_signs_agree_with_numpy(lower: list[int]) -> None:
    largest = np.roots([1, *lower]).real.max()
    if abs(largest) > 1e-4:
        assert growth_sign([sp.S.One, *map(sp.Integer, lower)]) == np.sign(largest)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=3))
def test_signs_of_polynomials_with_known_roots(roots: list[tuple[int, int]]) -> None:
    polynomial = sp.S.One
    for real, imaginary in roots:
        polynomial *= (s - real) ** 2 + imaginary**2 if imaginary else s - real
    assert growth_sign(coefficients_of(polynomial)) == np.sign(max(real for real, _ in roots))


def test_hurwitz_determinants_are_orlandos_product() -> None:
    """The last but one is the product of -(s_i + s_j) over all pairs."""
    roots = sp.symbols("r1:5")
    polynomial = sp.Poly(sp.expand(sp.prod(s - r for r in roots)), s).all_coeffs()
    pairs = sp.prod(-(roots[i] + roots[j]) for i in range(4) for j in range(i + 1, 4))
    minors = hurwitz_determinants(polynomial)
    assert len(minors) == 4
    assert sp.expand(minors[-2] - pairs) == 0
    assert sp.expand(minors[-1] - sp.prod(roots)) == 0


def test_characteristic_polynomials() -> None:
    generator = np.random.default_rng(3)
    for size in (1, 2, 3, 4):
        matrix = sp.Matrix(generator.integers(-5, 5, (size, size)).tolist())
        assert np.allclose(np.array(characteristic(matrix), dtype=float), np.poly(np.array(matrix, dtype=float)))
