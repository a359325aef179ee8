"""exp(M) and phi1(M) of many small matrices at once, entry by entry: no matrix touches another, nothing asks the host.

Matrices have their two axes in front, (F, F, ...), and everything behind is a batch. Products are written out in sums
of F terms, so that the bits of a matrix do not depend on the others, which library products do not promise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

#: The series is summed at this 1-norm, where its terms beyond the last one are below what float64 resolves.
_SERIES_NORM = 0.5
_SERIES_TERMS = 14
#: Most squarings: the 1-norm is then half a million, at which a phase has lost ten of its sixteen digits.
MOST_SQUARINGS = 20


class Exponentials(NamedTuple):
    """exp(M) and phi1(M) = sum_k M^k/(k + 1)!, both (F, F, ...)."""

    exp: Tensor
    phi1: Tensor


def exponentials(matrices: Tensor, squarings: int | None = None) -> Exponentials:
    """exp and phi1 by scaling and squaring: exp(2M) = exp(M)^2 and phi1(2M) = phi1(M) (exp(M) + I)/2.

    t phi1(tP) is the integral of exp(sP) over s from 0 to t, also where P is singular. Differentiable, real or complex.

    Args:
        matrices: (F, F, ...).
        squarings: how many there are at most; without it, what the largest norm asks for, which asks the device.
            Matrices that need more get infinite entries, as if they had overflowed.

    Returns:
        Both functions.

    >>> turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64) * torch.pi
    >>> exp, phi1 = exponentials(turn)
    >>> exp.diag(), bool((turn @ phi1 - exp + torch.eye(2)).abs().max() < 1e-14)
    (tensor([-1., -1.], dtype=torch.float64), True)
    """
    norm = matrices.detach().abs().sum(0).amax(0)
    known = norm.isfinite()
    asked = torch.log2(torch.where(known, norm, 1.0) / _SERIES_NORM).ceil().clamp(min=0)
    count = int(min(float(asked.max()), MOST_SQUARINGS)) if squarings is None and asked.numel() else squarings or 0
    used = asked.clamp(max=count)
    small = matrices * 2.0**-used
    phi1 = _series(small)
    exp = plus_identity(product(small, phi1))
    one = identity_like(matrices)
    for k in range(count):
        doubled = k < used
        phi1 = torch.where(doubled, product(phi1, exp + one) / 2, phi1)
        exp = torch.where(doubled, product(exp, exp), exp)
    beyond = ~(known & (asked <= count))
    return Exponentials(exp.masked_fill(beyond, math.inf), phi1.masked_fill(beyond, math.inf))


def product(left: Tensor, right: Tensor) -> Tensor:
    """The products of matrices (F, G, ...) and (G, K, ...)."""
    total = left[:, 0, None] * right[None, 0]
    for k in range(1, left.shape[1]):
        total = torch.addcmul(total, left[:, k, None], right[None, k])
    return total


def plus_identity(matrices: Tensor) -> Tensor:
    """M + I."""
    return matrices + identity_like(matrices)


def identity_like(matrices: Tensor) -> Tensor:
    """The identity, (F, F, 1, ..., 1), of the dtype and on the device of the matrices."""
    size = matrices.shape[0]
    one = torch.eye(size, dtype=matrices.dtype, device=matrices.device)
    return one.reshape(size, size, *(1,) * (matrices.ndim - 2))


def polynomial(coefficients: Tensor, x: Tensor) -> Tensor:
    """sum_k coefficients[k] x^k: matrices (m + 1, F, F, R) and numbers (R, J) to (F, F, R, J)."""
    value = torch.zeros_like(x)
    for matrix in coefficients.flip(0):
        value = value * x + matrix[..., None]
    return value


def power_sums(factor: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """factor^count and I + factor + ... + factor^(count - 1), by doubling.

    >>> power, sums = power_sums(2 * torch.eye(2), 3)
    >>> power.diag(), sums.diag()
    (tensor([8., 8.]), tensor([7., 7.]))
    """
    power, sums = torch.zeros_like(factor) + identity_like(factor), torch.zeros_like(factor)
    for bit in f"{count:b}":
        power, sums = product(power, power), sums + product(sums, power)
        if bit == "1":
            power, sums = product(power, factor), plus_identity(product(sums, factor))
    return power, sums


def norms(matrices: Tensor, order: float) -> Tensor:
    """Bounds of the operator norms of (..., F, F, R), over the two axes before the last: (..., R).

    Sums of |entries| over rows (order inf) or columns (1), which are the norms, or the Frobenius norm (2), which is at
    most sqrt(F) times the norm.
    """
    size = matrices.abs()
    if order == 2:
        return size.square().sum((-3, -2)).sqrt()
    return size.sum(-2).amax(-2) if order == math.inf else size.sum(-3).amax(-2)


def _series(small: Tensor) -> Tensor:
    """phi1 of matrices of norm 1/2 or less, by Horner's rule."""
    one = identity_like(small)
    total = torch.add(one, small, alpha=1 / _SERIES_TERMS)
    for k in range(_SERIES_TERMS - 1, 1, -1):
        total = torch.add(one, product(total, small), alpha=1 / k)
    return total
