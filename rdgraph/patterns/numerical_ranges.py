"""Boxes around numerical ranges, and the growth of P(lam) over the box of one directed operator.

The numerical range of a matrix X is the set of all v* X v with |v| = 1. It is convex, holds every eigenvalue, and lies
in the box of complex numbers whose real part is an eigenvalue's of (X + X*)/2 or between two of them, and whose
imaginary part is so for (X - X*)/(2i).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
import sympy as sp

from rdgraph.patterns.fastest_modes import fastest_mode
from rdgraph.patterns.linearisation import Linearisation
from rdgraph.syntax.answer_symbols import lam

#: Points of an edge that are looked at before the largest growth is proved.
POINTS = 65
#: Eigenvalues of symmetric matrices are widened by this part of the largest entry for every row: rounding.
ROUNDING = 4 * float(np.finfo(float).eps)
#: The largest denominator of an end that is taken as it looks, and that of all others.
SHORT, STEPS = 1000, 2**20


@dataclass(frozen=True)
class RangeBox:
    """Real parts in [lower, upper] and imaginary parts in [-height, height]: a box that holds a numerical range.

    Numbers are rational or infinite.
    """

    lower: sp.Expr
    upper: sp.Expr
    height: sp.Expr

    @property
    def is_real(self) -> bool:
        return bool(self.height == 0)

    @property
    def centre(self) -> sp.Expr:
        return (self.lower + self.upper) / 2 if self.lower.is_finite and self.upper.is_finite else sp.S.Zero

    @property
    def radius(self) -> sp.Expr:
        """Half its width along the real axis."""
        return (self.upper - self.lower) / 2

    @property
    def norm(self) -> sp.Expr:
        """The norm of an operator with this box that is symmetric or antisymmetric."""
        return max(abs(self.lower), abs(self.upper), self.height)

    def __str__(self) -> str:
        real = f"[{_shown(self.lower)}, {_shown(self.upper)}]"
        return real if self.is_real else f"{real} + i*[{_shown(-self.height)}, {_shown(self.height)}]"


def _shown(number: sp.Expr) -> str:
    return f"{float(number):.6g}" if number.is_finite else str(number)


def range_box(matrix: np.ndarray) -> RangeBox:
    """A box that holds the numerical range of a real matrix (n, n), rounding included.

    >>> shift = np.roll(np.eye(4), 1, axis=1)
    >>> print(range_box((shift - shift.T) / 2), range_box(shift + shift.T))
    [0, 0] + i*[-1, 1] [-2, 2]
    """
    symmetric, skew = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
    real, imaginary = (_interval(part) for part in (symmetric, 1j * skew))
    return RangeBox(*real, max(map(abs, imaginary)))


def _interval(matrix: np.ndarray) -> tuple[sp.Rational, sp.Rational]:
    """Short fractions between which the eigenvalues of a Hermitian matrix lie."""
    if not matrix.any():
        return sp.S.Zero, sp.S.Zero
    values = np.linalg.eigvalsh(matrix)
    slack = ROUNDING * len(matrix) * float(np.abs(matrix).sum(axis=1).max())
    return _outward(float(values[0]), slack, -1), _outward(float(values[-1]), slack, 1)


def _outward(end: float, slack: float, sign: int) -> sp.Rational:
    """A short fraction that differs by rounding, if there is one; else the next multiple of 2^-20 outside."""
    exact = sp.Rational(end)
    short = exact.limit_denominator(SHORT)
    if abs(short - exact) <= slack:
        return short
    return sign * sp.ceiling((sign * exact + sp.Rational(slack)) * STEPS) / STEPS


@dataclass(frozen=True)
class RangeBound:
    """No mode grows faster than `value`, wherever in the `box` its lam lies; near `place` one grows as fast.

    Without `is_proved` the value is only the largest that was found on the edges of the box.
    """

    value: float
    place: complex
    box: RangeBox
    is_proved: bool

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        proof = "" if self.is_proved else ", not proved"
        return f"growth <= {self.value:.6g} for lam in {self.box}{proof}"


def growth_over(linearisation: Linearisation, box: RangeBox) -> RangeBound:
    """The largest growth of P(lam) for lam in a box of complex numbers.

    The growth of P(lam) is a subharmonic function of lam (it is the logarithm of the spectral radius of exp P(lam),
    which is analytic: Vesentini), so that it is largest on the boundary; P is real, so that the lower half mirrors the
    upper one. Along an edge P = X + iY has the growth of the real matrix [[X, -Y], [Y, X]], whose eigenvalues are those
    of P and their conjugates. Every eigenvalue of an operator lies in its numerical range: the maximum bounds
    the growth on every graph whose L has its numerical range in the box.

    >>> from rdgraph.patterns.numerical_ranges import RangeBox
    >>> one = Linearisation(sp.ImmutableMatrix([[-(lam**2)]]))
    >>> print(growth_over(one, RangeBox(sp.S.Zero, sp.Integer(2), sp.S.One)))
    growth <= 1 for lam in [0, 2] + i*[-1, 1]
    """
    best: RangeBound | None = None
    for start, end in _edges(box):
        found = _along(linearisation, start, end, box)
        if best is None or found.value > best.value:
            best = RangeBound(found.value, found.place, box, found.is_proved and (best is None or best.is_proved))
        elif not found.is_proved:
            best = RangeBound(best.value, best.place, box, False)
    assert best is not None
    return best


def _edges(box: RangeBox) -> list[tuple[sp.Expr, sp.Expr]]:
    """The edges of the upper half; the interval alone where the box is one."""
    if box.is_real:
        return [(box.lower, box.upper)] if box.lower < box.upper else [(box.lower, box.lower)]
    top = sp.I * box.height
    corners = [box.lower, box.lower + top, box.upper + top, box.upper]
    return [(a, b) for a, b in itertools.pairwise(corners) if a != b]


def _along(linearisation: Linearisation, start: sp.Expr, end: sp.Expr, box: RangeBox) -> RangeBound:
    """The largest growth on the segment from `start` to `end`."""
    way = start + lam * (end - start)
    matrix = linearisation.matrix.applyfunc(lambda entry: sp.expand(entry.subs(lam, way)))
    real, imaginary = (matrix.applyfunc(partial(_part, power=k)) for k in (0, 1))
    rows = sp.Matrix(sp.BlockMatrix([[real, -imaginary], [imaginary, real]])) if any(imaginary) else real
    along = Linearisation(sp.ImmutableMatrix(rows), linearisation.state)
    grid = np.linspace(0.0, 1.0, POINTS)
    rough = float(along.eigenvalues(grid)[:, 0].real.max())
    lift = sp.Rational(rough).limit_denominator(1000) - 1
    lifted = along.shifted(lift)
    fastest = fastest_mode(lifted, lifted.bands(sp.S.One).bands, sp.S.One)
    first, last = complex(start), complex(end)
    if fastest is None:
        return RangeBound(rough, first + float(grid[0]) * (last - first), box, False)
    value = fastest.growth + float(lift)
    slack = 2e-9 * max(1.0, abs(fastest.growth)) if fastest.is_proved else 0.0
    return RangeBound(value + slack, first + fastest.lam * (last - first), box, fastest.is_proved)


def _part(entry: sp.Expr, power: int) -> sp.Expr:
    """The real (0) or imaginary (1) part of an expanded polynomial in real letters."""
    return entry.coeff(sp.I, power)
