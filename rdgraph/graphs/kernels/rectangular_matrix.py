"""Sparse matrices that need not be square, as the differentiable product needs them: rows, columns, and both orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.kernels.row_order import Rows


@dataclass(frozen=True, eq=False)
class Rectangle:
    """Where the entries of a matrix (n, m) are, on a device; their values are arguments of every product.

    >>> matrix = csr_array([[0.0, 2.0], [1.0, 0.0], [0.0, 1.0]])
    >>> shape = Rectangle.make(matrix)
    >>> shape.product(torch.tensor(matrix.data)[None], torch.tensor([[[1.0], [10.0]]], dtype=torch.float64)).ravel()
    tensor([20.,  1., 10.], dtype=torch.float64)
    """

    tensors: list[Tensor]

    @classmethod
    def make(cls, matrix: csr_array, device: Any = None, heavy: int | None = None) -> Rectangle:
        """From scipy's compressed rows with sorted columns; `heavy` as in `Rows.arrange`."""
        order = csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr()
        order.sort_indices()
        places = torch.tensor(order.data, dtype=torch.int64, device=device)
        inverse = torch.empty_like(places)
        inverse[places] = torch.arange(len(places), device=device)
        halves = [t for half in (matrix, order) for t in _rows(half, device, heavy)]
        return cls([*halves, places, inverse])

    def product(self, values: Tensor, x: Tensor) -> Tensor:
        """The matrix with values (1 or B, entries) times x (B, m, d): (B, n, d)."""
        tracked = torch.is_grad_enabled() and (x.requires_grad or values.requires_grad)
        call = ops.spmm if tracked else ops.compute_spmm
        return call(self.tensors, values, x.contiguous(), None, None, [], [])


def _rows(matrix: csr_array, device: Any, heavy: int | None) -> list[Tensor]:
    indptr, indices = (torch.tensor(a, dtype=torch.int32, device=device) for a in (matrix.indptr, matrix.indices))
    rows = Rows(indptr, indices)
    return (rows.arrange(heavy) if rows.indptr.is_cuda else rows).tensors
