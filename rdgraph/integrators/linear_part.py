"""The linear part of a lowered field as a polynomial of one operator: p(X) with X = A, or X = L = D - A."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.operator_filters import Filters
from rdgraph.systems.single_operator import in_one_operator, terms_beyond_generator
from rdgraph.systems.system import System

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


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
        once, twice = self._make_step(x, 1.0), self._make_step(x, 2.0)
        minus = x.new_tensor(-1.0)
        total = series[0] * x.to(wide)
        older, newest = x, x
        for k in range(1, len(series)):
            recurrent = self.kind == "chebyshev" and k > 1
            older, newest = newest, twice(newest, [(minus, older)]) if recurrent else once(newest, [])
            total = torch.addcmul(total, series[k], newest.to(wide))
        return total.to(x.dtype)

    def _make_step(self, x: Tensor, factor: float) -> Callable[[Tensor, list[tuple[Tensor, Tensor]]], Tensor]:
        """y, terms -> factor*(Y@y) + terms in one product, with constants like x."""
        scale = self.scale if self.scale is not None else x.new_ones(()) if factor != 1 else None
        scale = None if scale is None else (factor * scale).to(x.dtype)
        shift = None if self.shift is None else (factor * self.shift).to(x.dtype)

        def step(y: Tensor, terms: list[tuple[Tensor, Tensor]]) -> Tensor:
            return self.operator.product(y, scale, terms if shift is None else [(shift, y), *terms])

        return step


@dataclass(frozen=True)
class Linear:
    """p(X)H + forcing. `generator` and `source` hold coefficients in powers of X, each () to (*batch, 1, d), float64.

    The forcing is s(X)H0 where `source` is a tuple (empty: none), and something else where it is None.
    """

    base: Base
    generator: tuple[Tensor, ...]
    source: tuple[Tensor, ...] | None = ()

    @property
    def order(self) -> int:
        """The highest power of X in p and s: a derivative in a coefficient needs as many terms more than the state."""
        return max(len(self.generator), len(self.source or ())) - 1

    def filters(self, elapsed: Tensor, increment: bool = False) -> tuple[Filters, torch.Size]:
        """What happens in the times `elapsed` (S, *batch, 1, 1): one function per row, and the shape of the rows.

        The answer is g(X)H0, or with `increment` H0 + g(X)f(H0), where g = t phi1(t p) serves every constant forcing.
        """
        one = torch.ones((), dtype=torch.float64, device=elapsed.device)
        source = (one,) if increment else self.source or ()
        parts = (elapsed, self.base.centre, self.base.radius, *self.generator, *source)
        depth = elapsed.ndim - 1
        parts = (elapsed, *(_deepened(x, depth) for x in parts[1:]))
        spread = torch.broadcast_tensors(*parts)  # type: ignore[no-untyped-call]
        shape = spread[0].shape
        time, centre, radius, *rest = (x.reshape(-1) for x in spread)
        split = len(self.generator)
        sources = torch.stack(rest[split:]) if source else time.new_empty((0, len(time)))
        return Filters(torch.stack(rest[:split]), sources, time, centre, radius, not increment), shape


def linear_part(field: VectorField) -> Linear:
    """A linear field as p(X)H + forcing; refuses, with the reason, what is not of that form."""
    system, base = _prepared(field)
    structure = system.structure
    if free := terms_beyond_generator(structure):
        reasons = [o for o in structure.obstacles if any(str(t) in o for t in free)] or list(structure.obstacles)
        raise NotApplicable(
            f"expected a linear system whose generator is a polynomial in A with scalar or channel coefficients, got "
            f"{field.system}: {'; '.join(reasons)}; use dopri5 or rk4"
        )
    other = structure.constant != 0 or structure.coupled != 0
    source = None if other else _values(field, structure.source) if structure.source else ()
    return Linear(base, _values(field, structure.generator), source)


def diffusion_part(field: VectorField) -> Linear:
    """The generator less its value on states that diffusion leaves alone: p(A) - p(1), or p(L) - p(0) for L = D - A."""
    letter, system = in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    _, base = _prepared(field)
    values = _values(field, system.structure.generator)
    at_rest = torch.zeros_like(values[0])
    if letter != "L":
        for value in values[1:]:
            at_rest = at_rest - value
    return Linear(base, (at_rest, *values[1:]))


def _deepened(x: Tensor, depth: int) -> Tensor:
    """With axes in front so that it broadcasts against (S, *batch, 1, d)."""
    return x.reshape((1,) * (depth - x.ndim) + tuple(x.shape)) if x.ndim < depth else x


def _values(field: VectorField, polynomial: Mapping[int, sp.Expr]) -> tuple[Tensor, ...]:
    found = (field.value(polynomial.get(k, sp.S.Zero)) for k in range(max(polynomial, default=0) + 1))
    return tuple(x.to(torch.float64) for x in found)


# ---------------------------------------------------------------------- the operator
def _prepared(field: VectorField) -> tuple[System, Base]:
    """The system written in X, under the letter A, and X."""
    letter, system = in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    return system, operator_base(field.operator, letter)


def operator_base(operator: Operator, letter: str) -> Base:
    """X with its bounds: A, or L = D - A where the letter is L."""
    if operator.degree is None or letter == "A":
        return _adjacency_base(operator)
    return _laplacian_base(operator, operator.degree)


def _adjacency_base(operator: Operator) -> Base:
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


def _laplacian_base(operator: Operator, degree: Tensor) -> Base:
    """X = D - A; by Gershgorin every row of X - centre has absolute sum at most `radius`."""
    ends, sums = degree.detach().double(), row_sums(operator)
    top, bottom = (ends + sums).amax(-2, keepdim=True), (ends - sums).amin(-2, keepdim=True)
    centre, radius = (top + bottom) / 2, (top - bottom) / 2
    radius = torch.where(radius > 0, radius, 1.0)
    kind, order = ("chebyshev", 2.0) if _is_symmetric(operator) else ("taylor", float("inf"))
    return Base(operator, kind, order, centre, radius, -1 / radius, (degree - centre) / radius)


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
