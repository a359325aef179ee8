"""Statistics of a data set: sizes, homophily, splits, components, missing values, twins."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from rdgraph import Graph

# ---------------------------------------------------------------------- facts
#: The coverage of the masks of a split: every labelled node, those of the largest component, or less.
WHOLE, COMPONENT, PART = "whole graph", "largest component", "part"
DIFFERS, NO_SPLITS = "differs by split", "no splits"


@dataclass(frozen=True)
class Facts:
    """Statistics of one `NodeData`; edges are undirected pairs, self-loops are counted separately.

    Homophily is that of the loop-free graph, as in `Graph.homophily`; `loop_homophily` is the edge homophily with every
    self-loop as an edge between equal classes: (equal + loops)/(edges + loops).
    """

    name: str
    nodes: int
    edges: int
    loops: int
    features: int
    classes: int
    edge_homophily: float
    node_homophily: float
    adjusted_homophily: float
    loop_homophily: float
    split_sizes: tuple[tuple[int, int, int], ...]
    covers: tuple[str, ...]
    components: int
    component_nodes: int
    component_edges: int
    isolated: int
    unlabelled: int
    empty_rows: int
    average_degree: float
    max_degree: int
    feature_density: float

    @property
    def edges_with_loops(self) -> int:
        return self.edges + self.loops

    @property
    def coverage(self) -> str:
        """The common coverage of the splits in words, or that it differs."""
        return DIFFERS if len(set(self.covers)) > 1 else next(iter(self.covers), NO_SPLITS)

    @property
    def used_nodes(self) -> int:
        """Nodes of the graph used for training: the largest component if all masks lie inside it."""
        return self.component_nodes if self.coverage == COMPONENT else self.nodes

    @property
    def used_edges(self) -> int:
        """Edges of the graph used for training; see `used_nodes`."""
        return self.component_edges if self.coverage == COMPONENT else self.edges

    @property
    def split_shares(self) -> str:
        """Training, validation and test in percent of the covered nodes, over all splits together.

        >>> from gread.datasets.embedded import karate
        >>> count(karate()).split_shares
        '47/32/21'
        """
        totals = np.sum(self.split_sizes, axis=0) if self.split_sizes else np.zeros(3)
        return "/".join(f"{100 * part / totals.sum():.0f}" for part in totals) if totals.sum() else "-"

    def to_dict(self) -> dict[str, Any]:
        """All facts as a dictionary for JSON; an undefined number is None."""
        derived = ("edges_with_loops", "coverage", "used_nodes", "used_edges", "split_shares")
        return _for_json({**asdict(self), **{name: getattr(self, name) for name in derived}})


def count(data: NodeData) -> Facts:
    """The statistics of a data set as given; keep its self-loops and all nodes to count them.

    >>> from gread.datasets.embedded import karate
    >>> facts = count(karate())
    >>> facts.nodes, facts.edges, facts.loops, facts.classes, facts.max_degree, facts.coverage
    (34, 78, 0, 2, 17, 'whole graph')
    """
    graph = data.graph.undirected()
    source, target = graph.edge_index
    pairs = graph.edge_index[:, source < target]
    loops = source[source == target]
    degree = degrees(graph)
    component = graph.components()
    largest = component == np.bincount(component).argmax()
    filled = np.count_nonzero(data.x.data) if issparse(data.x) else np.count_nonzero(data.x)
    return Facts(
        name=data.meta.name,
        nodes=graph.num_nodes,
        edges=pairs.shape[1],
        loops=loops.size,
        features=data.num_features,
        classes=int(data.y.max()) + 1,
        edge_homophily=graph.homophily(data.y, "edge"),
        node_homophily=graph.homophily(data.y, "node"),
        adjusted_homophily=graph.homophily(data.y, "adjusted"),
        loop_homophily=_loop_homophily(pairs, loops, data.y),
        split_sizes=_sizes(data.masks),
        covers=_covers(data.masks, data.y >= 0, largest),
        components=int(component.max()) + 1,
        component_nodes=int(largest.sum()),
        component_edges=int(largest[pairs[0]].sum()),
        isolated=int((degree == 0).sum()),
        unlabelled=int((data.y < 0).sum()),
        empty_rows=int((abs(data.x).sum(axis=1) == 0).sum()),
        average_degree=float(degree.mean()),
        max_degree=int(degree.max()),
        feature_density=float(filled) / max(1, data.x.shape[0] * data.x.shape[1]),
    )


def degrees(graph: Graph) -> np.ndarray:
    """The number of neighbours of every node (n,), ignoring directions, weights and self-loops.

    >>> degrees(Graph.from_edges([[0, 1, 1], [1, 1, 2]], weight=[5.0, 1.0, 1.0]))
    array([1, 2, 1])
    """
    source, target = graph.undirected().edge_index
    return np.bincount(target[source != target], minlength=graph.num_nodes)


def alike_shares(data: NodeData) -> np.ndarray:
    """The share of the labelled neighbours of every node with its class (n,), nan without any or without a label.

    The mean over the nodes with a value is the node homophily.

    >>> from gread.datasets.embedded import karate
    >>> data = karate()
    >>> bool(np.isclose(np.nanmean(alike_shares(data)), data.graph.homophily(data.y, "node")))
    True
    """
    source, target = data.graph.undirected().edge_index
    is_used = (source != target) & (data.y[source] >= 0) & (data.y[target] >= 0)
    source, target = source[is_used], target[is_used]
    neighbours = np.bincount(target, minlength=data.num_nodes)
    alike = np.bincount(target, weights=data.y[source] == data.y[target], minlength=data.num_nodes)
    return np.divide(alike, neighbours, out=np.full(data.num_nodes, np.nan), where=neighbours > 0)


def _for_json(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}


def _loop_homophily(pairs: np.ndarray, loops: np.ndarray, y: np.ndarray) -> float:
    known = (y[pairs] >= 0).all(axis=0)
    alike = int((y[pairs[0]] == y[pairs[1]])[known].sum())
    at_loops = int((y[loops] >= 0).sum())
    total = int(known.sum()) + at_loops
    return (alike + at_loops) / total if total else math.nan


def _sizes(masks: Masks) -> tuple[tuple[int, int, int], ...]:
    parts = (masks.train, masks.val, masks.test)
    return tuple(tuple(int(part[k].sum()) for part in parts) for k in range(masks.num_splits))  # type: ignore[misc]


def _covers(masks: Masks, known: np.ndarray, largest: np.ndarray) -> tuple[str, ...]:
    """The coverage of the masks of every split, among the labelled nodes."""
    coverages = []
    for k in range(masks.num_splits):
        covered = masks.train[k] | masks.val[k] | masks.test[k]
        whole, inner = np.array_equal(covered, known), np.array_equal(covered, known & largest)
        coverages.append(WHOLE if whole else COMPONENT if inner else PART)
    return tuple(coverages)


# ---------------------------------------------------------------------- twins
# Twins: nodes with the same neighbours. Twins of training nodes in the test set can be classified by lookup.


@dataclass(frozen=True)
class Twins:
    """Nodes that share their neighbourhood with another node, and the share of test nodes with a twin in training.

    `one_label`: the share of groups of twins whose known labels agree. `in_training`: the mean over the splits of the
    share of test nodes with a twin among the training nodes; `alike`: the same with a twin of the same class;
    `beyond_leaves`: the same with a twin and more than one neighbour, since leaves of a common neighbour are twins
    without being copies. A share of nothing is nan.
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
        """All counts of twins as a dictionary for JSON; a share of nothing is None."""
        return _for_json(asdict(self))


def find_twins(data: NodeData) -> Twins:
    """Count the twins of a data set, on its undirected loop-free graph.

    >>> from gread.datasets.embedded import karate
    >>> twins = find_twins(karate())
    >>> twins.twins, twins.groups                       # five of them met only the two leaders, 32 and 33
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

    Every node draws two random 64-bit keys, and a neighbourhood is identified by its size and the sums of its keys
    modulo 2^64: different ones collide with a probability of about 2^-128.

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
    order = np.lexsort((second, first, size))[np.count_nonzero(size == 0) :]  # twins one after the other
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = np.any([np.diff(column[order]) != 0 for column in (size, first, second)], axis=0)
    rank = np.argsort(np.argsort(order[is_new]))  # groups are numbered in the order of their lowest node
    group = np.full(graph.num_nodes, -1)
    group[order] = rank[np.cumsum(is_new) - 1]
    return group


def _one_label(group: np.ndarray, y: np.ndarray) -> float:
    """The share of the groups with known labels that have a single label."""
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
