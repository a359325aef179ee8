"""Cells of the line between the zeros of polynomials with rational coefficients: one rational point in each, exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sympy as sp

from rdgraph.errors import Undecided

#: Bits at which zeros are enclosed, one after the other, until they are told from the ends and from each other.
_PRECISIONS = (64, 256, 1024)


def rational_polynomial(coefficients: Sequence[sp.Rational]) -> Any:
    """A polynomial of flint from its coefficients, lowest power first."""
    from flint import fmpq, fmpq_poly

    return fmpq_poly([fmpq(int(c.p), int(c.q)) for c in map(sp.Rational, coefficients)])


def cell_points(polynomials: Iterable[Any], low: sp.Rational, high: sp.Rational) -> list[Any]:
    """Rational numbers, rising, one in every open interval into which the zeros of the polynomials cut (low, high).

    Polynomials that vanish identically cut nothing.

    >>> cell_points([rational_polynomial([-2, 0, 1])], sp.Integer(0), sp.Integer(2))
    [5/8, 27/16]
    """
    from flint import fmpq

    ends = [fmpq(int(x.p), int(x.q)) for x in map(sp.Rational, (low, high))]
    zeros = _enclosed_zeros(_joined(polynomials, ends), ends)
    gaps = [ends[0], *(x for ball in zeros for x in ball), ends[1]]
    return [_simplest(gaps[k], gaps[k + 1]) for k in range(0, len(gaps), 2)]


def signs_to_infinity(polynomial: Any) -> list[int]:
    """The signs of a polynomial from 0 to infinity, one after the other where they change.

    >>> signs_to_infinity(rational_polynomial([-1, 0, 1]))
    [-1, 1]
    """
    if polynomial.degree() < 1:
        return [1 if polynomial[0] > 0 else -1]
    top = abs(polynomial.leading_coefficient())
    bound = 1 + sum(abs(c) for c in polynomial.coeffs()) / top
    values = [polynomial(x) for x in cell_points([polynomial], sp.S.Zero, _sympy(bound))]
    signs = [1 if v > 0 else -1 for v in values]
    return [sign for k, sign in enumerate(signs) if k == 0 or sign != signs[k - 1]]


def _joined(polynomials: Iterable[Any], ends: Sequence[Any]) -> Any:
    """A polynomial with single zeros: those of all polynomials, the ends left out."""
    from flint import fmpq_poly

    total = fmpq_poly([1])
    for polynomial in polynomials:
        if polynomial.degree() < 1:
            continue
        single = polynomial // polynomial.gcd(polynomial.derivative())
        total = total * (single // single.gcd(total))
    for end in ends:
        if total(end) == 0:
            total = total // fmpq_poly([-end, 1])
    return total


def _enclosed_zeros(polynomial: Any, ends: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Rational numbers around every real zero between the ends, rising, none of them touching another."""
    from flint import acb, arb, ctx

    if polynomial.degree() < 1:
        return []
    before = ctx.prec
    try:
        for bits in _PRECISIONS:
            ctx.prec = bits
            found = [root for root, _ in polynomial.complex_roots()]
            real = [r.real if isinstance(r, acb) else r for r in found if not isinstance(r, acb) or r.imag == 0]
            if any(ball.contains(arb(end)) for ball in real for end in ends):
                continue
            inside = sorted((r for r in real if r > arb(ends[0]) and r < arb(ends[1])), key=lambda r: float(r.mid()))
            pairs = [(_fraction(r.lower()), _fraction(r.upper())) for r in inside]
            if all(pairs[k][1] < pairs[k + 1][0] for k in range(len(pairs) - 1)):
                return pairs
    finally:
        ctx.prec = before
    raise Undecided("the zeros of a polynomial are too close to be told apart")


def _fraction(ball: Any) -> Any:
    """The exact value of an exact ball."""
    from flint import fmpq

    mantissa, exponent = ball.mid().man_exp()
    power = fmpq(2) ** abs(int(exponent))
    return fmpq(mantissa) * power if exponent >= 0 else fmpq(mantissa) / power


def _simplest(low: Any, high: Any) -> Any:
    """A number between two others with a short binary expansion, near their middle."""
    from flint import fmpq

    middle, size = (low + high) / 2, fmpq(1)
    while True:
        rounded = fmpq((middle * size).floor()) / size
        if low < rounded < high and (middle - rounded) * 8 <= high - low:
            return rounded
        size *= 2


def _sympy(number: Any) -> sp.Rational:
    return sp.Rational(int(number.p), int(number.q))
