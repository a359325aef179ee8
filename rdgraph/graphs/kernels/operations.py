"""Differentiable sparse operations, opaque to `torch.compile`: product with a fused sum, sampled product, inner sums.

A pattern's tensors travel in one list: the rows of A (`Rows.tensors`, 2 or 11 of them), those of its transpose, then
`order` (edge e of the transpose is edge order[e] of A) and its inverse. A symmetric operator, which is its transpose,
has its rows twice and no orders. Every derivative is again written in these operations, so second ones exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels import torch_reference as plain
from rdgraph.graphs.kernels.row_order import Rows

# ---------------------------------------------------------------------- opaque operation
# `OpaqueOperation`: a function of tensors known to the dispatcher of torch, into which `torch.compile` does not look.
#
# Like `torch.library.custom_op`, without its overhead: each call is slower there, and the first one loads torch's
# compiler, which takes seconds in a process that compiles nothing.


class OpaqueOperation:
    """A function under a name "space::name", for all devices; it changes none of its arguments and returns none.

    >>> from rdgraph.graphs.kernels.operations import inner
    >>> inner(torch.ones(1, 3, 2), torch.ones(1, 3, 2))
    tensor([[3., 3.]])
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        torch.library.define(name, torch.library.infer_schema(function, mutates_args=()))
        torch.library.impl(name, "CompositeExplicitAutograd", function)
        space, short_name = name.split("::")
        #: What torch's dispatcher calls.
        self.overload = getattr(getattr(torch.ops, space), short_name).default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overload(*args, **kwargs)

    def register_fake(self, function: Callable[..., Any]) -> None:
        """Register a function that gives the result's shape and type from tensors without numbers."""
        torch.library.register_fake(self.name, function)

    def register_autograd(self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None = None) -> None:
        """Register `backward(ctx, *gradients)`, which uses what `setup_context(ctx, inputs, output)` saved."""
        torch.library.register_autograd(self.name, backward, setup_context=setup_context)


def opaque(name: str) -> Callable[[Callable[..., Any]], OpaqueOperation]:
    """Decorator: the function as an operation of that name."""

    def wrap(function: Callable[..., Any]) -> OpaqueOperation:
        return OpaqueOperation(name, function)

    return wrap


# ---------------------------------------------------------------------- operations
@cache
def has_triton() -> bool:
    """Whether the Triton kernels can be used."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def use_kernels(x: Tensor) -> bool:
    """Whether operations on x run as Triton kernels."""
    return x.is_cuda and has_triton()


def folds(x: Tensor) -> bool:
    """Whether `compute_spmm` takes weights (S, E) for any S that divides B, where member b has weights b % S."""
    return not use_kernels(x)


def parts(pattern: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The rows of A, those of its transpose, and the two orders (none for a symmetric operator)."""
    size = len(pattern) // 2 if len(pattern) in (4, 22) else (len(pattern) - 2) // 2
    return list(pattern[:size]), list(pattern[size : 2 * size]), list(pattern[2 * size :])


def transposed(pattern: Sequence[Tensor]) -> list[Tensor]:
    """The tensors of the transposed pattern."""
    rows, other, orders = parts(pattern)
    return [*other, *rows, *reversed(orders)]


def transposed_weights(pattern: Sequence[Tensor], weights: Tensor) -> Tensor:
    """The weights in the order of the transposed pattern."""
    orders = parts(pattern)[2]
    return weights.index_select(-1, orders[0]) if orders else weights


# ---------------------------------------------------------------------- product
def compute_spmm(
    pattern: Sequence[Tensor],
    weights: Tensor,
    x: Tensor,
    scale: Tensor | None,
    self_factor: Tensor | None,
    factors: Sequence[Tensor],
    fields: Sequence[Tensor],
) -> Tensor:
    """scale*(A@x) + own*x + sum of factors[m]*fields[m]; x and fields (B, n, d), weights (1 or B, E), see `folds`.

    Scale, own and factors broadcast against (B, n, d); the scale is the same for all nodes. Called directly where no
    gradient is wanted, since small graphs feel torch's dispatcher; `spmm` is the same for autograd and torch.compile.
    """
    terms = (
        list(zip(factors, fields, strict=True))
        if self_factor is None
        else [(self_factor, x), *zip(factors, fields, strict=True)]
    )
    if use_kernels(x):
        from rdgraph.graphs.kernels import triton_spmm as fused

        return fused.spmm(Rows.from_tensors(parts(pattern)[0]), weights, x, scale, terms)
    out = plain.spmm(pattern[0], pattern[1], weights, x)
    if scale is not None:
        out = out * scale.to(out.dtype)
    for factor, value in terms:
        out = torch.addcmul(out, factor.to(out.dtype), value)
    return out


spmm = OpaqueOperation("rdgraph::spmm", compute_spmm)


@spmm.register_fake
def _(pattern: Any, weights: Any, x: Tensor, scale: Any, own: Any, factors: Any, fields: Any) -> Tensor:
    return x.new_empty((x.shape[0], pattern[0].shape[0] - 1, x.shape[2]))


@opaque("rdgraph::pull")
def pull(
    pattern: Sequence[Tensor], weights: Tensor, x: Tensor, scale: Tensor, self_factor: Tensor | None
) -> tuple[Tensor, Tensor]:
    """A@x and scale*(A@x) + own*x in one pass, for gradients that need both."""
    if use_kernels(x):
        from rdgraph.graphs.kernels import triton_spmm as fused

        return fused.pull(
            Rows.from_tensors(parts(pattern)[0]), weights, x, scale, [] if self_factor is None else [(self_factor, x)]
        )
    raw = plain.spmm(pattern[0], pattern[1], weights, x)
    scaled = raw * scale.to(raw.dtype)
    return raw, scaled if self_factor is None else torch.addcmul(scaled, self_factor.to(raw.dtype), x)


@pull.register_fake
def _(pattern: Any, weights: Any, x: Tensor, scale: Any, own: Any) -> tuple[Tensor, Tensor]:
    shape = (x.shape[0], pattern[0].shape[0] - 1, x.shape[2])
    return x.new_empty(shape), x.new_empty(shape)


def _remember_spmm(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pattern, weights, x, scale, self_factor, factors, fields = inputs
    ctx.counts = len(pattern), len(factors)
    ctx.save_for_backward(*pattern, weights, x, scale, self_factor, *factors, *fields)


def _differentiate_spmm(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    size, terms = ctx.counts
    saved = list(ctx.saved_tensors)
    pattern, (weights, x, scale, self_factor) = saved[:size], saved[size : size + 4]
    factors, fields = saved[size + 4 : size + 4 + terms], saved[size + 4 + terms :]
    _, needs_weights, needs_x, needs_scale, needs_self_factor, needs_factors, needs_fields = ctx.needs_input_grad
    g = g.contiguous()
    back = transposed(pattern), transposed_weights(pattern, weights), g
    grad_x = grad_scale = grad_weights = None
    if needs_scale:
        raw, grad_x = _pulled(back, scale, self_factor)
        grad_scale = _sum_to(raw, x, scale)
    elif needs_x:
        grad_x = spmm(*back, scale, self_factor, [], [])
    if needs_weights:
        scaled = g if scale is None else g * scale.to(g.dtype)
        grad_weights = sddmm(pattern, scaled, x, weights.shape[0] == 1).to(weights.dtype)
    grad_self_factor = _sum_to(g, x, self_factor) if needs_self_factor else None
    wanted = _spread(needs_factors, terms), _spread(needs_fields, terms)
    grad_factors = [_sum_to(g, y, k) if want else None for want, k, y in zip(wanted[0], factors, fields, strict=True)]
    grad_fields = [g * k.to(g.dtype) if want else None for want, k in zip(wanted[1], factors, strict=True)]
    return (
        [None] * size,
        grad_weights,
        grad_x if needs_x else None,
        grad_scale,
        grad_self_factor,
        grad_factors,
        grad_fields,
    )


def _pulled(
    back: tuple[list[Tensor], Tensor, Tensor], scale: Tensor, self_factor: Tensor | None
) -> tuple[Tensor, Tensor]:
    """A'@g and scale*(A'@g) + own*g; in one pass unless this gradient is to be differentiated again."""
    if not torch.is_grad_enabled():
        return pull(*back, scale, self_factor)
    raw, g = spmm(*back, None, None, [], []), back[2]
    scaled = raw * scale.to(raw.dtype)
    return raw, scaled if self_factor is None else scaled + self_factor.to(g.dtype) * g


def _spread(wanted: Any, count: int) -> list[bool]:
    """One answer per tensor of a list, where autograd gives one for all or one each."""
    return list(wanted) if isinstance(wanted, list | tuple) else [bool(wanted)] * count


spmm.register_autograd(_differentiate_spmm, setup_context=_remember_spmm)


# ---------------------------------------------------------------------- sampled product
@opaque("rdgraph::sddmm")
def sddmm(pattern: Sequence[Tensor], g: Tensor, x: Tensor, shared: bool) -> Tensor:
    """<g[b, i], x[b, j]> at every edge (i, j): the gradient of the weights, (1 or B, E)."""
    if use_kernels(x):
        from rdgraph.graphs.kernels import triton_sddmm as sampled

        return sampled.sddmm(Rows.from_tensors(parts(pattern)[0]), g, x, shared)
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
    back = transposed(pattern)
    wants = ctx.needs_input_grad
    if not parts(pattern)[2]:
        raise InvalidArgument(
            "expected edges in both orders for second derivatives in the weights, got those of an operator whose "
            "weights have no gradient; use weights.requires_grad_()"
        )
    grad_g = spmm(pattern, w, x, None, None, [], []) if wants[1] else None
    grad_x = spmm(back, transposed_weights(pattern, w), g, None, None, [], []) if wants[2] else None
    return [None] * ctx.size, grad_g, grad_x, None


sddmm.register_autograd(_differentiate_sddmm, setup_context=_remember_sddmm)


# ---------------------------------------------------------------------- sums over the nodes
@opaque("rdgraph::inner")
def inner(left: Tensor, right: Tensor) -> Tensor:
    """Sum over the nodes of left*right: (B, n, d) twice, (B, d) out, accumulated in float32 at least."""
    if use_kernels(left):
        from rdgraph.graphs.kernels import triton_sddmm as sampled

        return sampled.inner(left, right)
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


def _sum_to(gradient: Tensor, right: Tensor, like: Tensor) -> Tensor:
    """gradient*right summed to the shape (and dtype) of a factor that was broadcast against it."""
    if like.ndim < 2 or like.shape[-2] == 1:
        total = inner(gradient, right.contiguous())[:, None, :]
        return total.sum_to_size(like.shape).to(like.dtype)
    return (gradient * right).sum_to_size(like.shape).to(like.dtype)
