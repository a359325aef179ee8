"""Triton kernels for the sums of Runge-Kutta methods: H + dt*sum_i w_i k_i, and the gradients of all k_i."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from rdgraph.graphs.kernels.triton_spmm import TRITON_TYPES, accumulator

#: Entries that one program takes.
BLOCK = 1024
#: Numbers that the code does not depend on: it is compiled once for all of them.
COUNTS = ("blocks", "stride")


@triton.jit(do_not_specialize=COUNTS, do_not_specialize_on_alignment=["dt"])
def _sum_kernel(
    state, slopes, dt, out, size, blocks, stride,
    WEIGHTS: tl.constexpr, HAS_STATE: tl.constexpr, HAS_LENGTH: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out = state + dt*sum_i WEIGHTS[i]*slopes[i] at a block of entries of one member."""
    member = (tl.program_id(0) // blocks).to(tl.int64)
    entry = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = entry < size
    offset = member * size + entry
    total = tl.zeros((BLOCK,), dtype=ACC)
    for i in tl.static_range(len(WEIGHTS)):
        total += WEIGHTS[i] * tl.load(slopes[i] + offset, mask=mask, other=0).to(ACC)
    if HAS_LENGTH:
        total = tl.load(dt + member * stride).to(ACC) * total
    if HAS_STATE:
        total += tl.load(state + offset, mask=mask, other=0).to(ACC)
    tl.store(out + offset, total, mask=mask)


@triton.jit(do_not_specialize=COUNTS, do_not_specialize_on_alignment=["dt"])
def _spread_kernel(g, dt, outs, size, blocks, stride, WEIGHTS: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr):
    """outs[i] = dt*WEIGHTS[i]*g at a block of entries of one member."""
    member = (tl.program_id(0) // blocks).to(tl.int64)
    entry = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = entry < size
    offset = member * size + entry
    scaled = tl.load(dt + member * stride).to(ACC) * tl.load(g + offset, mask=mask, other=0).to(ACC)
    for i in tl.static_range(len(WEIGHTS)):
        tl.store(outs[i] + offset, WEIGHTS[i] * scaled, mask=mask)


def weighted_sum(
    state: Tensor | None, slopes: Sequence[Tensor], lengths: Tensor | None, weights: Sequence[float]
) -> Tensor:
    """state + lengths*sum of weight*slope, without a state or lengths where they are None.

    The lengths are (1 or B,), for B members of equal size.
    """
    out = torch.empty_like(slopes[0])
    if out.numel():
        grid, size, blocks, stride = _cut(out, lengths)
        _sum_kernel[grid](
            out if state is None else state, tuple(slopes), out if lengths is None else lengths, out, size, blocks,
            stride, WEIGHTS=tuple(weights), HAS_STATE=state is not None, HAS_LENGTH=lengths is not None, BLOCK=BLOCK,
            ACC=TRITON_TYPES[accumulator(out.dtype)], num_warps=4,
        )  # fmt: skip
    return out


def weighted_parts(g: Tensor, lengths: Tensor, weights: Sequence[float]) -> list[Tensor]:
    """lengths*weight*g for every weight."""
    outs = [torch.empty_like(g) for _ in weights]
    if g.numel():
        grid, size, blocks, stride = _cut(g, lengths)
        _spread_kernel[grid](
            g, lengths, tuple(outs), size, blocks, stride, WEIGHTS=tuple(weights), BLOCK=BLOCK,
            ACC=TRITON_TYPES[accumulator(g.dtype)], num_warps=4,
        )  # fmt: skip
    return outs


def _cut(x: Tensor, lengths: Tensor | None) -> tuple[tuple[int], int, int, int]:
    """The grid, the entries of a member and its blocks, and how far the lengths of two members are apart."""
    members = 1 if lengths is None else len(lengths)
    size = x.numel() // members
    blocks = triton.cdiv(size, BLOCK)
    return (members * blocks,), size, blocks, lengths.stride(0) if lengths is not None and members > 1 else 0
