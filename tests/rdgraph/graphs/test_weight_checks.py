"""Declared properties of weights hold: verified for given weights, dropped when weights change in place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.autograd import gradcheck

import rdgraph as rd
from gread import GREADConv
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator, spectral_radius
from rdgraph.run.solvers.polynomial_flow import is_polynomial

F64 = torch.float64
GRAPH = rd.generators.erdos_renyi(9, 0.4, 2)
KINDS = ("symmetric", "row", "column")


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def operator(kind: str = "row", dtype: torch.dtype = F64) -> Operator:
    return GRAPH.operator(kind, dtype=dtype)


def exact_error(field: rd.run.VectorField, H0: Tensor, time: float = 3.0) -> float:
    """Of `exact` for diffusion at alpha = 1, against the matrix exponential of what L@H says."""
    generator = -field.operator.laplacian(torch.eye(9, dtype=F64)).detach()
    wanted = torch.linalg.matrix_exp(time * generator) @ H0
    found = rd.solve(field, H0, [0.0, time], "exact").final.detach()
    return float((found - wanted).abs().max() / wanted.abs().max())


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize("kind", ["row", "column"])
@pytest.mark.parametrize(
    "change", [lambda w: 1.2 * w, lambda w: 0.9 * w, lambda w: w * torch.nan], ids=["more", "less", "nan"]
)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_sums_other_than_one_are_refused(kind, change, batch):
    op = operator(kind)
    with pytest.raises(InvalidArgument, match=rf"normalisation {kind}, whose {kind}s sum to 1 .*'free'"):
        op.with_weights(change(op.weights).expand(*batch, -1), kind)
    one = op.weights.expand(*batch, -1).clone()
    one[..., 3] += 1e-3
    with pytest.raises(InvalidArgument, match="at node"):
        op.with_weights(one, kind)


def test_symmetric_weights_are_symmetric_and_bounded():
    op = operator("symmetric")
    lopsided = op.weights.clone()
    lopsided[0] *= 1 + 1e-6
    for wrong, words in (
        (lopsided, "both directions"),
        (1.1 * op.weights, "eigenvalues of .* up to 1, got 1.1"),
        (torch.stack([op.weights, 1.1 * op.weights]), "got 1.1"),
        (-1.1 * op.weights, "got 1.1"),
        (op.weights * torch.nan, "both directions"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            op.with_weights(wrong, "symmetric")
    arrow = rd.Graph.from_edges([[0, 1], [1, 2]]).operator("row", dtype=F64)
    with pytest.raises(InvalidArgument, match="both directions"):
        arrow.with_weights(arrow.weights / 2, "symmetric")
    assert op.with_weights(0.5 * op.weights, "symmetric").norm == ("2", 1.0)
    assert op.with_weights(-op.weights, "symmetric").norm == ("2", 1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, F64, torch.bfloat16])
@pytest.mark.parametrize("nodes", [9, 200])
def test_what_a_graph_makes_is_accepted(kind, dtype, nodes):
    """Weighted, signed, with isolated nodes, in every precision; 200 nodes are beyond the dense eigenvalues."""
    draw = np.random.default_rng(nodes)
    matrix = np.triu(draw.normal(size=(nodes, nodes)) * (draw.random((nodes, nodes)) < 5 / nodes), 1)
    matrix[0] = matrix[:, 0] = 0
    op = rd.Graph.from_dense(matrix + matrix.T, signed=True).operator(kind, self_loops=0.3, dtype=dtype)
    assert op.with_weights(op.weights, kind).is_normalised
    assert Operator.from_csr(op.pattern.indptr, op.pattern.indices, op.weights, normalisation=kind).norm == op.norm


def test_the_radius_of_a_weighted_graph():
    draw = np.random.default_rng(0)
    matrix = np.triu(draw.random((120, 120)) * (draw.random((120, 120)) < 0.05), 1)
    matrix += matrix.T
    assert spectral_radius(csr_array(matrix)) == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-6)


def test_a_degree_and_a_normalisation_exclude_each_other():
    op = operator("row")
    with pytest.raises(InvalidArgument, match="no degree with the normalisation row"):
        op.with_weights(op.weights, "row", torch.ones(9, 1, dtype=F64))
    with pytest.raises(InvalidArgument, match="expected degrees"):
        Operator(op.pattern, op.weights, "none")


# ---------------------------------------------------------------------- L = D - A
@pytest.mark.parametrize("batch", [(), (2,)])
def test_weights_of_normalisation_none_bring_their_degree(batch):
    op = operator("none")
    weights = random(*batch, op.num_edges, seed=1) - 0.3
    new = op.with_weights(weights, "none")
    matrix, x = new.dense(), random(*batch, 9, 2)
    wanted = matrix.abs().sum(-1, keepdim=True) * x - matrix @ x
    torch.testing.assert_close(new.laplacian(x), wanted, rtol=1e-13, atol=1e-13)
    field = rd.lower("-alpha*L@H", new, {"alpha": 1.0}, batch=batch)
    torch.testing.assert_close(field(0.0, x), -wanted, rtol=1e-13, atol=1e-13)
    leaf = weights.clone().requires_grad_(True)
    assert gradcheck(lambda w: op.with_weights(w, "none").laplacian(x), (leaf,))


def test_trained_weights_of_normalisation_none_take_their_degree_along():
    op, H = operator("none"), random(9, 2)
    weights = nn.Parameter(op.weights.clone())
    field = rd.lower("-L@H", op.with_weights(weights, "none"), {})
    optimiser = torch.optim.SGD([weights], lr=0.05)
    for _ in range(3):
        optimiser.zero_grad()
        field(0.0, H).square().sum().backward()
        optimiser.step()
    assert not torch.allclose(weights, op.weights)
    matrix = op.with_weights(weights.detach()).dense()
    torch.testing.assert_close(field(0.0, H), matrix @ H - matrix.abs().sum(1, keepdim=True) * H)
    assert exact_error(field, H) < 1e-9


# ---------------------------------------------------------------------- exact and its gradient
@pytest.mark.parametrize("kind", KINDS)
def test_exact_is_exact_for_free_weights(kind):
    op = operator(kind)
    free = op.with_weights(op.weights * (1 + random(op.num_edges, seed=3)))
    field, H0 = rd.lower("diffusion", free, {"alpha": 1.0}), random(9, 2).requires_grad_(True)
    assert exact_error(field, H0.detach()) < 1e-9
    rd.solve(field, H0, [0.0, 3.0], "exact").final.sum().backward()
    flow = torch.linalg.matrix_exp(3.0 * (free.dense() - torch.eye(9, dtype=F64)))
    torch.testing.assert_close(H0.grad, flow.T @ torch.ones(9, 2, dtype=F64), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_changed_in_place_lose_their_label(kind):
    """By an optimiser or by hand: what was known of them is forgotten, by values and by gradients."""
    op = operator(kind)
    weights = nn.Parameter(op.weights.clone())
    field, H0 = rd.lower("diffusion", op.with_weights(weights, kind), {"alpha": 1.0}), random(9, 2)
    assert is_polynomial(field)
    assert exact_error(field, H0) < 1e-9
    with torch.no_grad():
        weights.add_(0.3 * random(op.num_edges, seed=4))
    assert not is_polynomial(field)
    assert field.operator.normalisation == "free"
    assert exact_error(field, H0) < 1e-9
    field.requires_grad_(False)
    assert exact_error(field, H0) < 1e-9
    assert exact_error(field.to(F64), H0) < 1e-9
    start = random(9, 2).requires_grad_(True)
    rd.solve(field, start, [0.0, 3.0], "exact").final.sum().backward()
    flow = torch.linalg.matrix_exp(3.0 * (field.operator.dense() - torch.eye(9, dtype=F64)))
    torch.testing.assert_close(start.grad, flow.T @ torch.ones(9, 2, dtype=F64), rtol=1e-9, atol=1e-9)


def test_weights_put_in_the_place_of_others_are_free():
    op = operator("row")
    field, H0 = (
        rd.lower("diffusion", op.with_weights(nn.Parameter(op.weights.clone()), "row"), {"alpha": 1.0}),
        random(9, 2),
    )
    other = {"_weights": 1.7 * op.weights}
    found = torch.func.functional_call(field, other, (0.0, H0))
    torch.testing.assert_close(found, 1.7 * op.dense() @ H0 - H0)
    assert field.operator.normalisation == "row"


# ---------------------------------------------------------------------- the softmax
def test_soft_adjacency_is_not_asked(monkeypatch):
    """Its rows sum to 1 by construction: no check, and nothing fetched from a device, in training."""

    def refuse(*_):
        raise AssertionError("checked")

    monkeypatch.setattr("rdgraph.graphs.operator.check_normalisation", refuse)
    layer = GREADConv(4, "BS", heads=2, attention_dim=8).double()
    edges = torch.tensor(GRAPH.edge_index)
    made = layer.operator(random(9, 4), edges)
    assert made.norm == ("inf", 1.0)
    torch.testing.assert_close(made.dense().sum(1), torch.ones(9, dtype=F64))
    layer(random(9, 4), edges).sum().backward()
