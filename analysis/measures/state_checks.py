"""States for measures: checked, in at least single precision, and rescaled so that squares do not overflow."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument


def read_state(H: Any) -> Tensor:
    """A finite state (*batch, n, d) with n, d >= 1, in float32 or float64.

    >>> read_state(torch.ones(2, 1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    if not isinstance(H, Tensor) or H.ndim < 2 or 0 in H.shape[-2:]:
        got = f"shape {tuple(H.shape)}" if isinstance(H, Tensor) else type(H).__name__
        raise InvalidArgument(f"expected a state tensor (..., nodes, channels), none of the two empty, got {got}")
    if not H.is_floating_point():
        raise InvalidArgument(f"expected a real floating-point state, got {H.dtype}; use H.double()")
    state = H if H.dtype in (torch.float32, torch.float64) else H.float()
    finite = state.detach().isfinite().flatten(-2).all(-1)
    if not bool(finite.all()):
        lost = "" if finite.ndim == 0 else f" in {int((~finite).sum())} of {finite.numel()} members"
        raise InvalidArgument(
            f"expected finite states, got NaN or infinity{lost}; measure the states that solve() keeps: it stops a "
            "member at its last finite state"
        )
    return state


def rescaled(H: Tensor) -> tuple[Tensor, Tensor]:
    """H/s and s (*batch), the power of 2 with s <= max|H| < 2 s, and 1 for the zero state: exact, and its squares fit.

    >>> rescaled(torch.tensor([[3e30], [-5.0]]))[0].square().isfinite().all()
    tensor(True)
    """
    largest = H.detach().abs().amax((-2, -1))
    mantissa, _ = torch.frexp(largest)
    scale = torch.where(largest > 0, largest / (2 * mantissa), 1.0)
    return H / scale[..., None, None], scale
