"""Fields on a GPU: the numbers and gradients of the CPU, compiled and captured, in many precisions."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import rdgraph as rd
from tests.equations import random_numbers as random

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def graph() -> rd.Graph:
    return rd.generators.barabasi_albert(300, 4, seed=1)


@pytest.mark.parametrize("name", ["BS", "F", "ST", "GRAFF"])
def test_fields_and_gradients_equal_those_of_the_cpu(graph, name):
    system = rd.parse(name)
    own = {"scalar": (), "channel": (5,), "node": (300,), "matrix": (5, 5)}
    letters = {n: k for n, k in system.letters.items() if n not in {"H", "H0", "A", "L", "I"}}
    found = {}
    for device in ("cpu", "cuda"):
        op = graph.operator("row", dtype=torch.float64, device=device)
        op = op.with_weights((op.weights * 1.5).requires_grad_(True))
        values = {
            n: random(*own[str(k)], seed=i).to(device).requires_grad_(True) for i, (n, k) in enumerate(letters.items())
        }
        H = random(3, 300, 5, seed=9).to(device).requires_grad_(True)
        out = rd.lower(system, op, values, batch=(3,)).bind(H)(0.0, H)
        gradients = torch.autograd.grad(out.square().sum(), [H, op.weights, *values.values()])
        found[device] = [out, *gradients]
    for one, two in zip(found["cpu"], found["cuda"], strict=True):
        torch.testing.assert_close(one, two.cpu(), rtol=1e-10, atol=1e-10)


def test_derivatives_through_the_kernels():
    op = rd.Graph.from_edges([[0, 1, 2, 2], [1, 2, 0, 1]]).operator("none", dtype=torch.float64, device="cuda")
    inputs = [
        random(2, 4),
        random(2, 3, 5, seed=1),
        random(5, seed=2),
        random(2, 1, 1, seed=3),
        random(2, 3, 5, seed=4),
    ]
    inputs = [x.cuda().requires_grad_(True) for x in inputs]
    assert gradcheck(lambda w, x, s, k, y: op.with_weights(w).product(x, s, [(k, y)]), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_storage_and_accumulation(graph, dtype):
    op = graph.operator("symmetric", dtype=dtype, device="cuda")
    x = random(300, 70, dtype=dtype).cuda()
    exact = op.dense().double() @ x.double()
    error = ((op @ x).double() - exact).norm() / exact.norm()
    assert error < (1e-6 if dtype == torch.float32 else 3e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_equals_eager(graph):
    op = graph.operator("symmetric", dtype=torch.float32, device="cuda")
    field = rd.lower("AC", op, {"alpha": 1.0, "beta": 0.5})
    H = random(300, 16, dtype=torch.float32).cuda()
    torch.testing.assert_close(torch.compile(field, fullgraph=True)(0.0, H), field(0.0, H))


def test_a_field_can_be_captured(graph):
    op = graph.operator("symmetric", dtype=torch.float32, device="cuda")
    field = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5}).prepared()
    H = random(300, 16, dtype=torch.float32).cuda()
    with torch.no_grad():
        expected = field(0.0, H)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            out = field(0.0, H)
        H.mul_(2)
        captured.replay()
    torch.testing.assert_close(out, 2 * expected)
