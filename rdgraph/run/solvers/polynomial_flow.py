"""Linear flows as one polynomial of A, with gradients and without synchronisation: for training.

H(T) = sum_k c_k b_k(A) H0 for a linear system and any number of steps; negligible terms need no product. The
coefficients are computed on the device (see `flow_coefficients`), so that training can be captured as one graph.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.eigenbasis import Eigenbasis
from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.run.solvers.flow_coefficients import coefficients, full_degree, sample_count
from rdgraph.run.solvers.linear_part import Linear, linear_part
from rdgraph.run.solvers.polynomial_products import (
    Polynomial,
    Product,
    Terms,
    apply_coupled,
    constant,
    coupled_terms,
    differentiable,
)
from rdgraph.run.solvers.schedules import AnySchedule

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- ragged polynomial
# Polynomials of A whose members have different degrees, in one ladder of products, on a GPU.
#
# With members in the rising order of their degrees, those that need a power are the last ones: a product takes a part
# of the batch that shrinks from power to power. There is one launch for a power, and no member takes a product too
# many.


@dataclass(frozen=True, eq=False)
class Levels:
    """The layout of the vectors of all members and powers in one stack: power by power, for the members that need it.

    >>> levels = Levels.of((1, 1, 3))
    >>> levels.firsts, levels.offsets, levels.rows
    ((0, 0, 2, 2), (0, 3, 6, 7), 8)
    """

    degrees: tuple[int, ...]
    _held: dict[torch.device, tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(degrees: Sequence[int]) -> Levels:
        """The levels of rising degrees; the same object for the same ones."""
        return _levels(tuple(degrees))

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """For every power the first member that needs it."""
        return tuple(bisect_left(self.degrees, power) for power in range(self.degrees[-1] + 1))

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """For every power the offset of its vectors."""
        offsets = [0]
        for first in self.firsts[:-1]:
            offsets.append(offsets[-1] + len(self.degrees) - first)
        return tuple(offsets)

    @cached_property
    def rows(self) -> int:
        """The number of vectors at all powers together."""
        return self.offsets[-1] + len(self.degrees) - self.firsts[-1]

    def block(self, stack: Tensor, power: int, first: int | None = None) -> Tensor:
        """The vectors of a power in a stack (rows, n, d), from a member on that needs it."""
        begin = 0 if first is None else first - self.firsts[power]
        size = len(self.degrees) - self.firsts[power]
        return stack[self.offsets[power] + begin : self.offsets[power] + size]

    def tables(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """For kernels: the shift from a member's index to its vector of every power, and the degrees.

        They are cached, so that a captured pass does not copy them from the host.
        """
        if device not in self._held:
            shifts = [offset - first for offset, first in zip(self.offsets, self.firsts, strict=True)]
            self._held[device] = (
                torch.tensor(shifts, dtype=torch.int64, device=device),
                torch.tensor(self.degrees, dtype=torch.int32, device=device),
            )
        return self._held[device]

    def needed(self, count: int, device: torch.device) -> Tensor:
        """Whether a member needs a power, (count, B, 1, 1)."""
        powers = torch.arange(count, device=device)
        return (powers[:, None] <= self.tables(device)[1])[..., None, None]

    def beyond(self, sizes: Tensor, gain: Tensor) -> Tensor:
        """The sum of the terms beyond a member's degree, as a share of its gain (B,); sizes (powers, B, 1, d)."""
        left_out = torch.where(self.needed(len(sizes), sizes.device), 0.0, sizes)
        return (left_out.sum(0) / gain).amax((-2, -1))


@cache  # unbounded: recorded passes refer to the tables by address
def _levels(degrees: tuple[int, ...]) -> Levels:
    return Levels(degrees)


class RaggedPolynomial(torch.autograd.Function):
    """sum_k c_k b_k(A) x as in `Polynomial`: weights (1 or B, E), series (K + 1, B, 1, 1 or d), x (B, n, d).

    Members are in the rising order of their degrees; coefficients beyond a member's degree are ignored.
    """

    @staticmethod
    def forward(
        ctx: Any, pattern: list[Tensor], rows: Tensor | None, doubled: bool, levels: Levels, weights: Tensor,
        series: Tensor, x: Tensor,
    ) -> Tensor:  # fmt: skip
        ctx.pattern, ctx.rows, ctx.doubled, ctx.levels = pattern, rows, doubled, levels
        ladder = _Ladder(Product(pattern, weights), series, x, doubled, levels)
        states = ladder.stack() if ctx.needs_input_grad[4] else None
        out = ladder.result() if states is None else levels.block(states, 0)
        ctx.save_for_backward(weights, series, x, states)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        from rdgraph.graphs.kernels import triton_polynomial as stacks

        weights, series, x, states = ctx.saved_tensors
        levels, wants = ctx.levels, ctx.needs_input_grad[4]
        if torch.is_grad_enabled():
            mask = levels.needed(len(series), x.device).to(series.dtype)
            gradients = differentiable(ctx.pattern, ctx.doubled, weights, series * mask, x, g, wants)
            return None, None, None, None, gradients[0], gradients[1] * mask, gradients[2]
        product = Product(ops.transposed(ctx.pattern), ops.transposed_weights(ctx.pattern, weights))
        stack = _ascended(product, g, ctx.doubled, levels)
        tables = levels.tables(x.device)
        total, slopes = stacks.moments(stack, x, series, tables)
        grad_weights = None
        if wants and states is not None and ctx.rows is not None and len(weights) > 1:
            grad_weights = stacks.sample_stacks(ctx.rows, ctx.pattern[1], stack, states, ctx.doubled, tables)
        elif wants:
            grad_weights = _sampled(ctx.pattern, stack, states, ctx.doubled, len(weights) == 1, levels)
        return None, None, None, None, grad_weights, slopes.sum_to_size(series.shape).to(series.dtype), total


class _Ladder:
    """V_k = f A V_(k+1) + c_k x - V_(k+2) of the members of degree k or more; see `Polynomial`."""

    def __init__(self, product: Product, series: Tensor, x: Tensor, doubled: bool, levels: Levels) -> None:
        self.product, self.series, self.x, self.doubled, self.levels = product, series, x, doubled, levels
        self.top = len(levels.firsts) - 1

    def result(self) -> Tensor:
        """V_0 alone. Two vectors of every member take turns; both are zero for a member that has not begun."""
        held = self.x.new_zeros((2, *self.x.shape))
        for k in range(self.top, -1, -1):
            first = self.levels.firsts[k]
            here = held[k % 2, first:]
            self._step(k, first, held[(k + 1) % 2, first:], here if k + 2 <= self.top else None, here)
        return held[0]

    def stack(self) -> Tensor:
        """All vectors V_k, as a stack."""
        levels = self.levels
        stack = self.x.new_empty((levels.rows, *self.x.shape[1:]))
        for k in range(self.top, -1, -1):
            begun = levels.firsts[k + 1] if k < self.top else len(self.x)
            older = levels.firsts[k + 2] if self.doubled and k + 2 <= self.top else len(self.x)
            if begun > levels.firsts[k]:
                new = slice(levels.firsts[k], begun)
                torch.mul(
                    self.x[new], self.series[k, new].to(self.x.dtype), out=levels.block(stack, k)[: begun - new.start]
                )
            if older > begun:
                between = levels.block(stack, k + 1, begun)[: older - begun]
                self._step(k, begun, between, None, levels.block(stack, k, begun)[: older - begun])
            if older < len(self.x):
                self._step(
                    k, older, levels.block(stack, k + 1, older), levels.block(stack, k + 2, older),
                    levels.block(stack, k, older),
                )  # fmt: skip
        return stack

    def _step(self, k: int, first: int, newest: Tensor, older: Tensor | None, out: Tensor) -> None:
        """One product for the members from `first` on that `out` (m, n, d) has room for."""
        members = slice(first, first + len(out))
        terms: Terms = [(self.series[k, members], self.x[members])]
        if self.doubled and older is not None:
            terms.append((constant(self.x, -1.0), older))
        self.product(newest, constant(self.x, 2.0) if self.doubled and k > 0 else None, terms, out, members)


def _ascended(product: Product, g: Tensor, doubled: bool, levels: Levels) -> Tensor:
    """u_k = b_k(A') g of those that need it, as a stack."""
    stack = g.new_empty((levels.rows, *g.shape[1:]))
    levels.block(stack, 0).copy_(g)
    for k in range(1, len(levels.firsts)):
        first = levels.firsts[k]
        is_recurrent = doubled and k > 1
        terms: Terms = [(constant(g, -1.0), levels.block(stack, k - 2, first))] if is_recurrent else []
        product(
            levels.block(stack, k - 1, first), constant(g, 2.0) if is_recurrent else None, terms,
            levels.block(stack, k), slice(first, len(g)),
        )  # fmt: skip
    return stack


def _sampled(pattern: list[Tensor], left: Tensor, right: Tensor, doubled: bool, shared: bool, levels: Levels) -> Tensor:
    """The gradient of edge weights (1 or B, E), power by power."""
    total = left.new_zeros((1 if shared else len(levels.degrees), len(pattern[1])))
    for k in range(len(levels.firsts) - 1):
        first = levels.firsts[k + 1]
        part = ops.sddmm(pattern, levels.block(left, k, first), levels.block(right, k + 1, first), shared)
        part = 2 * part if doubled and k > 0 else part
        target = total if shared else total[first:]
        target += part
    return total


def apply_ragged(operator: Operator, series: Tensor, x: Tensor, kind: str, members: slice, levels: Levels) -> Tensor:
    """sum_k series[k] b_k(A) x for some members of a batch, each to its own degree; series (K + 1, B, 1, 1 or d).

    The operator has weights for all members of the batch, or shares them; x (B, n, d) is that of these members.
    """
    weights = operator.flat_weights((len(x),), members)
    tracked = torch.is_grad_enabled() and any(t.requires_grad for t in (x, series, weights))
    rows = operator.pattern.rows if weights.requires_grad else None
    out: Tensor = RaggedPolynomial.apply(  # type: ignore[no-untyped-call]
        operator._tensors(tracked), rows, kind == "chebyshev", levels, weights, series, x.contiguous()
    )
    return out


# ---------------------------------------------------------------------- polynomial flow
#: The tolerance of the omitted terms, as a share of the largest gain.
TOLERANCE = 1e-7
#: Coefficients beyond the degree that are monitored, to check whether the degree is still sufficient.
WATCHED = 8

#: Cheaper evaluations of polynomials of one operator: its groups of twins, or its eigenvectors.
Shortcut = Quotient | Eigenbasis

#: Members from a first to before a last one, whose polynomials have that degree.
Piece = tuple[int, int, int]
#: Members whose degrees are computed at once, so that one that needs many terms does not cost all of them memory.
AT_ONCE = 256
#: Terms up to here are summed to bound what a polynomial leaves out.
FAR = 255


def is_polynomial(field: VectorField) -> bool:
    """Whether H(T) is a polynomial of a normalised A applied to H0, or H0 and one applied to f(H0).

    >>> import rdgraph as rd
    >>> op = rd.generators.path(4).operator("row")
    >>> [is_polynomial(rd.lower(name, op, {"alpha": 1.0, "beta": 1.0})) for name in ("BS", "ST", "F")]
    [True, True, False]
    """
    if not field.operator.is_normalised:
        return False
    try:
        linear_part(field)
    except NotApplicable:
        return False
    return True


class LinearFlow:
    """H0 -> H(T) for linear fields, by a polynomial of fixed degree: capturable, differentiable in everything.

    `schedule` says how the time is cut, for all members or with `Schedules` for each, `degree` how many products are
    taken; `needed` returns the degree that a field needs. With `pieces`, members of one batch (B, n, d) take fewer of
    them, piece by piece; all members are in one of them. A `shortcut` of the field's operator saves products of one
    field; with a `segment` the gradient of one field holds that many vectors at a time. Shapes: time (*batch), H0
    (*batch, n, d), or (*batch, n, F*d) for F fields.

    >>> import rdgraph as rd
    >>> from rdgraph.run.solvers.schedules import Schedule
    >>> op = rd.generators.path(4).operator("row", dtype=torch.float64)
    >>> field = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5})
    >>> flow = LinearFlow(Schedule.make("euler", 1.5, 1.0), 4)
    >>> H0 = torch.eye(4, dtype=torch.float64)
    >>> stepped = rd.solve(field, H0, [0.0, 1.5], "euler", step=1.0).final
    >>> torch.allclose(flow(field, H0, torch.tensor(1.5)), stepped)
    True
    """

    def __init__(
        self, schedule: AnySchedule, degree: int, shortcut: Shortcut | None = None, pieces: Sequence[Piece] = (),
        segment: int = 0,
    ) -> None:  # fmt: skip
        self.schedule, self.degree, self.shortcut = schedule, degree, shortcut
        self.pieces, self.segment = pieces, segment

    def __call__(self, field: VectorField, H0: Tensor, time: Tensor) -> Tensor:
        return self.run(field, H0, time, watch=False)[0]

    def run(
        self, field: VectorField, H0: Tensor, time: Tensor, *, watch: bool, source: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """H(T); with `watch` also the sum of the terms just beyond the degree, as shares of the gains (*batch).

        A `source` replaces H0 in the equation of one field, which then has another start.
        """
        bound = field.bind(H0 if source is None else source) if field.uses_initial else field
        linear = forced_part(bound, source is not None)
        x = H0 if linear.source is not None else bound(None, H0)
        out, beyond = self._spans(linear, x, time, watch) if self.pieces else self._whole(linear, x, time, watch)
        return out if linear.source is not None else H0 + out, beyond

    def _whole(self, linear: Linear, x: Tensor, time: Tensor, watch: bool) -> tuple[Tensor, Tensor | None]:
        """The polynomial of all members, of one degree, applied to x, and the size of the omitted terms."""
        response = coefficients(linear, self.schedule, time, self.degree + (WATCHED if watch else 0))
        beyond = (response.sizes[self.degree + 1 :].sum(0) / response.gain).amax((-2, -1)) if watch else None
        series = response.series[: self.degree + 1]
        if linear.fields > 1:
            return apply_coupled(linear.base.operator, series, x, linear.base.kind), beyond
        return self._applied_to(linear, series, x), beyond

    def _spans(self, linear: Linear, x: Tensor, time: Tensor, watch: bool) -> tuple[Tensor, Tensor | None]:
        """The same piece by piece; pieces with the same number of sample points share the computation of coefficients.

        So a member that needs many terms does not make the coefficients of the others costly.
        """
        if linear.fields > 1:
            raise NotApplicable("expected one field for members that take fewer products, got several")
        extra, parts, shares = WATCHED if watch else 0, [], []
        for _, group in groupby(self.pieces, key=lambda piece: sample_count(piece[2] + extra)):
            span = list(group)
            first, last, degree = span[0][0], span[-1][1], max(piece[2] for piece in span)
            schedule = self.schedule.of_members(first, last)
            response = coefficients(linear.of_members(first, last), schedule, time[first:last], degree + extra)
            if len(span) > 1 and self.takes_ragged(x.device, self.shortcut, self.segment):
                levels = Levels.of([member_degree for a, b, member_degree in span for _ in range(a, b)])
                parts.append(
                    self._ragged(linear, response.series[: degree + 1], x[first:last], slice(first, last), levels)
                )
                shares += [levels.beyond(response.sizes, response.gain)] if watch else []
                continue
            for a, b, member_degree in span:
                rows = slice(a - first, b - first)
                parts.append(self._applied_to(linear, response.series[: member_degree + 1, rows], x[a:b], slice(a, b)))
                if watch:
                    share = response.sizes[member_degree + 1 :, rows].sum(0) / response.gain[rows]
                    shares.append(share.amax((-2, -1)))
        return torch.cat(parts), torch.cat(shares) if watch else None

    @staticmethod
    def takes_ragged(device: torch.device, shortcut: Shortcut | None, segment: int) -> bool:
        """Whether members of different degrees go through one ladder of products, so that they need not be grouped."""
        return shortcut is None and not segment and device.type == "cuda" and ops.has_triton()

    def _ragged(self, linear: Linear, truncated: Tensor, x: Tensor, members: slice, levels: Levels) -> Tensor:
        series = _flat_series(truncated, x.shape[:-2]).to(torch.promote_types(x.dtype, torch.float32))
        each = series.expand(len(series), len(x), *series.shape[-2:])
        return apply_ragged(linear.base.operator, each, x, linear.base.kind, members, levels)

    def _applied_to(self, linear: Linear, truncated: Tensor, x: Tensor, members: slice | None = None) -> Tensor:
        if isinstance(self.shortcut, Quotient):
            return apply_on_quotient(self.shortcut, truncated, x, linear.base.kind)
        if isinstance(self.shortcut, Eigenbasis) and self.shortcut.pays(len(truncated) - 1):
            terms = _flat_series(truncated, x.shape[:-2])
            return self.shortcut.apply(terms, x.reshape(-1, *x.shape[-2:]), linear.base.kind).view(x.shape)
        series = truncated.to(torch.promote_types(x.dtype, torch.float32))
        return apply_polynomial(linear.base.operator, series, x, linear.base.kind, members, self.segment)

    def terms(self, field: VectorField, x: Tensor, time: Tensor) -> Tensor:
        """c_k x for every k, (K + 1, *batch, rows, d): the coefficients only, so that H(T) = sum_k b_k(A) c_k H0.

        They act on channels and fields, so that x may have any rows, such as the weights of a linear encoder. Of the
        graph only the kind of its operator matters.
        """
        linear = linear_part(field)
        if linear.source is None:
            raise NotApplicable(
                f"expected a flow that is a polynomial of A applied to H0, got {field.system}, whose forcing is "
                "something else; train it on the whole graph"
            )
        series = coefficients(linear, self.schedule, time, self.degree).series
        series = series.to(torch.promote_types(x.dtype, torch.float32))
        if linear.fields > 1:
            return coupled_terms(series, x)
        return series * x

    @classmethod
    @torch.no_grad()
    def left_out(
        cls, field: VectorField, schedule: AnySchedule, time: Tensor, degree: int, beyond: int = FAR
    ) -> Tensor:
        """Sum of the terms beyond a degree, as a share of the largest gain (*batch): a bound of the error.

        |b_k(A)| <= 1 in the norm of the operator, so that the sum of their sizes bounds what they add to H0 of size 1.
        Terms are summed up to `beyond`, where the coefficients of smooth flows are below rounding.
        """
        linear = linear_part(field)
        last = min(full_degree(linear, schedule), beyond)
        if degree >= last:
            return torch.zeros_like(time)
        response = coefficients(linear, schedule, time, last)
        return (response.sizes[degree + 1 :].sum(0) / response.gain).amax((-2, -1))

    @classmethod
    @torch.no_grad()
    def needed(
        cls, field: VectorField, H0: Tensor, schedule: AnySchedule, time: Tensor, rtol: float = TOLERANCE,
        *, is_forced: bool = False,
    ) -> int:  # fmt: skip
        """The degree that omits at most `rtol` of the gain of every member; synchronises the device once."""
        return max(cls.needed_each(field, H0, schedule, time, rtol, is_forced=is_forced))

    @classmethod
    @torch.no_grad()
    def needed_each(
        cls, field: VectorField, H0: Tensor, schedule: AnySchedule, time: Tensor, rtol: float = TOLERANCE,
        *, is_forced: bool = False,
    ) -> list[int]:  # fmt: skip
        """The degree, for every member, that leaves out at most `rtol` of its gain.

        A source that reduces the flow counts like one that adds to it, so that coefficients at which the two cancel
        do not shorten the polynomial: its gradients, and nearby coefficients, need the terms. `is_forced`
        means that H0 in the equation is not the start.
        """
        linear = forced_part(field.bind(H0) if field.uses_initial else field, is_forced)
        if time.ndim != 1 or len(time) <= AT_ONCE:
            return _needed(linear, schedule, time, rtol)
        degrees = []
        for first in range(0, len(time), AT_ONCE):
            last = min(first + AT_ONCE, len(time))
            part, part_schedule = linear.of_members(first, last), schedule.of_members(first, last)
            degrees += _needed(part, part_schedule, time[first:last], rtol)
        return degrees


def _needed(linear: Linear, schedule: AnySchedule, time: Tensor, rtol: float) -> list[int]:
    """The degree that leaves out at most `rtol` of the gain, of every member."""
    most = full_degree(linear, schedule)
    length = 64
    while True:
        length = min(length, most)
        response = coefficients(linear, schedule, time, length)
        beyond = response.sizes.flip(0).cumsum(0).flip(0)[1:] / response.gain
        degrees = [0] * max(1, time.numel())
        if length:
            counts = (beyond.amax((-2, -1)).reshape(length, -1) > rtol).sum(0)
            degrees = [int(count) for count in counts.tolist()]
        if max(degrees) + WATCHED <= length or length == most:
            return degrees
        length *= 2


def forced_part(field: VectorField, is_forced: bool) -> Linear:
    """The linear part of a field; with `is_forced`, H0 in its equation is a forcing and not the start."""
    linear = linear_part(field)
    return replace(linear, source=None) if is_forced else linear


def apply_polynomial(
    operator: Operator, series: Tensor, x: Tensor, kind: str, members: slice | None = None, segment: int = 0
) -> Tensor:
    """sum_k series[k] b_k(A) x with as many products as the degree; series (K + 1, *batch or 1, 1, 1 or d).

    With `members`, series and x are those of some members of a batch, whose weights the operator has for all of them.
    b_k is A^k ("taylor") or T_k(A) ("chebyshev"). Horner's rule forward; backward with the vectors b_k(A') g, which
    give the gradients in x, in the coefficients and in the edge weights. Only the latter need the states of the forward
    pass; otherwise only x is saved. With a `segment` > 0 at most that many vectors are held at a time, and the states
    are computed twice; see `rdgraph.run.solvers.polynomial_products`.

    >>> op = Operator.from_csr([0, 1, 2], [1, 0], torch.ones(2, dtype=torch.float64), normalisation="row")
    >>> c = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).reshape(3, 1, 1)
    >>> apply_polynomial(op, c, torch.tensor([[1.0], [0.0]], dtype=torch.float64), "taylor").ravel()
    tensor([4., 2.], dtype=torch.float64)
    """
    terms, weights = _flat_series(series, x.shape[:-2]), operator.flat_weights(tuple(x.shape[:-2]), members)
    tracked = torch.is_grad_enabled() and any(t.requires_grad for t in (x, series, weights))
    rows = operator.pattern.rows if weights.requires_grad and x.is_cuda else None
    out = Polynomial.apply(
        operator._tensors(tracked), rows, kind == "chebyshev", segment, weights, terms,
        x.reshape(-1, *x.shape[-2:]).contiguous(),
    )  # type: ignore[no-untyped-call]  # fmt: skip
    return out.view(x.shape)


def _flat_series(series: Tensor, batch: Sequence[int]) -> Tensor:
    """Coefficients (K + 1, *batch or 1, 1, 1 or d) with one axis of members."""
    if any(size != 1 for size in series.shape[1:-2]):
        series = series.expand(len(series), *batch, *series.shape[-2:])
    return series.reshape(len(series), -1, *series.shape[-2:])


def apply_on_quotient(quotient: Quotient, series: Tensor, x: Tensor, kind: str) -> Tensor:
    """sum_k series[k] b_k(A) x, by the quotient graph of A; series (K + 1, *batch or 1, 1, 1 or d), float64."""
    flat = x.reshape(-1, *x.shape[-2:])
    loops = quotient.basis(len(series), kind)
    terms = series.reshape(len(series), -1, series.shape[-1])
    alone = torch.einsum("kbd,kg->bgd", terms, loops).to(x.dtype).expand(len(flat), -1, flat.shape[-1])
    mean = quotient.mean(flat)
    narrow = series.reshape(len(series), -1, 1, series.shape[-1]).to(torch.promote_types(x.dtype, torch.float32))
    moved = apply_polynomial(quotient.operator, narrow, mean, kind)
    return quotient.assemble(flat, mean, moved, alone).view(x.shape)
