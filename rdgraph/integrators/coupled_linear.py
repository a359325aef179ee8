"""Linear systems of several fields as matrix polynomials of one operator: h' = P(X)h + forcing, P of size F x F."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
import torch
from torch import Tensor

from rdgraph.integrators.matrix_filters import MatrixFilters
from rdgraph.integrators.scaled_operator import Base, deepened, operator_base
from rdgraph.systems.coupling import OperatorWord, Pair
from rdgraph.systems.single_operator import coupled_in_one_operator

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField

#: A matrix of tensors, each () to (*batch, 1, d), row by row.
Entries = tuple[tuple[Tensor, ...], ...]


@dataclass(frozen=True)
class CoupledLinear:
    """P(X)h + forcing for F fields. `generator` and `source` hold F x F matrices of numbers in powers of X, float64.

    The forcing is S(X)h0 where `source` is a tuple (empty: none), and something else where it is None. States are
    packed, (*batch, n, F*d), the blocks of the fields side by side.

    >>> from rdgraph.graphs.generators import path
    >>> from rdgraph.integrators.scaled_operator import operator_base
    >>> one, zero = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    >>> base = operator_base(path(2).operator("symmetric", dtype=torch.float64), "A")
    >>> wave = CoupledLinear(base, (((zero, one), (-one, zero)), ((zero, zero), (one, zero))))
    >>> wave.fields, wave.order
    (2, 1)
    """

    base: Base
    generator: tuple[Entries, ...]
    source: tuple[Entries, ...] | None = ()

    @property
    def fields(self) -> int:
        """F."""
        return len(self.generator[0])

    @property
    def order(self) -> int:
        """The highest power of X in P and S: a derivative in a coefficient needs as many terms more than the state."""
        return max(len(self.generator), len(self.source or ())) - 1

    def filters(self, elapsed: Tensor, increment: bool = False) -> tuple[MatrixFilters, torch.Size]:
        """What happens in the times `elapsed` (S, *batch, 1, 1): one matrix function per row, the shape of the rows.

        The answer is g(X)h0, or with `increment` h0 + g(X)f(h0), where g = t phi1(t P) serves every constant forcing.
        """
        source = (self._identity(elapsed),) if increment else self.source or ()
        depth = elapsed.ndim - 1
        entries = [x for matrix in (*self.generator, *source) for row in matrix for x in row]
        given = (elapsed, *(deepened(x, depth) for x in (self.base.centre, self.base.radius, *entries)))
        spread = torch.broadcast_tensors(*given)  # type: ignore[no-untyped-call]
        shape = spread[0].shape
        time, centre, radius, *rest = (x.reshape(-1) for x in spread)
        size, split = self.fields, len(self.generator)
        matrices = torch.stack(rest).reshape(-1, size, size, len(time))
        return (
            MatrixFilters(matrices[:split], matrices[split:], time, centre, radius, self.base.norm, not increment),
            shape,
        )

    def sums(self, series: Tensor, shape: torch.Size, x: Tensor) -> Tensor:
        """sum_k series[k] b_k(Y) x with K products over all fields: series (K + 1, F, F, R), rows of that shape.

        Every vector is mixed into the sums once it is there; these are kept in float32 at least.
        """
        wide = torch.promote_types(x.dtype, torch.float32)
        weights = series.to(wide).reshape(*series.shape[:-1], *shape)
        totals: list[Tensor | None] = [None] * self.fields
        self._mix(totals, weights[0], x.to(wide))
        for k, vector in enumerate(self.base.vectors(x, len(weights)), 1):
            self._mix(totals, weights[k], vector.to(wide))
        return torch.cat([total for total in totals if total is not None], -1).to(x.dtype)

    def size(self, x: Tensor) -> Tensor:
        """The norm of every channel over nodes and fields, (*batch, 1, d), in which errors are measured."""
        stacked = torch.cat(self.blocks(x), -2)
        return torch.linalg.vector_norm(stacked, ord=self.base.norm, dim=-2, keepdim=True)

    def blocks(self, x: Tensor) -> tuple[Tensor, ...]:
        """The fields of a packed state, (*batch, n, d) each."""
        return x.chunk(self.fields, -1)

    def _mix(self, totals: list[Tensor | None], weights: Tensor, x: Tensor) -> None:
        """totals[i] += weights[i, j] * block j of x; in place where nothing is recorded."""
        recorded = torch.is_grad_enabled() and (weights.requires_grad or x.requires_grad)
        blocks = self.blocks(x)
        for i, total in enumerate(totals):
            for j, block in enumerate(blocks):
                if total is None:
                    total = weights[i, j] * block
                elif recorded or total.requires_grad:
                    total = torch.addcmul(total, weights[i, j], block)
                else:
                    total.addcmul_(weights[i, j], block)
            totals[i] = total

    def _identity(self, like: Tensor) -> Entries:
        one = torch.eye(self.fields, dtype=torch.float64, device=like.device)
        return tuple(tuple(row.unbind()) for row in one.unbind())


def coupled_part(field: VectorField) -> CoupledLinear:
    """A linear field of several states as P(X)h + forcing; refuses, with the reason, what is not of that form."""
    letter, coupling = coupled_in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    other = any(x != 0 for part in (coupling.constant, coupling.coupled) for x in part.values())
    source = None if other else _values(field, coupling.fields, coupling.source) if coupling.source else ()
    generator = _values(field, coupling.fields, coupling.linear)
    return CoupledLinear(operator_base(field.operator, letter), generator, source)


def _values(
    field: VectorField, fields: tuple[str, ...], terms: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]
) -> tuple[Entries, ...]:
    """The matrices of the coefficients by power of X; every word is a power."""
    powers = {pair: {len(word): c for word, c in words.items()} for pair, words in terms.items()}
    count = 1 + max((k for words in powers.values() for k in words), default=0)

    def value(i: str, j: str, k: int) -> Tensor:
        return field.value(powers.get((i, j), {}).get(k, sp.S.Zero)).to(torch.float64)

    return tuple(tuple(tuple(value(i, j, k) for j in fields) for i in fields) for k in range(count))
