"""H + dt*sum_i w_i k_i, the sums of Runge-Kutta methods: one kernel forth and one back on a GPU, torch elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rdgraph.kernels.fused_switch import use_fused

#: Most slopes that one kernel takes.
MOST_SLOPES = 8


def combine(H: Tensor, dt: Tensor, weights: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    """H + dt * sum of weight*slope; dt is () or (*batch, 1, 1).

    >>> H, slope = torch.ones(2, 1), torch.full((2, 1), 2.0)
    >>> combine(H, torch.tensor(0.5), [1.0, 0.0], [slope, slope]).ravel()
    tensor([2., 2.])
    """
    terms = [(weight, slope) for weight, slope in zip(weights, slopes, strict=True) if weight != 0]
    if not terms:
        return H
    if use_fused(H) and is_even(H, dt, [slope for _, slope in terms]):
        kept, values = zip(*terms, strict=True)
        out: Tensor = FusedSum.apply(dt.reshape(-1), kept, H, *values)  # type: ignore[no-untyped-call]
        return out
    scale, total = terms[0]
    for weight, slope in terms[1:]:
        total = torch.add(total, slope, alpha=weight / scale)
    return torch.addcmul(H, total, dt, value=scale)


def is_even(H: Tensor, dt: Tensor, slopes: Sequence[Tensor]) -> bool:
    """Whether all are of one shape and precision, with a step without a gradient for all members or for each."""
    alike = all(x.shape == H.shape and x.dtype == H.dtype for x in slopes) and dt.dtype == H.dtype
    each = dt.ndim == 0 or dt.shape in ((1,) * H.ndim, (*H.shape[:-2], 1, 1))
    return alike and each and not dt.requires_grad and dt.device == H.device and len(slopes) <= MOST_SLOPES


class FusedSum(torch.autograd.Function):
    """The sum for autograd: lengths (1 or B,), weights, H and slopes (*batch, n, d)."""

    @staticmethod
    def forward(ctx: Any, lengths: Tensor, weights: tuple[float, ...], H: Tensor, *slopes: Tensor) -> Tensor:
        from rdgraph.kernels.triton_combine import weighted_sum

        ctx.weights = weights
        ctx.save_for_backward(lengths)
        return weighted_sum(H.contiguous(), [slope.contiguous() for slope in slopes], lengths, weights)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        from rdgraph.kernels.triton_combine import weighted_parts

        (lengths,), wanted = ctx.saved_tensors, ctx.needs_input_grad[3:]
        kept = [weight for weight, want in zip(ctx.weights, wanted, strict=True) if want]
        if torch.is_grad_enabled():
            step = lengths if len(lengths) == 1 else lengths.view(*g.shape[:-2], 1, 1)
            parts = iter([weight * step * g for weight in kept])
        else:
            parts = iter(weighted_parts(g.contiguous(), lengths, kept) if kept else [])
        grad_state = g if ctx.needs_input_grad[2] else None
        return None, None, grad_state, *(next(parts) if want else None for want in wanted)
