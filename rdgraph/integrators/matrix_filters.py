"""Filters of several fields: matrix functions such as exp(t P(x)) of an operator X, and rigorous bounds of them.

On an eigenvector of X with eigenvalue x a linear system of F fields is h' = P(x) h + S(x) h(0), P and S of size F x F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rdgraph.integrators.expansions import coefficients, nodes, powers, weighted
from rdgraph.integrators.matrix_functions import exponentials, norms, polynomial, product

#: Points at which the size of a filter is looked up.
_SAMPLES = 64
#: Sweeps that balance rows against columns before a logarithmic norm is taken.
_SWEEPS = 8


@dataclass(frozen=True)
class MatrixFilters:
    """R matrix functions g(x) = exp(t P(x)) + t phi1(t P(x)) S(x), x = centre + radius*y with |y| <= 1.

    Shapes: `generator` (m + 1, F, F, R) and `source` (q + 1, F, F, R) coefficients of P and S in powers of x;
    `elapsed`, `centre`, `radius` (R,). `norm` is the order, 2, inf or 1, of the vector norm of the packed state in
    which errors are measured. A source without rows is none; with `flow=False` the exponential is left out.

    >>> row = torch.ones(1, dtype=torch.float64)
    >>> wave = torch.tensor([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [-1.0, 0.0]]], dtype=torch.float64)[..., None]
    >>> filters = MatrixFilters(wave, wave[:0], torch.pi * row, 0 * row, row, 2.0)
    >>> filters(torch.tensor([1.0], dtype=torch.float64))[:, :, 0, 0].diag()
    tensor([-1., -1.], dtype=torch.float64)
    """

    generator: Tensor
    source: Tensor
    elapsed: Tensor
    centre: Tensor
    radius: Tensor
    norm: float
    flow: bool = True

    def __call__(self, y: Tensor) -> Tensor:
        """Values (F, F, R, J) at the points y (J,)."""
        x = self.centre[:, None] + self.radius[:, None] * y
        t = self.elapsed[:, None]
        exp, phi1 = exponentials(t * polynomial(self.generator, x))
        if not len(self.source):
            return exp
        forced = t * product(phi1, polynomial(self.source, x))
        return exp + forced if self.flow else forced

    @property
    def reserve(self) -> int:
        """How much longer a series has to be for its derivatives in coefficients and time; see `Filters.reserve`."""
        return max(len(self.generator), len(self.source)) - 1 if self.is_recorded else 0

    @property
    def is_recorded(self) -> bool:
        """Whether a derivative with respect to coefficients or time is recorded."""
        wanted = any(x.requires_grad for x in (self.generator, self.source, self.elapsed))
        return wanted and torch.is_grad_enabled()

    def parts(self) -> tuple[MatrixFilters, ...]:
        """What has to be expanded for the derivatives: the exponential and the source apart, since they may cancel."""
        if not (self.is_recorded and self.flow and len(self.source)):
            return (self,)
        return self.exponentials(), replace(self, flow=False)

    def rows(self, index: Tensor) -> MatrixFilters:
        """Some of the functions."""
        return replace(
            self,
            generator=self.generator[..., index],
            source=self.source[..., index],
            elapsed=self.elapsed[index],
            centre=self.centre[index],
            radius=self.radius[index],
        )

    def exponentials(self) -> MatrixFilters:
        """The functions exp(t P(x)) alone."""
        return replace(self, source=self.source[:0], flow=True) if len(self.source) else self

    def sizes(self, series: Tensor) -> Tensor:
        """What terms (..., F, F, R) amount to at most, (..., R), in the norm of the state."""
        return norms(series, self.norm)

    def gain(self) -> Tensor:
        """Largest |g| at sampled points of the interval -1 <= y <= 1, (R,): never above the true maximum."""
        return self._on_interval.amax(-1)

    def scale(self) -> Tensor:
        """What errors are measured against, (R,), at most the gain: what a generic state keeps (see `Filters`)."""
        values = self._on_interval
        gain = values.amax(-1)
        mean = values[:, 1:].square().mean(-1).sqrt()
        return torch.minimum(gain, mean * gain.clamp(min=1))

    def peak(self) -> Tensor:
        """Largest |g| at sampled points of the circle |y| = 1, (R,)."""
        return self._sampled("taylor").amax(-1)

    def slope(self, kind: str) -> Tensor:
        """A bound of |P(X)| in the norm in which |(X - centre)/radius| <= 1, (R,)."""
        return norms(self._scaled(self.generator, kind), self.norm).sum(0)

    def log_bound(self, kind: str, rho: Tensor) -> Tensor:
        """log of a bound of |g|, (R, P): on Bernstein ellipses of parameter rho (P,) or on discs of that radius.

        The logarithmic norm mu(M) = lim (|I + h M| - 1)/h as h falls to 0 is subadditive, at most |M|, and
        |exp(t M)| <= exp(t mu(M)) for t >= 0 (Dahlquist; Lozinskii). With t P = Q_0 + Q_1 b_1 + ... in the basis b of
        the expansion and w_k >= |b_k| on the ellipse or disc, mu(t P) <= mu(Q_0) + |Q_1| w_1 + ... =: Q. A diagonal
        change of the fields' units, D, changes mu and the norms and costs the factor cond(D): of D = I and one that
        balances rows with columns the smaller bound is taken. For the source, |t phi1(t P)| <= t max(1, exp(Q)).
        """
        terms = self._scaled(self.generator, kind) * self.elapsed
        weights = powers(kind, len(terms), rho)
        plain = self._exponent(terms, weights)
        units = _balance(terms.abs().sum(0))
        # A factor cond(D) stands before the exponential, and in `forced` before max(1, exp): both are bounded so.
        price = (units.amax(0) / units.amin(0)).log()[:, None]
        balanced = self._exponent(terms * units[:, None] / units[None, :], weights) + price
        exponent = torch.minimum(plain, balanced)
        if not len(self.source):
            return exponent
        sources = norms(self._scaled(self.source, kind), self.norm)
        size = weighted(sources, powers(kind, len(sources), rho))
        forced = (self.elapsed.abs()[:, None] * size).log() + torch.minimum(
            plain.clamp(min=0), (balanced - price).clamp(min=0) + price
        )
        return torch.logaddexp(exponent, forced) if self.flow else forced

    def _exponent(self, terms: Tensor, weights: Tensor) -> Tensor:
        """mu(Q_0) + |Q_1| w_1 + ..., (R, P)."""
        return logarithmic_norm(terms[0], self.norm)[:, None] + weighted(norms(terms[1:], self.norm), weights[1:])

    @cached_property
    def _on_interval(self) -> Tensor:
        with torch.no_grad():
            return self._sampled("chebyshev")

    def _sampled(self, kind: str) -> Tensor:
        """Lower bounds of |g|, within a factor sqrt(F), at sampled points, (R, J): the norm of a column or of a row."""
        size = self(nodes(kind, _SAMPLES, self.elapsed)).abs()
        if self.norm == 2:
            return size.square().sum(0).amax(0).sqrt()
        return size.sum(1).amax(0) if self.norm == torch.inf else size.sum(0).amax(0)

    def _scaled(self, polynomials: Tensor, kind: str) -> Tensor:
        """Coefficients (m + 1, F, F, R) of a polynomial in the basis of the expansion in y, exact up to rounding."""
        count = 1 << len(polynomials).bit_length()
        x = self.centre[:, None] + self.radius[:, None] * nodes(kind, count, self.elapsed)
        return coefficients(polynomial(polynomials, x), kind)[: len(polynomials)]


def logarithmic_norm(matrices: Tensor, order: float) -> Tensor:
    """mu(M) of real matrices (F, F, R): the largest eigenvalue of (M + M')/2 for order 2, else by rows or columns.

    >>> shear = torch.tensor([[-1.0, 1.0], [0.0, -1.0]], dtype=torch.float64)[..., None]
    >>> [float(logarithmic_norm(shear, order)) for order in (1, 2, torch.inf)]
    [0.0, -0.5, 0.0]
    """
    if order == 2:
        symmetric = (matrices + matrices.transpose(0, 1)).movedim(-1, 0) / 2
        finite = symmetric.isfinite().all((-1, -2))
        largest = torch.linalg.eigvalsh(torch.where(finite[:, None, None], symmetric, 0.0))[:, -1]
        return torch.where(finite, largest, torch.inf)
    own = matrices.diagonal(dim1=0, dim2=1).T
    around = matrices.abs().sum(1 if order == torch.inf else 0) - own.abs()
    return (own + around).amax(0)


def _balance(sizes: Tensor) -> Tensor:
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
