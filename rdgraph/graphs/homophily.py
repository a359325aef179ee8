"""Homophily: how much the edges of a graph join nodes of one class.

All measures look at the graph without directions, weights and self-loops. Nodes with the label -1 (unknown) are left
out together with their edges. A measure that would divide zero by zero is nan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.edges import as_array, whole_numbers

KINDS = ("edge", "node", "adjusted")


def homophily(edge_index: np.ndarray, num_nodes: int, labels: Any, kind: str = "edge") -> float:
    """The measure of the given kind for edges (2, E) and labels (n,), whole numbers from 0, or -1 for unknown.

    edge      share of the edges that join equal classes
    node      mean over the nodes that have neighbours of the share of neighbours of the node's own class
              (Pei et al., Geom-GCN, 2020)
    adjusted  (edge - c)/(1 - c), c = sum_k D_k^2/(2|E|)^2, D_k the sum of the degrees in class k: 1 where all edges
              join equal classes, 0 where edges fall as the degrees alone would have it, nan where all edges lie within
              one class (Platonov et al., Characterizing graph datasets for node classification, 2023)

    >>> path = np.array([[0, 1, 2], [1, 2, 3]])
    >>> [round(homophily(path, 4, [0, 0, 1, 1], kind), 3) for kind in KINDS]
    [0.667, 0.75, 0.333]
    """
    if kind not in KINDS:
        raise UnknownName("kind of homophily", str(kind), KINDS)
    classes = _read_labels(labels, num_nodes)
    pairs = _pairs(edge_index, classes)
    return {"edge": _edge, "node": _node, "adjusted": _adjusted}[kind](pairs, classes)


def _edge(pairs: np.ndarray, classes: np.ndarray) -> float:
    return _ratio(_is_equal(pairs, classes).sum(), pairs.shape[1])


def _node(pairs: np.ndarray, classes: np.ndarray) -> float:
    ends, equal = pairs.ravel(), np.tile(_is_equal(pairs, classes), 2)
    neighbours = np.bincount(ends, minlength=classes.size)
    alike = np.bincount(ends, weights=equal, minlength=classes.size)
    joined = neighbours > 0
    return _ratio((alike[joined] / neighbours[joined]).sum(), joined.sum())


def _adjusted(pairs: np.ndarray, classes: np.ndarray) -> float:
    totals = np.unique(classes[pairs], return_counts=True)[1]
    if totals.size < 2:
        return float("nan")
    chance = float(np.sum((totals / pairs.size) ** 2))
    return (_edge(pairs, classes) - chance) / (1 - chance)


def _pairs(edge_index: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Undirected, loop-free edges between labelled nodes, each once: (2, |E|)."""
    source, target = edge_index
    kept = (source != target) & (classes[source] >= 0) & (classes[target] >= 0)
    low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
    return np.stack(np.divmod(np.unique(low * classes.size + high), classes.size))


def _is_equal(pairs: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.asarray(classes[pairs[0]] == classes[pairs[1]])


def _ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else float("nan")


def _read_labels(labels: Any, num_nodes: int) -> np.ndarray:
    given = as_array(labels, "labels")
    classes = given.astype(np.int64) if given.dtype.kind == "b" else whole_numbers(given, "labels", "node")
    if classes.shape != (num_nodes,):
        raise InvalidArgument(f"expected labels of shape ({num_nodes},), one per node, got {classes.shape}")
    if (classes < -1).any():
        node = int((classes < -1).argmax())
        raise InvalidArgument(f"expected labels >= 0, or -1 for unknown, got node {node}: {classes[node]}")
    return classes
