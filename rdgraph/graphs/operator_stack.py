"""`stack`: operators of several graphs on the same nodes as one operator with weights per member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator, Pattern

#: What the members have to share, and how to make them.
_SHARED: dict[str, tuple[Callable[[Operator], Any], str]] = {
    "number of nodes": (lambda op: op.num_nodes, "pad the smaller graphs with isolated nodes"),
    "normalisation": (lambda op: op.normalisation, "make all of them with the same graph.operator(...)"),
    "self-loop weight": (lambda op: op.self_loops, "make all of them with the same graph.operator(...)"),
    "meaning of L (D - A or I - A)": (
        lambda op: "I - A" if op.degree is None else "D - A",
        "make all of them with the same graph.operator(...)",
    ),
    "dtype": (lambda op: op.dtype, "convert them with op.to(dtype=...)"),
    "device": (lambda op: op.device, "move them with op.to(device=...)"),
}


def stack(operators: Sequence[Operator]) -> Operator:
    """B operators on the same n nodes as one, batch (B,): member b of `stack(ops) @ H` is ops[b] @ H[b].

    The pattern is the union of the members' patterns, rows sorted; weights (B, E) are zero where a member has no edge,
    and gradients reach the members' weights. Degrees, where L = D - A, are (B, n, 1). Normalisation and self-loops are
    the members' own, the same for all.

    Args:
        operators: of graphs on the same nodes, of one normalisation, dtype and device.

    Returns:
        One operator with weights per member.

    Raises:
        InvalidArgument: there is none, or they do not fit each other.

    >>> import torch
    >>> from rdgraph.graphs.generators import path, ring
    >>> both = stack([path(4).operator("none"), ring(4).operator("none")])
    >>> both
    Operator(none: 4 nodes, 8 entries, weights of (2,) members)
    >>> (both @ torch.ones(4, 1))[..., 0]
    tensor([[1., 2., 2., 1.],
            [2., 2., 2., 2.]])
    """
    members = list(operators)
    _check(members)
    members = [op.current() for op in members]
    first = members[0]
    if all(op.pattern is first.pattern for op in members):
        pattern, weights = first.pattern, torch.stack([op.weights for op in members])
        degree = _degrees(members)
        return Operator(pattern, weights, first.normalisation, first.self_loops, degree)
    nodes = first.num_nodes
    keys = [op.pattern.rows.long() * nodes + op.pattern.indices.long() for op in members]
    union = torch.unique(torch.cat(keys))
    empty = first.weights.new_zeros(len(union))
    weights = torch.stack(
        [empty.index_add(0, torch.searchsorted(union, key), op.weights) for key, op in zip(keys, members, strict=True)]
    )
    rows, columns = union // nodes, union % nodes
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device=union.device)
    indptr[1:] = torch.bincount(rows, minlength=nodes).cumsum(0)
    pattern = Pattern.from_csr(indptr, columns)
    return Operator(pattern, weights, first.normalisation, first.self_loops, _degrees(members))


def _degrees(members: Sequence[Operator]) -> Tensor | None:
    """(B, n, 1), or None where L = I - A."""
    degrees = [op.degree for op in members if op.degree is not None]
    return torch.stack(degrees) if degrees else None


def _check(members: Sequence[Any]) -> None:
    if not members:
        raise InvalidArgument("expected at least one operator to stack, got none")
    for number, op in enumerate(members):
        if not isinstance(op, Operator):
            raise InvalidArgument(
                f"expected operators, got {type(op).__name__} as member {number}; make one with graph.operator(...)"
            )
        if op.batch:
            raise InvalidArgument(
                f"expected operators with weights (E,), got member {number} with weights of batch {op.batch}; "
                "stack its members one by one"
            )
        for name, (read, remedy) in _SHARED.items():
            if read(op) != read(members[0]):
                raise InvalidArgument(
                    f"expected the same {name} in all members, got {read(members[0])} in member 0 and {read(op)} in "
                    f"member {number}; {remedy}"
                )
