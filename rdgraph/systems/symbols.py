"""Responses of linear systems: the generator symbol, and the gain of a frequency under the flow or a method.

On an eigenvector of L with eigenvalue lam the system is H' = p(lam) H + q(lam) H0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language import answer_symbols
from rdgraph.language.answer_symbols import lam
from rdgraph.language.normal_form import H
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.structure import Structure
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.methods import Tableau, is_exact_flow, tableau, z

# ---------------------------------------------------------------------- symbol functions
# Functions of a matrix symbol in closed form: exp(T P), and polynomials of one step raised to a power, P is F x F.
#
# Two fields: with m = tr(P)/2 and w = m^2 - det(P) the eigenvalues are a = m + sqrt(w) and b = m - sqrt(w), and f(P) is
# (f(a) + f(b))/2 + (f(a) - f(b))/(2 sqrt(w)) (P - m), at w = 0 f(m) + f'(m) (P - m). More fields: Newton's form f(P) =
# sum_k f[mu_1, ..., mu_(k+1)] (P - mu_1)...(P - mu_k) with divided differences that are right where eigenvalues
# coincide.

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
    roots: list[sp.Expr] = []
    for polynomial, power in sp.Poly(P.charpoly().all_coeffs(), _MU).factor_list()[1]:
        if polynomial.degree() > 2:
            raise NotApplicable(
                f"expected a characteristic polynomial of factors of degree 1 and 2, got the factor of degree "
                f"{polynomial.degree()} of {P.rows} fields; give numbers and use solve(..., method='exact')"
            )
        roots += [root for root, count in sp.roots(polynomial).items() for _ in range(count * power)]
    return roots


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


# ---------------------------------------------------------------------- matrix responses
# Responses of linear systems of several fields: what a flow or a method does to a frequency, as an F x F matrix.
#
# On an eigenvector of L with eigenvalue lam the fields are h' = P(lam) h + Q(lam) h(0), and after time T they are G
# h(0).

#: Runs that are a polynomial of at most this degree are multiplied out; longer ones are written by eigenvalues.
MOST_DEGREES = 24


def matrix_gain(
    P: sp.ImmutableMatrix, Q: sp.ImmutableMatrix, T: Any, method: str | Tableau, step: Any
) -> sp.ImmutableMatrix:
    """G of the fields after time T, source terms included, in the symbols of P and Q.

    Args:
        P: the matrix symbol.
        Q: the symbol of the initial states.
        T: the end time; None for the symbol T.
        method: "exact", the name of a method with a tableau, or a `Tableau`.
        step: the step of a method; None for the symbol tau.

    Returns:
        The matrix.

    Raises:
        InvalidArgument: T < 0, or a step <= 0.
        NotApplicable: more than two fields whose eigenvalues have no closed form.

    >>> x = sp.Symbol("x", positive=True)
    >>> P = sp.ImmutableMatrix([[0, 1], [-x, 0]])
    >>> matrix_gain(P, sp.zeros(2), 1, "euler", sp.Rational(1, 2))
    Matrix([
    [1 - x/4,       1],
    [     -x, 1 - x/4]])
    """
    end = answer_symbols.T if T is None else exact_number(T, "T")
    if end.is_negative:
        raise InvalidArgument(f"expected T >= 0, got {T}")
    if is_exact_flow(method):
        flow = exponential(P, end)
        return flow if Q.is_zero_matrix else _added(flow, integral(P, end) * Q)
    return _stepped(P, Q, end, tableau(method), step)


def _stepped(
    P: sp.ImmutableMatrix, Q: sp.ImmutableMatrix, end: sp.Expr, weights: Tableau, step: Any
) -> sp.ImmutableMatrix:
    """The factor f(P) of all steps, and (f(P) - 1)/P of the source, which is a polynomial too."""
    size = answer_symbols.tau if step is None else exact_number(step, "step")
    if size.is_nonpositive:
        raise InvalidArgument(f"expected a step > 0, got {step}")
    if not (size.is_number and end.is_number):
        mu = sp.Dummy("mu")
        factor = weights.factor(size * mu) ** (end / size)
        return _by_eigenvalues(P, Q, factor, mu)
    full = int(sp.floor(end / size))
    rest = end - full * size
    one, last = weights.factor(size * z), weights.factor(rest * z) if rest else sp.S.One
    if sp.degree(weights.stability, z) * (full + bool(rest)) > MOST_DEGREES:
        return _by_eigenvalues(P, Q, one**full * last, z)
    ascending = list(reversed(sp.Poly(one**full * last, z).all_coeffs()))
    flow = polynomial_of(P, ascending)
    if Q.is_zero_matrix or len(ascending) == 1:
        return flow
    return _added(flow, (polynomial_of(P, ascending[1:]) * Q).applyfunc(sp.expand))


def _by_eigenvalues(P: sp.ImmutableMatrix, Q: sp.ImmutableMatrix, factor: sp.Expr, mu: sp.Symbol) -> sp.ImmutableMatrix:
    flow = function_of(P, factor, mu)
    return flow if Q.is_zero_matrix else _added(flow, quotient_of(P, factor, mu) * Q)


def _added(flow: sp.ImmutableMatrix, forced: sp.Matrix) -> sp.ImmutableMatrix:
    return (flow + forced).as_immutable()


# ---------------------------------------------------------------------- responses
def generator_symbol(structure: Structure) -> sp.Expr:
    """p(lam) in internal symbols; raises NotApplicable with the reason where there is none."""
    if not structure.linear or structure.coupled.has(H, Nought):
        raise NotApplicable(f"no symbol because {'; '.join(structure.obstacles)}")
    return _polynomial(structure.generator)


def source_symbol(structure: Structure) -> sp.Expr:
    """q(lam), the factor of H0; raises NotApplicable where the forcing is not a filter of H0."""
    if structure.constant != 0 or structure.coupled != 0:
        raise NotApplicable(f"no response because {'; '.join(structure.obstacles)}")
    return _polynomial(structure.source)


def _polynomial(coefficients: dict[int, sp.Expr]) -> sp.Expr:
    total = sum((c * (1 - lam) ** k for k, c in coefficients.items()), sp.S.Zero)
    return sp.collect(sp.expand(total), lam)


def gain(structure: Structure, T: Any, method: str | Tableau, step: Any) -> sp.Expr:
    """Gain of frequency lam after time T, source terms included, in internal symbols."""
    end = answer_symbols.T if T is None else exact_number(T, "T")
    if end.is_negative:
        raise InvalidArgument(f"expected T >= 0, got {T}")
    p, q = generator_symbol(structure), source_symbol(structure)
    factor = sp.exp(end * p) if is_exact_flow(method) else _product_of_steps(p, end, method, step)
    if q == 0:
        return factor
    if p == 0:
        return 1 + q * end
    forced = factor + q * (factor - 1) / p
    return sp.Piecewise((forced, sp.Ne(p, 0)), (1 + q * end, True))


def _product_of_steps(p: sp.Expr, end: sp.Expr, method: str | Tableau, step: Any) -> sp.Expr:
    method_tableau = tableau(method)
    size = answer_symbols.tau if step is None else exact_number(step, "step")
    if size.is_nonpositive:
        raise InvalidArgument(f"expected a step > 0, got {step}")
    if not (size.is_number and end.is_number):
        return method_tableau.factor(size * p) ** (end / size)
    full = int(sp.floor(end / size))
    rest = end - full * size
    return method_tableau.factor(size * p) ** full * (method_tableau.factor(rest * p) if rest else 1)
