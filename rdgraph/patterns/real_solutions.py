"""All real solutions of polynomial equations with rational coefficients, exact and complete.

The coordinates of the solutions are eigenvalues of multiplication matrices modulo a Groebner basis (Stickelberger), so
every solution is a tuple of real roots of their characteristic polynomials. Tuples at which an equation differs from
zero are excluded by enclosures. The signature of the trace form counts the distinct real solutions (Hermite): where as
many tuples are left, each of them is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.orderings import grevlex

from rdgraph.decisions.enclosure import enclose, enclose_at, precision
from rdgraph.errors import Undecided
from rdgraph.patterns.bands import real_roots
from rdgraph.patterns.half_planes import PRECISIONS

#: Solutions, complex ones and multiplicities included, and tuples that are looked at.
MAX_DIMENSION = 60
MAX_TUPLES = 20_000


class Continuum(Exception):
    """Equations whose complex solutions are not finitely many."""


def real_solutions(equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> list[tuple[sp.Expr, ...]]:
    """Every real solution of equations = 0, as exact numbers in the order of the letters.

    Raises `Continuum` where there are infinitely many complex ones, `Undecided` beyond the limits.

    >>> x, y = sp.symbols("x y")
    >>> real_solutions([x**2 + y**2 - 2, x - y], [x, y])
    [(-1, -1), (1, 1)]
    """
    basis = sp.groebner(list(equations), *letters, order="grevlex", domain=sp.QQ)
    if basis.exprs == [1]:
        return []
    if not basis.is_zero_dimensional:
        raise Continuum
    algebra = _Quotient(basis, letters)
    roots = [_real_roots(matrix) for matrix in algebra.multiplications]
    tuples = math.prod(map(len, roots))
    if tuples > MAX_TUPLES:
        raise Undecided(f"{tuples} tuples of coordinates are more than {MAX_TUPLES}")
    count = algebra.real_count()
    left = list(itertools.product(*roots))
    for bits in PRECISIONS:
        left = [values for values in left if _may_vanish(equations, letters, values, bits)]
        if len(left) == count:
            return left
    raise Undecided(f"{len(left)} tuples of coordinates remain for {count} real solutions")


class _Quotient:
    """Polynomials modulo a Groebner basis: a vector space with the monomials that no leading monomial divides."""

    def __init__(self, basis: Any, letters: Sequence[sp.Symbol]) -> None:
        self.basis, self.letters = basis, tuple(letters)
        leading = [sp.Poly(g, *letters).monoms(order=grevlex)[0] for g in basis.exprs]
        self.monomials = _standard_monomials(leading, len(letters))
        self.place = {m: k for k, m in enumerate(self.monomials)}
        self.multiplications = [self._multiplication(i) for i in range(len(letters))]

    def _column(self, monomial: tuple[int, ...]) -> list[sp.Rational]:
        column = [sp.QQ(0)] * len(self.monomials)
        if monomial in self.place:
            column[self.place[monomial]] = sp.QQ(1)
            return column
        product = sp.Mul(*(x**k for x, k in zip(self.letters, monomial, strict=True)))
        rest = sp.Poly(self.basis.reduce(product)[1], *self.letters, domain=sp.QQ)
        for powers, c in rest.terms():
            if c != 0:
                column[self.place[powers]] = sp.QQ.from_sympy(c)
        return column

    def _multiplication(self, i: int) -> DomainMatrix:
        raised = [tuple(k + (j == i) for j, k in enumerate(m)) for m in self.monomials]
        size = len(self.monomials)
        return DomainMatrix([self._column(m) for m in raised], (size, size), sp.QQ).transpose()

    def real_count(self) -> int:
        """The number of distinct real solutions: the signature of (p, q) -> trace of the multiplication by p*q."""
        size = len(self.monomials)
        powers = [self._matrix(m) for m in self.monomials]
        traces = [sum((m.to_Matrix()[k, k] for k in range(size)), sp.S.Zero) for m in powers]
        form = sp.zeros(size)
        for i in range(size):
            for j in range(i, size):
                product = powers[i] * DomainMatrix([[sp.QQ(k == j)] for k in range(size)], (size, 1), sp.QQ)
                column = product.to_Matrix()
                form[i, j] = form[j, i] = sum(column[k] * traces[k] for k in range(size))
        signs = DomainMatrix.from_Matrix(form).convert_to(sp.QQ).charpoly()
        return _sign_changes(signs) - _sign_changes([c * (-1) ** k for k, c in enumerate(signs)])

    def _matrix(self, monomial: tuple[int, ...]) -> DomainMatrix:
        result = DomainMatrix.eye(len(self.monomials), sp.QQ)
        for matrix, times in zip(self.multiplications, monomial, strict=True):
            for _ in range(times):
                result = result * matrix
        return result


def _standard_monomials(leading: Sequence[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    bounds = [min(m[i] for m in leading if sum(m) == m[i]) for i in range(count)]
    if math.prod(bounds) > 50 * MAX_DIMENSION:
        raise Undecided(f"the equations have up to {math.prod(bounds)} solutions")
    kept = [
        m for m in itertools.product(*map(range, bounds))
        if not any(all(a >= b for a, b in zip(m, lead, strict=True)) for lead in leading)
    ]  # fmt: skip
    if len(kept) > MAX_DIMENSION:
        raise Undecided(f"the equations have {len(kept)} complex solutions, more than {MAX_DIMENSION}")
    return kept


def _sign_changes(coefficients: Sequence[Any]) -> int:
    """Changes of sign in the coefficients: for a polynomial whose roots are all real, how many are positive."""
    signs = [c > 0 for c in coefficients if c != 0]
    return sum(a != b for a, b in itertools.pairwise(signs))


def _real_roots(matrix: DomainMatrix) -> list[sp.Expr]:
    x = sp.Dummy("x")
    return real_roots(sp.Poly(matrix.charpoly(), x, domain=sp.QQ).as_expr(), x, -sp.oo, sp.oo)


def _may_vanish(
    equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol], values: Sequence[sp.Expr], bits: int
) -> bool:
    given = {x: enclose(value, bits) for x, value in zip(letters, values, strict=True)}
    with precision(bits):
        return all(enclose_at(sp.expand(f), given).contains(0) for f in equations)
