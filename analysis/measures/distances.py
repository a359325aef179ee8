"""Angles between neighbours, and the distance of a state to the kernel of L."""

from __future__ import annotations

import torch
from torch import Tensor

from analysis.measures.edge_sums import edge_sum, entries, nullspace, read_on, squared_size
from analysis.measures.state_checks import rescaled
from rdgraph.graphs.operator import Operator


def mad(H: Tensor, op: Operator) -> Tensor:
    """Mean over nodes i of the mean over neighbours j of the cosine distance 1 - <h_i, h_j>/(|h_i| |h_j|), in [0, 2].

    Neighbours are the nonzero entries of row i except i itself, independent of their weights, so the normalisation of
    the operator does not matter. A zero vector has no direction: pairs with one are excluded, and so are nodes without
    pairs; nan without any.

    Args:
        H: States (*batch, n, d).
        op: Any operator of the graph.

    Returns:
        One number in [0, 2] per member, (*batch).

    Raises:
        InvalidArgument: For states that do not match the operator.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, -1.0]])   # distances 1 and 2: (1 + 1.5 + 2)/3
        >>> analysis.measures.mad(H, rd.generators.path(3).operator("row"))
        tensor(1.5000)
    """
    state = read_on(H, op)
    size = state.detach().abs().amax(-1, keepdim=True)
    unit = state / torch.where(size > 0, size, 1.0)
    length = unit.norm(dim=-1, keepdim=True)
    has_direction = size[..., 0] > 0
    unit = unit / torch.where(length > 0, length, 1.0)
    pattern = entries(op)
    pairs = (pattern.weights != 0) & (pattern.rows != pattern.columns)
    if not bool(has_direction.all()):
        pairs = pairs & has_direction[..., pattern.rows] & has_direction[..., pattern.columns]
    pairs = pairs.to(unit.dtype)
    count = pairs.new_zeros((*pairs.shape[:-1], op.num_nodes)).index_add(-1, pattern.rows, pairs)
    share = pairs / count.clamp(min=1)[..., pattern.rows]
    # 1 - cos = |u - v|^2/2 for unit vectors, without loss of digits where they are nearly parallel.
    return edge_sum(unit, op, share) / (2 * (count > 0).sum(-1))


def kernel_distance(H: Tensor, op: Operator) -> Tensor:
    """|H - P H|_F/|H|_F, in [0, 1], where P is the orthogonal projection on the kernel of the operator's L.

    On every connected component the kernel is spanned by sqrt(d) for `symmetric`, the constant for `row` and `none`, d
    for `column`. A node without edges belongs to it only where L = D - W. Asks for an undirected graph; `row` and
    `none` also take other weights > 0 in the two directions, as soft adjacency has. nan for the zero state.

    Args:
        H: States (*batch, n, d).
        op: An operator with weights >= 0 and an edge back for every edge.

    Returns:
        One number in [0, 1] per member, (*batch).

    Raises:
        InvalidArgument: For states that do not match the operator, and weights that do not belong to its normalisation.
        NotApplicable: For directed graphs, negative weights, and free weights.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[3.0], [3.0], [0.0]])           # mean 2, deviations 1, 1, -2: sqrt(6/18)
        >>> analysis.measures.kernel_distance(H, rd.generators.path(3).operator("row"))
        tensor(0.5774)
    """
    unit, _ = rescaled(read_on(H, op))
    rest = unit - nullspace(op).project(unit)
    return rest.flatten(-2).norm(dim=-1) / squared_size(unit).sqrt()
