"""Expansions of analytic functions in Chebyshev polynomials or powers, cut where a rigorous tail bound allows it.

Chebyshev polynomials serve a real spectrum in [-1, 1], where |T_k| <= 1; powers serve everything of norm at most 1. In
both cases the error of a cut expansion, applied to a matrix, is at most the sum of the |a_k| left out. Of a power
series, the root of the sum of their squares is the root mean square of the error on the unit circle.
"""

from __future__ import annotations

import torch
from torch import Tensor

KINDS = ("chebyshev", "taylor")


def nodes(kind: str, count: int, like: Tensor) -> Tensor:
    """Points y at equal angles pi*j/count, j = 0..count: cos on [-1, 1], or the upper half of the unit circle."""
    angle = torch.linspace(0, torch.pi, count + 1, dtype=torch.float64, device=like.device)
    return torch.cos(angle) if kind == "chebyshev" else torch.polar(torch.ones_like(angle), angle)


def powers(kind: str, count: int, rho: Tensor) -> Tensor:
    """Bounds (count, P) of the basis functions on the ellipse or disc rho: (rho^k + rho^-k)/2, or rho^k."""
    k = torch.arange(count, dtype=rho.dtype, device=rho.device)[:, None]
    return (rho**k + rho**-k) / 2 if kind == "chebyshev" else rho**k


def weighted(sizes: Tensor, weights: Tensor) -> Tensor:
    """sum_k sizes[k] weights[k]: (K, R) and (K, P) to (R, P), term by term, so that rows do not touch each other."""
    total = torch.zeros((), dtype=weights.dtype, device=weights.device)
    for size, weight in zip(sizes, weights, strict=True):
        total = total + size[:, None] * weight
    return total


def coefficients(values: Tensor, kind: str) -> Tensor:
    """The first J coefficients (J, R) of real functions from values (R, J + 1) at `nodes(kind, J)`; J a power of two.

    >>> y = nodes("chebyshev", 4, torch.zeros(1))
    >>> coefficients((2 * y**2 - 1)[None], "chebyshev").ravel().round(decimals=12).abs()
    tensor([0., 0., 1., 0.], dtype=torch.float64)
    """
    count = values.shape[-1] - 1
    mirrored = values[..., 1:-1].flip(-1).conj()
    found = _fourier(torch.cat([values, mirrored], -1)).real[..., :count].movedim(-1, 0) / (2 * count)
    return torch.cat([found[:1], 2 * found[1:]]) if kind == "chebyshev" else found


def _fourier(x: Tensor) -> Tensor:
    """Discrete Fourier transform over the last axis, whose length is a power of two (radix 2, decimation in frequency).

    Elementwise steps only: the bits of a row do not depend on the other rows, which library transforms do not promise.
    """
    size = x.shape[-1]
    x = x.to(torch.complex128)[..., None]
    while size > 1:
        size //= 2
        angle = -torch.pi / size * torch.arange(size, dtype=torch.float64, device=x.device)
        twiddle = torch.polar(torch.ones_like(angle), angle)[:, None]
        low, high = x[..., :size, :], x[..., size:, :]
        x = torch.cat([low + high, (low - high) * twiddle], -1)
    return x[..., 0, :]
