"""Triton kernels of training: dropout by counters, layer norm, softmax over the edges of a row, Adam by member."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gread.kernels.counters import FIRST, SECOND, STEP, STREAM

BLOCK = 1024
_FIRST, _SECOND, _STEP, _STREAM = (tl.constexpr(c) for c in (FIRST, SECOND, STEP, STREAM))


# ---------------------------------------------------------------------- dropout
@triton.jit
def _mix(x):
    x = (x ^ (x >> 16)) * tl.full((), _FIRST, tl.uint32)
    x = (x ^ (x >> 15)) * tl.full((), _SECOND, tl.uint32)
    return x ^ (x >> 15)


@triton.jit
def _keep(seeds, step, stream, member, place, rate):
    """Whether the entries at `place` are kept."""
    seed = tl.load(seeds + member)
    folded = _mix((seed & 0xFFFFFFFF).to(tl.uint32) ^ _mix(((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)))
    salt = tl.full((), _STREAM, tl.uint32) * stream.to(tl.uint32)
    turn = tl.load(step).to(tl.uint32) * tl.full((), _STEP, tl.uint32)
    key = _mix(_mix(folded + salt) + turn)
    bits = _mix(_mix(place.to(tl.uint32) + key) ^ key)
    return (bits >> 8).to(tl.float32) * 5.9604644775390625e-08 >= rate


@triton.jit
def _dropout_kernel(
    x, out, sign, seeds, step, rates, stream, size, x_stride, HAS_SIGN: tl.constexpr, BLOCK: tl.constexpr
):
    """out[m] = x[m]/(1 - rate) where kept (and, with a sign, where that is not negative), else 0."""
    member = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = place < size
    rate = tl.load(rates + member)
    kept = _keep(seeds, step, stream, member, place, rate) & live
    if HAS_SIGN:
        turned = tl.load(sign + member * size + place, mask=live, other=0)
        kept = kept & ((turned > 0) | (turned != turned))  # nan is kept, so that it stays visible
    value = tl.load(x + member * x_stride + place, mask=kept, other=0)
    tl.store(out + member * size + place, tl.where(kept, value / (1 - rate), 0), mask=live)


def dropout(x: Tensor, sign: Tensor | None, seeds: Tensor, step: Tensor, rates: Tensor, stream: int) -> Tensor:
    """x (1 or M, ...) with entries dropped, (M, ...), also those where a given `sign` is <= 0."""
    members, size = len(seeds), x[0].numel()
    out = torch.empty((members, *x.shape[1:]), dtype=x.dtype, device=x.device)
    if out.numel():
        _dropout_kernel[(triton.cdiv(size, BLOCK), members)](
            x, out, out if sign is None else sign, seeds, step, rates, stream, size, 0 if len(x) == 1 else size,
            HAS_SIGN=sign is not None, BLOCK=BLOCK,
        )  # fmt: skip
    return out


# ---------------------------------------------------------------------- layer norm
#: Rows of a state that a program normalises at a time, and the most parts that gradients of weights are summed in.
NORM_ROWS, NORM_PARTS = 32, 64


@triton.jit
def _norm_kernel(x, weight, bias, out, nodes, width, eps, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """out = (x - mean)/deviation of every row, times the weight of the member, plus its bias."""
    member, columns = tl.program_id(1).to(tl.int64), tl.arange(0, WIDTH)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = (rows[:, None] < nodes) & (columns[None, :] < width)
    place = (member * nodes + rows[:, None]) * width + columns[None, :]
    value = tl.load(x + place, mask=live, other=0)
    centred = tl.where(live, value - tl.sum(value, 1)[:, None] / width, 0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1) / width + eps)
    gain = tl.load(weight + member * width + columns, mask=columns < width, other=0)
    shift = tl.load(bias + member * width + columns, mask=columns < width, other=0)
    tl.store(out + place, centred * scale[:, None] * gain[None, :] + shift[None, :], mask=live)


@triton.jit
def _norm_gradient_kernel(
    g, x, weight, out, sums, nodes, width, eps, ROWS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr
):
    """The gradient by x, and of each part of the rows the sums for weight and bias; rows are normalised again."""
    member, part, columns = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.arange(0, WIDTH)
    gain = tl.load(weight + member * width + columns, mask=columns < width, other=0)
    weights, biases = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    for first in range(part * ROWS, nodes, PARTS * ROWS):
        rows = first + tl.arange(0, ROWS)
        live = (rows[:, None] < nodes) & (columns[None, :] < width)
        place = (member * nodes + rows[:, None]) * width + columns[None, :]
        value = tl.load(x + place, mask=live, other=0)
        arrived = tl.load(g + place, mask=live, other=0)
        centred = tl.where(live, value - tl.sum(value, 1)[:, None] / width, 0)
        scale = 1 / tl.sqrt(tl.sum(centred * centred, 1) / width + eps)
        normal = centred * scale[:, None]
        weights += tl.sum(arrived * normal, 0)
        biases += tl.sum(arrived, 0)
        pulled = arrived * gain[None, :]
        along = tl.sum(pulled * normal, 1) / width
        left = pulled - tl.sum(pulled, 1)[:, None] / width - normal * along[:, None]
        tl.store(out + place, left * scale[:, None], mask=live)
    target = sums + ((member * PARTS + part) * 2) * width + columns
    tl.store(target, weights, mask=columns < width)
    tl.store(target + width, biases, mask=columns < width)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Rows of x (M, n, d) normalised, with weight and bias (M, d)."""
    out = torch.empty_like(x)
    members, nodes, width = x.shape
    if out.numel():
        _norm_kernel[(triton.cdiv(nodes, NORM_ROWS), members)](
            x, weight, bias, out, nodes, width, eps, ROWS=NORM_ROWS, WIDTH=triton.next_power_of_2(width)
        )
    return out


def layer_norm_gradient(g: Tensor, x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by x (M, n, d), weight and bias (M, d)."""
    members, nodes, width = x.shape
    parts = max(1, min(NORM_PARTS, triton.cdiv(nodes, NORM_ROWS)))
    out, sums = torch.empty_like(x), torch.zeros((members, parts, 2, width), dtype=x.dtype, device=x.device)
    if out.numel():
        _norm_gradient_kernel[(parts, members)](
            g, x, weight, out, sums, nodes, width, eps,
            ROWS=NORM_ROWS, WIDTH=triton.next_power_of_2(width), PARTS=parts,
        )  # fmt: skip
    by_weight, by_bias = sums.sum(1).unbind(1)
    return out, by_weight, by_bias


# ---------------------------------------------------------------------- softmax over the edges of a row
@triton.jit
def _softmax_kernel(
    indptr, logits, other, out, rows, edges, BACKWARD: tl.constexpr, ROWS: tl.constexpr, EDGES: tl.constexpr
):
    """Forward: p = softmax of a row's logits. Backward (logits = p, other = g): p*(g - sum of p*g over the row)."""
    member = tl.program_id(1).to(tl.int64) * edges
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live_row = row < rows
    start = tl.load(indptr + row, mask=live_row, other=0)
    end = tl.load(indptr + row + 1, mask=live_row, other=0)
    longest = tl.max(end - start, axis=0)
    lane = tl.arange(0, EDGES)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for step in range(0, longest, EDGES):
        edge = start[:, None] + step + lane[None, :]
        live = edge < end[:, None]
        if BACKWARD:
            p = tl.load(logits + member + edge, mask=live, other=0)
            total += tl.sum(p * tl.load(other + member + edge, mask=live, other=0), axis=1)
        else:
            value = tl.load(logits + member + edge, mask=live, other=-float("inf"))
            higher = tl.maximum(top, tl.max(value, axis=1))
            fresh = tl.sum(tl.where(live, tl.exp(value - higher[:, None]), 0.0), axis=1)
            total = tl.where(higher > -float("inf"), total * tl.exp(top - higher), 0.0) + fresh
            top = higher
    for step in range(0, longest, EDGES):
        edge = start[:, None] + step + lane[None, :]
        live = edge < end[:, None]
        value = tl.load(logits + member + edge, mask=live, other=0)
        if BACKWARD:
            result = value * (tl.load(other + member + edge, mask=live, other=0) - total[:, None])
        else:
            result = tl.exp(value - top[:, None]) / total[:, None]
        tl.store(out + member + edge, result, mask=live)


def row_softmax(indptr: Tensor, logits: Tensor, gradient: Tensor | None = None) -> Tensor:
    """Softmax of logits (B, E) within every row; with a gradient, its backward pass, where `logits` is the softmax."""
    out = torch.empty_like(logits)
    rows, edges = len(indptr) - 1, logits.shape[1]
    if out.numel():
        lanes = min(64, max(16, 2 * triton.next_power_of_2(max(1, edges // max(rows, 1)))))
        block = 256 // lanes
        _softmax_kernel[(triton.cdiv(rows, block), len(logits))](
            indptr, logits, out if gradient is None else gradient, out, rows, edges,
            BACKWARD=gradient is not None, ROWS=block, EDGES=lanes, num_warps=2,
        )  # fmt: skip
    return out


# ---------------------------------------------------------------------- Adam, and copies of chosen members
@triton.jit
def _adam_kernel(p, g, m, v, rates, decays, moves, corrections, size, beta1, beta2, eps, BLOCK: tl.constexpr):
    member = tl.program_id(1).to(tl.int64)
    if tl.load(moves + member) != 0:
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        live = place < size
        spot = member * size + place
        rate, decay = tl.load(rates + member), tl.load(decays + member)
        value = tl.load(p + spot, mask=live, other=0)
        slope = tl.load(g + spot, mask=live, other=0) + decay * value
        first = tl.load(m + spot, mask=live, other=0)
        first = first + (1 - beta1) * (slope - first)
        second = beta2 * tl.load(v + spot, mask=live, other=0) + (1 - beta2) * slope * slope
        lower = tl.sqrt(second) * tl.load(corrections + 1) + eps
        tl.store(m + spot, first, mask=live)
        tl.store(v + spot, second, mask=live)
        tl.store(p + spot, value - rate * tl.load(corrections) * first / lower, mask=live)


def adam(
    p: Tensor, g: Tensor, m: Tensor, v: Tensor, rates: Tensor, decays: Tensor, moves: Tensor, corrections: Tensor,
    betas: tuple[float, float], eps: float,
) -> None:  # fmt: skip
    """One step of Adam in place for the members with `moves`; p, g, m, v (M, ...)."""
    size = p[0].numel()
    _adam_kernel[(triton.cdiv(size, BLOCK), len(p))](
        p, g.contiguous(), m, v, rates, decays, moves, corrections, size, *betas, eps, BLOCK=BLOCK
    )


@triton.jit
def _select_kernel(source, target, chosen, size, BLOCK: tl.constexpr):
    member = tl.program_id(1).to(tl.int64)
    if tl.load(chosen + member) != 0:
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        live = place < size
        tl.store(target + member * size + place, tl.load(source + member * size + place, mask=live), mask=live)


def select(source: Tensor, target: Tensor, chosen: Tensor) -> None:
    """Set target[m] = source[m] for the chosen members, (M, ...)."""
    size = source[0].numel()
    _select_kernel[(triton.cdiv(size, BLOCK), len(source))](source, target, chosen, size, BLOCK=BLOCK)
