"""Weights held against the normalisation that they are said to have, and the norms that follow from it.

Weights of `row` have rows whose absolute values add up to 1 (or to 0, at a node without edges), `column` columns;
`symmetric` weights equal their transpose and |A| has no eigenvalue above 1. Integrators rely on |A| <= 1 in the
maximum norm, the 1-norm and the 2-norm: a series is cut where that norm says that nothing is left.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE
from rdgraph.normalisations.normalisation import Normalisation
from rdgraph.normalisations.registry import find_normalisation

#: Sums and eigenvalues may differ from 1 by this part: of 512 products it changes the bound of the error by half a
#: percent. Weights of a coarse precision may differ by its rounding.
TOLERANCE, ROUNDING = 1e-5, 2.0
#: Matrices up to this size get all their eigenvalues at once.
_DENSE = 64


def absolute_sums(places: Tensor, weights: Tensor, nodes: int) -> Tensor:
    """Sums of |weight| (*batch, E) over equal `places` (E,), differentiable: (*batch, n).

    >>> absolute_sums(torch.tensor([0, 0, 2]), torch.tensor([1.0, -2.0, 3.0]), 3)
    tensor([3., 0., 3.])
    """
    zero = weights.new_zeros((*weights.shape[:-1], nodes))
    return zero.index_add(-1, places.long(), weights.abs())


def check_normalisation(rows: Tensor, columns: Tensor, weights: Tensor, nodes: int, normalisation: str) -> None:
    """Raise unless weights (*batch, E) of the entries [rows, columns] are what a normalisation makes of weights."""
    known = weights.detach().double()
    tolerance = max(TOLERANCE, ROUNDING * torch.finfo(weights.dtype).eps)
    record = find_normalisation(normalisation)
    if record.row_stochastic or record.norm == "inf":
        _check_sums(absolute_sums(rows, known, nodes), record, "row", tolerance)
    if record.column_stochastic or record.norm == "1":
        _check_sums(absolute_sums(columns, known, nodes), record, "column", tolerance)
    if record.is_symmetric:
        _check_symmetry(rows.long(), columns.long(), known, nodes, normalisation, torch.finfo(weights.dtype).eps)
    if record.norm == "2":
        _check_radius(rows, columns, known, nodes, normalisation, tolerance)


def _check_sums(sums: Tensor, record: Normalisation, word: str, tolerance: float) -> None:
    stochastic = record.row_stochastic if word == "row" else record.column_stochastic
    fits = ((sums - 1).abs() <= tolerance) | (sums == 0) if stochastic else sums <= 1 + tolerance
    wrong = ~fits
    if bool(wrong.any()):
        node = int(wrong.nonzero()[0, -1])
        what = "sum to 1" if stochastic else "sum to at most 1"
        raise InvalidArgument(
            f"expected weights of the normalisation {record.name}, whose {word}s {what} in absolute value, "
            f"got {float(sums[wrong][0]):.6g} at node {node}; divide by the sums, or call the weights 'free'"
        )


def _check_symmetry(rows: Tensor, columns: Tensor, weights: Tensor, nodes: int, name: str, eps: float) -> None:
    there, back = rows * nodes + columns, columns * nodes + rows
    order, reverse = torch.argsort(there, stable=True), torch.argsort(back, stable=True)
    mine, other = weights[..., order], weights[..., reverse]
    tolerance = max(SYMMETRY_TOLERANCE, 8 * eps)
    is_mutual = torch.equal(there[order], back[reverse])
    if not is_mutual or not bool(((mine - other).abs() <= tolerance * torch.maximum(mine.abs(), other.abs())).all()):
        raise InvalidArgument(
            f"expected weights of the normalisation {name}, equal for both directions of every edge, got others; "
            "symmetrise them, or call the weights 'free'"
        )


def _check_radius(rows: Tensor, columns: Tensor, weights: Tensor, nodes: int, name: str, tolerance: float) -> None:
    if not weights.numel():
        return
    places = (rows.cpu().numpy(), columns.cpu().numpy())
    for member in weights.abs().reshape(-1, weights.shape[-1]).cpu().numpy():
        radius = spectral_radius(csr_array((member, places), shape=(nodes, nodes)))
        if not radius <= 1 + tolerance:
            raise InvalidArgument(
                f"expected weights of the normalisation {name}, with eigenvalues of |A| up to 1, got {radius:.6g}; "
                "divide w_ij by sqrt(d_i d_j), or call the weights 'free'"
            )


def spectral_radius(matrix: csr_array) -> float:
    """The largest eigenvalue of a symmetric matrix with entries >= 0, or 1 where that bounds it, up to the tolerance.

    For v > 0, max (A v)_i/v_i is an upper bound (Collatz, Wielandt); with v = sqrt(entries of the row) it is 1 for
    every unweighted graph.

    >>> spectral_radius(csr_array([[0.0, 0.5], [0.5, 0.0]])), spectral_radius(csr_array([[0.0, 3.0], [3.0, 0.0]]))
    (1.0, 3.0)
    """
    if not np.isfinite(matrix.data).all():
        return float("nan")
    start = np.sqrt(np.maximum(np.diff(matrix.indptr), 1.0))
    if any(float((matrix @ v / v).max()) <= 1 + TOLERANCE for v in (np.ones(len(start)), start)):
        return 1.0
    if len(start) <= _DENSE:
        return float(np.linalg.eigvalsh(matrix.toarray())[-1])
    return float(eigsh(matrix, k=1, which="LA", v0=start, tol=1e-7, return_eigenvectors=False)[0])
