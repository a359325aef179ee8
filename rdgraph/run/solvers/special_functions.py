"""Functions that closed forms need and torch lacks: accurate where the textbook formula divides zero by zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

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


class _FrugalPhi1(torch.autograd.Function):
    """phi1 whose gradient keeps z alone."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return _by_series(z, [1 / math.factorial(k + 1) for k in range(_SERIES_TERMS)], _far_value)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives come from the plain function
            (gradient,) = torch.autograd.grad(phi1(z), z, g, create_graph=True)
            return gradient
        slope = _by_series(z, [(k + 1) / math.factorial(k + 2) for k in range(_SERIES_TERMS)], _far_slope)
        return g * slope.conj()


def frugal_phi1(z: Tensor) -> Tensor:
    """phi1 with as little memory for the gradient as there can be: for many values at once, as training needs them.

    >>> z = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.grad(frugal_phi1(z).sum(), z)[0]
    tensor([0.5000, 2.0973], dtype=torch.float64)
    """
    values: Tensor = _FrugalPhi1.apply(z)  # type: ignore[no-untyped-call]
    return values


def _by_series(z: Tensor, weights: list[float], far: Callable[[Tensor], Tensor]) -> Tensor:
    """A power series near zero, by Horner's rule in place, and another formula elsewhere."""
    near = z.abs() < _SERIES_RADIUS
    inside = torch.where(near, z, torch.zeros_like(z))
    total = torch.full_like(z, weights[-1])
    for weight in reversed(weights[:-1]):
        total.mul_(inside).add_(weight)
    return torch.where(near, total, far(torch.where(near, torch.ones_like(z), z)))


def _far_value(z: Tensor) -> Tensor:
    return torch.expm1(z) / z


def _far_slope(z: Tensor) -> Tensor:
    """phi1'(z) = (exp(z) - phi1(z))/z."""
    return (torch.exp(z) - torch.expm1(z) / z) / z
