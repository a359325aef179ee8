"""The linear part of a lowered field: a polynomial P(X) of one operator, X = A or X = L = D - A, and a forcing.

For F fields the coefficients of P are F x F matrices; one field is F = 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import NotApplicable
from rdgraph.run.solvers.operator_filters import Base, Filters, operator_base
from rdgraph.systems.coupling import OperatorWord, Pair
from rdgraph.systems.single_operator import coupled_in_one_operator, in_one_operator, terms_beyond_generator

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField

#: An F x F matrix of tensors, each () to (*batch, 1, d), row by row.
Entries = tuple[tuple[Tensor, ...], ...]


@dataclass(frozen=True)
class Linear:
    """P(X)h + forcing for F fields. `generator` and `source` hold F x F matrices of numbers in powers of X, float64.

    The forcing is S(X)h0 where `source` is a tuple (empty: none), and something else where it is None. States are
    packed, (*batch, n, F*d), the blocks of the fields side by side.

    >>> from rdgraph.graphs.generators import path
    >>> one, zero = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    >>> base = operator_base(path(2).operator("symmetric", dtype=torch.float64), "A")
    >>> wave = Linear(base, (((zero, one), (-one, zero)), ((zero, zero), (one, zero))))
    >>> (wave.fields, wave.order), (Linear.scalar(base, [-one, one]).fields, Linear.scalar(base, [-one, one]).order)
    ((2, 1), (1, 1))
    """

    base: Base
    generator: tuple[Entries, ...]
    source: tuple[Entries, ...] | None = ()

    @classmethod
    def scalar(cls, base: Base, generator: Sequence[Tensor], source: Sequence[Tensor] | None = ()) -> Linear:
        """The linear part p(X)h + s(X)h0 of one field, from the coefficients of p and s."""
        return cls(base, tuple(((c,),) for c in generator), None if source is None else tuple(((c,),) for c in source))

    @property
    def fields(self) -> int:
        """F, the number of fields."""
        return len(self.generator[0])

    @property
    def order(self) -> int:
        """The highest power of X in P and S: a derivative in a coefficient needs as many terms more than the state."""
        return max(len(self.generator), len(self.source or ())) - 1

    def of_members(self, first: int, last: int) -> Linear:
        """The linear part of the members first..last-1 of one batch (B,)."""

        def cut(x: Tensor) -> Tensor:
            return x[first:last] if x.ndim == 3 and len(x) > 1 else x

        def cut_all(matrices: tuple[Entries, ...]) -> tuple[Entries, ...]:
            return tuple(tuple(tuple(map(cut, row)) for row in matrix) for matrix in matrices)

        source = None if self.source is None else cut_all(self.source)
        return replace(self, generator=cut_all(self.generator), source=source)

    def stacked(
        self, elapsed: Tensor, *others: Tensor, increment: bool = False
    ) -> tuple[Tensor, Tensor, list[Tensor], torch.Size]:
        """Everything a flow over times `elapsed` (..., 1, 1) depends on, one row per member and channel.

        Args:
            elapsed: The times.
            others: Tensors () to (*batch, 1, d) that are expanded with them.
            increment: Whether the source is the identity, as for g in h0 + g(X) f(h0).

        Returns:
            P (m + 1, F, F, R) and S (q + 1, F, F, R), float64; the times and the others, (R,) each; the rows' shape.
        """
        source = (self._identity(elapsed),) if increment else self.source or ()
        entries = [x for matrix in (*self.generator, *source) for row in matrix for x in row]
        spread = torch.broadcast_tensors(elapsed, *others, *entries)  # type: ignore[no-untyped-call]
        shape, rows = spread[0].shape, [x.reshape(-1) for x in spread]
        split = 1 + len(others)
        matrices = torch.stack(rows[split:]).reshape(-1, self.fields, self.fields, len(rows[0]))
        return matrices[: len(self.generator)], matrices[len(self.generator) :], rows[:split], shape

    def filters(self, elapsed: Tensor, increment: bool = False) -> tuple[Filters, torch.Size]:
        """The filters of the flow over times `elapsed` (S, *batch, 1, 1): a matrix function per row, the rows' shape.

        The answer is g(X)h0, or with `increment` h0 + g(X)f(h0), where g = t phi1(t P) serves every constant forcing.
        """
        base = self.base
        generator, source, (time, centre, radius), shape = self.stacked(
            elapsed, base.centre, base.radius, increment=increment
        )
        return Filters(generator, source, time, centre, radius, base.norm, not increment), shape

    def sums(self, series: Tensor, shape: torch.Size, x: Tensor) -> Tensor:
        """sum_k series[k] b_k(Y) x with K products over all fields: series (K + 1, F, F, R), rows of that shape.

        Each vector is added to the sums as soon as it is computed; the sums are kept in float32 at least.
        """
        wide = torch.promote_types(x.dtype, torch.float32)
        # Unbound at once: the gradient of weights[k] would be a tensor as large as the series, for every k.
        first, *rest = series.to(wide).reshape(*series.shape[:-1], *shape).unbind()
        totals: list[Tensor | None] = [None] * self.fields
        self._add(totals, first, x.to(wide))
        for weights, vector in zip(rest, self.base.vectors(x, len(series)), strict=True):
            self._add(totals, weights, vector.to(wide))
        blocks = [total for total in totals if total is not None]
        return (blocks[0] if len(blocks) == 1 else torch.cat(blocks, -1)).to(x.dtype)

    def size(self, x: Tensor) -> Tensor:
        """The norm of every channel over nodes and fields, (*batch, 1, d), in which errors are measured."""
        stacked = x if self.fields == 1 else torch.cat(x.chunk(self.fields, -1), -2)
        return torch.linalg.vector_norm(stacked, ord=self.base.norm, dim=-2, keepdim=True)

    def _identity(self, like: Tensor) -> Entries:
        one = torch.eye(self.fields, dtype=torch.float64, device=like.device)
        return tuple(tuple(row.unbind()) for row in one.unbind())

    def _add(self, totals: list[Tensor | None], weights: Tensor, x: Tensor) -> None:
        """totals[i] += weights[i, j] * block j of x; in place where nothing is recorded."""
        recorded = torch.is_grad_enabled() and (weights.requires_grad or x.requires_grad)
        blocks = x.chunk(self.fields, -1)
        for i, total in enumerate(totals):
            for j, block in enumerate(blocks):
                if total is None:
                    total = weights[i, j] * block
                elif recorded or total.requires_grad:
                    total = torch.addcmul(total, weights[i, j], block)
                else:
                    total.addcmul_(weights[i, j], block)
            totals[i] = total


@runtime_checkable
class HasLinearPart(Protocol):
    """A field with a `linear_part` method, such as one of members with different equations."""

    def linear_part(self) -> Linear:
        """The field as p(X)H + forcing; NotApplicable where it is not of that form."""


def linear_part(field: VectorField | HasLinearPart) -> Linear:
    """A linear field as P(X)h + forcing; raises NotApplicable, with the reason, for any other."""
    if isinstance(field, HasLinearPart):
        return field.linear_part()
    return _single_part(field) if field.system.is_single else _coupled_part(field)


def diffusion_part(field: VectorField) -> Linear:
    """The generator minus its value on constant states: p(A) - p(1), or p(L) - p(0) for L = D - A."""
    letter, system = in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    values = _numbers(field, system.structure.generator)
    at_rest = torch.zeros_like(values[0])
    if letter != "L":
        for value in values[1:]:
            at_rest = at_rest - value
    return Linear.scalar(operator_base(field.operator, letter), (at_rest, *values[1:]))


def _single_part(field: VectorField) -> Linear:
    letter, system = in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    structure = system.structure
    if free := terms_beyond_generator(structure):
        reasons = [o for o in structure.obstacles if any(str(t) in o for t in free)] or list(structure.obstacles)
        raise NotApplicable(
            f"expected a linear system whose generator is a polynomial in A with scalar or channel coefficients, got "
            f"{field.system}: {'; '.join(reasons)}; use dopri5 or rk4"
        )
    other = structure.constant != 0 or structure.coupled != 0
    source = None if other else _numbers(field, structure.source) if structure.source else ()
    return Linear.scalar(operator_base(field.operator, letter), _numbers(field, structure.generator), source)


def _coupled_part(field: VectorField) -> Linear:
    letter, coupling = coupled_in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    other = any(x != 0 for part in (coupling.constant, coupling.coupled) for x in part.values())
    source = None if other else _matrices(field, coupling.fields, coupling.source) if coupling.source else ()
    generator = _matrices(field, coupling.fields, coupling.linear)
    return Linear(operator_base(field.operator, letter), generator, source)


def _numbers(field: VectorField, polynomial: Mapping[int, sp.Expr]) -> tuple[Tensor, ...]:
    """The coefficients of a polynomial by power of X."""
    count = 1 + max(polynomial, default=0)
    return tuple(field.value(polynomial.get(k, sp.S.Zero)).to(torch.float64) for k in range(count))


def _matrices(
    field: VectorField, fields: tuple[str, ...], terms: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]
) -> tuple[Entries, ...]:
    """The matrices of the coefficients by power of X; every word is a power."""
    powers = {pair: {len(word): c for word, c in words.items()} for pair, words in terms.items()}
    count = 1 + max((k for words in powers.values() for k in words), default=0)

    def value(i: str, j: str, k: int) -> Tensor:
        return field.value(powers.get((i, j), {}).get(k, sp.S.Zero)).to(torch.float64)

    return tuple(tuple(tuple(value(i, j, k) for j in fields) for i in fields) for k in range(count))
