"""Linear layers of many members, and what a GPU does on long graphs, against plain products."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gread.kernels.edge_attention import split_heads
from gread.kernels.linear_layers import (
    _Linear,
    _LinearHeads,
    _LinearOnto,
    gathered_product,
    linear,
    linear_heads,
    linear_onto,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("members", [1, 2, 5])
@pytest.mark.parametrize("nodes", [3, 1024, 1500, 1031, 2053])
def test_products_summed_in_parts(nodes, members):
    x, g = random(members, nodes, 3), random(members, nodes, 4, seed=1)
    torch.testing.assert_close(gathered_product(x, g), x.mT @ g, rtol=1e-11, atol=1e-11)


def alike(found, expected, inputs):
    """Whether outputs and the gradients of their weighted sums agree."""
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)
        assert one.is_contiguous()
    seen = [random(*out.shape, seed=k) for k, out in enumerate(expected)]
    slopes = [
        torch.autograd.grad(sum((out * w).sum() for out, w in zip(outs, seen, strict=True)), inputs, retain_graph=True)
        for outs in (found, expected)
    ]
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two)


def test_linear_layers_and_their_gradients():
    inputs = [random(2, 1031, 2), random(2, 2, 3, seed=1), random(2, 3, seed=2), random(2, 1031, 3, seed=3)]
    x, weight, bias, h = inputs = [one.requires_grad_(True) for one in inputs]
    expected = x @ weight + bias[:, None]
    for layer in (linear, _Linear.apply):
        alike([layer(x, weight, bias)], [expected], inputs[:3])
    for layer in (linear_onto, _LinearOnto.apply):
        alike([layer(h, x, weight, bias)], [h + expected], inputs)


@pytest.mark.parametrize("heads", [1, 2])
def test_layers_with_heads_and_their_gradients(heads):
    x = random(3, 1031, 2).requires_grad_(True)
    weights = [random(3, 2, 4, seed=k).requires_grad_(True) for k in (1, 2)]
    biases = [random(3, 4, seed=k).requires_grad_(True) for k in (3, 4)]
    expected = [split_heads(x @ w + b[:, None], heads) for w, b in zip(weights, biases, strict=True)]
    inputs = [x, *weights, *biases]
    alike(linear_heads(x, weights, biases, heads), expected, inputs)
    together = torch.cat(weights, -1), torch.cat(biases, -1)
    alike(_LinearHeads.apply(x, *together, 2, heads), expected, inputs)
