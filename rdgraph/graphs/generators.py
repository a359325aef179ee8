"""Graphs by name: paths, rings, grids, complete graphs, stars and seeded random graphs; all undirected, weight 1.

Random graphs take a `seed`, an int or a `numpy.random.Generator`; the same int gives the same graph.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.edges import read_count, read_whole
from rdgraph.graphs.graph import Graph

Seed = int | np.random.Generator


def path(n: int) -> Graph:
    """0 - 1 - ... - (n-1).

    >>> import rdgraph as rd
    >>> rd.generators.path(3).degree
    array([1., 2., 1.])
    """
    return _graph(nx.path_graph(read_count(n)))


def ring(n: int) -> Graph:
    """A path whose ends are joined, n >= 3; 2-regular, eigenvalues of A 2 cos(2 pi k/n).

    >>> import rdgraph as rd
    >>> rd.generators.ring(4).degree
    array([2., 2., 2., 2.])
    """
    return _graph(nx.cycle_graph(read_whole(n, 3, "nodes in a ring")))


def grid(rows: int, columns: int, periodic: bool = False) -> Graph:
    """A rectangular grid, node r*columns + c in row r and column c; a torus where `periodic` (sides of 3 or more).

    >>> import rdgraph as rd
    >>> rd.generators.grid(2, 3).degree.reshape(2, 3)
    array([[2., 3., 2.],
           [2., 3., 2.]])
    """
    least = 3 if periodic else 1
    rows = read_whole(rows, least, "rows in a periodic grid" if periodic else "rows")
    columns = read_whole(columns, least, "columns in a periodic grid" if periodic else "columns")
    lattice = nx.grid_2d_graph(rows, columns, periodic=bool(periodic))
    return _graph(nx.relabel_nodes(lattice, {(r, c): r * columns + c for r, c in lattice}))


def complete(n: int) -> Graph:
    """Every pair of n nodes is joined.

    >>> import rdgraph as rd
    >>> rd.generators.complete(4).degree
    array([3., 3., 3., 3.])
    """
    return _graph(nx.complete_graph(read_count(n)))


def star(n: int) -> Graph:
    """Node 0 joined to each of the nodes 1..n-1.

    >>> import rdgraph as rd
    >>> rd.generators.star(4).degree
    array([3., 1., 1., 1.])
    """
    return _graph(nx.star_graph(read_count(n) - 1))


def erdos_renyi(n: int, p: float, seed: Seed) -> Graph:
    """G(n, p): every pair of n nodes is joined with probability p, independently.

    >>> import rdgraph as rd
    >>> rd.generators.erdos_renyi(10, 1.0, seed=0).num_edges
    90
    """
    chance = float(_probabilities(p, ()))
    # The fast algorithm divides by log(1 - p).
    make = nx.fast_gnp_random_graph if 1 - chance < 1 else nx.gnp_random_graph
    return _graph(make(read_count(n), chance, seed=_number(_stream(seed))))


def barabasi_albert(n: int, m: int, seed: Seed) -> Graph:
    """Growth from a star of m + 1 nodes: each new node is joined to m nodes, chosen in proportion to their degree.

    >>> import rdgraph as rd
    >>> rd.generators.barabasi_albert(10, 2, seed=0).num_edges
    32
    """
    count, links = read_whole(n, 2, "nodes"), read_whole(m, 1, "links per node")
    if links >= count:
        raise InvalidArgument(f"expected fewer links per node than nodes, got m = {links} and n = {count}")
    return _graph(nx.barabasi_albert_graph(count, links, seed=_number(_stream(seed))))


def watts_strogatz(n: int, k: int, p: float, seed: Seed) -> Graph:
    """A ring whose n nodes are joined to their k nearest (k even), each edge moved to another end with probability p.

    >>> import rdgraph as rd
    >>> rd.generators.watts_strogatz(10, 4, 0.0, seed=0).degree.tolist() == [4.0] * 10
    True
    """
    count, near = read_whole(n, 3, "nodes"), read_whole(k, 2, "neighbours of a node")
    if near % 2 or near >= count:
        raise InvalidArgument(
            f"expected an even number of neighbours below the number of nodes, got k = {near} and n = {count}"
        )
    chance = float(_probabilities(p, ()))
    return _graph(nx.watts_strogatz_graph(count, near, chance, seed=_number(_stream(seed))))


def sbm(sizes: Sequence[int], probabilities: Any, seed: Seed) -> Graph:
    """Stochastic block model: nodes of block k and l are joined with probability probabilities[k][l] (symmetric).

    The blocks follow one another: the first sizes[0] nodes are block 0, and so on.

    >>> import rdgraph as rd
    >>> rd.generators.sbm([2, 3], [[1, 0], [0, 1]], seed=0).components()
    array([0, 0, 1, 1, 1])
    """
    blocks = _sizes(sizes)
    chances = _probabilities(probabilities, (len(blocks), len(blocks)))
    if not np.array_equal(chances, chances.T):
        raise InvalidArgument(
            "expected symmetric probabilities, p[k][l] = p[l][k], got others; edges have no direction"
        )
    # The sparse algorithm divides by log(1 - p).
    sparse = bool(((chances == 0) | (1 - chances < 1)).all())
    return _graph(nx.stochastic_block_model(blocks, chances.tolist(), seed=_number(_stream(seed)), sparse=sparse))


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph with features (n, channels) and class labels (n,)."""

    graph: Graph
    features: np.ndarray
    labels: np.ndarray


def csbm(
    seed: Seed,
    *,
    sizes: Sequence[int] = (50, 50),
    means: Sequence[float] = (-0.5, 0.5),
    sigma: float = 2.0,
    channels: int = 2,
    within: float = 0.9,
    between: float = 0.1,
) -> LabelledGraph:
    """Contextual stochastic block model: an SBM whose node features are Gaussian around the mean of the node's class.

    features[i, c] = means[k] + sigma*z with z ~ N(0, 1) and k the class of node i, for every channel c; two nodes are
    joined with probability `within` in one class and `between` across. The defaults are the synthetic network of the
    GREAD paper's appendix: 100 nodes, 2 classes (here of equal size), two-dimensional features with sigma = 2 and means
    -0.5 and 0.5, probabilities 0.9 and 0.1.

    >>> import rdgraph as rd
    >>> data = rd.generators.csbm(seed=0)
    >>> data.graph.num_nodes, data.features.shape, data.labels[[0, 99]].tolist()
    (100, (100, 2), [0, 1])
    """
    blocks, width = _sizes(sizes), read_whole(channels, 1, "channels")
    centres = np.asarray(means, dtype=float)
    if centres.shape != (len(blocks),) or not np.isfinite(centres).all():
        raise InvalidArgument(f"expected {len(blocks)} finite means, one per class, got {means}; match sizes")
    if not (np.isfinite(sigma) and sigma >= 0):
        raise InvalidArgument(f"expected a finite standard deviation sigma >= 0, got {sigma}")
    chances = np.full((len(blocks), len(blocks)), float(_probabilities(between, ())))
    np.fill_diagonal(chances, float(_probabilities(within, ())))
    edges, noise = _stream(seed).spawn(2)
    labels = np.repeat(np.arange(len(blocks)), blocks)
    features = centres[labels, None] + sigma * noise.standard_normal((labels.size, width))
    return LabelledGraph(sbm(blocks, chances, edges), features, labels)


def _graph(graph: Any) -> Graph:
    """A networkx graph with nodes 0..n-1, numbered by name and not in networkx's order of insertion."""
    pairs = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2).T
    return Graph.from_edges(np.concatenate([pairs, pairs[::-1]], axis=1), len(graph), duplicates="error")


def _stream(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise InvalidArgument(f"expected a seed, an int >= 0 or a numpy Generator, got {seed!r}; pass seed=0")
    return np.random.default_rng(number)


def _number(stream: np.random.Generator) -> int:
    """A seed for networkx."""
    return int(stream.integers(2**63))


def _sizes(sizes: Sequence[int]) -> list[int]:
    blocks = [read_whole(size, 1, "nodes in a block") for size in sizes]
    if not blocks:
        raise InvalidArgument("expected the size of one block at least, got none; pass sizes=[n]")
    return blocks


def _probabilities(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument(f"expected probabilities of shape {shape}, got {values!r}") from None
    if array.shape != shape:
        raise InvalidArgument(
            f"expected probabilities of shape {shape}, got {array.shape}; one for each pair of blocks"
        )
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidArgument(f"expected probabilities between 0 and 1, got {values!r}")
    return array
