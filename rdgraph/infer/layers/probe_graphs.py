"""The graphs that a layer is tried on: tiny, random and adversarial ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument

#: What may be said of the graphs that an equation is meant for.
DOMAINS = ("all", "undirected", "simple")

Edge = tuple[int, int]


@dataclass(frozen=True)
class ProbeGraph:
    """Edges source -> target with weights, between nodes 0..n-1; a pair occurs once.

    >>> ProbeGraph("edge", 2, ((0, 1),)).adjacency
    array([[0., 0.],
           [1., 0.]])
    """

    name: str
    num_nodes: int
    edges: tuple[Edge, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.edges)) != len(self.edges):
            raise InvalidArgument(f"expected every edge once, got {self.edges}; remove the repeated ones")
        if self.weights and len(self.weights) != len(self.edges):
            raise InvalidArgument(
                f"expected one weight for each of {len(self.edges)} edges, got {len(self.weights)}; give all or none"
            )

    @cached_property
    def edge_index(self) -> np.ndarray:
        """Sources in row 0, targets in row 1: (2, E)."""
        return np.array(self.edges, dtype=np.int64).reshape(-1, 2).T

    @cached_property
    def edge_weight(self) -> np.ndarray:
        """One number per edge, 1 where none was given."""
        return np.array(self.weights or [1.0] * len(self.edges), dtype=float)

    @cached_property
    def adjacency(self) -> np.ndarray:
        """M[i, j] is the weight of the edge j -> i: (n, n)."""
        matrix = np.zeros((self.num_nodes, self.num_nodes))
        source, target = self.edge_index
        matrix[target, source] = self.edge_weight
        return matrix

    @property
    def is_weighted(self) -> bool:
        """Whether some weight is not 1."""
        return any(weight != 1.0 for weight in self.weights)

    @property
    def has_loops(self) -> bool:
        """Whether a node has an edge to itself."""
        return any(source == target for source, target in self.edges)

    @property
    def is_directed(self) -> bool:
        """Whether an edge goes one way only, or weighs differently back."""
        return not np.array_equal(self.adjacency, self.adjacency.T)

    def is_in(self, domain: str) -> bool:
        """Whether it belongs to the graphs that a word names.

        >>> [ProbeGraph("loop", 1, ((0, 0),)).is_in(word) for word in DOMAINS]
        [True, True, False]
        """
        is_plain = not (self.has_loops or self.is_weighted)
        return domain == "all" or (not self.is_directed and (domain == "undirected" or is_plain))

    def __str__(self) -> str:
        pairs = [(s, t) for s, t in self.edges if self.is_directed or s <= t]
        drawn = ", ".join(f"{s}->{t}" if self.is_directed else f"{s}-{t}" for s, t in pairs)
        weights = dict(zip(self.edges, self.edge_weight, strict=True))
        heavy = f", weights {', '.join(f'{weights[pair]:g}' for pair in pairs)}" if self.is_weighted else ""
        return f"{self.num_nodes} node{'s' if self.num_nodes > 1 else ''}, edges {drawn or 'none'}{heavy}"


def undirected(name: str, num_nodes: int, pairs: Iterable[Edge], weights: Sequence[float] = ()) -> ProbeGraph:
    """A graph with both directions of every pair; a loop has one.

    >>> undirected("edge", 2, [(0, 1)]).edges
    ((0, 1), (1, 0))
    """
    given = list(pairs)
    heavy = list(weights) or [1.0] * len(given)
    both = {pair: w for (a, b), w in zip(given, heavy, strict=True) for pair in ((a, b), (b, a))}
    return ProbeGraph(name, num_nodes, tuple(both), tuple(both.values()) if weights else ())


def probe_graphs(*, weighted: bool = True, domain: str = "all", seed: int = 0) -> tuple[ProbeGraph, ...]:
    """Every kind of graph that has told layers apart, the smallest first.

    Args:
        weighted: whether weights other than 1 occur.
        domain: "all"; "undirected" leaves out directed ones, "simple" those with loops and weights too.
        seed: of the random graphs and weights.

    >>> [g.num_nodes for g in probe_graphs(domain="simple")]
    [1, 2, 3, 4, 4, 5, 5, 6]
    """
    if domain not in DOMAINS:
        raise InvalidArgument(f"expected graphs that are {', '.join(DOMAINS)}, got {domain!r}; or give a list of them")
    rng = np.random.default_rng(seed)
    tail = [(0, 1), (1, 2), (0, 2), (2, 3)]
    chord = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4), (0, 2)]
    found = [
        ProbeGraph("single node", 1, ()),
        undirected("edge", 2, [(0, 1)]),
        undirected("path", 3, [(0, 1), (1, 2)]),
        undirected("triangle with a tail", 4, tail),
        undirected("isolated node", 4, [(0, 1), (1, 2)]),
        undirected("star", 5, [(0, k) for k in range(1, 5)]),
        undirected("two components", 5, [(0, 1), (2, 3), (3, 4)]),
        undirected("random", 6, chord),
    ]
    if domain != "simple":
        found += [undirected("self-loop", 4, [(0, 0), (0, 1), (1, 2), (2, 3)])]
        if weighted:
            heavy = [float(w) for w in rng.uniform(0.3, 2.5, 7)]
            found += [
                undirected("weighted", 4, tail, heavy[:4]),
                undirected("weighted with a loop", 3, [(0, 1), (1, 2), (1, 1)], [heavy[4], heavy[5], heavy[6]]),
            ]
    if domain == "all":
        arrows = ((0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 1), (2, 4))
        found += [ProbeGraph("directed path", 3, ((0, 1), (1, 2))), ProbeGraph("directed", 5, arrows)]
        if weighted:
            found += [ProbeGraph("directed and weighted", 5, arrows, tuple(map(float, rng.uniform(0.3, 2.5, 7))))]
    return tuple(sorted(found, key=lambda graph: (graph.num_nodes, len(graph.edges))))


def read_graphs(given: Any, *, weighted: bool, seed: int = 0) -> tuple[ProbeGraph, ...]:
    """The graphs of a domain by its word, or those of a list: `ProbeGraph`s, or rdgraph's `Graph`s."""
    if isinstance(given, str):
        return probe_graphs(weighted=weighted, domain=given, seed=seed)
    if not isinstance(given, Iterable):
        given = [given]
    return tuple(read_graph(graph) for graph in given)


def read_graph(graph: Any) -> ProbeGraph:
    """A `ProbeGraph` as it is, or the edges of a `Graph` of this package."""
    if isinstance(graph, ProbeGraph):
        return graph
    if not all(hasattr(graph, name) for name in ("edge_index", "weight", "num_nodes")):
        raise InvalidArgument(f"expected a Graph, got {type(graph).__name__}; make one with rd.Graph.from_edges(...)")
    pairs = tuple((int(s), int(t)) for s, t in np.asarray(graph.edge_index).T)
    return ProbeGraph("given", int(graph.num_nodes), pairs, tuple(map(float, graph.weight)))
