"""Where the roots of a polynomial lie: characteristic polynomials, Hurwitz determinants, exact signs of growth.

The growth of a matrix is the largest real part of its eigenvalues. Its sign is decided from the characteristic
polynomial alone: all Hurwitz determinants are positive exactly where it is negative, and one that is negative proves
that it is positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from rdgraph.decisions.enclosure import precision

#: Bits tried one after the other until no root of a polynomial touches the imaginary axis.
PRECISIONS = (64, 128, 256, 512, 1024, 4096)

s = sp.Dummy("s")


def characteristic(matrix: sp.Matrix) -> tuple[sp.Expr, ...]:
    """The coefficients 1, c_1, ..., c_n of det(s I - matrix), expanded where they are polynomials.

    >>> a = sp.Symbol("a")
    >>> characteristic(sp.Matrix([[0, 1], [-1, a]]))
    (1, -a, 1)
    """
    packed = _packed(matrix)
    return tuple(packed.domain.to_sympy(c) for c in packed.charpoly())


def determinant(rows: Sequence[Sequence[sp.Expr]]) -> sp.Expr:
    """The determinant of a small matrix of expressions."""
    packed = _packed(sp.Matrix(rows))
    return packed.domain.to_sympy(packed.charpoly()[-1]) * (-1) ** len(rows)


def _packed(matrix: sp.Matrix) -> DomainMatrix:
    return DomainMatrix.from_Matrix(sp.Matrix(matrix)).to_dense()


def hurwitz_rows(coefficients: Sequence[Any], zero: Any) -> list[list[Any]]:
    """Hurwitz' matrix of s^n + c_1 s^(n-1) + ... + c_n: entry [i, j] is c_(2j - i), counted from one."""
    n = len(coefficients) - 1
    return [
        [coefficients[k] if 0 <= (k := 2 * (j + 1) - (i + 1)) <= n else zero for j in range(n)] for i in range(n)
    ]  # fmt: skip


def hurwitz_determinants(coefficients: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    """The leading minors of Hurwitz' matrix, the last without its factor c_n, which follows as the last entry.

    All of them are positive where all roots have negative real parts. The product of the last two vanishes exactly
    where two roots add up to zero, or one is zero (Orlando's formula).

    >>> c = sp.symbols("c1:4")
    >>> hurwitz_determinants((1, *c))
    (c1, c1*c2 - c3, c3)
    """
    n = len(coefficients) - 1
    rows = hurwitz_rows(coefficients, sp.S.Zero)
    minors = [determinant([row[:k] for row in rows[:k]]) for k in range(1, n)]
    return (*minors, sp.sympify(coefficients[-1]))


def growth_sign(coefficients: Sequence[sp.Rational]) -> int:
    """The sign of the largest real part of the roots of s^n + c_1 s^(n-1) + ...: 1, 0 or -1, exact.

    Roots that come in pairs s, -s are split off: they lie on the imaginary axis exactly where their squares are real
    and not positive. No other root touches that axis, so enclosures of them end.

    >>> growth_sign([1, 0, 4]), growth_sign([1, 2, 4]), growth_sign([1, -1, 4]), growth_sign([1, 0, 0])
    (0, -1, 1, 0)
    """
    from flint import fmpq, fmpq_poly

    whole = fmpq_poly([fmpq(int(sp.Rational(c).p), int(sp.Rational(c).q)) for c in reversed(list(coefficients))])
    mirrored = fmpq_poly([c * (-1) ** k for k, c in enumerate(whole.coeffs())])
    paired = whole.gcd(mirrored)
    if _has_root_on_the_right(whole // paired):
        return 1
    if paired.degree() == 0:
        return -1
    return 1 if _pairs_grow(paired) else 0


def _has_root_on_the_right(polynomial: Any) -> bool:
    """Whether some root of a polynomial without roots on the imaginary axis has a positive real part."""
    if polynomial.degree() == 0:
        return False
    for bits in PRECISIONS:
        with precision(bits):
            parts = [root.real for root, _ in polynomial.numer().complex_roots()]
            if any(part > 0 for part in parts):
                return True
            if all(part < 0 for part in parts):
                return False
    raise AssertionError("a root that is not imaginary was not told from the imaginary axis")


def _pairs_grow(paired: Any) -> bool:
    """Whether a polynomial with p(-s) = +-p(s) has a root off the imaginary axis."""
    from flint import fmpz_poly

    coefficients = paired.numer().coeffs()
    while coefficients[0] == 0:
        coefficients = coefficients[1:]
    squares = fmpz_poly(coefficients[::2])
    if squares.degree() == 0:
        return False
    with precision(PRECISIONS[0]):  # real roots come with an imaginary part that is exactly zero
        roots = [root for root, _ in squares.complex_roots()]
    return any(not root.imag.is_zero() or root.real > 0 for root in roots)
