"""Fits of one system to many sets of observed values at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.infer.fit.observations import Observations
from rdgraph.infer.fit.unknowns import Unknowns
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- residuals
# Residuals of many fits at once, and their derivatives through the flow.

#: Entries of the states of one differentiated run, over which the directions are taken in several runs.
_MAX_ENTRIES = 4_000_000
#: What an evaluation that is differentiated counts, and the entries that double the cost of one.
_DIFFERENTIATED, _DOUBLING = 4, 5000


@dataclass
class Effort:
    """The evaluations of the field by all runs of a fit, counted so that a limit is the same on every machine."""

    most: float = inf
    spent: float = 0.0

    def is_spent(self) -> bool:
        return self.spent >= self.most

    def add(self, evaluations: int, entries: int, *, is_differentiated: bool) -> None:
        """Count a run; evaluations with many entries, or with derivatives, count as several."""
        weight = _DIFFERENTIATED if is_differentiated else 1
        self.spent += weight * evaluations * (1 + entries / _DOUBLING)


@dataclass(frozen=True)
class Residuals:
    """What the model leaves of the observations, for rows of unknowns.

    The observed values may be the same for all rows (K, n, d) or differ, (rows, K, n, d), so that many sets of data
    of the same plan are fitted at once. `initial` (n, d) is the known start; without it, it is part of the rows.
    """

    system: System
    operator: Operator
    observed: Observations
    unknowns: Unknowns
    known: Mapping[str, Any]
    initial: Tensor | None
    settings: Mapping[str, Any]
    effort: Effort = field(default_factory=Effort)

    def states(self, rows: Tensor, times: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The states (rows, K, n, d), by default at the times of observation, and which rows reached the last time."""
        equation, start = self._field(rows)
        found = solve(equation, start, self.observed.times if times is None else times, **self.settings)
        evaluations = max(found.stats.evaluations, found.stats.products)
        self.effort.add(evaluations, start.numel(), is_differentiated=rows.requires_grad)
        return found.states.movedim(0, 1), found.codes == 0

    def _field(self, rows: Tensor) -> tuple[VectorField, Tensor]:
        """The equation with the coefficients of every row, and its start (rows, n, d)."""
        members, shape = len(rows), self.observed.shape
        coefficients = {**self.known, **self.unknowns.values(rows)}
        field = lower(self.system, self.operator, coefficients, batch=(members,))
        given = rows[:, self.unknowns.count :].reshape(members, *shape) if self.initial is None else self.initial
        return field, given.expand(members, *shape)

    def first_rates(self, rows: Tensor) -> Tensor:
        """The rates (rows, n, d) at the start."""
        field, start = self._field(rows)
        field = field.bind(start) if field.uses_initial else field
        with torch.no_grad():
            return field(self.observed.times[0], start)

    def of(self, rows: Tensor, values: Tensor) -> Tensor:
        """Residuals (rows, K n d): infinite where the run did not reach the last time, NaN where it costs too much."""
        try:
            with torch.no_grad():
                states, good = self.states(rows)
        except NotApplicable:
            # Coefficients for which the method declines; found by halving, since a batch declines as a whole.
            if len(rows) == 1:
                return rows.new_full((1, self.observed.seen.numel()), torch.nan)
            shared, middle = values.ndim < 4 or len(values) == 1, len(rows) // 2
            parts = ((rows[:middle], slice(None, middle)), (rows[middle:], slice(middle, None)))
            return torch.cat([self.of(part, values if shared else values[place]) for part, place in parts])
        return self._left(states, good, values)

    def _left(self, states: Tensor, good: Tensor, values: Tensor) -> Tensor:
        left = torch.where(self.observed.seen, states - values, 0.0)
        good = good & torch.isfinite(left).all(dim=(1, 2, 3))
        return torch.where(good[:, None], left.flatten(1), torch.inf)

    def derivatives(self, rows: Tensor) -> Tensor:
        """How the observed states follow the unknowns, (rows, K n d, unknowns).

        A direction v is a member of its own: the gradient of <u, states> along v is linear in u, and its derivative
        in u is the derivative of the states along v. Two backward passes give all directions that fit in one run.
        """

        def observed(repeated: Tensor) -> Tensor:
            return torch.where(self.observed.seen, self.states(repeated)[0], 0.0)

        entries = len(self.observed.times) * len(rows) * self.observed.shape[0] * self.observed.shape[1]
        return _slopes(observed, rows, rows.shape[1], entries)

    def rate_slopes(self, row: Tensor, times: Tensor) -> tuple[Tensor, float]:
        """How the rates f(H(t)) at some times of one run follow its coefficients, and the size of the states.

        (times n d, number of coefficients), at states that are held, and the largest modulus of an entry.
        """
        with torch.no_grad():
            states = self.states(row, times)[0][0]

        def rates(repeated: Tensor) -> Tensor:
            field, start = self._field(repeated)
            field = field.bind(start.detach()) if field.uses_initial else field
            return torch.stack([field(t, H.expand_as(start)) for t, H in zip(times, states, strict=True)], 1)

        size = float(states.abs().max())
        return _slopes(rates, row, self.unknowns.count, states.numel())[0], size or 1.0


def _slopes(function: Callable[[Tensor], Tensor], rows: Tensor, count: int, entries: int) -> Tensor:
    """The derivatives of a function of rows in its first `count` entries, (rows, values, count)."""
    at_once = max(1, min(count, _MAX_ENTRIES // max(entries, 1)))
    basis = torch.eye(rows.shape[1], dtype=rows.dtype)[:count]
    return torch.cat([_along(function, rows, directions) for directions in basis.split(at_once)], -1)


def _along(function: Callable[[Tensor], Tensor], rows: Tensor, directions: Tensor) -> Tensor:
    count, members = len(directions), len(rows)
    repeated = rows.repeat_interleave(count, 0).requires_grad_()
    found = function(repeated)
    weight = torch.zeros_like(found, requires_grad=True)
    (gradient,) = torch.autograd.grad(found, repeated, weight, create_graph=True)
    (along,) = torch.autograd.grad((gradient * directions.repeat(members, 1)).sum(), weight)
    return along.reshape(members, count, -1).transpose(1, 2)


# ---------------------------------------------------------------------- damped steps
# Levenberg's and Marquardt's method for many small least-squares problems side by side.

#: The damping at first, and by what it changes after a good and a bad step.
_DAMPING, _LESS, _MORE = 1e-2, 0.2, 5.0
_MIN_DAMPING, _MAX_DAMPING = 1e-12, 1e12
#: How far a step goes at most, in units of 1 and the unknown: where an unknown has almost no effect, steps are as long
#: as rounding makes them.
_LONGEST = 4.0

Values = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Minimum:
    """Where each problem ended: rows (problems, unknowns), the sum of squares, whether it settled."""

    rows: Tensor
    squares: Tensor
    settled: Tensor


def minimise(
    residuals: Values,
    derivatives: Values,
    rows: Tensor,
    free: Tensor,
    *,
    max_steps: int = 60,
    rtol: float = 1e-8,
    gain: float = 1e-8,
    after: Callable[[int, Tensor], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Minimum:
    """Least squares from every row; entries that are not `free` stay.

    `residuals` and `derivatives` are given rows and the numbers of the problems these belong to. A step that does not
    lower the sum of squares, or leaves the numbers, is taken back and damped more. A problem has settled when a step is
    shorter than `rtol` of its unknowns or lowers the sum by less than the share `gain`. No step begins once
    `stop` says so.
    """
    rows = rows.clone()
    free = free.expand(rows.shape)
    left = residuals(rows, torch.arange(len(rows)))
    squares = left.square().sum(-1)
    damping = torch.full_like(squares, _DAMPING)
    settled = ~torch.isfinite(squares)
    failed = settled.clone()
    products = torch.zeros(*rows.shape, rows.shape[-1], dtype=rows.dtype)
    slopes = torch.zeros_like(rows)
    stale = ~settled
    for turn in range(max_steps):
        active = torch.nonzero(~settled).ravel()
        if not len(active) or (stop is not None and stop()):
            break
        fresh = active[stale[active]]
        if len(fresh):
            along = derivatives(rows[fresh], fresh) * free[fresh][:, None, :]
            products[fresh] = along.transpose(1, 2) @ along
            slopes[fresh] = (along * left[fresh][..., None]).sum(1)
            stale[fresh] = False
        step = _step(products[active], slopes[active], damping[active], free[active])
        step = step / (step.abs() / (_LONGEST * (1 + rows[active].abs()))).amax(-1, keepdim=True).clamp_min(1.0)
        tried = rows[active] + step
        tried_left = residuals(tried, active)
        found = tried_left.square().sum(-1)
        better = found < squares[active]
        gained = (squares[active] - found) / squares[active].clamp_min(torch.finfo(rows.dtype).tiny)
        small = step.abs().amax(-1) <= rtol * (1 + rows[active].abs().amax(-1))
        rows[active] = torch.where(better[:, None], tried, rows[active])
        squares[active] = torch.where(better, found, squares[active])
        left[active] = torch.where(better[:, None], tried_left, left[active])
        stale[active] = better
        damping[active] = (damping[active] * torch.where(better, _LESS, _MORE)).clamp(_MIN_DAMPING, 2 * _MAX_DAMPING)
        settled[active] = small | (better & (gained < gain)) | (damping[active] > _MAX_DAMPING)
        if after is not None:
            after(turn, squares)
    return Minimum(rows, squares, settled & ~failed)


def _step(products: Tensor, slopes: Tensor, damping: Tensor, free: Tensor) -> Tensor:
    scale = products.diagonal(dim1=1, dim2=2)
    scale = torch.maximum(scale, 1e-12 * scale.amax(-1, keepdim=True)).clamp_min(torch.finfo(scale.dtype).tiny)
    scale = torch.where(free, scale, 1.0)
    roots = scale.sqrt()
    # Scaled to a unit diagonal, so that the damping means the same for every unknown.
    matrix = products / (roots[:, :, None] * roots[:, None, :])
    matrix = matrix + torch.diag_embed(damping[:, None] + (~free).to(matrix.dtype))
    return -torch.linalg.solve(matrix, slopes / roots) / roots * free


# ---------------------------------------------------------------------- least squares
#: Of the variance of the noise: what the sum of squares of two fits may differ by and mean the same.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class Problems:
    """Residuals and the sets of values (sets, K, n, d) that they are taken from.

    Unknowns that are `held` stay; `after` is called after every step with its number and the sums of squares.
    """

    residuals: Residuals
    values: Tensor
    held: Tensor | None = None
    after: Callable[[int, Tensor], None] | None = None

    @property
    def gain(self) -> float:
        """The share of a sum of squares that is far below what its noise leaves open."""
        return _NEGLIGIBLE / self.residuals.observed.count

    def is_spent(self) -> bool:
        """Whether the runs took as many evaluations as they may."""
        return self.residuals.effort.is_spent()

    def derivatives(self, rows: Tensor, _which: Tensor) -> Tensor:
        return self.residuals.derivatives(rows)

    def minimise(
        self,
        rows: Tensor,
        which: Tensor,
        free: Tensor | None = None,
        *,
        max_steps: int = 60,
    ) -> Minimum:
        """The least squares from every row, each for the set of values that `which` names."""

        def left(tried: Tensor, problems: Tensor) -> Tensor:
            return self.residuals.of(tried, self.values[which[problems]])

        free = torch.ones_like(rows, dtype=torch.bool) if free is None else free
        free = free if self.held is None else free & ~self.held
        return minimise(
            left, self.derivatives, rows, free, gain=self.gain, max_steps=max_steps, after=self.after,
            stop=lambda: self.is_spent(),
        )  # fmt: skip

    def squares(self, rows: Tensor, which: Tensor) -> Tensor:
        """The sums of squares without a step, infinite where a run ends early."""
        return self.residuals.of(rows, self.values[which]).square().sum(-1)
