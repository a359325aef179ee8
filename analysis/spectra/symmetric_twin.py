"""The symmetric matrix S^1/2 L S^-1/2 with the eigenvalues of L, where s_i A_ij = s_j A_ji for some s > 0."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator


def symmetric_laplacian(op: Operator) -> tuple[csr_array, np.ndarray, float]:
    """S^1/2 L S^-1/2 as a symmetric matrix, the scale s (n,) and an upper bound of its eigenvalues in size.

    >>> import rdgraph as rd
    >>> symmetric_laplacian(rd.generators.path(3).operator("row"))[1]  # the degrees, up to a factor per component
    array([1., 2., 1.])
    """
    matrix = scipy_matrix(op)
    scale = reversing_scale(matrix, tolerance=float(np.sqrt(torch.finfo(op.dtype).eps)))
    if scale is None:
        raise NotApplicable(
            f"expected an operator with s_i A_ij = s_j A_ji for some s > 0, got {op!r}; make the graph undirected "
            "(Graph.undirected()): directed graphs and free weights have no real orthogonal spectrum"
        )
    if not op.record.is_symmetric:
        back = csr_array(matrix.T)
        back.sort_indices()
        matrix = csr_array(
            (np.sign(matrix.data) * np.sqrt(np.abs(matrix.data * back.data)), matrix.indices, matrix.indptr),
            shape=matrix.shape,
        )
    diagonal = np.ones(op.num_nodes) if op.degree is None else op.degree.detach().double().cpu().numpy()[:, 0]
    laplacian = csr_array(diags_array(diagonal) - matrix)
    norm = 2.0 if op.record.norm is not None else float(abs(laplacian).sum(axis=1).max())
    return laplacian, scale, max(norm, np.finfo(float).tiny)


def scipy_matrix(op: Operator) -> csr_array:
    """A as a scipy matrix in float64, rows are targets; for operators without members of their own."""
    if op.batch:
        raise InvalidArgument(f"expected one set of weights, got those of {op.batch} members; pass op of one member")
    parts = (x.detach().cpu().numpy() for x in (op.weights.double(), op.pattern.indices, op.pattern.indptr))
    matrix = csr_array(tuple(parts), shape=(op.num_nodes, op.num_nodes))
    if not np.isfinite(matrix.data).all():
        raise InvalidArgument("expected finite edge weights, got NaN or infinity; mend the weights first")
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def reversing_scale(matrix: csr_array, tolerance: float) -> np.ndarray | None:
    """s > 0 (n,) with s_i A_ij = s_j A_ji, 1 at the first node of every component; None where there is none.

    >>> reversing_scale(csr_array([[0.0, 1.0], [0.25, 0.0]]), 1e-8)
    array([1., 4.])
    >>> reversing_scale(csr_array([[0.0, 1.0], [0.0, 0.0]]), 1e-8) is None
    True
    """
    back = csr_array(matrix.T)
    back.sort_indices()
    same_places = np.array_equal(matrix.indptr, back.indptr) and np.array_equal(matrix.indices, back.indices)
    if not same_places or (matrix.data * back.data < 0).any():
        return None
    ratio = csr_array((matrix.data / back.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    scale = _spread_along_tree(matrix, ratio)
    rows = np.repeat(np.arange(len(scale)), np.diff(matrix.indptr))
    here, there = scale[rows] * matrix.data, scale[matrix.indices] * back.data
    fits = np.abs(here - there) <= tolerance * np.maximum(np.abs(here), np.abs(there))
    return scale if fits.all() else None


def _spread_along_tree(matrix: csr_array, ratio: csr_array) -> np.ndarray:
    """s_j = s_i A_ij / A_ji from the first node of every component along a breadth-first tree, in one search."""
    n = matrix.shape[0]
    first = np.unique(connected_components(matrix, directed=False)[1], return_index=True)[1]
    root = csr_array((np.ones(len(first)), (np.zeros_like(first), first)), shape=(1, n))
    order, parent = breadth_first_order(block_array([[matrix, root.T], [root, None]], format="csr"), n, directed=False)
    nodes = order[1 + len(first) :]
    steps = np.asarray(ratio[parent[nodes], nodes]).ravel().tolist() if len(nodes) else []
    scale = [1.0] * n
    for node, above, step in zip(nodes.tolist(), parent[nodes].tolist(), steps, strict=True):
        scale[node] = scale[above] * step
    return np.array(scale)
