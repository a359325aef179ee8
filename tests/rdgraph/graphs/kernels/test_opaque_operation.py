"""Operations of the dispatcher: their derivatives, and that nothing of torch's compiler is loaded for them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from rdgraph.graphs.kernels.operations import opaque


@opaque("rdgraph::test_scaled_cube")
def scaled_cube(x: Tensor, factors: list[Tensor], power: int) -> Tensor:
    return factors[0] * x**power


scaled_cube.register_fake(lambda x, factors, power: torch.empty_like(x))


def _remember(ctx, inputs, output):
    x, factors, ctx.power = inputs
    ctx.save_for_backward(x, factors[0])


def _differentiate(ctx, g):
    x, factor = ctx.saved_tensors
    slope = ctx.power * scaled_cube(x, [factor], ctx.power - 1)
    return g * slope, [g * x**ctx.power], None


scaled_cube.register_autograd(_differentiate, setup_context=_remember)


def test_derivatives_of_first_and_second_order():
    x, factor = (torch.rand(4, dtype=torch.float64, requires_grad=True) + 0.5 for _ in range(2))
    assert torch.equal(scaled_cube(x, [factor], 3), factor * x**3)
    assert torch.autograd.gradcheck(lambda a, b: scaled_cube(a, [b], 3), (x, factor))
    assert torch.autograd.gradgradcheck(lambda a, b: scaled_cube(a, [b], 3), (x, factor))
    torch.library.opcheck(scaled_cube.overload, (x.detach(), [factor.detach()], 2))


@pytest.mark.slow
def test_a_training_loads_nothing_of_the_compiler():
    lines = [
        "import sys",
        "from gread import Config, Trial, karate, train",
        "train(karate(), [Trial(Config().updated({'epochs': 2}))], device='cpu')",
        "assert 'torch._dynamo' not in sys.modules",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=300)
