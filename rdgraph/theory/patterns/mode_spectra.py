"""The eigenvalues of a graph's L: the lam at which a dispersion relation is evaluated."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.answer_symbols import lam
from rdgraph.theory.patterns.bands import Band
from rdgraph.theory.patterns.kinetics import WITH_IDENTITY, Kinetics
from rdgraph.theory.patterns.linearisation import Linearisation

# ---------------------------------------------------------------------- mode spectra
#: Most rows of a dense matrix.
MAX_NODES = 5000
#: Imaginary parts and row sums below this fraction of the largest entry count as rounding.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ModeSpectrum:
    """Eigenvalues of L, sorted by real part, and whether L@1 = 0 up to rounding.

    `matrix` is L, if it was given.
    """

    eigenvalues: np.ndarray
    keeps_constants: bool | None
    source: str
    matrix: np.ndarray | None = None

    @property
    def is_real(self) -> bool:
        return not np.iscomplexobj(self.eigenvalues)

    @property
    def is_symmetric(self) -> bool:
        """Whether L was given as a symmetric matrix."""
        return self.matrix is not None and _is_symmetric(self.matrix)

    def growing(self, growth: np.ndarray) -> tuple[int, ...]:
        """The indices of the modes that grow by more than rounding."""
        size = max(1.0, float(np.abs(growth).max()))
        return tuple(int(i) for i in np.flatnonzero(growth > TOLERANCE * size))

    @property
    def largest(self) -> float:
        """The largest real part of the eigenvalues of all modes."""
        return float(self.eigenvalues.real.max())


def check_degrees(kinetics: Kinetics, operator: Any) -> None:
    """Raise NotApplicable for L = D - A where the equations contain A, which is then not I - L."""
    if kinetics.modes_assume == WITH_IDENTITY and getattr(operator, "degree", None) is not None:
        raise NotApplicable(
            "the equations contain A, whose eigenvectors differ from those of L = D - A; expected "
            f"{kinetics.modes_assume}, or equations in L alone"
        )


def mode_spectrum(operator: Any) -> ModeSpectrum:
    """The spectrum of an `Operator`, of a matrix L (n, n), dense or sparse, or of eigenvalues (n,) themselves.

    >>> spectrum = mode_spectrum([[1.0, -1.0], [-1.0, 1.0]])
    >>> spectrum.eigenvalues.round(12), spectrum.keeps_constants
    (array([0., 2.]), True)
    """
    matrix = laplacian_of(operator)
    if matrix.ndim == 1:
        return ModeSpectrum(_ordered(matrix), None, "eigenvalues of L as given")
    size = float(np.abs(matrix).max())
    keeps = bool(np.abs(matrix.sum(axis=1)).max() <= TOLERANCE * max(size, 1.0))
    if _is_symmetric(matrix):
        source = "eigenvalues of the symmetric L, in double precision"
        return ModeSpectrum(np.linalg.eigvalsh(matrix), keeps, source, matrix)
    return ModeSpectrum(_ordered(np.linalg.eigvals(matrix)), keeps, "eigenvalues of L, in double precision", matrix)


def _is_symmetric(matrix: np.ndarray) -> bool:
    return np.allclose(matrix, matrix.T, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(matrix).max()))


def laplacian_of(operator: Any) -> np.ndarray:
    """L of an `Operator`, or the given matrix or eigenvalues."""
    if _is_operator(operator):
        matrix, degree = _dense(operator)
        return np.diag(np.ones(len(matrix)) if degree is None else degree) - matrix
    if hasattr(operator, "toarray"):
        _check_size(operator.shape[0])
        operator = operator.toarray()
    values = np.asarray(operator)
    values = values.astype(complex if np.iscomplexobj(values) else float)
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    if not (values.ndim == 1 or square) or not values.size or not np.isfinite(values).all():
        raise InvalidArgument(
            f"expected an Operator, a finite matrix L (n, n) or eigenvalues (n,), got shape {values.shape}"
        )
    _check_size(len(values) if square else 1)
    return values


def matrix_of(operator: Any, name: str) -> np.ndarray:
    """The real matrix (n, n) of an operator, which may be an `Operator`, sparse or dense."""
    values = _dense(operator)[0] if _is_operator(operator) else laplacian_of(operator)
    if values.ndim != 2 or np.iscomplexobj(values):
        raise InvalidArgument(f"expected a real matrix (n, n) for {name}, got shape {values.shape} of {values.dtype}")
    return values


def _is_operator(operator: Any) -> bool:
    return hasattr(operator, "dense") and hasattr(operator, "degree")


def _dense(operator: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """A of an `Operator`, and its degrees where L = D - A."""
    if getattr(operator, "batch", ()):
        raise InvalidArgument(f"expected an operator with one set of weights, got a batch {operator.batch}")
    _check_size(operator.num_nodes)
    current = operator.current()
    return _array(current.dense()), None if current.degree is None else _array(current.degree).ravel()


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _check_size(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise InvalidArgument(
            f"expected at most {MAX_NODES} nodes, got {nodes}; compute the eigenvalues of L you need and pass those"
        )


def _ordered(values: np.ndarray) -> np.ndarray:
    size = max(1.0, float(np.abs(values).max()))
    if np.iscomplexobj(values) and np.abs(values.imag).max() <= TOLERANCE * size:
        values = values.real
    return values[np.argsort(values.real, kind="stable")]


# ---------------------------------------------------------------------- fastest modes
# The lam that grows fastest: searched numerically, and proved to be the largest up to a small tolerance.

#: Points of a band that are evaluated, and most rounds of the proof.
POINTS = 201
ROUNDS = 4


class Fastest(NamedTuple):
    """The fastest lam, its growth and frequency; with `is_proved` no lam grows faster, up to a factor 1 + 1e-9."""

    lam: float
    growth: float
    frequency: float
    is_proved: bool

    def __float__(self) -> float:
        return self.lam

    def __str__(self) -> str:
        turning = f", frequency {self.frequency:.6g}" if self.frequency > TOLERANCE * max(self.growth, 1.0) else ""
        proof = "" if self.is_proved else ", not proved to be the largest"
        return f"lam = {self.lam:.6g}, growth {self.growth:.6g}{turning}{proof}"


def fastest_mode(linearisation: Linearisation, bands: Sequence[Band], to: sp.Expr) -> Fastest | None:
    """The lam with the largest growth in the bands; None without bands, or where an unbounded range has no maximum.

    >>> from rdgraph.language.answer_symbols import lam
    >>> swift = Linearisation(sp.ImmutableMatrix([[lam - lam**2]]))
    >>> print(fastest_mode(swift, swift.bands(sp.Integer(2)).bands, sp.Integer(2)))
    lam = 0.5, growth 0.25
    """
    if not bands or any(not band.upper.is_finite for band in bands):
        return None
    best, growth = max((_best_in(linearisation, *band.ends) for band in bands), key=lambda pair: pair[1])
    is_proved = False
    for _ in range(ROUNDS):
        bound = sp.Rational(growth * (1 + TOLERANCE)) + sp.Rational(TOLERANCE) * sp.Rational(1, 1000)
        higher = linearisation.shifted(bound).bands(to)
        inside = [o for o in higher.bands if any(o.ends[0] < b.ends[1] and b.ends[0] < o.ends[1] for b in bands)]
        if not inside:
            is_proved = higher.is_sure
            break
        again, value = max((_best_in(linearisation, *band.ends) for band in inside), key=lambda pair: pair[1])
        if value <= growth:
            break
        best, growth = again, value
    return Fastest(best, growth, float(abs(linearisation.eigenvalues(best)[0].imag)), is_proved)


def _best_in(linearisation: Linearisation, lower: float, upper: float) -> tuple[float, float]:
    """The best of a grid, refined between its neighbours."""
    from scipy.optimize import minimize_scalar  # slow to import

    grid = np.linspace(lower, upper, POINTS)
    values = linearisation.eigenvalues(grid)[:, 0].real
    k = int(values.argmax())
    left, right = grid[max(k - 1, 0)], grid[min(k + 1, POINTS - 1)]
    optimum = minimize_scalar(
        lambda x: -float(linearisation.eigenvalues(x)[0].real), bounds=(left, right), method="bounded",
        options={"xatol": 1e-12 * max(1.0, upper)},
    )  # fmt: skip
    return (float(optimum.x), -float(optimum.fun)) if -optimum.fun > values[k] else (float(grid[k]), float(values[k]))


# ---------------------------------------------------------------------- numerical ranges
# Boxes around numerical ranges, and the growth of P(lam) over the box of one directed operator.
#
# The numerical range of a matrix X is the set of all v* X v with |v| = 1. It is convex, holds every eigenvalue, and
# lies in the box of complex numbers whose real part is an eigenvalue's of (X + X*)/2 or between two of them, and whose
# imaginary part is so for (X - X*)/(2i).

#: Points of an edge that are evaluated before the largest growth is proved.
RANGE_POINTS = 65
#: For rounding, eigenvalues of symmetric matrices are widened by this fraction of the largest entry for every row.
ROUNDING = 4 * float(np.finfo(float).eps)
#: The largest denominator of a fraction that replaces a rounded end, and the denominator of all others.
SHORT, STEPS = 1000, 2**20


@dataclass(frozen=True)
class RangeBox:
    """A box around a numerical range: real parts in [lower, upper] and imaginary parts in [-height, height].

    The numbers are rational or infinite.
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
        """Half the width along the real axis."""
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
    """A box around the numerical range of a real matrix (n, n), with a margin for rounding.

    >>> shift = np.roll(np.eye(4), 1, axis=1)
    >>> print(range_box((shift - shift.T) / 2), range_box(shift + shift.T))
    [0, 0] + i*[-1, 1] [-2, 2]
    """
    symmetric, skew = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
    real, imaginary = (_interval(part) for part in (symmetric, 1j * skew))
    return RangeBox(*real, max(map(abs, imaginary)))


def _interval(matrix: np.ndarray) -> tuple[sp.Rational, sp.Rational]:
    """An interval with short fractions as ends that contains the eigenvalues of a Hermitian matrix."""
    if not matrix.any():
        return sp.S.Zero, sp.S.Zero
    values = np.linalg.eigvalsh(matrix)
    slack = ROUNDING * len(matrix) * float(np.abs(matrix).sum(axis=1).max())
    return _outward(float(values[0]), slack, -1), _outward(float(values[-1]), slack, 1)


def _outward(end: float, slack: float, sign: int) -> sp.Rational:
    """A short fraction within rounding of the end, if there is one; else the next multiple of 2^-20 outside."""
    exact = sp.Rational(end)
    short = exact.limit_denominator(SHORT)
    if abs(short - exact) <= slack:
        return short
    return sign * sp.ceiling((sign * exact + sp.Rational(slack)) * STEPS) / STEPS


@dataclass(frozen=True)
class RangeBound:
    """No mode with lam in the `box` grows faster than `value`; near `place` some mode grows as fast.

    Without `is_proved` the value is only the largest on a grid on the edges of the box.
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

    >>> from rdgraph.theory.patterns.mode_spectra import RangeBox
    >>> one = Linearisation(sp.ImmutableMatrix([[-(lam**2)]]))
    >>> print(growth_over(one, RangeBox(sp.S.Zero, sp.Integer(2), sp.S.One)))
    growth <= 1 for lam in [0, 2] + i*[-1, 1]
    """
    best: RangeBound | None = None
    for start, end in _edges(box):
        bound = _along(linearisation, start, end, box)
        if best is None or bound.value > best.value:
            best = RangeBound(bound.value, bound.place, box, bound.is_proved and (best is None or best.is_proved))
        elif not bound.is_proved:
            best = RangeBound(best.value, best.place, box, False)
    assert best is not None
    return best


def _edges(box: RangeBox) -> list[tuple[sp.Expr, sp.Expr]]:
    """The edges of the upper half of the box; only the interval if the box is one."""
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
    grid = np.linspace(0.0, 1.0, RANGE_POINTS)
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
    """The real (0) or imaginary (1) part of an expanded polynomial in real symbols."""
    return entry.coeff(sp.I, power)
