"""sum_k c_k b_k(A) x with its gradients, which saves all intermediate vectors or recomputes them in segments."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.kernels.row_order import Rows
from rdgraph.graphs.operator import Operator

Terms = list[tuple[Tensor, Tensor]]
ALL = slice(None)


class Polynomial(torch.autograd.Function):
    """The polynomial, member by member: weights (1 or B, E), series (K + 1, 1 or B, 1, 1 or d), x (B, n, d).

    Horner's rule goes down from V_K = c_K x to V_0, the answer; the gradient goes up with u_k = b_k(A') g. That of the
    weights pairs u_k with V_(k+1). With a `segment` of s > 0, s vectors of either kind are held at a time: of the V
    only those at the segment boundaries are saved, which doubles the products of the forward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, pattern: list[Tensor], rows: Tensor | None, doubled: bool, segment: int, weights: Tensor,
        series: Tensor, x: Tensor,
    ) -> Tensor:  # fmt: skip
        degree, wants = len(series) - 1, ctx.needs_input_grad[4]
        ctx.pattern, ctx.rows, ctx.doubled = pattern, rows, doubled
        ctx.segment = min(segment, degree + 1) or degree + 1
        ladder = _Ladder(Product(pattern, weights), series, x, doubled)
        if not wants or ctx.segment > degree:
            states = x.new_empty((degree if wants else 0, *x.shape))
            newest, ctx.levels = ladder.descend(degree, 0, states=states), []
            ctx.save_for_backward(weights, series, x, states)
            return newest
        # From V_(hi+1) and, where the recurrence has three terms, V_(hi+2) the levels hi ... lo + 1 follow.
        steps = (1, 2) if doubled else (1,)
        marks = {hi + step for hi in range(ctx.segment, degree, ctx.segment) for step in steps if hi + step <= degree}
        newest, ctx.levels = ladder.descend(degree, 0, marks=marks), sorted(marks)
        ctx.save_for_backward(weights, series, x, *(ladder.held[level] for level in ctx.levels))
        return newest

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        weights, series, x, *states = ctx.saved_tensors
        wants = ctx.needs_input_grad[4]
        if torch.is_grad_enabled():
            return None, None, None, None, *differentiable(ctx.pattern, ctx.doubled, weights, series, x, g, wants)
        product = Product(ops.transposed(ctx.pattern), ops.transposed_weights(ctx.pattern, weights))
        ladder = _Ladder(Product(ctx.pattern, weights), series, x, ctx.doubled)
        ladder.held = dict(zip(ctx.levels, states, strict=False))
        degree, size = len(series) - 1, ctx.segment
        total, grad_weights, slopes = None, None, []
        one, two = g, None
        for first in range(0, degree + 1, size):
            stack = x.new_empty((min(size, degree + 1 - first), *x.shape))
            one, two = _ascend(product, stack, first, ctx.doubled, one, two)
            if first + size <= degree:  # copies, so that this stack can be freed
                one, two = one.clone(), None if two is None else two.clone()
            part, slope = _moments(stack, x, series[first : first + size])
            total = part if total is None else total.add_(part)
            slopes.append(slope)
            if wants and first < degree:
                right = states[0] if size > degree else ladder.segment(first, min(first + size, degree))
                sampled = _sampled(
                    ctx.pattern, ctx.rows, stack[: len(right)], right, ctx.doubled, len(weights) == 1, first
                )
                grad_weights = sampled if grad_weights is None else grad_weights.add_(sampled)
        if wants and grad_weights is None:
            grad_weights = torch.zeros_like(weights)
        grad_series = torch.cat(slopes).sum_to_size(series.shape).to(series.dtype)
        return None, None, None, None, grad_weights, grad_series, total


class _Ladder:
    """V_k = f A V_(k+1) + c_k x - V_(k+2): f = 2 for Chebyshev's, except at the bottom; V_(k+2) occurs only there."""

    def __init__(self, product: Product, series: Tensor, x: Tensor, doubled: bool) -> None:
        self.product, self.series, self.x, self.doubled = product, series, x, doubled
        self.degree = len(series) - 1
        #: V by level, where they were marked.
        self.held: dict[int, Tensor] = {}

    def descend(
        self, top: int, bottom: int, *, states: Tensor | None = None, base: int = 1, marks: set[int] | None = None
    ) -> Tensor:
        """Compute from the levels above `top` down to V_bottom; `states`[j] receives V_(base+j)."""
        newest, older = self.held.get(top + 1), self.held.get(top + 2) if self.doubled else None
        x, series = self.x, self.series
        for k in range(top, bottom - 1, -1):
            out = states[k - base] if states is not None and len(states) and k >= base else None
            if newest is None:
                newest = torch.mul(x, series[k].to(x.dtype), out=out)
            else:
                terms: Terms = [(series[k], x)]
                if older is not None:
                    terms.append((constant(x, -1.0), older))
                factor = constant(x, 2.0) if self.doubled and k > 0 else None
                newest, older = self.product(newest, factor, terms, out), newest if self.doubled else None
            if marks is not None and k in marks:
                self.held[k] = newest
        assert newest is not None  # there is one level at least
        return newest

    def segment(self, low: int, high: int) -> Tensor:
        """V_(low+1), ..., V_high, recomputed from the levels above them."""
        states = self.x.new_empty((high - low, *self.x.shape))
        self.descend(high, low + 1, states=states, base=low + 1)
        return states


def _ascend(
    product: Product, stack: Tensor, first: int, doubled: bool, one: Tensor, two: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Fill a stack with u_first, ... from u_(first-1), `one`, and u_(first-2), `two`; u_0 is `one`. The last two."""
    for k in range(first, first + len(stack)):
        if k == 0:
            stack[0] = one
            one = stack[0]
            continue
        is_recurrent = doubled and k > 1
        terms: Terms = [(constant(one, -1.0), two)] if is_recurrent and two is not None else []
        product(one, constant(one, 2.0) if is_recurrent else None, terms, stack[k - first])
        one, two = stack[k - first], one
    return one, two


def differentiable(
    pattern: list[Tensor], doubled: bool, weights: Tensor, series: Tensor, x: Tensor, g: Tensor, wants_weights: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The gradients in weights, series and x, written in differentiable products, so that second derivatives exist.

    Slower than the code above, which fills its stacks in place; used if a gradient is differentiated again.
    """
    degree = len(series) - 1
    two, minus = constant(x, 2.0), [constant(x, -1.0)]
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


class Product:
    """y, factor, terms -> factor*(A@y) + terms, into a given tensor or a new one; for all members, or some of them."""

    def __init__(self, pattern: list[Tensor], weights: Tensor) -> None:
        self.pattern, self.weights = pattern, weights
        self.rows = Rows.from_tensors(ops.parts(pattern)[0])

    def __call__(
        self, y: Tensor, factor: Tensor | None, terms: Terms, out: Tensor | None, members: slice = ALL
    ) -> Tensor:  # fmt: skip
        weights = self.weights if len(self.weights) == 1 else self.weights[members]
        if ops.use_kernels(y):
            from rdgraph.graphs.kernels import triton_spmm as fused

            return fused.spmm(self.rows, weights, y, factor, terms, out=out)
        product = ops.compute_spmm(self.pattern, weights, y, factor, None, [k for k, _ in terms], [v for _, v in terms])
        return product if out is None else out.copy_(product)


def _moments(stack: Tensor, x: Tensor, series: Tensor) -> tuple[Tensor, Tensor]:
    """sum_k series[k] stack[k], and <stack[k], x> over the nodes, (K + 1, B, 1, d)."""
    if ops.use_kernels(x):
        from rdgraph.graphs.kernels import triton_polynomial as stacks

        return stacks.moments(stack, x, series)
    total = stack[0] * series[0].to(x.dtype)
    for k in range(1, len(stack)):
        total.addcmul_(stack[k], series[k].to(x.dtype))
    return total, torch.stack([ops.inner(u, x)[:, None, :] for u in stack])


def _sampled(
    pattern: list[Tensor], rows: Tensor | None, left: Tensor, right: Tensor, doubled: bool, shared: bool, first: int
) -> Tensor:
    """The gradient of the edge weights from both stacks, which begin with the power `first`, (1 or B, E)."""
    if rows is not None and not shared and ops.use_kernels(left):
        from rdgraph.graphs.kernels import triton_polynomial as stacks

        sampled = stacks.sample_stacks(rows, pattern[1], left, right, doubled and first == 0)
        return sampled.mul_(2) if doubled and first > 0 else sampled
    total = None
    for k in range(len(left)):
        part = ops.sddmm(pattern, left[k], right[k], shared)
        part = 2 * part if doubled and first + k > 0 else part
        total = part if total is None else total.add_(part)
    return left.new_zeros((1 if shared else left.shape[1], len(pattern[1]))) if total is None else total


@cache
def _held(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(value, dtype=dtype, device=device)


def constant(like: Tensor, value: float) -> Tensor:
    return _held(value, like.dtype, like.device)


# ---------------------------------------------------------------------- several fields
def apply_coupled(operator: Operator, series: Tensor, x: Tensor, kind: str) -> Tensor:
    """sum_k series[k] b_k(A) x with as many products as the degree: series (K + 1, F, F, *batch, 1, 1 or d).

    Horner's rule, or Clenshaw's, over all fields at once: C x is the sum over j of a factor for every channel times
    the state whose blocks are moved on by j places, so that one pass takes a product and all of C_k x.

    >>> op = Operator.from_csr([0, 1, 2], [1, 0], torch.ones(2, dtype=torch.float64), normalisation="row")
    >>> swap = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)
    >>> apply_coupled(op, swap[..., None, None], torch.tensor([[1.0, 5.0], [0.0, 0.0]], dtype=torch.float64), "taylor")
    tensor([[ 5.,  1.],
            [ 2., 10.]], dtype=torch.float64)
    """
    fields = series.shape[1]
    width = x.shape[-1] // fields
    moved = [x.roll(-j * width, -1) if j else x for j in range(fields)]
    factors = _factors(series.to(torch.promote_types(x.dtype, torch.float32)), width)
    two, minus = x.new_full((), 2.0), x.new_full((), -1.0)
    terms = [list(zip(row, moved, strict=True)) for row in factors]
    newest = torch.stack([factor * state for factor, state in terms[-1]]).sum(0).to(x.dtype)
    older = None
    for k in range(len(series) - 2, -1, -1):
        doubled = kind == "chebyshev"
        others = [*terms[k], *([] if older is None else [(minus, older)])]
        scale = two if doubled and k > 0 else None
        newest, older = operator.product(newest, scale, others), newest if doubled else None
    return newest


def coupled_terms(series: Tensor, x: Tensor) -> Tensor:
    """C_k x for every k, (K + 1, *batch, n, F*d); series (K + 1, F, F, *batch, 1, 1 or d).

    >>> swap = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]])
    >>> coupled_terms(swap[..., None, None], torch.tensor([[1.0, 5.0]])).squeeze(1)
    tensor([[ 5.,  1.],
            [ 2., 10.]])
    """
    fields = series.shape[1]
    width = x.shape[-1] // fields
    moved = [x.roll(-j * width, -1) if j else x for j in range(fields)]
    factors = _factors(series, width)
    return torch.stack([torch.stack([f * y for f, y in zip(row, moved, strict=True)]).sum(0) for row in factors])


def _factors(series: Tensor, width: int) -> list[list[Tensor]]:
    """By degree and by j, the factors (*batch, 1, F*d) of the state moved on by j blocks: entries (i, i + j)."""
    fields = series.shape[1]
    spread = series.expand(*series.shape[:-1], width)
    by_shift = []
    for j in range(fields):
        entries = torch.stack([spread[:, i, (i + j) % fields] for i in range(fields)], -2)
        by_shift.append(entries.flatten(-2).unbind(0))
    return [list(row) for row in zip(*by_shift, strict=True)]
