"""Fits of one system to many sets of observed values at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rdgraph.inverse.damped_steps import Minimum, minimise
from rdgraph.inverse.residuals import Residuals

#: Of the variance of the noise: what the sum of squares of two fits may differ by and mean the same.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class Problems:
    """Residuals beside the sets of values (sets, K, n, d) that they are taken from."""

    residuals: Residuals
    values: Tensor

    @property
    def gain(self) -> float:
        """The share of a sum of squares that is far below what its noise leaves open."""
        return _NEGLIGIBLE / self.residuals.observed.count

    def derivatives(self, rows: Tensor, _which: Tensor) -> Tensor:
        return self.residuals.derivatives(rows)

    def minimise(
        self,
        rows: Tensor,
        which: Tensor,
        free: Tensor | None = None,
        *,
        max_steps: int = 60,
        after: Callable[[int, Tensor], None] | None = None,
    ) -> Minimum:
        """The least squares from every row, each for the set of values that `which` names."""

        def left(tried: Tensor, problems: Tensor) -> Tensor:
            return self.residuals.of(tried, self.values[which[problems]])

        free = torch.ones_like(rows, dtype=torch.bool) if free is None else free
        return minimise(left, self.derivatives, rows, free, gain=self.gain, max_steps=max_steps, after=after)

    def squares(self, rows: Tensor, which: Tensor) -> Tensor:
        """The sums of squares without a step, infinite where a run ends early."""
        return self.residuals.of(rows, self.values[which]).square().sum(-1)
