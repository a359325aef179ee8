"""`Propagator`: the flow of a linear field over given times as polynomials of its operator, computed in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.run.solvers.linear_part import Linear, linear_part
from rdgraph.run.solvers.operator_filters import Filters, coefficients, nodes
from rdgraph.run.solvers.solution import Stats

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- filter series
# Filters as finite series, each truncated by a rigorous bound of its tail.

#: Numbers of coefficients that are computed before truncation; a row takes the first that is provably enough.
_LADDER = tuple(2**k for k in range(4, 15))
#: Sampled values that are transformed at once, which bounds the memory for long series of many rows.
_AT_ONCE = 1 << 20
#: Share of the tolerance for the terms beyond the computed coefficients, and for their aliasing.
_BEYOND = 0.05
#: Tolerances below these, in units of the largest value and absolutely, would resolve the rounding of the coefficients.
_RELATIVE_FLOOR, _FLOOR = 8 * torch.finfo(torch.float64).eps, 1e-290


def make_series(filters: Filters, kind: str, tolerance: Tensor, most: int = _LADDER[-1]) -> Tensor:
    """Coefficients (K + 1, F, F, R) of the filters, each truncated at its degree and padded with zeros.

    Differentiable; matrices count by their norms.

    The omitted terms of row r, infinitely many of them, are bounded by tolerance[r]: by their sum in a Chebyshev
    series; in a power series by the root of the sum of their squares, and their sum is at most twice that. A row that
    overflows is its infinite gain. Tolerances below the resolution of float64 are raised to it. If derivatives are
    recorded, the parts of a term count separately (see `Filters.parts`). Raises NotApplicable if 2*`most` coefficients
    are not enough.
    """
    with torch.no_grad():
        gain = filters.gain()
        lost = ~gain.isfinite()
        rounding = _RELATIVE_FLOOR * (gain if kind == "chebyshev" else filters.peak())
        tolerance = torch.maximum(tolerance, rounding.clamp(min=_FLOOR))
        lengths = _lengths(filters, kind, tolerance, gain, most)
    pieces = []
    for length in sorted(set(lengths.tolist())):
        for index in (lengths == length).nonzero().squeeze(-1).split(max(1, _AT_ONCE // length)):
            part = filters.rows(index)
            expanded = torch.stack([coefficients(each(nodes(kind, length, gain)), kind) for each in part.parts()])
            series, sizes = expanded.sum(0), part.sizes(expanded.detach()).sum(0)
            degree = _degrees(sizes, kind, (1 - _BEYOND) * tolerance[index]) + filters.reserve
            degree = degree.masked_fill((part.elapsed == 0) | lost[index], 0)
            order = torch.arange(length, device=gain.device).reshape(-1, *(1,) * (series.ndim - 1))
            pieces.append((index, torch.where(order <= degree, series, 0.0)[: int(degree.max()) + 1]))
    longest = max(len(piece) for _, piece in pieces)
    shape = pieces[0][1].shape[1:-1]
    out = gain.new_zeros((longest, *shape, len(gain)))
    for index, piece in pieces:
        padding = piece.new_zeros((longest - len(piece), *shape, len(index)))
        out = out.index_copy(-1, index, torch.cat([piece, padding]))
    return torch.cat([torch.where(lost, gain, out[0])[None], torch.where(lost, 0.0, out[1:])])


def _degrees(sizes: Tensor, kind: str, tolerance: Tensor) -> Tensor:
    """The smallest degree of every row that omits no more than its tolerance, (R,), for sizes (K, R) of terms."""
    beyond = sizes.flip(0).cumsum(0).flip(0)[1:]
    if kind == "chebyshev":
        return (beyond > tolerance).sum(0)
    squares = sizes.square().flip(0).cumsum(0).flip(0)[1:]
    return ((squares.sqrt() > tolerance) | (beyond > 2 * tolerance)).sum(0)


def _lengths(filters: Filters, kind: str, tolerance: Tensor, gain: Tensor, most: int) -> Tensor:
    """The number of coefficients to compute for every row, (R,), so that the rest is negligible.

    On the ellipse or disc rho, |g| <= M implies |a_k| <= 2 M rho^-k (Bernstein) or M rho^-k (Cauchy), so the tail
    beyond degree N is at most 2 M rho^-N/(rho - 1), or half of that; the best rho of a list is taken.
    """
    rho = 1 + torch.logspace(-3, 2, 81, dtype=torch.float64, device=gain.device)
    log_size = (
        filters.log_bound(kind, rho) - (rho - 1).log() + (torch.log(rho.new_tensor(2.0)) if kind == "chebyshev" else 0)
    )
    # Halved: the tail counts once itself and once as aliasing in the computed coefficients.
    room = tolerance.log() + torch.log(rho.new_tensor(_BEYOND / 2))
    settled = ~gain.isfinite() | (filters.elapsed == 0)
    lengths = torch.full_like(gain, _LADDER[0], dtype=torch.int64)
    for length in (x for x in _LADDER if x <= 2 * most):
        lengths = torch.where(settled, lengths, length)
        settled = settled | ((log_size - (length - 1) * rho.log()).amin(-1) <= room)
        if bool(settled.all()):
            return lengths
    raise too_long(min(most, _LADDER[-1]))


def too_long(most: int) -> NotApplicable:
    """The error for a flow whose polynomial has a degree beyond `most`."""
    return NotApplicable(
        f"the exact flow would take more than {most:,} products with the graph; shorten the time, lower the "
        "coefficients, raise rtol or max_steps, or name another method, such as dopri5"
    )


# ---------------------------------------------------------------------- propagator
#: Rounding that is always accepted, in units of the dtype's resolution: below it, parts would not help.
_ACCEPTED = 64.0
_MOST_PARTS = 1 << 12
#: Largest gain of one part, for tolerances below 1e-8 and above: the error of a series is relative to the largest gain
#: on the whole interval, which may be far above the gains on a graph's own spectrum.
_FINE_GAIN, _COARSE_GAIN = 1e4, 2e6
#: A gain that this many parts do not reduce is not divided, and overflows.
_MOST_GAIN_PARTS = 128
#: The most products of one run; fewer with gradients, which save a state for every product.
MOST_PRODUCTS, MOST_RECORDED = 1 << 16, 1 << 12


@dataclass(frozen=True)
class Segment:
    """One part of the time: its save times, the members that have them here, and the coefficients of the filters.

    `series` (K + 1, F, F, R) has a row for every entry of `shape`
    (S, ..., 1, 1 or d): the save times, then the end of the part if another one follows.
    """

    saved: tuple[int, ...]
    inside: Tensor
    series: Tensor
    shape: torch.Size


@dataclass(frozen=True)
class Propagator:
    """The flow of a linear field over given times, prepared: H -> the states after `elapsed` (S, *batch, 1, 1)."""

    linear: Linear
    count: int
    segments: tuple[Segment, ...]
    rate: Callable[[Tensor], Tensor] | None = None

    @classmethod
    def make(
        cls,
        linear: Linear,
        elapsed: Tensor,
        H: Tensor,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        forced: Callable[[Tensor], Tensor] | None = None,
        most: int | None = None,
    ) -> Propagator:
        """Choose parts and degrees for monotone times; `forced` is f, for forcing that does not merge with the flow.

        Raises NotApplicable for more than `most` products.
        """
        asked = rtol if rtol is not None else 1e-10 if H.dtype == torch.float64 else 1e-6
        is_recorded = torch.is_grad_enabled() and (H.requires_grad or linear.filters(elapsed)[0].is_recorded)
        most = most or (MOST_RECORDED if is_recorded else MOST_PRODUCTS)
        target = _Target(linear, asked, torch.finfo(H.dtype).eps, most)
        parts = target.parts(elapsed[-1:].detach())
        rate = forced if linear.source is None or int(parts.max()) > 1 else None
        if atol:
            room = _room(linear, atol, H if rate is None else rate(H))
            elapsed = elapsed.expand(len(elapsed), *H.shape[:-2], 1, 1)
            target = replace(target, room=room)
        segments: list[Segment] = []
        products = 0
        for segment in target.segments(elapsed, parts, rate is not None):
            segments.append(segment)
            products += len(segment.series) - 1
            if products > most:
                raise too_long(most)
        return cls(linear, len(elapsed), tuple(segments), rate)

    @property
    def products(self) -> int:
        """Sparse products of one call without those of `rate`."""
        return sum(len(segment.series) - 1 for segment in self.segments)

    def __call__(self, H: Tensor) -> list[Tensor]:
        states = [H] * self.count
        for segment in self.segments:
            ends = self.linear.sums(segment.series, segment.shape, H if self.rate is None else self.rate(H))
            ends = ends if self.rate is None else H + ends
            if len(self.segments) > 1:  # overflow in an earlier part is infinite, not NaN
                ends = torch.where(ends.isnan(), torch.inf, ends)
            for k, inside, state in zip(segment.saved, segment.inside, ends, strict=False):
                states[k] = torch.where(inside, state, states[k])
            H = ends[-1]
        return states


@dataclass(frozen=True)
class _Target:
    """The requested accuracy, the resolution of the states, and the most products."""

    linear: Linear
    rtol: float
    resolution: float
    most: int
    room: Tensor | None = None

    @torch.no_grad()
    def parts(self, end: Tensor) -> Tensor:
        """The number of equal parts of the time of every member, (1, ..., 1, 1), that keeps errors small.

        Powers of X are summed with coefficients as large as |g| on the circle, for an answer as large as |g| on the
        real axis; rounding grows by that ratio. Chebyshev coefficients never exceed twice the answer. Either way the
        error is relative to the gain on the interval, and parts bound that where it is large.
        """
        filters, shape = self.linear.filters(end)
        filters = filters.exponentials()
        parts = torch.ones_like(filters.elapsed)
        limit = max(self.rtol / self.resolution, _ACCEPTED)
        steep = _FINE_GAIN if self.rtol < 1e-8 else _COARSE_GAIN
        tame = None
        excess = torch.ones_like(parts, dtype=torch.bool)
        while bool(excess.any()):
            part = replace(filters, elapsed=filters.elapsed / parts)
            gain = part.gain()
            excess = ~(gain <= steep)
            if bool(excess.any()):
                if tame is None:
                    tame = replace(filters, elapsed=filters.elapsed / _MOST_GAIN_PARTS).gain() <= steep
                excess = excess & tame
            if self.linear.base.kind == "taylor":
                loss = part.peak() / gain
                # Half the time has the root of the loss, twice: more parts help as long as it exceeds 4.
                excess = excess | ((parts * loss > limit) & (loss > 4))
            excess = excess & (parts < _MOST_PARTS)
            parts = torch.where(excess, 2 * parts, parts)
        return parts.reshape(shape).amax(-1, keepdim=True)

    def segments(self, elapsed: Tensor, parts: Tensor, increment: bool) -> Iterator[Segment]:
        """The parts one after the other: save times, members and series of each."""
        end, kind = elapsed[-1:], self.linear.base.kind
        for j in range(int(parts.max())):
            start = j / parts
            share = torch.where(end == 0, 0.0, elapsed / end).detach()
            inside = (share > start) & ((share <= (j + 1) / parts) | (parts == j + 1))
            saved = tuple(k for k in range(len(elapsed)) if bool(inside[k].any()))
            local = [torch.where(inside[k], elapsed[k] - start[0] * end[0], 0.0) for k in saved]
            if bool((parts > j + 1).any()):
                local.append(torch.where(parts > j + 1, end / parts, 0.0)[0])
            filters, shape = self.linear.filters(torch.stack(local), increment)
            series = make_series(filters, kind, self._tolerance(filters, shape, end, parts).reshape(-1), self.most)
            yield Segment(saved, inside[list(saved)], series, shape)

    @torch.no_grad()
    def _tolerance(self, filters: Filters, shape: torch.Size, end: Tensor, parts: Tensor) -> Tensor:
        """The tolerance of the series of every filter, in the shape of the rows.

        An error made in one of m parts grows by at most S in each of the others, S the sum of |a_k| over one part:
        every part may omit 1/(m S^(m-1)) of the whole.
        """
        size, flow = filters.scale().reshape(shape), filters.exponentials().gain().reshape(shape)
        cut = parts > 1
        growth = torch.ones_like(size)
        if bool(cut.any()):
            ends, rows = self.linear.filters(end)
            whole = ends.exponentials().gain().reshape(rows)
            part = self.linear.filters(end / parts)[0].exponentials()
            series = make_series(part, self.linear.base.kind, torch.zeros_like(part.elapsed))
            growth = torch.where(cut, part.sizes(series).sum(0).reshape(rows).clamp(min=1), growth)
            flow = torch.where(cut & whole.isfinite(), whole, flow)
        if filters.flow:
            reference = torch.where(cut, flow.clamp(min=1), size)
        else:
            slope = filters.slope(self.linear.base.kind).reshape(shape)
            reference = torch.minimum(flow.clamp(min=1) / slope, size)
        allowed = self.rtol * reference
        if self.room is not None:
            allowed = allowed + (self.room.amin(-1, keepdim=True) if shape[-1] == 1 else self.room)
        return allowed / (parts * growth ** (parts - 1))


def _room(linear: Linear, atol: float, vector: Tensor) -> Tensor:
    """The part of a filter of this vector that `atol` allows to omit, (*batch, 1, d)."""
    return atol / linear.size(vector.detach().double())


# ---------------------------------------------------------------------- prepared flow
# `PreparedFlow`: the flow of a linear part over steps of equal length, whose polynomial is computed once.


class PreparedFlow:
    """Propagators of one linear part for given steps; the last one is reused for the next step of the same length.

    `forced` is the rate of change if a constant forcing belongs to the linear part.
    """

    def __init__(
        self, linear: Linear, rtol: float | None = None, forced: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.linear, self.rtol, self.forced = linear, rtol, forced
        self._prepared: tuple[Tensor, Propagator] | None = None

    def over(self, dt: Tensor, H: Tensor) -> Propagator:
        """The propagator of states like H over a step dt, () or (*batch, 1, 1); recomputed if dt has a gradient."""
        known = self._prepared
        if known is not None and known[0].shape == dt.shape and not dt.requires_grad:
            rounding = 16 * torch.finfo(dt.dtype).eps
            if bool(((known[0] - dt).abs() <= rounding * dt.abs()).all()):
                return known[1]
        elapsed = dt.to(device=H.device, dtype=torch.float64)
        elapsed = elapsed.reshape((1,) * (H.ndim + 1 - elapsed.ndim) + tuple(elapsed.shape))
        propagator = Propagator.make(self.linear, elapsed, H, rtol=self.rtol, forced=self.forced)
        self._prepared = None if dt.requires_grad else (dt.clone(), propagator)
        return propagator


# ---------------------------------------------------------------------- exact flow
# `exact`: linear systems with a generator p(X) are evaluated without steps, H(t) = exp(t p(X)) H0 plus the forcing.
#
# One polynomial in X serves every save time; its degree is known before the first product, from a bound of the error.


def exact_states(
    field: VectorField,
    H0: Tensor,
    times: Tensor,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    most: int | None = None,
) -> tuple[Tensor, Stats]:
    """H(t) at `times` (K,) or (K, *batch), from H0 at times[0]: states (K, *batch, n, d) and their cost.

    For a field p(X)H + s(X)H0 that is g(X)H0 with g(x) = exp(t p(x)) + t s(x) phi1(t p(x)); any other constant forcing
    F goes through H0 + t phi1(t p(X)) f(H0). Symmetric operators get a Chebyshev series on the interval of their
    spectrum, all others a power series on the disc of their norm. Column by column, before rounding,

        |error| <= rtol * gain * |H0| + atol,    gain = max |g| on the interval [-radius, radius] of the real axis,

    in the 2-norm (symmetric), maximum norm (row) or 1-norm (column, free) of the column; the radius is 1 for
    normalised operators. Where nothing grows, the root mean square of |g| replaces the maximum, since the
    state shrinks, too. A power series satisfies this bound in the root mean square over the unit circle; the worst
    case over all operators is twice as much. With another forcing, gain*|H0| becomes
    max(1, max exp(t p))*|H0| + max |t phi1(t p)|*|F|.

    Rounding adds up to about 64 eps of the dtype. Where cancellation would add more, or where the gain is large
    (above 1e4 for rtol < 1e-8, 2e6 otherwise), the time is cut into equal parts (`Stats.accepted` counts them): the
    gain above becomes max(1, gain), and the error on a graph whose spectrum does not reach the fastest frequency
    stays small. rtol defaults to 1e-10 for float64 and to 1e-6 otherwise, atol to 0. A member whose exponential
    overflows gets infinite states; the others are not affected.

    Several fields, h' = P(X)h + S(X)h0 with F x F matrices P(x) and S(x), are a packed state (*batch, n, F*d): g(x) is
    then the matrix exp(t P(x)) + t phi1(t P(x)) S(x) and g(X)h0 = sum_k C_k b_k(X) h0 with F x F coefficients, one
    product over all fields for each k. The bound holds channel by channel, |H0| being the norm over nodes and fields
    and |g| at most the operator norm in it. The degree follows in advance: in any norm |C_k| <= 2 M rho^-k where
    |g| <= M on the Bernstein ellipse rho, and M comes from the logarithmic norm (`Filters.log_bound`).

    A run of more than `most` products raises NotApplicable; the default is 65,536, or 4,096 with gradients, which save
    a state for every product.

    Differentiable in coefficients, times, edge weights and H0. Where a derivative with respect to coefficients or times
    is recorded, deg p more products give it a similar accuracy.

    >>> import rdgraph as rd
    >>> op = rd.Graph.from_edges([[0, 1], [1, 0]]).operator("symmetric", dtype=torch.float64)
    >>> field = rd.lower("diffusion", op, {"alpha": 1.0})
    >>> states, stats = exact_states(field, torch.tensor([[2.0], [0.0]], dtype=torch.float64), torch.tensor([0.0, 1.0]))
    >>> states[1].ravel(), stats.products
    (tensor([1.1353, 0.8647], dtype=torch.float64), 10)
    """
    linear = linear_part(field)
    elapsed = spread(times - times[0], H0)
    moving = [k for k in range(len(elapsed)) if bool((elapsed[k] != 0).any())]
    states = [H0] * len(elapsed)
    if not moving:
        return torch.stack(states), Stats()
    rate = _Rate(field) if linear.source != () else None
    propagator = Propagator.make(linear, elapsed[moving], H0, rtol=rtol, atol=atol, forced=rate, most=most)
    for k, state in zip(moving, propagator(H0), strict=True):
        states[k] = state
    calls = rate.calls if rate else 0
    products = propagator.products + calls * field.plan.products
    return torch.stack(states), Stats(calls, products, len(propagator.segments))


def spread(elapsed: Tensor, H: Tensor) -> Tensor:
    """Times (K,) or (K, *batch) shaped (K, *batch or ones, 1, 1), in float64 on the device of H."""
    shape = (*elapsed.shape, *(1,) * (H.ndim + 1 - elapsed.ndim)) if elapsed.ndim == 1 else (*elapsed.shape, 1, 1)
    return elapsed.to(device=H.device, dtype=torch.float64).reshape(shape)


class _Rate:
    """The rate of change f(H), counted: p(X)H plus a forcing that is constant in time."""

    def __init__(self, field: VectorField) -> None:
        self.field, self.calls = field, 0

    def __call__(self, H: Tensor) -> Tensor:
        self.calls += 1
        return self.field(0.0, H)
