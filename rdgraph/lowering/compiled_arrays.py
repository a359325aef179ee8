"""What a compiled field reads: arrays of coefficients, matrices, operators and starts, with the members' distances."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from rdgraph.graphs.operator import Operator
from rdgraph.kernels.row_runs import RowRuns, row_runs
from rdgraph.lowering.torch_source import matrix_code, safe_name
from rdgraph.lowering.vector_field import VectorField
from rdgraph.syntax.tree import Kind


class HandedArray(NamedTuple):
    """An array that is kept alive, and how far the values of its members lie apart; 0 where they share them."""

    values: Any
    stride: int

    @property
    def address(self) -> int:
        values = self.values
        return int(values.data_ptr() if isinstance(values, Tensor) else values.ctypes.data)


_NOTHING = HandedArray(np.zeros(1), 0)


def coefficient_axes(field: VectorField) -> tuple[tuple[str, tuple[bool, bool]], ...]:
    """Whether each coefficient, as it was given, varies along the nodes and along the channels."""
    found = []
    for name, value in field.coefficients.items():
        if field.system.letters[name] is not Kind.MATRIX:
            rows, columns = (*(1, 1), *value.shape)[-2:]
            found.append((name, (rows > 1, columns > 1)))
    return tuple(found)


def coefficient_array(field: VectorField, expression: sp.Expr, axes: tuple[bool, bool], channels: int) -> HandedArray:
    """A coefficient with the axes that its source reads."""
    value = field.value(expression).detach()
    value = value.reshape(*(1,) * (2 - value.ndim), *value.shape)
    own = (field.operator.num_nodes if axes[0] else 1, channels if axes[1] else 1)
    return _with_members(value.expand(*value.shape[:-2], *own), field)


def matrix_array(field: VectorField, matrix: sp.Expr) -> HandedArray:
    """A mixing matrix (d, d), computed from those that were given."""
    names = {safe_name(name): value.detach() for name, value in field.coefficients.items()}
    return _with_members(eval(compile(matrix_code(matrix), "<matrix>", "eval"), {"torch": torch, **names}), field)


def start_array(start: Tensor | None) -> HandedArray:
    """The start of trajectories, (*batch, n, d); nothing where none is known."""
    if start is None:
        return _NOTHING
    flat = start.detach().contiguous()
    return HandedArray(flat, flat[..., :, :].numel() // max(1, flat.shape[:-2].numel()) if flat.ndim > 2 else 0)


def operator_arrays(operator: Operator, runs: RowRuns | None) -> list[HandedArray]:
    """The rows of an operator, compressed or in runs; then its degrees where it has them."""
    if runs is None:
        weights = operator.weights.detach()
        stride = operator.num_edges if operator.batch else 0
        found = [HandedArray(operator.pattern.indptr, 0), HandedArray(operator.pattern.indices, 0)]
        found.append(HandedArray(weights.contiguous(), stride))
    else:
        count = np.array([runs.count], dtype=np.int64)
        parts = (count, runs.starts, runs.entries, runs.degrees, runs.offsets, runs.weights)
        found = [HandedArray(np.ascontiguousarray(part), 0) for part in parts]
    if operator.degree is not None:
        degree = operator.degree.detach().to(operator.dtype).contiguous()
        found.append(HandedArray(degree, operator.num_nodes if degree.ndim > 2 else 0))
    return found


_runs: WeakKeyDictionary[Operator, tuple[int, RowRuns | None]] = WeakKeyDictionary()


def runs_of(operator: Operator) -> RowRuns | None:
    """The runs of an operator's rows where they pay, looked for once; its members must share their weights."""
    changes = operator.weights._version
    known = _runs.get(operator)
    if known is None or known[0] != changes:
        pattern, weights = operator.pattern, operator.weights.detach().numpy()
        runs = row_runs(pattern.indptr.numpy(), pattern.indices.numpy(), weights)
        known = _runs[operator] = changes, runs if runs.pays else None
    return known[1]


def _with_members(value: Tensor, field: VectorField) -> HandedArray:
    """A value (n, d), or one for every member (*batch, n, d), in one piece."""
    value = value.to(field.dtype)
    if value.ndim == 2:
        return HandedArray(value.contiguous(), 0)
    own = value.shape[-2:]
    return HandedArray(value.expand(*field.batch, *own).contiguous(), own.numel())
