"""Twins: nodes with exactly the same neighbours. Where they lie in training and test alike, looking up is enough."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gread.datasets.facts import degrees
from gread.datasets.node_data import NodeData
from rdgraph import Graph


@dataclass(frozen=True)
class Twins:
    """Nodes that share their neighbourhood with another node, and how many test nodes have such a twin in training.

    `one_label`: share of the groups of twins whose known labels agree. `in_training`: mean over the splits of the
    share of test nodes with a twin among the training nodes; `alike`: the same, with a twin of the same class;
    `beyond_leaves`: the same, with a twin and more than one neighbour, since nodes that hang on one common neighbour
    are twins without being copies. A share of nothing is nan.
    """

    name: str
    nodes: int
    twins: int
    groups: int
    one_label: float
    in_training: float
    alike: float
    beyond_leaves: float

    def to_dict(self) -> dict[str, Any]:
        """All of it as json has it; a share of nothing is None."""
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def find_twins(data: NodeData) -> Twins:
    """Count the twins of a data set, on its undirected loop-free graph.

    >>> from gread.datasets.embedded import karate
    >>> found = find_twins(karate())
    >>> found.twins, found.groups                       # five of them met nobody but the two leaders, 32 and 33
    (7, 2)
    """
    group = neighbourhoods(data.graph)
    size = np.bincount(group[group >= 0], minlength=1)
    has_twin = (group >= 0) & (size[group] > 1)
    shares = [_shares(data, k, group, degrees(data.graph)) for k in range(data.num_splits)]
    in_training, alike, beyond_leaves = np.mean(shares, axis=0) if shares else (math.nan,) * 3
    return Twins(
        name=data.meta.name,
        nodes=data.num_nodes,
        twins=int(has_twin.sum()),
        groups=int((size > 1).sum()),
        one_label=_one_label(group[has_twin], data.y[has_twin]),
        in_training=float(in_training),
        alike=float(alike),
        beyond_leaves=float(beyond_leaves),
    )


def neighbourhoods(graph: Graph) -> np.ndarray:
    """A number per node (n,), equal where two nodes have the same neighbours; -1 for nodes without any.

    Every node draws two random 64-bit keys, and a neighbourhood is known by its size and the sums of its keys modulo
    2^64: two that differ are taken for one with a probability of about 2^-128.

    >>> neighbourhoods(Graph.from_edges([[0, 1], [2, 2]], num_nodes=4))
    array([ 0,  0,  1, -1])
    """
    loop_free = graph.undirected().without_self_loops().adjacency
    starts = loop_free.indptr
    keys = np.random.default_rng(0).integers(0, 2**64, size=(2, graph.num_nodes), dtype=np.uint64)
    ahead = np.zeros((2, loop_free.nnz + 1), dtype=np.uint64)
    np.cumsum(keys[:, loop_free.indices], axis=1, out=ahead[:, 1:])  # sums of unsigned numbers wrap around
    size = np.diff(starts)
    first, second = ahead[:, starts[1:]] - ahead[:, starts[:-1]]
    order = np.lexsort((second, first, size))
    new = np.zeros(order.size, dtype=bool)
    for column in (size, first, second):
        new[1:] |= column[order][1:] != column[order][:-1]
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(new)
    return _numbered(np.where(size > 0, group, -1))


def _numbered(group: np.ndarray) -> np.ndarray:
    """The same groups, numbered in the order of their lowest node; -1 stays."""
    values, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(values.size, dtype=np.int64)
    named = np.flatnonzero(values >= 0)
    rank[values < 0] = -1
    rank[named[np.argsort(first[named])]] = np.arange(named.size)
    return rank[inverse]


def _one_label(group: np.ndarray, y: np.ndarray) -> float:
    """The share of the groups with known labels that know one label only."""
    known = y >= 0
    pairs = np.unique(np.stack([group[known], y[known]]), axis=1)
    labels = np.unique(pairs[0], return_counts=True)[1]
    return float((labels == 1).mean()) if labels.size else math.nan


def _shares(data: NodeData, which: int, group: np.ndarray, degree: np.ndarray) -> tuple[float, float, float]:
    """The shares of one split's test nodes with a twin in training: any, of their own class, with a larger degree."""
    train, test = data.masks.train[which] & (group >= 0), data.masks.test[which]
    marked = group * (int(data.y.max()) + 1) + data.y  # a number per neighbourhood and class
    seen, alike = (np.isin(kind[test], kind[train]) & (group[test] >= 0) for kind in (group, marked))
    return float(seen.mean()), float(alike.mean()), float((seen & (degree[test] > 1)).mean())
