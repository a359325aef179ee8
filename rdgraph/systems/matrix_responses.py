"""Responses of linear systems of several fields: what a flow or a method does to a frequency, as an F x F matrix.

On an eigenvector of L with eigenvalue lam the fields are h' = P(lam) h + Q(lam) h(0), and after time T they are G h(0).
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.methods.registry import is_exact_flow
from rdgraph.methods.runge_kutta import Tableau, z
from rdgraph.methods.tableaux import tableau
from rdgraph.syntax import answer_symbols
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.symbol_functions import exponential, function_of, integral, polynomial_of, quotient_of

#: Runs that are a polynomial of at most this degree are multiplied out; longer ones are written by eigenvalues.
MOST_DEGREES = 24


def matrix_gain(
    P: sp.ImmutableMatrix, Q: sp.ImmutableMatrix, T: Any, method: str | Tableau, step: Any
) -> sp.ImmutableMatrix:
    """G of the fields after time T, source terms included, in the symbols of P and Q.

    Args:
        P: the matrix symbol.
        Q: the symbol of the starts.
        T: the end time; None for the letter T.
        method: "exact", a method with a tableau or a `Tableau`.
        step: of a method; None for the letter tau.

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
