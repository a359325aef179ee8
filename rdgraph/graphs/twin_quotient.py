"""Nodes with the same neighbours, taken together: polynomials of A on the quotient graph.

Let A = C + M with C diagonal and M without a diagonal. Nodes are twins where they have the same row and the same column
in M and the same entry in C. With P the indicator of the groups of twins and a bar for their means,

    f(A) x = f(C) (x - P mean(x)) + P f(Q) mean(x),    Q = C + the rows of M summed over the groups:

differences between twins are changed by C alone, and their mean moves on the quotient graph. Exact, and cheaper where
many nodes are twins: of Squirrel's 401,907 entries 182,053 remain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from torch import Tensor

from rdgraph.graphs.eigenbasis import basis_values
from rdgraph.graphs.kernels.rectangular_matrix import Rectangle
from rdgraph.graphs.operator import Operator

#: Graphs with more nodes are not searched for twins.
MOST_NODES = 200_000
#: The quotient is used where it has at most this share of the entries.
WORTHWHILE = 0.7


@dataclass(frozen=True, eq=False)
class Quotient:
    """The groups of twins of an operator: Q on g groups, the loop weight of every group, means and spreading."""

    operator: Operator
    loops: Tensor
    means: Rectangle
    shares: Tensor
    spread: Rectangle
    ones: Tensor

    @classmethod
    def of(cls, operator: Operator) -> Quotient | None:
        """The quotient where it pays: shared weights that need no gradient, and enough twins; else None.

        >>> from rdgraph.graphs.generators import star
        >>> Quotient.of(star(100).operator("row", self_loops=1.0)).operator.num_nodes
        2
        """
        weights = operator.weights
        if weights.ndim != 1 or weights.requires_grad or operator.degree is not None:
            return None
        if not 1 < operator.num_nodes <= MOST_NODES:
            return None
        pattern = operator.pattern
        parts = (weights.detach().double(), pattern.indices, pattern.indptr)
        matrix = csr_array(tuple(t.cpu().numpy() for t in parts), shape=(operator.num_nodes,) * 2)
        group = _groups(matrix)
        count = int(group.max()) + 1
        member = csr_array((np.ones(len(group)), group, np.arange(len(group) + 1)), shape=(len(group), count))
        first = np.full(count, -1)
        first[group[::-1]] = np.arange(len(group))[::-1]
        loops = matrix.diagonal()[first]
        reduced = csr_array(_off_diagonal(matrix)[first] @ member + diags_array(loops))
        if reduced.nnz > WORTHWHILE * matrix.nnz:
            return None
        return cls._make(operator, reduced, loops, member)

    @classmethod
    def _make(cls, operator: Operator, reduced: csr_array, loops: np.ndarray, member: csr_array) -> Quotient:
        make = partial(torch.tensor, dtype=operator.dtype, device=operator.device)
        reduced.sort_indices()
        smaller = Operator.from_csr(reduced.indptr, reduced.indices, make(reduced.data)).prepare()
        mean = csr_array(member.T / member.sum(0)[:, None])
        mean.sort_indices()
        return cls(
            smaller, torch.tensor(loops, dtype=torch.float64, device=operator.device),
            Rectangle.make(mean, operator.device), make(mean.data)[None],
            Rectangle.make(member, operator.device), make(member.data)[None],
        )  # fmt: skip

    def basis(self, count: int, kind: str) -> Tensor:
        """b_k of the loops, (count, g): powers or Chebyshev polynomials."""
        return basis_values(self.loops, count, kind)

    def mean(self, x: Tensor) -> Tensor:
        """Means over the twins, (B, n, d) to (B, g, d)."""
        return self.means.product(self.shares, x)

    def assemble(self, x: Tensor, mean: Tensor, moved: Tensor, alone: Tensor) -> Tensor:
        """alone*(x - mean) + moved, with everything but x given on the groups (B, g, d)."""
        factor, rest = (self.spread.product(self.ones, t) for t in (alone, moved - alone * mean))
        return torch.addcmul(rest, factor, x)


def _off_diagonal(matrix: csr_array) -> csr_array:
    out = csr_array(matrix - diags_array(matrix.diagonal()))
    out.eliminate_zeros()
    out.sort_indices()
    return out


def _groups(matrix: csr_array) -> np.ndarray:
    """The number of every node's group of twins, (n,), counted by first appearance."""
    rows = _off_diagonal(matrix)
    columns = csr_array(rows.T)
    columns.sort_indices()
    loops = matrix.diagonal()
    known: dict[tuple[bytes, ...], int] = {}
    return np.array([known.setdefault(_key(i, rows, columns, loops), len(known)) for i in range(matrix.shape[0])])


def _key(i: int, rows: csr_array, columns: csr_array, loops: np.ndarray) -> tuple[bytes, ...]:
    parts = []
    for half in (rows, columns):
        here = slice(half.indptr[i], half.indptr[i + 1])
        parts += [half.indices[here].tobytes(), half.data[here].tobytes()]
    return (*parts, loops[i].tobytes())
