"""The sums of Runge-Kutta methods by one kernel, in Triton's interpreter, against torch's own operations."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from rdgraph.run.solvers import steppers
from rdgraph.run.solvers.steppers import FusedSum, combine
from tests.equations import random_numbers as random

pytest.importorskip("triton", reason="Triton is not installed")

interpreted = pytest.mark.skipif(
    os.environ["TRITON_INTERPRET"] != "1", reason="states of a CPU go through the interpreter alone"
)

SHAPE = (3, 5, 2)
ROWS = [[0.5], [0.0, 0.5], [1 / 6, 1 / 3, 1 / 3, 1 / 6], [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]
STEPS = {"one": (), "each": (3, 1, 1), "axes": (1, 1, 1)}


def summed(weights: list[float], dt: Tensor, shape: tuple[int, ...] = SHAPE) -> list[Tensor]:
    """The sum and the gradients in the state and in every slope."""
    inputs = [random(*shape, seed=k).requires_grad_(True) for k in range(len(weights) + 1)]
    out = combine(inputs[0], dt, weights, inputs[1:])
    g = random(*shape, seed=99)
    return [out, *torch.autograd.grad(out, inputs, g, allow_unused=True, materialize_grads=True)]


@interpreted
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("weights", ROWS, ids=len)
def test_values_and_gradients_are_those_of_torch(monkeypatch, weights, step):
    dt = random(*STEPS[step], seed=7)
    expected = summed(weights, dt)
    monkeypatch.setattr(steppers, "use_fused", lambda x: True)
    for one, two in zip(summed(weights, dt), expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@interpreted
def test_steps_that_are_one_number_in_memory(monkeypatch):
    """A step that is spread over the members lies in one place; two axes of members are counted through."""
    monkeypatch.setattr(steppers, "use_fused", lambda x: True)
    shape = (2, 3, 4, 2)
    dt = torch.tensor(0.3, dtype=torch.float64).expand(2, 3, 1, 1)
    each = random(2, 3, 1, 1, seed=8)
    for step in (dt, each):
        found = summed([0.5, 0.25], step, shape)
        monkeypatch.setattr(steppers, "use_fused", lambda x: False)
        for one, two in zip(found, summed([0.5, 0.25], step, shape), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)
        monkeypatch.setattr(steppers, "use_fused", lambda x: True)


@interpreted
@pytest.mark.parametrize("step", STEPS)
def test_derivatives_of_both_orders(monkeypatch, step):
    monkeypatch.setattr(steppers, "use_fused", lambda x: True)
    dt = random(*STEPS[step], seed=7)
    inputs = [random(3, 2, 1, seed=k).requires_grad_(True) for k in range(3)]
    assert gradcheck(lambda H, *k: combine(H, dt, [0.5, 2.0], k), inputs)
    assert gradgradcheck(lambda H, *k: combine(H, dt, [0.5, 2.0], k).square(), inputs)


def test_a_step_with_a_gradient_goes_through_torch(monkeypatch):
    """So do slopes of another precision or shape, and more slopes than a kernel takes."""
    monkeypatch.setattr(steppers, "use_fused", lambda x: True)
    monkeypatch.setattr(FusedSum, "apply", lambda *args: pytest.fail("expected torch's operations"))
    H, slope = random(*SHAPE), random(*SHAPE, seed=1)
    dt = random(3, 1, 1, seed=2).requires_grad_(True)
    out = combine(H, dt, [0.5], [slope])
    (found,) = torch.autograd.grad(out.sum(), [dt])
    torch.testing.assert_close(found, 0.5 * slope.sum((1, 2), keepdim=True))
    dt = dt.detach()
    for slopes in ([slope[:1]], [slope] * 9):
        weights = [0.5] * len(slopes)
        torch.testing.assert_close(combine(H, dt, weights, slopes), H + dt * sum(0.5 * k for k in slopes))
