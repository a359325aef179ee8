"""Differentiable sparse operations, opaque to `torch.compile`: product with a fused sum, sampled product, inner sums.

A pattern's tensors travel in one list: the rows of A (`Rows.tensors`, 2 or 7 of them), those of its transpose, then
`order` (edge e of the transpose is edge order[e] of A) and its inverse. A symmetric operator sends its own rows twice
and no orders: it is its transpose. Every derivative is again written in these operations, so second ones exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from rdgraph.kernels import plain
from rdgraph.kernels.rows import Rows


@cache
def has_triton() -> bool:
    """Whether the Triton kernels can be used."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def _use_kernels(x: Tensor) -> bool:
    return x.is_cuda and has_triton()


def parts(pattern: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The rows of A, those of its transpose, and the two orders (none for a symmetric operator)."""
    size = len(pattern) // 2 if len(pattern) in (4, 14) else (len(pattern) - 2) // 2
    return list(pattern[:size]), list(pattern[size : 2 * size]), list(pattern[2 * size :])


def transposed(pattern: Sequence[Tensor]) -> list[Tensor]:
    """The tensors of the transposed pattern."""
    own, other, orders = parts(pattern)
    return [*other, *own, *reversed(orders)]


def transposed_weights(pattern: Sequence[Tensor], weights: Tensor) -> Tensor:
    """The weights in the order of the transposed pattern."""
    orders = parts(pattern)[2]
    return weights.index_select(-1, orders[0]) if orders else weights


# ---------------------------------------------------------------------- product
@torch.library.custom_op("rdgraph::spmm", mutates_args=())
def spmm(
    pattern: Sequence[Tensor],
    weights: Tensor,
    x: Tensor,
    scale: Tensor | None,
    factors: Sequence[Tensor],
    fields: Sequence[Tensor],
) -> Tensor:
    """scale*(A@x) + sum of factors[m]*fields[m]; x and fields (B, n, d), weights (1 or B, E).

    Scale and factors broadcast against (B, n, d); the scale is the same for all nodes.
    """
    if _use_kernels(x):
        from rdgraph.kernels import fused

        return fused.spmm(Rows.from_tensors(parts(pattern)[0]), weights, x, scale, factors, fields)
    out = plain.spmm(pattern[0], pattern[1], weights, x)
    if scale is not None:
        out = out * scale.to(out.dtype)
    for factor, value in zip(factors, fields, strict=True):
        out = torch.addcmul(out, factor.to(out.dtype), value)
    return out


@spmm.register_fake
def _(pattern: Any, weights: Any, x: Tensor, scale: Any, factors: Any, fields: Any) -> Tensor:
    return x.new_empty((x.shape[0], pattern[0].shape[0] - 1, x.shape[2]))


def _remember_spmm(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pattern, weights, x, scale, factors, fields = inputs
    ctx.counts = len(pattern), len(factors)
    ctx.has_scale = scale is not None
    tail = [scale] if scale is not None else []
    ctx.save_for_backward(*pattern, weights, x, *factors, *fields, *tail)


def _differentiate_spmm(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    size, terms = ctx.counts
    saved = list(ctx.saved_tensors)
    pattern, (weights, x) = saved[:size], saved[size : size + 2]
    factors, fields = saved[size + 2 : size + 2 + terms], saved[size + 2 + terms : size + 2 + 2 * terms]
    scale = saved[-1] if ctx.has_scale else None
    g = g.contiguous()
    _, needs_weights, needs_x, needs_scale, needs_factors, needs_fields = _needed(ctx, terms)
    grad_x = grad_scale = grad_weights = None
    if needs_scale and scale is not None:
        pulled = spmm(transposed(pattern), transposed_weights(pattern, weights), g, None, [], [])
        grad_scale = _sum_to(pulled, x, scale)
        grad_x = pulled * scale.to(pulled.dtype) if needs_x else None
    elif needs_x:
        grad_x = spmm(transposed(pattern), transposed_weights(pattern, weights), g, scale, [], [])
    if needs_weights:
        scaled = g if scale is None else g * scale.to(g.dtype)
        grad_weights = sddmm(pattern, scaled, x, weights.shape[0] == 1).to(weights.dtype)
    grad_factors = [
        _sum_to(g, y, k) if want else None for want, k, y in zip(needs_factors, factors, fields, strict=True)
    ]
    grad_fields = [g * k.to(g.dtype) if want else None for want, k in zip(needs_fields, factors, strict=True)]
    return [None] * size, grad_weights, grad_x, grad_scale, grad_factors, grad_fields


def _needed(ctx: Any, terms: int) -> tuple[Any, ...]:
    """Which inputs want a gradient; lists of tensors get one answer each."""
    pattern, weights, x, scale, factors, fields = ctx.needs_input_grad
    return pattern, weights, x, scale, _spread(factors, terms), _spread(fields, terms)


def _spread(wanted: Any, count: int) -> list[bool]:
    return list(wanted) if isinstance(wanted, list | tuple) else [bool(wanted)] * count


spmm.register_autograd(_differentiate_spmm, setup_context=_remember_spmm)


# ---------------------------------------------------------------------- sampled product
@torch.library.custom_op("rdgraph::sddmm", mutates_args=())
def sddmm(pattern: Sequence[Tensor], g: Tensor, x: Tensor, shared: bool) -> Tensor:
    """<g[b, i], x[b, j]> at every edge (i, j): the gradient of the weights, (1 or B, E)."""
    if _use_kernels(x):
        from rdgraph.kernels import fused

        return fused.sddmm(Rows.from_tensors(parts(pattern)[0]), g, x, shared)
    return plain.sddmm(pattern[0], pattern[1], g, x, shared)


@sddmm.register_fake
def _(pattern: Any, g: Tensor, x: Tensor, shared: bool) -> Tensor:
    return g.new_empty((1 if shared else g.shape[0], pattern[1].shape[0]))


def _remember_sddmm(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pattern, g, x, _ = inputs
    ctx.size = len(pattern)
    ctx.save_for_backward(*pattern, g, x)


def _differentiate_sddmm(ctx: Any, w: Tensor) -> tuple[Any, ...]:
    *pattern, g, x = ctx.saved_tensors
    pull = transposed(pattern)
    wants = ctx.needs_input_grad
    if not parts(pattern)[2]:
        raise NotImplementedError("second derivatives in the weights need an operator with its orders")
    grad_g = spmm(pattern, w, x, None, [], []) if wants[1] else None
    grad_x = spmm(pull, transposed_weights(pattern, w), g, None, [], []) if wants[2] else None
    return [None] * ctx.size, grad_g, grad_x, None


sddmm.register_autograd(_differentiate_sddmm, setup_context=_remember_sddmm)


# ---------------------------------------------------------------------- sums over the nodes
@torch.library.custom_op("rdgraph::inner", mutates_args=())
def inner(left: Tensor, right: Tensor) -> Tensor:
    """Sum over the nodes of left*right: (B, n, d) twice, (B, d) out, accumulated in float32 at least."""
    if _use_kernels(left):
        from rdgraph.kernels import fused

        return fused.inner(left, right)
    accumulate = torch.promote_types(left.dtype, torch.float32)
    return (left.to(accumulate) * right.to(accumulate)).sum(dim=1)


@inner.register_fake
def _(left: Tensor, right: Tensor) -> Tensor:
    dtype = torch.promote_types(left.dtype, torch.float32)
    return left.new_empty((left.shape[0], left.shape[2]), dtype=dtype)


def _remember_inner(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate_inner(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    left, right = ctx.saved_tensors
    spread = g[:, None, :].to(left.dtype)
    return spread * right, spread * left


inner.register_autograd(_differentiate_inner, setup_context=_remember_inner)


def _sum_to(left: Tensor, right: Tensor, like: Tensor) -> Tensor:
    """left*right summed to the shape (and dtype) of a factor that was broadcast against it."""
    if like.ndim < 2 or like.shape[-2] == 1:
        total = inner(left, right.contiguous())[:, None, :]
        return total.sum_to_size(like.shape).to(like.dtype)
    return (left * right).sum_to_size(like.shape).to(like.dtype)
