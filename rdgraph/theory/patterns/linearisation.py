"""`Linearisation`: P(lam) at one steady state with numbers as coefficients, its bands and its growth.

If all numbers are rational, the bands are exact; if the steady state is irrational, they are enclosed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from flint import arb, arb_poly, fmpq

from rdgraph.answers import Status
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.branches import STEPS
from rdgraph.reals.condition_words import condition_in_words
from rdgraph.reals.enclosure import NotEnclosed, enclose_at, holds, precision, sign_of
from rdgraph.theory.patterns.bands import (
    Band,
    between,
    characteristic,
    exact_bands,
    growth_sign,
    hurwitz_determinants,
    real_roots,
)
from rdgraph.theory.patterns.kinetics import Kinetics
from rdgraph.theory.patterns.states import BITS, SteadyState
from rdgraph.wording import listed

# ---------------------------------------------------------------------- conditions
# `ConditionSet`: named inequalities between coefficients, whether they are satisfiable, and whether they hold.

POSSIBLE, IMPOSSIBLE = "possible", "impossible"

#: For which lam in (0, to] a relation must hold: it does not depend on lam, for one lam, or for all.
NO_LAM, SOME_LAM, EVERY_LAM = "", "for some lam", "for every lam"

#: Points of the range of lam that are tried where the coefficients of a polynomial are not rational.
CONDITION_SAMPLES = 400


@dataclass(frozen=True)
class Condition:
    """A named relation between coefficients; `scope` says for which lam in (0, to] it must hold.

    Without `is_sufficient` it is only necessary.
    """

    name: str
    inner: sp.Basic
    scope: str = NO_LAM
    is_sufficient: bool = True

    @property
    def relation(self) -> sp.Basic:
        """The relation in plain symbols."""
        return public(self.inner)

    def __str__(self) -> str:
        scope = f" {self.scope}" if self.scope else ""
        necessary = "" if self.is_sufficient else " (necessary)"
        return f"{self.name}: {condition_in_words(self.relation)}{scope}{necessary}"

    def holds_at(self, numbers: Mapping[sp.Basic, sp.Expr], to: sp.Expr) -> bool:
        """Whether the condition holds exactly at numbers for all symbols; raises Undecided if that is not decided."""
        put_in = self.inner.xreplace(dict(numbers))
        if not put_in.has(lam):
            answer = holds(put_in)
        elif self.scope == EVERY_LAM:
            refuted = holds_somewhere(sp.Not(put_in), to)
            answer = None if refuted is None else not refuted
        else:
            answer = holds_somewhere(put_in, to)
        if answer is None:
            raise Undecided(f"{self} is not decided: the two sides agree to the precision of the enclosures")
        return answer


@dataclass(frozen=True)
class ConditionSet:
    """Conditions that together are necessary and sufficient for the property `name`.

    `outcome` is "possible" (with an example in `point`), "impossible" (proved under the assumptions) or "undecided";
    `reason` says why.
    """

    name: str
    conditions: tuple[Condition, ...]
    outcome: str = Status.UNDECIDED
    reason: str = ""
    point: Mapping[str, sp.Expr] = field(default_factory=dict)

    @property
    def relations(self) -> dict[str, sp.Basic]:
        """The relations by name, in plain symbols."""
        return {c.name: c.relation for c in self.conditions}

    def __str__(self) -> str:
        example = ", ".join(f"{x} = {value}" for x, value in self.point.items())
        tail = f", for example {example}" if example else f": {self.reason}" if self.reason else ""
        return "; ".join([f"{self.name} ({self.outcome}{tail})", *map(str, self.conditions)])

    def to_dict(self) -> dict[str, Any]:
        """The conditions and the outcome as texts."""
        return {
            "outcome": str(self.outcome),
            "reason": self.reason,
            "conditions": [{"name": c.name, "relation": str(c.relation), "scope": c.scope} for c in self.conditions],
            "example": {name: str(value) for name, value in self.point.items()},
        }


def holds_somewhere(relation: sp.Basic, to: sp.Expr) -> bool | None:
    """Whether relations between polynomials in lam, joined by And and Or, hold for some lam in (0, to].

    Exact if all numbers are rational; otherwise the answer may be None.

    >>> holds_somewhere(sp.And(lam**2 - 3 * lam + 2 < 0, lam > sp.Rational(19, 10)), sp.Integer(2))
    True
    """
    gaps = [sp.expand(part.lhs - part.rhs) for part in relation.atoms(sp.Rel)]
    polynomials = [sp.Poly(gap, lam) for gap in gaps]
    if all(c.is_Rational for p in polynomials for c in p.coeffs()):
        return any(relation.subs(lam, x) == sp.true for x in _samples(gaps, to))
    end = to if to.is_finite else sp.Integer(1000)
    if any(holds(relation.subs(lam, end * k / CONDITION_SAMPLES)) for k in range(1, CONDITION_SAMPLES + 1)):
        return True
    return False if isinstance(relation, sp.Rel) and _is_refuted(relation, polynomials[0]) else None


def _is_refuted(relation: sp.Rel, polynomial: sp.Poly) -> bool:
    """Whether p < 0, or p > 0, is refuted for all lam > 0 by the signs of the coefficients."""
    signs = {sign_of(c) for c in polynomial.coeffs()}
    return None not in signs and (-1 if isinstance(relation, sp.Lt) else 1) not in signs


def _samples(gaps: list[sp.Expr], to: sp.Expr) -> list[sp.Expr]:
    """One lam in every interval between roots, and the end of the range."""
    product = sp.Mul(*(gap for gap in gaps if gap.has(lam)))
    roots = real_roots(product, lam, sp.S.Zero, to) if product.has(lam) else []
    edges = [sp.S.Zero, *roots, to]
    samples = [between(left, right) for left, right in itertools.pairwise(edges)]
    return samples + ([to] if to.is_finite else [])


# ---------------------------------------------------------------------- enclosed bands
# Bands of a matrix polynomial with enclosed coefficients, proved between enclosed ends.
#
# Where a steady state has no rational coordinates, Hurwitz determinants are enclosed over intervals of lam. Positive
# ones prove decay, a negative one proves growth, on the whole interval; the rest is halved until it is short.

#: Bits of the enclosures, most halvings of an interval, and most intervals.
BAND_BITS = 192
HALVINGS = 46
#: The end of a band counts as known if it lies in an interval no longer than this fraction of the range.
LONGEST_END = sp.Rational(1, 10**9)
MAX_CELLS = 5_000


class EnclosedGrowth:
    """The sign of the growth of a matrix in `letter` and in other symbols, whose enclosures are given."""

    def __init__(self, matrix: sp.Matrix, letter: sp.Symbol, balls: Mapping[sp.Basic, Any]) -> None:
        coefficients = characteristic(matrix)
        tests = [sp.Poly(c, letter) for c in (*coefficients[1:], *hurwitz_determinants(coefficients))]
        with precision(BAND_BITS):
            enclosed = [[enclose_at(c, balls) for c in reversed(test.all_coeffs())] for test in tests]
            polynomials = [arb_poly(row) for row in enclosed]
            self._polynomials = [(p, p.derivative()) for p in polynomials]
        self._first_determinant = len(coefficients) - 1

    def sign(self, lower: Any, upper: Any) -> int | None:
        """1 or -1 if the growth is proved to be positive or negative on a whole interval, else None.

        The ends are rational numbers of FLINT or integers.

        >>> x, u = sp.symbols("x u")
        >>> from flint import arb
        >>> growth = EnclosedGrowth(sp.Matrix([[u - x]]), x, {u: arb(2).sqrt()})
        >>> [growth.sign(low, high) for low, high in ((0, 1), (2, 3), (1, 2))]
        [1, -1, None]
        """
        with precision(BAND_BITS):
            interval = arb(lower).union(arb(upper))
            values = [_value_over(p, slope, interval) for p, slope in self._polynomials]
            if all(value > 0 for value in values[self._first_determinant :]):
                return -1
            return 1 if any(value < 0 for value in values) else None


def _value_over(polynomial: Any, slope: Any, interval: Any) -> Any:
    """An enclosure of a polynomial over a ball by the mean value theorem, tighter than by powers of the ball."""
    middle = interval.mid()
    return polynomial(middle) + slope(interval) * (interval - middle)


def enclosed_bands(growth: EnclosedGrowth, to: sp.Expr) -> tuple[tuple[Band, ...], tuple[tuple[float, float], ...]]:
    """The bands in [0, to], and the intervals on which nothing is proved, without the short ends of bands."""
    if not to.is_finite:
        raise Undecided("bands on an unbounded range need rational coefficients; give a number as the range's end")
    cells = _cells(growth, sp.Rational(to))
    bands: list[Band] = []
    open_cells: list[tuple[float, float]] = []
    for i, (lower, upper, sign) in enumerate(cells):
        if sign == 1:
            before = cells[i - 1] if i else None
            gap = before[1] - before[0] if before and before[2] is None else sp.S.Zero
            after = cells[i + 1] if i + 1 < len(cells) else None
            slack = max(gap, after[1] - after[0] if after and after[2] is None else sp.S.Zero)
            bands.append(Band(lower, upper, lower == 0, upper == to, slack))
        elif sign is None:
            around = {cells[k][2] for k in (i - 1, i + 1) if 0 <= k < len(cells)}
            if len(around) < 2 or upper - lower > to * LONGEST_END:
                open_cells.append((float(lower), float(upper)))
    return tuple(bands), tuple(open_cells)


def _cells(growth: EnclosedGrowth, to: sp.Rational) -> list[tuple[sp.Rational, sp.Rational, int | None]]:
    """[0, to] divided into maximal intervals with one proved sign, or None."""
    end = fmpq(int(to.p), int(to.q))
    waiting = [(end * k / 16, end * (k + 1) / 16) for k in reversed(range(16))]
    shortest = end / 2**HALVINGS
    cells: list[tuple[Any, Any, int | None]] = []
    seen = 0
    while waiting:
        lower, upper = waiting.pop()
        seen += 1
        sign = growth.sign(lower, upper)
        if sign is None and upper - lower > shortest and seen < MAX_CELLS:
            middle = (lower + upper) / 2
            waiting += [(middle, upper), (lower, middle)]
        elif cells and cells[-1][2] == sign:
            cells[-1] = (cells[-1][0], upper, sign)
        else:
            cells.append((lower, upper, sign))
    return [(_rational(lower), _rational(upper), sign) for lower, upper, sign in cells]


def _rational(number: Any) -> sp.Rational:
    return sp.Rational(int(number.p), int(number.q))


# ---------------------------------------------------------------------- linearisation
#: Values of lam that are tried where a question for all lam is not decided.
SAMPLES = 200
#: Digits with which exact numbers are evaluated before they are rounded to doubles.
DIGITS = 40


class Bands(NamedTuple):
    """Growing bands, how they are known, and whether it is proved that nothing grows outside them."""

    bands: tuple[Band, ...]
    how: str
    is_sure: bool


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A square matrix of polynomials in lam; fields whose steady value is irrational stay in it as symbols."""

    matrix: sp.ImmutableMatrix
    state: SteadyState | None = None

    @classmethod
    def at(cls, kinetics: Kinetics, state: SteadyState | None) -> Linearisation:
        """The linearisation of a kinetics, whose coefficients are numbers, at a steady state."""
        unset = set(kinetics.matrix.free_symbols) - {*kinetics.mode_letters, *kinetics.letters}
        if unset:
            names = listed(sorted(map(str, unset)))
            raise InvalidArgument(f"expected values for all coefficients, got none for {names}")
        if kinetics.matrix.has(sp.nan):
            raise NotApplicable("no linearisation: a rate has a kink at every state equal in all nodes")
        if state is None:
            return cls(kinetics.matrix)
        if not state.is_number:
            raise InvalidArgument(
                f"expected one steady state, got the family {state}; give the state's values, as in state={{'u': 1}}"
            )
        _check_smooth(kinetics, state)
        rational = {x: value for x, value in state.point.items() if value.is_Rational}
        matrix = kinetics.matrix.xreplace(rational).applyfunc(sp.expand)
        if matrix.has(sp.zoo, sp.nan, sp.oo):
            raise NotApplicable(f"no linearisation: a rate has no slope at {state}")
        return cls(matrix, state)

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def is_rational(self) -> bool:
        """Whether every coefficient is a rational number."""
        return all(
            c.is_Rational for entry in self.matrix for c in sp.Poly(entry, lam).coeffs()
        )  # fmt: skip

    def shifted(self, rate: sp.Rational) -> Linearisation:
        """The linearisation with `rate` subtracted from every eigenvalue."""
        return Linearisation(sp.ImmutableMatrix(self.matrix - rate * sp.eye(self.size)), self.state)

    @property
    def balls(self) -> dict[sp.Basic, Any]:
        """Enclosures of the fields that stay in the matrix as symbols."""
        return {} if self.state is None else self.state.balls

    def sign_at(self, point: sp.Rational) -> int | None:
        """The sign of the growth at a rational lam: 1, 0 or -1; None where the enclosure contains 0."""
        if self.is_rational:
            return growth_sign(characteristic(self.matrix.subs(lam, point)))
        number = fmpq(int(point.p), int(point.q))
        return self._enclosed.sign(number, number)

    def parity_at(self, point: sp.Rational) -> int | None:
        """1 or -1 if the number of eigenvalues that grow at lam is even or odd; None where one is zero."""
        last = characteristic(self.matrix)[-1].subs(lam, point)
        with precision(BITS):
            ball = enclose_at(sp.sympify(last), self.balls)
            return 1 if ball > 0 else -1 if ball < 0 else None

    def has_odd_growth(self, to: sp.Expr) -> bool:
        """Whether an odd number of eigenvalues grows for some lam in (0, to]; with irrational numbers by sampling."""
        last = sp.Lt(characteristic(self.matrix)[-1], 0, evaluate=False)
        if self.is_rational:
            return bool(holds_somewhere(last, to))
        end = to if to.is_finite else sp.Integer(1000)
        return any(self.parity_at(end * k / SAMPLES) == -1 for k in range(1, SAMPLES + 1))

    def bands(self, to: sp.Expr) -> Bands:
        """The bands in [0, to], and how they are known."""
        if self.is_rational:
            return Bands(exact_bands(self.matrix, lam, to), "exact", True)
        bands, unsure = enclosed_bands(self._enclosed, to)
        near = f"; nothing is proved within {unsure[0][1] - unsure[0][0]:.1g} of {unsure[0][0]:.6g}" if unsure else ""
        return Bands(bands, f"enclosed by interval arithmetic{near}", not unsure)

    @cached_property
    def _enclosed(self) -> EnclosedGrowth:
        return EnclosedGrowth(sp.Matrix(self.matrix), lam, self.balls)

    @cached_property
    def exact_matrix(self) -> sp.ImmutableMatrix:
        """The matrix with the steady state put in."""
        return self.matrix if self.state is None else self.matrix.xreplace(dict(self.state.point))

    @cached_property
    def _powers(self) -> np.ndarray:
        """Coefficients of the powers of lam, (degree + 1, n, n)."""
        numbers = {} if self.state is None else {x: sp.N(v, DIGITS) for x, v in self.state.point.items()}
        entries = [[sp.Poly(self.matrix[i, j], lam) for j in range(self.size)] for i in range(self.size)]
        degree = max(p.degree() for row in entries for p in row if not p.is_zero) if any(self.matrix) else 0
        powers = np.zeros((degree + 1, self.size, self.size))
        for i, row in enumerate(entries):
            for j, p in enumerate(row):
                for (k,), c in p.terms():
                    powers[k, i, j] = float(sp.N(c.xreplace(numbers), DIGITS))
        return powers

    def matrices(self, eigenvalue: Any) -> np.ndarray:
        """P at numbers or complex numbers of any shape, in double precision: (*shape, n, n)."""
        places = np.asarray(eigenvalue)[..., None, None]
        total = np.zeros((*np.shape(eigenvalue), self.size, self.size), dtype=np.result_type(places, float))
        for power in self._powers[::-1]:
            total = total * places + power
        return total

    def eigenvalues(self, eigenvalue: Any) -> np.ndarray:
        """The eigenvalues of P, the one with the largest real part first: (*shape, n)."""
        return fastest_first(self.matrices(eigenvalue))


def fastest_first(matrices: np.ndarray) -> np.ndarray:
    """The eigenvalues (*shape, n) of matrices (*shape, n, n), the one with the largest real part first."""
    values = np.linalg.eigvals(matrices).astype(complex)
    return np.take_along_axis(values, np.argsort(-values.real, axis=-1, kind="stable"), axis=-1)


def _check_smooth(kinetics: Kinetics, state: SteadyState) -> None:
    """Raise NotApplicable for a state at a kink of a rate, where there is no linearisation."""
    kinks = kinetics.matrix.atoms(*STEPS)
    if not kinks:
        return
    point = {x: value for x, value in state.point.items() if value.is_Rational}
    with precision(BITS):
        given = state.balls
        for kink in sorted(kinks, key=str):
            side = sp.Dummy("side", real=True)
            weight = kinetics.matrix.xreplace({kink: side}).diff(side).xreplace(point)
            if all(sp.expand(entry) == 0 for entry in weight):
                continue  # as in h*abs(h) at 0, where the jump is multiplied by zero
            try:
                ball = enclose_at(kink.args[0].xreplace(point), given)
            except NotEnclosed:
                ball = None
            if ball is None or ball.contains(0):
                raise NotApplicable(f"no linearisation at {state}: the slope {kink} jumps there")
