"""Linear layers of many members at once; on a GPU the weights' gradient sums long graphs in parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

#: Nodes that one part of the sum takes, at least, and the most parts.
PART, MOST_PARTS = 512, 32


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b for x (M, n, i), weights (M, i, o), biases (M, o).

    >>> linear(torch.ones(1, 2, 3), torch.ones(1, 3, 1), torch.ones(1, 1)).ravel()
    tensor([4., 4.])
    """
    if x.is_cuda and x.shape[1] >= 2 * PART and torch.is_grad_enabled():
        return _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return torch.baddbmm(bias[:, None, :], x, weight)


def gathered_product(x: Tensor, g: Tensor) -> Tensor:
    """x' g (M, i, o) for x (M, n, i) and g (M, n, o), n much larger than i and o: in parts side by side."""
    members, nodes = x.shape[:2]
    parts = min(MOST_PARTS, nodes // PART)
    if parts < 2:
        return x.mT @ g
    length = -(-nodes // parts)
    left, right = (
        functional.pad(t, (0, 0, 0, parts * length - nodes)).reshape(members * parts, length, -1) for t in (x, g)
    )
    return torch.bmm(left.mT, right).view(members, parts, x.shape[2], g.shape[2]).sum(1)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.baddbmm(bias[:, None, :], x, weight)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        grad_x = g @ weight.mT if ctx.needs_input_grad[0] else None
        return grad_x, gathered_product(x, g), g.sum(1)
