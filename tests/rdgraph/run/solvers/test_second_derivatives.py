"""Second derivatives: of fields, runs, polynomials and layers, held against finite differences of the first ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradgradcheck

import rdgraph as rd
from gread import GREADConv
from gread.kernels.linear_layers import _Linear, _LinearHeads, _LinearOnto
from gread.kernels.training_operations import dropout, row_softmax
from rdgraph.errors import NotApplicable
from rdgraph.run.solvers.polynomial_flow import LinearFlow, apply_on_quotient, apply_polynomial
from rdgraph.run.solvers.schedules import Schedule

F64 = torch.float64
GRAPH = rd.generators.path(4)
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=F64).requires_grad_(True)


def has_second_derivatives(function, *inputs: Tensor) -> bool:
    return gradgradcheck(function, inputs, fast_mode=True, rtol=1e-5, atol=1e-7)


# ---------------------------------------------------------------------- parts
@pytest.mark.parametrize("kind", ["taylor", "chebyshev"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_polynomials(kind, shared, degree):
    op = rd.Graph.from_edges([[0, 1, 2, 2], [1, 2, 0, 1]], num_nodes=4).operator("row", dtype=F64)
    weights, series = random(*(() if shared else (2,)), 4, seed=1), random(degree + 1, 2, 1, 3, seed=2)
    assert has_second_derivatives(
        lambda w, c, x: apply_polynomial(op.with_weights(w), c, x, kind), weights, series, random(2, 4, 3, seed=3)
    )


def test_polynomials_of_a_symmetric_operator_and_of_a_quotient():
    from rdgraph.graphs.twin_quotient import Quotient

    star = rd.generators.star(6).operator("symmetric", dtype=F64)
    quotient = Quotient.of(star)
    assert quotient is not None
    inputs = random(4, 1, 1, 2, seed=2), random(1, 6, 2, seed=3)
    assert has_second_derivatives(lambda c, x: apply_polynomial(star, c, x, "chebyshev"), *inputs)
    assert has_second_derivatives(lambda c, x: apply_on_quotient(quotient, c, x, "chebyshev"), *inputs)


def test_softmax_dropout_and_linear_layers():
    indptr, rows = torch.tensor([0, 2, 2, 3, 6]), torch.tensor([0, 0, 2, 3, 3, 3])
    assert has_second_derivatives(lambda x: row_softmax(indptr, rows, x), random(2, 6))
    seeds, step, rates = torch.tensor([1, 2]), torch.tensor(0), torch.tensor([0.3, 0.5])
    assert has_second_derivatives(lambda x: dropout(x, seeds, step, rates, 7, relu=True).square(), random(2, 6))
    inputs = random(2, 4, 3), random(2, 3, 2, seed=1), random(2, 2, seed=2)
    assert has_second_derivatives(_Linear.apply, *inputs)
    assert has_second_derivatives(_LinearOnto.apply, random(2, 4, 2, seed=3), *inputs)
    assert has_second_derivatives(lambda *x: _LinearHeads.apply(*x, 2, 1)[1], *inputs)


# ---------------------------------------------------------------------- fields and runs
@pytest.mark.slow
@pytest.mark.parametrize("normalisation", ["symmetric", "row", "none"])
@pytest.mark.parametrize("name", ["BS", "AC", "ST"])
def test_fields(name, normalisation):
    op = GRAPH.operator(normalisation, dtype=F64)

    def rate(alpha: Tensor, beta: Tensor, weights: Tensor, H: Tensor) -> Tensor:
        changed = op.with_weights(weights, "none" if normalisation == "none" else "free")
        return rd.lower(name, changed, {"alpha": alpha, "beta": beta}).bind(H)(0.0, H)

    assert has_second_derivatives(rate, random(), random(seed=1), op.weights.clone().requires_grad_(), random(4, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "normalisation"),
    [
        ("BS", "exact", "symmetric"), ("ST", "exact", "row"), ("diffusion", "exact", "none"),
        ("GRAND++", "exact", "row"), ("F", "strang", "row"), ("AC", "rk4", "row"),
    ],
)  # fmt: skip
def test_runs(name, method, normalisation):
    op = GRAPH.operator(normalisation, dtype=F64)
    system = rd.catalogue[name]
    letters = [n for n in ("alpha", "beta", "M") if n in system.letters]
    options = {"rtol": 1e-13} if method == "exact" else {"step": 1.0}

    def final(time: Tensor, weights: Tensor, H0: Tensor, *values: Tensor) -> Tensor:
        changed = op.with_weights(weights, "none" if normalisation == "none" else "free")
        field = rd.lower(system, changed, dict(zip(letters, values, strict=True)))
        return rd.solve(field, H0, torch.stack([torch.zeros_like(time), time]), method, **options).final

    values = [random(4, seed=k) if n == "M" else random(seed=k) for k, n in enumerate(letters)]
    time = torch.tensor(0.8, dtype=F64, requires_grad=True)
    assert has_second_derivatives(final, time, op.weights.clone().requires_grad_(), random(4, 2, seed=9), *values)


@pytest.mark.parametrize("name", ["BS", "ST", "diffusion"])
@pytest.mark.parametrize(("method", "step"), [("exact", None), ("rk4", 0.5)])
def test_linear_flows(name, method, step):
    op = GRAPH.operator("symmetric", dtype=F64)
    letters = list(rd.catalogue[name].coefficients)
    flow = LinearFlow(Schedule.make(method, 0.9, step), 16)

    def final(H0: Tensor, time: Tensor, *values: Tensor) -> Tensor:
        field = rd.lower(name, op, dict(zip(letters, values, strict=True)), batch=(2,))
        return flow(field, H0, time)

    time = torch.tensor([0.8, 0.9], dtype=F64, requires_grad=True)
    values = [random(2, seed=k) for k in range(len(letters))]
    assert has_second_derivatives(final, random(2, 4, 3), time, *values)


@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_the_adjoint_method_has_first_derivatives_alone(method):
    field = rd.lower("AC", GRAPH.operator("row", dtype=F64), {"alpha": 1.0, "beta": 1.0})
    H0 = random(4, 2)
    options = {} if method == "dopri5" else {"step": 0.1}
    total = rd.solve(field, H0, [0.0, 0.5], method, adjoint=True, **options).final.square().sum()
    with pytest.raises(NotApplicable, match="adjoint=False"):
        torch.autograd.grad(total, H0, create_graph=True)
    total = rd.solve(field, H0, [0.0, 0.5], method, adjoint=True, **options).final.square().sum()
    (found,) = torch.autograd.grad(total, H0)
    other = rd.solve(field, H0, [0.0, 0.5], method, **options).final.square().sum()
    torch.testing.assert_close(found, *torch.autograd.grad(other, H0), rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------- layers
@pytest.mark.parametrize(
    "settings",
    [
        {}, {"method": "euler", "step": 0.5}, {"adjacency": "original"}, {"reaction": "ST"},
        {"adjacency": "live", "method": "heun", "step": 0.5}, {"reaction": "AC", "method": "rk4", "step": 0.5},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.slow
def test_layers(settings):
    layer = GREADConv(2, **{"heads": 1, "attention_dim": 2, **settings}).double()
    named = {n: random(*p.shape, seed=k) for k, (n, p) in enumerate(layer.named_parameters())}

    def out(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(named, values, strict=True)), (x, EDGES))

    assert has_second_derivatives(out, random(4, 2, seed=8), *named.values())


def test_the_hessian_of_a_layer_is_that_of_the_matrix_exponential():
    layer = GREADConv(2, "diffusion", adjacency="original", self_loops=0.0, time=1.5).double()
    A = GRAPH.operator("symmetric", dtype=F64).dense()
    flow = torch.linalg.matrix_exp(1.5 * layer.coefficients()["alpha"] * (A - torch.eye(4, dtype=F64)))
    x, v = random(4, 2).detach(), random(4, 2, seed=1).detach()
    found = torch.autograd.functional.hvp(lambda x: layer(x, EDGES).pow(3).sum(), x, v)[1]
    wanted = flow.T @ (6 * (flow @ x) * (flow @ v))
    torch.testing.assert_close(found, wanted.detach(), rtol=1e-6, atol=1e-6)
