"""Sparse matrices from outside, checked entry by entry: scipy's compiled code believes every index it is given."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array


# ---------------------------------------------------------------------- matrix formats
def check_sparse(matrix: Any, what: str) -> None:
    """Refuse a scipy sparse matrix whose arrays do not fit together or point outside of it; `what` names it.

    Checks the formats that hold arrays of indices: csr, csc, bsr and coo. scipy checks the others when it converts
    them.
    """
    rows, columns = matrix.shape
    if matrix.format in ("csr", "csc"):
        major, minor = (rows, columns) if matrix.format == "csr" else (columns, rows)
        check_compressed(matrix.data, matrix.indices, matrix.indptr, (major, minor), what)
    elif matrix.format == "bsr":
        height, width = matrix.blocksize
        check_compressed(matrix.data, matrix.indices, matrix.indptr, (rows // height, columns // width), what)
    elif matrix.format == "coo":
        if len({len(matrix.data), *(len(c) for c in matrix.coords)}) > 1:
            raise _error(what, "as many entries as rows and columns", "arrays of different lengths")
        for name, numbers, size in zip(("rows", "columns"), matrix.coords, matrix.shape, strict=True):
            _check_range(numbers, size, name, what)


def check_compressed(data: Any, indices: Any, indptr: Any, shape: Sequence[int], what: str) -> None:
    """Refuse the three arrays of a csr matrix of that shape (of a csc matrix: of its transpose) unless they form one.

    indptr (rows + 1,) rises from 0 to the number of entries, indices and data are at least as long, and the index of
    every entry lies in 0..columns - 1.
    """
    rows, columns = shape
    for name, array in (("indices", indices), ("indptr", indptr)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise _error(what, f"whole numbers (k,) as {name}", f"{array.dtype} of shape {array.shape}")
    if rows < 0 or columns < 0 or indptr.size != rows + 1:
        raise _error(what, f"indptr of length {rows + 1} for the shape {(rows, columns)}", f"{indptr.size} numbers")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise _error(what, "indptr that rises from 0", "one that does not")
    if data.ndim == 0 or not len(data) == indices.size >= indptr[-1]:
        got = f"{data.shape[:1]} and {indices.shape} for an indptr that ends at {indptr[-1]}"
        raise _error(what, "as many data and indices as indptr says", got)
    _check_range(indices[: indptr[-1]], columns, "columns", what)


def make_csr(data: Any, indices: Any, indptr: Any, shape: Sequence[int], what: str) -> csr_array:
    """The csr matrix of three arrays that come from a file: numbers, checked entry by entry, and finite.

    >>> make_csr(np.array([1.5]), np.array([2]), np.array([0, 1]), (1, 3), "x").toarray()
    array([[0. , 0. , 1.5]])
    """
    check_compressed(data, indices, indptr, shape, what)
    if indices.size != indptr[-1]:
        raise _error(what, f"no more than the {indptr[-1]} entries of indptr", f"{indices.size}")
    if data.ndim != 1 or data.dtype.kind not in "biuf" or not np.isfinite(data).all():
        raise _error(what, "finite numbers (k,) as data", f"{data.dtype} of shape {data.shape}, or infinite ones")
    return csr_array((data, indices, indptr), shape=tuple(shape))


def _check_range(numbers: Any, size: int, name: str, what: str) -> None:
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < size):
        raise _error(what, f"{name} in 0..{size - 1}", f"{numbers.min()}..{numbers.max()}")


def _error(what: str, expected: str, got: str) -> InvalidArgument:
    return InvalidArgument(f"expected {expected} in {what}, got {got}; build the sparse matrix again")


# ---------------------------------------------------------------------- interchange
# Graphs of other libraries as edges, and back: networkx, PyTorch Geometric.


def networkx_edges(graph: Any, weight: str | None) -> tuple[np.ndarray, list[Hashable], list[Any]]:
    """(edge_index, names in the graph's own order, weights); an undirected edge goes both ways, a self-loop once.

    >>> import networkx as nx
    >>> networkx_edges(nx.DiGraph([("a", "b")]), None)
    (array([[0],
           [1]]), ['a', 'b'], [1.0])
    """
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_directed")):
        raise InvalidArgument(f"expected a networkx graph, got {type(graph).__name__}; see Graph.from_edges")
    names = list(graph)
    number = {name: k for k, name in enumerate(names)}
    attributes = [values for *_, values in graph.edges(data=True)]
    if weight not in (None, "weight") and attributes and not any(weight in values for values in attributes):
        raise InvalidArgument(f"expected edges with the attribute {weight!r}, got none; weight=None counts edges")
    weights = [1.0 if weight is None else values.get(weight, 1.0) for values in attributes]
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2).T
    if graph.is_directed():
        return pairs, names, weights
    proper = np.flatnonzero(pairs[0] != pairs[1])
    both = np.concatenate([pairs, pairs[::-1, proper]], axis=1)
    return both, names, weights + [weights[k] for k in proper]


def networkx_graph(edge_index: np.ndarray, weight: np.ndarray, names: Sequence[Hashable], *, directed: bool) -> Any:
    """A networkx Graph, or a DiGraph where directed, of edges (2, E) between named nodes."""
    import networkx as nx

    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    edges = zip(*edge_index.tolist(), weight.tolist(), strict=True)
    graph.add_weighted_edges_from((names[u], names[v], w) for u, v, w in edges)
    return graph


def pyg_edges(data: Any) -> tuple[Any, Any, Any]:
    """(edge_index, num_nodes or None, weight or None) of a `torch_geometric.data.Data` or anything like it."""
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None:
        raise InvalidArgument(f"expected an object with edge_index, got {type(data).__name__}; see Graph.from_edges")
    weight = getattr(data, "edge_weight", None)
    if weight is None and (attributes := getattr(data, "edge_attr", None)) is not None:
        weight = as_array(attributes, "edge_attr")
        if weight.ndim == 2 and weight.shape[1] == 1:
            weight = weight[:, 0]
        elif weight.ndim != 1:
            raise InvalidArgument(
                f"expected an edge_attr of one column, got shape {weight.shape}; choose the weight yourself: "
                "Graph.from_edges(data.edge_index, data.num_nodes, weight)"
            )
    return edge_index, getattr(data, "num_nodes", None), weight
