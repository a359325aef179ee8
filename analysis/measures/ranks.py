"""Ranks of a state: the number of independent directions of its channels, smooth or by a threshold."""

from __future__ import annotations

import torch
from torch import Tensor

from analysis.measures.state_checks import read_state, rescaled
from rdgraph.errors import InvalidArgument


def effective_rank(H: Tensor) -> Tensor:
    """exp(-sum_k p_k log p_k) with p_k = sigma_k/sum_l sigma_l, the singular values of H (*batch, n, d): (*batch).

    Between 1 and min(n, d), and equal to the rank where all singular values are (Roy and Vetterli, The effective rank,
    2007). nan for the zero state. Smooth where H has full rank.

    Args:
        H: States (*batch, n, d).

    Returns:
        One number in [1, min(n, d)] per member, (*batch).

    Raises:
        InvalidArgument: For states that are not finite.

    Example:
        >>> import torch, analysis
        >>> analysis.measures.effective_rank(torch.eye(4, 3))
        tensor(3.)
    """
    sigma = _singular_values(H)
    share = sigma / sigma.sum(-1, keepdim=True)
    return torch.special.entr(share).sum(-1).exp()


def numerical_rank(H: Tensor, tol: float | None = None) -> Tensor:
    """Number of singular values of H (*batch, n, d) above tol*sigma_1, int64 (*batch); 0 for the zero state.

    Args:
        H: States (*batch, n, d).
        tol: The least singular value that counts, relative to the largest; max(n, d) times the rounding unit of H's
            precision by default.

    Returns:
        A whole number per member, (*batch).

    Raises:
        InvalidArgument: For states that are not finite, and a tolerance outside [0, 1).

    Example:
        >>> import torch, analysis
        >>> H = torch.diag(torch.tensor([1.0, 1e-2, 1e-9]))
        >>> analysis.measures.numerical_rank(H), analysis.measures.numerical_rank(H, tol=0.1)
        (tensor(2), tensor(1))
    """
    if tol is not None and not 0 <= tol < 1:
        raise InvalidArgument(f"expected a tolerance 0 <= tol < 1, relative to the largest singular value, got {tol!r}")
    sigma = _singular_values(H).detach()
    cut = max(H.shape[-2:]) * torch.finfo(H.dtype).eps if tol is None else tol
    return (sigma > cut * sigma[..., :1]).sum(-1)


def _singular_values(H: Tensor) -> Tensor:
    """Decreasing, of H over a power of 2: (*batch, min(n, d))."""
    unit, _ = rescaled(read_state(H))
    return torch.linalg.svdvals(unit)
