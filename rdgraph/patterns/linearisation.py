"""`Linearisation`: P(lam) at one steady state with numbers as coefficients, its bands and its growth.

Where all numbers are rational the bands are exact; where a steady state is irrational they are enclosed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from rdgraph.decisions.enclosure import NotEnclosed, enclose_at, precision
from rdgraph.decisions.sided_slopes import STEPS
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.patterns.bands import Band, exact_bands
from rdgraph.patterns.conditions import holds_somewhere
from rdgraph.patterns.enclosed_bands import EnclosedGrowth, enclosed_bands
from rdgraph.patterns.half_planes import characteristic, growth_sign
from rdgraph.patterns.kinetics import Kinetics
from rdgraph.patterns.states import BITS, SteadyState
from rdgraph.syntax.answer_symbols import lam

#: Values of lam that are tried where a question about all of them is not decided.
SAMPLES = 200
#: Digits with which numbers are evaluated before they become floating-point numbers.
DIGITS = 40


class Bands(NamedTuple):
    """Bands that grow, how they are known, and whether everything outside them is proved not to grow."""

    bands: tuple[Band, ...]
    how: str
    is_sure: bool


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A square matrix of polynomials in lam; letters of a steady state that are not rational are left in it."""

    matrix: sp.ImmutableMatrix
    state: SteadyState | None = None

    @classmethod
    def at(cls, kinetics: Kinetics, state: SteadyState | None) -> Linearisation:
        """The linearisation of a kinetics, whose coefficients are numbers, at a steady state."""
        left = set(kinetics.matrix.free_symbols) - {*kinetics.mode_letters, *kinetics.letters}
        if left:
            raise InvalidArgument(f"expected values for all coefficients, got none for {sorted(map(str, left))}")
        if kinetics.matrix.has(sp.nan):
            raise NotApplicable("no linearisation: a rate has a kink at every state that is the same in all nodes")
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
        """The same with `rate` taken from every eigenvalue."""
        return Linearisation(sp.ImmutableMatrix(self.matrix - rate * sp.eye(self.size)), self.state)

    @property
    def balls(self) -> dict[sp.Basic, Any]:
        """Enclosures of the letters that are left."""
        return {} if self.state is None else self.state.balls

    def sign_at(self, place: sp.Rational) -> int | None:
        """The sign of the growth at a rational lam: 1, 0 or -1, or None where an enclosure does not tell it from 0."""
        from flint import fmpq

        if self.is_rational:
            return growth_sign(characteristic(self.matrix.subs(lam, place)))
        number = fmpq(int(place.p), int(place.q))
        return self._enclosed.sign(number, number)

    def parity_at(self, place: sp.Rational) -> int | None:
        """1 or -1 where an even or an odd number of eigenvalues is positive or grows at lam; None where one is zero."""
        last = characteristic(self.matrix)[-1].subs(lam, place)
        with precision(BITS):
            ball = enclose_at(sp.sympify(last), self.balls)
            return 1 if ball > 0 else -1 if ball < 0 else None

    def has_odd_growth(self, to: sp.Expr) -> bool:
        """Whether an odd number of eigenvalues grows for some lam in (0, to]; irrational numbers are sampled."""
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

    def matrices(self, place: Any) -> np.ndarray:
        """P at numbers or complex numbers of any shape, in double precision: (*shape, n, n)."""
        places = np.asarray(place)[..., None, None]
        total = np.zeros((*np.shape(place), self.size, self.size), dtype=np.result_type(places, float))
        for power in self._powers[::-1]:
            total = total * places + power
        return total

    def eigenvalues(self, place: Any) -> np.ndarray:
        """The eigenvalues of P, the one with the largest real part first: (*shape, n)."""
        values = np.linalg.eigvals(self.matrices(place)).astype(complex)
        order = np.argsort(-values.real, axis=-1, kind="stable")
        return np.take_along_axis(values, order, axis=-1)


def _check_smooth(kinetics: Kinetics, state: SteadyState) -> None:
    """Refuse a state at a kink of a rate, where there is no linearisation."""
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
                continue  # as in h*abs(h) at 0: what jumps is multiplied by zero
            try:
                ball = enclose_at(kink.args[0].xreplace(point), given)
            except NotEnclosed:
                ball = None
            if ball is None or ball.contains(0):
                raise NotApplicable(f"no linearisation at {state}: the slope {kink} jumps there")
