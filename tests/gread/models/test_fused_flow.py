"""Flows of networks by generated kernels, in Triton's interpreter, against the same flows by torch's own operations."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest
import torch
from torch import Tensor

import rdgraph as rd
from gread.models.flow import Flow
from rdgraph.graphs.kernels.row_order import Rows
from rdgraph.graphs.operator import Pattern
from rdgraph.run.lowering import kernel_route
from rdgraph.run.solvers import steppers
from rdgraph.vocabulary.methods import find_method
from tests.equations import random_numbers as random

pytest.importorskip("triton", reason="Triton is not installed")

pytestmark = pytest.mark.skipif(
    os.environ["TRITON_INTERPRET"] != "1", reason="states of a CPU go through the interpreter alone"
)

NODES = 5


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(Pattern, "row_tensors", property(lambda p: Rows(p.indptr, p.indices).arrange(3, 4).tensors))
    return monkeypatch


def fuse(patch: pytest.MonkeyPatch, is_fused: bool) -> None:
    for module in (kernel_route, steppers, steppers):
        patch.setattr(module, "use_fused", lambda x: is_fused)
    patch.setattr(kernel_route, "can_fuse", lambda device: is_fused)


def made(equation: str) -> tuple[list[Tensor], rd.run.VectorField]:
    """Start, weights, alpha and beta, which want gradients, and their field."""
    operator = rd.generators.path(NODES).operator("row", dtype=torch.float64)
    inputs = [random(2, NODES, 3, seed=1), random(2, operator.num_edges, seed=2), *(random(2, seed=k) for k in (3, 4))]
    H0, weights, alpha, beta = (x.requires_grad_(True) for x in inputs)
    field = rd.lower(equation, operator.with_weights(weights), {"alpha": alpha, "beta": beta}, batch=(2,))
    return inputs, field.bind(H0) if field.uses_initial else field


def agree(found: list[list[Tensor]]) -> None:
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("equation", ["F", "-alpha*L@H + beta*tanh(H) + H0", "-alpha*exp(-t)*L@H + beta*tanh(H) + H0"])
@pytest.mark.parametrize(("method", "segment"), [("rk4", 0), ("rk4", 1), ("euler", 0), ("heun", 0)])
def test_flows_by_kernels_are_those_of_torch(patch, equation, method, segment):
    """Fields and sums together, as a network takes its steps, also where segments of them are computed again."""
    found = []
    for is_fused in (False, True):
        fuse(patch, is_fused)
        inputs, field = made(equation)
        flow = Flow.choose(field, method, 1.0, 0.5)
        time = torch.tensor([1.0, 0.9], dtype=torch.float64)
        state, _ = flow.run(lambda H, field=field: field, inputs[0], time, 0, segment=segment)
        found.append([state, *torch.autograd.grad(state, inputs, random(2, NODES, 3, seed=9))])
    agree(found)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_state_and_first_slope_of_a_step_send_their_gradients(patch, weight):
    found, calls = [], []
    own = steppers.FusedStep.apply
    patch.setattr(steppers.FusedStep, "apply", lambda *args: calls.append(1) or own(*args))
    for is_fused in (False, True):
        fuse(patch, is_fused)
        inputs, field = made("-alpha*L@H + beta*H0*tanh(H)")
        stepper = steppers.fixed_stepper(field.prepared(), find_method("rk4"))
        done = stepper.advance(inputs[0], torch.tensor(0.3, dtype=torch.float64))
        assert stepper.evaluations == 4
        total = weight * done.state.square().sum() + done.slope.sin().sum()
        found.append([done.state, done.slope, *torch.autograd.grad(total, inputs)])
    agree(found)
    assert len(calls) == 1


def test_second_derivatives_of_a_step(patch):
    found = []
    for is_fused in (False, True):
        fuse(patch, is_fused)
        inputs, field = made("-alpha*L@H + beta*H0*tanh(H)")
        done = steppers.fixed_stepper(field, find_method("rk4")).advance(inputs[0], torch.full((2, 1, 1), 0.3).double())
        first = torch.autograd.grad(done.state.square().sum(), inputs, create_graph=True)
        second = torch.autograd.grad(sum(x.square().sum() for x in first), inputs)
        found.append([*first, *second])
    agree(found)


@pytest.mark.parametrize("asked", [[0], [1], [2], [3]])
def test_a_gradient_of_one_input_alone(patch, asked):
    found = []
    for is_fused in (False, True):
        fuse(patch, is_fused)
        inputs, _ = made("F")
        for k, x in enumerate(inputs):
            x.requires_grad_(k in asked)
        H0, weights, alpha, beta = inputs
        operator = rd.generators.path(NODES).operator("row", dtype=torch.float64).with_weights(weights)
        field = rd.lower("F", operator, {"alpha": alpha, "beta": beta}, batch=(2,)).prepared()
        done = steppers.fixed_stepper(field, find_method("rk4")).advance(H0, torch.tensor(0.3, dtype=torch.float64))
        found.append([done.state, *torch.autograd.grad(done.state.square().sum(), [inputs[k] for k in asked])])
    agree(found)


def test_a_step_keeps_two_states_for_every_stage(patch):
    """H and A@H of every stage, and nothing of that size beside."""
    fuse(patch, True)
    inputs, field = made("F")
    kept = []

    def note(x: Tensor) -> Tensor:
        kept.append(x.data_ptr()) if x.shape == inputs[0].shape else None
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        steppers.fixed_stepper(field, find_method("rk4")).advance(inputs[0], torch.tensor(0.3, dtype=torch.float64))
    assert len(set(kept)) == 8


def test_without_a_gradient_stages_are_taken_one_by_one(patch):
    fuse(patch, True)
    patch.setattr(steppers.FusedStep, "apply", lambda *args: pytest.fail("expected stages"))
    inputs, field = made("F")
    with torch.no_grad():
        done = steppers.fixed_stepper(field, find_method("rk4")).advance(inputs[0], torch.tensor(0.3).double())
    fuse(patch, False)
    with torch.no_grad():
        expected = steppers.fixed_stepper(field, find_method("rk4")).advance(inputs[0], torch.tensor(0.3).double())
    agree([list(done), list(expected)])
