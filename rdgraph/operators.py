"""Graph operators from an adjacency matrix; normalisation and self-loops are always explicit.

symmetric D^-1/2 A D^-1/2, row D^-1 A, column A D^-1, none A itself. A node without edges gets a zero row: with
L = I - A its entry decays on its own, defined behaviour rather than NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rdgraph.errors import NotApplicable

NORMALISATIONS = ("symmetric", "row", "column", "none")


def dense_operator(adjacency: Any, normalisation: str = "symmetric", *, self_loops: float = 0.0) -> np.ndarray:
    """The operator A of a dense symmetric adjacency (n, n).

    >>> dense_operator([[0, 1, 0], [1, 0, 1], [0, 1, 0]], "row").sum(axis=1)
    array([1., 1., 1.])
    """
    weights = dense_adjacency(adjacency)
    if normalisation not in NORMALISATIONS:
        raise NotApplicable(f"expected a normalisation among {', '.join(NORMALISATIONS)}, got {normalisation!r}")
    weights = weights + self_loops * np.eye(len(weights))
    degree = weights.sum(axis=1)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    match normalisation:
        case "symmetric":
            root = np.sqrt(inverse)
            return root[:, None] * weights * root[None, :]
        case "row":
            return inverse[:, None] * weights
        case "column":
            return weights * inverse[None, :]
    return weights


def dense_adjacency(graph: Any) -> np.ndarray:
    """A dense adjacency (n, n) with finite weights >= 0, from a networkx graph, a scipy sparse matrix or an array."""
    if hasattr(graph, "toarray"):
        graph = graph.toarray()
    elif hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        import networkx as nx

        graph = nx.to_numpy_array(graph)
    try:
        weights = np.array(graph, dtype=float)
    except (TypeError, ValueError):
        raise NotApplicable(
            f"expected a networkx graph, a scipy sparse matrix or an (n, n) array, got {type(graph).__name__}"
        ) from None
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not len(weights):
        raise NotApplicable(
            f"expected a square adjacency matrix, got shape {weights.shape}; pass an (n, n) array, n >= 1"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise NotApplicable(
            "expected finite weights >= 0 in the adjacency matrix; remove NaN, inf and negative entries"
        )
    return weights
