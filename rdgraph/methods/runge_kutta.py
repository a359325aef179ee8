"""Explicit Runge-Kutta methods as data: tableau, stability polynomial, real stability limit, monotonicity radius."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import sympy as sp

from rdgraph.errors import InvalidArgument

z = sp.Symbol("z", real=True)


@dataclass(frozen=True)
class Tableau:
    """Weights of an explicit method; checks itself: strictly lower triangular, consistent, linear order as declared.

    >>> half = sp.Rational(1, 2)
    >>> Tableau("heun", ((), (sp.S.One,)), (half, half), 2).stability
    z**2/2 + z + 1
    """

    name: str
    stages: tuple[tuple[sp.Rational, ...], ...]
    weights: tuple[sp.Rational, ...]
    order: int
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != i for i, row in enumerate(self.stages)) or len(self.weights) != len(self.stages):
            raise InvalidArgument(f"expected stage i to have i entries and one weight per stage in {self.name}")
        taylor = sum(z**k / sp.factorial(k) for k in range(self.order + 1))
        difference = sp.Poly(self.stability - taylor, z)
        if not difference.is_zero and min(m[0] for m in difference.monoms()) <= self.order:
            raise InvalidArgument(
                f"{self.name} declares order {self.order}, but its stability polynomial is {self.stability}"
            )

    @property
    def nodes(self) -> tuple[sp.Rational, ...]:
        return tuple(sum(row, sp.S.Zero) for row in self.stages)

    @property
    def stability(self) -> sp.Expr:
        """R(z) = 1 + z b^T (1 - z A)^-1 1, the factor of one step on H' = p H with z = step * p."""
        values: list[sp.Expr] = []
        for row in self.stages:
            values.append(sp.expand(1 + z * sum((a * v for a, v in zip(row, values, strict=True)), sp.S.Zero)))
        return sp.expand(1 + z * sum((b * v for b, v in zip(self.weights, values, strict=True)), sp.S.Zero))

    @property
    def is_euler(self) -> bool:
        return len(self.weights) == 1

    @property
    def averages_euler(self) -> bool:
        """Heun's method: the mean of a state and of what two steps of Euler make of it."""
        return self.stages == ((), (sp.S.One,)) and self.weights == (sp.Rational(1, 2), sp.Rational(1, 2))

    @property
    def half_disc(self) -> sp.Rational:
        """The largest x, in twentieths, with |R(z)| <= 1 wherever |z| <= x and the real part of z is <= 0.

        By the maximum principle the border decides: z = i y, and z = x (-c + i sqrt(1 - c^2)).

        >>> from rdgraph.methods.tableaux import methods
        >>> methods["rk4"].half_disc, methods["euler"].half_disc
        (13/5, 0)
        """
        return _half_disc(self.stability)

    def factor(self, argument: sp.Expr) -> sp.Expr:
        """R at a given argument."""
        return self.stability.subs(z, argument)

    @property
    def real_limit(self) -> sp.Expr:
        """The largest x with |R| <= 1 on [-x, 0], an exact algebraic number."""
        return _first_violation((1 - self.stability, 1 + self.stability))

    @property
    def monotone_radius(self) -> sp.Expr:
        """The largest x such that R, (R-1)/z and all their derivatives are >= 0 on [-x, 0].

        Then a step of a linear system with -x <= step * c_0 and other coefficients >= 0 is a convex combination.
        """
        increment = sp.cancel((self.stability - 1) / z)
        pieces = []
        for polynomial in (self.stability, increment):
            degree = sp.degree(polynomial, z) if polynomial.has(z) else 0
            pieces += [sp.diff(polynomial, z, k) for k in range(degree + 1)]
        return _first_violation(tuple(pieces))


@cache
def _half_disc(stability: sp.Expr) -> sp.Rational:
    terms = sp.Poly(stability, z).terms()
    c, x = sp.Symbol("c", real=True), sp.Symbol("x", real=True)
    # |R|^2 = sum_jk a_j a_k x^(j+k) cos((j-k) t) at z = x exp(i t), with cos(t) = -c
    square = sum(a * b * x ** (j + k) * sp.chebyshevt(abs(j - k), -c) for (j,), a in terms for (k,), b in terms)

    def damps(size: sp.Rational) -> bool:
        arc, axis = sp.Poly(1 - square.subs(x, size), c), sp.Poly(1 - square.subs(c, 0), x)
        return _is_nonnegative(arc, sp.S.One) and _is_nonnegative(axis, size)

    found = sp.S.Zero
    while damps(found + sp.Rational(1, 20)):
        found += sp.Rational(1, 20)
    return found


def _is_nonnegative(polynomial: sp.Poly, end: sp.Rational) -> bool:
    """Whether a polynomial is >= 0 on [0, end]: tried between its zeros."""
    inside = sorted({r for r in sp.real_roots(polynomial) if 0 <= r <= end} | {sp.S.Zero, end})
    points = [(a + b) / 2 for a, b in itertools.pairwise(inside)]
    return all(sp.N(polynomial.eval(p), 30) >= 0 for p in points)


@cache
def _first_violation(polynomials: tuple[sp.Expr, ...]) -> sp.Expr:
    """Smallest x > 0 at which one of the polynomials turns negative on the way from 0 to -x."""
    found = []
    for polynomial in polynomials:
        if not polynomial.has(z):
            continue
        roots = sorted({r for r in sp.real_roots(sp.Poly(polynomial, z)) if r <= 0}, reverse=True)
        for i, root in enumerate(roots):
            probe = (root + roots[i + 1]) / 2 if i + 1 < len(roots) else root - 1
            if polynomial.subs(z, probe) < 0:
                found.append(-root)
                break
    return min(found) if found else sp.oo


def make_tableau(
    name: str, stages: Sequence[Sequence[object]], weights: Sequence[object], order: int, note: str = ""
) -> Tableau:
    """A tableau of numbers, or of texts of fractions.

    Args:
        name: what the method is called.
        stages: row i holds the weights of the slopes k_0 ... k_(i-1) in stage i; the first row is empty.
        weights: of the slopes in the step.
        order: of the method; the stability polynomial must agree with exp up to it.
        note: one line about the method.

    Returns:
        The checked tableau.

    Raises:
        InvalidArgument: the shape is wrong, or the stability polynomial contradicts the order.

    >>> make_tableau("ralston", [[], ["2/3"]], ["1/4", "3/4"], 2).nodes
    (0, 2/3)
    """
    rows = tuple(tuple(sp.Rational(x) for x in row) for row in stages)
    return Tableau(name, rows, tuple(sp.Rational(x) for x in weights), order, note)
