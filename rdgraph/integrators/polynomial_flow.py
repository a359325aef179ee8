"""Linear flows as one polynomial of A, with gradients, and no question to the host: made for training.

However many steps a method takes, H(T) = sum_k c_k b_k(A) H0 for a linear system; terms that no longer count need no
product. The coefficients are computed on the device (see `responses`), so that training can be captured as one graph.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.integrators.coupled_flow import apply_coupled, coupled_coefficients, coupled_terms
from rdgraph.integrators.coupled_linear import CoupledLinear
from rdgraph.integrators.flow_coefficients import Response, Schedule, coefficients, full_degree
from rdgraph.integrators.linear_part import Linear, linear_part
from rdgraph.kernels import operations as ops
from rdgraph.kernels.row_order import Rows

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField

#: What may be left out of the coefficients, as a share of the largest gain.
TOLERANCE = 1e-7
#: Coefficients behind the last one used that are watched, to see whether the degree is still enough.
WATCHED = 8
#: Terms up to here are summed where it is asked what a polynomial leaves out.
FAR = 255

Terms = list[tuple[Tensor, Tensor]]


def is_polynomial(field: VectorField) -> bool:
    """Whether H(T) is a polynomial of a normalised A applied to H0, or of one field H0 and one applied to f(H0).

    >>> import rdgraph as rd
    >>> op = rd.generators.path(4).operator("row")
    >>> [is_polynomial(rd.lower(name, op, {"alpha": 1.0, "beta": 1.0})) for name in ("BS", "ST", "F")]
    [True, True, False]
    """
    if not field.operator.is_normalised:
        return False
    try:
        linear = linear_part(field)
    except NotApplicable:
        return False
    return linear.source is not None or isinstance(linear, Linear)


class LinearFlow:
    """H0 -> H(T) for linear fields, by a polynomial of fixed degree: capturable, differentiable in everything.

    `schedule` says how the time is cut, `degree` how many products are taken; `needed` tells which degree a field
    asks for. A `quotient` of the field's operator saves the twins of one field. Shapes: time (*batch), H0
    (*batch, n, d), or (*batch, n, F*d) for F fields.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(4).operator("row", dtype=torch.float64)
    >>> field = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5})
    >>> flow = LinearFlow(Schedule.make("euler", 1.5, 1.0), 4)
    >>> H0 = torch.eye(4, dtype=torch.float64)
    >>> stepped = rd.solve(field, H0, [0.0, 1.5], "euler", step=1.0).final
    >>> torch.allclose(flow(field, H0, torch.tensor(1.5)), stepped)
    True
    """

    def __init__(self, schedule: Schedule, degree: int, quotient: Quotient | None = None) -> None:
        self.schedule, self.degree, self.quotient = schedule, degree, quotient

    def __call__(self, field: VectorField, H0: Tensor, time: Tensor) -> Tensor:
        return self.run(field, H0, time, watch=False)[0]

    def run(
        self, field: VectorField, H0: Tensor, time: Tensor, *, watch: bool, source: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """H(T); with `watch` also the terms just behind the degree, summed, as shares of the gains (*batch).

        A `source` takes the place of H0 in the equation of one field, which then starts elsewhere.
        """
        bound = field.bind(H0 if source is None else source) if field.uses_initial else field
        linear = forced_part(bound, source is not None)
        found = _response(linear, self.schedule, time, self.degree + (WATCHED if watch else 0))
        beyond = (found.sizes[self.degree + 1 :].sum(0) / found.gain).amax((-2, -1)) if watch else None
        kept = found.series[: self.degree + 1]
        if linear.source is None:
            return H0 + self._applied(linear, kept, bound(None, H0)), beyond
        return self._applied(linear, kept, H0), beyond

    def _applied(self, linear: Linear | CoupledLinear, kept: Tensor, x: Tensor) -> Tensor:
        """The polynomial with these coefficients applied to x."""
        if isinstance(linear, CoupledLinear):
            return apply_coupled(linear.base.operator, kept, x, linear.base.kind)
        if self.quotient is not None:
            return apply_on_quotient(self.quotient, kept, x, linear.base.kind)
        series = kept.to(torch.promote_types(x.dtype, torch.float32))
        return apply_polynomial(linear.base.operator, series, x, linear.base.kind)

    def terms(self, field: VectorField, x: Tensor, time: Tensor) -> Tensor:
        """c_k x for every k, (K + 1, *batch, rows, d): the coefficients alone, so that H(T) = sum_k b_k(A) c_k H0.

        They act on channels and fields, so that x may have any rows, such as the weights of a linear encoder. Nothing
        is asked of the graph of the field but its kind.
        """
        linear = linear_part(field)
        if linear.source is None:
            raise NotApplicable(
                f"expected a flow that is a polynomial of A applied to H0, got {field.system}, whose forcing is "
                "something else; train it on the whole graph"
            )
        series = _response(linear, self.schedule, time, self.degree).series
        series = series.to(torch.promote_types(x.dtype, torch.float32))
        if isinstance(linear, CoupledLinear):
            return coupled_terms(series, x)
        return series * x

    @classmethod
    @torch.no_grad()
    def left_out(cls, field: VectorField, schedule: Schedule, time: Tensor, degree: int, beyond: int = FAR) -> Tensor:
        """What the terms behind a degree amount to, as a share of the largest gain (*batch): a bound of the error.

        |b_k(A)| <= 1 in the norm of the operator, so that the sum of their sizes bounds what they add to H0 of size 1.
        Terms are summed up to `beyond`, where the coefficients of smooth flows are below rounding.
        """
        linear = linear_part(field)
        last = min(full_degree(linear, schedule), beyond)
        if degree >= last:
            return torch.zeros_like(time)
        found = _response(linear, schedule, time, last)
        return (found.sizes[degree + 1 :].sum(0) / found.gain).amax((-2, -1))

    @classmethod
    @torch.no_grad()
    def needed(
        cls, field: VectorField, H0: Tensor, schedule: Schedule, time: Tensor, rtol: float = TOLERANCE,
        *, is_forced: bool = False,
    ) -> int:  # fmt: skip
        """The degree that leaves out at most `rtol` of the gain; asks the device once.

        What a source takes away from the flow counts like what it adds, so that coefficients at which the two cancel
        are no reason for a short polynomial: its gradients, and coefficients near by, need the terms. `is_forced`
        says that H0 in the equation is not the start.
        """
        linear = forced_part(field.bind(H0) if field.uses_initial else field, is_forced)
        most = full_degree(linear, schedule)
        length = 64
        while True:
            length = min(length, most)
            found = _response(linear, schedule, time, length)
            beyond = found.sizes.flip(0).cumsum(0).flip(0)[1:] / found.gain
            degree = int((beyond.reshape(length, -1).amax(-1) > rtol).sum()) if length else 0
            if degree + WATCHED <= length or length == most:
                return degree
            length *= 2


def forced_part(field: VectorField, is_forced: bool) -> Linear | CoupledLinear:
    """The linear part of a field; with `is_forced`, H0 in its equation is a forcing and not the start."""
    linear = linear_part(field)
    if not is_forced:
        return linear
    if isinstance(linear, CoupledLinear):
        raise NotApplicable(f"expected one field for a source that is not its start, got {field.system}; take steps")
    return replace(linear, source=None)


def _response(linear: Linear | CoupledLinear, schedule: Schedule, time: Tensor, degree: int) -> Response:
    if isinstance(linear, CoupledLinear):
        return coupled_coefficients(linear, schedule, time, degree)
    return coefficients(linear, schedule, time, degree)


def apply_polynomial(operator: Operator, series: Tensor, x: Tensor, kind: str) -> Tensor:
    """sum_k series[k] b_k(A) x with as many products as the degree; series (K + 1, *batch or 1, 1, 1 or d).

    b_k is A^k ("taylor") or T_k(A) ("chebyshev"). Horner's rule forward; backward with the vectors b_k(A') g, of which
    the gradients in x, in the coefficients and in the edge weights are made. Only the latter need the states of the
    forward pass; otherwise nothing but x is kept.

    >>> op = Operator.from_csr([0, 1, 2], [1, 0], torch.ones(2, dtype=torch.float64), normalisation="row")
    >>> c = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).reshape(3, 1, 1)
    >>> apply_polynomial(op, c, torch.tensor([[1.0], [0.0]], dtype=torch.float64), "taylor").ravel()
    tensor([4., 2.], dtype=torch.float64)
    """
    batch = x.shape[:-2]
    if any(size != 1 for size in series.shape[1:-2]):
        series = series.expand(len(series), *batch, *series.shape[-2:])
    terms = series.reshape(len(series), -1, *series.shape[-2:])
    weights = operator.weights
    shared = weights.numel() == operator.num_edges
    weights = weights.reshape(1, -1) if shared else weights.expand(*batch, -1).reshape(-1, operator.num_edges)
    tracked = torch.is_grad_enabled() and any(t.requires_grad for t in (x, series, weights))
    rows = operator.pattern.rows if weights.requires_grad and x.is_cuda else None
    out = _Polynomial.apply(
        operator._tensors(tracked), rows, kind == "chebyshev", weights.contiguous(), terms,
        x.reshape(-1, *x.shape[-2:]).contiguous(),
    )  # type: ignore[no-untyped-call]  # fmt: skip
    return out.view(x.shape)


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


class _Polynomial(torch.autograd.Function):
    """The polynomial, member by member: weights (1 or B, E), series (K + 1, 1 or B, 1, 1 or d), x (B, n, d)."""

    @staticmethod
    def forward(
        ctx: Any, pattern: list[Tensor], rows: Tensor | None, doubled: bool, weights: Tensor, series: Tensor, x: Tensor
    ) -> Tensor:
        degree = len(series) - 1
        states = x.new_empty((degree if ctx.needs_input_grad[3] else 0, *x.shape))
        product = _Product(pattern, weights)
        newest, older = torch.mul(x, series[degree].to(x.dtype), out=states[degree - 1] if len(states) else None), None
        for k in range(degree - 1, -1, -1):
            terms: Terms = [(series[k], x)]
            if older is not None:
                terms.append((_constant(x, -1.0), older))
            factor = _constant(x, 2.0) if doubled and k > 0 else None
            out = states[k - 1] if k > 0 and len(states) else None
            newest, older = product(newest, factor, terms, out), newest if doubled else None
        ctx.pattern, ctx.rows, ctx.doubled = pattern, rows, doubled
        ctx.save_for_backward(weights, series, x, states)
        return newest

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        weights, series, x, states = ctx.saved_tensors
        if torch.is_grad_enabled():
            wants_weights = ctx.needs_input_grad[3]
            return None, None, None, *_differentiable(ctx.pattern, ctx.doubled, weights, series, x, g, wants_weights)
        product = _Product(ops.transposed(ctx.pattern), ops.transposed_weights(ctx.pattern, weights))
        degree = len(series) - 1
        stack = x.new_empty((degree + 1, *x.shape))
        stack[0] = g
        for k in range(1, degree + 1):
            is_recurrent = ctx.doubled and k > 1
            terms: Terms = [(_constant(g, -1.0), stack[k - 2])] if is_recurrent else []
            product(stack[k - 1], _constant(g, 2.0) if is_recurrent else None, terms, stack[k])
        total, slopes = _moments(stack, x, series)
        grad_weights = None
        if ctx.needs_input_grad[3]:
            grad_weights = _sampled(ctx.pattern, ctx.rows, stack[:-1], states, ctx.doubled, len(weights) == 1)
        return None, None, None, grad_weights, slopes.sum_to_size(series.shape).to(series.dtype), total


def _differentiable(
    pattern: list[Tensor], doubled: bool, weights: Tensor, series: Tensor, x: Tensor, g: Tensor, wants_weights: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The gradients in weights, series and x, written in differentiable products, so that second derivatives exist.

    Slower than the way above, which fills its stacks in place: this one is taken where a gradient is to be
    differentiated again.
    """
    degree = len(series) - 1
    two, minus = _constant(x, 2.0), [_constant(x, -1.0)]
    other, back = ops.transposed(pattern), ops.transposed_weights(pattern, weights)
    stack = [g]
    for k in range(1, degree + 1):
        is_recurrent = doubled and k > 1
        older, factor = ([stack[k - 2]], two) if is_recurrent else ([], None)
        stack.append(ops.spmm(other, back, stack[k - 1].contiguous(), factor, None, minus[: len(older)], older))
    total = torch.stack([c.to(x.dtype) * u for c, u in zip(series, stack, strict=True)]).sum(0)
    slopes = torch.stack([ops.inner(u.contiguous(), x)[:, None, :] for u in stack])
    grad_series = slopes.sum_to_size(series.shape).to(series.dtype)
    if not wants_weights or not degree:
        return torch.zeros_like(weights) if wants_weights else None, grad_series, total
    states = [x * series[degree].to(x.dtype)]
    for k in range(degree - 1, 0, -1):
        values, factors = [x], [series[k]]
        if doubled and len(states) > 1:
            values, factors = [x, states[-2]], [series[k], *minus]
        states.append(ops.spmm(pattern, weights, states[-1], two if doubled else None, None, factors, values))
    parts = [
        ops.sddmm(pattern, u.contiguous(), v, len(weights) == 1)
        for u, v in zip(stack[:-1], reversed(states), strict=True)
    ]
    scaled = [2 * part if doubled and k > 0 else part for k, part in enumerate(parts)]
    return torch.stack(scaled).sum(0), grad_series, total


class _Product:
    """y, factor, terms -> factor*(A@y) + terms, into a given place or a new one."""

    def __init__(self, pattern: list[Tensor], weights: Tensor) -> None:
        self.pattern, self.weights = pattern, weights
        self.rows = Rows.from_tensors(ops.parts(pattern)[0])

    def __call__(self, y: Tensor, factor: Tensor | None, terms: Terms, out: Tensor | None) -> Tensor:
        if ops.use_kernels(y):
            from rdgraph.kernels import triton_spmm as fused

            return fused.spmm(self.rows, self.weights, y, factor, terms, out=out)
        found = ops.compute_spmm(
            self.pattern, self.weights, y, factor, None, [k for k, _ in terms], [v for _, v in terms]
        )
        return found if out is None else out.copy_(found)


def _moments(stack: Tensor, x: Tensor, series: Tensor) -> tuple[Tensor, Tensor]:
    """sum_k series[k] stack[k], and <stack[k], x> over the nodes, (K + 1, B, 1, d)."""
    if ops.use_kernels(x):
        from rdgraph.kernels import triton_polynomial as stacks

        return stacks.moments(stack, x, series)
    total = stack[0] * series[0].to(x.dtype)
    for k in range(1, len(stack)):
        total.addcmul_(stack[k], series[k].to(x.dtype))
    return total, torch.stack([ops.inner(u, x)[:, None, :] for u in stack])


def _sampled(
    pattern: list[Tensor], rows: Tensor | None, left: Tensor, right: Tensor, doubled: bool, shared: bool
) -> Tensor:
    """The gradient of the edge weights from both stacks, (1 or B, E)."""
    if rows is not None and not shared and ops.use_kernels(left):
        from rdgraph.kernels import triton_polynomial as stacks

        return stacks.sample_stacks(rows, pattern[1], left, right, doubled)
    total = None
    for k in range(len(left)):
        part = ops.sddmm(pattern, left[k], right[k], shared)
        part = 2 * part if doubled and k > 0 else part
        total = part if total is None else total.add_(part)
    return left.new_zeros((1 if shared else left.shape[1], len(pattern[1]))) if total is None else total


@cache
def _held(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(value, dtype=dtype, device=device)


def _constant(like: Tensor, value: float) -> Tensor:
    return _held(value, like.dtype, like.device)
