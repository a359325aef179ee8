"""Positions of the nodes in a plane from their distances along the graph: flat (Isomap) or hyperbolic.

Distances go from landmarks, which are all nodes of small graphs. Both positions come from one eigenvalue problem, so
they are the same on every run; axes point to where the farthest node is.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree

from rdgraph import Graph

#: Nodes that distances are measured from, at most: evenly among all, in the order of their degrees.
LANDMARKS = 1000
#: Nodes that cannot be reached are this much farther than the farthest that can.
BEYOND = 1.0
#: The size of the largest distance on the hyperbolic plane.
RADIUS = 5.0
#: Steps of the search for a radius.
HALVINGS = 40


def plane_positions(graph: Graph, kind: str) -> np.ndarray:
    """(n, 2) of kind "isomap" or "poincare".

    Isomap (Tenenbaum et al. 2000) is classical scaling of the distances, with the other nodes placed by their distances
    from the landmarks (de Silva and Tenenbaum 2004). The hyperbolic positions, in the Poincare disc, are those of the
    strain-minimal embedding by the eigenvectors of cosh(distance) (Keller-Ressel and Nargang 2020).

    >>> from rdgraph.graphs.generators import path
    >>> abs(plane_positions(path(3), "isomap")[:, 0]).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    chosen = landmarks(graph)
    far = distances(graph, chosen)
    found = _flat(far, chosen) if kind == "isomap" else _hyperbolic(far, chosen)
    return _turned(found)


def landmarks(graph: Graph) -> np.ndarray:
    """The numbers of the nodes that distances are measured from."""
    n = graph.num_nodes
    if n <= LANDMARKS:
        return np.arange(n)
    order = np.argsort(-graph.degree, kind="stable")
    return np.sort(order[np.linspace(0, n - 1, LANDMARKS).astype(int)])


def distances(graph: Graph, chosen: np.ndarray) -> np.ndarray:
    """Steps (landmarks, n) along edges in either direction."""
    sources, targets = graph.edge_index
    n = graph.num_nodes
    steps = csr_array((np.ones(len(sources)), (sources, targets)), shape=(n, n))
    found = np.asarray(shortest_path(steps, directed=False, unweighted=True, indices=chosen))
    reached = np.isfinite(found)
    return np.where(reached, found, found[reached].max() + BEYOND)


def _flat(far: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    squared = far**2
    own = squared[:, chosen]
    mean = own.mean(0)
    gram = -0.5 * (own - mean - mean[:, None] + own.mean())
    values, vectors = np.linalg.eigh(gram)
    values, vectors = np.maximum(values[-2:][::-1], 1e-12), vectors[:, -2:][:, ::-1]
    return np.asarray(-0.5 * (squared - mean[:, None]).T @ vectors / np.sqrt(values))


def _hyperbolic(far: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """By Keller-Ressel and Nargang: the largest eigenvalue gives the height, the two least the directions."""
    raised = np.cosh(RADIUS * far / max(1.0, far.max()))
    values, vectors = np.linalg.eigh(raised[:, chosen])
    height = np.abs(raised.T @ vectors[:, -1]) / np.sqrt(values[-1])
    sides = raised.T @ vectors[:, :2] / np.sqrt(np.maximum(-values[:2], 1e-12))
    lengths = np.linalg.norm(sides, axis=1, keepdims=True)
    lowest = max(1.0, float(height.min()))
    radius = np.sqrt(np.maximum((height - lowest) / (height + lowest), 0))
    return np.asarray(np.divide(sides, lengths, out=np.zeros_like(sides), where=lengths > 0) * radius[:, None])


def _turned(positions: np.ndarray) -> np.ndarray:
    """With the sign of every axis such that its largest entry is positive; nodes at one place have the same numbers,
    whatever the rounding of the machine."""
    rounded = np.round(positions, 9)
    top, bottom = rounded.max(0), -rounded.min(0)
    tie = rounded[:, :] ** 3
    sign = np.where(top > bottom, 1.0, np.where(top < bottom, -1.0, np.where(tie.sum(0) < 0, -1.0, 1.0)))
    return np.asarray(rounded * sign)


def near_pairs(positions: np.ndarray, count: int) -> np.ndarray:
    """At most `count` ordered pairs (2, pairs), those of nodes closest to each other in the plane.

    The authors of Geom-GCN take all within a radius that gives as many neighbours as the graph has on average.
    """
    tree = cKDTree(positions)
    low, high = 0.0, float(np.ptp(positions, axis=0).max()) * 2 + 1
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if tree.count_neighbors(tree, middle) - len(positions) <= count:
            low = middle
        else:
            high = middle
    pairs = tree.query_pairs(low, output_type="ndarray")
    if not len(pairs):  # many at one distance, as copies of a position: the closest, then the lowest numbers
        pairs = tree.query_pairs(high, output_type="ndarray")
        gaps = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], gaps))[: max(1, count // 2)]]
    return np.concatenate([pairs, pairs[:, ::-1]]).T
