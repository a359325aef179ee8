"""The linear part of a lowered field as a polynomial of one operator: p(X) with X = A, or X = L = D - A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.run.solvers.matrix_filters import CoupledLinear, coupled_part
from rdgraph.run.solvers.operator_filters import Base, Filters, deepened, operator_base
from rdgraph.systems.single_operator import in_one_operator, terms_beyond_generator
from rdgraph.systems.system import System

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


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

    def of_members(self, first: int, last: int) -> Linear:
        """The linear part of the members first..last-1 of one batch (B,)."""

        def cut(values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(x[first:last] if x.ndim == 3 and len(x) > 1 else x for x in values)

        return replace(self, generator=cut(self.generator), source=None if self.source is None else cut(self.source))

    def filters(self, elapsed: Tensor, increment: bool = False) -> tuple[Filters, torch.Size]:
        """The filters of the flow over times `elapsed` (S, *batch, 1, 1): one function per row, and the rows' shape.

        The answer is g(X)H0, or with `increment` H0 + g(X)f(H0), where g = t phi1(t p) serves every constant forcing.
        """
        one = torch.ones((), dtype=torch.float64, device=elapsed.device)
        source = (one,) if increment else self.source or ()
        parts = (elapsed, self.base.centre, self.base.radius, *self.generator, *source)
        depth = elapsed.ndim - 1
        parts = (elapsed, *(deepened(x, depth) for x in parts[1:]))
        spread = torch.broadcast_tensors(*parts)  # type: ignore[no-untyped-call]
        shape = spread[0].shape
        time, centre, radius, *rest = (x.reshape(-1) for x in spread)
        split = len(self.generator)
        sources = torch.stack(rest[split:]) if source else time.new_empty((0, len(time)))
        return Filters(torch.stack(rest[:split]), sources, time, centre, radius, not increment), shape

    def sums(self, series: Tensor, shape: torch.Size, x: Tensor) -> Tensor:
        """What the series (K + 1, R) of filters with rows of this shape make of a state x, (S, *batch, n, d)."""
        return self.base.sums(series.reshape(-1, *shape), x)

    def size(self, x: Tensor) -> Tensor:
        """The norm of every column of a state, (*batch, 1, d), in which errors are measured."""
        return torch.linalg.vector_norm(x, ord=self.base.norm, dim=-2, keepdim=True)


@runtime_checkable
class HasLinearPart(Protocol):
    """A field that knows its linear part, such as one of members with equations of their own."""

    def linear_part(self) -> Linear:
        """The field as p(X)H + forcing; NotApplicable where it is not of that form."""


def linear_part(field: VectorField | HasLinearPart) -> Linear | CoupledLinear:
    """A linear field as p(X)H + forcing; refuses, with the reason, what is not of that form."""
    if isinstance(field, HasLinearPart):
        return field.linear_part()
    return single_part(field) if field.system.is_single else coupled_part(field)


def single_part(field: VectorField) -> Linear:
    """A linear field of one field and first order as p(X)H + forcing; raises NotApplicable for others."""
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


def _values(field: VectorField, polynomial: Mapping[int, sp.Expr]) -> tuple[Tensor, ...]:
    found = (field.value(polynomial.get(k, sp.S.Zero)) for k in range(max(polynomial, default=0) + 1))
    return tuple(x.to(torch.float64) for x in found)


# ---------------------------------------------------------------------- the operator
def _prepared(field: VectorField) -> tuple[System, Base]:
    """The system written in X, under the letter A, and X."""
    letter, system = in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    return system, operator_base(field.operator, letter)
