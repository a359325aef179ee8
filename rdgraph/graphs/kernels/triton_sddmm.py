"""Triton kernels for gradients: the sampled dense-dense product of the edge weights, and sums over the nodes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rdgraph.graphs.kernels.row_order import Rows
from rdgraph.graphs.kernels.triton_spmm import TRITON_TYPES, Shape, accumulator, launch_shape

#: Nodes summed by one program of `inner`.
SPAN = 256


@triton.jit
def _sample_rows(
    starts, ends, targets, indices, g, x, out, first, count, block, member, d, members, edges_per_member,
    nodes_g, nodes_x, HAS_TARGETS: tl.constexpr, SUM_MEMBERS: tl.constexpr, IS_SINGLE: tl.constexpr,
    ROWS: tl.constexpr, EDGES: tl.constexpr, CHANNELS: tl.constexpr, UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out[b, e] = sum_c g[b, target(r), c] x[b, indices[e], c] for the edges e of a block of rows r.

    IS_SINGLE: one member and one block of channels at a time, so that the rows of g are read once.
    """
    lane = tl.arange(0, ROWS * EDGES)
    position = block * ROWS + lane // EDGES
    live_row = position < count
    start = tl.load(starts + first + position, mask=live_row, other=0)
    end = tl.load(ends + first + position, mask=live_row, other=0)
    target = (first + position).to(tl.int64)
    if HAS_TARGETS:
        target = tl.load(targets + first + position, mask=live_row, other=0).to(tl.int64)
    channel = tl.arange(0, CHANNELS)
    if IS_SINGLE:
        mask = live_row[:, None] & (channel < d)[None, :]
        held = tl.load(g + (member * nodes_g + target)[:, None] * d + channel[None, :], mask=mask, other=0).to(ACC)
    for step in range(0, tl.max(end - start, axis=0), UNROLL * EDGES):
        for turn in tl.static_range(UNROLL):
            edge = start + step + turn * EDGES + lane % EDGES
            live = edge < end
            column = tl.load(indices + edge, mask=live, other=0).to(tl.int64)
            if IS_SINGLE:
                right = x + (member * nodes_x + column)[:, None] * d
                mask = live[:, None] & (channel < d)[None, :]
                total = tl.sum(held * tl.load(right + channel[None, :], mask=mask, other=0).to(ACC), axis=1)
            else:
                total = tl.zeros((ROWS * EDGES,), dtype=ACC)
                for extra in range(members if SUM_MEMBERS else 1):
                    left = g + ((member + extra) * nodes_g + target)[:, None] * d
                    right = x + ((member + extra) * nodes_x + column)[:, None] * d
                    for base in range(0, d, CHANNELS):
                        mask = live[:, None] & (base + channel < d)[None, :]
                        a = tl.load(left + base + channel[None, :], mask=mask, other=0).to(ACC)
                        b = tl.load(right + base + channel[None, :], mask=mask, other=0).to(ACC)
                        total += tl.sum(a * b, axis=1)
            tl.store(out + member * edges_per_member + edge, total, mask=live)


@triton.jit(do_not_specialize=["heavy", "light", "outputs", "members", "edges_per_member", "nodes_g", "nodes_x"])
def _sddmm_kernel(
    starts, ends, targets, indices, g, x, out, heavy, light, outputs, d, members, edges_per_member, nodes_g, nodes_x,
    HAS_TARGETS: tl.constexpr, SUM_MEMBERS: tl.constexpr, IS_SINGLE: tl.constexpr,
    ROWS: tl.constexpr, EDGES: tl.constexpr, CHANNELS: tl.constexpr, UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The heavy rows one by one, then the light rows ROWS at a time."""
    program = tl.program_id(0)
    if program < heavy * outputs:
        _sample_rows(
            starts, ends, targets, indices, g, x, out, 0, heavy, program // outputs, (program % outputs).to(tl.int64),
            d, members, edges_per_member, nodes_g, nodes_x, HAS_TARGETS, SUM_MEMBERS, IS_SINGLE,
            1, EDGES, CHANNELS, UNROLL, ACC,
        )  # fmt: skip
    else:
        blocks = tl.cdiv(light, ROWS)
        block = (program - heavy * outputs) % blocks
        member = ((program - heavy * outputs) // blocks).to(tl.int64)
        _sample_rows(
            starts, ends, targets, indices, g, x, out, heavy, light, block, member,
            d, members, edges_per_member, nodes_g, nodes_x, HAS_TARGETS, SUM_MEMBERS, IS_SINGLE,
            ROWS, 1, CHANNELS, UNROLL, ACC,
        )  # fmt: skip


def sddmm(rows: Rows, g: Tensor, x: Tensor, shared: bool, *, shape: Shape | None = None) -> Tensor:
    """<g[b, i], x[b, j]> at every entry (i, j) of the pattern, summed over the members when `shared`."""
    g, x = g.contiguous(), x.contiguous()
    members, _, channels = x.shape
    out = torch.empty((1 if shared else members, len(rows.indices)), dtype=g.dtype, device=g.device)
    if not out.numel():
        return out
    shape = shape or launch_shape(channels, x.element_size())
    launches: list[tuple[Tensor, Tensor, Tensor | None, int]] = [(*rows.main, rows.heavy)]
    launches += [(*rows.pieces, len(rows.pieces[0]))] if rows.has_long else []
    for starts, ends, targets, heavy in launches:
        light = len(starts) - heavy
        _sddmm_kernel[((heavy + triton.cdiv(light, shape.rows)) * len(out),)](
            starts, ends, starts if targets is None else targets, rows.indices, g, x, out,
            heavy, light, len(out), channels, members,
            len(rows.indices), g.shape[1], x.shape[1], HAS_TARGETS=targets is not None, SUM_MEMBERS=shared,
            IS_SINGLE=channels <= shape.channels and (members == 1 or not shared),
            ROWS=shape.rows, EDGES=shape.edges, CHANNELS=shape.channels, UNROLL=shape.unroll,
            ACC=TRITON_TYPES[accumulator(x.dtype)], num_warps=1,
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
        offset = (member * nodes + row)[:, None] * d + channel[None, :]
        mask = (row < nodes)[:, None] & (channel < d)[None, :]
        a = tl.load(left + offset, mask=mask, other=0).to(ACC)
        b = tl.load(right + offset, mask=mask, other=0).to(ACC)
        total += a * b
    tl.store(out + (member * pieces + piece) * d + channel, tl.sum(total, axis=0), mask=channel < d)


def inner(left: Tensor, right: Tensor) -> Tensor:
    """Sum over the nodes of left*right, (B, n, d) twice; (B, d) in float32, in float64 for float64."""
    left, right = left.contiguous(), right.contiguous()
    members, nodes, channels = left.shape
    width = min(triton.next_power_of_2(max(channels, 1)), 128)
    height = min(SPAN, 2048 // width)
    pieces = triton.cdiv(nodes, SPAN)
    out = torch.empty((members, pieces, channels), dtype=accumulator(left.dtype), device=left.device)
    if out.numel():
        _inner_kernel[(members * pieces, triton.cdiv(channels, width))](
            left, right, out, nodes, channels, pieces,
            SPAN=SPAN, ROWS=height, CHANNELS=width, ACC=TRITON_TYPES[out.dtype], num_warps=8,
        )  # fmt: skip
    return out.sum(dim=1)
