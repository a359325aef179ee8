"""Soft adjacency: edge weights from scaled dot products of the states, a softmax within every row.

w_ij = mean over heads of softmax_j(q_i . k_j / sqrt(width)), q = H Wq + bq, k = H Wk + bk, on the edges of the graph
and, where asked, on self-loops. Row i of A is normalised, so A is row-stochastic.
"""

from __future__ import annotations

from torch import Tensor

from gread.kernels.edge_attention import edge_products, edge_softmax, split_heads
from rdgraph.graphs.operator import Operator


def soft_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Edge weights (M, E) on the pattern of an operator, for queries and keys (M, n, heads*width).

    Where members have graphs of their own, stacked into one pattern, those entries of a member count that are not zero.

    >>> import torch, rdgraph as rd
    >>> path = rd.generators.path(3).operator("row")
    >>> soft_weights(path, torch.zeros(1, 3, 4), torch.zeros(1, 3, 4), 2)
    tensor([[1.0000, 0.5000, 0.5000, 1.0000]])
    """
    return head_weights(operator, split_heads(query, heads), split_heads(key, heads), heads)


def head_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """The same for queries and keys (M*heads, n, width), with the heads among the members."""
    rows, _, width = query.shape
    logits = edge_products(operator.pattern, query, key) * width**-0.5
    return edge_softmax(operator, logits.view(rows // heads, heads, operator.num_edges)).mean(1)
