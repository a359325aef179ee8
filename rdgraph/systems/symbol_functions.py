"""Functions of a matrix symbol in closed form: exp(T P), and polynomials of one step raised to a power, P is F x F.

Two fields: with m = tr(P)/2 and w = m^2 - det(P) the eigenvalues are a = m + sqrt(w) and b = m - sqrt(w), and f(P) is
(f(a) + f(b))/2 + (f(a) - f(b))/(2 sqrt(w)) (P - m), at w = 0 f(m) + f'(m) (P - m).
More fields: Newton's form f(P) = sum_k f[mu_1, ..., mu_(k+1)] (P - mu_1)...(P - mu_k) with divided differences that are
right where eigenvalues coincide.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import sympy as sp

from rdgraph.errors import NotApplicable

#: Most fields whose divided differences are written out case by case.
MOST_FIELDS = 4

_MU = sp.Dummy("mu")


def exponential(P: sp.ImmutableMatrix, T: sp.Expr) -> sp.ImmutableMatrix:
    """exp(T P), real and free of cancellation around double eigenvalues for two fields.

    >>> exponential(sp.ImmutableMatrix([[0, 1], [-1, 0]]), sp.pi / 2)
    Matrix([
    [ 0, 1],
    [-1, 0]])
    """
    if P.rows != 2:
        return function_of(P, sp.exp(T * _MU), _MU)
    middle, square = halves(P)
    root, turn = sp.sqrt(square), sp.sqrt(-square)
    even = _by_sign(square, sp.cosh(T * root), sp.cos(T * turn), sp.S.One)
    odd = _by_sign(square, sp.sinh(T * root) / root, sp.sin(T * turn) / turn, T)
    return (sp.exp(T * middle) * (even * sp.eye(2) + odd * (P - middle * sp.eye(2)))).as_immutable()


def integral(P: sp.ImmutableMatrix, T: sp.Expr) -> sp.ImmutableMatrix:
    """The integral of exp(s P) over s from 0 to T, also where P is singular.

    >>> integral(sp.ImmutableMatrix([[0, 1], [0, 0]]), sp.Integer(2))
    Matrix([
    [2, 2],
    [0, 2]])
    """
    flow = exponential(P, T) if P.rows == 2 else None
    return quotient_of(P, sp.exp(T * _MU), _MU, flow)


def function_of(P: sp.ImmutableMatrix, f: sp.Expr, mu: sp.Symbol) -> sp.ImmutableMatrix:
    """f(P) for an entire f, an expression in mu; raises NotApplicable where the eigenvalues have no closed form.

    >>> mu = sp.Symbol("mu")
    >>> function_of(sp.ImmutableMatrix([[2, 1], [0, 2]]), mu**3, mu)
    Matrix([
    [8, 12],
    [0,  8]])
    """
    if P.rows == 1:
        return sp.ImmutableMatrix([[f.subs(mu, P[0, 0])]])
    if P.rows != 2:
        return _newton(P, f, mu, _eigenvalues(P))
    middle, square = halves(P)
    root, centred = sp.sqrt(square), P - middle * sp.eye(2)
    confluent = f.subs(mu, middle) * sp.eye(2) + sp.diff(f, mu).subs(mu, middle) * centred
    if square == 0:
        return confluent.as_immutable()
    above, below = f.subs(mu, middle + root), f.subs(mu, middle - root)
    general = (above + below) / 2 * sp.eye(2) + (above - below) / (2 * root) * centred
    return _cases([(general, sp.Ne(square, 0)), (confluent, sp.true)])


def quotient_of(
    P: sp.ImmutableMatrix, f: sp.Expr, mu: sp.Symbol, flow: sp.ImmutableMatrix | None = None
) -> sp.ImmutableMatrix:
    """q(P) for q(mu) = (f(mu) - 1)/mu and f(0) = 1, also where P is singular; `flow` is f(P) where that is known.

    >>> mu = sp.Symbol("mu")
    >>> quotient_of(sp.ImmutableMatrix([[0, 1], [0, 0]]), (1 + mu) ** 3, mu)
    Matrix([
    [3, 3],
    [0, 3]])
    """
    if P.rows != 2:
        return _newton(P, f, mu, _eigenvalues(P), also=(sp.S.Zero,))
    trace, determinant = (sp.factor(x) for x in (P.trace(), P.det()))
    one, slope, bend = sp.eye(2), *(sp.diff(f, mu, k).subs(mu, 0) / k for k in (1, 2))
    pieces: list[tuple[sp.Matrix, sp.Basic]] = []
    if determinant != 0:
        flow = function_of(P, f, mu) if flow is None else flow
        pieces.append((P.adjugate() * (flow - one) / determinant, sp.Ne(determinant, 0)))
    if trace != 0:  # P^2 = trace*P where the determinant is zero
        pieces.append((slope * one + P * ((f.subs(mu, trace) - 1) / trace - slope) / trace, sp.Ne(trace, 0)))
    pieces.append((slope * one + bend * P, sp.true))
    return _cases(pieces)


def polynomial_of(P: sp.ImmutableMatrix, coefficients: Sequence[sp.Expr]) -> sp.ImmutableMatrix:
    """sum_k coefficients[k] P^k, expanded."""
    one = sp.eye(P.rows)
    total = coefficients[-1] * one
    for c in reversed(coefficients[:-1]):
        total = (total * P + c * one).applyfunc(sp.expand)
    return total.as_immutable()


def halves(P: sp.ImmutableMatrix) -> tuple[sp.Expr, sp.Expr]:
    """m and w of two fields: the eigenvalues are m + sqrt(w) and m - sqrt(w)."""
    middle = sp.expand(P.trace() / 2)
    return middle, sp.factor(sp.expand(middle**2 - P.det()))


def _by_sign(square: sp.Expr, positive: sp.Expr, negative: sp.Expr, zero: sp.Expr) -> sp.Expr:
    if square.is_positive:
        return positive
    if square.is_negative:
        return negative
    if square == 0:
        return zero
    return sp.Piecewise((positive, sp.Gt(square, 0)), (negative, sp.Lt(square, 0)), (zero, True))


def _cases(pieces: Sequence[tuple[sp.Matrix, sp.Basic]]) -> sp.ImmutableMatrix:
    """A matrix by cases, entry by entry."""
    size = pieces[0][0].rows
    entries = [
        [sp.Piecewise(*((matrix[i, j], condition) for matrix, condition in pieces)) for j in range(size)]
        for i in range(size)
    ]
    return sp.ImmutableMatrix(entries)


# ---------------------------------------------------------------------- more than two fields
def _eigenvalues(P: sp.ImmutableMatrix) -> list[sp.Expr]:
    """With multiplicity; raises NotApplicable where the characteristic polynomial has factors of degree 3 or more."""
    if P.rows > MOST_FIELDS:
        raise NotApplicable(
            f"expected at most {MOST_FIELDS} fields for a closed form, got {P.rows}; give numbers and use solve"
        )
    found: list[sp.Expr] = []
    for polynomial, power in sp.Poly(P.charpoly().all_coeffs(), _MU).factor_list()[1]:
        if polynomial.degree() > 2:
            raise NotApplicable(
                f"expected a characteristic polynomial of factors of degree 1 and 2, got the factor of degree "
                f"{polynomial.degree()} of {P.rows} fields; give numbers and use solve(..., method='exact')"
            )
        found += [root for root, count in sp.roots(polynomial).items() for _ in range(count * power)]
    return found


def _newton(
    P: sp.ImmutableMatrix, f: sp.Expr, mu: sp.Symbol, values: Sequence[sp.Expr], also: tuple[sp.Expr, ...] = ()
) -> sp.ImmutableMatrix:
    """Newton's form of f(P); with `also` that of the divided difference f[..., mu], a function of mu as well."""
    one = sp.eye(P.rows)
    total, product = sp.zeros(P.rows), one
    for k, value in enumerate(values):
        total += divided_difference(f, mu, (*also, *values[: k + 1])) * product
        product = (product * (P - value * one)).applyfunc(sp.expand)
    return total.as_immutable()


def divided_difference(f: sp.Expr, mu: sp.Symbol, points: tuple[sp.Expr, ...]) -> sp.Expr:
    """f[points]: by two points that differ, and by the derivative where all are equal.

    >>> x, a, b = sp.symbols("x a b")
    >>> divided_difference(x**2, x, (a, b))
    Piecewise(((a**2 - b**2)/(a - b), Ne(a - b, 0)), (2*a, True))
    """
    count = len(points) - 1
    equal = sp.diff(f, mu, count).subs(mu, points[0]) / sp.factorial(count)
    pieces: list[tuple[sp.Expr, sp.Basic]] = []
    for i, j in itertools.combinations(range(len(points)), 2):
        gap = sp.expand(points[i] - points[j])
        if gap == 0:
            continue
        upper, lower = (divided_difference(f, mu, points[:k] + points[k + 1 :]) for k in (j, i))
        value = (upper - lower) / gap
        if gap.is_number or gap.is_nonzero:
            return sp.Piecewise(*pieces, (value, True)) if pieces else value
        pieces.append((value, sp.Ne(gap, 0)))
    return sp.Piecewise(*pieces, (equal, True)) if pieces else equal
