"""Factors and fractions of polynomials in several letters, by FLINT where the coefficients are rational numbers."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.errors import Undecided

#: Terms of a polynomial beyond which it is not factored: FLINT cannot be interrupted, and takes seconds for these.
MAX_TERMS = 1_500


def factors(expression: sp.Expr) -> list[tuple[sp.Expr, int]]:
    """Irreducible factors over the rational numbers with their multiplicities, constants left out; of a fraction, those
    of its numerator.

    Raises `Undecided` where there are too many terms.

    >>> x, a = sp.symbols("x a")
    >>> factors(a**2 * x - x**3)
    [(x, 1), (a + x, 1), (a - x, 1)]
    """
    top = sp.expand(sp.fraction(sp.together(expression))[0])
    letters = sorted(top.free_symbols, key=str)
    packed = _packed(top, letters)
    if packed is None:
        return [(sp.sympify(factor), int(times)) for factor, times in sp.factor_list(top)[1]]
    if len(packed) > MAX_TERMS:
        raise Undecided(f"a polynomial of {len(packed)} terms is too long to be factored")
    found = [(_unpacked(factor, letters), int(times)) for factor, times in packed.factor()[1]]
    return sorted(found, key=lambda pair: (pair[0].count_ops(), str(pair[0])))


def reduced(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator of a rational function, without common factors.

    >>> x = sp.Symbol("x")
    >>> reduced(1 / (1 + 1 / (1 + x**2)))
    (x**2 + 1, x**2 + 2)
    """
    top, bottom = sp.fraction(sp.together(expression))
    top, bottom = sp.expand(top), sp.expand(bottom)
    letters = sorted(top.free_symbols | bottom.free_symbols, key=str)
    above, below = _packed(top, letters), _packed(bottom, letters)
    if above is None or below is None or not letters:
        return tuple(sp.fraction(sp.cancel(top / bottom)))
    common = above.gcd(below)
    if common.is_constant():
        return top, bottom
    return _unpacked(above / common, letters), _unpacked(below / common, letters)


def _packed(expression: sp.Expr, letters: list[sp.Symbol]) -> Any | None:
    """The polynomial in FLINT's form; None where its coefficients are not rational, or FLINT is not installed."""
    try:
        from flint import Ordering, fmpq, fmpq_mpoly_ctx
    except ImportError:
        return None
    if not letters or not expression.is_polynomial(*letters):
        return None
    terms = sp.Poly(expression, *letters).terms()
    if not all(c.is_Rational for _, c in terms):
        return None
    context = fmpq_mpoly_ctx.get([f"x{i}" for i in range(len(letters))], Ordering.lex)
    return context.from_dict({powers: fmpq(int(c.p), int(c.q)) for powers, c in terms})


def _unpacked(polynomial: Any, letters: list[sp.Symbol]) -> sp.Expr:
    terms = [
        sp.Rational(int(c.p), int(c.q)) * sp.Mul(*(x ** int(k) for x, k in zip(letters, powers, strict=True)))
        for powers, c in polynomial.to_dict().items()
    ]
    return sp.Add(*terms)
