"""Which nodes have the same role in a graph: neighbours by the degrees around them, ring by ring.

struc2vec (Ribeiro et al. 2017) compares the sorted degrees of the nodes at every distance by dynamic time warping. The
stand-in here compares their quantiles on a logarithmic scale, which is one vector per node and ring, so that the
closest nodes are found by a tree and not by looking at all pairs.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from rdgraph import Graph

#: Quantiles of the degrees in a ring.
QUANTILES = 9
#: Rings with more pairs of nodes than this in all are not looked at: they hold most of the graph, and tell nothing.
WIDEST = 20_000_000


def degree_profiles(graph: Graph, rings: int) -> list[np.ndarray]:
    """For every ring, distance 0, 1, ..., a vector (n, 1 + QUANTILES): log(1 + its size), quantiles of log(1 + degree).

    The quantiles of ring k go beside those of the rings before, as struc2vec adds up its distances. Rings that would
    join too many pairs are left out.

    >>> from rdgraph.graphs.generators import star
    >>> profiles = degree_profiles(star(5), 1)
    >>> bool((profiles[0][1] == profiles[0][4]).all()), bool((profiles[0][0] == profiles[0][1]).all())
    (True, False)
    """
    n = graph.num_nodes
    sources, targets = graph.edge_index
    near = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    near = csr_array(((near + near.T) > 0).astype(np.float32))
    near.setdiag(0)
    near.eliminate_zeros()
    degree = np.log1p(np.diff(near.indptr))
    reached = ring = csr_array(np.eye(1), dtype=np.float32) if n == 1 else _identity(n)
    found: list[np.ndarray] = []
    for _ in range(rings):
        own = _quantiles(ring, degree)
        found.append(own if not found else np.concatenate([found[-1], own], 1))
        beyond = csr_array((ring @ near > 0).astype(np.float32))
        ring = csr_array(beyond - beyond.multiply(reached))
        ring.eliminate_zeros()
        reached = csr_array(reached + ring)
        if ring.nnz == 0 or ring.nnz > WIDEST:
            break
    return found


def _identity(n: int) -> csr_array:
    places = np.arange(n)
    return csr_array((np.ones(n, dtype=np.float32), (places, places)), shape=(n, n))


def _quantiles(ring: csr_array, degree: np.ndarray) -> np.ndarray:
    """log(1 + size) and quantiles of the degrees in the ring of every node."""
    n, shares = ring.shape[0], np.linspace(0, 1, QUANTILES)
    counts = np.diff(ring.indptr)
    rows = np.repeat(np.arange(n), counts)
    values = degree[ring.indices]
    order = np.lexsort((values, rows))
    values = values[order]
    last = np.maximum(counts - 1, 0)
    places = ring.indptr[:-1, None] + np.rint(last[:, None] * shares).astype(int)
    filled = np.where(counts[:, None] > 0, values[np.minimum(places, max(0, len(values) - 1))], 0.0)
    return np.concatenate([np.log1p(counts)[:, None], filled], 1)


def role_graph(profile: np.ndarray, neighbours: int) -> Graph:
    """Every node with the `neighbours` nodes whose profiles are closest, weights exp(-distance); to the node from them.

    Nodes at one distance are all taken together with the farthest of the closest, up to twice as many, so that the
    numbering of the nodes does not decide.
    """
    n = len(profile)
    asked = min(n - 1, 2 * neighbours)
    if asked < 1:
        return Graph.from_edges([[], []], n)
    lengths, indices = cKDTree(profile).query(profile, k=asked + 1)
    targets = np.repeat(np.arange(n), asked + 1)
    limit = np.round(lengths[:, min(neighbours, asked)], 9)[:, None]
    kept = (np.round(lengths, 9) <= limit).ravel() & (indices.ravel() != targets)
    edges = np.stack([indices.ravel()[kept], targets[kept]])
    return Graph.from_edges(edges, n, weight=np.exp(-lengths.ravel()[kept]))
