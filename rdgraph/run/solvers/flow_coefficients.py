"""Filter responses of linear flows on the device: the coefficients c_k of H(T) = sum_k c_k b_k(A) H0.

A method that steps h' = p(A) h + s(A) h0 ends in a polynomial of A applied to h0: a product of stability polynomials
for Runge-Kutta methods, a series for the exact flow. Its coefficients come from its values on the unit circle (b_k =
A^k) or on the interval [-1, 1] (b_k = T_k(A), where A is symmetric), by a discrete Fourier transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import sympy as sp
import torch
from torch import Tensor

from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.operations import has_triton
from rdgraph.run.solvers.linear_part import Linear
from rdgraph.run.solvers.matrix_filters import CoupledLinear
from rdgraph.run.solvers.special_functions import frugal_phi1
from rdgraph.vocabulary.methods import WITH_GAINS, Tableau, find_method, methods, z

#: Most steps that the kernel's power counts.
_MOST_STEPS = 1 << 12
#: Most terms of an exact flow; a member whose coefficients ask for more overflows, and is marked.
_MOST_TERMS = 1 << 9


class AnySchedule(Protocol):
    """How times are integrated: by one `Schedule` for all members, or by one for each (`member_schedules`)."""

    @property
    def steps(self) -> int:
        """The most steps of a member."""

    @property
    def has_exact(self) -> bool:
        """Whether the flow of some member is the exponential."""

    def whole_degree(self, order: int, extra: int) -> int:
        """The degree of the whole polynomial where the generator has that order, and the source `extra`."""

    def of_members(self, first: int, last: int) -> AnySchedule:
        """The schedule of the members first..last-1."""

    def plan(self, device: torch.device) -> Tensor:
        """What the kernels read, (1 or M, stages + 3): stability polynomial, step, steps (0: the flow itself)."""

    def gain(self, p: Tensor, s: Tensor | None, time: Tensor) -> tuple[Tensor, Tensor | None]:
        """h(T)/h(0) of h' = p h + s h(0) at every sample point: what the flow keeps of h(0), what the source adds."""


@dataclass(frozen=True)
class Schedule:
    """How a time is integrated: `method` and, for Runge-Kutta methods, the number of steps of length `step`.

    The last step is whatever remains of the time, at most `step`; with one step it is the time itself.
    """

    method: str
    steps: int = 1
    step: float = 0.0

    @classmethod
    def make(cls, method: str, time: float, step: float | None) -> Schedule:
        """The schedule of torchdiffeq's rule: ceil(time/step) steps, the last one shortened.

        >>> Schedule.make("euler", 1.46, 1.0).steps, Schedule.make("rk4", 0.1, 0.2).steps
        (2, 1)
        """
        record = find_method(method)
        if record.is_exact:
            return cls(method)
        if not record.is_fixed and record.tableau is None:
            raise InvalidArgument(
                f"expected a method of Runge-Kutta steps or exact, got {method}; take one of {', '.join(WITH_GAINS)}"
            )
        if step is None or not step > 0:
            raise InvalidArgument(f"expected a step > 0 for {method}, got {step!r}; pass step=...")
        count = max(1, math.ceil(time / step + 1) - 1)
        # As on the grid of `solve`, a step that would start at the end, but for rounding, is none.
        return cls(method, count - 1 if count > 1 and (count - 1) * step >= time else count, float(step))

    @property
    def is_exact(self) -> bool:
        """Whether there are no steps, but the flow itself."""
        return find_method(self.method).is_exact

    def lengths(self, time: Tensor) -> list[Tensor]:
        """The step lengths for times (...,): all but the last are `step`."""
        last = time - (self.steps - 1) * self.step
        return [torch.full_like(time, self.step)] * (self.steps - 1) + [last]

    def going(self, number: int, device: torch.device) -> None:
        """Who takes the step of that number: everybody, which is None."""

    def begins(self, number: int, time: Tensor) -> Tensor:
        """When the step of that number begins, (...,)."""
        return torch.full_like(time, number * self.step)

    def whole_degree(self, order: int, extra: int) -> int:
        """The degree of the whole polynomial where the generator has that order, and the source `extra`."""
        if self.is_exact:
            return _MOST_TERMS
        return self.steps * len(stability(self.method)[1:]) * order + extra

    @property
    def has_exact(self) -> bool:
        """Whether the flow is the exponential."""
        return self.is_exact

    def of_members(self, first: int, last: int) -> Schedule:
        """The schedule of some members, which is that of all."""
        return self

    def plan(self, device: torch.device) -> Tensor:
        """What the kernels read, (1, stages + 3): stability polynomial, step, number of steps (0: the flow itself)."""
        if self.is_exact:
            return _on_device((1.0, 0.0, 0.0), device)
        return _on_device((*stability(self.method), self.step, float(self.steps)), device)

    def gain(self, p: Tensor, s: Tensor | None, time: Tensor) -> tuple[Tensor, Tensor | None]:
        """h(T)/h(0) of h' = p h + s h(0) at every sample point: what the flow keeps of h(0), what the source adds."""
        if self.is_exact:
            exponent = time * p
            return torch.exp(exponent), None if s is None else time * s * frugal_phi1(exponent)
        last = time - (self.steps - 1) * self.step
        value, extra = _step(self.method, last, p, s)
        if self.steps > 1:
            factor, push = _step(self.method, torch.full_like(last, self.step), p, s)
            before, sums = _powers(factor, self.steps - 1)
            if push is not None and extra is not None:
                extra = value * (push * sums) + extra
            value = value * before
        return value, extra


def stability(method: str) -> tuple[float, ...]:
    """The stability polynomial of a Runge-Kutta method, lowest power first.

    >>> stability("heun")
    (1.0, 1.0, 0.5)
    """
    return _numbers(methods[method])


@cache
def _numbers(tableau: Tableau) -> tuple[float, ...]:
    return tuple(float(c) for c in reversed(sp.Poly(tableau.stability, z).all_coeffs()))


def full_degree(linear: Linear | CoupledLinear, schedule: AnySchedule) -> int:
    """The degree of the whole polynomial; for the exact flow, which has none, more than single precision ever needs."""
    return schedule.whole_degree(len(linear.generator) - 1, max(0, len(linear.source or ()) - 1))


class Response(NamedTuple):
    """A flow as a polynomial, in float64: `series` (degree + 1, *batch, 1, 1 or d) holds c_k of T_k(A) or A^k.

    `sizes`, of the same shape and without gradient, is what every term amounts to, |flow| + |source|. Where the source
    undoes the flow, as beta*L@H0 does -alpha*L@H at alpha = beta, c_k vanishes, but its derivatives do not: a term can
    be left out where its size is small. `gain` (*batch, 1, 1 or d) is the largest |h(T)/h(0)|.
    """

    series: Tensor
    sizes: Tensor
    gain: Tensor


def coefficients(linear: Linear, schedule: AnySchedule, time: Tensor, degree: int) -> Response:
    """The terms up to `degree` of the flow of a linear system; time (*batch) or ().

    Differentiable in the coefficients of the equation and in the time. Of a forcing that is no filter of H0 (the source
    is None) they are those of the increment: H(T) = H0 + sum_k c_k b_k(A) f(H0), whatever the forcing is.
    """
    if linear.source is None:
        return _increments(linear, schedule, time, degree)
    count, kind = sample_count(degree), linear.base.kind
    parts = (*linear.generator, *(linear.source or ()))
    depth = max([time.ndim + 2, *(v.ndim for v in parts)])
    spread = torch.broadcast_tensors(time.double()[..., None, None], *(_deepened(v, depth) for v in parts))  # type: ignore[no-untyped-call]
    shape, terms = spread[0].shape, len(linear.generator)
    generator = torch.stack(spread[1 : terms + 1]).reshape(terms, -1)
    is_short = schedule.steps < _MOST_STEPS and count <= 256
    if time.is_cuda and has_triton() and not linear.source and is_short and not time.requires_grad:
        apply = _Coefficients.apply
        series, gain = apply(generator, time.double().reshape(-1), schedule, kind, count, degree)  # type: ignore[no-untyped-call]
        found = Response(series, series.detach().abs(), gain)
    else:
        source = torch.stack(spread[terms + 1 :]).reshape(len(parts) - terms, -1) if linear.source else None
        found = _by_autograd(generator, source, spread[0].reshape(-1), schedule, kind, count, degree)
    long = (degree + 1, *shape)
    return Response(found.series.reshape(long), found.sizes.reshape(long), found.gain.reshape(shape))


def sample_count(degree: int) -> int:
    """At how many points a flow is evaluated to know the terms up to a degree.

    >>> sample_count(2), sample_count(31), sample_count(32)
    (8, 32, 64)
    """
    return 1 << max(3, degree.bit_length())


def _increments(linear: Linear, schedule: AnySchedule, time: Tensor, degree: int) -> Response:
    """The terms of (R(A) - 1)/p(A), by which f(H0) is multiplied where R is what the flow keeps of H0."""
    count, terms = sample_count(degree), len(linear.generator)
    depth = max([time.ndim + 2, *(v.ndim for v in linear.generator)])
    spread = torch.broadcast_tensors(  # type: ignore[no-untyped-call]
        time.double()[..., None, None], *(_deepened(v, depth) for v in linear.generator)
    )
    shape, generator = spread[0].shape, torch.stack(spread[1:]).reshape(terms, -1)
    found = _by_autograd(
        generator, torch.ones_like(generator[:1]), spread[0].reshape(-1), schedule, linear.base.kind, count, degree,
        increment=True,
    )  # fmt: skip
    long = (degree + 1, *shape)
    return Response(found.series.reshape(long), found.sizes.reshape(long), found.gain.reshape(shape))


def _deepened(x: Tensor, depth: int) -> Tensor:
    return x.reshape((1,) * (depth - x.ndim) + tuple(x.shape))


@cache
def sample_angles(count: int, device: torch.device) -> Tensor:
    """Sample points on the upper half of the circle, halfway between equal parts."""
    return torch.pi * (torch.arange(count, dtype=torch.float64, device=device) + 0.5) / count


@cache
def _basis(kind: str, count: int, terms: int, device: torch.device) -> Tensor:
    """Real and imaginary parts of the powers of the sample points, (terms, 2, count)."""
    angle, k = sample_angles(count, device), torch.arange(terms, dtype=torch.float64, device=device)[:, None]
    if kind == "chebyshev":
        real = torch.cos(angle) ** k
        return torch.stack([real, torch.zeros_like(real)], 1)
    return torch.stack([torch.cos(k * angle), torch.sin(k * angle)], 1)


@cache
def transform_table(kind: str, count: int, degree: int, device: torch.device) -> Tensor:
    """From real and imaginary parts of the values to the coefficients, (2 count, degree + 1)."""
    phase = sample_angles(count, device)[:, None] * torch.arange(degree + 1, dtype=torch.float64, device=device)
    real, imaginary = torch.cos(phase) / count, torch.sin(phase) / count
    if kind == "chebyshev":
        real[:, 1:] *= 2
        imaginary.zero_()
    return torch.cat([real, imaginary])


@cache
def _on_device(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64, device=device)


class _Coefficients(torch.autograd.Function):
    """Coefficients (degree + 1, R) of flows without a source, and their gains (R,), by two kernels and two products."""

    @staticmethod
    def forward(
        ctx: Any, generator: Tensor, times: Tensor, schedule: AnySchedule, kind: str, count: int, degree: int
    ) -> tuple[Tensor, Tensor]:
        from rdgraph.graphs.kernels import triton_polynomial as stacks

        device = generator.device
        ctx.tables = _basis(kind, count, len(generator), device), transform_table(kind, count, degree, device)
        values, slopes = stacks.gains(generator, times, ctx.tables[0], schedule.plan(device), schedule.has_exact)
        ctx.save_for_backward(slopes, generator, times)
        ctx.settings = schedule, kind, count, degree
        gain = values.square().sum(1).amax(-1).sqrt()
        ctx.mark_non_differentiable(gain)
        return (values.flatten(1) @ ctx.tables[1]).T, gain

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Any) -> tuple[Any, ...]:
        from rdgraph.graphs.kernels import triton_polynomial as stacks

        slopes, generator, times = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives come from plain torch
            found = _by_autograd(generator, None, _per_row(times, generator.shape[1]), *ctx.settings)
            (grad,) = torch.autograd.grad(found.series, generator, g, create_graph=True)
            return grad, None, None, None, None, None
        basis, transform = ctx.tables
        return stacks.pull_gains(g.T @ transform.T, slopes, basis), None, None, None, None, None


def _per_row(times: Tensor, rows: int) -> Tensor:
    """Times (R,) from one for every so many consecutive rows."""
    return times.repeat_interleave(rows // len(times))


def _by_autograd(
    generator: Tensor, source: Tensor | None, time: Tensor, schedule: AnySchedule, kind: str, count: int,
    degree: int, *, increment: bool = False,
) -> Response:  # fmt: skip
    """The same in plain torch, with a source; with `increment` what the source adds, alone."""
    device = generator.device
    angle = sample_angles(count, device)
    y = torch.cos(angle) if kind == "chebyshev" else torch.polar(torch.ones_like(angle), angle)
    table = transform_table(kind, count, degree, device)
    p, s = _horner(generator, y), None if source is None else _horner(source, y)
    flow, push = schedule.gain(p, s, time[:, None])
    series = expanded(flow, table)
    if push is None:
        return Response(series, series.detach().abs(), flow.detach().abs().amax(-1))
    extra = expanded(push, table)
    if increment:
        return Response(extra, extra.detach().abs(), push.detach().abs().amax(-1))
    sizes = series.detach().abs() + extra.detach().abs()
    return Response(series + extra, sizes, (flow + push).detach().abs().amax(-1))


def expanded(values: Tensor, table: Tensor) -> Tensor:
    """Coefficients (degree + 1, R) from the values (R, count) at the sample points."""
    if not values.is_complex():
        return (values @ table[: values.shape[-1]]).T
    return (torch.cat([values.real, values.imag], -1) @ table).T


def _horner(polynomial: Tensor, y: Tensor) -> Tensor:
    """sum_k polynomial[k] y^k: (m + 1, R) and (J,) to (R, J)."""
    value = polynomial[-1][:, None] + torch.zeros_like(y)
    for term in polynomial[:-1].flip(0):
        value = value * y + term[:, None]
    return value


def _step(method: str, dt: Tensor, p: Tensor, s: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """One Runge-Kutta step h -> R(z) h + dt s (R(z) - 1)/z, with z = dt p."""
    weights = stability(method)
    x = dt * p
    push: Tensor = torch.full_like(x, weights[-1])
    for weight in reversed(weights[1:-1]):
        push = push * x + weight
    return 1 + x * push, None if s is None else dt * s * push


def _powers(factor: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """factor^count and 1 + factor + ... + factor^(count - 1), by doubling."""
    power, sums = torch.ones_like(factor), torch.zeros_like(factor)
    for bit in f"{count:b}":
        power, sums = power * power, sums + sums * power
        if bit == "1":
            power, sums = power * factor, sums * factor + 1
    return power, sums
