"""Triton kernels: the batched CSR product with a fused sum, for one or all members.

One program (a warp) owns a block of rows of one member and walks their edges side by side, or one heavy row with
several edges at a time; every sum has a fixed order, so the results are the same bits in every run. Storage float32,
float64, bfloat16 or float16; sums in float32, in float64 for float64. Long rows come in pieces (see `rows`) that are
summed in a second pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from rdgraph.graphs.kernels.row_order import Rows

#: Most fields that one launch adds; further ones take another pass.
MAX_FIELDS = 3
#: Numbers that the code of the product does not depend on: it is compiled once for all of them.
COUNTS = ("heavy", "light", "members", "edges_per_member", "x_nodes", "out_nodes")
#: Arguments read entry by entry: their alignment, which differs between members of a batch, needs no recompilation.
SINGLY = ("weights", "scale", "k0", "k1", "k2")

Terms = Sequence[tuple[Tensor, Tensor]]
TRITON_TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The precision sums are taken in."""
    return torch.promote_types(dtype, torch.float32)


@dataclass(frozen=True)
class Shape:
    """How a launch is cut: rows, channels and turns in flight per program; edges of a heavy row taken side by side."""

    rows: int
    channels: int
    unroll: int
    edges: int


def launch_shape(channels: int, itemsize: int) -> Shape:
    """The shape for a number of channels, chosen by measurement on an NVIDIA H200."""
    width = min(triton.next_power_of_2(max(channels, 1)), 64)
    rows = 8 if width < 64 else 4 if itemsize <= 4 else 2
    return Shape(rows=rows, channels=width, unroll=4, edges=rows)


# ---------------------------------------------------------------------- product
@triton.jit
def _term(
    y, k, member, target, channel, live_channel, spot, mask, kb, kn, kc, PER_NODE: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """factor*value at a block of rows; a factor that is the same for all nodes is read once."""
    value = tl.load(y + spot, mask=mask, other=0, eviction_policy="evict_first").to(ACC)
    if PER_NODE:
        factor = tl.load(k + member * kb + target[:, None] * kn + channel[None, :] * kc, mask=mask, other=0)
        return factor.to(ACC) * value
    return tl.load(k + member * kb + channel * kc, mask=live_channel, other=0).to(ACC)[None, :] * value


@triton.jit
def _sum_rows(
    starts, ends, targets, indices, weights, x, out, raw, scale, y0, k0, y1, k1, y2, k2,
    first, count, block, member, d, edges_per_member, x_nodes, out_nodes,
    sb, sc, k0b, k0n, k0c, k1b, k1n, k1c, k2b, k2n, k2c,
    HAS_TARGETS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_SCALE: tl.constexpr, HAS_RAW: tl.constexpr,
    FIELDS: tl.constexpr, PER_NODE: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr, CHANNELS: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out[b, target(r)] = scale*sum_e w[b, e] x[b, indices[e]] + sum_m k_m y_m[b, target(r)] for a block of rows r."""
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    live_channel = channel < d
    lane = tl.arange(0, ROWS * EDGES)
    position = block * ROWS + lane // EDGES
    start = tl.load(starts + first + position, mask=position < count, other=0)
    end = tl.load(ends + first + position, mask=position < count, other=0)
    source = x + member * x_nodes * d
    weight = weights + member * edges_per_member
    total = tl.zeros((ROWS * EDGES, CHANNELS), dtype=ACC)
    for step in range(0, tl.max(end - start, axis=0), UNROLL * EDGES):
        for turn in tl.static_range(UNROLL):
            edge = start + step + turn * EDGES + lane % EDGES
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
    if EDGES > 1:
        total = tl.sum(tl.reshape(total, (ROWS, EDGES, CHANNELS)), axis=1)
    row = block * ROWS + tl.arange(0, ROWS)
    live_row = row < count
    target = (first + row).to(tl.int64)
    if HAS_TARGETS:
        target = tl.load(targets + first + row, mask=live_row, other=0).to(tl.int64)
    spot = (member * out_nodes + target)[:, None] * d + channel[None, :]
    mask = live_row[:, None] & live_channel[None, :]
    if HAS_RAW:
        tl.store(raw + spot, total, mask=mask)
    if HAS_SCALE:
        total = total * tl.load(scale + member * sb + channel * sc, mask=live_channel, other=0).to(ACC)[None, :]
    if FIELDS > 0:
        total += _term(
            y0, k0, member, target, channel, live_channel, spot, mask, k0b, k0n, k0c, PER_NODE // 1 % 2 == 1, ACC
        )  # fmt: skip
    if FIELDS > 1:
        total += _term(
            y1, k1, member, target, channel, live_channel, spot, mask, k1b, k1n, k1c, PER_NODE // 2 % 2 == 1, ACC
        )  # fmt: skip
    if FIELDS > 2:
        total += _term(
            y2, k2, member, target, channel, live_channel, spot, mask, k2b, k2n, k2c, PER_NODE // 4 % 2 == 1, ACC
        )  # fmt: skip
    tl.store(out + spot, total, mask=mask)


@triton.jit(do_not_specialize=COUNTS, do_not_specialize_on_alignment=SINGLY)
def _spmm_kernel(
    starts, ends, targets, indices, weights, x, out, raw, scale, y0, k0, y1, k1, y2, k2,
    heavy, light, members, d, edges_per_member, x_nodes, out_nodes,
    sb, sc, k0b, k0n, k0c, k1b, k1n, k1c, k2b, k2n, k2c,
    HAS_TARGETS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_SCALE: tl.constexpr, HAS_RAW: tl.constexpr,
    FIELDS: tl.constexpr, PER_NODE: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr, CHANNELS: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The heavy rows one by one, then the light rows ROWS at a time."""
    program = tl.program_id(0)
    if program < heavy * members:
        _sum_rows(
            starts, ends, targets, indices, weights, x, out, raw, scale, y0, k0, y1, k1, y2, k2,
            0, heavy, program // members, (program % members).to(tl.int64), d, edges_per_member, x_nodes, out_nodes,
            sb, sc, k0b, k0n, k0c, k1b, k1n, k1c, k2b, k2n, k2c,
            HAS_TARGETS, HAS_WEIGHTS, HAS_SCALE, HAS_RAW, FIELDS, PER_NODE, 1, EDGES, CHANNELS, UNROLL, ACC,
        )  # fmt: skip
    else:
        blocks = tl.cdiv(light, ROWS)
        block = (program - heavy * members) % blocks
        member = ((program - heavy * members) // blocks).to(tl.int64)
        _sum_rows(
            starts, ends, targets, indices, weights, x, out, raw, scale, y0, k0, y1, k1, y2, k2,
            heavy, light, block, member, d, edges_per_member, x_nodes, out_nodes,
            sb, sc, k0b, k0n, k0c, k1b, k1n, k1c, k2b, k2n, k2c,
            HAS_TARGETS, HAS_WEIGHTS, HAS_SCALE, HAS_RAW, FIELDS, PER_NODE, ROWS, 1, CHANNELS, UNROLL, ACC,
        )  # fmt: skip


def spmm(
    rows: Rows,
    weights: Tensor,
    x: Tensor,
    scale: Tensor | None = None,
    terms: Terms = (),
    *,
    shape: Shape | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """scale*(A@x) + sum of factor*value over the terms; weights (1 or B, E), x and values (B, n, d)."""
    out = _empty(rows, x) if out is None else out
    _fill(rows, weights, x, out, None, scale, terms[:MAX_FIELDS], shape)
    for factor, value in terms[MAX_FIELDS:]:
        torch.addcmul(out, factor.to(out.dtype), value, out=out)
    return out


def pull(
    rows: Rows, weights: Tensor, x: Tensor, scale: Tensor, terms: Terms = (), *, shape: Shape | None = None
) -> tuple[Tensor, Tensor]:
    """A@x, and scale*(A@x) + sum of factor*value over at most `MAX_FIELDS` terms, in one pass."""
    raw, out = _empty(rows, x), _empty(rows, x)
    _fill(rows, weights, x, out, raw, scale, terms, shape)
    return raw, out


def _empty(rows: Rows, x: Tensor) -> Tensor:
    return torch.empty((x.shape[0], rows.count, x.shape[2]), dtype=x.dtype, device=x.device)


def _fill(
    rows: Rows, weights: Tensor, x: Tensor, out: Tensor, raw: Tensor | None, scale: Tensor | None, terms: Terms,
    shape: Shape | None,
) -> None:  # fmt: skip
    """Launch the product; long rows in pieces, then the sums of their pieces."""
    if not out.numel():
        return
    x, weights = x.contiguous(), weights.contiguous()
    shape = shape or launch_shape(x.shape[2], x.element_size())
    _launch_spmm(*rows.main, rows.heavy, rows.indices, weights, x, out, raw, scale, terms, shape)
    if rows.has_long:
        starts, ends, _ = rows.pieces
        partial = torch.empty((len(x), len(starts), x.shape[2]), dtype=accumulator(x.dtype), device=x.device)
        _launch_spmm(starts, ends, None, len(starts), rows.indices, weights, x, partial, None, None, (), shape)
        _launch_spmm(*rows.sums, len(rows.long_rows), rows.numbers, None, partial, out, raw, scale, terms, shape)


def _launch_spmm(
    starts: Tensor,
    ends: Tensor,
    targets: Tensor | None,
    heavy: int,
    indices: Tensor,
    weights: Tensor | None,
    x: Tensor,
    out: Tensor,
    raw: Tensor | None,
    scale: Tensor | None,
    terms: Terms,
    shape: Shape,
) -> None:
    members, out_nodes, channels = out.shape
    light = len(starts) - heavy
    padded = [*((k.expand(out.shape), y.contiguous()) for k, y in terms), *[(out, out)] * (MAX_FIELDS - len(terms))]
    spread = out if scale is None else scale.expand(members, 1, channels)
    programs = (heavy + triton.cdiv(light, shape.rows)) * members
    _spmm_kernel[(programs, triton.cdiv(channels, shape.channels))](
        starts, ends, starts if targets is None else targets, indices, x if weights is None else weights, x, out,
        out if raw is None else raw, spread, *(t for k, y in padded for t in (y, k)),
        heavy, light, members, channels, 0 if weights is None or len(weights) == 1 else weights.shape[1], x.shape[1],
        out_nodes, spread.stride(0), spread.stride(2), *(stride for k, _ in padded for stride in k.stride()),
        HAS_TARGETS=targets is not None, HAS_WEIGHTS=weights is not None, HAS_SCALE=scale is not None,
        HAS_RAW=raw is not None, FIELDS=len(terms),
        PER_NODE=sum(2**m for m, (k, _) in enumerate(padded[: len(terms)]) if k.stride(1)),
        ROWS=shape.rows, EDGES=shape.edges, CHANNELS=shape.channels, UNROLL=shape.unroll,
        ACC=TRITON_TYPES[accumulator(x.dtype)], num_warps=1,
    )  # fmt: skip
