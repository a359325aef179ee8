"""Functions that closed forms need and torch lacks: accurate where the textbook formula divides zero by zero."""

from __future__ import annotations

import torch
from torch import Tensor

#: Below this size phi1 is summed as a power series, whose remainder is then smaller than float64 resolves.
_SERIES_RADIUS = 0.5
_SERIES_TERMS = 16


def phi1(z: Tensor) -> Tensor:
    """phi1(z) = (exp(z) - 1)/z, with phi1(0) = 1; elementwise, real or complex.

    t*phi1(a*t) is the integral of exp(a*s) over s from 0 to t: the answer of h' = a*h + 1 from h(0) = 0. Value and
    derivatives keep full accuracy at and around zero.

    >>> phi1(torch.tensor([0.0, 1e-12, 1.0], dtype=torch.float64))
    tensor([1.0000, 1.0000, 1.7183], dtype=torch.float64)
    """
    near = z.abs() < _SERIES_RADIUS
    inside = torch.where(near, z, torch.zeros_like(z))
    series = torch.ones_like(z)
    for k in range(_SERIES_TERMS, 1, -1):
        series = 1 + series * inside / k
    outside = torch.where(near, torch.ones_like(z), z)
    return torch.where(near, series, torch.expm1(outside) / outside)
