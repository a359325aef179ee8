"""Step limits of several linear fields: no mode that the flow damps, or leaves oscillating, may be amplified by a step.

Modes are the eigenvalues mu of P(lam), lam in [0, 2], and a step multiplies them by R(step mu). With numbers for the
coefficients the limit is decided for every method (`joint_limit`). With symbolic coefficients it has a closed form

- where all eigenvalues are polynomials in lam: that of the fastest one;
- where two fields oscillate without damping (trace 0): the method's limit on the imaginary axis by the frequency;
- for Euler's method where the trace of two fields is a constant -a and their determinant d is linear in lam. A pair of
  complex eigenvalues has |1 + step mu|^2 = 1 - step a + step^2 d, which is 1 at step = a/d; real ones lead to
  4/(a + sqrt(a^2 - 4d)). The first falls with d and the second rises, so that the ends of [0, 2] decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import sympy as sp
from flint import acb, acb_mat, arb, ctx, fmpq, fmpq_mpoly_ctx, fmpq_poly

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.branches import branches, is_above, is_at_least
from rdgraph.reals.condition_words import in_words
from rdgraph.reals.domain import Domain
from rdgraph.reals.line_extents import in_decimals, is_decimal, round_up
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum
from rdgraph.reals.polynomials import cell_points, rational_polynomial, signs_to_infinity
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.rectangle_faces import within
from rdgraph.vocabulary.methods import Tableau, z
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- answer

REAL_SPECTRUM = "the graph is undirected (real spectrum)"


@dataclass(frozen=True, repr=False)
class StepLimit(Answer):
    """The largest step, None where none is known; the reason says what holds up to it.

    `keeps` is "stability" (linear systems, proved), "box" (Euler and Heun, proved for states inside), "linearised"
    (stability near constant states only), "slopes" (every mode that the linearised flow damps is damped, at every
    state), "equal slopes" (the same at every state that is the same in all nodes, and at no other) or "distances" (two
    runs separate in one step at most by the stability polynomial at step * `rate`, 1 + step * rate for Euler).
    `assumes` is what the graph must satisfy in addition to its normalisation. `directed`, for linear systems, is a step
    at which no eigenvalue of the step's matrix exceeds 1 in modulus on directed graphs either. `is_sharp` says that
    some coefficients and state were found where a step larger by 1 % leaves the box, or that some states come
    arbitrarily close to a damped mode that larger steps amplify.
    """

    value: sp.Expr | None
    reason: str
    keeps: str = ""
    assumes: str = ""
    directed: sp.Expr | None = None
    is_sharp: bool = False
    rate: sp.Expr | None = None

    @property
    def status(self) -> Status:
        """proved where there is a limit, else undecided."""
        return Status.UNDECIDED if self.value is None else certainty(self.reason)

    @property
    def headline(self) -> str:
        return "any step" if self.value == sp.oo else f"step <= {in_words(self.value, -1)}"


def decimal(limit: sp.Expr) -> sp.Expr:
    """A rational number or oo unchanged, any other number as a decimal."""
    return limit if limit.is_Rational or limit == sp.oo else sp.Float(sp.N(limit, 15), 15)


def shown(limit: sp.Expr) -> sp.Expr:
    """A limit in plain symbols, bounds as decimal numbers."""
    return in_decimals(public(limit))


def divide(top: sp.Expr, bottom: sp.Expr, domain: Domain) -> sp.Expr:
    """top / bottom for each branch; oo where the bottom is zero."""
    pieces: list[tuple[sp.Expr, sp.Basic]] = []
    for value, conditions in branches(bottom) if isinstance(bottom, sp.Piecewise) else ((bottom, (sp.true,)),):
        pieces += _quotient(top, value, conditions[-1], domain.where(*conditions[:-1]))
    whole = pieces[0][0] if pieces[0][1] == sp.true else sp.Piecewise(*pieces)
    is_nested = whole.has(sp.zoo) and any(value.has(sp.Piecewise) for value, _ in pieces)
    return sp.piecewise_fold(whole) if is_nested else whole  # without branches that no coefficient reaches


def _quotient(top: sp.Expr, bottom: sp.Expr, condition: sp.Basic, domain: Domain) -> list[tuple[sp.Expr, sp.Basic]]:
    if bottom == 0:
        return [(sp.oo, condition)]
    if isinstance(bottom, sp.Max):
        bottom = sp.Max(*(part for part in bottom.args if part != 0))
    is_short = top.is_Rational and bottom.is_rational_function() and not is_decimal(bottom)
    value = sp.cancel(top / bottom) if is_short else _decimal_quotient(top, bottom)
    # a branch is compared only where its own condition holds: elsewhere it need not be a real number
    positive = sp.Or(*(sp.And(*where, rate > 0) for part in sp.Max.make_args(bottom) for rate, where in branches(part)))
    if domain.where(condition).proves(positive) is True:
        return [(value, condition)]
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}.get(type(condition))
    if strict is not None and domain.where(strict(*condition.args)).proves(positive) is True:
        return [(value, strict(*condition.args)), (sp.oo, condition)]
    return [(value, sp.And(condition, positive)), (sp.oo, condition)]


def _decimal_quotient(top: sp.Expr, bottom: sp.Expr) -> sp.Expr:
    """top / bottom with a bound as denominator: the numerical factor is rounded down to a few digits.

    >>> _decimal_quotient(sp.Integer(2), sp.Rational(11997, 10000) * sp.Symbol("b"))
    1.667/b
    """
    factor, rest = bottom.as_coeff_Mul()
    if not (top.is_Rational or top.is_Float) or not is_decimal(factor) or factor < 0:
        return top / in_decimals(bottom)
    return in_decimals(-round_up(-sp.Rational(top) / factor)) / in_decimals(rest)


# ---------------------------------------------------------------------- joint spectra
# Modes of several fields under a step, decided exactly: is a mode that the flow damps amplified at some lam in [0, 2]?
#
# P(lam) is a matrix of polynomials with rational coefficients. Between the zeros of finitely many polynomials in lam no
# eigenvalue of P crosses the imaginary axis and none of the step's matrix R(step P) crosses the unit circle, so that
# one rational lam stands for each such cell.

#: Most fields that are mutually coupled.
MOST_FIELDS = 4
#: Bits of precision, tried in turn until a modulus is proved to differ from 1.
_PRECISIONS = (64, 256, 1024)

Rows = list[list[Any]]


@dataclass(frozen=True)
class Block:
    """An irreducible F x F matrix of polynomials in lam (of flint)."""

    rows: Rows

    @cached_property
    def crossings(self) -> list[Any]:
        """Polynomials that vanish where an eigenvalue is zero or two have the sum zero: the imaginary axis."""
        return [determinant(self.rows), *([] if self.size == 1 else [determinant(_additive_compound(self.rows))])]

    @property
    def size(self) -> int:
        """F, the number of fields in the block."""
        return len(self.rows)

    def amplified(self, method: Tableau, step: sp.Rational) -> Any | None:
        """A rational lam at which the step amplifies a mode that the flow does not amplify; None if there is none.

        Isolated lam at which a mode is neutral, while it grows on both sides, are ignored.
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
        """Proved: at a rational lam no mode grows, and the step puts a damped mode exactly on the unit circle.

        Then no larger step is stable for a method whose stability region every ray leaves only once.
        """
        where = fmpq(int(point.p), int(point.q))
        matrix = [[entry(where) for entry in row] for row in self.rows]
        weights = _weights(method, step)
        trace, product = sum(matrix[i][i] for i in range(self.size)), determinant(matrix)
        if self.size == 1 or (
            self.size == 2 and product == 0
        ):  # the only mode that is not constant decays at the rate trace
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
        """A rational lam at which the flow itself amplifies a mode; None if there is none, except at isolated lam."""
        for point in self.points():
            if any(real > 0 for real, _ in self._rates(point)):
                return point
        return None

    def is_damping(self) -> bool:
        """Whether some mode decays, or oscillates, at some lam; otherwise every step is stable."""
        return any(real <= 0 and not still for point in self.points() for real, still in self._rates(point))

    def points(self) -> list[Any]:
        """One lam for each cell in which no eigenvalue of P crosses the imaginary axis."""
        return cell_points(self.crossings, sp.S.Zero, sp.Integer(2))

    # ------------------------------------------------------------------ one lam
    def _rates(self, point: Any) -> list[tuple[int, bool]]:
        """The sign of the real part of every eigenvalue at a lam inside a cell, and whether the eigenvalue is zero."""
        rates = []
        for value in self._eigenvalues(point, _PRECISIONS[-1]):
            sign = 1 if value.real > 0 else -1 if value.real < 0 else 0
            if sign == 0 and self.size > 2:
                raise Undecided("a mode is too close to the imaginary axis")
            rates.append((sign, sign == 0 and bool(value.imag == 0)))
        return rates

    def _modes(self, point: Any, method: Tableau, step: sp.Rational) -> list[_Mode]:
        """Every mode, with enough digits to compare its modulus with 1 and its real part with 0.

        For one or two fields, a mode for which no precision suffices lies on the circle or on the axis, for every lam
        of the cell. For more fields that is not known.
        """
        for bits in _PRECISIONS:
            modes = [_mode(value, _weights(method, step), bits) for value in self._eigenvalues(point, bits)]
            if all(mode.is_certain for mode in modes):
                return modes
        if self.size > 2:
            raise Undecided("a mode is too close to the unit circle or to the imaginary axis")
        return modes

    def _eigenvalues(self, point: Any, bits: int) -> list[Any]:
        """Balls around the eigenvalues of P at a rational lam; neutral ones of one or two fields are exactly so."""
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
    """Whether the flow amplifies a mode, whether a step does, and whether both are certain."""

    grows: bool
    is_amplified: bool
    is_certain: bool


def _value(weights: Sequence[Any], value: Any) -> Any:
    total = value * 0
    for weight in reversed(weights):
        total = total * value + weight
    return total


def _mode(value: Any, weights: Sequence[Any], bits: int) -> _Mode:
    before, ctx.prec = ctx.prec, bits
    try:
        size, real = abs(_value(weights, acb(value))), value.real
        is_certain = (size > 1 or size < 1) and (real > 0 or real < 0)
        return _Mode(bool(real > 0), bool(size > 1), bool(is_certain))
    finally:
        ctx.prec = before


def blocks(P: sp.Matrix) -> list[Block]:
    """The diagonal blocks of P in block triangular form: together they have the eigenvalues of P.

    >>> [block.size for block in blocks(sp.Matrix([[0, 1, 5], [-1, 0, 0], [0, 0, -lam]]))]
    [2, 1]
    """
    return [Block([[_polynomial(P[i, j]) for j in group] for i in group]) for group in groups(P)]


def groups(P: sp.Matrix) -> list[tuple[int, ...]]:
    """The strongly connected components of fields that act on each other."""
    size = P.rows
    reach = [[i == j or P[i, j] != 0 for j in range(size)] for i in range(size)]
    for k, i, j in itertools.product(range(size), repeat=3):
        reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    circles = dict.fromkeys(tuple(j for j in range(size) if reach[i][j] and reach[j][i]) for i in range(size))
    if any(len(group) > MOST_FIELDS for group in circles):
        raise Undecided(f"more than {MOST_FIELDS} fields act on each other")
    return list(circles)


def _polynomial(entry: sp.Expr) -> Any:
    return rational_polynomial(list(reversed(sp.Poly(entry, lam).all_coeffs())))


def _weights(method: Tableau, step: sp.Rational) -> list[Any]:
    """Coefficients of R(step*mu) in powers of mu."""
    ascending = reversed(sp.Poly(method.stability, z).all_coeffs())
    return rational_polynomial([c * step**k for k, c in enumerate(ascending)]).coeffs()


# ---------------------------------------------------------------------- matrices of polynomials
def determinant(rows: Rows) -> Any:
    """Determinant of a small matrix, expanded along its first row."""
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
    """The matrix of all 2 x 2 minors: its eigenvalues are the products of two eigenvalues."""
    pairs = _pairs(len(rows))
    return [[rows[i][k] * rows[j][m] - rows[i][m] * rows[j][k] for k, m in pairs] for i, j in pairs]


def _additive_compound(rows: Rows) -> Rows:
    """The matrix whose eigenvalues are the sums of two eigenvalues."""
    zero = rows[0][0] * 0
    pairs = _pairs(len(rows))

    def entry(i: int, j: int, k: int, m: int) -> Any:
        parts = (rows[i][k], j == m), (-rows[i][m], j == k), (rows[j][m], i == k), (-rows[j][k], i == m)
        return sum((value for value, counts in parts if counts), zero)

    return [[entry(i, j, k, m) for k, m in pairs] for i, j in pairs]


# ---------------------------------------------------------------------- ray stability
# Where a method stops damping along a ray of the left half-plane, which limits the step for oscillating modes.
#
# On z = x (-c + i sqrt(1 - c^2)) with 0 <= c <= 1 the square |R(z)|^2 is a polynomial in x and c.

_x, _c = sp.Symbol("x", real=True), sp.Symbol("c", real=True)


def imaginary_limit(method: Tableau) -> sp.Expr:
    """The largest y with |R| <= 1 on [0, iy], an algebraic number; 0 where every oscillation is amplified.

    >>> from rdgraph.vocabulary.methods import methods
    >>> imaginary_limit(methods["rk4"]), imaginary_limit(methods["euler"])
    (2*sqrt(2), 0)
    """
    excess = _excess(method.stability, sp.S.Zero)
    if signs_to_infinity(excess)[0] > 0:
        return sp.S.Zero
    coefficients = [sp.Rational(int(c.p), int(c.q)) for c in reversed(excess.coeffs())]
    roots = [r for r in sp.real_roots(sp.Poly(coefficients, _x)) if r > 0]
    # The ray leaves once and for good, at its only zero of odd order.
    return next(r for r in roots if roots.count(r) % 2) if leaves_once(method.stability) else sp.S.Zero


@cache
def leaves_once(stability: sp.Expr) -> bool:
    """Whether every ray of the closed left half-plane leaves the region |R| <= 1 once and for good.

    Then a step at which all damped modes are damped shows it for every smaller step. Along a ray |R|^2 - 1 changes its
    sign at its zeros of odd order; their number changes with c only where the discriminant in x vanishes, so that one
    ray between two zeros of the discriminant represents all of them; the rays c = 0 and c = 1 are checked too.

    >>> from rdgraph.vocabulary.methods import methods
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
    """The discriminant of the ray polynomial in x, as a polynomial in c."""
    polynomial = _ray_polynomial(stability)
    if polynomial.degree(_x) < 2:
        return fmpq_poly([1])
    context = fmpq_mpoly_ctx.get(("x", "c"), "lex")
    terms = {m: fmpq(int(a.p), int(a.q)) for m, a in polynomial.terms()}
    discriminant = context.from_dict(terms).discriminant("x").to_dict()
    entries = {int(m[1]): a for m, a in discriminant.items()}
    return fmpq_poly([entries.get(k, fmpq(0)) for k in range(1 + max(entries, default=0))])


# ---------------------------------------------------------------------- joint step limits
# The largest step of several linear fields with numbers for coefficients: guessed by floats, then proved.
#
# A guess comes from eigenvalues at many lam; that a step just below it is stable, and one just above it is not, is
# decided exactly, from the characteristic polynomial. Where every ray of the left half-plane leaves the method's region
# of stability once and for good, all smaller steps are stable too.

#: The relative distance between a step that is proved stable and a larger one that is proved unstable.
WIDTH = sp.Rational(1, 10**9)
#: Largest denominator of a limit that is tried as an exact one.
_DENOMINATOR = 10**4
#: Values of lam at which eigenvalues are computed, and how often the grid is refined around the worst one.
_POINTS, _ZOOMS = 401, 6
#: A guess below this size, or above its inverse, is rejected.
_TINY = 1e-8
#: Halvings and tolerance of the bisection along rays.
_HALVINGS, _ROUNDING = 60, 1e-14


@dataclass(frozen=True)
class JointLimit:
    """The largest step: exact, or proved to be stable while a step larger by `WIDTH` is not."""

    value: sp.Expr
    is_exact: bool
    grows: bool
    why: str = ""


def joint_limit(P: sp.Matrix, method: Tableau) -> JointLimit:
    """The largest step that amplifies no mode which decays or oscillates under the flow, for all lam in [0, 2].

    Args:
        P: the matrix symbol, rational polynomials in lam.
        method: with a stability region that every ray leaves only once.

    Returns:
        The limit; 0 where no step is stable and oo where every step is.

    Raises:
        Undecided: no limit was proved.

    >>> from rdgraph.vocabulary.methods import methods
    >>> joint_limit(sp.Matrix([[0, 1], [-1 - lam, -sp.Rational(1, 2)]]), methods["euler"]).value
    1/6
    """
    if not leaves_once(method.stability):
        raise Undecided(f"rays enter the region of stability of {method.name} again")
    parts = blocks(P)
    grows = any(block.growing() is not None for block in parts)
    for block in parts:
        if (point := _oscillating(block)) is not None and imaginary_limit(method) == 0:
            why = f"{method.name} amplifies every oscillation that the flow does not damp, such as near lam = {point}"
            return JointLimit(sp.S.Zero, True, grows, why)
    limits = [_block_limit(block, method) for block in parts if block.is_damping()]
    if not limits:
        return JointLimit(sp.oo, True, grows, "the flow damps no mode")
    value, exact = min(limits, key=lambda pair: float(pair[0]))
    return JointLimit(value, exact, grows)


def _oscillating(block: Block) -> Any | None:
    """A lam at which a mode oscillates undamped, or which damped modes approach that come arbitrarily close to it."""
    if block.size != 2:
        return None
    trace, product = block.rows[0][0] + block.rows[1][1], block.crossings[0]
    for point in block.points():
        if trace.degree() < 0 and product(point) > 0:
            return point
    return _crossing(trace, product) if trace.degree() > 0 else None


def _crossing(trace: Any, product: Any) -> Any | None:
    """A lam in [0, 2] where the trace vanishes, damped on one side at least, and the determinant is positive."""
    coefficients = [[sp.Rational(int(c.p), int(c.q)) for c in reversed(x.coeffs())] for x in (trace, product)]
    first, second = (sp.Poly(c, lam) if c else sp.Poly(0, lam) for c in coefficients)
    for root in sorted(set(sp.real_roots(first))):
        if 0 <= root <= 2 and sp.N(second.as_expr().subs(lam, root), 30) > sp.Rational(1, 10**20):
            near = [
                sp.N(first.as_expr().subs(lam, root + side / 10**6), 30) for side in (-1, 1) if 0 <= root + side <= 2
            ]
            if any(x < 0 for x in near) or (root in (0, 2) and _damped_inside(first, root)):
                return root
    return None


def _damped_inside(trace: sp.Poly, root: sp.Expr) -> bool:
    inside = root + (sp.Rational(1, 10**6) if root == 0 else -sp.Rational(1, 10**6))
    return bool(sp.N(trace.as_expr().subs(lam, inside), 30) < 0)


def _block_limit(block: Block, method: Tableau) -> tuple[sp.Expr, bool]:
    """The limit of one block, and whether it is exact."""
    guess, worst = _guess(block, method)
    if not _TINY < guess < 1 / _TINY:
        raise Undecided(f"no step was found; the eigenvalues suggest one near {guess:.3g}")
    simple = sp.Rational(Fraction(guess).limit_denominator(_DENOMINATOR))
    point = sp.Rational(Fraction(worst).limit_denominator(1000))
    if block.touches(method, simple, point) and block.amplified(method, simple) is None:
        return simple, True
    for slack in (float(WIDTH) / 3, 1e-7, 1e-5):
        low, high = (sp.Rational(Fraction(guess * (1 + side * slack))) for side in (-1, 1))
        if block.amplified(method, low) is None and block.amplified(method, high) is not None:
            return _bisected(block, method, low, high), False
    raise Undecided(f"the largest step near {guess:.6g} was not proved")


def _bisected(block: Block, method: Tableau, low: sp.Rational, high: sp.Rational) -> sp.Expr:
    """A stable step, within `WIDTH` of an unstable one, rounded down to a float."""
    while high > low * (1 + WIDTH / 2):
        middle = sp.Rational(Fraction(float((low + high) / 2)))
        low, high = (middle, high) if block.amplified(method, middle) is None else (low, middle)
    below = float(low)
    return sp.Float(below if Fraction(below) <= Fraction(int(low.p), int(low.q)) else math.nextafter(below, 0), 15)


def _guess(block: Block, method: Tableau) -> tuple[float, float]:
    """The smallest limit of an eigenvalue, and its lam, in floats."""
    weights = [float(c) for c in sp.Poly(method.stability, z).all_coeffs()]
    low, high, best = 0.0, 2.0, (np.inf, 0.0)
    for _ in range(_ZOOMS):
        grid = np.linspace(low, high, _POINTS)
        entries = [[_on_grid(entry, grid) for entry in row] for row in block.rows]
        values = np.linalg.eigvals(np.array(entries).transpose(2, 0, 1))
        limits = _ray_limits(weights, values).min(-1)
        k = int(np.argmin(limits))
        best = min(best, (float(limits[k]), float(grid[k])))
        width = (high - low) / (_POINTS - 1)
        low, high = max(0.0, grid[k] - 2 * width), min(2.0, grid[k] + 2 * width)
    return best


def _on_grid(polynomial: Any, grid: Any) -> Any:
    descending = [float(sp.Rational(int(c.p), int(c.q))) for c in reversed(polynomial.coeffs())]
    return np.polyval(descending or [0.0], grid)


def _ray_limits(weights: list[float], values: Any) -> Any:
    """The steps at which |R(step*value)| exceeds 1, by bisection; infinite for eigenvalues that grow or are zero."""
    size = np.abs(values)
    counts = (size > 1e-12) & (values.real <= 1e-9 * size)
    inverse = 1 / np.where(counts, size, 1.0)
    low, high = np.zeros(values.shape), 64 * inverse
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        stable = np.abs(np.polyval(weights, middle * values)) <= 1 + _ROUNDING
        low, high = np.where(stable, middle, low), np.where(stable, high, middle)
    return np.where(counts, low, np.inf)


# ---------------------------------------------------------------------- field step limits
_MEANS = "no mode is amplified that decays or oscillates under the flow"


def spectrum_of(normalisation: str) -> str:
    """What must hold of a graph for the eigenvalues of L to be real."""
    return "" if find_normalisation(normalisation).is_symmetric else REAL_SPECTRUM


def several_fields_limit(system: System, weights: Tableau, normalisation: str) -> StepLimit:
    """The limit of a linear system of several fields; raises Undecided, or NotApplicable where there is no symbol."""
    if system.is_noisy:
        raise NotApplicable(f"expected a system without noise for a step limit, got {system.text}; drop the noise xi")
    P, domain = system.generator_matrix, system.domain
    assumes = spectrum_of(normalisation)
    if P.free_symbols <= {lam} and all(sp.Poly(x, lam).domain in (sp.ZZ, sp.QQ) for x in P):
        limit = joint_limit(P, weights)
        means = f"{limit.why}; no step is stable" if limit.value == 0 else limit.why or _MEANS
        means += (
            "" if limit.is_exact else f"; a step larger by the factor 1 + {float(WIDTH):g} is proved to amplify one"
        )
        means += "; the flow itself amplifies some modes, for any step" if limit.grows else ""
        return StepLimit(limit.value, means, "stability", assumes)
    limits, notes = [], []
    for group in groups(P):
        value, note = _symbolic_limit(P.extract(list(group), list(group)), weights, domain)
        limits.append(value)
        notes += [note] if note else []
    value = limits[0] if len(limits) == 1 else sp.Min(*limits)
    return StepLimit(public(value), "; ".join([_MEANS, *dict.fromkeys(notes)]), "stability", assumes)


def _symbolic_limit(block: sp.Matrix, weights: Tableau, domain: Domain) -> tuple[sp.Expr, str]:
    """The limit of mutually coupled fields, and a remark."""
    if block.rows == 1:
        return real_limit(block[0, 0], weights, domain)
    if block.rows > 2:
        raise Undecided(f"{block.rows} fields are mutually coupled; give numbers for all coefficients")
    trace, product = sp.expand(block.trace()), sp.expand(block.det())
    spectrum = domain.where(*within(lam, (sp.S.Zero, sp.Integer(2))))
    if trace == 0 and is_at_least(product, sp.S.Zero, spectrum) is True:
        return _undamped(product, weights, domain)
    if weights.is_euler and not trace.has(lam) and sp.degree(product, lam) <= 1 and is_above(-trace, 0, domain) is True:
        return _damped(-trace, product, domain)
    raise Undecided(
        f"the eigenvalues of two fields, with trace {public(trace)} and determinant {public(product)}, have no limit "
        f"in closed form for {weights.name}; give numbers for all coefficients"
    )


def real_limit(p: sp.Expr, weights: Tableau, domain: Domain) -> tuple[sp.Expr, str]:
    """The step limit of a field without mutual coupling, and a remark."""
    values = interval_candidates(p, lam, sp.S.Zero, sp.Integer(2), domain)
    strongest = maximum([*(Candidate(-c.value, c.valid) for c in values), Candidate(sp.S.Zero)], domain)
    spectrum = domain.where(*within(lam, (sp.S.Zero, sp.Integer(2))))
    if is_at_least(strongest, -p, spectrum) is False:
        raise Undecided(f"the largest damping of {p} was not found")
    growth = maximum(values, domain)
    grows = is_at_least(sp.S.Zero, growth, domain) is not True
    note = f"the flow itself grows at rate {in_words(public(growth))}, for any step" if grows else ""
    return divide(decimal(weights.real_limit), strongest, domain), note


def _undamped(product: sp.Expr, weights: Tableau, domain: Domain) -> tuple[sp.Expr, str]:
    """The limit for undamped frequencies sqrt(det), from the imaginary axis."""
    fastest = maximum(interval_candidates(product, lam, sp.S.Zero, sp.Integer(2), domain), domain)
    if is_above(fastest, sp.S.Zero, domain) is not True:
        raise Undecided(f"whether {public(fastest)} is positive is not known")
    limit = imaginary_limit(weights)
    if limit == 0:
        return sp.S.Zero, f"{weights.name} amplifies every oscillation that the flow does not damp: no step is stable"
    return sp.sqrtdenest(limit / sp.sqrt(fastest)) if not limit.has(sp.CRootOf) else decimal(limit) / sp.sqrt(
        fastest
    ), ""


def _damped(rate: sp.Expr, product: sp.Expr, domain: Domain) -> tuple[sp.Expr, str]:
    """The limit of Euler's method for mu^2 + rate*mu + det = 0."""
    ends = list(dict.fromkeys(sp.expand(product.subs(lam, end)) for end in (0, 2)))
    limits = [
        sp.Piecewise((rate / d, sp.Ge(4 * d, rate**2)), (4 / (rate + sp.sqrt(rate**2 - 4 * d)), True)) for d in ends
    ]
    grows = any(is_at_least(d, sp.S.Zero, domain) is not True for d in ends)
    note = "modes with a negative determinant grow, for any step" if grows else ""
    return limits[0] if len(limits) == 1 else sp.Min(*limits, evaluate=False), note
