"""Filters of an operator X: functions of one variable such as exp(t p(x)), and rigorous bounds of them in the plane."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rdgraph.integrators.expansions import coefficients, nodes, powers, weighted
from rdgraph.integrators.special_functions import phi1

#: Points at which the size of a filter is looked up.
_SAMPLES = 64


@dataclass(frozen=True)
class Filters:
    """R functions g(x) = exp(t p(x)) + t s(x) phi1(t p(x)), the gain of h' = p(x) h + s(x) h(0) after time t.

    The variable is scaled, x = centre + radius*y with y in [-1, 1] or the unit disc. Shapes: `generator` (m + 1, R) and
    `source` (q + 1, R) coefficients of p and s in powers of x; `elapsed`, `centre`, `radius` (R,). A source without
    rows is none; with `flow=False` the exponential is left out.

    >>> row = torch.ones(1, dtype=torch.float64)
    >>> decay = Filters(torch.stack([0 * row, -row]), torch.empty(0, 1), 2 * row, 0 * row, row)
    >>> decay(torch.tensor([0.0, 1.0], dtype=torch.float64))
    tensor([[1.0000, 0.1353]], dtype=torch.float64)
    """

    generator: Tensor
    source: Tensor
    elapsed: Tensor
    centre: Tensor
    radius: Tensor
    flow: bool = True

    def __call__(self, y: Tensor) -> Tensor:
        """Values (R, J) at the points y (J,)."""
        x = self.centre[:, None] + self.radius[:, None] * y
        t = self.elapsed[:, None]
        exponent = t * _horner(self.generator, x)
        value = torch.exp(exponent) if self.flow else torch.zeros_like(exponent)
        return value + t * _horner(self.source, x) * phi1(exponent) if len(self.source) else value

    @property
    def reserve(self) -> int:
        """How much longer a series has to be for its derivatives: those of exp(t p) are exp(t p) times t x^k, or p.

        Those in the source are t x^k phi1(t p). Zero where no derivative with respect to coefficients or time is
        recorded.
        """
        return max(len(self.generator), len(self.source)) - 1 if self.is_recorded else 0

    @property
    def is_recorded(self) -> bool:
        """Whether a derivative with respect to coefficients or time is recorded."""
        wanted = any(x.requires_grad for x in (self.generator, self.source, self.elapsed))
        return wanted and torch.is_grad_enabled()

    def parts(self) -> tuple[Filters, ...]:
        """What has to be expanded for the derivatives: the exponential and the source apart, since they may cancel."""
        if not (self.is_recorded and self.flow and len(self.source)):
            return (self,)
        return self.exponentials(), replace(self, flow=False)

    def rows(self, index: Tensor) -> Filters:
        """Some of the functions."""
        return replace(
            self,
            generator=self.generator[:, index],
            source=self.source[:, index],
            elapsed=self.elapsed[index],
            centre=self.centre[index],
            radius=self.radius[index],
        )

    def exponentials(self) -> Filters:
        """The functions exp(t p(x)) alone."""
        return replace(self, source=self.source[:0], flow=True)

    def sizes(self, series: Tensor) -> Tensor:
        """What terms (..., R) amount to."""
        return series.abs()

    def gain(self) -> Tensor:
        """Largest |g| at sampled points of the interval -1 <= y <= 1, (R,): never above the true maximum."""
        return self(nodes("chebyshev", _SAMPLES, self.elapsed)).abs().amax(-1)

    def scale(self) -> Tensor:
        """What errors are measured against, (R,), at most the gain: what a generic state keeps.

        A flow that grows is held to its gain, one that does not to the root mean square of |g| over the interval.
        """
        values = self(nodes("chebyshev", _SAMPLES, self.elapsed)).abs()
        gain = values.amax(-1)
        mean = values[:, 1:].square().mean(-1).sqrt()
        return torch.minimum(gain, mean * gain.clamp(min=1))

    def peak(self) -> Tensor:
        """Largest |g| at sampled points of the circle |y| = 1, (R,)."""
        return self(nodes("taylor", _SAMPLES, self.elapsed)).abs().amax(-1)

    def slope(self, kind: str) -> Tensor:
        """A bound of |p(X)| in the norm in which |(X - centre)/radius| <= 1, (R,)."""
        return self._scaled(self.generator, kind).abs().sum(0)

    def log_bound(self, kind: str, rho: Tensor) -> Tensor:
        """log of a bound of |g|, (R, P): on Bernstein ellipses of parameter rho (P,) or on discs of that radius.

        With t p = q_0 + q_1 b_1 + ... in the basis b of the expansion and w_k >= |b_k| there, Re(t p) is at most
        Q = q_0 + |q_1| w_1 + ...; and |phi1(z)| <= max(1, exp(Re z)).
        """
        terms = self._scaled(self.generator, kind) * self.elapsed
        weights = powers(kind, len(terms), rho)
        exponent = terms[0][:, None] + weighted(terms[1:].abs(), weights[1:])
        if not len(self.source):
            return exponent
        sources = self._scaled(self.source, kind).abs()
        size = weighted(sources, powers(kind, len(sources), rho))
        forced = (self.elapsed.abs()[:, None] * size).log() + exponent.clamp(min=0)
        return torch.logaddexp(exponent, forced) if self.flow else forced

    def _scaled(self, polynomial: Tensor, kind: str) -> Tensor:
        """Coefficients (m + 1, R) of a polynomial in the basis of the expansion in y, exact up to rounding."""
        count = 1 << len(polynomial).bit_length()
        x = self.centre[:, None] + self.radius[:, None] * nodes(kind, count, self.elapsed)
        return coefficients(_horner(polynomial, x), kind)[: len(polynomial)]


def _horner(polynomial: Tensor, x: Tensor) -> Tensor:
    """sum_k polynomial[k] x^k; polynomial (m + 1, R), x (R, J)."""
    value = torch.zeros_like(x)
    for row in polynomial.flip(0):
        value = value * x + row[:, None]
    return value
