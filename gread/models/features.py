"""`Features`: node features on a device, dense or sparse, multiplied by one weight matrix per member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import Tensor

from gread.kernels.training_operations import dropout
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.rectangular_matrix import Rectangle

#: Nodes with more than HEAVY entries get a separate program in the product if there are at most FEW members.
HEAVY, FEW = 32, 64


@dataclass(frozen=True, eq=False)
class Features:
    """X of shape (n, f): `values` (1 or M, n, f) dense, or (1, entries) at the entries of a sparse `pattern`.

    Dropout acts on the stored entries: a dropped zero is a zero.

    >>> X = Features.make(csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> X @ torch.tensor([[[1.0], [10.0]]])
    tensor([[[20.],
             [ 1.]]])
    """

    values: Tensor
    shape: tuple[int, int]
    pattern: Rectangle | None = None

    @classmethod
    def make(cls, x: Any, device: Any = None, dtype: torch.dtype = torch.float32, members: int = 1) -> Features:
        """Features from numpy (n, f), or (M, n, f) with separate features for every member, or scipy sparse (n, f).

        With few `members`, nodes with many entries are spread over more programs.
        """
        if not issparse(x):
            array = np.asarray(x)
            if array.ndim not in (2, 3):
                raise InvalidArgument(f"expected features (nodes, features), got shape {array.shape}")
            values = torch.tensor(array, dtype=dtype, device=device)
            values = values if values.ndim == 3 else values[None]
            return cls(values.contiguous(), (values.shape[1], values.shape[2]))
        matrix = csr_array(x)
        matrix.sort_indices()
        values = torch.tensor(matrix.data, dtype=dtype, device=device)[None]
        return cls(
            values,
            (int(matrix.shape[0]), int(matrix.shape[1])),
            Rectangle.make(matrix, device, HEAVY if members <= FEW else None),
        )

    def dropped(self, seeds: Tensor, step: Tensor, rates: Tensor, stream: int) -> Features:
        """The features after dropout, drawn separately for every member."""
        return Features(dropout(self.values, seeds, step, rates, stream), self.shape, self.pattern)

    def __matmul__(self, weight: Tensor) -> Tensor:
        """X W for weights (M, f, d): (M, n, d)."""
        return self.values @ weight if self.pattern is None else self.pattern.product(self.values, weight)
