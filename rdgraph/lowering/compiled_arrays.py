"""What a compiled field reads: arrays of coefficients, matrices, operators and starts, with the members' distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from rdgraph.graphs.operator import Operator
from rdgraph.kernels.row_runs import RowRuns, row_runs
from rdgraph.lowering.torch_source import coefficient_code, evaluated, matrix_code
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System


class HandedArray(NamedTuple):
    """An array that is kept alive, and how far the values of its members lie apart; 0 where they share them."""

    values: Any
    stride: int

    @property
    def address(self) -> int:
        values = self.values
        return int(values.data_ptr() if isinstance(values, Tensor) else values.ctypes.data)


_NOTHING = HandedArray(np.zeros(1), 0)


@dataclass(frozen=True, eq=False)
class FieldParts:
    """What a compiled field is made of: the operators by letter, coefficients that broadcast against (*batch, n, d)."""

    system: System
    operators: Mapping[str, Operator]
    coefficients: Mapping[str, Tensor]
    batch: tuple[int, ...]
    start: Tensor | None

    @property
    def nodes(self) -> int:
        return self.operators["A"].num_nodes

    @property
    def dtype(self) -> torch.dtype:
        return self.operators["A"].dtype

    @property
    def has_own_weights(self) -> bool:
        """Whether members have edge weights of their own."""
        return any(operator.batch for operator in self.operators.values())

    def axes(self) -> tuple[tuple[str, tuple[bool, bool]], ...]:
        """Whether each coefficient, as it was given, varies along the nodes and along the channels."""
        found = []
        for name, value in self.coefficients.items():
            if self.system.letters[name] is not Kind.MATRIX:
                rows, columns = (*(1, 1), *value.shape)[-2:]
                found.append((name, (rows > 1, columns > 1)))
        return tuple(found)

    def coefficient_array(self, expression: sp.Expr, axes: tuple[bool, bool], channels: int) -> HandedArray:
        """A coefficient with the axes that its source reads."""
        value = self._evaluated(coefficient_code(expression))
        value = value.reshape(*(1,) * (2 - value.ndim), *value.shape)
        own = (self.nodes if axes[0] else 1, channels if axes[1] else 1)
        return self._with_members(value.expand(*value.shape[:-2], *own))

    def matrix_array(self, matrix: sp.Expr) -> HandedArray:
        """A mixing matrix (d, d), computed from those that were given."""
        return self._with_members(self._evaluated(matrix_code(matrix)))

    def _evaluated(self, code: str) -> Tensor:
        known = {name: value.detach() for name, value in self.coefficients.items()}
        return torch.as_tensor(evaluated(code, known), dtype=self.dtype)

    def _with_members(self, value: Tensor) -> HandedArray:
        """A value (n, d), or one for every member (*batch, n, d), in one piece."""
        if value.ndim == 2:
            return HandedArray(value.contiguous(), 0)
        own = value.shape[-2:]
        return HandedArray(value.expand(*self.batch, *own).contiguous(), own.numel())


def start_array(start: Tensor | None) -> HandedArray:
    """The start of trajectories, (*batch, n, d); nothing where none is known."""
    if start is None:
        return _NOTHING
    flat = start.detach().contiguous()
    return HandedArray(flat, flat.shape[-2:].numel() if flat.ndim > 2 else 0)


def operator_arrays(operator: Operator, runs: RowRuns | None) -> list[HandedArray]:
    """The rows of an operator, compressed or in runs."""
    if runs is None:
        weights = operator.weights.detach()
        stride = operator.num_edges if operator.batch else 0
        found = [HandedArray(operator.pattern.indptr, 0), HandedArray(operator.pattern.indices, 0)]
        found.append(HandedArray(weights.contiguous(), stride))
    else:
        count = np.array([runs.count], dtype=np.int64)
        parts = (count, runs.starts, runs.entries, runs.offsets, runs.degrees, runs.weights)
        found = [HandedArray(np.ascontiguousarray(part), 0) for part in parts]
    return found


def degree_array(operator: Operator) -> HandedArray:
    """The degrees (n, 1) or (*batch, n, 1) of an operator with L = D - A."""
    assert operator.degree is not None
    degree = operator.degree.detach().to(operator.dtype).contiguous()
    return HandedArray(degree, operator.num_nodes if degree.ndim > 2 else 0)


_runs: WeakKeyDictionary[Operator, tuple[int | None, RowRuns | None]] = WeakKeyDictionary()


def runs_of(operator: Operator) -> RowRuns | None:
    """The runs of an operator's rows where they pay, looked for once; its members must share their weights."""
    changes = None if operator.weights.is_inference() else operator.weights._version
    known = _runs.get(operator)
    if known is None or changes is None or known[0] != changes:
        pattern, weights = operator.pattern, operator.weights.detach().numpy()
        runs = row_runs(pattern.indptr.numpy(), pattern.indices.numpy(), weights)
        known = _runs[operator] = changes, runs if runs.pays else None
    return known[1]
