"""Operators of graphs and homophily, against dense matrices."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

import rdgraph as rd
from rdgraph.graphs.graph import KINDS, Graph
from rdgraph.graphs.normalisation import dense_adjacency, dense_operator, is_symmetric, sparse_operator
from rdgraph.testing import adjacency
from rdgraph.vocabulary.normalisations import NORMALISATIONS
from tests.paths import ROOT
from tests.rdgraph.graphs.edge_cases import TWO, matrices


# ---------------------------------------------------------------------- operators
@given(adjacency(weighted=True), st.sampled_from(tuple(NORMALISATIONS)), st.sampled_from([0.0, 1.0, 0.375]))
def test_sparse_operator_is_the_dense_one(matrix: np.ndarray, normalisation: str, self_loops: float) -> None:
    sparse = sparse_operator(csr_array(matrix), normalisation, self_loops=self_loops)
    dense = dense_operator(matrix, normalisation, self_loops=self_loops)
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-15, atol=0)
    assert sparse.has_canonical_format


@given(matrices(), st.sampled_from(["row", "column", "none"]), st.sampled_from([0.0, 1.0]))
def test_sparse_operator_is_the_dense_one_on_directed_graphs(matrix: np.ndarray, kind: str, self_loops: float) -> None:
    g = Graph.from_dense(matrix)
    sparse = sparse_operator(g.adjacency, kind, self_loops=self_loops).toarray()
    np.testing.assert_allclose(sparse, dense_operator(g, kind, self_loops=self_loops), rtol=1e-15, atol=0)
    sums = sparse.sum(axis=0 if kind == "column" else 1)
    touched = (matrix + self_loops * np.eye(len(matrix))).sum(axis=0 if kind == "column" else 1) > 0
    if kind != "none":
        np.testing.assert_allclose(sums, touched, rtol=1e-14)


@given(matrices(signed=True, undirected=True), st.sampled_from([0.0, 1.0]))
def test_signed_operators_are_normalised_by_absolute_sums(matrix: np.ndarray, self_loops: float) -> None:
    g = Graph.from_dense(matrix, signed=True)
    A = {kind: sparse_operator(g.adjacency, kind, self_loops=self_loops).toarray() for kind in NORMALISATIONS}
    looped = matrix + self_loops * np.eye(len(matrix))
    degree = np.abs(looped).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.nan_to_num(looped / np.sqrt(np.outer(degree, degree)), posinf=0.0)
    np.testing.assert_allclose(A["symmetric"], expected, rtol=1e-14)
    assert np.array_equal(A["symmetric"], A["symmetric"].T)
    assert np.linalg.norm(A["symmetric"], 2) <= 1 + 1e-12
    assert np.linalg.norm(A["row"], np.inf) <= 1 + 1e-12
    assert np.linalg.norm(A["column"], 1) <= 1 + 1e-12
    assert np.linalg.eigvalsh(np.diag(degree) - A["none"]).min() >= -1e-12


def test_self_loops_are_added_before_normalising() -> None:
    pair = csr_array([[0.5, 1.0], [1.0, 0.0]])
    assert sparse_operator(pair, "row", self_loops=2.5).toarray().tolist() == [[0.75, 0.25], [1 / 3.5, 2.5 / 3.5]]
    assert sparse_operator(pair, "none", self_loops=2.5).toarray().tolist() == [[3.0, 1.0], [1.0, 2.5]]
    assert pair.toarray().tolist() == [[0.5, 1.0], [1.0, 0.0]]


def test_stored_repeats_count_together() -> None:
    repeated = csr_array((np.array([2.0, 1.0, -1.0, 4.0]), [1, 0, 1, 0], [0, 3, 4]), shape=(2, 2))
    found = sparse_operator(repeated, "row")
    assert found.toarray().tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert found.has_canonical_format


def test_tiny_weights_are_normalised_too() -> None:
    tiny = csr_array([[0.0, 1e-310], [1e-310, 0.0]])
    for kind in ("symmetric", "row", "column"):
        assert sparse_operator(tiny, kind).toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("make", [sparse_operator, dense_operator])
def test_bad_operators_are_refused(make: Any) -> None:
    directed, square = csr_array([[0.0, 1.0], [0.0, 0.0]]), csr_array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(rd.errors.NotApplicable, match=r"undirected graph for the symmetric .*Graph\.undirected\(\)"):
        make(directed, "symmetric")
    with pytest.raises(rd.errors.UnknownName, match="expected a normalisation, got 'rows'; did you mean 'row'"):
        make(square, "rows")
    for loops in (-1.0, np.nan, np.inf):
        with pytest.raises(rd.errors.InvalidArgument, match="finite self-loop weight >= 0, got"):
            make(square, self_loops=loops)
    with pytest.raises(rd.errors.InvalidArgument, match="square"):
        make(csr_array((2, 3)))


def test_sparse_operator_wants_a_sparse_matrix() -> None:
    with pytest.raises(rd.errors.InvalidArgument, match=r"got ndarray; pass Graph\.adjacency"):
        sparse_operator(np.eye(2))


def test_symmetry_of_matrices_with_stored_zeros_and_repeats() -> None:
    assert is_symmetric(coo_array(([0.0, 1.0, 1.0, 2.0], ([0, 1, 1, 0], [1, 0, 0, 1])), shape=(2, 2)))
    assert is_symmetric(coo_array(([0.0], ([0], [1])), shape=(2, 2)))
    assert not is_symmetric(coo_array(([1.0], ([0], [1])), shape=(2, 2)))
    assert not is_symmetric(csr_array([[0.0, 1.0], [2.0, 0.0]]))


def test_dense_adjacency_keeps_the_direction() -> None:
    g = Graph.from_networkx(nx.DiGraph([(0, 1)]))
    assert dense_adjacency(g).tolist() == dense_adjacency(nx.DiGraph([(0, 1)])).tolist() == [[0, 0], [1, 0]]
    with pytest.raises(rd.errors.InvalidArgument, match="finite weights >= 0"):
        dense_adjacency(Graph.from_edges([[0], [1]], weight=[-1.0], signed=True))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("self_loops", [0.0, 0.5])
def test_operator_on_torch(normalisation: str, self_loops: float) -> None:
    torch = pytest.importorskip("torch")
    g = Graph.from_networkx(nx.barbell_graph(4, 2))
    g = Graph.from_edges(g.edge_index, 11, weight=np.ones(g.num_edges))  # node 10 is isolated
    op = g.operator(normalisation, self_loops=self_loops, dtype=torch.float64)
    expected = dense_operator(g, normalisation, self_loops=self_loops)
    np.testing.assert_allclose(op.dense().numpy(), expected, rtol=1e-14)
    assert (op.num_nodes, op.normalisation, op.self_loops, op.dtype) == (11, normalisation, self_loops, torch.float64)
    H = torch.arange(22, dtype=torch.float64).reshape(11, 2)
    np.testing.assert_allclose((op @ H).numpy(), expected @ H.numpy(), rtol=1e-13)
    D = np.diag(expected.sum(axis=1)) if normalisation == "none" else np.eye(11)
    np.testing.assert_allclose(op.laplacian(H).numpy(), (D - expected) @ H.numpy(), rtol=1e-12, atol=1e-12)
    assert (op.degree is None) == (normalisation != "none")


def test_operator_of_directed_and_signed_graphs_on_torch() -> None:
    torch = pytest.importorskip("torch")
    g = Graph.from_edges([[0, 2, 1], [1, 1, 0]], weight=[3.0, -1.0, 2.0], signed=True)
    assert repr(g) == "Graph(num_nodes=3, num_edges=3, directed=True, signed=True)"
    assert g.operator("row", dtype=torch.float64).dense().tolist() == [[0, 1, 0], [0.75, 0, -0.25], [0, 0, 0]]
    assert g.operator("none").degree.tolist() == [[2.0], [4.0], [0.0]]  # type: ignore[union-attr]
    assert g.operator("column", self_loops=1).dense().tolist()[0] == [0.25, torch.tensor(2 / 3).item(), 0.0]
    with pytest.raises(rd.errors.NotApplicable, match=r"Graph\.undirected\(\)"):
        g.operator()
    assert g.operator("row").dtype == torch.get_default_dtype()


def test_a_graph_needs_no_torch() -> None:
    program = """
import sys
from rdgraph.graphs.generators import ring
g = ring(5)
assert (g.degree == 2).all() and g.homophily([0, 0, 0, 1, 1]) == 0.6
print("torch" in sys.modules)
"""
    root = ROOT
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
def test_preflight_accepts_a_graph(normalisation: str) -> None:
    star = nx.star_graph(4)
    settings: dict[str, Any] = {"T": 2, "method": "euler", "step": 1, "normalisation": normalisation}
    report = rd.preflight("BS", graph=Graph.from_networkx(star), **settings)
    assert report.to_dict() == rd.preflight("BS", graph=star, **settings).to_dict()
    assert "5 nodes, 4 edges, 1 components" in str(report)
    one_way = Graph.from_edges(TWO)
    if normalisation == "symmetric":
        with pytest.raises(rd.errors.NotApplicable, match=r"got a directed one; symmetrise it: Graph\.undirected\(\)"):
            rd.preflight("BS", graph=one_way, **settings)
    else:
        assert "directed, |1 - lam| <= " in str(rd.preflight("BS", graph=one_way, **settings))


def test_preflight_accepts_a_matrix_symmetric_in_single_precision() -> None:
    nearly = np.array([[0.0, 1.0], [1.0 + 1e-7, 0.0]])
    assert "2 nodes, 1 edges" in str(rd.preflight("diffusion", method="exact", graph=nearly))


# ---------------------------------------------------------------------- homophily
def test_homophily_by_hand() -> None:
    # A triangle 0-1-2 of classes 0 0 1, and a tail 2-3-4 of classes 1 1 0.
    g = Graph.from_edges([[0, 1, 2, 2, 3], [1, 2, 0, 3, 4]]).undirected()
    labels = [0, 0, 1, 1, 0]
    assert g.homophily(labels) == 2 / 5
    assert g.homophily(labels, "node") == pytest.approx((1 / 2 + 1 / 2 + 1 / 3 + 1 / 2 + 0) / 5)
    chance = (5**2 + 5**2) / 10**2  # degrees 2, 2, 1 in class 0; 3, 2 in class 1
    assert g.homophily(labels, "adjusted") == pytest.approx((2 / 5 - chance) / (1 - chance))


def test_homophily_of_extreme_graphs() -> None:
    square = Graph.from_networkx(nx.cycle_graph(4))
    assert [square.homophily([0, 1, 0, 1], kind) for kind in KINDS] == [0.0, 0.0, -1.0]
    pairs = Graph.from_networkx(nx.Graph([(0, 1), (2, 3)]))
    assert [pairs.homophily([4, 4, 9, 9], kind) for kind in KINDS] == [1.0, 1.0, 1.0]
    assert [pairs.homophily([False, False, True, False], kind) for kind in ("edge", "node")] == [0.5, 0.5]


def test_homophily_where_a_measure_does_not_exist() -> None:
    g = Graph.from_networkx(nx.path_graph(3))
    assert [g.homophily([2, 2, 2], kind) for kind in ("edge", "node")] == [1.0, 1.0]
    assert np.isnan(g.homophily([2, 2, 2], "adjusted"))
    assert np.isnan(g.homophily([0, 0, -1], "adjusted"))
    for kind in KINDS:
        assert np.isnan(Graph.from_edges([[0], [0]], num_nodes=2).homophily([0, 1], kind))
        assert np.isnan(g.homophily([0, -1, 0], kind))


@given(matrices(), st.data())
def test_homophily_ignores_direction_weight_loops_and_numbering(matrix: np.ndarray, data: Any) -> None:
    n = len(matrix)
    labels = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    order = np.array(data.draw(st.permutations(range(n))))
    g = Graph.from_dense(matrix)
    plain = Graph.from_dense((matrix + matrix.T > 0).astype(float)).without_self_loops()
    known = plain.subgraph(labels >= 0) if (labels >= 0).any() else None
    for kind in KINDS:
        value = g.homophily(labels, kind)
        assert value == pytest.approx(plain.homophily(labels, kind), nan_ok=True)
        assert value == pytest.approx(g.permute(order).homophily(labels[order], kind), nan_ok=True)
        if known is not None:
            assert value == pytest.approx(known.homophily(labels[labels >= 0], kind), nan_ok=True)
    edge, adjusted = g.homophily(labels), g.homophily(labels, "adjusted")
    if not np.isnan(edge):
        pairs = [(u, v) for u, v in known.to_networkx().edges] if known is not None else []
        seen = labels[labels >= 0]
        assert edge == pytest.approx(np.mean([seen[u] == seen[v] for u, v in pairs]))
        assert np.isnan(adjusted) or adjusted <= edge + 1e-12


@pytest.mark.parametrize(
    ("labels", "kind", "text"),
    [
        ([0, 1], "edge", "labels of shape (3,), one per node, got (2,)"),
        ([0, 1, -2], "edge", "labels >= 0, or -1 for unknown, got node 2: -2"),
        ([0, 0.5, 1], "edge", "whole numbers in labels, got 0.5 at node 1"),
        (["a", "b", "c"], "edge", "whole numbers in labels, got dtype <U1"),
        ([0, 0, 1], "edges", "kind of homophily, got 'edges'; did you mean 'edge'?"),
    ],
)
def test_bad_labels_are_refused(labels: Any, kind: str, text: str) -> None:
    with pytest.raises(rd.errors.RdgraphError, match=re.escape(text)):
        Graph.from_edges(TWO).homophily(labels, kind)
