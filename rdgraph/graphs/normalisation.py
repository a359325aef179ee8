"""Graph operators from an adjacency matrix; normalisation and self-loops are always explicit.

symmetric D^-1/2 A D^-1/2, row D^-1 A, column A D^-1, none A itself (L = D - A). A[i, j] is the weight of the edge
j -> i. D holds the sums of |A|: of rows, and of columns for `column`; `symmetric` needs A = A^T. So |A| <= 1 in the
2-norm, the inf-norm and the 1-norm respectively, for signed weights too, and D - A of an undirected graph has no
negative eigenvalue. A node without edges gets a zero row: with L = I - A its entry decays alone, which is defined
behaviour rather than NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.matrix_formats import check_sparse
from rdgraph.vocabulary.normalisations import NORMALISATIONS, dense_entries, find_normalisation

#: Two weights w_ij and w_ji that differ by less than this part of the larger one differ by rounding.
SYMMETRY_TOLERANCE = 1e-12


def dense_operator(adjacency: Any, normalisation: str = "symmetric", *, self_loops: float = 0.0) -> np.ndarray:
    """The operator A of a dense adjacency (n, n) with weights >= 0.

    >>> dense_operator([[0, 1, 0], [1, 0, 1], [0, 1, 0]], "row").sum(axis=1)
    array([1., 1., 1.])
    """
    weights = dense_adjacency(adjacency)
    _check(weights, normalisation, self_loops)
    weights = weights + self_loops * np.eye(len(weights))
    with np.errstate(over="ignore"):
        _finite(weights.sum(axis=1))
        _finite(weights.sum(axis=0))
    return dense_entries(find_normalisation(normalisation), weights)


def sparse_operator(adjacency: Any, normalisation: str = "symmetric", *, self_loops: float = 0.0) -> csr_array:
    """The operator A of a sparse adjacency (n, n), signed or not, as a new csr_array with sorted indices.

    >>> path = csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> sparse_operator(path, "column", self_loops=1.0).toarray().sum(axis=0)
    array([1., 1., 1.])
    """
    matrix = _looped(adjacency, normalisation, self_loops)
    record = find_normalisation(normalisation)
    assert record.entry is not None
    rows, columns = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices
    # A node without edges is divided by 1: its row is zero and stays zero.
    row, column = (np.where(d > 0, d, 1.0) for d in (absolute_degree(matrix, axis=axis) for axis in (1, 0)))
    matrix.data = np.asarray(record.entry(matrix.data, row[rows], row[columns], column[columns]), dtype=float)
    if record.identity:
        matrix = csr_array(matrix + record.identity * eye_array(matrix.shape[0], format="csr"))
        matrix.sort_indices()
    return matrix


def absolute_degree(matrix: Any, axis: int = 1) -> np.ndarray:
    """Sums of |weight| over the rows (axis 1, what a node collects) or the columns (axis 0) of a sparse matrix: (n,).

    >>> absolute_degree(csr_array([[0.0, -2.0], [1.0, 0.5]]))
    array([2. , 1.5])
    """
    with np.errstate(over="ignore"):
        return _finite(np.asarray(abs(matrix).sum(axis=axis), dtype=float))


def is_symmetric(matrix: Any) -> bool:
    """Whether a dense or sparse square matrix equals its transpose up to rounding, entry by entry.

    >>> is_symmetric(np.array([[0.0, 1.0], [1.0 + 1e-15, 0.0]])), is_symmetric(csr_array([[0.0, 1.0], [0.0, 0.0]]))
    (True, False)
    """
    if not issparse(matrix):
        return _agree(matrix, matrix.T)
    copy = csr_array(matrix, copy=True)
    copy.sum_duplicates()
    copy.eliminate_zeros()
    other = csr_array(copy.T)
    same_places = np.array_equal(copy.indptr, other.indptr) and np.array_equal(copy.indices, other.indices)
    return same_places and _agree(copy.data, other.data)


def dense_adjacency(graph: Any) -> np.ndarray:
    """A dense adjacency (n, n) with finite weights >= 0, from a Graph, networkx graph, scipy sparse matrix or array.

    An edge j -> i is the entry [i, j].
    """
    if issparse(getattr(graph, "adjacency", None)):
        graph = graph.adjacency
    if issparse(graph):
        check_sparse(graph, "the adjacency matrix")
    if hasattr(graph, "toarray"):
        graph = graph.toarray()
    elif hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        import networkx as nx

        graph = nx.to_numpy_array(graph).T
    try:
        weights = np.array(graph, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"expected a Graph, a networkx graph, a scipy sparse matrix or an (n, n) array, got {type(graph).__name__}"
        ) from None
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not len(weights):
        raise InvalidArgument(
            f"expected a square adjacency matrix, got shape {weights.shape}; pass an (n, n) array, n >= 1"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidArgument(
            "expected finite weights >= 0 in the adjacency matrix; remove NaN, inf and negative entries"
        )
    return weights


def _looped(adjacency: Any, normalisation: str, self_loops: float) -> csr_array:
    """A checked copy of the adjacency with `self_loops` added to its diagonal."""
    if not issparse(adjacency) or adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        got = f"shape {adjacency.shape}" if issparse(adjacency) else type(adjacency).__name__
        raise InvalidArgument(f"expected a square scipy sparse matrix, got {got}; pass Graph.adjacency")
    check_sparse(adjacency, "the adjacency matrix")
    matrix = csr_array(adjacency, dtype=float, copy=True)
    matrix.sum_duplicates()
    _check(matrix, normalisation, self_loops)
    if self_loops:
        matrix = csr_array(matrix + self_loops * eye_array(matrix.shape[0], format="csr"))
    return matrix


def _check(matrix: Any, normalisation: str, self_loops: float) -> None:
    if normalisation not in NORMALISATIONS:
        raise UnknownName("normalisation", str(normalisation), NORMALISATIONS)
    if not (np.isfinite(self_loops) and self_loops >= 0):
        raise InvalidArgument(f"expected a finite self-loop weight >= 0, got {self_loops}; 0 adds none")
    if find_normalisation(normalisation).is_symmetric and not is_symmetric(matrix):
        raise NotApplicable(
            f"expected an undirected graph for the {normalisation} normalisation, got edges whose reverse is missing "
            "or weighs differently; symmetrise it (Graph.undirected()), or choose row, column or none"
        )


def _agree(left: np.ndarray, right: np.ndarray) -> bool:
    gap, size = np.abs(left - right), np.maximum(np.abs(left), np.abs(right))
    return bool((gap <= SYMMETRY_TOLERANCE * size).all())


def _finite(degree: np.ndarray) -> np.ndarray:
    if not np.isfinite(degree).all():
        raise InvalidArgument(
            f"expected weights whose sums double precision holds, got an infinite degree at node "
            f"{int((~np.isfinite(degree)).argmax())}; divide all weights by the largest, which changes no normalised "
            "operator"
        )
    return degree
