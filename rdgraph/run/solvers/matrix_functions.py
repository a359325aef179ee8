"""Functions of many small matrices at once, entry by entry: exp, phi1, powers, polynomials and norms.

Matrices have their two axes in front, (F, F, ...), and the other axes are a batch; numbers are matrices of size 1.
Products are written out as sums of F terms, so that the bits of a matrix do not depend on the others, which library
products do not guarantee. Nothing synchronises with the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

# ---------------------------------------------------------------------- phi1 of numbers
#: Below this size phi1 is summed as a power series, whose remainder is then smaller than float64 resolves.
_PHI1_RADIUS = 0.5
_PHI1_TERMS = 16


def phi1(z: Tensor) -> Tensor:
    """phi1(z) = (exp(z) - 1)/z, with phi1(0) = 1; elementwise, real or complex.

    t*phi1(a*t) is the integral of exp(a*s) over s from 0 to t: the answer of h' = a*h + 1 from h(0) = 0. Value and
    derivatives keep full accuracy at and around zero.

    >>> phi1(torch.tensor([0.0, 1e-12, 1.0], dtype=torch.float64))
    tensor([1.0000, 1.0000, 1.7183], dtype=torch.float64)
    """
    near = z.abs() < _PHI1_RADIUS
    inside = torch.where(near, z, torch.zeros_like(z))
    series = torch.ones_like(z)
    for k in range(_PHI1_TERMS, 1, -1):
        series = 1 + series * inside / k
    outside = torch.where(near, torch.ones_like(z), z)
    return torch.where(near, series, torch.expm1(outside) / outside)


class _FrugalPhi1(torch.autograd.Function):
    """phi1 that saves only z for its gradient."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return _by_series(z, [1 / math.factorial(k + 1) for k in range(_PHI1_TERMS)], lambda z: torch.expm1(z) / z)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives come from the plain function
            (gradient,) = torch.autograd.grad(phi1(z), z, g, create_graph=True)
            return gradient
        weights = [(k + 1) / math.factorial(k + 2) for k in range(_PHI1_TERMS)]
        slope = _by_series(z, weights, lambda z: (torch.exp(z) - torch.expm1(z) / z) / z)  # (exp(z) - phi1(z))/z
        return g * slope.conj()


def frugal_phi1(z: Tensor) -> Tensor:
    """phi1 that saves only its argument for the gradient, for many values at once in training.

    >>> z = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.grad(frugal_phi1(z).sum(), z)[0]
    tensor([0.5000, 2.0973], dtype=torch.float64)
    """
    values: Tensor = _FrugalPhi1.apply(z)  # type: ignore[no-untyped-call]
    return values


def _by_series(z: Tensor, weights: list[float], far: Callable[[Tensor], Tensor]) -> Tensor:
    """A power series near zero, by Horner's rule in place, and by `far` elsewhere."""
    near = z.abs() < _PHI1_RADIUS
    inside = torch.where(near, z, torch.zeros_like(z))
    total = torch.full_like(z, weights[-1])
    for weight in reversed(weights[:-1]):
        total.mul_(inside).add_(weight)
    return torch.where(near, total, far(torch.where(near, torch.ones_like(z), z)))


# ---------------------------------------------------------------------- matrices
#: The series is summed at this 1-norm, where its terms beyond the last one are below what float64 resolves.
_SERIES_NORM = 0.5
_SERIES_TERMS = 14
#: Most squarings: the 1-norm is then half a million, at which a phase has lost ten of its sixteen digits.
MOST_SQUARINGS = 20
#: Sweeps that balance rows against columns before a logarithmic norm is taken.
_SWEEPS = 8


class Exponentials(NamedTuple):
    """exp(M) and phi1(M) = sum_k M^k/(k + 1)!, both (F, F, ...)."""

    exp: Tensor
    phi1: Tensor


def exact_gain(p: Tensor, s: Tensor | None, time: Tensor, squarings: int | None = None) -> tuple[Tensor, Tensor | None]:
    """exp(t p) and t phi1(t p) s: the factors of h(0) in h(t) for h' = p h + s h(0), of the flow and of the source.

    Matrices (F, F, ...); `squarings` as in `exponentials`. Numbers (F = 1) take torch's own exponential.
    """
    z = time * p
    if len(p) == 1:
        return torch.exp(z), None if s is None else time * s * frugal_phi1(z)
    exp, phi1 = exponentials(z, squarings)
    return exp, None if s is None else time * product(phi1, s)


def exponentials(matrices: Tensor, squarings: int | None = None) -> Exponentials:
    """exp and phi1 by scaling and squaring: exp(2M) = exp(M)^2 and phi1(2M) = phi1(M) (exp(M) + I)/2.

    t phi1(tP) is the integral of exp(sP) over s from 0 to t, also where P is singular. Differentiable, real or complex.

    Args:
        matrices: (F, F, ...).
        squarings: the largest number of squarings; None takes it from the largest norm, which synchronises the device.
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
    """Products of matrices (F, G, ...) and (G, K, ...)."""
    total = left[:, 0, None] * right[None, 0]
    for k in range(1, left.shape[1]):
        total = torch.addcmul(total, left[:, k, None], right[None, k])
    return total


def plus_identity(matrices: Tensor, factor: float | Tensor = 1.0) -> Tensor:
    """M + factor*I."""
    return matrices + (factor if len(matrices) == 1 else factor * identity_like(matrices))


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


def power_sums(factor: Tensor, bits: Iterable[bool | Tensor]) -> tuple[Tensor, Tensor]:
    """factor^count and I + factor + ... + factor^(count - 1), by doubling.

    `bits` is the count in binary, highest bit first: numbers, or masks where every matrix has its own count.

    >>> power, sums = power_sums(2 * torch.eye(2), [True, True])
    >>> power.diag(), sums.diag()
    (tensor([8., 8.]), tensor([7., 7.]))
    """
    power, sums = plus_identity(torch.zeros_like(factor)), torch.zeros_like(factor)
    for bit in bits:
        power, sums = product(power, power), sums + product(sums, power)
        if isinstance(bit, Tensor):
            power = torch.where(bit, product(power, factor), power)
            sums = torch.where(bit, plus_identity(product(sums, factor)), sums)
        elif bit:
            power, sums = product(power, factor), plus_identity(product(sums, factor))
    return power, sums


def norms(matrices: Tensor, order: float) -> Tensor:
    """Bounds of the operator norms of (..., F, F, R), over the two axes before the last: (..., R).

    Sums of |entries| over rows (order inf) or columns (1), which are the norms, or the Frobenius norm (2), which is at
    most sqrt(F) times the norm.
    """
    size = matrices.abs()
    if size.shape[-2] == 1:
        return size[..., 0, 0, :]
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


def logarithmic_norm(matrices: Tensor, order: float) -> Tensor:
    """mu(M) of real matrices (F, F, R): the largest eigenvalue of (M + M')/2 for order 2, else by rows or columns.

    >>> shear = torch.tensor([[-1.0, 1.0], [0.0, -1.0]], dtype=torch.float64)[..., None]
    >>> [float(logarithmic_norm(shear, order)) for order in (1, 2, torch.inf)]
    [0.0, -0.5, 0.0]
    """
    if len(matrices) == 1:
        return matrices[0, 0]
    if order == 2:
        symmetric = (matrices + matrices.transpose(0, 1)).movedim(-1, 0) / 2
        finite = symmetric.isfinite().all((-1, -2))
        largest = torch.linalg.eigvalsh(torch.where(finite[:, None, None], symmetric, 0.0))[:, -1]
        return torch.where(finite, largest, torch.inf)
    diagonal = matrices.diagonal(dim1=0, dim2=1).T
    around = matrices.abs().sum(1 if order == torch.inf else 0) - diagonal.abs()
    return (diagonal + around).amax(0)


def balancing_units(sizes: Tensor) -> Tensor:
    """Units D (F, R) in which rows and columns of the off-diagonal sizes (F, F, R) are about equal: D M D^-1.

    Osborne's iteration, one field after the other; powers of two, so that the change of units does not round.
    """
    off = sizes * (1 - torch.eye(len(sizes), dtype=sizes.dtype, device=sizes.device))[..., None]
    units = torch.ones_like(off[0])
    for _ in range(_SWEEPS):
        for i in range(len(units)):
            row, column = (off[i] / units).sum(0) * units[i], (off[:, i] * units).sum(0) / units[i]
            usable = (row > 0) & (column > 0) & row.isfinite() & column.isfinite()
            ratio = torch.where(usable, (column / row).sqrt(), 1.0)
            moved = units.clone()
            moved[i] = units[i] * 2.0 ** torch.log2(ratio).round()
            units = moved
    return units.clamp(1e-30, 1e30)
