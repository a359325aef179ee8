"""`Graph`: weighted directed edges between numbered nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.files import naming
from rdgraph.graphs.edges import (
    EdgeKeys,
    as_array,
    coalesced,
    is_sorted_once,
    read_count,
    read_edges,
    read_nodes,
    take_edges,
    whole_numbers,
)
from rdgraph.graphs.graph_files import node_order, read_edge_rows
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.graphs.matrix_formats import check_sparse, networkx_edges, networkx_graph, pyg_edges
from rdgraph.graphs.normalisation import SYMMETRY_TOLERANCE, absolute_degree, is_symmetric, sparse_operator
from rdgraph.vocabulary.normalisations import NORMALISATIONS, find_normalisation

if TYPE_CHECKING:
    from rdgraph.graphs.operator import Operator


# ---------------------------------------------------------------------- homophily
# Homophily: how much the edges of a graph join nodes of one class.
#
# All measures ignore directions, weights and self-loops. Nodes with the label -1 (unknown) are excluded together with
# their edges. A measure that would divide zero by zero is nan.

KINDS = ("edge", "node", "adjusted")


def homophily(edge_index: np.ndarray, num_nodes: int, labels: Any, kind: str = "edge") -> float:
    """The measure of the given kind for edges (2, E) and labels (n,), whole numbers from 0, or -1 for unknown.

    edge      share of the edges that join equal classes
    node      mean over the nodes that have neighbours of the share of neighbours of the node's own class
              (Pei et al., Geom-GCN, 2020)
    adjusted  (edge - c)/(1 - c), c = sum_k D_k^2/(2|E|)^2, D_k the sum of the degrees in class k: 1 where all edges
              join equal classes, 0 as expected from the degrees alone, nan where all edges lie within
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
    counted = (source != target) & (classes[source] >= 0) & (classes[target] >= 0)
    low, high = np.minimum(source, target)[counted], np.maximum(source, target)[counted]
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


# ---------------------------------------------------------------------- graph
@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Weighted edges j -> i between nodes 0..n-1; undirected graphs hold both directions.

    The adjacency matrix has A[i, j] = weight of the edge j -> i, so (A@H)_i collects from the sources j, as in PyTorch
    Geometric. `edge_index` (2, E) int64 has the sources in row 0 and the targets in row 1, sorted by (target, source),
    every pair once; `weight` (E,) float64, never zero; both read-only. `names` are the nodes' names where they are not
    0..n-1. Built with `from_edges`, `from_scipy`, `from_dense`, `from_networkx`, `from_pyg`, `from_file`.

    >>> import rdgraph as rd
    >>> g = rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> g
    Graph(num_nodes=3, num_edges=4, directed=False)
    >>> g.degree
    array([1., 2., 1.])
    """

    edge_index: np.ndarray
    weight: np.ndarray
    num_nodes: int
    names: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        pairs, weight = (np.ascontiguousarray(x).view() for x in (self.edge_index, self.weight))
        count = read_count(self.num_nodes)
        shapes_fit = pairs.dtype == np.int64 and weight.dtype == np.float64 and pairs.shape == (2, weight.size)
        if not (shapes_fit and _is_canonical(pairs, weight, count)):
            raise InvalidArgument(
                "expected int64 edges (2, E) in range, sorted by (target, source), each once, with finite nonzero "
                "float64 weights (E,), got other arrays; build the graph with Graph.from_edges"
            )
        if self.names is not None and len(self.names) != count:
            raise InvalidArgument(f"expected {count} names, one per node, got {len(self.names)}; pass None for 0..n-1")
        pairs.flags.writeable = weight.flags.writeable = False
        for field, value in (("edge_index", pairs), ("weight", weight), ("num_nodes", count)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        signed = ", signed=True" if self.is_signed else ""
        return (
            f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, directed={not self.is_undirected}{signed})"
        )

    # ------------------------------------------------------------------ from other forms
    @classmethod
    def from_edges(
        cls,
        edge_index: Any,
        num_nodes: int | None = None,
        weight: Any = None,
        *,
        duplicates: str = "sum",
        signed: bool = False,
        undirected: bool = False,
        device: Any = None,
    ) -> Graph:
        """Edges (2, E), sources then targets, as lists, numpy or torch; num_nodes defaults to the largest number + 1.

        More than 10 million nodes, and than 100 times the edges, need num_nodes. Weights (E,) default to 1. A pair that
        occurs more than once: "sum" adds the weights, "once" keeps one (they must agree), "mean", "max" and "first"
        take that weight, "error" raises. Negative weights raise unless `signed`. Weight zero means no edge. With
        `undirected` every edge goes both ways, as `Graph.undirected` says. Tensors on a GPU are sorted there, and
        others on a `device` that is named.

        >>> import rdgraph as rd
        >>> rd.Graph.from_edges([[0, 0], [1, 1]], duplicates="once").weight
        array([1.])
        """
        given = edge_index.device if device is None and getattr(edge_index, "is_cuda", False) else device
        target_device = None if given is None else read_device(given)
        if target_device is not None and num_nodes is not None:
            from rdgraph.graphs.kernels.edge_sorting import sorted_edges

            nodes = read_count(num_nodes)
            parts = sorted_edges(edge_index, nodes, weight, duplicates=duplicates, signed=signed, device=target_device)
            if parts is not None:
                return cls._sorted(*parts).undirected() if undirected else cls._sorted(*parts)
        both_ways = undirected and weight is None and duplicates == "once"
        edges = read_edges(edge_index, num_nodes, weight, duplicates=duplicates, signed=signed, both_ways=both_ways)
        graph = cls._sorted(*edges)
        return graph.undirected() if undirected and not both_ways else graph

    @classmethod
    def from_keys(cls, keys: EdgeKeys, weight: Any = None, *, duplicates: str = "sum", signed: bool = False) -> Graph:
        """The graph of edges that were added in blocks; consumes the keys. See `from_edges`."""
        return cls._sorted(*coalesced(keys, weight, duplicates=duplicates, signed=signed))

    @classmethod
    def _sorted(
        cls, pairs: np.ndarray, weight: np.ndarray, num_nodes: int, names: Sequence[Hashable] | None = None
    ) -> Graph:
        """A graph of arrays that are known to be valid; nothing is checked."""
        graph = object.__new__(cls)
        pairs.flags.writeable = weight.flags.writeable = False
        for field, value in (("edge_index", pairs), ("weight", weight), ("num_nodes", num_nodes), ("names", names)):
            object.__setattr__(graph, field, value)
        return graph

    @classmethod
    def from_scipy(cls, matrix: Any, *, signed: bool = False) -> Graph:
        """The graph whose adjacency is a scipy sparse matrix (n, n): entry [i, j] is the edge j -> i.

        >>> from scipy.sparse import csr_array
        >>> import rdgraph as rd
        >>> rd.Graph.from_scipy(csr_array([[0, 2], [0, 0]])).edge_index.tolist()
        [[1], [0]]
        """
        if not issparse(matrix):
            raise InvalidArgument(f"expected a scipy sparse matrix, got {type(matrix).__name__}; see Graph.from_dense")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InvalidArgument(f"expected a square matrix, got shape {matrix.shape}; one row and column per node")
        check_sparse(matrix, "the adjacency matrix")
        entries = coo_array(matrix)
        return cls.from_edges(np.stack([entries.col, entries.row]), matrix.shape[0], entries.data, signed=signed)

    @classmethod
    def from_dense(cls, matrix: Any, *, signed: bool = False) -> Graph:
        """The graph whose adjacency is an array (n, n), numpy, torch or lists: entry [i, j] is the edge j -> i.

        >>> import rdgraph as rd
        >>> rd.Graph.from_dense([[0, 1], [1, 0]])
        Graph(num_nodes=2, num_edges=2, directed=False)
        """
        array = as_array(matrix, "the adjacency matrix")
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise InvalidArgument(f"expected a square matrix, got shape {array.shape}; one row and column per node")
        targets, sources = np.nonzero(array)
        return cls.from_edges(np.stack([sources, targets]), array.shape[0], array[targets, sources], signed=signed)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        weight: str | None = "weight",
        directed: bool | None = None,
        duplicates: str = "sum",
        signed: bool = False,
    ) -> Graph:
        """A networkx graph in its own node order; an edge u -> v means that v collects from u.

        `weight` names the edge attribute, 1 where an edge has none; None counts edges. Parallel edges are added up, or
        treated as `duplicates` says, see `from_edges`. Edges of a DiGraph go both ways where `directed` is False, and
        u -> v and v -> u are then parallel.

        >>> import networkx as nx, rdgraph as rd
        >>> rd.Graph.from_networkx(nx.DiGraph([("a", "b")])).names
        ('a', 'b')
        """
        pairs, names, weights = networkx_edges(graph, weight)
        if directed is False and graph.is_directed():
            keys = EdgeKeys.of(pairs, read_count(len(names)), both_ways=True)
            return cls.from_keys(keys, weights, duplicates=duplicates, signed=signed)._renamed(names)
        return cls.from_edges(pairs, len(names), weights, duplicates=duplicates, signed=signed)._renamed(names)

    @classmethod
    def from_pyg(cls, data: Any, *, duplicates: str = "sum", signed: bool = False) -> Graph:
        """A PyTorch Geometric `Data`: edge_index, num_nodes, and edge_weight or an edge_attr of one column.

        >>> import rdgraph as rd
        >>> from types import SimpleNamespace
        >>> rd.Graph.from_pyg(SimpleNamespace(edge_index=[[0], [1]], num_nodes=3))
        Graph(num_nodes=3, num_edges=1, directed=True)
        """
        edge_index, count, weight = pyg_edges(data)
        return cls.from_edges(edge_index, count, weight, duplicates=duplicates, signed=signed)

    @classmethod
    def from_file(
        cls, path: str | Path, *, weight: str | None = "weight", directed: bool | None = None, duplicates: str = "once"
    ) -> Graph:
        """A GraphML or GEXF file, or an edge list (csv, tsv, or white space in txt, edges, edgelist), also as .gz.

        An edge list has the columns source, target and maybe `weight`, named in a first line; lines of two or three
        numbers, and all lines separated by white space, need no names. Edges go both ways unless the file says that
        they are directed, or `directed` does; `duplicates` says how to treat repeated edges, and a -> b and
        b -> a where edges go both ways, see `from_edges`. The nodes are those in the file; numeric names are in numeric
        order.

        >>> from pathlib import Path
        >>> import tempfile, rdgraph as rd
        >>> file = Path(tempfile.mkdtemp()) / "roads.edgelist"
        >>> _ = file.write_text("ulm bonn 2\\nbonn ulm 3\\n")
        >>> rd.Graph.from_file(file, duplicates="sum").adjacency.toarray()
        array([[0., 5.],
               [5., 0.]])
        """
        rows = read_edge_rows(Path(path), weight)
        names = node_order(rows)
        number = {name: k for k, name in enumerate(names)}
        pairs = np.array([(number[a], number[b]) for a, b in rows.ends], dtype=np.int64).reshape(-1, 2).T
        is_directed = rows.is_directed if directed is None else directed
        keys = EdgeKeys.of(pairs, read_count(len(names)), both_ways=not is_directed)
        with naming(path):
            graph = cls.from_keys(keys, rows.weights, duplicates=duplicates)
        return graph if names == [str(k) for k in range(len(names))] else graph._renamed(names)

    # ------------------------------------------------------------------ what it is
    @property
    def num_edges(self) -> int:
        """Stored edges; an undirected graph counts both directions, a self-loop once."""
        return int(self.weight.size)

    @cached_property
    def adjacency(self) -> csr_array:
        """A (n, n) with A[i, j] = weight of j -> i, rows are targets; shares the read-only weights."""
        source, target = self.edge_index
        starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=self.num_nodes))])
        return csr_array((self.weight, source, starts), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def is_undirected(self) -> bool:
        """Every edge has its reverse with the same weight, up to rounding."""
        return is_symmetric(self.adjacency)

    @property
    def has_self_loops(self) -> bool:
        return bool((self.edge_index[0] == self.edge_index[1]).any())

    @property
    def is_signed(self) -> bool:
        """Some weight is negative."""
        return bool((self.weight < 0).any())

    @cached_property
    def degree(self) -> np.ndarray:
        """sum_j |A[i, j]|, what a node collects (n,): row sums of A, of absolute values where the graph is signed."""
        degree = absolute_degree(self.adjacency)
        degree.flags.writeable = False
        return degree

    @property
    def isolated(self) -> np.ndarray:
        """Nodes that no edge joins to another node, as numbers (k,)."""
        joined = self.edge_index[:, self.edge_index[0] != self.edge_index[1]]
        return np.setdiff1d(np.arange(self.num_nodes), joined)

    # ------------------------------------------------------------------ other graphs
    def undirected(self) -> Graph:
        """The union with the reversed edges; where both directions exist, the weight that is larger in size.

        >>> import rdgraph as rd
        >>> rd.Graph.from_edges([[0, 1, 1], [1, 0, 2]], weight=[1.0, 3.0, 2.0]).undirected().adjacency.toarray()
        array([[0., 3., 0.],
               [3., 0., 2.],
               [0., 2., 0.]])
        """
        keys = EdgeKeys.of(self.edge_index, self.num_nodes, both_ways=True)
        if self.num_edges and (self.weight == self.weight[0]).all():
            pairs = keys.pairs(keys.sort())
            return Graph._sorted(pairs, np.full(pairs.shape[1], self.weight[0]), self.num_nodes, self.names)
        weight = self.weight.take(np.argsort(keys.keys), mode="wrap")  # the reversed edges follow the edges
        is_new = keys.sort()
        if not is_new.all():
            again = np.flatnonzero(~is_new)  # every pair occurs at most twice
            low, high = np.sort([weight[again - 1], weight[again]], axis=0)
            weight[again - 1] = np.where(high >= -low, high, low)
            weight = weight[is_new]
        return Graph._sorted(keys.pairs(is_new), weight, self.num_nodes, self.names)

    def without_self_loops(self) -> Graph:
        """The same nodes without edges i -> i."""
        joins = self.edge_index[0] != self.edge_index[1]
        return Graph(take_edges(self.edge_index, joins), self.weight[joins], self.num_nodes, self.names)

    def subgraph(self, nodes: Any) -> Graph:
        """The chosen nodes and the edges among them; new node k is old node nodes[k]. A mask chooses in old order.

        >>> import rdgraph as rd
        >>> rd.Graph.from_edges([[0, 1], [1, 2]]).subgraph([2, 1]).edge_index.tolist()
        [[1], [0]]
        """
        chosen = read_nodes(nodes, self.num_nodes)
        number = np.full(self.num_nodes, -1)
        number[chosen] = np.arange(chosen.size)
        pairs = number[self.edge_index]
        inside = (pairs >= 0).all(axis=0)
        plain = Graph.from_edges(take_edges(pairs, inside), chosen.size, self.weight[inside], signed=True)
        return plain if self.names is None else plain._renamed([self.names[k] for k in chosen])

    def permute(self, order: Any) -> Graph:
        """The same graph with renumbered nodes: new node k is old node order[k], A'[k, l] = A[order[k], order[l]]."""
        chosen = read_nodes(order, self.num_nodes)
        if chosen.size != self.num_nodes:
            raise InvalidArgument(
                f"expected an order of all {self.num_nodes} nodes, got {chosen.size}; see Graph.subgraph for a choice"
            )
        return self.subgraph(chosen)

    def local_order(self) -> np.ndarray:
        """An order that puts neighbours close together (reverse Cuthill-McKee); faster products on a large local graph.

        >>> import rdgraph as rd
        >>> shuffled = rd.Graph.from_edges([[0, 3, 3, 1, 1, 2], [3, 0, 1, 3, 2, 1]])
        >>> local = shuffled.permute(shuffled.local_order())
        >>> bool((abs(local.edge_index[0] - local.edge_index[1]) == 1).all())
        True
        """
        return np.asarray(reverse_cuthill_mckee(self.adjacency, symmetric_mode=self.is_undirected), dtype=np.int64)

    def components(self) -> np.ndarray:
        """The number of each node's connected component (n,), ignoring directions; numbered by their lowest node.

        >>> import rdgraph as rd
        >>> rd.Graph.from_edges([[0, 3], [2, 1]]).components()
        array([0, 1, 0, 1])
        """
        numbers = connected_components(self.adjacency, directed=True, connection="weak")[1]
        return np.asarray(numbers, dtype=np.int64)

    def largest_component(self) -> tuple[Graph, np.ndarray]:
        """The connected component with most nodes (the one with the lowest node among equals) and its old numbers.

        >>> import rdgraph as rd
        >>> g, kept = rd.Graph.from_edges([[1, 2], [2, 3]], num_nodes=5).largest_component()
        >>> g.num_nodes, kept
        (3, array([1, 2, 3]))
        """
        component = self.components()
        kept = np.flatnonzero(component == np.bincount(component).argmax())
        return self.subgraph(kept), kept

    # ------------------------------------------------------------------ to other forms
    def to_scipy(self) -> csr_array:
        """A copy of the adjacency (n, n), rows are targets."""
        return self.adjacency.copy()

    def to_networkx(self) -> Any:
        """A networkx Graph where undirected, else a DiGraph, with the nodes' names and `weight` on every edge."""
        names = range(self.num_nodes) if self.names is None else self.names
        return networkx_graph(self.edge_index, self.weight, names, directed=not self.is_undirected)

    # ------------------------------------------------------------------ operators
    def operator(
        self, normalisation: str = "symmetric", *, self_loops: float = 0.0, dtype: Any = None, device: Any = None
    ) -> Operator:
        """The torch operator A of this graph: symmetric D^-1/2 A D^-1/2, row D^-1 A, column A D^-1, none A (L = D - A).

        `self_loops` is added to the diagonal first. D holds sums of absolute weights, a node without edges has a zero
        row, and `symmetric` needs an undirected graph; see `rdgraph.graphs.normalisation`. The operator is
        computed in float64 and rounded to `dtype`, torch's default where None.

        >>> import rdgraph as rd
        >>> rd.Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]]).operator("row").dense()
        tensor([[0.0000, 1.0000, 0.0000],
                [0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000]])
        """
        import torch

        from rdgraph.graphs.operator import Operator, Pattern

        device = None if device is None else read_device(device)
        if device is not None and device.startswith("cuda"):
            operator = self._operator_on(normalisation, self_loops, dtype, device)
            if operator is not None:
                return operator
        matrix = sparse_operator(self.adjacency, normalisation, self_loops=self_loops)
        kind = {"dtype": torch.get_default_dtype() if dtype is None else dtype, "device": device}
        has_degrees = find_normalisation(normalisation).has_degrees
        degree = torch.as_tensor(absolute_degree(matrix)[:, None], **kind) if has_degrees else None
        weights = torch.as_tensor(matrix.data, **kind)
        if degree is not None and not bool(torch.isfinite(weights).all() and torch.isfinite(degree).all()):
            raise InvalidArgument(
                f"expected weights and degrees that {weights.dtype} holds, got larger ones; scale them"
            )
        pattern = Pattern.from_csr(matrix.indptr, matrix.indices, weights.device)
        return Operator(pattern, weights, normalisation, float(self_loops), degree=degree)

    def _operator_on(self, normalisation: str, self_loops: float, dtype: Any, device: Any) -> Operator | None:
        """The same, computed on the device; None where something is wrong, which the host code then reports."""
        import torch

        from rdgraph.graphs.kernels.edge_sorting import normalised_entries
        from rdgraph.graphs.operator import Operator, Pattern

        is_known = normalisation in NORMALISATIONS and 0 <= self_loops < float("inf")
        record = find_normalisation(normalisation) if is_known else None
        if record is None or record.entry is None or not self.num_edges:
            return None
        normalised = normalised_entries(
            self.edge_index, self.weight, self.num_nodes, record, float(self_loops), device, SYMMETRY_TOLERANCE
        )
        if normalised is None:
            return None
        entries, sums = normalised
        kind = torch.get_default_dtype() if dtype is None else dtype
        weights, degree = entries.weights.to(kind), sums[:, None].to(kind) if record.has_degrees else None
        if degree is not None and not bool(weights.isfinite().all() & degree.isfinite().all()):
            return None
        return Operator(
            Pattern.sorted(entries.indptr, entries.columns), weights, normalisation, float(self_loops), degree=degree
        )

    def homophily(self, labels: Any, kind: str = "edge") -> float:
        """How much edges join nodes of one class: "edge", "node" or "adjusted"; see `rdgraph.graphs.graph`.

        >>> import rdgraph as rd
        >>> rd.Graph.from_edges([[0, 1], [1, 2]]).homophily([0, 0, 1])
        0.5
        """
        return homophily(self.edge_index, self.num_nodes, labels, kind)

    def _renamed(self, names: Sequence[Hashable]) -> Graph:
        given = None if list(names) == list(range(self.num_nodes)) else tuple(names)
        return Graph(self.edge_index, self.weight, self.num_nodes, given)


def _is_canonical(pairs: np.ndarray, weight: np.ndarray, count: int) -> bool:
    in_range = not pairs.size or (pairs.min() >= 0 and pairs.max() < count)
    return bool(in_range and is_sorted_once(pairs, count) and np.isfinite(weight).all() and weight.all())
