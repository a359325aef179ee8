"""Separation of classes: the distance of the classes of a state relative to their spread."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from analysis.measures.state_checks import read_state, rescaled
from rdgraph.errors import InvalidArgument, NotApplicable


def fisher_ratio(H: Tensor, labels: Any) -> Tensor:
    """tr S_B/tr S_W of H (*batch, n, d): scatter between the class means over scatter within the classes, (*batch).

    S_B = sum_c n_c (m_c - m)(m_c - m)', S_W = sum_c sum_{i in c} (h_i - m_c)(h_i - m_c)', with m_c the mean of class c,
    n_c its size and m the mean of all. inf where every class sits at one point, nan where all do.

    Args:
        H: States (*batch, n, d).
        labels: (n,) or (*batch, n), whole numbers from 0, or -1 for unknown; such nodes are ignored.

    Returns:
        One number >= 0 per member, (*batch).

    Raises:
        InvalidArgument: For states that are not finite, and labels that do not match.
        NotApplicable: For fewer than two classes.

    Example:
        >>> import torch, analysis
        >>> H = torch.tensor([[0.0], [2.0], [4.0], [6.0]])    # means 1 and 5, spread 1: 4*2^2/(4*1^2)
        >>> analysis.measures.fisher_ratio(H, [0, 0, 1, 1])
        tensor(4.)
    """
    given, _ = rescaled(read_state(H))
    classes = _read_labels(labels, given)
    state = given.double()
    known = (classes >= 0)[..., None].to(state.dtype)
    shape = torch.broadcast_shapes(state.shape, known.shape)
    state, known = state.expand(shape), known.expand(*shape[:-1], 1)
    number = int(classes.max()) + 1
    index = classes.clamp(min=0)[..., None].expand(shape)
    state = state - (known * state).sum(-2, keepdim=True) / known.sum(-2, keepdim=True)
    empty = state.new_zeros((*shape[:-2], number, shape[-1]))
    size = empty[..., :1].scatter_add(-2, index[..., :1], known)
    means = empty.scatter_add(-2, index, known * state) / size.clamp(min=1)
    within = (known * (state - means.gather(-2, index)).square()).sum((-2, -1))
    return ((size * means.square()).sum((-2, -1)) / within).to(given.dtype)


def _read_labels(labels: Any, state: Tensor) -> Tensor:
    try:
        classes = torch.as_tensor(labels, device=state.device)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidArgument(f"expected labels as whole numbers, got {type(labels).__name__}") from None
    if classes.is_floating_point() or classes.is_complex():
        raise InvalidArgument(f"expected labels as whole numbers, got {classes.dtype}; use labels.long()")
    classes = classes.long()
    nodes = state.shape[-2]
    if classes.ndim < 1 or classes.shape[-1] != nodes:
        raise InvalidArgument(f"expected labels (..., {nodes}), one per node, got shape {tuple(classes.shape)}")
    try:
        torch.broadcast_shapes(classes.shape[:-1], state.shape[:-2])
    except RuntimeError:
        raise InvalidArgument(
            f"expected labels ({nodes},) or (*batch, {nodes}) for states of batch {tuple(state.shape[:-2])}, "
            f"got shape {tuple(classes.shape)}"
        ) from None
    if bool((classes < -1).any()):
        raise InvalidArgument(f"expected labels >= 0, or -1 for unknown, got {int(classes.min())}")
    highest = classes.amax(-1, keepdim=True)
    if not bool(((classes >= 0) & (classes != highest)).any(-1).all()):
        raise NotApplicable("expected at least two classes among the labels of every member, got fewer")
    return classes
