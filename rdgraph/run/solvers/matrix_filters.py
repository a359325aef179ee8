"""Filters of several fields: matrix functions such as exp(t P(x)) of an operator X, and rigorous bounds of them.

On an eigenvector of X with eigenvalue x a linear system of F fields is h' = P(x) h + S(x) h(0), P and S of size F x F.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import sympy as sp
import torch
from torch import Tensor

from rdgraph.run.solvers.operator_filters import Base, coefficients, deepened, nodes, operator_base, powers, weighted
from rdgraph.systems.coupling import OperatorWord, Pair
from rdgraph.systems.single_operator import coupled_in_one_operator

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- matrix functions
# exp(M) and phi1(M) of many small matrices at once, entry by entry: no matrix touches another, nothing asks the host.
#
# Matrices have their two axes in front, (F, F, ...), and everything behind is a batch. Products are written out in sums
# of F terms, so that the bits of a matrix do not depend on the others, which library products do not promise.

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


# ---------------------------------------------------------------------- matrix filters
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
        """The filters with the given indices."""
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


# ---------------------------------------------------------------------- coupled linear
# Linear systems of several fields as matrix polynomials of one operator: h' = P(X)h + forcing, P of size F x F.

#: A matrix of tensors, each () to (*batch, 1, d), row by row.
Entries = tuple[tuple[Tensor, ...], ...]


@dataclass(frozen=True)
class CoupledLinear:
    """P(X)h + forcing for F fields. `generator` and `source` hold F x F matrices of numbers in powers of X, float64.

    The forcing is S(X)h0 where `source` is a tuple (empty: none), and something else where it is None. States are
    packed, (*batch, n, F*d), the blocks of the fields side by side.

    >>> from rdgraph.graphs.generators import path
    >>> from rdgraph.run.solvers.operator_filters import operator_base
    >>> one, zero = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    >>> base = operator_base(path(2).operator("symmetric", dtype=torch.float64), "A")
    >>> wave = CoupledLinear(base, (((zero, one), (-one, zero)), ((zero, zero), (one, zero))))
    >>> wave.fields, wave.order
    (2, 1)
    """

    base: Base
    generator: tuple[Entries, ...]
    source: tuple[Entries, ...] | None = ()

    @property
    def fields(self) -> int:
        """F, the number of fields."""
        return len(self.generator[0])

    @property
    def order(self) -> int:
        """The highest power of X in P and S: a derivative in a coefficient needs as many terms more than the state."""
        return max(len(self.generator), len(self.source or ())) - 1

    def filters(self, elapsed: Tensor, increment: bool = False) -> tuple[MatrixFilters, torch.Size]:
        """The filters of the flow over times `elapsed` (S, *batch, 1, 1): a matrix function per row, the rows' shape.

        The answer is g(X)h0, or with `increment` h0 + g(X)f(h0), where g = t phi1(t P) serves every constant forcing.
        """
        source = (self._identity(elapsed),) if increment else self.source or ()
        depth = elapsed.ndim - 1
        entries = [x for matrix in (*self.generator, *source) for row in matrix for x in row]
        given = (elapsed, *(deepened(x, depth) for x in (self.base.centre, self.base.radius, *entries)))
        spread = torch.broadcast_tensors(*given)  # type: ignore[no-untyped-call]
        shape = spread[0].shape
        time, centre, radius, *rest = (x.reshape(-1) for x in spread)
        size, split = self.fields, len(self.generator)
        matrices = torch.stack(rest).reshape(-1, size, size, len(time))
        return (
            MatrixFilters(matrices[:split], matrices[split:], time, centre, radius, self.base.norm, not increment),
            shape,
        )

    def sums(self, series: Tensor, shape: torch.Size, x: Tensor) -> Tensor:
        """sum_k series[k] b_k(Y) x with K products over all fields: series (K + 1, F, F, R), rows of that shape.

        Every vector is mixed into the sums once it is there; these are kept in float32 at least.
        """
        wide = torch.promote_types(x.dtype, torch.float32)
        # Unbound at once: the gradient of weights[k] would be a tensor as large as the series, for every k.
        first, *rest = series.to(wide).reshape(*series.shape[:-1], *shape).unbind()
        totals: list[Tensor | None] = [None] * self.fields
        self._mix(totals, first, x.to(wide))
        for weights, vector in zip(rest, self.base.vectors(x, len(series)), strict=True):
            self._mix(totals, weights, vector.to(wide))
        return torch.cat([total for total in totals if total is not None], -1).to(x.dtype)

    def size(self, x: Tensor) -> Tensor:
        """The norm of every channel over nodes and fields, (*batch, 1, d), in which errors are measured."""
        stacked = torch.cat(self.blocks(x), -2)
        return torch.linalg.vector_norm(stacked, ord=self.base.norm, dim=-2, keepdim=True)

    def blocks(self, x: Tensor) -> tuple[Tensor, ...]:
        """The fields of a packed state, (*batch, n, d) each."""
        return x.chunk(self.fields, -1)

    def _mix(self, totals: list[Tensor | None], weights: Tensor, x: Tensor) -> None:
        """totals[i] += weights[i, j] * block j of x; in place where nothing is recorded."""
        recorded = torch.is_grad_enabled() and (weights.requires_grad or x.requires_grad)
        blocks = self.blocks(x)
        for i, total in enumerate(totals):
            for j, block in enumerate(blocks):
                if total is None:
                    total = weights[i, j] * block
                elif recorded or total.requires_grad:
                    total = torch.addcmul(total, weights[i, j], block)
                else:
                    total.addcmul_(weights[i, j], block)
            totals[i] = total

    def _identity(self, like: Tensor) -> Entries:
        one = torch.eye(self.fields, dtype=torch.float64, device=like.device)
        return tuple(tuple(row.unbind()) for row in one.unbind())


def coupled_part(field: VectorField) -> CoupledLinear:
    """A linear field of several states as P(X)h + forcing; refuses, with the reason, what is not of that form."""
    letter, coupling = coupled_in_one_operator(field.system, has_degrees=field.operator.degree is not None)
    other = any(x != 0 for part in (coupling.constant, coupling.coupled) for x in part.values())
    source = None if other else _values(field, coupling.fields, coupling.source) if coupling.source else ()
    generator = _values(field, coupling.fields, coupling.linear)
    return CoupledLinear(operator_base(field.operator, letter), generator, source)


def _values(
    field: VectorField, fields: tuple[str, ...], terms: Mapping[Pair, Mapping[OperatorWord, sp.Expr]]
) -> tuple[Entries, ...]:
    """The matrices of the coefficients by power of X; every word is a power."""
    powers = {pair: {len(word): c for word, c in words.items()} for pair, words in terms.items()}
    count = 1 + max((k for words in powers.values() for k in words), default=0)

    def value(i: str, j: str, k: int) -> Tensor:
        return field.value(powers.get((i, j), {}).get(k, sp.S.Zero)).to(torch.float64)

    return tuple(tuple(tuple(value(i, j, k) for j in fields) for i in fields) for k in range(count))
