"""Quadratic forms of a state on a graph, as sums over edges: accurate where H is nearly constant, in bounded memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from analysis.measures.laplacian_kernel import nullspace
from analysis.measures.operator_entries import entries
from analysis.measures.state_checks import read_state
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator

#: Most numbers that differences along edges may hold at once, on a CPU (its cache) and on a GPU; more come in pieces.
MAX_GATHERED = (1 << 16, 1 << 25)


def read_on(H: Any, op: Operator) -> Tensor:
    """A checked state, in single precision at least, spread over the members of the operator."""
    state = read_state(H)
    if state.shape[-2] != op.num_nodes:
        raise InvalidArgument(f"expected a state (..., {op.num_nodes}, channels), got shape {tuple(state.shape)}")
    if state.device != op.device:
        raise InvalidArgument(f"expected a state on {op.device}, got {state.device}; move one of them with .to(...)")
    try:
        batch = torch.broadcast_shapes(state.shape[:-2], op.batch)
    except RuntimeError:
        raise InvalidArgument(
            f"expected states of batch {op.batch}, one per member of the operator (or more in front), got batch "
            f"{tuple(state.shape[:-2])}; stack one operator per member"
        ) from None
    return state.expand(*batch, *state.shape[-2:])


def check_plain(op: Operator, what: str) -> None:
    """Refuse an operator that is normalised, or has negative weights."""
    if not op.record.has_degrees:
        raise InvalidArgument(
            f"expected the operator of normalisation none for {what}, got {op!r}; make it with graph.operator('none')"
        )
    if entries(op).is_signed:
        raise NotApplicable(
            f"expected weights >= 0 for {what}, got negative ones; laplacian_energy is defined for signed graphs"
        )


def quadratic_form(H: Tensor, op: Operator) -> Tensor:
    """tr(H' L H), as a sum of squares where it is one."""
    vector = _sum_of_squares_vector(op)
    if vector is None:
        return (H * op.to(dtype=H.dtype).laplacian(H)).sum((-2, -1))
    v = vector.to(H.dtype)
    inside = v > 0
    found = entries(op)
    weights = op.weights.to(H.dtype) * v[..., found.rows] * v[..., found.columns]
    alone = torch.where(inside, 0.0, H.square().sum(-1)).sum(-1)
    return edge_sum(H / torch.where(inside, v, 1.0)[..., None], op, weights) / 2 + alone


def _sum_of_squares_vector(op: Operator) -> Tensor | None:
    """The vector v of `laplacian_energy`; None where L is not symmetric, or signed, or wants a gradient itself."""
    if not ((op.record.is_similar and op.record.is_symmetric) or op.record.has_degrees) or op.weights.requires_grad:
        return None
    if entries(op).is_signed or not entries(op).is_undirected:
        return None
    return nullspace(op).vector


def edge_sum(H: Tensor, op: Operator, weights: Tensor) -> Tensor:
    """sum over the entries [i, j] of weights[..., e] |h_i - h_j|^2, in pieces of bounded size: (*batch).

    An entry and its reverse have the same difference, which is taken once. Nodes come first, then channels, so that
    the members of a node lie side by side and squares are added for all of them at once.
    """
    found = entries(op)
    once, back = found.once
    both = weights[..., once] if back is None else weights[..., once] + weights[..., back]
    both = both.movedim(-1, 0).contiguous()
    both = both.view(len(once), *(1,) * (H.ndim - 1 - both.ndim), *both.shape[1:])
    rows, columns, nodes = found.rows[once], found.columns[once], H.movedim((-2, -1), (0, 1)).contiguous()
    total = H.new_zeros(H.shape[:-2])
    length = max(1, MAX_GATHERED[H.device.type == "cuda"] // max(1, nodes[0].numel()))
    for start in range(0, len(once), length):
        piece = slice(start, start + length)
        gap = nodes.index_select(0, rows[piece]) - nodes.index_select(0, columns[piece])
        total = total + (both[piece] * gap.square_().sum(1)).sum(0)
    return total


def squared_size(H: Tensor) -> Tensor:
    """|H|_F^2 per member."""
    return H.square().sum((-2, -1))


def restored(value: Tensor, scale: Tensor) -> Tensor:
    """scale^2*value, which overflows to infinity but never to 0*inf."""
    return value * scale * scale
