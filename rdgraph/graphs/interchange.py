"""Graphs of other libraries as edges, and back: networkx, PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import as_array


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

    made = nx.DiGraph() if directed else nx.Graph()
    made.add_nodes_from(names)
    edges = zip(*edge_index.tolist(), weight.tolist(), strict=True)
    made.add_weighted_edges_from((names[u], names[v], w) for u, v, w in edges)
    return made


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
