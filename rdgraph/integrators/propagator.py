"""`Propagator`: the flow of a linear field over given times as polynomials in its operator, prepared in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rdgraph.integrators.coupled_linear import CoupledLinear
from rdgraph.integrators.filter_series import make_series
from rdgraph.integrators.linear_part import Linear
from rdgraph.integrators.matrix_filters import MatrixFilters
from rdgraph.integrators.operator_filters import Filters

#: Rounding that is always accepted, in units of the dtype's resolution: below it, sub-steps would not help.
_ACCEPTED = 64.0
_MOST_PARTS = 1 << 12
#: Largest gain of one part, for tolerances below 1e-8 and above: the error of a series is relative to the largest gain
#: on the whole interval, which may be far above the gains on a graph's own spectrum.
_FINE_GAIN, _COARSE_GAIN = 1e4, 2e6
#: A gain that this many parts do not tame is left whole, and overflows.
_MOST_GAIN_PARTS = 128


@dataclass(frozen=True)
class Segment:
    """One part of the time: the save times in it, which members have them here, and the filters' coefficients.

    `series` (K + 1, R), or (K + 1, F, F, R) for several fields, has a row for every entry of `shape`
    (S, ..., 1, 1 or d): the save times, then the end of the part where another one follows.
    """

    saved: tuple[int, ...]
    inside: Tensor
    series: Tensor
    shape: torch.Size


@dataclass(frozen=True)
class Propagator:
    """The flow of a linear field over given times, prepared: H -> the states after `elapsed` (S, *batch, 1, 1)."""

    linear: Linear | CoupledLinear
    count: int
    segments: tuple[Segment, ...]
    rate: Callable[[Tensor], Tensor] | None = None

    @classmethod
    def make(
        cls,
        linear: Linear | CoupledLinear,
        elapsed: Tensor,
        H: Tensor,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        forced: Callable[[Tensor], Tensor] | None = None,
    ) -> Propagator:
        """Choose parts and degrees for monotone times; `forced` is f, for forcing that does not merge with the flow."""
        asked = rtol if rtol is not None else 1e-10 if H.dtype == torch.float64 else 1e-6
        target = _Target(linear, asked, torch.finfo(H.dtype).eps)
        parts = target.parts(elapsed[-1:].detach())
        rate = forced if linear.source is None or int(parts.max()) > 1 else None
        if atol:
            room = _room(linear, atol, H if rate is None else rate(H))
            elapsed = elapsed.expand(len(elapsed), *H.shape[:-2], 1, 1)
            target = replace(target, room=room)
        return cls(linear, len(elapsed), tuple(target.segments(elapsed, parts, rate is not None)), rate)

    @property
    def products(self) -> int:
        """Sparse products of one call, those of `rate` not counted."""
        return sum(len(segment.series) - 1 for segment in self.segments)

    def __call__(self, H: Tensor) -> list[Tensor]:
        states = [H] * self.count
        for segment in self.segments:
            found = self.linear.sums(segment.series, segment.shape, H if self.rate is None else self.rate(H))
            found = found if self.rate is None else H + found
            if len(self.segments) > 1:  # what overflowed in an earlier part is infinite, not infinity less infinity
                found = torch.where(found.isnan(), torch.inf, found)
            for k, inside, state in zip(segment.saved, segment.inside, found, strict=False):
                states[k] = torch.where(inside, state, states[k])
            H = found[-1]
        return states


@dataclass(frozen=True)
class _Target:
    """The accuracy that is asked for, and the resolution of the states."""

    linear: Linear | CoupledLinear
    rtol: float
    resolution: float
    room: Tensor | None = None

    @torch.no_grad()
    def parts(self, end: Tensor) -> Tensor:
        """In how many equal parts the time of every member is cut, (1, ..., 1, 1), so that errors stay small.

        Powers of X are summed with coefficients as large as |g| on the circle, for an answer as large as |g| on the
        real axis; rounding grows by that ratio. Chebyshev coefficients never exceed twice the answer. Either way the
        error is relative to the gain on the interval, and parts keep that in bounds where it is large.
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
            series = make_series(filters, kind, self._tolerance(filters, shape, end, parts).reshape(-1))
            yield Segment(saved, inside[list(saved)], series, shape)

    @torch.no_grad()
    def _tolerance(self, filters: Filters | MatrixFilters, shape: torch.Size, end: Tensor, parts: Tensor) -> Tensor:
        """What every filter may leave out of its series, in the shape of the rows.

        An error made in one of m parts grows by at most S in each of the others, S the sum of |a_k| over one part:
        every part may leave out 1/(m S^(m-1)) of the whole.
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


def _room(linear: Linear | CoupledLinear, atol: float, vector: Tensor) -> Tensor:
    """What `atol` allows a filter of this vector to leave out, (*batch, 1, d)."""
    return atol / linear.size(vector.detach().double())
