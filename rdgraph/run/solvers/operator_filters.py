"""Filters of an operator X: matrix functions such as exp(t P(x)), and rigorous bounds of them in the complex plane.

On an eigenvector of X with eigenvalue x a linear system of F fields is h' = P(x) h + S(x) h(0), P and S of size F x F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rdgraph.graphs.operator import Operator
from rdgraph.run.solvers.matrix_functions import balancing_units, exact_gain, logarithmic_norm, norms, polynomial

# ---------------------------------------------------------------------- expansions
# Expansions of analytic functions in Chebyshev polynomials or powers, truncated by rigorous tail bounds.
#
# Chebyshev polynomials serve a real spectrum in [-1, 1], where |T_k| <= 1; powers serve everything of norm at most 1.
# In both cases the error of a truncated expansion, applied to a matrix, is at most the sum of the omitted |a_k|. Of a
# power series, the root of the sum of their squares is the root mean square of the error on the unit circle.

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
    """sum_k sizes[k] weights[k]: (K, R) and (K, P) to (R, P), term by term, so that rows do not affect each other."""
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
    series = _fourier(torch.cat([values, mirrored], -1)).real[..., :count].movedim(-1, 0) / (2 * count)
    return torch.cat([series[:1], 2 * series[1:]]) if kind == "chebyshev" else series


def _fourier(x: Tensor) -> Tensor:
    """Discrete Fourier transform over the last axis, whose length is a power of two (radix 2, decimation in frequency).

    Elementwise steps only: the bits of a row do not depend on the other rows, which library transforms do not
    guarantee.
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


# ---------------------------------------------------------------------- scaled operator
# The operator X of a linear flow, scaled to norm 1: X = A, or X = L = D - A, and which expansion serves it.


@dataclass(frozen=True)
class Base:
    """The operator X = centre + radius*Y, with |Y| <= 1 in a norm; Y@x is scale*(A@x) + shift*x.

    `kind` is "chebyshev" where X is symmetric, so that Y has its spectrum in [-1, 1], else "taylor". `norm` is the
    order of the vector norm in which |Y^k x| <= |x|: 2, inf or 1. `centre` and `radius` are () or (*batch, 1, 1).
    """

    operator: Operator
    kind: str
    norm: float
    centre: Tensor
    radius: Tensor
    scale: Tensor | None = None
    shift: Tensor | None = None

    def vectors(self, x: Tensor, count: int) -> Iterator[Tensor]:
        """b_k(Y) x for k = 1 ... count - 1, one product each."""
        once, twice = self._make_step(x, 1.0), self._make_step(x, 2.0)
        minus = x.new_full((), -1.0)
        older, newest = x, x
        for k in range(1, count):
            recurrent = self.kind == "chebyshev" and k > 1
            older, newest = newest, twice(newest, [(minus, older)]) if recurrent else once(newest, [])
            yield newest

    def _make_step(self, x: Tensor, factor: float) -> Callable[[Tensor, list[tuple[Tensor, Tensor]]], Tensor]:
        """y, terms -> factor*(Y@y) + terms in one product, with constants like x."""
        scale = self.scale if self.scale is not None else x.new_ones(()) if factor != 1 else None
        scale = None if scale is None else (factor * scale).to(x.dtype)
        shift = None if self.shift is None else (factor * self.shift).to(x.dtype)

        def step(y: Tensor, terms: list[tuple[Tensor, Tensor]]) -> Tensor:
            return self.operator.product(y, scale, terms if shift is None else [(shift, y), *terms])

        return step


def operator_base(operator: Operator, letter: str) -> Base:
    """X under its letter: A, or L where that is D - A."""
    if operator.degree is None or letter == "A":
        return adjacency_base(operator)
    return laplacian_base(operator, operator.degree)


def adjacency_base(operator: Operator) -> Base:
    """X = A, of norm 1 where it is normalised, else scaled by the sums of its rows or columns."""
    zero = torch.zeros((), dtype=torch.float64, device=operator.device)
    if operator.is_normalised:
        name = operator.norm[0]
        return Base(operator, "chebyshev" if operator.is_symmetric else "taylor", float(name), zero, zero + 1)
    radius, kind, order = row_sums(operator).amax(-2, keepdim=True), "chebyshev", 2.0
    if not _is_symmetric(operator):
        # The smaller of two norms bounds the powers; entries of the error are then bounded through the 1-norm.
        radius, kind, order = (
            torch.minimum(radius, row_sums(operator.transpose()).amax(-2, keepdim=True)),
            "taylor",
            1.0,
        )
    radius = torch.where(radius > 0, radius, 1.0)
    return Base(operator, kind, order, zero, radius, 1 / radius)


def laplacian_base(operator: Operator, degree: Tensor) -> Base:
    """X = D - A; by Gershgorin every row of X - centre has absolute sum at most `radius`."""
    ends, sums = degree.detach().double(), row_sums(operator)
    top, bottom = (ends + sums).amax(-2, keepdim=True), (ends - sums).amin(-2, keepdim=True)
    centre, radius = (top + bottom) / 2, (top - bottom) / 2
    radius = torch.where(radius > 0, radius, 1.0)
    kind, order = ("chebyshev", 2.0) if _is_symmetric(operator) else ("taylor", float("inf"))
    return Base(operator, kind, order, centre, radius, -1 / radius, (degree - centre) / radius)


def row_sums(operator: Operator) -> Tensor:
    """Sums of |A| over the rows, (*batch, n, 1), float64."""
    weights = operator.weights.detach().abs().double()
    return operator.with_weights(weights) @ weights.new_ones((operator.num_nodes, 1))


def _is_symmetric(operator: Operator) -> bool:
    """Whether A equals its transpose entry by entry (False if the rows are not sorted, which only costs speed)."""
    other = operator.transpose()
    pairs = (
        (operator.pattern.indptr, other.pattern.indptr),
        (operator.pattern.indices, other.pattern.indices),
        (operator.weights.detach(), other.weights.detach()),
    )
    return all(torch.equal(x, y) for x, y in pairs)


# ---------------------------------------------------------------------- operator filters
#: Points at which the size of a filter is sampled.
_SAMPLES = 64


@dataclass(frozen=True)
class Filters:
    """R matrix functions g(x) = exp(t P(x)) + t phi1(t P(x)) S(x), x = centre + radius*y with |y| <= 1.

    Shapes: `generator` (m + 1, F, F, R) and `source` (q + 1, F, F, R) coefficients of P and S in powers of x;
    `elapsed`, `centre`, `radius` (R,). `norm` is the order, 2, inf or 1, of the vector norm of the packed state in
    which errors are measured. An empty source is none; `flow=False` omits the exponential.

    >>> row = torch.ones(1, dtype=torch.float64)
    >>> wave = torch.tensor([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [-1.0, 0.0]]], dtype=torch.float64)[..., None]
    >>> filters = Filters(wave, wave[:0], torch.pi * row, 0 * row, row, 2.0)
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
        source = polynomial(self.source, x) if len(self.source) else None
        exp, forced = exact_gain(polynomial(self.generator, x), source, t)
        if forced is None:
            return exp
        return exp + forced if self.flow else forced

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
        """The functions to expand for derivatives: the exponential and the source separately, since they may cancel."""
        if not (self.is_recorded and self.flow and len(self.source)):
            return (self,)
        return self.exponentials(), replace(self, flow=False)

    def rows(self, index: Tensor) -> Filters:
        """The filters with the given indices."""
        return replace(
            self,
            generator=self.generator[..., index],
            source=self.source[..., index],
            elapsed=self.elapsed[index],
            centre=self.centre[index],
            radius=self.radius[index],
        )

    def exponentials(self) -> Filters:
        """The functions exp(t P(x)) alone."""
        return replace(self, source=self.source[:0], flow=True) if len(self.source) else self

    def sizes(self, series: Tensor) -> Tensor:
        """Bounds of terms (..., F, F, R) in the norm of the state, (..., R)."""
        return norms(series, self.norm)

    def gain(self) -> Tensor:
        """Largest |g| at sampled points of the interval -1 <= y <= 1, (R,): never above the true maximum."""
        return self._on_interval.amax(-1)

    def scale(self) -> Tensor:
        """The reference of relative errors, (R,), at most the gain: the size of a generic state after the flow.

        It is the gain of a flow that grows, else the root mean square of |g| over the interval.
        """
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
        units = balancing_units(terms.abs().sum(0)) if len(terms[0]) > 1 else torch.ones_like(terms[0, 0])
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
        if len(size) == 1:
            return size[0, 0]
        if self.norm == 2:
            return size.square().sum(0).amax(0).sqrt()
        return size.sum(1).amax(0) if self.norm == torch.inf else size.sum(0).amax(0)

    def _scaled(self, polynomials: Tensor, kind: str) -> Tensor:
        """Coefficients (m + 1, F, F, R) of a polynomial in the basis of the expansion in y, exact up to rounding."""
        count = 1 << len(polynomials).bit_length()
        x = self.centre[:, None] + self.radius[:, None] * nodes(kind, count, self.elapsed)
        return coefficients(polynomial(polynomials, x), kind)[: len(polynomials)]
