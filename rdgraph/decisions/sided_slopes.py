"""Slopes beside a place: where a slope jumps, as those of relu and abs do at zero, its values on either side."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.errors import Undecided

#: Slopes that jump where their argument vanishes, with their values before and after the jump.
STEPS: dict[type, tuple[int, int]] = {sp.Heaviside: (0, 1), sp.sign: (-1, 1)}


@dataclass(frozen=True)
class SidedSlope:
    """A slope just below and just above a place; `weights` are what multiplies the steps that jump there."""

    below: sp.Expr
    above: sp.Expr
    weights: tuple[sp.Expr, ...] = ()

    @property
    def agree(self) -> bool:
        """Whether the slope does not jump, after all."""
        return sp.expand(self.below - self.above) == 0


def sided_slope(slope: sp.Expr, letter: sp.Symbol, place: sp.Expr, domain: Domain) -> SidedSlope:
    """A slope on both sides of a value of one letter; Undecided where a jump may lie there or not.

    >>> x = sp.Symbol("x", real=True)
    >>> found = sided_slope(sp.diff(sp.Abs(x) - 2 * x, x), x, sp.S.Zero, Domain())
    >>> found.below, found.above
    (-3, -1)
    >>> sided_slope(sp.diff(x * sp.Abs(x), x), x, sp.S.Zero, Domain()).agree
    True
    """
    below, above = (_Side(slope, letter, place, domain, way) for way in (-1, 1))
    values = [side.value() for side in (below, above)]
    return SidedSlope(values[0], values[1], (*below.weights, *above.weights))


class _Side:
    """The steps of a slope on one side of a place, the innermost first."""

    def __init__(self, slope: sp.Expr, letter: sp.Symbol, place: sp.Expr, domain: Domain, way: int) -> None:
        self.slope, self.letter, self.domain, self.way = slope, letter, domain, way
        self.point = {letter: place}
        self.known: dict[sp.Expr, sp.Expr] = {}
        self.weights: list[sp.Expr] = []

    def value(self) -> sp.Expr:
        for step in sorted(self.slope.atoms(*STEPS), key=lambda s: (s.count_ops(), str(s))):
            self.known[step] = self._step(step)
        return sp.expand(self._here(self.slope))

    def _here(self, expression: sp.Expr) -> sp.Expr:
        return sp.sympify(expression.xreplace(self.known).xreplace(self.point))

    def _step(self, step: sp.Expr) -> sp.Expr:
        before, after = STEPS[step.func]
        sign = self.domain.sign(step.args[0].xreplace(self.point))
        if sign in (POSITIVE, NEGATIVE):
            return sp.Integer(after if sign is POSITIVE else before)
        mark = sp.Dummy("step", real=True)
        weight = sp.expand(self._here(sp.diff(self.slope.xreplace({step: mark}), mark)))
        if weight == 0:
            return sp.S.Zero  # as in h*abs(h) at 0: what jumps is multiplied by zero
        rise = self.domain.sign(sp.expand(self._here(sp.diff(step.args[0], self.letter))))
        if sign is not ZERO or rise not in (POSITIVE, NEGATIVE):
            raise Undecided(f"it is not known on which side of its jump {step} is")
        self.weights.append(weight)
        return sp.Integer(after if (rise is POSITIVE) == (self.way > 0) else before)
