"""A small matrix in its eigenbasis, where a polynomial of any degree costs two dense products.

Weights of an undirected graph can be balanced: with some s > 0, s_i A_ij = s_j A_ji, as for symmetric, row and column
normalisations. Then S^(1/2) A S^(-1/2) is symmetric, so that A = V diag(values) V^-1 with real eigenvalues, and V is no
worse conditioned than S^(1/2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor

from rdgraph.graphs.operator import Operator

#: Both estimated for an NVIDIA H200, not tuned: from the 26 us that a sparse product took (120 members, 183 nodes, 256
#: channels) and 45e12 operations a second of dense ones, two dense products of n nodes cost what n/24 sparse ones do.
MOST_NODES, NODES_PER_PRODUCT = 512, 24
#: The largest condition number of S^(1/2), by which rounding grows.
LARGEST_CONDITION = 100.0
#: By how many roundings the weights of both directions may differ.
ROUNDINGS = 64


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    """A = back diag(values) into, with all eigenvalues real: values (n,) in float64, back = V and into = V^-1."""

    values: Tensor
    into: Tensor
    back: Tensor
    _known: dict[tuple[int, str], Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, operator: Operator) -> Eigenbasis | None:
        """The eigenbasis of a small operator with shared weights that need no gradient and can be balanced, else None.

        >>> from rdgraph.graphs.generators import star
        >>> Eigenbasis.of(star(3).operator("row")).values.round(decimals=6).abs().tolist()
        [1.0, 0.0, 1.0]
        """
        weights = operator.weights
        if weights.ndim != 1 or weights.requires_grad or not 1 < operator.num_nodes <= MOST_NODES:
            return None
        matrix = operator.dense().double().cpu().numpy()
        root = _balance(matrix, ROUNDINGS * torch.finfo(weights.dtype).eps)
        if root is None or root.max() > LARGEST_CONDITION * root.min():
            return None
        balanced = root[:, None] * matrix / root
        values, vectors = np.linalg.eigh((balanced + balanced.T) / 2)
        into, back = (
            torch.tensor(half, dtype=torch.promote_types(weights.dtype, torch.float32), device=weights.device)
            for half in (vectors.T * root, vectors / root[:, None])
        )
        return cls(torch.tensor(values, dtype=torch.float64, device=weights.device), into, back)

    def pays(self, degree: int) -> bool:
        """Whether a polynomial of that degree is long enough for dense products."""
        return degree * NODES_PER_PRODUCT >= len(self.values)

    def apply(self, series: Tensor, x: Tensor, kind: str) -> Tensor:
        """sum_k series[k] b_k(A) x; series (K + 1, 1 or B, 1, 1 or d), x (B, n, d)."""
        key, wide = (len(series), kind), self.into.dtype
        if key not in self._known:  # once, so that captured epochs do not compute them
            self._known[key] = basis_values(self.values, *key).T.to(wide)
        gains = self._known[key] @ series[:, :, 0].transpose(0, 1).to(wide)
        return (self.back @ (gains * (self.into @ x.to(wide)))).to(x.dtype)


def basis_values(points: Tensor, count: int, kind: str) -> Tensor:
    """b_k at some points (m,), (count, m): powers ("taylor") or Chebyshev polynomials ("chebyshev").

    >>> basis_values(torch.tensor([0.5]), 4, "chebyshev").ravel()
    tensor([ 1.0000,  0.5000, -0.5000, -1.0000])
    """
    rows = [torch.ones_like(points), points]
    for _ in range(2, count):
        rows.append(2 * points * rows[-1] - rows[-2] if kind == "chebyshev" else points * rows[-1])
    return torch.stack(rows[:count])


def _balance(matrix: np.ndarray, tolerance: float) -> np.ndarray | None:
    """s^(1/2) with s_i a_ij = s_j a_ji up to a relative tolerance, largest 1 in every component; None if there is none.

    The ratios along the edges of a spanning tree of every component give s, which all other edges must confirm.
    """
    if ((matrix != 0) != (matrix.T != 0)).any():
        return None
    sparse = csr_array(matrix)
    logarithm = np.zeros(len(matrix))
    count, component = connected_components(sparse, directed=False)
    for number in range(count):
        order, before = breadth_first_order(sparse, int(np.flatnonzero(component == number)[0]), directed=False)
        for node in order[1:]:
            ratio = matrix[before[node], node] / matrix[node, before[node]]
            if not ratio > 0:
                return None
            logarithm[node] = logarithm[before[node]] + np.log(ratio)
        logarithm[order] -= logarithm[order].max()
    root = np.exp(logarithm / 2)
    balanced = root[:, None] * matrix / root
    allowed = tolerance * (1 + np.abs(logarithm).max()) * np.abs(balanced).max(initial=0.0)
    return root if (np.abs(balanced - balanced.T) <= allowed).all() else None
