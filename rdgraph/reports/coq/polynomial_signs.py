"""Signs of polynomials of one variable as Coq tactics: Bernstein's form on an interval, Taylor's on a half-line."""

from __future__ import annotations

import textwrap

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.reports.coq.coq_text import real_text

_DEEPEST = 12


def nonnegative_between(polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational, hi: sp.Rational, depth: int = 0) -> str:
    """Tactics for `0 <= polynomial` where `lo <= x <= hi`: a sum of products of powers of x - lo and hi - x.

    An interval on which a coefficient is negative is halved.
    """
    terms = _bernstein(polynomial, x, lo, hi)
    if all(c >= 0 for c in terms):
        return _sum_of_products(polynomial, x, lo, hi, terms)
    if depth == _DEEPEST:
        raise NotApplicable(f"{polynomial} was not shown to be >= 0 on [{lo}, {hi}]; a smaller interval may do")
    middle = (lo + hi) / 2
    halves = (nonnegative_between(polynomial, x, *ends, depth + 1) for ends in ((lo, middle), (middle, hi)))
    cases = "\n".join("{ " + textwrap.indent(half, "  ").lstrip() + " }" for half in halves)
    return f"destruct (Rle_lt_dec {x} {real_text(middle)}).\n{cases}"


def _bernstein(polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational, hi: sp.Rational) -> list[sp.Rational]:
    """The coefficients c_k of sum c_k (x - lo)^k (hi - x)^(d - k)."""
    s = sp.Symbol("s")
    # x = (lo + hi s)/(1 + s), s = (x - lo)/(hi - x) >= 0.
    degree = int(sp.degree(polynomial, x))
    powers = sp.Poly(polynomial, x).all_coeffs()[::-1]
    total = sum((c * (lo + hi * s) ** k * (1 + s) ** (degree - k) for k, c in enumerate(powers)), sp.S.Zero)
    coefficients = sp.Poly(sp.expand(total), s).all_coeffs()[::-1]
    padded = coefficients + [sp.S.Zero] * (degree + 1 - len(coefficients))
    return [c / (hi - lo) ** degree for c in padded]


def _sum_of_products(
    polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational, hi: sp.Rational, terms: list[sp.Rational]
) -> str:
    degree, below, above = len(terms) - 1, real_text(x - lo), real_text(hi - x)
    products = [f"{real_text(c)} * ({below} ^ {k} * {above} ^ {degree - k})" for k, c in enumerate(terms) if c != 0]
    return _replaced(polynomial, products)


def nonnegative_above(polynomial: sp.Expr, x: sp.Symbol, lo: sp.Rational) -> str:
    """Tactics for `0 <= polynomial` where `lo <= x`: all coefficients around lo are >= 0."""
    powers = sp.Poly(sp.expand(polynomial.subs(x, x + lo)), x).all_coeffs()[::-1]
    if any(c < 0 for c in powers):
        raise NotApplicable(f"{polynomial} has a negative coefficient around {lo}")
    products = [f"{real_text(c)} * ({real_text(x - lo)} ^ {k} * 1 ^ 0)" for k, c in enumerate(powers) if c != 0]
    return _replaced(polynomial, products)


def _replaced(polynomial: sp.Expr, products: list[str]) -> str:
    return (
        f"replace {real_text(polynomial)} with\n  ({' + '.join(products)}) by field.\n"
        "repeat apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [lra | apply Rmult_le_pos; apply pow_le; lra])."
    )
