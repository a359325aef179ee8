"""Edge weights that depend on the states at both ends, and sums over neighbours with such weights.

Weights have an axis of heads: (M, heads, E). Edge e goes from `pattern.indices[e]`, the neighbour, to its row.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gread.kernels.training_operations import row_softmax
from rdgraph.graphs.kernels import operations as ops
from rdgraph.graphs.operator import Operator, Pattern

#: The score of an edge that a member does not have: its exponential is zero relative to any other.
ABSENT = -1e30


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(M, n, heads*d) as (M*heads, n, d).

    >>> split_heads(torch.tensor([[[1.0, 2.0]]]), 2).ravel()
    tensor([1., 2.])
    """
    members, nodes, width = x.shape
    return x.view(members, nodes, heads, width // heads).transpose(1, 2).reshape(members * heads, nodes, -1)


def join_heads(x: Tensor, heads: int) -> Tensor:
    """(M*heads, n, d) as (M, n, heads*d), the heads concatenated."""
    total, nodes, width = x.shape
    return x.view(total // heads, heads, nodes, width).transpose(1, 2).reshape(total // heads, nodes, -1)


def edge_products(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """<left_i, right_j> at every edge j -> i: (B, n, d) twice, (B, E) out."""
    return ops.sddmm(pattern.tensors, left.contiguous(), right.contiguous(), False)


def edge_sums(pattern: Pattern, target: Tensor, neighbour: Tensor) -> Tensor:
    """target_i + neighbour_j at every edge j -> i: (B, n) twice, (B, E) out; the same bits in every run.

    >>> import rdgraph as rd
    >>> path = rd.generators.path(3).operator("row").pattern
    >>> edge_sums(path, torch.tensor([[10.0, 20.0, 30.0]]), torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[12., 21., 23., 32.]])
    """
    one = torch.ones_like(target)
    return edge_products(pattern, torch.stack([target, one], -1), torch.stack([one, neighbour], -1))


class _Permuted(torch.autograd.Function):
    """x[..., order] with the gradient g[..., inverse], without the atomic additions of indexing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.orders = order, inverse
        return x.index_select(-1, order)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        order, inverse = ctx.orders
        return _Permuted.apply(grads[0], inverse, order), None, None  # type: ignore[no-untyped-call]


def reversed_edges(pattern: Pattern, x: Tensor) -> Tensor:
    """x (..., E) at the reversed edges, j -> i for i -> j, of a pattern with both directions of every edge.

    >>> import rdgraph as rd
    >>> path = rd.generators.path(3).operator("row").pattern
    >>> reversed_edges(path, torch.tensor([1.0, 10.0, 12.0, 21.0]))
    tensor([10.,  1., 21., 12.])
    """
    order, inverse = pattern.tensors[-2:]
    values: Tensor = _Permuted.apply(x, order, inverse)  # type: ignore[no-untyped-call]
    return values


def edge_softmax(operator: Operator, scores: Tensor) -> Tensor:
    """Softmax of scores (M, heads, E) over the edges into every node.

    If members have different graphs, stacked into one pattern, only the nonzero entries of a member count.

    >>> import rdgraph as rd
    >>> edge_softmax(rd.generators.path(3).operator("row"), torch.zeros(1, 1, 4)).ravel()
    tensor([1.0000, 0.5000, 0.5000, 1.0000])
    """
    pattern, flat = operator.pattern, scores.flatten(0, 1)
    if not operator.batch:
        return row_softmax(pattern.indptr, pattern.rows, flat).view(scores.shape)
    present = (operator.weights != 0)[:, None].expand(scores.shape)
    soft = row_softmax(pattern.indptr, pattern.rows, torch.where(present.reshape(flat.shape), flat, ABSENT))
    return torch.where(present, soft.view(scores.shape), 0.0)


def additive_scores(operator: Operator, values: Tensor, target: Tensor, neighbour: Tensor, leak: float) -> Tensor:
    """leaky(target . v_i + neighbour . v_j) at every edge, (M, heads, E), for values (M, n, heads*d).

    The scores of graph attention networks, with vectors (M, heads, d); `leak` is the slope below zero.
    """
    members, nodes, _ = values.shape
    heads = target.shape[1]
    split = values.view(members, nodes, heads, -1)
    ends = (torch.einsum("mnhd,mhd->mhn", split, part).reshape(-1, nodes) for part in (target, neighbour))
    return functional.leaky_relu(edge_sums(operator.pattern, *ends), leak).view(members, heads, operator.num_edges)


def weighted_sums(operator: Operator, weights: Tensor, x: Tensor) -> Tensor:
    """sum_j w_ij x_j with weights (M, heads, E) for x (M, n, heads*d), differentiable in both.

    >>> import rdgraph as rd
    >>> path, x = rd.generators.path(2).operator("row"), torch.tensor([[[1.0], [5.0]]])
    >>> weighted_sums(path, torch.tensor([[[2.0, 3.0]]]), x).ravel()
    tensor([10.,  3.])
    """
    heads = weights.shape[1]
    flat = weights.flatten(0, 1)
    return join_heads(ops.spmm(operator.pattern.tensors, flat, split_heads(x, heads), None, None, [], []), heads)


# ---------------------------------------------------------------------- soft adjacency
# Edge weights from scaled dot products of the states, a softmax within every row.
#
# w_ij = mean over heads of softmax_j(q_i . k_j / sqrt(width)), q = H Wq + bq, k = H Wk + bk, on the edges of the graph
# and optionally on self-loops. Row i of A is normalised, so A is row-stochastic.


def soft_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Edge weights (M, E) on the pattern of an operator, for queries and keys (M, n, heads*width).

    If members have different graphs, stacked into one pattern, only the nonzero entries of a member count.

    >>> import torch, rdgraph as rd
    >>> path = rd.generators.path(3).operator("row")
    >>> soft_weights(path, torch.zeros(1, 3, 4), torch.zeros(1, 3, 4), 2)
    tensor([[1.0000, 0.5000, 0.5000, 1.0000]])
    """
    return head_weights(operator, split_heads(query, heads), split_heads(key, heads), heads)


def head_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Edge weights (M, E), averaged over the heads, for queries and keys (M*heads, n, width)."""
    rows, _, width = query.shape
    logits = edge_products(operator.pattern, query, key) * width**-0.5
    return edge_softmax(operator, logits.view(rows // heads, heads, operator.num_edges)).mean(1)
