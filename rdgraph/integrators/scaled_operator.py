"""The operator X of a linear flow, scaled to norm 1: X = A, or X = L = D - A, and which expansion serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rdgraph.graphs.operator import Operator


@dataclass(frozen=True)
class Base:
    """The operator X = centre + radius*Y, with |Y| <= 1 in a norm; Y@x is scale*(A@x) + shift*x.

    `kind` is "chebyshev" where X is symmetric, so that Y has its spectrum in [-1, 1], else "taylor". `norm` is the
    order of the vector norm in which |Y^k x| <= |x|: 2, inf or 1. `centre` and `radius` are () or (*batch, 1, 1).
    """

    operator: Operator
    kind: str
    norm: float
    centre: Tensor
    radius: Tensor
    scale: Tensor | None = None
    shift: Tensor | None = None

    def sums(self, series: Tensor, x: Tensor) -> Tensor:
        """sum_k series[k] b_k(Y) x with K products in all: series (K + 1, S, ..., 1, 1 or d) gives (S, ..., n, d).

        b_k is the Chebyshev polynomial T_k, from T_k = 2 Y T_(k-1) - T_(k-2), or the power Y^k. The sum is kept in
        float32 at least.
        """
        wide = torch.promote_types(x.dtype, torch.float32)
        series = series.to(wide)
        total = series[0] * x.to(wide)
        for k, vector in enumerate(self.vectors(x, len(series)), 1):
            total = torch.addcmul(total, series[k], vector.to(wide))
        return total.to(x.dtype)

    def vectors(self, x: Tensor, count: int) -> Iterator[Tensor]:
        """b_k(Y) x for k = 1 ... count - 1, one product each."""
        once, twice = self._make_step(x, 1.0), self._make_step(x, 2.0)
        minus = x.new_full((), -1.0)
        older, newest = x, x
        for k in range(1, count):
            recurrent = self.kind == "chebyshev" and k > 1
            older, newest = newest, twice(newest, [(minus, older)]) if recurrent else once(newest, [])
            yield newest

    def _make_step(self, x: Tensor, factor: float) -> Callable[[Tensor, list[tuple[Tensor, Tensor]]], Tensor]:
        """y, terms -> factor*(Y@y) + terms in one product, with constants like x."""
        scale = self.scale if self.scale is not None else x.new_ones(()) if factor != 1 else None
        scale = None if scale is None else (factor * scale).to(x.dtype)
        shift = None if self.shift is None else (factor * self.shift).to(x.dtype)

        def step(y: Tensor, terms: list[tuple[Tensor, Tensor]]) -> Tensor:
            return self.operator.product(y, scale, terms if shift is None else [(shift, y), *terms])

        return step


def operator_base(operator: Operator, letter: str) -> Base:
    """X under its letter: A, or L where that is D - A."""
    if operator.degree is None or letter == "A":
        return adjacency_base(operator)
    return laplacian_base(operator, operator.degree)


def adjacency_base(operator: Operator) -> Base:
    """X = A, of norm 1 where it is normalised, else scaled by the sums of its rows or columns."""
    zero = torch.zeros((), dtype=torch.float64, device=operator.device)
    if operator.is_normalised:
        name = operator.norm[0]
        return Base(operator, "chebyshev" if operator.is_symmetric else "taylor", float(name), zero, zero + 1)
    radius, kind, order = row_sums(operator).amax(-2, keepdim=True), "chebyshev", 2.0
    if not _is_symmetric(operator):
        # The smaller of two norms bounds the powers; entries of the error are then bounded through the 1-norm.
        radius, kind, order = (
            torch.minimum(radius, row_sums(operator.transpose()).amax(-2, keepdim=True)),
            "taylor",
            1.0,
        )
    radius = torch.where(radius > 0, radius, 1.0)
    return Base(operator, kind, order, zero, radius, 1 / radius)


def laplacian_base(operator: Operator, degree: Tensor) -> Base:
    """X = D - A; by Gershgorin every row of X - centre has absolute sum at most `radius`."""
    ends, sums = degree.detach().double(), row_sums(operator)
    top, bottom = (ends + sums).amax(-2, keepdim=True), (ends - sums).amin(-2, keepdim=True)
    centre, radius = (top + bottom) / 2, (top - bottom) / 2
    radius = torch.where(radius > 0, radius, 1.0)
    kind, order = ("chebyshev", 2.0) if _is_symmetric(operator) else ("taylor", float("inf"))
    return Base(operator, kind, order, centre, radius, -1 / radius, (degree - centre) / radius)


def deepened(x: Tensor, depth: int) -> Tensor:
    """With axes in front so that it broadcasts against (S, *batch, 1, d)."""
    return x.reshape((1,) * (depth - x.ndim) + tuple(x.shape)) if x.ndim < depth else x


def row_sums(operator: Operator) -> Tensor:
    """Sums of |A| over the rows, (*batch, n, 1), float64."""
    weights = operator.weights.detach().abs().double()
    return operator.with_weights(weights) @ weights.new_ones((operator.num_nodes, 1))


def _is_symmetric(operator: Operator) -> bool:
    """Whether A equals its transpose entry by entry (False where the rows are not sorted, which costs speed only)."""
    other = operator.transpose()
    pairs = (
        (operator.pattern.indptr, other.pattern.indptr),
        (operator.pattern.indices, other.pattern.indices),
        (operator.weights.detach(), other.weights.detach()),
    )
    return all(torch.equal(x, y) for x, y in pairs)
