"""Twins taken together: polynomials on the quotient graph are those on the graph, states and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import Tensor

import rdgraph as rd
from rdgraph.graphs.operator import Operator
from rdgraph.graphs.twin_quotient import Quotient
from rdgraph.run.solvers.polynomial_flow import LinearFlow, apply_on_quotient, apply_polynomial
from rdgraph.run.solvers.schedules import Schedule
from rdgraph.testing import adjacency
from tests.property_examples import examples


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def blown_up(matrix: np.ndarray, sizes: list[int]) -> rd.Graph:
    """Every node of a graph as often as asked; copies have the same neighbours and no edge among them."""
    copies = np.repeat(np.arange(len(matrix)), sizes)
    return rd.Graph.from_dense(matrix[copies][:, copies])


@st.composite
def graphs_with_twins(draw) -> rd.Graph:
    matrix = draw(adjacency(2, 5, connected=True, weighted=True))
    return blown_up(matrix, draw(st.lists(st.integers(2, 4), min_size=len(matrix), max_size=len(matrix))))


def polynomial(op: Operator, kind: str, c: Tensor, x: Tensor) -> Tensor:
    """With dense matrices."""
    A = op.dense()
    terms = [torch.eye(len(A), dtype=torch.float64), A]
    for _ in range(2, len(c)):
        terms.append(2 * A @ terms[-1] - terms[-2] if kind == "chebyshev" else A @ terms[-1])
    return sum((c[k] * (terms[k] @ x) for k in range(len(c))), torch.zeros_like(x))


@settings(max_examples=examples(40))
@given(
    graph=graphs_with_twins(),
    normalisation=st.sampled_from(["symmetric", "row", "column"]),
    loops=st.sampled_from([0.0, 0.5, 1.0]),
    kind=st.sampled_from(["taylor", "chebyshev"]),
    count=st.integers(1, 7),
)
def test_a_polynomial_on_the_quotient_is_the_one_on_the_graph(graph, normalisation, loops, kind, count):
    op = graph.operator(normalisation, self_loops=loops, dtype=torch.float64)
    quotient = Quotient.of(op)
    assert quotient is not None
    assert quotient.operator.num_nodes <= graph.num_nodes // 2
    x, c = random(2, graph.num_nodes, 3), random(count, 2, 1, 3, seed=1)
    expected = polynomial(op, kind, c, x)
    scale = float(expected.abs().max()) + float(x.abs().max())
    assert float((apply_on_quotient(quotient, c, x, kind) - expected).abs().max()) <= 1e-11 * scale
    assert float((apply_polynomial(op, c, x, kind) - expected).abs().max()) <= 1e-11 * scale


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "column"])
@pytest.mark.parametrize("method", [("euler", 0.5), ("exact", None)])
@pytest.mark.parametrize("loops", [0.0, 1.0])
def test_flows_and_gradients_are_those_of_the_graph(normalisation, method, loops):
    base = rd.generators.erdos_renyi(8, 0.4, 1).adjacency.toarray()
    op = blown_up(base, [1, 2, 3, 4, 5, 2, 2, 1]).operator(normalisation, self_loops=loops, dtype=torch.float64)
    quotient = Quotient.of(op)
    assert quotient is not None
    alpha, beta, H0 = random(3).sigmoid(), random(3, 4, seed=1), random(3, op.num_nodes, 4, seed=2)
    leaves = [x.requires_grad_(True) for x in (alpha, beta, H0)]
    field = rd.lower(rd.parse("BS", {"beta": "channel"}), op, {"alpha": alpha, "beta": beta}, batch=(3,))
    times = torch.tensor([1.3, 1.4, 1.5], dtype=torch.float64)
    schedule = Schedule.make(method[0], 1.5, method[1])
    degree = 6 if method[0] == "euler" else 40
    found = [LinearFlow(schedule, degree, q)(field, H0, times) for q in (None, quotient)]
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-11)
    weight = random(*H0.shape, seed=3)
    slopes = [torch.autograd.grad((out * weight).sum(), leaves) for out in found]
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


def test_stars_and_complete_bipartite_graphs_have_two_groups():
    for graph, sizes in ((rd.generators.star(30), (1, 29)), (blown_up(1 - np.eye(2), [7, 11]), (7, 11))):
        op = graph.operator("row", dtype=torch.float64)
        quotient = Quotient.of(op)
        assert quotient is not None
        assert quotient.operator.num_nodes == 2
        ones = torch.ones(1, graph.num_nodes, 1, dtype=torch.float64)
        spread = quotient.spread.product(quotient.ones, torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)).ravel()
        assert sorted(np.bincount(spread.int())[1:].tolist()) == sorted(sizes)
        torch.testing.assert_close(quotient.mean(ones), torch.ones(1, 2, 1, dtype=torch.float64))
        torch.testing.assert_close(quotient.operator.dense(), torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double())


def test_twins_need_equal_weights_and_loops():
    """The leaves of a star are twins; with another weight, or a loop on one of them, that one is none."""
    same = np.zeros((9, 9))
    same[0, 1:] = same[1:, 0] = 1.0
    other, loop = same.copy(), same.copy()
    other[0, 1] = other[1, 0] = 2.0
    loop[1, 1] = 3.0
    sizes = []
    for matrix in (same, other, loop):
        rows = csr_array(matrix)
        op = Operator.from_csr(rows.indptr, rows.indices, torch.tensor(rows.data))
        quotient = Quotient.of(op)
        assert quotient is not None
        sizes.append(quotient.operator.num_nodes)
        x, c = random(1, 9, 2), random(4, 1, 1, 2, seed=1)
        torch.testing.assert_close(apply_on_quotient(quotient, c, x, "taylor"), polynomial(op, "taylor", c, x))
    assert sizes == [2, 3, 3]


def test_directed_twins_agree_in_rows_and_columns():
    """1 and 2 collect from the same node but send to different ones: no twins; 3 to 8 are."""
    edges = [(0, k) for k in range(1, 9)] + [(1, 9), (2, 10)]
    graph = rd.Graph.from_edges(np.array(edges).T, num_nodes=11)
    quotient = Quotient.of(graph.operator("row", self_loops=1.0, dtype=torch.float64))
    assert quotient is not None
    assert quotient.operator.num_nodes == 6
    op, x, c = graph.operator("row", self_loops=1.0, dtype=torch.float64), random(1, 11, 2), random(4, 1, 1, 2)
    torch.testing.assert_close(apply_on_quotient(quotient, c, x, "taylor"), polynomial(op, "taylor", c, x))


def test_no_quotient_where_it_does_not_pay_or_may_not_be():
    star = rd.generators.star(30).operator("row", dtype=torch.float64)
    assert Quotient.of(star) is not None
    assert Quotient.of(rd.generators.ring(12).operator("row")) is None
    assert Quotient.of(star.with_weights(star.weights.expand(2, -1), "row")) is None
    assert Quotient.of(star.with_weights(star.weights.clone().requires_grad_(True), "row")) is None
    assert Quotient.of(rd.generators.star(30).operator("none")) is None
    assert Quotient.of(rd.Graph.from_edges([[], []], num_nodes=1).operator("row", self_loops=1.0)) is None


def test_large_graphs_are_not_searched(monkeypatch):
    monkeypatch.setattr("rdgraph.graphs.twin_quotient.MOST_NODES", 29)
    assert Quotient.of(rd.generators.star(30).operator("row")) is None
    assert Quotient.of(rd.generators.star(29).operator("row")) is not None
