"""Operations of training on any device: dropout, layer norm, row softmax, Adam; Triton on a GPU, else plain torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels import counters
from rdgraph.graphs.kernels import torch_reference as plain
from rdgraph.graphs.kernels.operations import has_triton, opaque


def _use_kernels(x: Tensor) -> bool:
    return x.is_cuda and x.dtype == torch.float32 and has_triton()


# ---------------------------------------------------------------------- dropout
@opaque("gread::dropout")
def _dropout(x: Tensor, sign: Tensor | None, seeds: Tensor, step: Tensor, rates: Tensor, stream: int) -> Tensor:
    if _use_kernels(x):
        from gread.kernels import triton_training as launches

        return launches.dropout(x.contiguous(), sign, seeds, step, rates, stream)
    shape = (len(seeds), *x.shape[1:])
    scale = rates.reshape(-1, *(1,) * (x.ndim - 1))
    is_kept = counters.uniform(seeds, stream, x[0].numel(), step).reshape(shape) >= scale
    if sign is not None:
        is_kept = is_kept & ~(sign <= 0)
    return torch.where(is_kept, x / (1 - scale).to(x.dtype), 0.0)


@_dropout.register_fake
def _(x: Tensor, sign: Any, seeds: Tensor, step: Tensor, rates: Tensor, stream: int) -> Tensor:
    return x.new_empty((seeds.shape[0], *x.shape[1:]))


def _remember_dropout(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, sign, seeds, step, rates, ctx.stream = inputs
    ctx.save_for_backward(sign, seeds, step, rates)
    ctx.is_shared = len(x) < len(seeds)


def _differentiate_dropout(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    sign, seeds, step, rates = ctx.saved_tensors
    gradient = _dropout(g.contiguous(), sign, seeds, step, rates, ctx.stream)
    return gradient.sum(0, keepdim=True) if ctx.is_shared else gradient, None, None, None, None, None


_dropout.register_autograd(_differentiate_dropout, setup_context=_remember_dropout)


def dropout(x: Tensor, seeds: Tensor, step: Tensor, rates: Tensor, stream: int, relu: bool = False) -> Tensor:
    """Drop entries of x (1 or M, ...) with probability rates (M,) and scale the others, by counter-based numbers.

    With `relu`, of max(x, 0). `step` () is read on the device, so that a captured graph redraws at every replay.

    >>> x = dropout(torch.ones(1, 10000), torch.tensor([1, 2]), torch.tensor(0), torch.tensor([0.0, 0.5]), 7)
    >>> bool((x[0] == 1).all()), sorted(set(x[1].tolist())), bool((x[1].mean() - 1).abs() < 0.05)
    (True, [0.0, 2.0], True)
    """
    sign = x.detach().expand(len(seeds), *x.shape[1:]).contiguous() if relu else None
    return _dropout(x, sign, seeds, step, rates, stream)


def dropout_rows(
    x: Tensor, nodes: Tensor, seeds: Tensor, step: Tensor, rates: Tensor, stream: int, relu: bool = False
) -> Tensor:
    """`dropout` of some rows of a state: x (M, m, d) are the rows of the nodes (m,), dropped as in the whole state.

    >>> seeds, step, rates = torch.tensor([1]), torch.tensor(0), torch.tensor([0.5])
    >>> whole = dropout(torch.ones(1, 5, 3), seeds, step, rates, 7)
    >>> part = dropout_rows(torch.ones(1, 2, 3), torch.tensor([4, 1]), seeds, step, rates, 7)
    >>> torch.equal(part, whole[:, [4, 1]])
    True
    """
    indices = (nodes[:, None] * x.shape[-1] + torch.arange(x.shape[-1], device=x.device)).reshape(-1)
    scale = rates.reshape(-1, 1, 1)
    drawn = counters.uniform_at(seeds, stream, indices, step).reshape(len(seeds), *x.shape[1:])
    is_kept = (drawn >= scale) & ~(x.detach() <= 0) if relu else drawn >= scale
    return torch.where(is_kept, x / (1 - scale).to(x.dtype), 0.0)


# ---------------------------------------------------------------------- layer norm
class _LayerNorm(torch.autograd.Function):
    """The norm and its affine map in one kernel; torch's own takes one program for every short row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        from gread.kernels import triton_training as launches

        x, weight = x.contiguous(), weight.contiguous()
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return launches.layer_norm(x, weight, bias.contiguous(), eps)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        from gread.kernels import triton_training as launches

        x, weight = ctx.saved_tensors
        return *launches.layer_norm_gradient(g.contiguous(), x, weight, ctx.eps), None


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """(x - mean)/deviation over the channels of x (M, n, d), times weights (M, d), plus biases (M, d).

    >>> layer_norm(torch.tensor([[[1.0, 3.0]]]), torch.full((1, 2), 2.0), torch.ones(1, 2), 1e-9).ravel()
    tensor([-1.,  3.])
    """
    if _use_kernels(x):
        return _LayerNorm.apply(x, weight, bias, eps)  # type: ignore[no-untyped-call, no-any-return]
    return torch.addcmul(bias[:, None], functional.layer_norm(x, x.shape[-1:], eps=eps), weight[:, None])


# ---------------------------------------------------------------------- softmax over the edges of a row
@opaque("gread::row_softmax")
def _row_softmax(indptr: Tensor, rows: Tensor, logits: Tensor, gradient: Tensor | None) -> Tensor:
    if _use_kernels(logits):
        from gread.kernels import triton_training as launches

        return launches.row_softmax(indptr, logits.contiguous(), None if gradient is None else gradient.contiguous())
    where = rows.long().expand_as(logits)
    if gradient is not None:
        return logits * (gradient - _row_sums(indptr, logits * gradient).gather(1, where))
    top = logits.new_full((len(logits), len(indptr) - 1), -torch.inf).scatter_reduce(1, where, logits, "amax")
    raised = torch.exp(logits - top.gather(1, where))
    return raised / _row_sums(indptr, raised).gather(1, where)


def _row_sums(indptr: Tensor, values: Tensor) -> Tensor:
    """Sums of (B, E) within every row, (B, n), in the order of the edges."""
    edges = torch.arange(values.shape[1], dtype=indptr.dtype, device=values.device)
    ones = torch.ones(values.shape[1], dtype=values.dtype, device=values.device)
    return plain.matrix_product(indptr, edges, ones, values.T.contiguous()).T


@_row_softmax.register_fake
def _(indptr: Tensor, rows: Tensor, logits: Tensor, gradient: Any) -> Tensor:
    return torch.empty_like(logits)


def _remember_softmax(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[1], output)


def _differentiate_softmax(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    indptr, rows, output = ctx.saved_tensors
    if torch.is_grad_enabled():  # a gradient to be differentiated again uses plain torch
        places = rows.long()
        sums = output.new_zeros((len(output), len(indptr) - 1)).index_add(1, places, output * g)
        return None, None, output * (g - sums[:, places]), None
    return None, None, _row_softmax(indptr, rows, output, g.contiguous()), None


_row_softmax.register_autograd(_differentiate_softmax, setup_context=_remember_softmax)


def row_softmax(indptr: Tensor, rows: Tensor, logits: Tensor) -> Tensor:
    """Softmax of logits (B, E) over the edges of every row; safe for logits of any size, the same bits in every run.

    >>> indptr, rows = torch.tensor([0, 2, 2, 3]), torch.tensor([0, 0, 2])
    >>> row_softmax(indptr, rows, torch.tensor([[1000.0, 1000.0, -1000.0]]))
    tensor([[0.5000, 0.5000, 1.0000]])
    """
    return _row_softmax(indptr, rows, logits, None)


# ---------------------------------------------------------------------- Adam, and copies of chosen members
def adam_step(
    p: Tensor, g: Tensor, m: Tensor, v: Tensor, rates: Tensor, decays: Tensor, moves: Tensor, corrections: Tensor,
    betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
) -> None:  # fmt: skip
    """One step of Adam in place, with weight decay in the gradient, for the members with `moves`.

    p, g, m, v (M, ...); rates, decays, moves (M,); corrections (2,) = 1/(1 - beta1^t) and 1/sqrt(1 - beta2^t).
    """
    if _use_kernels(p):
        from gread.kernels import triton_training as launches

        launches.adam(p, g, m, v, rates, decays, moves, corrections, betas, eps)
        return
    spread = (-1, *(1,) * (p.ndim - 1))
    slope = torch.addcmul(g, decays.reshape(spread), p)
    first = torch.lerp(m, slope, 1 - betas[0])
    second = torch.addcmul(v * betas[1], slope, slope, value=1 - betas[1])
    change = rates.reshape(spread) * corrections[0] * first / (second.sqrt() * corrections[1] + eps)
    moving = moves.reshape(spread)
    for old, new in ((m, first), (v, second), (p, p - change)):
        old.copy_(torch.where(moving, new, old))


def select(sources: Sequence[Tensor], targets: Sequence[Tensor], chosen: Tensor) -> None:
    """Set targets[k][m] = sources[k][m] for the chosen members (M,)."""
    for source, target in zip(sources, targets, strict=True):
        if _use_kernels(source):
            from gread.kernels import triton_training as launches

            launches.select(source, target, chosen)
        else:
            target.copy_(torch.where(chosen.reshape(-1, *(1,) * (source.ndim - 1)), source, target))
