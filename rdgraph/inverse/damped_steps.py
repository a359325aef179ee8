"""Levenberg's and Marquardt's method for many small least-squares problems side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

#: The damping at first, and by what it changes after a good and a bad step.
_DAMPING, _LESS, _MORE = 1e-2, 0.2, 5.0
_MAX_DAMPING = 1e12

Values = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Minimum:
    """Where each problem ended: rows (problems, unknowns), the sum of squares, whether it settled."""

    rows: Tensor
    squares: Tensor
    settled: Tensor


def minimise(
    residuals: Values,
    derivatives: Values,
    rows: Tensor,
    free: Tensor,
    *,
    max_steps: int = 60,
    rtol: float = 1e-8,
    gain: float = 1e-8,
    after: Callable[[int, Tensor], None] | None = None,
) -> Minimum:
    """Least squares from every row; entries that are not `free` stay.

    `residuals` and `derivatives` are given rows and the numbers of the problems these belong to. A step that does not
    lower the sum of squares, or leaves the numbers, is taken back and damped more. A problem has settled when a step is
    shorter than `rtol` of its unknowns or lowers the sum by less than the share `gain`.
    """
    rows = rows.clone()
    free = free.expand(rows.shape)
    left = residuals(rows, torch.arange(len(rows)))
    squares = left.square().sum(-1)
    damping = torch.full_like(squares, _DAMPING)
    settled = ~torch.isfinite(squares)
    failed = settled.clone()
    products = torch.zeros(*rows.shape, rows.shape[-1], dtype=rows.dtype)
    slopes = torch.zeros_like(rows)
    stale = ~settled
    for turn in range(max_steps):
        active = torch.nonzero(~settled).ravel()
        if not len(active):
            break
        fresh = active[stale[active]]
        if len(fresh):
            along = derivatives(rows[fresh], fresh) * free[fresh][:, None, :]
            products[fresh] = along.transpose(1, 2) @ along
            slopes[fresh] = (along * left[fresh][..., None]).sum(1)
            stale[fresh] = False
        step = _step(products[active], slopes[active], damping[active], free[active])
        tried = rows[active] + step
        tried_left = residuals(tried, active)
        found = tried_left.square().sum(-1)
        better = found < squares[active]
        gained = (squares[active] - found) / squares[active].clamp_min(torch.finfo(rows.dtype).tiny)
        small = step.abs().amax(-1) <= rtol * (1 + rows[active].abs().amax(-1))
        rows[active] = torch.where(better[:, None], tried, rows[active])
        squares[active] = torch.where(better, found, squares[active])
        left[active] = torch.where(better[:, None], tried_left, left[active])
        stale[active] = better
        damping[active] = (damping[active] * torch.where(better, _LESS, _MORE)).clamp(1e-15, 2 * _MAX_DAMPING)
        settled[active] = small | (better & (gained < gain)) | (damping[active] > _MAX_DAMPING)
        if after is not None:
            after(turn, squares)
    return Minimum(rows, squares, settled & ~failed)


def _step(products: Tensor, slopes: Tensor, damping: Tensor, free: Tensor) -> Tensor:
    scale = products.diagonal(dim1=1, dim2=2)
    scale = torch.maximum(scale, 1e-12 * scale.amax(-1, keepdim=True)).clamp_min(torch.finfo(scale.dtype).tiny)
    scale = torch.where(free, scale, 1.0)
    roots = scale.sqrt()
    # Scaled to a unit diagonal, so that the damping means the same for every unknown.
    matrix = products / (roots[:, :, None] * roots[:, None, :])
    matrix = matrix + torch.diag_embed(damping[:, None] + (~free).to(matrix.dtype))
    return -torch.linalg.solve(matrix, slopes / roots) / roots * free
