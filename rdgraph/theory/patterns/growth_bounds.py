"""A proved bound of the growth of several operators that need not commute.

The linearisation is the generator G, the sum of C (x) X over operators X, or words of them, with matrices C of the
fields. Let W be any invertible real matrix of the fields. G has the eigenvalues of (W (x) I) G (W (x) I)^-1, in which
C becomes W C W^-1, and no eigenvalue has a larger real part than the largest eigenvalue of the Hermitian part of that
matrix (its numerical abscissa). With X = R + iS, R and S Hermitian, the Hermitian part of C (x) X is

    sym(C) (x) R + i skew(C) (x) S,     sym(C) = (C + C^T)/2, skew(C) = (C - C^T)/2.

If Z >= +-M for a Hermitian M, and K is Hermitian with |K| <= r, then M (x) K <= r Z (x) I: in the eigenvectors of K
the left side has the blocks k M for its eigenvalues k, and k M <= |k| Z <= r Z. Thus with R between c - r and c + r,
and |S| <= h,

    Hermitian part of C (x) X  <=  (c sym(C) + r Z + h Z') (x) I,     Z >= +-sym(C), Z' >= +-i skew(C).

Where sym(C) >= 0 only the upper end of R counts, where sym(C) <= 0 only the lower end; the other may be infinite.

A polynomial in one symmetric operator L is diagonal in the eigenvectors of L, and needs no such bound:

    growth(G) <= max over lam of the largest eigenvalue of  sym(P(lam)) + sum of (c sym(C) + r Z + h Z').

With one field all matrices are numbers, and this is the largest real part over the box of numerical ranges. With
several fields that is not a bound: P(x, y) = x [[0, 1], [1, 0]] + y [[1, 0], [0, -1]] grows by at most sqrt(2) for x
and y in [-1, 1], and by 2 where X and Y are these two matrices themselves; Z accounts for that. W is found by a
numerical search, and any W is valid; the inequalities are decided exactly, or by ball arithmetic where a steady state
is irrational.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
from scipy.optimize import minimize

from rdgraph.language.answer_symbols import lam
from rdgraph.reals.enclosure import enclose_at, precision
from rdgraph.reals.polynomials import cell_points, rational_polynomial
from rdgraph.theory.patterns.bands import characteristic
from rdgraph.theory.patterns.linearisation import Linearisation
from rdgraph.theory.patterns.mode_spectra import RangeBox
from rdgraph.theory.patterns.states import BITS, SteadyState

#: Points of the range of lam that are evaluated, and steps of the search for W.
POINTS = 65
ROUNDS = 80
#: The largest logarithm of an entry of a diagonal W.
LARGEST = 7.0
#: Denominators with which W is rounded, of a fraction that replaces a rounded number, and of all others.
DENOMINATORS = (12, 1000)
SHORT, LONG = 1000, 2**40
#: Relative margins that are added to a bound, in turn, until it is proved.
SLACKS = (0.0, 1e-9, 1e-6, 1e-3)


@dataclass(frozen=True)
class OperatorTerm:
    """C (x) X: a matrix of the fields, and a box around the numerical range of X."""

    matrix: sp.ImmutableMatrix
    box: RangeBox


@dataclass(frozen=True)
class GrowthBound:
    """Proved: no mode grows faster than `value`, and in time t no deviation by more than `condition`*exp(value*t).

    `assumes` describes the operators for which it holds.
    """

    value: float
    condition: float
    assumes: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"growth <= {self.value:.6g} for {self.assumes}"


class BoundProblem:
    """P(lam) of a symmetric L with lam in [lower, upper], and the terms of all other operators."""

    def __init__(
        self,
        matrix: sp.ImmutableMatrix,
        ends: tuple[sp.Rational, sp.Rational],
        terms: Sequence[OperatorTerm],
        state: SteadyState | None,
    ) -> None:
        self.ends, self.state = ends, state
        self.matrix, self.terms = matrix, tuple(terms)
        self.size = int(matrix.shape[0])
        self._main = Linearisation(matrix, state)
        self._others = [Linearisation(term.matrix, state).matrices(0.0) for term in terms]
        is_affine = matrix.applyfunc(lambda x: sp.diff(x, lam, 2)).is_zero_matrix  # convex in lam: largest at an end
        self._values = self._main.matrices(np.linspace(float(ends[0]), float(ends[1]), 2 if is_affine else POINTS))

    def bound(self, assumes: str) -> GrowthBound | None:
        """The smallest proved bound; None where none is proved."""
        bounds = []
        for weights in self._rounded_weights():
            value = self._proved(weights)
            if value is not None:
                bounds.append((value, float(np.linalg.cond(np.array(weights, dtype=float)))))
        return GrowthBound(*min(bounds), assumes) if bounds else None

    # ------------------------------------------------------------------ numbers: an estimate for a given W
    def _estimate(self, weights: np.ndarray) -> float:
        inverse = np.linalg.inv(weights)
        extra = np.zeros((self.size, self.size))
        for numbers, term in zip(self._others, self.terms, strict=True):
            extra = extra + self._extra(weights @ numbers @ inverse, term.box)
        if not np.isfinite(extra).all():
            return float("inf")
        return float(np.linalg.eigvalsh(_symmetric(weights @ self._values @ inverse) + extra)[:, -1].max())

    @staticmethod
    def _extra(matrix: np.ndarray, box: RangeBox) -> np.ndarray:
        even, odd = _symmetric(matrix), matrix - _symmetric(matrix)
        total = float(box.centre) * even
        if not box.radius.is_finite and even.any():
            values = np.linalg.eigvalsh(even)
            ends = [end for end, holds in ((box.upper, values[0] >= 0), (box.lower, values[-1] <= 0)) if holds]
            total = float(ends[0]) * even if ends and ends[0].is_finite else np.full_like(total, np.inf)
        elif even.any():
            total = total + float(box.radius) * _modulus(even)
        if odd.any() and box.height != 0:
            total = total + float(box.height) * _modulus(odd) if box.height.is_finite else np.full_like(total, np.inf)
        return total

    def _rounded_weights(self) -> list[sp.Matrix]:
        """The identity, and the W of the search in short and in long fractions."""
        weights = self._weights()
        rounded = [
            sp.ImmutableMatrix(self.size, self.size, lambda i, j, d=d: sp.Rational(weights[i, j]).limit_denominator(d))
            for d in DENOMINATORS
        ]
        return [w for w in dict.fromkeys([sp.ImmutableMatrix(sp.eye(self.size)), *rounded]) if w.det() != 0]

    def _weights(self) -> np.ndarray:
        """A W with a small bound: the best diagonal one, then the best triangular one near it."""
        places = np.triu_indices(self.size, 1)
        count = self.size - 1

        def weights_of(parameters: np.ndarray) -> np.ndarray:
            weights = np.diag(np.exp(np.clip([0.0, *parameters[:count]], -LARGEST, LARGEST)))
            weights[places] = parameters[count:] if len(parameters) > count else 0.0
            return weights

        best = self._improved(weights_of, np.zeros(count)) if count else np.zeros(0)
        return weights_of(
            self._improved(weights_of, np.concatenate([best, np.zeros(len(places[0]))])) if count else best
        )

    def _improved(self, weights_of: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
        """Parameters of W with a smaller bound than at the start, if the search finds any."""
        optimum = minimize(lambda x: self._estimate(weights_of(x)), start, method="Nelder-Mead",
                         options={"maxiter": ROUNDS * self.size, "xatol": 1e-4, "fatol": 1e-7})  # fmt: skip
        return np.asarray(optimum.x) if optimum.fun < self._estimate(weights_of(start)) else start

    # ------------------------------------------------------------------ proof
    def _proved(self, weights: sp.Matrix) -> float | None:
        """The smallest of some candidates that is proved to be a bound with this W."""
        inverse = weights.inv()
        total = _symmetric_part(weights * self.matrix * inverse)
        for term in self.terms:
            extra = self._dominating(weights * term.matrix * inverse, term.box)
            if extra is None:
                return None
            total += extra
        estimate = self._estimate(np.array(weights, dtype=float))
        if not np.isfinite(estimate):
            return None
        scale = max(1.0, abs(estimate), float(np.abs(self._values).max()))
        for slack in SLACKS:
            value = _near(estimate) if slack == 0 else sp.Rational(estimate + slack * scale)
            if self._is_above(total, value):
                nearest = float(value)
                return nearest if sp.Rational(nearest) >= value else float(np.nextafter(nearest, np.inf))
        return None

    def _is_above(self, total: sp.Matrix, value: sp.Rational) -> bool:
        """Proved: for no lam in the range an eigenvalue exceeds the value."""
        moved = sp.ImmutableMatrix((total - value * sp.eye(self.size)).applyfunc(sp.expand))
        places = {self.ends[0], self.ends[1]}
        if moved.applyfunc(lambda x: sp.diff(x, lam, 2)).is_zero_matrix:  # convex in lam: largest at an end
            return all(self._is_nonpositive(moved.subs(lam, end)) for end in places)
        relation = Linearisation(moved.applyfunc(lambda x: sp.expand(x.subs(lam, lam + self.ends[0]))), self.state)
        if relation.is_rational:
            return _are_nonnegative(characteristic(moved), self.ends)
        bands = relation.bands(self.ends[1] - self.ends[0])
        return bands.is_sure and not bands.bands

    def _is_nonpositive(self, matrix: sp.Matrix) -> bool:
        """Proved: a symmetric matrix is <= 0, since its characteristic polynomial has no negative coefficient."""
        with precision(BITS):
            balls = {} if self.state is None else self.state.balls
            if all(entry.is_Rational for entry in matrix):
                return all(c >= 0 for c in characteristic(matrix))
            return all(enclose_at(c, balls) > 0 for c in characteristic(matrix))

    def _dominating(self, matrix: sp.Matrix, box: RangeBox) -> sp.Matrix | None:
        """c sym(C) + r Z + h Z' with Z and Z' that are proved to dominate; None where none are."""
        even, odd = _symmetric_part(matrix), ((matrix - matrix.T) / 2).applyfunc(sp.expand)
        total = box.centre * even
        if not box.radius.is_finite and any(even):
            if box.upper.is_finite and self._is_nonpositive(-even):
                total = box.upper * even
            elif box.lower.is_finite and self._is_nonpositive(even):
                total = box.lower * even
            else:
                return None
        for factor, part, is_odd in ((box.radius, even, False), (box.height, odd, True)):
            if not any(part) or (not is_odd and not factor.is_finite):
                continue
            above = self._above(part, is_odd=is_odd) if factor.is_finite else None
            if above is None:
                return None
            total += factor * above
        return total

    def _above(self, part: sp.Matrix, *, is_odd: bool) -> sp.Matrix | None:
        """Z >= +-M for M = part, or for M = i part where that is antisymmetric."""
        numbers = Linearisation(sp.ImmutableMatrix(part), self.state).matrices(0.0)
        modulus, size = _modulus(numbers), float(np.abs(numbers).max())
        for slack in SLACKS:
            rounded = sp.Matrix(self.size, self.size, lambda i, j: _near(modulus[min(i, j), max(i, j)]))
            above = rounded + sp.Rational(slack * size) * sp.eye(self.size)
            doubled = sp.Matrix(sp.BlockMatrix([[-above, part], [-part, -above]]))
            tests = [doubled] if is_odd else [
                part - above, -part - above
            ]  # fmt: skip
            if all(self._is_nonpositive(sp.ImmutableMatrix(test)) for test in tests):
                return above
        return None


def _are_nonnegative(polynomials: Sequence[sp.Expr], ends: tuple[sp.Rational, sp.Rational]) -> bool:
    """Whether polynomials in lam with rational coefficients are >= 0 on an interval, tested between all their roots."""
    rational = [rational_polynomial(sp.Poly(p, lam).all_coeffs()[::-1]) for p in polynomials]
    return all(p(point) >= 0 for point in cell_points(rational, *ends) for p in rational)


def _near(number: float) -> sp.Rational:
    """A short fraction within rounding of a number, if there is one; else a long one."""
    exact = sp.Rational(float(number))
    short = exact.limit_denominator(SHORT)
    return short if abs(short - exact) <= 1e-12 * max(1.0, abs(number)) else exact.limit_denominator(LONG)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _modulus(matrix: np.ndarray) -> np.ndarray:
    """|M| of a matrix that is symmetric or antisymmetric: the square root of M^T M."""
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    return np.asarray((vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T)


def _symmetric_part(matrix: sp.Matrix) -> sp.Matrix:
    return ((matrix + matrix.T) / 2).applyfunc(sp.expand)
