"""One attempted step of Dormand and Prince's pair, for many members at once, each with a step length of its own.

The state of order 5 goes on, its difference to order 4 is the error, and a quartic through the middle of the step gives
states in between (Shampine, Some practical Runge-Kutta formulas, 1986): the formulas of torchdiffeq's dopri5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import torch
from torch import Tensor

from rdgraph.integrators.stage_sums import combine
from rdgraph.methods.tableaux import methods

#: Sparse evaluations of one attempt: the first slope is the last one of the step before.
EVALUATIONS = 6
#: Weights of the method of order 4, and of the state in the middle of the step.
_FOURTH = ("1951/21600", "0", "22642/50085", "451/720", "-12231/42400", "649/6300", "1/60")
_MIDDLE = (
    "6025192743/60171106304", "0", "51252292925/130801643196", "-2691868925/90256659456",
    "187940372067/3189068634112", "-1776094331/39487288512", "11237099/470086768",
)  # fmt: skip


@cache
def _weights() -> tuple[list[list[float]], list[float], list[float]]:
    """The stages, the error and the middle as sums of slopes."""
    tableau = methods["dopri5"]
    stages = [[float(a) for a in row] for row in tableau.stages[1:]]
    error = [float(Fraction(str(b)) - Fraction(c)) for b, c in zip(tableau.weights, _FOURTH, strict=True)]
    return stages, error, [float(Fraction(c)) for c in _MIDDLE]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One step tried: `before` and `state` (m, n, d) at its ends, its seven slopes, and `dt` (m, 1, 1).

    >>> H = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> tried = Attempt.make(lambda H, node: -H, H, -H, torch.full((1, 1, 1), 0.5, dtype=torch.float64))
    >>> round(tried.state.item(), 6), round(tried.between(torch.tensor([0.5])).item(), 5)
    (0.606536, 0.77879)
    """

    before: Tensor
    state: Tensor
    slopes: tuple[Tensor, ...]
    dt: Tensor

    @classmethod
    def make(cls, field: Callable[[Tensor, float], Tensor], before: Tensor, slope: Tensor, dt: Tensor) -> Attempt:
        """Six evaluations of the field at fractions of the step, from a state (m, n, d) and the slope there."""
        slopes, state = [slope], before
        for row in _weights()[0]:
            state = combine(before, dt, row, slopes)
            slopes.append(field(state, sum(row)))
        return cls(before, state, tuple(slopes), dt)

    def rows(self, index: Tensor) -> Attempt:
        """The step of some members."""
        slopes = tuple(slope.index_select(0, index) for slope in self.slopes)
        parts = (x.index_select(0, index) for x in (self.before, self.state))
        return replace(self, **dict(zip(("before", "state"), parts, strict=True)), slopes=slopes, dt=self.dt[index])

    def error(self, rtol: float, atol: float) -> Tensor:
        """Size of the error in units of what is allowed, (m,): root mean square of error/(atol + rtol*|H|)."""
        error = combine(torch.zeros_like(self.before), self.dt, _weights()[1], self.slopes)
        return root_mean_square(error / (atol + rtol * torch.maximum(self.before.abs(), self.state.abs())))

    def between(self, x: Tensor) -> Tensor:
        """States at the fractions x (m,) of the step."""
        first, last, dt = self.slopes[0], self.slopes[-1], self.dt
        start, end, middle = self.before, self.state, combine(self.before, dt, _weights()[2], self.slopes)
        quartic = 2 * dt * (last - first) - 8 * (end + start) + 16 * middle
        cubic = dt * (5 * first - 3 * last) + 18 * start + 14 * end - 32 * middle
        square = dt * (last - 4 * first) - 11 * start - 5 * end + 16 * middle
        x = x.to(start.dtype)[:, None, None]
        return start + x * (dt * first + x * (square + x * (cubic + x * quartic)))


def root_mean_square(values: Tensor) -> Tensor:
    """sqrt(mean of squares) of every member, (m, n, d) to (m,), float64.

    >>> root_mean_square(torch.tensor([[[3.0], [4.0]], [[0.0], [2.0]]])).square()
    tensor([12.5000,  2.0000], dtype=torch.float64)
    """
    return (inner(values, values) / values[0].numel()).sqrt()


def inner(left: Tensor, right: Tensor) -> Tensor:
    """Sum of left*right of every member, (m, n, d) twice to (m,), float64.

    Summed in pairs, elementwise, so that the bits of a member do not depend on how many there are.
    """
    terms = (left.double() * right.double()).flatten(1)
    while (width := terms.shape[1]) > 1:
        half = width // 2
        folded = terms[:, :half] + terms[:, width - half :]
        terms = torch.cat([folded, terms[:, half : width - half]], 1) if width % 2 else folded
    return terms[:, 0]
