"""Triton kernels for polynomials of a matrix: sums over stacks of states, and the coefficients of linear flows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rdgraph.graphs.kernels.triton_spmm import TRITON_TYPES, accumulator

#: Where the vectors of a ragged stack lie (K + 1,), and the degrees of the members (B,).
Tables = tuple[Tensor, Tensor]
#: Nodes, channels and edges that one program takes.
ROWS, WIDEST, EDGES = 32, 64, 16


@triton.jit
def _vector(shifts, k, member, members, RAGGED: tl.constexpr):
    """Which vector of a stack is that of a power and a member."""
    if RAGGED:
        return tl.load(shifts + k) + member
    else:
        return k * tl.full((), 1, tl.int64) * members + member


@triton.jit(do_not_specialize=["count", "members", "nodes", "tiles"])
def _moments_kernel(
    stack, x, series, total, partial, shifts, degrees, count, members, nodes, d, tiles, sk, sb, sc,
    RAGGED: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """total = sum_k series[k] stack[k] and partial[k, b, tile] = sum over the tile's nodes of stack[k]*x."""
    member = (tl.program_id(0) // tiles).to(tl.int64)
    tile = (tl.program_id(0) % tiles).to(tl.int64)
    row = tile * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    live_channel = channel < d
    mask = (row < nodes)[:, None] & live_channel[None, :]
    offset = (member * nodes + row)[:, None] * d + channel[None, :]
    held = tl.load(x + offset, mask=mask, other=0).to(ACC)
    sums = tl.zeros((ROWS, CHANNELS), dtype=ACC)
    used = count
    if RAGGED:
        used = tl.load(degrees + member) + 1
    for k in range(used):
        vector = _vector(shifts, k, member, members, RAGGED)
        there = (vector * nodes + row)[:, None] * d + channel[None, :]
        value = tl.load(stack + there, mask=mask, other=0).to(ACC)
        factor = tl.load(series + k * sk + member * sb + channel * sc, mask=live_channel, other=0).to(ACC)
        sums += factor[None, :] * value
        spot = ((k * members + member) * tiles + tile) * d + channel
        tl.store(partial + spot, tl.sum(value * held, axis=0), mask=live_channel)
    tl.store(total + offset, sums, mask=mask)


def moments(
    stack: Tensor, x: Tensor, series: Tensor, tables: Tables | None = None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """sum_k series[k] stack[k] (B, n, d), and <stack[k], x> over the nodes (K + 1, B, 1, d), in one pass.

    stack (K + 1, B, n, d), x (B, n, d), series (K + 1, 1 or B, 1, 1 or d). With `tables` the stack is (rows, n, d), and
    what there is of it for a power and a member follows from them; beyond the degree of a member there is 0.
    """
    count, (members, nodes, d) = len(series), x.shape
    width = min(triton.next_power_of_2(d), WIDEST)
    tiles = triton.cdiv(nodes, ROWS)
    spread = series.expand(count, members, 1, d)
    total = torch.empty_like(x)
    make = torch.empty if tables is None else torch.zeros
    partial = make((count, members, tiles, d), dtype=accumulator(x.dtype), device=x.device)
    _moments_kernel[(members * tiles, triton.cdiv(d, width))](
        stack, x, spread, total, partial, *(tables or (x, x)), count, members, nodes, d, tiles,
        spread.stride(0), spread.stride(1), spread.stride(3),
        RAGGED=tables is not None, ROWS=ROWS, CHANNELS=width, ACC=TRITON_TYPES[partial.dtype], num_warps=4,
    )  # fmt: skip
    return total, partial.sum(dim=2, keepdim=True)


@triton.jit(do_not_specialize=["count", "members", "nodes"])
def _sample_kernel(
    rows, columns, left, right, out, shifts, degrees, edges, count, members, nodes, d,
    RAGGED: tl.constexpr, DOUBLED: tl.constexpr, EDGES: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out[b, e] = sum_k factor_k <left[k, b, row(e)], right[k, b, column(e)]>, factors 1, 2, 2, ... or all 1.

    With RAGGED the right vector is that of the next power.
    """
    member = tl.program_id(1).to(tl.int64)
    edge = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    live = edge < edges
    row = tl.load(rows + edge, mask=live, other=0).to(tl.int64)
    column = tl.load(columns + edge, mask=live, other=0).to(tl.int64)
    channel = tl.arange(0, CHANNELS)
    total = tl.zeros((EDGES,), dtype=ACC)
    used = count
    if RAGGED:
        used = tl.load(degrees + member)
    for k in range(used):
        one = _vector(shifts, k, member, members, RAGGED) * nodes
        two = one
        if RAGGED:
            two = _vector(shifts, k + 1, member, members, RAGGED) * nodes
        part = tl.zeros((EDGES, CHANNELS), dtype=ACC)
        for start in range(0, d, CHANNELS):
            mask = live[:, None] & (start + channel < d)[None, :]
            a = tl.load(left + (one + row)[:, None] * d + start + channel[None, :], mask=mask, other=0).to(ACC)
            b = tl.load(right + (two + column)[:, None] * d + start + channel[None, :], mask=mask, other=0).to(ACC)
            part += a * b
        sums = tl.sum(part, axis=1)
        if DOUBLED:
            sums = tl.where(k > 0, 2 * sums, sums)
        total += sums
    tl.store(out + member * edges + edge, total, mask=live)


def sample_stacks(
    rows: Tensor, columns: Tensor, left: Tensor, right: Tensor, doubled: bool, tables: Tables | None = None
) -> Tensor:
    """The sampled products of two stacks (K, B, n, d) summed over K, (B, E); with `doubled` all but the first twice.

    With `tables` the stacks are (rows, n, d), see `moments`, and a left vector meets the right one of the next power.
    """
    nodes, d = left.shape[-2:]
    count, members = left.shape[:2] if tables is None else (len(tables[0]), len(tables[1]))
    edges = len(columns)
    out = torch.empty((members, edges), dtype=left.dtype, device=left.device)
    if out.numel():
        width = min(triton.next_power_of_2(d), WIDEST)
        _sample_kernel[(triton.cdiv(edges, EDGES), members)](
            rows, columns, left, right, out, *(tables or (rows, rows)), edges, count, members, nodes, d,
            RAGGED=tables is not None, DOUBLED=doubled, EDGES=EDGES, CHANNELS=width,
            ACC=TRITON_TYPES[accumulator(left.dtype)], num_warps=2,
        )  # fmt: skip
    return out


# ---------------------------------------------------------------------- gains of linear flows
@triton.jit
def _multiply(ar, ai, br, bi):
    return ar * br - ai * bi, ar * bi + ai * br


@triton.jit
def _factor(pr, pi, dt, plan, live, STAGES: tl.constexpr):
    """R(z) and R'(z) of the Runge-Kutta methods of the rows at z = dt*p, by Horner's rule."""
    zr, zi = dt * pr, dt * pi
    vr = tl.zeros_like(pr) + tl.load(plan + STAGES, mask=live, other=0)[:, None]
    vi = tl.zeros_like(pr)
    sr, si = tl.zeros_like(pr), tl.zeros_like(pr)
    for j in tl.static_range(STAGES):
        sr, si = _multiply(sr, si, zr, zi)
        sr, si = sr + vr, si + vi
        vr, vi = _multiply(vr, vi, zr, zi)
        vr = vr + tl.load(plan + STAGES - 1 - j, mask=live, other=0)[:, None]
    return vr, vi, sr, si


@triton.jit
def _power(ar, ai, count):
    """a^count, for the counts of the rows."""
    xr, xi = tl.zeros_like(ar) + 1.0, tl.zeros_like(ai)
    for bit in tl.static_range(12):
        xr, xi = _multiply(xr, xi, xr, xi)
        yr, yi = _multiply(xr, xi, ar, ai)
        odd = ((count >> (11 - bit)) & 1) == 1
        xr, xi = tl.where(odd, yr, xr), tl.where(odd, yi, xi)
    return xr, xi


@triton.jit(do_not_specialize=["rows", "per_time", "per_plan", "terms"])
def _gain_kernel(
    generator, times, basis, plan, values, slopes, rows, per_time, per_plan, terms,
    STAGES: tl.constexpr, HAS_EXACT: tl.constexpr, NODES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """g = h(T)/h(0) and dg/dp at every sample point: exp(T p) where there are no steps, else R(last p) R(step p)^n.

    A row of the plan holds the stability polynomial, the step, and the number of steps, n + 1.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row < rows
    node = tl.arange(0, NODES)
    pr = tl.zeros((ROWS, NODES), dtype=tl.float64)
    pi = tl.zeros((ROWS, NODES), dtype=tl.float64)
    for j in range(terms):
        q = tl.load(generator + j * rows + row, mask=live, other=0)[:, None]
        pr += q * tl.load(basis + j * 2 * NODES + node)[None, :]
        pi += q * tl.load(basis + (j * 2 + 1) * NODES + node)[None, :]
    time = tl.load(times + row // per_time, mask=live, other=0)[:, None]
    row_plan = plan + row // per_plan * (STAGES + 3)
    steps = tl.load(row_plan + STAGES + 2, mask=live, other=1)[:, None]
    is_exact = steps == 0
    if STAGES > 0:
        sr, si = tl.where(is_exact, 0.0, pr), tl.where(is_exact, 0.0, pi)
        step = tl.load(row_plan + STAGES + 1, mask=live, other=0)[:, None]
        before = tl.maximum(steps - 1, 0.0)
        last = time - before * step
        gr, gi, kr, ki = _factor(sr, si, last, row_plan, live, STAGES)
        dr, di = last * kr, last * ki
        fr, fi, hr, hi = _factor(sr, si, tl.zeros_like(pr) + step, row_plan, live, STAGES)
        br, bi = _power(fr, fi, tl.maximum(before - 1, 0.0).to(tl.int32))
        er, ei = _multiply(br, bi, hr, hi)
        er, ei = _multiply(er, ei, gr, gi)
        ur, ui = _multiply(br, bi, fr, fi)
        br, bi = tl.where(before > 0, ur, br), tl.where(before > 0, ui, bi)
        dr, di = _multiply(dr, di, br, bi)
        dr, di = dr + before * step * er, di + before * step * ei
        gr, gi = _multiply(gr, gi, br, bi)
    if HAS_EXACT:
        xr, xi = tl.where(is_exact, time * pr, 0.0), tl.where(is_exact, time * pi, 0.0)
        size = tl.exp(xr)
        ar, ai = size * tl.cos(xi), size * tl.sin(xi)
        if STAGES > 0:
            gr, gi = tl.where(is_exact, ar, gr), tl.where(is_exact, ai, gi)
            dr, di = tl.where(is_exact, time * ar, dr), tl.where(is_exact, time * ai, di)
        else:
            gr, gi = ar, ai
            dr, di = time * ar, time * ai
    spot = row[:, None] * 2 * NODES + node[None, :]
    mask = live[:, None] & (node < NODES)[None, :]
    tl.store(values + spot, gr, mask=mask)
    tl.store(values + spot + NODES, gi, mask=mask)
    tl.store(slopes + spot, dr, mask=mask)
    tl.store(slopes + spot + NODES, di, mask=mask)


@triton.jit(do_not_specialize=["rows", "terms"])
def _pull_kernel(pulled, slopes, basis, out, rows, terms, NODES: tl.constexpr, ROWS: tl.constexpr):
    """out[j, r] = sum over the points of Re(conj(pulled) slope y^j)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row < rows
    node = tl.arange(0, NODES)
    spot = row[:, None] * 2 * NODES + node[None, :]
    mask = live[:, None] & (node < NODES)[None, :]
    cr = tl.load(pulled + spot, mask=mask, other=0)
    ci = tl.load(pulled + spot + NODES, mask=mask, other=0)
    dr = tl.load(slopes + spot, mask=mask, other=0)
    di = tl.load(slopes + spot + NODES, mask=mask, other=0)
    along, across = cr * dr + ci * di, ci * dr - cr * di
    for j in range(terms):
        yr = tl.load(basis + j * 2 * NODES + node)[None, :]
        yi = tl.load(basis + (j * 2 + 1) * NODES + node)[None, :]
        tl.store(out + j * rows + row, tl.sum(along * yr + across * yi, axis=1), mask=live)


def gains(generator: Tensor, times: Tensor, basis: Tensor, plan: Tensor, has_exact: bool) -> tuple[Tensor, Tensor]:
    """Values and slopes dg/dp (R, 2, J) of R flows with generators (m + 1, R), times (R or fewer,), at J points.

    basis (m + 1, 2, J) holds the powers of the points, plan (1 or members, stages + 3) the stability polynomial, the
    step and the number of steps of every member, 0 for exp, which `has_exact` says that some have.
    """
    terms, rows = generator.shape
    points = basis.shape[2]
    values = torch.empty((rows, 2, points), dtype=torch.float64, device=generator.device)
    slopes = torch.empty_like(values)
    block = max(1, 256 // points)
    _gain_kernel[(triton.cdiv(rows, block),)](
        generator, times, basis, plan, values, slopes, rows, rows // len(times), rows // len(plan), terms,
        STAGES=plan.shape[1] - 3, HAS_EXACT=has_exact, NODES=points, ROWS=block, num_warps=2,
    )  # fmt: skip
    return values, slopes


def pull_gains(pulled: Tensor, slopes: Tensor, basis: Tensor) -> Tensor:
    """The gradient in the generators (m + 1, R) from that in the values (R, 2, J)."""
    rows, _, points = slopes.shape
    out = torch.empty((len(basis), rows), dtype=torch.float64, device=slopes.device)
    block = max(1, 256 // points)
    _pull_kernel[(triton.cdiv(rows, block),)](
        pulled, slopes, basis, out, rows, len(basis), NODES=points, ROWS=block, num_warps=2
    )
    return out
