"""Random graphs and their dense operators, written out from the definitions.

symmetric D^-1/2 W D^-1/2, row D^-1 W, column W D^-1 (D the column sums), none W itself with L = D - W. W[i, j] is the
weight of the edge j -> i. A node without edges has a zero row and column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Random = np.random.Generator


@dataclass(frozen=True)
class Graph:
    """A weighted graph: its adjacency W and what it is called."""

    name: str
    weights: Array

    @property
    def nodes(self) -> int:
        return len(self.weights)

    @property
    def is_undirected(self) -> bool:
        return bool(np.array_equal(self.weights, self.weights.T))

    @property
    def has_isolated(self) -> bool:
        return bool(((self.weights.sum(0) == 0) & (self.weights.sum(1) == 0)).any())

    def operator(self, normalisation: str) -> Array:
        """The matrix A, shape (n, n)."""
        rows, columns = (np.where(d > 0, d, 1.0) for d in (self.weights.sum(1), self.weights.sum(0)))
        match normalisation:
            case "symmetric":
                return self.weights / np.sqrt(np.outer(rows, rows))
            case "row":
                return self.weights / rows[:, None]
            case "column":
                return self.weights / columns[None, :]
        return self.weights

    def degree(self, normalisation: str) -> Array:
        """The sums D is made of, shape (n,)."""
        return self.weights.sum(0 if normalisation == "column" else 1)

    def __str__(self) -> str:
        return f"{self.name}, adjacency {self.weights.tolist()}"


def cycle(n: int) -> Graph:
    weights = np.zeros((n, n))
    for i in range(n):
        weights[i, (i + 1) % n] = weights[(i + 1) % n, i] = 1.0
    return Graph(f"cycle of {n}", weights)


def directed_cycle(n: int) -> Graph:
    return Graph(f"directed cycle of {n}", np.roll(np.eye(n), 1, axis=1))


def chain(n: int) -> Graph:
    """Node 0 collects from 1, 1 from 2, ...; the last one from itself: no walk comes back."""
    weights = np.diag(np.ones(n - 1), 1)
    weights[-1, -1] = 1.0
    return Graph(f"directed chain of {n}", weights)


def pair() -> Graph:
    return Graph("two nodes, one edge", np.array([[0.0, 1.0], [1.0, 0.0]]))


def star(n: int) -> Graph:
    weights = np.zeros((n, n))
    weights[0, 1:] = weights[1:, 0] = 1.0
    return Graph(f"star of {n}", weights)


def complete(n: int) -> Graph:
    return Graph(f"complete graph of {n}", np.ones((n, n)) - np.eye(n))


def bipartite(left: int, right: int) -> Graph:
    weights = np.zeros((left + right, left + right))
    weights[:left, left:] = weights[left:, :left] = 1.0
    return Graph(f"complete bipartite graph {left} + {right}", weights)


def _random(rng: Random) -> Graph:
    n = int(rng.integers(3, 8))
    upper = np.triu(rng.random((n, n)) < rng.uniform(0.3, 0.9), 1).astype(float)
    upper[0, 1] = 1.0
    return Graph("random graph", upper + upper.T)


def _families(rng: Random) -> list[Callable[[], Graph]]:
    n = int(rng.integers(3, 8))
    return [
        pair,
        lambda: cycle(n),
        lambda: star(n),
        lambda: complete(n),
        lambda: bipartite(int(rng.integers(1, 4)), int(rng.integers(1, 4))),
        lambda: _random(rng),
        lambda: _random(rng),
    ]


def with_isolated(graph: Graph, count: int = 1) -> Graph:
    weights = np.pad(graph.weights, (0, count))
    return Graph(f"{graph.name} and {count} isolated", weights)


def union(first: Graph, second: Graph) -> Graph:
    zeros = np.zeros((first.nodes, second.nodes))
    weights = np.block([[first.weights, zeros], [zeros.T, second.weights]])
    return Graph(f"{first.name} beside {second.name}", weights)


def directed(rng: Random) -> Graph:
    """A directed graph in which every node collects from somewhere."""
    n = int(rng.integers(3, 8))
    if rng.random() < 0.4:
        return directed_cycle(n)
    weights = (rng.random((n, n)) < 0.4).astype(float)
    np.fill_diagonal(weights, 0.0)
    weights[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    return Graph("random directed graph", weights)


def draw(rng: Random, normalisation: str = "symmetric", *, one_way: bool = True, loops: bool = True,
         isolated: bool = True) -> Graph:  # fmt: skip
    """A graph of the normalisation; directed ones only where it allows them and `one_way` does."""
    if one_way and normalisation != "symmetric" and rng.random() < 0.35:
        graph = directed(rng)
    else:
        options = _families(rng)
        graph = options[rng.integers(len(options))]()
    if rng.random() < 0.25:
        weights = np.round(rng.uniform(0.1, 4.0, graph.weights.shape), 2)
        if graph.is_undirected:
            weights = np.maximum(weights, weights.T)
        graph = Graph(f"weighted {graph.name}", graph.weights * weights)
    if loops and rng.random() < 0.15:
        graph = Graph(f"{graph.name} with self-loops", graph.weights + np.diag(np.round(rng.random(graph.nodes), 2)))
    if rng.random() < 0.1:
        graph = union(graph, pair())
    if isolated and rng.random() < 0.25:
        graph = with_isolated(graph, int(rng.integers(1, 3)))
    if not isolated and graph.has_isolated:
        return draw(rng, normalisation, one_way=one_way, loops=loops, isolated=False)
    return graph
