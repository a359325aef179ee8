"""Where a method stops damping along a ray of the left half-plane: what oscillating modes ask of a step.

On z = x (-c + i sqrt(1 - c^2)) with 0 <= c <= 1 the square |R(z)|^2 is a polynomial in x and c.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp

from rdgraph.decisions.polynomial_cells import cell_points, rational_polynomial, signs_to_infinity
from rdgraph.methods.runge_kutta import Tableau, z

_x, _c = sp.Symbol("x", real=True), sp.Symbol("c", real=True)


def imaginary_limit(method: Tableau) -> sp.Expr:
    """The largest y with |R| <= 1 on [0, iy], an algebraic number; 0 where no oscillation is kept bounded.

    >>> from rdgraph.methods.tableaux import methods
    >>> imaginary_limit(methods["rk4"]), imaginary_limit(methods["euler"])
    (2*sqrt(2), 0)
    """
    excess = _excess(method.stability, sp.S.Zero)
    if signs_to_infinity(excess)[0] > 0:
        return sp.S.Zero
    coefficients = [sp.Rational(int(c.p), int(c.q)) for c in reversed(excess.coeffs())]
    roots = [r for r in sp.real_roots(sp.Poly(coefficients, _x)) if r > 0]
    # Leaving once and for good, the ray does so at its only zero of odd order.
    return next(r for r in roots if roots.count(r) % 2) if leaves_once(method.stability) else sp.S.Zero


@cache
def leaves_once(stability: sp.Expr) -> bool:
    """Whether every ray of the closed left half-plane leaves the region |R| <= 1 once and for good.

    Then a step at which all damped modes are damped shows it for every smaller step. Along a ray |R|^2 - 1 changes its
    sign at its zeros of odd order; their number changes with c only where the discriminant in x vanishes, so that one
    ray between two zeros of the discriminant stands for all, beside those at c = 0 and c = 1.

    >>> from rdgraph.methods.tableaux import methods
    >>> leaves_once(methods["rk4"].stability)
    True
    """
    between = cell_points([_discriminant(stability)], sp.S.Zero, sp.S.One)
    rays = [sp.S.Zero, *(sp.Rational(int(c.p), int(c.q)) for c in between), sp.S.One]
    return all(signs_to_infinity(_excess(stability, ray)) in ([-1], [1], [-1, 1]) for ray in rays)


@cache
def _ray_polynomial(stability: sp.Expr) -> sp.Poly:
    """(|R|^2 - 1)/x in x and c."""
    terms = sp.Poly(stability, z).terms()
    square = sum(a * b * _x ** (j + k) * sp.chebyshevt(abs(j - k), -_c) for (j,), a in terms for (k,), b in terms)
    return sp.Poly(sp.cancel((square - 1) / _x), _x, _c)


def _excess(stability: sp.Expr, ray: sp.Rational) -> Any:
    """|R|^2 - 1 along one ray, divided by the highest power of x in it."""
    ascending = list(reversed(sp.Poly(_ray_polynomial(stability).as_expr().subs(_c, ray), _x).all_coeffs()))
    lowest = next(k for k, c in enumerate(ascending) if c != 0)
    return rational_polynomial(ascending[lowest:])


def _discriminant(stability: sp.Expr) -> Any:
    """That of the ray polynomial in x, as a polynomial in c."""
    from flint import fmpq, fmpq_mpoly_ctx, fmpq_poly

    polynomial = _ray_polynomial(stability)
    if polynomial.degree(_x) < 2:
        return fmpq_poly([1])
    context = fmpq_mpoly_ctx.get(("x", "c"), "lex")
    terms = {m: fmpq(int(a.p), int(a.q)) for m, a in polynomial.terms()}
    found = context.from_dict(terms).discriminant("x").to_dict()
    entries = {int(m[1]): a for m, a in found.items()}
    return fmpq_poly([entries.get(k, fmpq(0)) for k in range(1 + max(entries, default=0))])
