"""Generated kernels for entrywise terms and those for sums of stages, against torch: interpreted, or on a GPU."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import inspect

import numpy as np
import pytest
import sympy as sp
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed")

from rdgraph.graphs.kernels.entry_kernels import entry_kernels, stack_gradient
from rdgraph.graphs.kernels.triton_combine import _sum_kernel, weighted_parts, weighted_sum
from rdgraph.language.factored_form import Entrywise
from rdgraph.language.normal_form import H0, H
from rdgraph.run.lowering.fused_slope import entry_program
from rdgraph.vocabulary.functions import BUILT_IN
from tests.equations import random_numbers as random

pytestmark = pytest.mark.skipif(
    os.environ["TRITON_INTERPRET"] != "1" and not torch.cuda.is_available(), reason="no interpreter and no GPU"
)

DEVICE = "cuda" if torch.cuda.is_available() and os.environ["TRITON_INTERPRET"] != "1" else "cpu"
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}
#: H*(1 - H), tanh(H)*H0 and 1, with the same in torch.
VALUES = [Entrywise("*", H, 1 - H), Entrywise("*", Entrywise("tanh", H), H0), sp.S.One]


def in_torch(h: Tensor, h0: Tensor, stack: Tensor) -> Tensor:
    return stack[1] * (h * (1 - h)) + stack[2] * (h.tanh() * h0) + stack[3] * torch.ones_like(h)


def close(found: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    error = (found.double().cpu() - expected.double()).norm() / expected.double().norm().clamp(min=1e-30)
    assert error <= TOLERANCE[dtype], float(error)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize(
    ("shape", "own"), [((2, 70, 3), (2, 1, 1)), ((1, 5, 130), (1, 1, 130)), ((3, 64, 1), (1, 1, 1))]
)
def test_values_gradients_and_sums(dtype, shape, own):
    h, h0, g, product = (random(*shape, seed=k).to(dtype) for k in range(4))
    stack = random(4, *own, seed=9).to(torch.promote_types(dtype, torch.float32))
    exact = [x.double().requires_grad_(True) for x in (h, h0, stack)]
    total = in_torch(*exact) + exact[2][0] * product.double()
    expected = torch.autograd.grad(total, exact, g.double())
    kernels = entry_kernels(entry_program(VALUES))
    h, h0, g, product, stack = (x.to(DEVICE) for x in (h, h0, g, product, stack))
    close(kernels.value(h, h0, stack), in_torch(*exact), dtype)
    partial = kernels.partial_sums(h, 2)
    for place in partial:
        found = kernels.gradient(g, h, h0, product, stack, place, wants_start=True, wants_scaled=True)
    close(found[0], expected[0], dtype)
    close(found[1], expected[1], dtype)
    close(found[2], (exact[2][0] * g.double().cpu()).detach(), dtype)
    sums = stack_gradient(partial, stack)
    assert sums.shape == stack.shape
    close(sums, 2 * expected[2], dtype)


def test_the_same_text_is_compiled_once_and_can_be_read():
    one, two = (entry_kernels(entry_program([Entrywise("sin", H)])) for _ in range(2))
    assert one is two
    assert "tl.sin(h)" in inspect.getsource(one.value_kernel.fn)
    assert "tl.cos(h)" in one.source


@pytest.mark.skipif(DEVICE == "cpu", reason="nothing is compiled in the interpreter")
def test_kernels_are_compiled_once_for_all_numbers_of_members_and_nodes():
    """A training cut into pieces, or with members dropped on the way, is not to wait for the compiler again."""
    kernels = entry_kernels(entry_program([Entrywise("*", H, 2 - H)]))
    compiled = set[tuple[int, ...]]()
    for nodes, members in ((48, 10), (48, 1), (48, 16), (37, 7)):
        h = random(members, nodes, 16).to(DEVICE)
        stack = random(2, members, 1, 1).to(DEVICE)
        kernels.gradient(h, h, None, h, stack, kernels.partial_sums(h, 1)[0], wants_start=False, wants_scaled=True)
        kernels.value(h, None, stack)
        weighted_sum(h, [h, h], random(members).to(DEVICE), [0.25, 0.75])
        known = (kernels.value_kernel, kernels.gradient_kernel, _sum_kernel)
        compiled.add(tuple(len(kernel.device_caches[torch.cuda.current_device()][0]) for kernel in known))
    assert len(compiled) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", [record.name for record in BUILT_IN])
def test_functions_are_those_of_torch_over_the_whole_line(name, dtype):
    """To a few units of the last place, near zero and far out, with their gradients."""
    record = next(record for record in BUILT_IN if record.name == name)
    sizes = torch.logspace(-6, 1.5, 200, dtype=torch.float64)
    points = torch.cat([sizes] if name == "sqrt" else [-sizes, sizes]).to(dtype)
    exact = points.double().requires_grad_(True)
    expected = eval(record.torch.format("exact"), {"torch": torch, "exact": exact})
    (slope,) = torch.autograd.grad(expected.sum(), [exact])
    kernels = entry_kernels(entry_program([Entrywise(name, H)]))
    h = points.view(1, -1, 1).to(DEVICE)
    stack = torch.ones(2, 1, 1, 1, dtype=dtype, device=DEVICE)
    with np.errstate(all="ignore"):  # beyond the last node the interpreter divides zero by zero, and drops it
        found = kernels.value(h, None, stack).ravel().double().cpu()
        back = kernels.gradient(torch.ones_like(h), h, None, None, stack, None, wants_start=False, wants_scaled=False)[
            0
        ]
    small = 4e-6 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(found, expected.detach(), rtol=small, atol=small)
    torch.testing.assert_close(back.ravel().double().cpu(), slope, rtol=small, atol=small)
    if name in ("tanh", "softplus"):  # no digits are lost where exponentials cancel
        near = slice(200, 350)
        torch.testing.assert_close(found[near], expected.detach()[near], rtol=small, atol=0.0)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("members", [1, 3])
def test_sums_of_stages(dtype, members):
    weights = [1 / 6, 1 / 3, -0.5]
    state, *slopes = (random(3, 700, 2, seed=k).to(dtype).to(DEVICE) for k in range(4))
    lengths = random(members, seed=7).to(dtype).to(DEVICE)
    step = lengths.double().view(-1, 1, 1).cpu()
    total = sum(weight * k.double().cpu() for weight, k in zip(weights, slopes, strict=True))
    close(weighted_sum(state, slopes, lengths, weights), state.double().cpu() + step * total, dtype)
    close(weighted_sum(None, slopes, lengths, weights), step * total, dtype)
    close(weighted_sum(state, slopes, None, weights), state.double().cpu() + total, dtype)
    for weight, part in zip(weights, weighted_parts(state, lengths, weights), strict=True):
        close(part, step * weight * state.double().cpu(), dtype)
