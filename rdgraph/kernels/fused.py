"""Triton kernels: batched CSR product with a fused sum, sampled dense-dense product, sums over the nodes.

One program owns a block of rows of one member and walks their edges side by side, so every sum has a fixed order and
the results are the same bits in every run. Storage float32, float64, bfloat16 or float16; sums in float32, in float64
for float64. Long rows come in pieces (see `rows`) that are summed in a second pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from rdgraph.kernels.rows import LONG, Rows

#: Most fields that one launch adds; further ones take another pass.
MAX_FIELDS = 3
#: Nodes summed by one program of `inner`.
SPAN = 512
NO_LIMIT = 2**62

_TRITON_TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The precision sums are taken in."""
    return torch.promote_types(dtype, torch.float32)


@dataclass(frozen=True)
class Shape:
    """How a launch is cut: rows and channels per program, edges in flight per row, warps."""

    rows: int
    channels: int
    unroll: int
    warps: int


def launch_shape(channels: int) -> Shape:
    """The shape for a number of channels, chosen by measurement on an NVIDIA H200."""
    width = min(triton.next_power_of_2(max(channels, 1)), 64)
    return Shape(rows=4 if width == 64 else min(32, max(8, 128 // width)), channels=width, unroll=4, warps=1)


# ---------------------------------------------------------------------- product
@triton.jit
def _spmm_kernel(
    starts, ends, targets, indices, weights, x, out, scale, y0, k0, y1, k1, y2, k2,
    num_rows, d, edges_per_member, x_nodes, out_nodes, longest,
    sb, sc, k0b, k0n, k0c, k1b, k1n, k1c, k2b, k2n, k2c,
    HAS_TARGETS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_SCALE: tl.constexpr, FIELDS: tl.constexpr,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out[b, target(r)] = scale*sum_e w[b, e] x[b, indices[e]] + sum_m k_m y_m[b, target(r)] for a block of rows r."""
    blocks = tl.cdiv(num_rows, ROWS)
    member = (tl.program_id(0) // blocks).to(tl.int64)
    row = (tl.program_id(0) % blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    live_row = row < num_rows
    live_channel = channel < d
    start = tl.load(starts + row, mask=live_row, other=0).to(tl.int64)
    end = tl.load(ends + row, mask=live_row, other=0).to(tl.int64)
    live_row = live_row & (end - start <= longest)
    end = tl.where(live_row, end, start)
    source = x + member * x_nodes * d
    weight = weights + member * edges_per_member
    total = tl.zeros((ROWS, CHANNELS), dtype=ACC)
    for step in range(0, tl.max(end - start, axis=0), UNROLL):
        for lane in tl.static_range(UNROLL):
            edge = start + step + lane
            live = edge < end
            column = tl.load(indices + edge, mask=live, other=0).to(tl.int64)
            value = tl.load(
                source + column[:, None] * d + channel[None, :], mask=live[:, None] & live_channel[None, :], other=0
            ).to(ACC)
            if HAS_WEIGHTS:
                w = tl.load(weight + edge, mask=live, other=0).to(ACC)
                total += w[:, None] * value
            else:
                total += value
    target = row
    if HAS_TARGETS:
        target = tl.load(targets + row, mask=live_row, other=0).to(tl.int64)
    if HAS_SCALE:
        total = total * tl.load(scale + member * sb + channel * sc, mask=live_channel, other=0).to(ACC)[None, :]
    place = (member * out_nodes + target)[:, None] * d + channel[None, :]
    mask = live_row[:, None] & live_channel[None, :]
    if FIELDS > 0:
        k = tl.load(k0 + member * k0b + target[:, None] * k0n + channel[None, :] * k0c, mask=mask, other=0)
        total += k.to(ACC) * tl.load(y0 + place, mask=mask, other=0).to(ACC)
    if FIELDS > 1:
        k = tl.load(k1 + member * k1b + target[:, None] * k1n + channel[None, :] * k1c, mask=mask, other=0)
        total += k.to(ACC) * tl.load(y1 + place, mask=mask, other=0).to(ACC)
    if FIELDS > 2:
        k = tl.load(k2 + member * k2b + target[:, None] * k2n + channel[None, :] * k2c, mask=mask, other=0)
        total += k.to(ACC) * tl.load(y2 + place, mask=mask, other=0).to(ACC)
    tl.store(out + place, total, mask=mask)


def spmm(
    rows: Rows,
    weights: Tensor,
    x: Tensor,
    scale: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    fields: Sequence[Tensor] = (),
    *,
    shape: Shape | None = None,
) -> Tensor:
    """scale*(A@x) + sum of factors*fields; weights (1 or B, E), x and fields (B, n, d)."""
    x, weights = x.contiguous(), weights.contiguous()
    members, _, channels = x.shape
    out = torch.empty((members, rows.count, channels), dtype=x.dtype, device=x.device)
    terms = list(zip(factors, fields, strict=True))
    if out.numel():
        shape = shape or launch_shape(channels)
        epilogue = scale, terms[:MAX_FIELDS]
        whole = rows.indptr[:-1], rows.indptr[1:], None, rows.indices
        _launch_spmm(whole, weights, x, out, *epilogue, shape, LONG if rows.is_cut else None)
        if rows.is_cut:
            partial = torch.empty((members, len(rows.starts), channels), dtype=accumulator(x.dtype), device=x.device)
            _launch_spmm((rows.starts, rows.ends, None, rows.indices), weights, x, partial, None, [], shape, None)
            gather = rows.pointer[:-1], rows.pointer[1:], rows.long_rows, rows.numbers
            _launch_spmm(gather, None, partial, out, *epilogue, shape, None)
    for factor, value in terms[MAX_FIELDS:]:
        out = torch.addcmul(out, factor.to(out.dtype), value)
    return out


def _launch_spmm(
    rows: tuple[Tensor, Tensor, Tensor | None, Tensor],
    weights: Tensor | None,
    x: Tensor,
    out: Tensor,
    scale: Tensor | None,
    terms: Sequence[tuple[Tensor, Tensor]],
    shape: Shape,
    longest: int | None,
) -> None:
    starts, ends, targets, indices = rows
    members, out_nodes, channels = out.shape
    blocks = triton.cdiv(len(starts), shape.rows) * members
    padded = [*((k.expand(out.shape), y.contiguous()) for k, y in terms), *[(out, out)] * (MAX_FIELDS - len(terms))]
    spread = out if scale is None else scale.expand(members, 1, channels)
    dummy = x if weights is None else weights
    _spmm_kernel[(blocks, triton.cdiv(channels, shape.channels))](
        starts, ends, starts if targets is None else targets, indices, dummy, x, out, spread,
        *(t for k, y in padded for t in (y, k)),
        len(starts), channels, 0 if weights is None or len(weights) == 1 else weights.shape[1], x.shape[1], out_nodes,
        NO_LIMIT if longest is None else longest,
        spread.stride(0), spread.stride(2), *(stride for k, _ in padded for stride in k.stride()),
        HAS_TARGETS=targets is not None, HAS_WEIGHTS=weights is not None, HAS_SCALE=scale is not None,
        FIELDS=len(terms), ROWS=shape.rows, CHANNELS=shape.channels, UNROLL=shape.unroll,
        ACC=_TRITON_TYPES[accumulator(x.dtype)], num_warps=shape.warps,
    )  # fmt: skip


# ---------------------------------------------------------------------- sampled product
@triton.jit
def _sddmm_kernel(
    starts, ends, targets, indices, g, x, out, num_rows, d, members, edges_per_member, nodes_g, nodes_x, longest,
    HAS_TARGETS: tl.constexpr, SUM_MEMBERS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """out[b, e] = sum_c g[b, target(r), c] x[b, indices[e], c] for the edges e of a block of rows r."""
    blocks = tl.cdiv(num_rows, ROWS)
    first = (tl.program_id(0) // blocks).to(tl.int64)
    row = (tl.program_id(0) % blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    live_row = row < num_rows
    start = tl.load(starts + row, mask=live_row, other=0).to(tl.int64)
    end = tl.load(ends + row, mask=live_row, other=0).to(tl.int64)
    live_row = live_row & (end - start <= longest)
    end = tl.where(live_row, end, start)
    target = row
    if HAS_TARGETS:
        target = tl.load(targets + row, mask=live_row, other=0).to(tl.int64)
    for step in range(tl.max(end - start, axis=0)):
        edge = start + step
        live = edge < end
        column = tl.load(indices + edge, mask=live, other=0).to(tl.int64)
        total = tl.zeros((ROWS,), dtype=ACC)
        for extra in range(members if SUM_MEMBERS else 1):
            member = first + extra
            left = g + (member * nodes_g + target)[:, None] * d
            right = x + (member * nodes_x + column)[:, None] * d
            for base in range(0, d, CHANNELS):
                channel = base + tl.arange(0, CHANNELS)
                mask = live[:, None] & (channel < d)[None, :]
                a = tl.load(left + channel[None, :], mask=mask, other=0).to(ACC)
                b = tl.load(right + channel[None, :], mask=mask, other=0).to(ACC)
                total += tl.sum(a * b, axis=1)
        tl.store(out + first * edges_per_member + edge, total, mask=live)


def sddmm(rows: Rows, g: Tensor, x: Tensor, shared: bool, *, shape: Shape | None = None) -> Tensor:
    """<g[b, i], x[b, j]> at every entry (i, j) of the pattern, summed over the members when `shared`."""
    g, x = g.contiguous(), x.contiguous()
    members, _, channels = x.shape
    out = torch.empty((1 if shared else members, len(rows.indices)), dtype=g.dtype, device=g.device)
    if not out.numel():
        return out
    shape = shape or launch_shape(channels)
    launches: list[tuple[Tensor, Tensor, Tensor | None, int]] = [
        (rows.indptr[:-1], rows.indptr[1:], None, LONG if rows.is_cut else NO_LIMIT)
    ]
    launches += [(rows.starts, rows.ends, rows.owners, NO_LIMIT)] if rows.is_cut else []
    for starts, ends, targets, longest in launches:
        _sddmm_kernel[(triton.cdiv(len(starts), shape.rows) * len(out),)](
            starts, ends, starts if targets is None else targets, rows.indices, g, x, out,
            len(starts), channels, members, len(rows.indices), g.shape[1], x.shape[1], longest,
            HAS_TARGETS=targets is not None, SUM_MEMBERS=shared, ROWS=shape.rows, CHANNELS=shape.channels,
            ACC=_TRITON_TYPES[accumulator(x.dtype)], num_warps=shape.warps,
        )  # fmt: skip
    return out


# ---------------------------------------------------------------------- sums over the nodes
@triton.jit
def _inner_kernel(
    left, right, out, nodes, d, pieces,
    SPAN: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out[b, piece, c] = sum of left*right over SPAN nodes."""
    member = (tl.program_id(0) // pieces).to(tl.int64)
    piece = (tl.program_id(0) % pieces).to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    total = tl.zeros((ROWS, CHANNELS), dtype=ACC)
    for step in range(0, SPAN, ROWS):
        row = piece * SPAN + step + tl.arange(0, ROWS)
        place = (member * nodes + row)[:, None] * d + channel[None, :]
        mask = (row < nodes)[:, None] & (channel < d)[None, :]
        a = tl.load(left + place, mask=mask, other=0).to(ACC)
        b = tl.load(right + place, mask=mask, other=0).to(ACC)
        total += a * b
    tl.store(out + (member * pieces + piece) * d + channel, tl.sum(total, axis=0), mask=channel < d)


def inner(left: Tensor, right: Tensor) -> Tensor:
    """Sum over the nodes of left*right, (B, n, d) twice; (B, d) in float32, in float64 for float64."""
    left, right = left.contiguous(), right.contiguous()
    members, nodes, channels = left.shape
    width = min(triton.next_power_of_2(max(channels, 1)), 128)
    height = max(1, 1024 // width)
    pieces = triton.cdiv(nodes, SPAN)
    out = torch.empty((members, pieces, channels), dtype=accumulator(left.dtype), device=left.device)
    if out.numel():
        _inner_kernel[(members * pieces, triton.cdiv(channels, width))](
            left, right, out, nodes, channels, pieces,
            SPAN=SPAN, ROWS=height, CHANNELS=width, ACC=_TRITON_TYPES[out.dtype], num_warps=4,
        )  # fmt: skip
    return out.sum(dim=1)
