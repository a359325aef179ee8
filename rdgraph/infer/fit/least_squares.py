"""Fits of one system to many sets of observed values at once, and the intervals of their unknowns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.infer.fit.damped_steps import Array, Effort, Minimum, minimise
from rdgraph.infer.fit.observations import Observations, numbers_of
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- unknowns
#: A border this many times farther from zero than the value counts as none.
_FARTHEST = 1000.0
#: For each sign, the factor of the exponential of the fitted number; real coefficients are fitted directly.
_FACTORS = {"positive": 1.0, "nonnegative": 1.0, "negative": -1.0, "nonpositive": -1.0}


@dataclass(frozen=True)
class Unknown:
    """A fitted coefficient: its shape for one member, and its sign (0 where it may have either)."""

    name: str
    shape: tuple[int, ...]
    factor: float

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def to_value(self, inner: Any) -> Any:
        """The coefficient for the fitted number; both tensors or both numbers."""
        if not self.factor:
            return inner
        return self.factor * (torch.exp(inner) if isinstance(inner, Tensor) else math.exp(inner))

    def to_inner(self, value: Tensor) -> Tensor:
        """The unconstrained number that is fitted for a value: its logarithm if the sign is known."""
        if not self.factor:
            return value
        if not bool((value * self.factor > 0).all()):
            side = "positive" if self.factor > 0 else "negative"
            raise InvalidArgument(
                f"expected {side} values to start {self.name} from, got {value.tolist()}; "
                f"say 'where {self.name} real' in the equation if it may have either sign"
            )
        return torch.log(value * self.factor)


@dataclass(frozen=True)
class Unknowns:
    """All fitted coefficients in a row, followed by `extra` entries of the start."""

    coefficients: tuple[Unknown, ...]
    extra: int = 0

    @classmethod
    def of(cls, system: System, names: list[str], nodes: int, channels: int, extra: int) -> Unknowns:
        shapes = {Kind.SCALAR: (), Kind.CHANNEL: (channels,), Kind.NODE: (nodes,), Kind.MATRIX: (channels, channels)}
        unknowns = []
        for name in names:
            kind = system.letters[name]
            factor = 0.0 if kind is Kind.MATRIX else _FACTORS.get(system.assumptions.sign(name), 0.0)
            unknowns.append(Unknown(name, shapes[kind], factor))
        return cls(tuple(unknowns), extra)

    @property
    def count(self) -> int:
        """The number of entries of all coefficients."""
        return sum(c.size for c in self.coefficients)

    @property
    def total(self) -> int:
        return self.count + self.extra

    def slices(self) -> dict[str, slice]:
        """The slice of each coefficient in a row."""
        spans, start = {}, 0
        for c in self.coefficients:
            spans[c.name] = slice(start, start + c.size)
            start += c.size
        return spans

    def values(self, rows: Tensor) -> dict[str, Tensor]:
        """The coefficients of every row, (members, *shape)."""
        places = self.slices()
        return {c.name: c.to_value(rows[:, places[c.name]]).reshape(len(rows), *c.shape) for c in self.coefficients}

    def inner_slopes(self, rows: Tensor) -> Tensor:
        """The derivatives of the coefficients in the fitted numbers, (members, number of coefficients)."""
        slopes = torch.ones_like(rows[:, : self.count])
        for c, span in zip(self.coefficients, self.slices().values(), strict=True):
            if c.factor:
                slopes[:, span] = c.to_value(rows[:, span])
        return slopes

    def typical(self, rows: Tensor) -> Tensor:
        """The typical size of the coefficients of some rows, (number of coefficients,); at least 1 for real ones."""
        sizes = rows[:, : self.count].abs().mean(0).clamp_min(1.0)
        for c, span in zip(self.coefficients, self.slices().values(), strict=True):
            if c.factor:
                sizes[span] = torch.exp(rows[:, span].mean(0))
        return sizes

    def farthest(self, rows: Tensor) -> Tensor:
        """The largest distance at which a border is searched, for every row, (members, number of coefficients).

        A factor of a thousand for positive ones, or the distance to 1 if that is larger.

        >>> pair = Unknowns((Unknown("a", (), 1.0), Unknown("b", (), 0.0)))
        >>> pair.farthest(torch.tensor([[0.0, 20.0], [-9.0, 0.5]]))
        tensor([[6.9078e+00, 2.0000e+04],
                [9.0000e+00, 1.0000e+03]])
        """
        distances = rows[:, : self.count].abs().clamp_min(math.log(_FARTHEST))
        for c, span in zip(self.coefficients, self.slices().values(), strict=True):
            if not c.factor:
                distances[:, span] = _FARTHEST * rows[:, span].abs().clamp_min(1.0)
        return distances

    def at(self, position: int) -> tuple[Unknown, int]:
        """The coefficient at a position of a row, and the index of its entry."""
        for c, span in zip(self.coefficients, self.slices().values(), strict=True):
            if span.start <= position < span.stop:
                return c, position - span.start
        raise IndexError(position)

    def starts(self, given: Mapping[str, Any], count: int, spread: float, generator: torch.Generator) -> Tensor:
        """`count` rows to start from, (count, number of coefficients): given values, else drawn around 1 (or 0)."""
        rows = torch.randn(count, self.count, dtype=torch.float64, generator=generator) * spread
        places = self.slices()
        for c in self.coefficients:
            if c.name in given:
                value = numbers_of(given[c.name], f"the start of {c.name}")
                try:
                    value = value.expand(c.shape)
                except RuntimeError:
                    raise InvalidArgument(
                        f"expected a start of {c.name} of shape {c.shape}, got {tuple(value.shape)}; one number does"
                    ) from None
                rows[:, places[c.name]] = c.to_inner(value).reshape(-1)
        return rows


# ---------------------------------------------------------------------- residuals
# Residuals of many fits at once, and their derivatives through the flow.

#: Entries of the states of one differentiated run; with more, the directions are split over several runs.
_MAX_ENTRIES = 4_000_000
#: The cost of a differentiated evaluation, and the number of entries that doubles the cost.
_DIFFERENTIATED, _DOUBLING = 4, 5000


@dataclass(frozen=True)
class Residuals:
    """The residuals of the observations for rows of unknowns.

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
        solution = solve(equation, start, self.observed.times if times is None else times, **self.settings)
        weight = _DIFFERENTIATED if rows.requires_grad else 1
        evaluations = max(solution.stats.evaluations, solution.stats.products)
        self.effort.spend(weight * evaluations * (1 + start.numel() / _DOUBLING))
        return solution.states.movedim(0, 1), solution.codes == 0

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
        """Residuals (rows, K n d): infinite where the run did not reach the last time, NaN where it is too costly."""
        try:
            with torch.no_grad():
                states, good = self.states(rows)
        except NotApplicable:
            # The method refuses some coefficients; found by halving, since a batch is refused as a whole.
            if len(rows) == 1:
                return rows.new_full((1, self.observed.seen.numel()), torch.nan)
            shared, middle = values.ndim < 4 or len(values) == 1, len(rows) // 2
            parts = ((rows[:middle], slice(None, middle)), (rows[middle:], slice(middle, None)))
            return torch.cat([self.of(part, values if shared else values[members]) for part, members in parts])
        return self._rest(states, good, values)

    def _rest(self, states: Tensor, good: Tensor, values: Tensor) -> Tensor:
        residuals = torch.where(self.observed.seen, states - values, 0.0)
        good = good & torch.isfinite(residuals).all(dim=(1, 2, 3))
        return torch.where(good[:, None], residuals.flatten(1), torch.inf)

    def derivatives(self, rows: Tensor) -> Tensor:
        """The derivatives of the observed states in the unknowns, (rows, K n d, unknowns).

        Each direction v is a separate member: the gradient of <u, states> along v is linear in u, and its derivative
        in u is the derivative of the states along v. Two backward passes give all directions that fit in one run.
        """

        def observed(repeated: Tensor) -> Tensor:
            return torch.where(self.observed.seen, self.states(repeated)[0], 0.0)

        entries = len(self.observed.times) * len(rows) * self.observed.shape[0] * self.observed.shape[1]
        return _slopes(observed, rows, rows.shape[1], entries)

    def rate_slopes(self, row: Tensor, times: Tensor) -> tuple[Tensor, float]:
        """The derivatives of the rates f(H(t)) of one run in its coefficients, and the size of the states.

        (times n d, number of coefficients), at fixed states, and the largest modulus of an entry.
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
    outputs = function(repeated)
    weight = torch.zeros_like(outputs, requires_grad=True)
    (gradient,) = torch.autograd.grad(outputs, repeated, weight, create_graph=True)
    (along,) = torch.autograd.grad((gradient * directions.repeat(members, 1)).sum(), weight)
    return along.reshape(members, count, -1).transpose(1, 2)


# ---------------------------------------------------------------------- least squares
#: The initial damping, the longest step, and the length of the last one, in units of the unknowns.
_DAMPING, _LONGEST, _SHORT = 1e-2, 4.0, 1e-8
#: Sums of squares that differ by less than this share of the noise variance are the same.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class Problems:
    """Residuals and the sets of observed values (sets, K, n, d).

    Unknowns that are `held` are not fitted; `after` is called after every step with its number and the sums of squares.
    """

    residuals: Residuals
    values: Tensor
    held: Tensor | None = None
    after: Callable[[int, Array], None] | None = None

    @property
    def gain(self) -> float:
        """A relative change of a sum of squares that is far below its uncertainty."""
        return _NEGLIGIBLE / self.residuals.observed.count

    def is_spent(self) -> bool:
        """Whether the runs have used up their evaluations."""
        return self.residuals.effort.is_spent

    def derivatives(self, rows: Tensor, _which: Tensor) -> Tensor:
        return self.residuals.derivatives(rows)

    def minimise(
        self, rows: Tensor, which: Tensor, free: Tensor | None = None, *, max_steps: int = 60
    ) -> Minimum[Tensor]:
        """The least squares from every row, each for the set of values that `which` names."""

        def residuals(tried: Array, problems: Array) -> Array:
            return self.residuals.of(torch.from_numpy(tried), self.values[which[problems]]).numpy()

        def slopes(tried: Array, _problems: Array) -> Array:
            return self.residuals.derivatives(torch.from_numpy(tried)).numpy()

        free = torch.ones_like(rows, dtype=torch.bool) if free is None else free
        free = free if self.held is None else free & ~self.held
        end = minimise(
            residuals, slopes, rows.numpy(), free.numpy(), max_steps=max_steps, damping=_DAMPING, longest=_LONGEST,
            rtol=_SHORT, gain=self.gain, after=self.after, stop=self.is_spent,
        )  # fmt: skip
        return Minimum(*map(torch.from_numpy, (end.rows, end.squares, end.settled)))

    def squares(self, rows: Tensor, which: Tensor) -> Tensor:
        """The sums of squares without a step, infinite where a run ends early."""
        return self.residuals.of(rows, self.values[which]).square().sum(-1)


# ---------------------------------------------------------------------- profiles
# Intervals by profile likelihood: how far an unknown can move before the best fit of all others is too bad.

_MAX_TURNS = 14
#: Steps of every fit on the way to a border.
PROFILE_STEPS = 25
#: How near the sum of squares must come to the border, in standard errors; or the end, as a share of its distance.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Border:
    """The limit of a sum of squares: `variance` of the noise times `reach`, the square of the quantile."""

    variance: Tensor
    reach: Tensor


def border_of(squares: Tensor, freedom: int, level: float, sigma: float | None, resolution: float = 0.0) -> Border:
    """The border at a level: of a known noise by the normal law, of an estimated one by Student's.

    Noise below the `resolution` of the runs is raised to it, since the residuals contain the errors of the runs.
    """
    if sigma is not None:
        reach = float(stats.norm.ppf((1 + level) / 2)) ** 2
        return Border(torch.full_like(squares, max(sigma, resolution) ** 2), torch.full_like(squares, reach))
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) ** 2
    return Border((squares / freedom).clamp_min(resolution**2), torch.full_like(squares, reach))


@dataclass(frozen=True)
class Profiles:
    """Ends of the intervals (fits, unknowns, 2) on the scale of the fit, infinite where there is no border.

    `better` are rows with smaller squares than the profiled fit, (fits, all unknowns), NaN if there are none.
    """

    ends: Tensor
    better: Tensor


def profile(problems: Problems, best: Tensor, squares: Tensor, border: Border, flat: Tensor | None = None) -> Profiles:
    """Walk from every fit in both directions of every coefficient until the border is met.

    The root of the rise is almost linear in the distance, so that the secant method needs few turns. At the end of a
    ridge it is not: the sum rises late, then fast. There the secant creeps, and the interval is halved. Where runs
    become too costly before the border, and for coefficients that are `flat`, the end is infinite. Ends that were not
    reached before the effort was used up are NaN.
    """
    fits, count = len(best), problems.residuals.unknowns.count
    fit = torch.arange(fits).repeat_interleave(2 * count)
    position = torch.arange(count).repeat_interleave(2).repeat(fits)
    side = torch.tensor([-1.0, 1.0], dtype=best.dtype).repeat(fits * count)
    scale = (border.variance * border.reach).sqrt()[fit]
    farthest = problems.residuals.unknowns.farthest(best)[fit, position]
    distance = _first_guess(problems, best, border)[fit, position].clamp_min(1e-10).minimum(farthest)
    low, high = torch.zeros_like(distance), torch.full_like(distance, torch.inf)
    low_rise, high_rise = torch.zeros_like(distance), torch.full_like(distance, torch.inf)
    rows = best[fit].clone()
    better = torch.full_like(best, torch.nan)
    reached = torch.full_like(distance, torch.nan)
    if flat is not None:
        reached[flat[position]] = torch.inf
    is_costly = torch.zeros_like(reached, dtype=torch.bool)
    for _ in range(_MAX_TURNS):
        open_ = torch.nonzero(torch.isnan(reached)).ravel()
        if not len(open_) or problems.is_spent():
            break
        tried = rows[open_].clone()
        at = torch.arange(len(open_))
        tried[at, position[open_]] = best[fit[open_], position[open_]] + side[open_] * distance[open_]
        free = torch.ones_like(tried, dtype=torch.bool)
        free[at, position[open_]] = False
        end = problems.minimise(tried, fit[open_], free, max_steps=PROFILE_STEPS)
        if problems.is_spent():  # the other unknowns are not at their minimum: the rise means nothing
            break
        for row, number, value in zip(end.rows, fit[open_].tolist(), end.squares.tolist(), strict=True):
            if value < float(squares[number]) - 0.01 * float(border.variance[number]):
                better[number] = row
        rise = (end.squares - squares[fit[open_]]).clamp_min(0).sqrt() / scale[open_]
        costly, rise = torch.isnan(rise), torch.nan_to_num(rise, nan=torch.inf, posinf=torch.inf)
        met = (rise - 1).abs() <= _TOLERANCE
        far = (distance[open_] >= farthest[open_]) & (rise < 1)
        reached[open_] = torch.where(met, distance[open_], torch.where(far, torch.inf, torch.nan))
        below = rise < 1
        # Continue from inside: beyond the border the other unknowns may be stuck far away.
        rows[open_] = torch.where(below[:, None], end.rows, rows[open_])
        width = (high - low)[open_]
        low[open_] = torch.where(below, distance[open_], low[open_])
        low_rise[open_] = torch.where(below, rise, low_rise[open_])
        high[open_] = torch.where(below, high[open_], distance[open_])
        high_rise[open_] = torch.where(below, high_rise[open_], rise)
        is_costly[open_] = torch.where(below, is_costly[open_], costly)
        narrow = ((high - low <= _TOLERANCE * high) & torch.isfinite(high) & torch.isnan(reached))[open_]
        reached[open_] = torch.where(narrow, high[open_], reached[open_])
        creeps = (high - low)[open_] > width / 2
        tried_next = _next(low[open_], low_rise[open_], high[open_], high_rise[open_], creeps)
        distance[open_] = tried_next.minimum(farthest[open_])
    if not problems.is_spent():
        reached = torch.where(torch.isnan(reached), torch.where(torch.isfinite(high), high, torch.inf), reached)
    reached = torch.where(is_costly & (reached >= high), torch.inf, reached)
    ends = best[fit, position] + side * reached
    return Profiles(ends.reshape(fits, count, 2), better)


def _first_guess(problems: Problems, best: Tensor, border: Border) -> Tensor:
    """The distance at which a quadratic rise would meet the border, (fits, coefficients).

    It is at least the distance with all others fixed, also if a direction is too weak to be inverted.
    """
    slopes = problems.derivatives(best, torch.arange(len(best)))
    products, count = slopes.transpose(1, 2) @ slopes, problems.residuals.unknowns.count
    inverse = torch.linalg.pinv(products, hermitian=True, rtol=1e-14)
    spread = inverse.diagonal(dim1=1, dim2=2)[:, :count].clamp_min(0.0).sqrt()
    spread = spread.maximum(products.diagonal(dim1=1, dim2=2)[:, :count].rsqrt())
    return torch.nan_to_num(spread * (border.variance * border.reach).sqrt()[:, None], nan=1.0)


def _next(low: Tensor, low_rise: Tensor, high: Tensor, high_rise: Tensor, creeps: Tensor) -> Tensor:
    """The next distance: by the secant, kept inside; outward where no upper end is known.

    Bisects where the secant stays near the lower end though little has risen there, or near either end though the last
    turn removed less than half of the interval.
    """
    line = low + (1 - low_rise) * (high - low) / (high_rise - low_rise).clamp_min(1e-12)
    least, most = low + 0.05 * (high - low), high - 0.05 * (high - low)
    inside = torch.minimum(torch.maximum(line, least), most)
    flat = (low_rise < 0.5) & (line < low + 0.25 * (high - low))
    halved = flat | (creeps & ((line < least) | (line > most))) | ~torch.isfinite(high_rise)
    inside = torch.where(halved, (low + high) / 2, inside)
    outward = torch.maximum(low / low_rise.clamp_min(0.25), 1.3 * low)
    return torch.where(torch.isfinite(high), inside, outward)
