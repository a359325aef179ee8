"""Linear layers of many members at once; on a GPU, gradients of weights sum over large graphs in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

#: The least nodes of one part of the sum, and the most parts.
PART, MOST_PARTS = 512, 32


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b for x (M, n, i), weights (M, i, o), biases (M, o).

    >>> linear(torch.ones(1, 2, 3), torch.ones(1, 3, 1), torch.ones(1, 1)).ravel()
    tensor([4., 4.])
    """
    if _is_long(x):
        return _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return torch.baddbmm(bias[:, None, :], x, weight)


def linear_onto(h: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """h + x W + b, the product added where h + b is written.

    >>> linear_onto(torch.ones(1, 2, 1), torch.ones(1, 2, 3), torch.ones(1, 3, 1), torch.ones(1, 1)).ravel()
    tensor([5., 5.])
    """
    if _is_long(x):
        return _LinearOnto.apply(h, x, weight, bias)  # type: ignore[no-untyped-call]
    return torch.baddbmm(h + bias[:, None, :], x, weight)


def linear_heads(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], heads: int) -> Sequence[Tensor]:
    """x W + b of several layers with equal columns by one product, each as (M*heads, n, o/heads).

    >>> query, key = linear_heads(torch.ones(1, 5, 3), [torch.ones(1, 3, 4)] * 2, [torch.zeros(1, 4)] * 2, 2)
    >>> key.shape
    torch.Size([2, 5, 2])
    """
    weight, bias = torch.cat(list(weights), -1), torch.cat(list(biases), -1)
    if _is_long(x):
        return _LinearHeads.apply(x, weight, bias, len(weights), heads)  # type: ignore[no-untyped-call, no-any-return]
    products = torch.baddbmm(bias[:, None, :], x, weight).view(*x.shape[:2], len(weights), heads, -1)
    return [part.transpose(1, 2).flatten(0, 1).contiguous() for part in products.unbind(2)]


def _is_long(x: Tensor) -> bool:
    return x.is_cuda and x.shape[1] >= 2 * PART


def gathered_product(x: Tensor, g: Tensor) -> Tensor:
    """x' g (M, i, o) for x (M, n, i) and g (M, n, o), n much larger than i and o, computed in parallel parts.

    Parts of equal length are views. If the nodes cannot be divided evenly, the product is computed member by member, or
    part by part if there are fewer parts, and the remaining nodes are added.
    """
    members, nodes = x.shape[:2]
    most = min(MOST_PARTS, nodes // PART)
    if most < 2:
        return x.mT @ g
    parts = next((count for count in range(most, most // 2, -1) if nodes % count == 0), most)
    length, whole = nodes // parts, nodes // parts * parts
    if whole == nodes:
        left, right = (t.reshape(members * parts, length, -1) for t in (x, g))
        return torch.bmm(left.mT, right).view(members, parts, x.shape[2], g.shape[2]).sum(1)
    if members <= parts:
        products = [_cut(x[m, :whole], length).mT @ _cut(g[m, :whole], length) for m in range(members)]
        summed = torch.stack(products).sum(1)
    else:
        pieces = zip(x[:, :whole].split(length, 1), g[:, :whole].split(length, 1), strict=True)
        summed = torch.stack([left.mT @ right for left, right in pieces]).sum(0)
    return torch.baddbmm(summed, x[:, whole:].mT, g[:, whole:])


def _cut(x: Tensor, length: int) -> Tensor:
    return x.reshape(-1, length, x.shape[-1])


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


class _LinearOnto(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return (h + bias[:, None, :]).baddbmm_(x, weight)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return g, g @ weight.mT, gathered_product(x, g), g.sum(1)


class _LinearHeads(torch.autograd.Function):
    """Adds the bias while the heads are rearranged."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
        ctx.save_for_backward(x, weight)
        ctx.heads = heads
        members, nodes = x.shape[:2]
        product = torch.bmm(x, weight).view(members, nodes, parts, heads, -1)
        shift = bias.view(members, parts, heads, 1, -1)
        outputs = [x.new_empty(members, heads, nodes, product.shape[-1]) for _ in range(parts)]
        for k, out in enumerate(outputs):
            torch.add(product[:, :, k].transpose(1, 2), shift[:, k], out=out)
        return tuple(out.flatten(0, 1) for out in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, weight = ctx.saved_tensors
        members, nodes = x.shape[:2]
        split = [g.reshape(members, ctx.heads, nodes, -1).transpose(1, 2) for g in grads]
        joined = torch.cat(split, 2).reshape(members, nodes, -1)
        return joined @ weight.mT, gathered_product(x, joined), joined.sum(1), None, None
