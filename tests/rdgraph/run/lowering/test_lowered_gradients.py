"""Lowered fields as parts of torch: gradients, parameters, compilation, torchdiffeq, Jacobians."""

from __future__ import annotations

import pytest
import sympy as sp
import torch
import torchdiffeq
from torch import nn
from torch.autograd import gradcheck

import rdgraph as rd
from tests.rdgraph.run.lowering.lowering_cases import CHANNELS, NODES, operator, random, values_for


@pytest.mark.parametrize("text", ["BS", "F", "tanh(A@H)@W - L@H + a*H0"])
def test_gradients_reach_states_coefficients_matrices_and_edges(text):
    system, op = rd.parse(text), operator("row")
    values = {n: v.requires_grad_(True) for n, v in values_for(system, NODES, 2).items()}
    inputs = [op.weights.clone().requires_grad_(True), random(NODES, 2).requires_grad_(True), *values.values()]

    def run(weights, H, *coefficients):
        named = dict(zip(values, coefficients, strict=True))
        return rd.lower(system, op.with_weights(weights), named).bind(H)(0.0, H)

    assert gradcheck(run, inputs, fast_mode=True)


def test_parameters_are_parameters_of_the_module_and_follow_an_optimiser():
    beta = nn.Parameter(torch.ones(CHANNELS, dtype=torch.float64))
    system = rd.parse("-alpha*L@H + beta*H", {"beta": "channel"})
    field = rd.lower(system, operator(), {"alpha": 1.0, "beta": beta})
    assert [id(p) for p in field.parameters()] == [id(beta)]
    H = random(NODES, CHANNELS)
    before = field(0.0, H)
    with torch.no_grad():
        beta += 1.0
    torch.testing.assert_close(field(0.0, H), before + H)
    field(0.0, H).sum().backward()
    torch.testing.assert_close(beta.grad, H.sum(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BS", "AC", "ST"])
def test_compiled_equals_eager(name):
    system, op = rd.parse(name), operator()
    values = {n: v.requires_grad_(True) for n, v in values_for(system, NODES, CHANNELS).items()}
    field = rd.lower(system, op, values).bind(random(NODES, CHANNELS, seed=5))
    compiled = torch.compile(field, backend="aot_eager", fullgraph=True)
    for_eager, for_compiled = (random(NODES, CHANNELS, seed=4).requires_grad_(True) for _ in range(2))
    one, two = field(0.0, for_eager), compiled(0.0, for_compiled)
    torch.testing.assert_close(one, two)
    first = torch.autograd.grad(one.sum(), [for_eager, *values.values()])
    second = torch.autograd.grad(two.sum(), [for_compiled, *values.values()])
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("solver", [torchdiffeq.odeint, torchdiffeq.odeint_adjoint])
def test_torchdiffeq_accepts_the_field_unchanged(solver):
    field = rd.lower("diffusion", operator(), {"alpha": 1.0})
    H = random(NODES, 2)
    times = torch.tensor([0.0, 1.5], dtype=torch.float64)
    found = solver(field, H, times, rtol=1e-9, atol=1e-11)[-1]
    generator = operator().dense() - torch.eye(NODES, dtype=torch.float64)
    torch.testing.assert_close(found, torch.linalg.matrix_exp(1.5 * generator) @ H, rtol=1e-7, atol=1e-7)


def test_the_jacobian_is_the_symbolic_one():
    """d/dH of beta*h**2*(1 - h) from sympy, against autograd through the lowered field."""
    field = rd.lower("Z", operator(), {"alpha": 0.0, "beta": 2.0})
    H = random(NODES, 1)
    found = torch.autograd.functional.jacobian(lambda x: field(0.0, x), H).reshape(NODES, NODES)
    h = sp.Symbol("h")
    slope = sp.lambdify(h, sp.diff(2 * h**2 * (1 - h), h))
    torch.testing.assert_close(found, torch.diag(slope(H[:, 0])))
