"""`PreparedFlow`: the flow of a linear part over steps of equal length, whose polynomial is computed once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rdgraph.integrators.linear_part import Linear
from rdgraph.integrators.propagator import Propagator


class PreparedFlow:
    """Propagators of one linear part for given steps; the last one is kept, for the next step of the same length.

    `forced` is the rate of change where a constant forcing belongs to the linear part.
    """

    def __init__(
        self, linear: Linear, rtol: float | None = None, forced: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.linear, self.rtol, self.forced = linear, rtol, forced
        self._prepared: tuple[Tensor, Propagator] | None = None

    def over(self, dt: Tensor, H: Tensor) -> Propagator:
        """Of states like H over a step dt, () or (*batch, 1, 1); one with a gradient is prepared anew."""
        known = self._prepared
        if known is not None and known[0].shape == dt.shape and not dt.requires_grad:
            rounding = 16 * torch.finfo(dt.dtype).eps
            if bool(((known[0] - dt).abs() <= rounding * dt.abs()).all()):
                return known[1]
        elapsed = dt.to(device=H.device, dtype=torch.float64)
        elapsed = elapsed.reshape((1,) * (H.ndim + 1 - elapsed.ndim) + tuple(elapsed.shape))
        made = Propagator.make(self.linear, elapsed, H, rtol=self.rtol, forced=self.forced)
        self._prepared = None if dt.requires_grad else (dt.clone(), made)
        return made
