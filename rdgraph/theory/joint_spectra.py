"""Modes of several fields under a step, decided exactly: is a mode that the flow damps amplified at some lam in [0, 2]?

P(lam) is a matrix of polynomials with rational coefficients. Between the zeros of finitely many polynomials in lam no
eigenvalue of P crosses the imaginary axis and none of the step's matrix R(step P) crosses the unit circle, so that one
rational lam stands for each such cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.decisions.polynomial_cells import cell_points, rational_polynomial
from rdgraph.errors import Undecided
from rdgraph.methods.runge_kutta import Tableau, z
from rdgraph.syntax.answer_symbols import lam

#: Most fields that act on each other in a circle.
MOST_FIELDS = 4
#: Bits tried one after the other until a modulus is told from 1.
_PRECISIONS = (64, 256, 1024)

Rows = list[list[Any]]


@dataclass(frozen=True)
class Block:
    """An F x F matrix of polynomials in lam (of flint) that does not fall apart into smaller ones."""

    rows: Rows

    @cached_property
    def crossings(self) -> list[Any]:
        """Polynomials that vanish where an eigenvalue is zero or two have the sum zero: the imaginary axis."""
        return [determinant(self.rows), *([] if self.size == 1 else [determinant(_additive_compound(self.rows))])]

    @property
    def size(self) -> int:
        """F."""
        return len(self.rows)

    def amplified(self, method: Tableau, step: sp.Rational) -> Any | None:
        """A rational lam at which a mode that the flow does not amplify is amplified by the step; None: there is none.

        Single lam at which a mode is neutral while it grows on both sides are left out.
        """
        step_matrix = _polynomial_of(self.rows, _weights(method, step))
        circle = [determinant(_shifted(step_matrix, sign)) for sign in (-1, 1)]
        if self.size > 1:
            circle.append(determinant(_shifted(_compound(step_matrix), -1)))
        for point in cell_points([*self.crossings, *circle], sp.S.Zero, sp.Integer(2)):
            if any(mode.is_amplified for mode in self._modes(point, method, step) if not mode.grows):
                return point
        return None

    def touches(self, method: Tableau, step: sp.Rational, point: sp.Rational) -> bool:
        """Proved: at a rational lam no mode grows, and the step leaves a damped one exactly on the unit circle.

        Then no larger step is stable for a method whose region rays leave once.
        """
        from flint import fmpq

        where = fmpq(int(point.p), int(point.q))
        matrix = [[entry(where) for entry in row] for row in self.rows]
        weights = _weights(method, step)
        trace, product = sum(matrix[i][i] for i in range(self.size)), determinant(matrix)
        if self.size == 1 or (self.size == 2 and product == 0):  # the only mode that is not constant decays like this
            return bool(trace < 0 and _value(weights, trace) ** 2 == 1)
        modes = [_mode(value, weights, _PRECISIONS[-1]) for value in self._eigenvalues(where, _PRECISIONS[-1])]
        still = self.size == 2 and self.crossings[1].degree() < 0  # the trace is zero at every lam
        if any(mode.grows or mode.is_amplified for mode in modes) or (self.size == 2 and not (trace < 0 or still)):
            return False
        if self.size > 2 and not all(value.real < 0 for value in self._eigenvalues(where, _PRECISIONS[-1])):
            return False
        stepped = _polynomial_of(matrix, weights)
        circle = [determinant(_shifted(stepped, sign)) for sign in (-1, 1)]
        # Products of two can only be 1 on the circle, since none is outside.
        return any(x == 0 for x in (*circle, determinant(_shifted(_compound(stepped), -1))))

    def growing(self) -> Any | None:
        """A rational lam at which the flow itself amplifies a mode; None: there is none but at single lam."""
        for point in self.points():
            if any(real > 0 for real in self._real_parts(point)):
                return point
        return None

    def is_damping(self) -> bool:
        """Whether some mode decays, or oscillates, at some lam; otherwise every step will do."""
        return any(real <= 0 and not still for point in self.points() for real, still in self._rates(point))

    def points(self) -> list[Any]:
        """One lam for each cell in which no eigenvalue of P crosses the imaginary axis."""
        return cell_points(self.crossings, sp.S.Zero, sp.Integer(2))

    # ------------------------------------------------------------------ one lam
    def _real_parts(self, point: Any) -> list[int]:
        return [real for real, _ in self._rates(point)]

    def _rates(self, point: Any) -> list[tuple[int, bool]]:
        """The sign of the real part of every eigenvalue at a lam inside a cell, and whether the eigenvalue is zero."""
        found = []
        for value in self._eigenvalues(point, _PRECISIONS[-1]):
            sign = 1 if value.real > 0 else -1 if value.real < 0 else 0
            if sign == 0 and self.size > 2:
                raise Undecided("a mode is too close to the imaginary axis")
            found.append((sign, sign == 0 and bool(value.imag == 0)))
        return found

    def _modes(self, point: Any, method: Tableau, step: sp.Rational) -> list[_Mode]:
        """Every mode, with enough digits to tell its modulus from 1 and its real part from 0.

        What is not told apart for one or two fields lies on the circle or on the axis: in a cell it does so for every
        lam. Of more fields that is not known.
        """
        for bits in _PRECISIONS:
            found = [_mode(value, _weights(method, step), bits) for value in self._eigenvalues(point, bits)]
            if all(mode.is_told for mode in found):
                return found
        if self.size > 2:
            raise Undecided("a mode is too close to the unit circle or to the imaginary axis")
        return found

    def _eigenvalues(self, point: Any, bits: int) -> list[Any]:
        """Balls around the eigenvalues of P at a rational lam; neutral ones of one or two fields are exactly so."""
        from flint import acb, acb_mat, arb, ctx

        matrix = [[entry(point) for entry in row] for row in self.rows]
        before, ctx.prec = ctx.prec, bits
        try:
            if self.size == 1:
                return [acb(matrix[0][0])]
            if self.size == 2:
                trace = matrix[0][0] + matrix[1][1]
                square = trace * trace / 4 - (matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0])
                root = arb(abs(square)).sqrt()
                middle = arb(trace / 2)
                if square < 0:
                    return [acb(middle, root), acb(middle, -root)]
                if trace * trace / 4 == square:  # one eigenvalue is zero
                    return [acb(trace), acb(0)]
                return [acb(middle + root), acb(middle - root)]
            try:
                return list(acb_mat([[acb(x) for x in row] for row in matrix]).eig())
            except ValueError:
                raise Undecided("eigenvalues too close to be enclosed") from None
        finally:
            ctx.prec = before


@dataclass(frozen=True)
class _Mode:
    """Whether the flow amplifies it, whether a step does, and whether both were told with certainty."""

    grows: bool
    is_amplified: bool
    is_told: bool


def _value(weights: Sequence[Any], value: Any) -> Any:
    total = value * 0
    for weight in reversed(weights):
        total = total * value + weight
    return total


def _mode(value: Any, weights: Sequence[Any], bits: int) -> _Mode:
    from flint import acb, ctx

    before, ctx.prec = ctx.prec, bits
    try:
        size, real = abs(_value(weights, acb(value))), value.real
        told = (size > 1 or size < 1) and (real > 0 or real < 0)
        return _Mode(bool(real > 0), bool(size > 1), bool(told))
    finally:
        ctx.prec = before


def blocks(P: sp.Matrix) -> list[Block]:
    """The matrices on the diagonal once fields are ordered by who acts on whom: together they have P's eigenvalues.

    >>> [block.size for block in blocks(sp.Matrix([[0, 1, 5], [-1, 0, 0], [0, 0, -lam]]))]
    [2, 1]
    """
    return [Block([[_polynomial(P[i, j]) for j in group] for i in group]) for group in groups(P)]


def groups(P: sp.Matrix) -> list[tuple[int, ...]]:
    """Which fields act on each other in a circle."""
    size = P.rows
    reach = [[i == j or P[i, j] != 0 for j in range(size)] for i in range(size)]
    for k, i, j in itertools.product(range(size), repeat=3):
        reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    found = dict.fromkeys(tuple(j for j in range(size) if reach[i][j] and reach[j][i]) for i in range(size))
    if any(len(group) > MOST_FIELDS for group in found):
        raise Undecided(f"more than {MOST_FIELDS} fields act on each other")
    return list(found)


def _polynomial(entry: sp.Expr) -> Any:
    return rational_polynomial(list(reversed(sp.Poly(entry, lam).all_coeffs())))


def _weights(method: Tableau, step: sp.Rational) -> list[Any]:
    """Coefficients of R(step*mu) in powers of mu."""
    ascending = reversed(sp.Poly(method.stability, z).all_coeffs())
    return rational_polynomial([c * step**k for k, c in enumerate(ascending)]).coeffs()


# ---------------------------------------------------------------------- matrices of polynomials
def determinant(rows: Rows) -> Any:
    """By the first row; the matrices are small."""
    if len(rows) == 1:
        return rows[0][0]
    total = rows[0][0] * 0
    for j, entry in enumerate(rows[0]):
        if entry != 0:
            minor = determinant([row[:j] + row[j + 1 :] for row in rows[1:]])
            total = total + entry * minor if j % 2 == 0 else total - entry * minor
    return total


def _shifted(rows: Rows, number: int) -> Rows:
    return [[entry + number if i == j else entry for j, entry in enumerate(row)] for i, row in enumerate(rows)]


def _polynomial_of(rows: Rows, weights: Sequence[Any]) -> Rows:
    """sum_k weights[k] rows^k."""
    total: Rows = [[entry * 0 for entry in row] for row in rows]
    for weight in reversed(weights):
        product = [[sum((a * b for a, b in zip(row, column, strict=True)), row[0] * 0)
                    for column in zip(*rows, strict=True)] for row in total]  # fmt: skip
        total = _shifted(product, weight)
    return total


def _pairs(size: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(size), 2))


def _compound(rows: Rows) -> Rows:
    """The matrix of all 2 x 2 minors: its eigenvalues are the products of two."""
    pairs = _pairs(len(rows))
    return [[rows[i][k] * rows[j][m] - rows[i][m] * rows[j][k] for k, m in pairs] for i, j in pairs]


def _additive_compound(rows: Rows) -> Rows:
    """The matrix whose eigenvalues are the sums of two."""
    zero = rows[0][0] * 0
    pairs = _pairs(len(rows))

    def entry(i: int, j: int, k: int, m: int) -> Any:
        parts = (rows[i][k], j == m), (-rows[i][m], j == k), (rows[j][m], i == k), (-rows[j][k], i == m)
        return sum((value for value, counts in parts if counts), zero)

    return [[entry(i, j, k, m) for k, m in pairs] for i, j in pairs]
