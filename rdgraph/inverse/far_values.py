"""Positive coefficients that left for zero or infinity, drawn back to where they begin to count.

Where the data have nothing of a term, its coefficient goes on towards zero, and its logarithm as far as the steps lead.
From there no border is in sight, though the data may bound the coefficient well from one side.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rdgraph.inverse.least_squares import Problems

#: Of the variance of the noise: what the sum of squares may rise by on the way back.
_NEGLIGIBLE = 1e-4
#: The logarithm of what counts as far from 1.
_FAR = 7.0
#: Points on the way back that are tried at once, and how often between two of them.
_POINTS, _TURNS = 16, 3


def drawn_back(problems: Problems, row: Tensor, squares: Tensor, variance: float) -> tuple[Tensor, Tensor]:
    """The row (1, unknowns) of a fit and its squares (1,), coefficients beyond all scales drawn back towards 1.

    Each goes back on the scale of logarithms, others held, as long as the sum of squares does not rise by more than a
    negligible part of the variance.
    """
    unknowns = problems.residuals.unknowns
    most = squares + _NEGLIGIBLE * variance
    for c, place in zip(unknowns.coefficients, unknowns.slices().values(), strict=True):
        for position in range(place.start, place.stop) if c.factor else ():
            if float(row[0, position].abs()) > _FAR:
                row = _nearest(problems, row, position, most)
    return row, problems.squares(row, torch.zeros(1, dtype=torch.long))


def _nearest(problems: Problems, row: Tensor, position: int, most: Tensor) -> Tensor:
    """The row with one entry as near to zero as the sum of squares allows."""
    kept, beyond = float(row[0, position]), 0.0
    for _ in range(_TURNS):
        tried = torch.linspace(kept, beyond, _POINTS, dtype=row.dtype)[1:]
        rows = row.repeat(len(tried), 1)
        rows[:, position] = tried
        is_good = problems.squares(rows, torch.zeros(len(rows), dtype=torch.long)) <= most
        count = int(is_good.long().cumprod(0).sum())
        if count:
            kept = float(tried[count - 1])
        if count == len(tried):
            break
        beyond = float(tried[count])
    found = row.clone()
    found[0, position] = kept
    return found
