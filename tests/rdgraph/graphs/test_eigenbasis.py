"""Small matrices in their eigenbasis: polynomials are those of sparse products, states and gradients."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.graphs import eigenbasis
from rdgraph.graphs.eigenbasis import Eigenbasis
from rdgraph.graphs.operator import Operator
from rdgraph.run.solvers.polynomial_flow import LinearFlow, apply_polynomial
from rdgraph.run.solvers.schedules import Schedule


def graph_of(number: int, nodes: int = 12) -> rd.Graph:
    """A random graph, whose parts need not be connected and whose nodes may be alone."""
    return rd.Graph.from_networkx(nx.gnp_random_graph(nodes, 0.25, seed=number))


@given(
    number=st.integers(0, 50), normalisation=st.sampled_from(["symmetric", "row", "column", "none"]),
    loops=st.sampled_from([0.0, 1.0, 0.3]), kind=st.sampled_from(["taylor", "chebyshev"]), degree=st.integers(0, 9),
    channels=st.sampled_from([1, 3]),
)  # fmt: skip
def test_a_polynomial_in_the_eigenbasis_is_that_of_products(number, normalisation, loops, kind, degree, channels):
    op = graph_of(number).operator(normalisation, self_loops=loops, dtype=torch.float64)
    basis = Eigenbasis.of(op)
    assert basis is not None
    torch.manual_seed(number)
    series = torch.randn(degree + 1, 2, 1, channels, dtype=torch.float64, requires_grad=True)
    x = torch.randn(2, 12, 3, dtype=torch.float64, requires_grad=True)
    g = torch.randn(2, 12, 3, dtype=torch.float64)
    results = [basis.apply(series, x, kind), apply_polynomial(op, series, x, kind)]
    slopes = [torch.autograd.grad(out, (series, x), g) for out in results]
    for found, expected in zip((results[0], *slopes[0]), (results[1], *slopes[1]), strict=True):
        scale = float(expected.detach().abs().max()) + 1e-30
        assert float((found - expected).detach().abs().max()) <= 1e-10 * scale


def test_the_eigenvectors_give_the_matrix_back():
    op = graph_of(3).operator("row", self_loops=1.0, dtype=torch.float64)
    basis = Eigenbasis.of(op)
    assert basis is not None
    again = basis.back @ torch.diag(basis.values) @ basis.into
    torch.testing.assert_close(again, op.dense(), atol=1e-13, rtol=0)
    torch.testing.assert_close(basis.into @ basis.back, torch.eye(12, dtype=torch.float64), atol=1e-13, rtol=0)


def test_weights_of_any_positive_balance_are_found():
    random = np.random.default_rng(0)
    symmetric = random.random((6, 6)) + 0.1
    symmetric = symmetric + symmetric.T
    scale = random.random(6) + 0.2
    dense = scale[:, None] * symmetric
    rows = np.arange(0, 37, 6)
    op = Operator.from_csr(rows, np.tile(np.arange(6), 6), torch.tensor(dense.ravel()))
    basis = Eigenbasis.of(op)
    assert basis is not None
    torch.testing.assert_close(basis.values.sort().values, torch.tensor(np.sort(np.linalg.eigvals(dense).real)))
    cyclic = dense.copy()
    cyclic[0, 1] *= 1.01  # no scaling undoes a single edge that lies on cycles
    assert Eigenbasis.of(Operator.from_csr(rows, np.tile(np.arange(6), 6), torch.tensor(cyclic.ravel()))) is None


def test_no_eigenbasis_where_there_is_none_or_it_may_not_be(monkeypatch):
    path = rd.generators.path(4)
    op = path.operator("row", dtype=torch.float64)
    assert Eigenbasis.of(op) is not None
    assert Eigenbasis.of(op.with_weights(op.weights.clone().requires_grad_())) is None
    assert Eigenbasis.of(op.with_weights(op.weights.expand(2, -1).clone())) is None
    directed = Operator.from_csr([0, 1, 2, 3], [1, 2, 0], torch.ones(3))
    assert Eigenbasis.of(directed) is None
    opposite = Operator.from_csr([0, 1, 2], [1, 0], torch.tensor([1.0, -1.0]))  # eigenvalues i and -i
    assert Eigenbasis.of(opposite) is None
    steep = Operator.from_csr([0, 1, 2], [1, 0], torch.tensor([1e9, 1.0]))
    assert Eigenbasis.of(steep) is None
    monkeypatch.setattr(eigenbasis, "MOST_NODES", 3)
    assert Eigenbasis.of(op) is None


@pytest.mark.parametrize("name", ["BS", "ST", "diffusion"])
def test_a_flow_with_a_shortcut_is_the_flow(name):
    op = graph_of(5).operator("symmetric", dtype=torch.float64)
    basis = Eigenbasis.of(op)
    assert basis is not None
    values = {"alpha": torch.tensor([0.7, 1.0], dtype=torch.float64), "beta": torch.rand(2, 3, dtype=torch.float64)}
    system = rd.parse(name, {"beta": "channel"} if name != "diffusion" else None)
    field = rd.lower(system, op, {k: v for k, v in values.items() if k in system.letters}, batch=(2,))
    H0, times = torch.randn(2, 12, 3, dtype=torch.float64), torch.tensor([1.5, 0.5], dtype=torch.float64)
    schedule = Schedule.make("rk4", 1.5, 0.5)
    degree = LinearFlow.needed(field, H0, schedule, times)
    used = []
    kept = Eigenbasis.apply
    counted = lambda self, *given: used.append(1) or kept(self, *given)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Eigenbasis, "apply", counted)
        found = LinearFlow(schedule, degree, basis)(field, H0, times)
    assert used
    torch.testing.assert_close(found, LinearFlow(schedule, degree)(field, H0, times), rtol=1e-11, atol=1e-12)


def test_short_polynomials_of_larger_graphs_stay_with_products():
    op = rd.generators.path(120).operator("symmetric", dtype=torch.float64)
    basis = Eigenbasis.of(op)
    assert basis is not None
    assert (basis.pays(4), basis.pays(5)) == (False, True)
