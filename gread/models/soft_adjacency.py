"""Soft adjacency: edge weights from scaled dot products of the states, a softmax within every row.

w_ij = mean over heads of softmax_j(q_i . k_j / sqrt(width)), q = H Wq + bq, k = H Wk + bk, on the edges of the graph
and, where asked, on self-loops. Row i of A is normalised, so A is row-stochastic.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gread.kernels.operations import row_softmax
from rdgraph.graphs.operator import Operator
from rdgraph.kernels import operations as ops

#: The logit of an entry that a member does not have: its exponential is zero beside any other.
ABSENT = -1e30


def soft_weights(operator: Operator, query: Tensor, key: Tensor, heads: int) -> Tensor:
    """Edge weights (M, E) on the pattern of an operator, for queries and keys (M, n, heads*width).

    Where members have graphs of their own, stacked into one pattern, those entries of a member count that are not zero.

    >>> import rdgraph as rd
    >>> path = rd.generators.path(3).operator("row")
    >>> soft_weights(path, torch.zeros(1, 3, 4), torch.zeros(1, 3, 4), 2)
    tensor([[1.0000, 0.5000, 0.5000, 1.0000]])
    """
    members, nodes, width = query.shape
    pattern = operator.pattern
    left, right = (
        x.view(members, nodes, heads, width // heads).transpose(1, 2).reshape(members * heads, nodes, -1)
        for x in (query, key)
    )
    logits = ops.sddmm(pattern.tensors, left.contiguous(), right.contiguous(), False) * (width // heads) ** -0.5
    if not operator.batch:
        return row_softmax(pattern.indptr, pattern.rows, logits).view(members, heads, -1).mean(1)
    present = operator.weights != 0
    shown = present[:, None].expand(-1, heads, -1).reshape(members * heads, -1)
    logits = torch.where(shown, logits, ABSENT)
    soft = row_softmax(pattern.indptr, pattern.rows, logits).view(members, heads, -1).mean(1)
    return torch.where(present, soft, 0.0)
