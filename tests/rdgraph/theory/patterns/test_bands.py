"""Bands of growing modes against eigenvalues on a dense grid, exact and enclosed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.theory.patterns.bands import Band, between, critical_polynomial, exact_bands, real_roots
from rdgraph.theory.patterns.linearisation import EnclosedGrowth, enclosed_bands

x = sp.Symbol("x")


def random_family(source: random.Random) -> list[sp.Matrix]:
    """Coefficients of the powers of x: a reaction, a diffusion with zeros, sometimes more."""
    size = source.choice([1, 2, 2, 3, 3])
    reaction = sp.Matrix(size, size, lambda i, j: sp.Rational(source.randint(-8, 8), source.choice([1, 2, 4])))
    diffusion = -sp.diag(*(sp.Rational(source.choice([0, 1, 1, 2, 5, 20, 40]), 4) for _ in range(size)))
    further = sp.Matrix(size, size, lambda i, j: sp.Rational(source.randint(-3, 3), 2))
    return [reaction, diffusion, *([further] if source.random() < 0.25 else [])]


def disagreements(powers: list[sp.Matrix], bands: Any, to: float) -> int:
    grid = np.linspace(0, to, 1501)
    arrays = [np.array(m, dtype=float) for m in powers]
    values = sum(a[None] * grid[:, None, None] ** k for k, a in enumerate(arrays))
    growth = np.linalg.eigvals(values).real.max(axis=1)
    inside, near = np.zeros(len(grid), dtype=bool), np.zeros(len(grid), dtype=bool)
    for band in bands:
        lower, upper = band.ends
        inside |= np.array([point in band for point in grid])
        near |= (abs(grid - lower) < 1e-6) | (abs(grid - upper) < 1e-6)
    return int((((growth > 1e-6) & ~inside & ~near) | ((growth < -1e-6) & inside & ~near)).sum())


@pytest.mark.slow
def test_exact_bands_agree_with_dense_eigenvalues() -> None:
    source = random.Random(11)
    answer = 0
    for _ in range(40):
        powers = random_family(source)
        matrix = sum((m * x**k for k, m in enumerate(powers)), sp.zeros(powers[0].rows))
        bands = exact_bands(matrix, x, sp.Integer(2))
        answer += len(bands)
        assert disagreements(powers, bands, 2.0) == 0, (powers, bands)
    assert answer > 12


def test_enclosed_bands_agree_with_exact_ones() -> None:
    """A matrix with the irrational number sqrt(2) as a letter, against the same with sqrt(2) put in by numpy."""
    from flint import arb, ctx

    source, letter = random.Random(5), sp.Symbol("root", real=True)
    ctx.prec = 256
    root = arb(2).sqrt()
    ctx.prec = 53
    for _ in range(15):
        powers = random_family(source)
        powers[0][0, 0] += letter
        matrix = sum((m * x**k for k, m in enumerate(powers)), sp.zeros(powers[0].rows))
        bands, _ = enclosed_bands(EnclosedGrowth(matrix, x, {letter: root}), sp.Integer(2))
        numbers = [m.subs(letter, sp.sqrt(2).evalf(17)) for m in powers]
        assert disagreements(numbers, bands, 2.0) == 0, (powers, bands)
        assert all(band.slack < 1e-9 for band in bands)


def test_ends_are_exact_and_belong_where_they_grow() -> None:
    (band,) = exact_bands(sp.Matrix([[x - x**2 / 2 - sp.Rational(1, 4)]]), x, sp.Integer(2))
    assert (band.lower, band.upper) == (1 - sp.sqrt(2) / 2, 1 + sp.sqrt(2) / 2)
    assert not band.has_lower
    assert not band.has_upper
    (whole,) = exact_bands(sp.Matrix([[1 - x / 4]]), x, sp.Integer(2))
    assert str(whole) == "[0, 2]"
    assert 0 in whole
    assert 2 in whole
    (cubic,) = exact_bands(sp.Matrix([[x**3 - 2]]), x, sp.oo)
    assert cubic.lower == sp.CRootOf(x**3 - 2, 0)
    assert cubic.upper == sp.oo


def test_a_band_is_cut_where_the_growth_touches_zero() -> None:
    bands = exact_bands(sp.Matrix([[(x - 1) ** 2]]), x, sp.Integer(2))
    assert [(b.lower, b.upper) for b in bands] == [(0, 1), (1, 2)]


def test_a_band_is_whole_where_another_eigenvalue_crosses_zero() -> None:
    bands = exact_bands(sp.diag(1, x - 1), x, sp.Integer(2))
    assert [(b.lower, b.upper) for b in bands] == [(0, 2)]


@pytest.mark.parametrize(
    ("matrix", "ends"),
    [
        (sp.Matrix([[0, 1], [-x, 0]]), []),  # waves: growth zero everywhere
        (sp.Matrix([[0, 1], [1 - x, 0]]), [(0, 1)]),  # an unstable oscillator below lam = 1
        (sp.diag(0, x - 1), [(1, 2)]),  # a conserved quantity next to a field that grows
        (sp.zeros(2), []),
        (sp.Matrix([[0, 1, 0], [-1, 0, 0], [0, 0, 1 - x]]), [(0, 1)]),
    ],
)
def test_eigenvalues_that_stay_on_the_imaginary_axis(matrix: sp.Matrix, ends: list[tuple[int, int]]) -> None:
    assert [(b.lower, b.upper) for b in exact_bands(matrix, x, sp.Integer(2))] == ends


def test_critical_polynomials_do_not_vanish() -> None:
    a = sp.S
    assert sp.factor(critical_polynomial((a(1), a(0), x + 1, a(0), x), x)).subs(x, 0) == 0
    assert critical_polynomial((a(1), a(0), a(0)), x) != 0


def test_real_roots_come_in_their_order() -> None:
    polynomial = (x**2 - 2) * (x**3 - 3 * x + 1) * (2 * x - 3)
    roots = real_roots(polynomial, x, -sp.oo, sp.oo)
    expected = np.sort(np.roots(sp.Poly(sp.expand(polynomial), x).all_coeffs()).real)
    assert np.allclose([float(r) for r in roots], expected)
    assert real_roots(polynomial, x, sp.S.Zero, sp.S.One) == [sp.CRootOf(x**3 - 3 * x + 1, 1)]


def test_numbers_between_others() -> None:
    assert sp.sqrt(2) < between(sp.sqrt(2), sp.sqrt(2) + sp.Rational(1, 10**20)) < sp.sqrt(2) + sp.Rational(1, 10**20)
    assert between(sp.Integer(3), sp.oo) > 3
    assert between(-sp.oo, sp.Integer(-3)) < -3
    with pytest.raises(Undecided):
        between(sp.sqrt(2) * sp.sqrt(3), sp.sqrt(2) * sp.sqrt(3))


def test_unbounded_ranges_need_rational_numbers() -> None:
    growth = EnclosedGrowth(sp.Matrix([[x - 1]]), x, {})
    with pytest.raises(Undecided, match="unbounded"):
        enclosed_bands(growth, sp.oo)


def test_bands_know_what_they_hold() -> None:
    band = Band(sp.S.Zero, sp.S.One, has_lower=True)
    assert 0 in band
    assert 0.5 in band
    assert 1 not in band
    assert 2 not in band
