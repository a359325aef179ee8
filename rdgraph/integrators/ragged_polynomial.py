"""Polynomials of A whose members have degrees of their own, in one ladder of products, on a GPU.

With members in the rising order of their degrees, those that need a power are the last ones: a product takes a part of
the batch that shrinks from power to power. There is one launch for a power, and nobody takes a product too many.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor

from rdgraph.graphs.operator import Operator
from rdgraph.integrators.polynomial_products import Product, Terms, constant, differentiable
from rdgraph.kernels import operations as ops


@dataclass(frozen=True, eq=False)
class Levels:
    """Where the vectors of all members and powers lie in one stack: power by power, each for those that need it.

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
        """For every power where its vectors begin."""
        found = [0]
        for first in self.firsts[:-1]:
            found.append(found[-1] + len(self.degrees) - first)
        return tuple(found)

    @cached_property
    def rows(self) -> int:
        """Vectors in all."""
        return self.offsets[-1] + len(self.degrees) - self.firsts[-1]

    def block(self, stack: Tensor, power: int, first: int | None = None) -> Tensor:
        """The vectors of a power in a stack (rows, n, d), from a member on that needs it."""
        begin = 0 if first is None else first - self.firsts[power]
        size = len(self.degrees) - self.firsts[power]
        return stack[self.offsets[power] + begin : self.offsets[power] + size]

    def tables(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """For kernels: what is added to a member's number to find its vector of every power, and every degree.

        They are made once, so that a captured pass does not ask the host for them.
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
        """What the terms behind a member's degree amount to, as a share of its gain (B,); sizes (powers, B, 1, d)."""
        left_out = torch.where(self.needed(len(sizes), sizes.device), 0.0, sizes)
        return (left_out.sum(0) / gain).amax((-2, -1))


@cache  # without an end: recorded passes know the tables by their addresses alone
def _levels(degrees: tuple[int, ...]) -> Levels:
    return Levels(degrees)


class RaggedPolynomial(torch.autograd.Function):
    """sum_k c_k b_k(A) x as in `Polynomial`: weights (1 or B, E), series (K + 1, B, 1, 1 or d), x (B, n, d).

    Members are in the rising order of their degrees; coefficients behind a member's degree are not looked at.
    """

    @staticmethod
    def forward(
        ctx: Any, pattern: list[Tensor], rows: Tensor | None, doubled: bool, levels: Levels, weights: Tensor,
        series: Tensor, x: Tensor,
    ) -> Tensor:  # fmt: skip
        ctx.pattern, ctx.rows, ctx.doubled, ctx.levels = pattern, rows, doubled, levels
        ladder = _Ladder(Product(pattern, weights), series, x, doubled, levels)
        states = ladder.kept() if ctx.needs_input_grad[4] else None
        out = ladder.passing() if states is None else levels.block(states, 0)
        ctx.save_for_backward(weights, series, x, states)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        from rdgraph.kernels import triton_polynomial as stacks

        weights, series, x, states = ctx.saved_tensors
        levels, wants = ctx.levels, ctx.needs_input_grad[4]
        if torch.is_grad_enabled():
            mask = levels.needed(len(series), x.device).to(series.dtype)
            found = differentiable(ctx.pattern, ctx.doubled, weights, series * mask, x, g, wants)
            return None, None, None, None, found[0], found[1] * mask, found[2]
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
    """V_k = f A V_(k+1) + c_k x - V_(k+2) of those whose degree is k at least; see `Polynomial`."""

    def __init__(self, product: Product, series: Tensor, x: Tensor, doubled: bool, levels: Levels) -> None:
        self.product, self.series, self.x, self.doubled, self.levels = product, series, x, doubled, levels
        self.top = len(levels.firsts) - 1

    def passing(self) -> Tensor:
        """V_0 alone. Two vectors of every member take turns; who has not begun is zero in both."""
        held = self.x.new_zeros((2, *self.x.shape))
        for k in range(self.top, -1, -1):
            first = self.levels.firsts[k]
            here = held[k % 2, first:]
            self._step(k, first, held[(k + 1) % 2, first:], here if k + 2 <= self.top else None, here)
        return held[0]

    def kept(self) -> Tensor:
        """All of them, as a stack."""
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
        own = slice(first, first + len(out))
        terms: Terms = [(self.series[k, own], self.x[own])]
        if self.doubled and older is not None:
            terms.append((constant(self.x, -1.0), older))
        self.product(newest, constant(self.x, 2.0) if self.doubled and k > 0 else None, terms, out, own)


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
        own = total if shared else total[first:]
        own += part
    return total


def apply_ragged(operator: Operator, series: Tensor, x: Tensor, kind: str, members: slice, levels: Levels) -> Tensor:
    """sum_k series[k] b_k(A) x for some members of a batch, each to its own degree; series (K + 1, B, 1, 1 or d).

    The operator has weights for all members of the batch, or shares them; x (B, n, d) is that of these members.
    """
    weights = operator.flat_weights((len(x),), members)
    tracked = torch.is_grad_enabled() and any(t.requires_grad for t in (x, series, weights))
    rows = operator.pattern.rows if weights.requires_grad else None
    found: Tensor = RaggedPolynomial.apply(  # type: ignore[no-untyped-call]
        operator._tensors(tracked), rows, kind == "chebyshev", levels, weights, series, x.contiguous()
    )
    return found
