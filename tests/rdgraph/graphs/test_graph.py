"""Graphs: reading and checking, transformations, operators, homophily."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

import rdgraph as rd
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.normalisation import sparse_operator
from rdgraph.vocabulary.normalisations import NORMALISATIONS
from tests.rdgraph.graphs.edge_cases import TWO, edges, matrices


def same(left: Graph, right: Graph) -> bool:
    return (
        left.num_nodes == right.num_nodes
        and left.names == right.names
        and np.array_equal(left.edge_index, right.edge_index)
        and np.array_equal(left.weight, right.weight)
    )


# ---------------------------------------------------------------------- reading edges
def test_edges_are_sorted_by_target_and_collected_from_sources() -> None:
    g = Graph.from_edges([[2, 0, 1], [0, 2, 0]], num_nodes=4, weight=[5.0, 7.0, 3.0])
    assert g.edge_index.tolist() == [[1, 2, 0], [0, 0, 2]]
    assert g.weight.tolist() == [3.0, 5.0, 7.0]
    assert (g.edge_index.dtype, g.weight.dtype, g.num_nodes, g.num_edges) == (np.int64, np.float64, 4, 3)
    assert g.adjacency.toarray().tolist() == [[0, 3, 5, 0], [0, 0, 0, 0], [7, 0, 0, 0], [0, 0, 0, 0]]
    assert (g.adjacency @ [1.0, 10.0, 100.0, 1000.0]).tolist() == [530.0, 0.0, 7.0, 0.0]
    assert isinstance(g.adjacency, csr_array)
    assert repr(g) == "Graph(num_nodes=4, num_edges=3, directed=True)"


@pytest.mark.parametrize("kind", [list, np.array, lambda x: np.array(x, dtype=np.uint8), lambda x: np.array(x, float)])
def test_edges_come_in_many_containers(kind: Any) -> None:
    assert Graph.from_edges(kind([[0, 1], [1, 2]])).edge_index.tolist() == [[0, 1], [1, 2]]


def test_edges_come_as_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.tensor([0.5, 2.0], requires_grad=True)
    g = Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), weight=weight)
    assert g.edge_index.tolist() == [[0, 1], [1, 2]]
    assert g.weight.tolist() == [0.5, 2.0]


def test_number_of_nodes_defaults_to_the_largest_plus_one() -> None:
    assert Graph.from_edges([[0, 7], [1, 2]]).num_nodes == 8
    assert Graph.from_edges([[0], [0]], num_nodes=np.int32(3)).num_nodes == 3


@pytest.mark.parametrize("empty", [[], [[], []], np.zeros((2, 0), dtype=int)])
def test_no_edges_is_a_graph_of_isolated_nodes(empty: Any) -> None:
    g = Graph.from_edges(empty, num_nodes=3)
    assert (g.num_nodes, g.num_edges, g.is_undirected, g.has_self_loops, g.is_signed) == (3, 0, True, False, False)
    assert g.edge_index.shape == (2, 0)
    assert g.isolated.tolist() == [0, 1, 2]
    assert g.degree.tolist() == [0.0, 0.0, 0.0]
    assert g.components().tolist() == [0, 1, 2]
    assert same(g.undirected(), g)
    assert same(g.without_self_loops(), g)
    assert g.largest_component()[1].tolist() == [0]
    for normalisation in NORMALISATIONS:
        assert sparse_operator(g.adjacency, normalisation).toarray().tolist() == np.zeros((3, 3)).tolist()


def test_repeated_edges() -> None:
    pairs, weight = [[0, 2, 0, 0], [1, 1, 1, 1]], [1.0, 5.0, 2.0, 4.0]
    assert Graph.from_edges(pairs, weight=weight).weight.tolist() == [7.0, 5.0]
    assert Graph.from_edges(pairs).weight.tolist() == [3.0, 1.0]
    once = Graph.from_edges(pairs, weight=[2.0, 5.0, 2.0, 2.0], duplicates="once")
    assert once.weight.tolist() == [2.0, 5.0]
    assert once.edge_index.tolist() == [[0, 2], [1, 1]]
    assert Graph.from_edges([[1, 0], [0, 1]], duplicates="error").num_edges == 2


def test_edges_of_weight_zero_are_no_edges() -> None:
    assert Graph.from_edges([[0, 1], [1, 2]], weight=[0.0, 1.0]).edge_index.tolist() == [[1], [2]]
    cancelled = Graph.from_edges([[0, 0], [1, 1]], weight=[-1.0, 1.0], signed=True)
    assert cancelled.num_edges == 0
    assert repr(cancelled) == "Graph(num_nodes=2, num_edges=0, directed=False)"
    assert Graph.from_scipy(coo_array(([0.0], ([0], [1])), shape=(2, 2))).num_edges == 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (edges([[0, 1, 2]]), r"shape (2, E), got (1, 3); sources, then targets"),
        (edges([(0, 1), (1, 2), (2, 3)]), "got (3, 2); transpose the list of pairs"),
        (edges(5), "shape (2, E), got ()"),
        (edges([[0, 1], [1]]), "expected numbers in edge_index, got list"),
        (edges([["a"], ["b"]]), "whole numbers in edge_index, got dtype <U1"),
        (edges([[True], [False]]), "got dtype bool"),
        (edges([[0, 1, 2], [1, 2.5, 0]]), "got 2.5 at edge 1; round or remove it"),
        (edges([[0, 1], [1, np.nan]]), "got nan at edge 1"),
        (edges([[0, 1], [1, np.inf]]), "got inf at edge 1"),
        (edges(np.array([[0], [2**63]], dtype=np.uint64)), "got 9223372036854775808 at edge 0"),
        (edges([[0] * 18, [1] * 17 + [12]], 10), "in 0..9, got edge 17: node 12 is out of range; pass num_nodes=13"),
        (edges([[0, -1], [1, 1]]), "got edge 1: node -1 is out of range; nodes are numbered from 0"),
        (edges([[-1], [-1]]), "got edge 0: node -1"),
        (edges([], None), "expected at least one node, got no edges and no number of nodes; pass num_nodes="),
        (edges([], 0), "expected 1 to 2147483647 nodes, got 0; a graph has at least one node"),
        (edges([[2**31 - 1], [0]]), "nodes, got 2147483648"),
        (edges(TWO, 3.0), "expected a whole number of nodes, got 3.0 (float)"),
        (edges(TWO, weight=[1.0]), "weights of shape (2,), one per edge, got (1,)"),
        (edges(TWO, weight=[[1.0], [1.0]]), "got (2, 1)"),
        (edges(TWO, weight=["x", "y"]), "expected real weights, got dtype <U1"),
        (edges(TWO, weight=[1j, 1.0]), "expected real weights, got dtype complex128"),
        (edges(TWO, weight=[1.0, np.nan]), "expected finite weights, got edge 1: nan; remove the edge"),
        (edges(TWO, weight=[np.inf, 1.0]), "got edge 0: inf"),
        (edges(TWO, weight=[1.0, -2.0]), "weights >= 0, got edge 1: -2.0; build the graph with signed=True"),
        (edges([[5, 0, 1, 0], [0, 1, 0, 1]], duplicates="error"), "edge 3: 0 -> 1 repeats edge 1; pass duplicates="),
        (edges([[0, 0], [1, 1]], weight=[1, 2], duplicates="once"), "1: 0 -> 1 repeats edge 0 with another weight"),
        (edges([[0, 0], [1, 1]], weight=[1e308, 1e308]), "finite sums of repeated edges, got edge 1: 0 -> 1"),
        (edges(TWO, duplicates="summ"), "treatment of duplicates, got 'summ'; did you mean 'sum'?"),
        (lambda: Graph.from_scipy(np.eye(2)), "expected a scipy sparse matrix, got ndarray; see Graph.from_dense"),
        (lambda: Graph.from_scipy(csr_array((2, 3))), "expected a square matrix, got shape (2, 3)"),
        (lambda: Graph.from_scipy(csr_array((0, 0))), "nodes, got 0"),
        (lambda: Graph.from_scipy(csr_array([[0.0, -1.0], [0.0, 0.0]])), "weights >= 0"),
        (lambda: Graph.from_dense(np.zeros((2, 3))), "expected a square matrix, got shape (2, 3)"),
        (lambda: Graph.from_dense([[0.0, np.nan], [0.0, 0.0]]), "expected finite weights, got edge 0: nan"),
        (lambda: Graph.from_networkx("karate"), "expected a networkx graph, got str"),
        (lambda: Graph.from_networkx(nx.empty_graph(0)), "nodes, got 0"),
        (lambda: Graph.from_networkx(nx.path_graph(2), weight="length"), "edges with the attribute 'length', got none"),
        (lambda: Graph.from_pyg(3), "expected an object with edge_index, got int"),
        (lambda: Graph.from_pyg(pyg(edge_attr=np.ones((2, 3)))), "one column, got shape (2, 3); choose"),
    ],
)  # fmt: skip
def test_bad_graphs_are_refused(make: Any, text: str) -> None:
    with pytest.raises(rd.errors.RdgraphError, match=re.escape(text)):
        make()


def test_a_graph_checks_itself() -> None:
    g = Graph.from_edges(TWO)
    ok: dict[str, Any] = {"edge_index": g.edge_index, "weight": g.weight, "num_nodes": 3}
    assert same(Graph(**ok), g)
    for wrong in (
        {"edge_index": g.edge_index[:, ::-1]},
        {"edge_index": g.edge_index.astype(np.int32)},
        {"edge_index": g.edge_index[:, :1]},
        {"edge_index": g.edge_index - 1},
        {"edge_index": np.array([[0, 0], [1, 1]])},
        {"num_nodes": 2},
        {"weight": np.array([1.0, 0.0])},
        {"weight": np.array([1.0, np.inf])},
        {"weight": np.array([1, 1])},
    ):
        with pytest.raises(rd.errors.InvalidArgument, match=r"build the graph with Graph\.from_edges"):
            Graph(**(ok | wrong))
    with pytest.raises(rd.errors.InvalidArgument, match="expected 3 names, one per node, got 2"):
        Graph(**ok, names=("a", "b"))


def test_a_graph_cannot_be_changed() -> None:
    given = np.array(TWO)
    g = Graph.from_edges(given, weight=(weight := np.ones(2)))
    given[0, 0], weight[0] = 2, 9.0
    assert g.edge_index[0, 0] == 0
    assert g.weight[0] == 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        g.num_nodes = 5  # type: ignore[misc]
    for array in (g.edge_index, g.weight, g.degree, g.adjacency.data):
        with pytest.raises(ValueError, match="read-only"):
            array[..., 0] = 7
    copy = g.to_scipy()
    copy.data[0] = 7.0
    assert g.weight[0] == 1.0


# ---------------------------------------------------------------------- other libraries
@given(matrices(signed=True))
def test_every_form_gives_the_graph_back(matrix: np.ndarray) -> None:
    g = Graph.from_dense(matrix, signed=True)
    assert np.array_equal(g.adjacency.toarray(), matrix)
    assert g.is_signed == bool((matrix < 0).any())
    assert g.has_self_loops == bool(np.diag(matrix).any())
    assert g.is_undirected == np.array_equal(matrix, matrix.T)
    assert np.array_equal(g.degree, np.abs(matrix).sum(axis=1))
    assert same(Graph.from_scipy(g.to_scipy(), signed=True), g)
    assert same(Graph.from_scipy(g.to_scipy().tocsc(), signed=True), g)
    assert same(Graph.from_networkx(g.to_networkx(), signed=True), g)
    assert same(Graph.from_edges(g.edge_index[:, ::-1], g.num_nodes, g.weight[::-1], signed=True), g)


def test_networkx_direction_weights_and_names() -> None:
    source = nx.DiGraph()
    source.add_nodes_from(["c", "a", "b"])
    source.add_edge("a", "b", weight=2.0)
    source.add_edge("b", "b", weight=4.0)
    source.add_edge("c", "a")
    g = Graph.from_networkx(source)
    assert g.names == ("c", "a", "b")
    assert g.adjacency.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 2, 4]]
    assert Graph.from_networkx(source, weight=None).weight.tolist() == [1.0, 1.0, 1.0]
    back = g.to_networkx()
    assert isinstance(back, nx.DiGraph)
    assert list(back) == ["c", "a", "b"]
    assert back.edges["a", "b"]["weight"] == 2.0


def test_networkx_undirected_loops_and_parallel_edges() -> None:
    source = nx.MultiGraph([(0, 1, {"length": 2.0}), (0, 1, {"length": 3.0}), (1, 0), (2, 2, {"length": 5.0})])
    g = Graph.from_networkx(source, weight="length")
    assert g.adjacency.toarray().tolist() == [[0, 6, 0], [6, 0, 0], [0, 0, 5]]
    assert g.names is None
    assert type(g.to_networkx()) is nx.Graph
    parallel = nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])
    assert Graph.from_networkx(parallel).adjacency.toarray().tolist() == [[0, 1], [2, 0]]


def test_networkx_nodes_keep_their_order() -> None:
    source = nx.Graph()
    source.add_nodes_from([2, 0, 1])
    source.add_edge(2, 0)
    g = Graph.from_networkx(source)
    assert g.names == (2, 0, 1)
    assert g.edge_index.tolist() == [[1, 0], [0, 1]]


def pyg(**fields: Any) -> SimpleNamespace:
    """What `torch_geometric.data.Data` shows: fields that are not set are None."""
    usual = {"edge_index": TWO, "edge_weight": None, "edge_attr": None, "num_nodes": 4}
    return SimpleNamespace(**(usual | fields))


def test_pyg() -> None:
    assert Graph.from_pyg(pyg()).weight.tolist() == [1.0, 1.0]
    assert Graph.from_pyg(pyg()).num_nodes == 4
    assert Graph.from_pyg(pyg(num_nodes=None)).num_nodes == 3
    assert Graph.from_pyg(pyg(edge_weight=[2.0, 3.0], edge_attr=np.ones((2, 5)))).weight.tolist() == [2.0, 3.0]
    assert Graph.from_pyg(pyg(edge_attr=np.array([[2.0], [3.0]]))).weight.tolist() == [2.0, 3.0]
    assert Graph.from_pyg(pyg(edge_attr=np.array([2.0, 3.0]))).weight.tolist() == [2.0, 3.0]
    assert Graph.from_pyg(pyg(edge_weight=[-2.0, 3.0]), signed=True).is_signed
    torch = pytest.importorskip("torch")
    data = pyg(edge_index=torch.tensor(TWO), edge_attr=torch.tensor([[0.5], [0.25]]))
    assert Graph.from_pyg(data).weight.tolist() == [0.5, 0.25]


def test_the_real_pyg() -> None:
    torch, geometric = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = geometric.Data(x=torch.zeros(4, 1), edge_index=torch.tensor(TWO), edge_attr=torch.tensor([[0.5], [2.0]]))
    g = Graph.from_pyg(data)
    assert (g.num_nodes, g.weight.tolist()) == (4, [0.5, 2.0])


# ---------------------------------------------------------------------- other graphs
@given(matrices(signed=True))
def test_undirected_is_the_union_with_the_larger_weight(matrix: np.ndarray) -> None:
    g = Graph.from_dense(matrix, signed=True)
    stronger = np.abs(matrix) > np.abs(matrix.T)
    expected = np.where(stronger, matrix, matrix.T)
    tied = np.abs(matrix) == np.abs(matrix.T)
    expected = np.where(tied, np.maximum(matrix, matrix.T), expected)
    union = g.undirected()
    assert np.array_equal(union.adjacency.toarray(), expected)
    assert union.is_undirected
    assert same(union.undirected(), union)


@given(matrices(signed=True))
def test_without_self_loops(matrix: np.ndarray) -> None:
    bare = Graph.from_dense(matrix, signed=True).without_self_loops()
    assert not bare.has_self_loops
    assert np.array_equal(bare.adjacency.toarray(), matrix - np.diag(np.diag(matrix)))


@given(matrices(signed=True), st.randoms(use_true_random=False))
def test_permutation_is_equivariant(matrix: np.ndarray, random: Any) -> None:
    order = random.sample(range(len(matrix)), len(matrix))
    g = Graph.from_dense(matrix, signed=True)
    moved = g.permute(order)
    H = np.arange(3.0 * len(matrix)).reshape(-1, 3)
    assert np.array_equal(moved.adjacency.toarray(), matrix[np.ix_(order, order)])
    assert np.array_equal(moved.adjacency @ H[order], (g.adjacency @ H)[order])
    assert np.array_equal(moved.degree, g.degree[order])
    assert same(moved.permute(np.argsort(order)), g)


@given(matrices(), st.data())
def test_subgraph_restricts_the_matrix(matrix: np.ndarray, data: Any) -> None:
    nodes = data.draw(st.lists(st.integers(0, len(matrix) - 1), min_size=1, unique=True))
    g = Graph.from_dense(matrix)
    assert np.array_equal(g.subgraph(nodes).adjacency.toarray(), matrix[np.ix_(nodes, nodes)])
    mask = np.isin(np.arange(len(matrix)), nodes)
    assert same(g.subgraph(mask), g.subgraph(sorted(nodes)))


def test_names_follow_their_nodes() -> None:
    g = Graph.from_networkx(nx.DiGraph([("a", "b"), ("c", "d"), ("d", "e")]))
    assert g.permute([4, 3, 2, 1, 0]).names == ("e", "d", "c", "b", "a")
    assert g.subgraph([3, 0]).names == ("d", "a")
    assert g.undirected().names == g.without_self_loops().names == g.names
    assert g.largest_component()[0].names == ("c", "d", "e")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda g: g.subgraph([]), "shape (k,), k >= 1, got (0,)"),
        (lambda g: g.subgraph([0, 3]), "nodes in 0..2, got entry 1: node 3"),
        (lambda g: g.subgraph([-1]), "got entry 0: node -1"),
        (lambda g: g.subgraph([0, 1, 0]), "distinct nodes, got entry 2: node 0 again"),
        (lambda g: g.subgraph([[0, 1]]), "got (1, 2)"),
        (lambda g: g.subgraph([True, False]), "expected a mask of shape (3,), got (2,)"),
        (lambda g: g.subgraph([False] * 3), "choose a node at least"),
        (lambda g: g.permute([0, 1]), "expected an order of all 3 nodes, got 2; see Graph.subgraph"),
        (lambda g: g.permute([0, 1, 1]), "entry 2: node 1 again"),
        (lambda g: g.permute([0, 1, 0.5]), "whole numbers in nodes, got 0.5 at entry 2"),
    ],
)
def test_bad_choices_of_nodes_are_refused(call: Any, text: str) -> None:
    with pytest.raises(rd.errors.InvalidArgument, match=re.escape(text)):
        call(Graph.from_edges(TWO))


@given(matrices(max_nodes=7))
def test_components_are_networkx_weak_components(matrix: np.ndarray) -> None:
    g = Graph.from_dense(matrix)
    label = g.components()
    expected = list(nx.weakly_connected_components(nx.DiGraph(g.to_networkx())))
    assert {frozenset(np.flatnonzero(label == k).tolist()) for k in set(label.tolist())} == set(
        map(frozenset, expected)
    )
    assert list(dict.fromkeys(label.tolist())) == list(range(len(expected)))  # numbered by their lowest node
    largest, kept = g.largest_component()
    assert largest.num_nodes == kept.size == max(map(len, expected))
    assert same(largest, g.subgraph(kept))
    assert kept.tolist() == min(sorted(c) for c in expected if len(c) == kept.size)


def test_isolated_nodes_have_no_neighbour_in_either_direction() -> None:
    g = Graph.from_edges([[0, 2, 3], [1, 2, 3]], num_nodes=5)
    assert g.isolated.tolist() == [2, 3, 4]


def test_undirected_up_to_rounding() -> None:
    assert Graph.from_edges([[0, 1], [1, 0]], weight=[0.1 + 0.2, 0.3]).is_undirected
    assert not Graph.from_edges([[0, 1], [1, 0]], weight=[0.3, 0.3 + 1e-9]).is_undirected
    assert not Graph.from_edges([[0], [1]], weight=[1e-300]).is_undirected
