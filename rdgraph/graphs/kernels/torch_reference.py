"""The sparse product in plain torch: the fastest that torch has on a CPU, and the fallback where Triton is missing.

Shapes: indptr (n+1,), indices (E,), weights (S, E), x (B, n, d), where S divides B and member b has weights b % S.
"""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor

#: Most numbers a gathered intermediate may hold; longer edge lists are cut into pieces.
MAX_GATHERED = 1 << 26
#: Most entries of members with different weights that are joined to one matrix; where each has more, the overhead of a
#: call does not matter.
MAX_JOINED = 1 << 22
_SUM = 0


def spmm(indptr: Tensor, indices: Tensor, weights: Tensor, x: Tensor) -> Tensor:
    """out[b, i] = sum of weights[b % S, e] x[b, indices[e]] over the edges e of row i; adds in float32 at least.

    Members that share their weights lie side by side as channels, so that every weight is read once.
    """
    if x.dtype in (torch.bfloat16, torch.float16):
        return spmm(indptr, indices, weights.float(), x.float()).to(x.dtype)
    members, nodes, channels = x.shape
    groups = weights.shape[0]
    if members == groups:
        return _products(indptr, indices, weights, x)
    wide = x.reshape(-1, groups, nodes, channels).permute(1, 2, 0, 3).reshape(groups, nodes, -1)
    out = _products(indptr, indices, weights, wide).view(groups, indptr.numel() - 1, -1, channels)
    return out.permute(2, 0, 1, 3).reshape(members, -1, channels)


def _products(indptr: Tensor, indices: Tensor, weights: Tensor, x: Tensor) -> Tensor:
    """weights (S, E) and x (S, n, d): the members as blocks of one matrix, or one after the other where they are large.

    Every row has its own sum in either case, so the bits are the same.
    """
    members, nodes, channels = x.shape
    edges = indices.numel()
    if members == 1:
        return matrix_product(indptr, indices, weights[0], x[0])[None]
    if members * edges > MAX_JOINED:
        return torch.stack([matrix_product(indptr, indices, w, h) for w, h in zip(weights, x, strict=True)])
    block = torch.arange(members, dtype=indices.dtype, device=indices.device)[:, None]
    starts = torch.cat([(indptr[:-1] + block * edges).reshape(-1), indptr.new_full((1,), members * edges)])
    columns = (indices + block * nodes).reshape(-1)
    out = matrix_product(starts, columns, weights.reshape(-1), x.reshape(-1, channels))
    return out.view(members, indptr.numel() - 1, channels)


def sddmm(indptr: Tensor, indices: Tensor, g: Tensor, x: Tensor, shared: bool) -> Tensor:
    """out[b, e] = <g[b, row(e)], x[b, indices[e]]>, summed over the members when the weights are shared."""
    if g.dtype in (torch.bfloat16, torch.float16):
        return sddmm(indptr, indices, g.float(), x.float(), shared).to(g.dtype)
    rows = edge_rows(indptr, len(indices))
    if g.device.type == "cpu" and g.dtype == x.dtype and rows.numel() and g.shape[-1]:
        sampled = torch.stack([_sampled(indptr, indices, rows, *pair) for pair in zip(g, x, strict=True)])
        return sampled.sum(dim=0, keepdim=True) if shared else sampled
    pieces = []
    for piece in torch.arange(len(indices), device=g.device).split(
        max(1, MAX_GATHERED // max(1, g[..., 0, :].numel()))
    ):
        sampled = (g.index_select(1, rows[piece]) * x.index_select(1, indices[piece])).sum(dim=-1)
        pieces.append(sampled.sum(dim=0, keepdim=True) if shared else sampled)
    return torch.cat(pieces, dim=-1) if pieces else g.new_zeros((1 if shared else len(g), 0))


def _sampled(indptr: Tensor, indices: Tensor, rows: Tensor, g: Tensor, x: Tensor) -> Tensor:
    """<g[row(e)], x[indices[e]]> at every edge without gathering: the gradient of embedding_bag in its weights."""
    backward = torch.ops.aten._embedding_bag_per_sample_weights_backward
    return backward(g.contiguous(), x.contiguous(), indices, indptr, rows, _SUM, -1)


def edge_rows(indptr: Tensor, edges: int) -> Tensor:
    """The row of every edge, (E,)."""
    nodes = torch.arange(len(indptr) - 1, device=indptr.device, dtype=indptr.dtype)
    return torch.repeat_interleave(nodes, indptr.diff(), output_size=edges)


def matrix_product(indptr: Tensor, indices: Tensor, weights: Tensor, x: Tensor) -> Tensor:
    """One member, (n, d). On a CPU float32 is fastest through embedding_bag, float64 through the reducing product."""
    if indices.numel() == 0 or x.shape[-1] == 0:
        return x.new_zeros((indptr.numel() - 1, x.shape[-1]))
    if x.device.type == "cpu" and x.dtype == torch.float32:
        product, *_ = torch.embedding_bag(
            x, indices, indptr, mode=_SUM, per_sample_weights=weights.contiguous(), include_last_offset=True
        )
        return product
    _accept_csr()
    size = (indptr.numel() - 1, x.shape[0])
    matrix = torch.sparse_csr_tensor(indptr, indices, weights, size=size, check_invariants=False)
    return torch.sparse.mm(matrix, x.contiguous(), "sum") if x.device.type == "cpu" else matrix @ x


@cache
def _accept_csr() -> None:
    """Suppress torch's warning, once per process, that its CSR tensors are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pointer = torch.zeros(2, dtype=torch.int64)
        torch.sparse_csr_tensor(pointer, pointer[:0], torch.zeros(0), size=(1, 1), check_invariants=False)
