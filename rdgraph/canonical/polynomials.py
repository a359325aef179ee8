"""Polynomials in letters and generators: one order of letters, terms, and a sign that Sturm's theorem decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy as sp


def ordered(letters: Iterable[sp.Basic]) -> list[sp.Basic]:
    """One order of all letters, so that leading coefficients agree between calls.

    sympy's own order takes H and H0 for equal: which of them leads then depends on the hashes of the process.

    >>> ordered(sp.symbols("H0 beta H"))
    [H, H0, beta]
    """
    return sorted(letters, key=lambda x: (isinstance(x, sp.Dummy), x.name, getattr(x, "dummy_index", 0)))  # type: ignore[attr-defined]


def cancelled(fraction: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator without common factors, the denominator's leading coefficient positive.

    >>> x, y = sp.symbols("H H0")
    >>> cancelled((y**2 - x**2) / (y - x) ** 2)
    (-H - H0, H - H0)
    """
    return sp.fraction(sp.cancel(fraction, *ordered(fraction.free_symbols)))


def common_multiple(first: sp.Expr, second: sp.Expr) -> sp.Expr:
    """The least common multiple, its leading coefficient positive."""
    return sp.expand(sp.lcm(first, second, *ordered(first.free_symbols | second.free_symbols)))


def is_positive_polynomial(p: sp.Expr) -> bool:
    """Whether a polynomial in one letter is positive for all values that the letter takes, by Sturm's theorem.

    >>> x, y = sp.Symbol("x", positive=True), sp.Symbol("y", real=True)
    >>> [is_positive_polynomial(p) for p in (x**2 - x + 1, x + 1, x - 1, y + 1, y**4 + y + 1, x**2 + y**2 + 1)]
    [True, True, False, False, True, False]
    """
    if len(p.free_symbols) != 1 or not p.is_polynomial():
        return False
    (letter,) = p.free_symbols
    polynomial = sp.Poly(p, letter)
    is_rational = all(c.is_Rational for c in polynomial.coeffs())
    return bool(
        is_rational
        and polynomial.eval(1) > 0
        and polynomial.count_roots(0 if letter.is_nonnegative else None, None) == 0
    )


def monomials(polynomial: sp.Expr) -> Iterator[tuple[sp.Rational, sp.Expr]]:
    """Coefficient and power product of every term."""
    for term in sp.Add.make_args(sp.expand(polynomial)):
        if term != 0:
            yield term.as_coeff_Mul()
