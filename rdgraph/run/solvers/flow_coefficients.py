"""Coefficients of linear flows on the device: c_k of H(T) = sum_k c_k b_k(A) H0.

A method that steps h' = p(A) h + s(A) h0 ends in a polynomial of A applied to h0: a product of stability polynomials
for Runge-Kutta methods, a series for the exact flow. Its coefficients come from its values on the unit circle (b_k =
A^k) or on the interval [-1, 1] (b_k = T_k(A), where A is symmetric), by a discrete Fourier transform. For F fields p, s
and c_k are F x F matrices. Nothing synchronises with the host, so that training can be captured as one graph.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rdgraph.graphs.kernels.operations import has_triton
from rdgraph.run.solvers.linear_part import Linear
from rdgraph.run.solvers.matrix_functions import norms, polynomial
from rdgraph.run.solvers.schedules import AnySchedule

#: The most steps that the kernel supports.
_MOST_STEPS = 1 << 12


def full_degree(linear: Linear, schedule: AnySchedule) -> int:
    """The degree of the whole polynomial; for the exact flow, which has none, more than single precision ever needs."""
    return schedule.whole_degree(len(linear.generator) - 1, max(0, len(linear.source or ()) - 1))


class Response(NamedTuple):
    """A flow as a polynomial, in float64: `series` (degree + 1, *batch, 1, 1 or d) holds c_k of T_k(A) or A^k.

    Of several fields it is (degree + 1, F, F, *batch, 1, 1 or d), and sizes and gains are in the norm of the state.

    `sizes` (degree + 1, *batch, 1, 1 or d), without gradient, is the size of every term, |flow| + |source|. Where the
    source cancels the flow, as beta*L@H0 does -alpha*L@H at alpha = beta, c_k vanishes, but its derivatives do not: a
    term can be left out where its size is small. `gain` (*batch, 1, 1 or d) is the largest |h(T)/h(0)|.
    """

    series: Tensor
    sizes: Tensor
    gain: Tensor


def coefficients(linear: Linear, schedule: AnySchedule, time: Tensor, degree: int) -> Response:
    """The terms up to `degree` of the flow of a linear system on a normalised operator; time (*batch) or ().

    Differentiable in the coefficients of the equation and in the time. Where the forcing is no filter of H0 (the source
    is None), they are those of the increment: H(T) = H0 + sum_k c_k b_k(A) f(H0), for every forcing.
    """
    count, kind, fields = sample_count(degree), linear.base.kind, linear.fields
    increment = linear.source is None
    generator, source, (elapsed,), shape = linear.stacked(time.double()[..., None, None], increment=increment)
    is_short = schedule.steps < _MOST_STEPS and count <= 256
    is_scalar = fields == 1 and not len(source)
    if time.is_cuda and has_triton() and is_scalar and is_short and not time.requires_grad:
        apply = _Coefficients.apply
        numbers = generator.reshape(len(generator), -1)
        series, gain = apply(numbers, time.double().reshape(-1), schedule, kind, count, degree)  # type: ignore[no-untyped-call]
        terms = Response(series, series.detach().abs(), gain)
    else:
        terms = _by_autograd(generator, source, elapsed, schedule, kind, count, degree, linear.base.norm, increment)
    size = () if fields == 1 else (fields, fields)
    return Response(
        terms.series.reshape(degree + 1, *size, *shape),
        terms.sizes.reshape(degree + 1, *shape),
        terms.gain.reshape(shape),
    )


def sample_count(degree: int) -> int:
    """The number of sample points for the terms up to a degree.

    >>> sample_count(2), sample_count(31), sample_count(32)
    (8, 32, 64)
    """
    return 1 << max(3, degree.bit_length())


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
            matrices, elapsed = generator[:, None, None], times.repeat_interleave(generator.shape[1] // len(times))
            terms = _by_autograd(matrices, matrices[:0], elapsed, *ctx.settings)
            (grad,) = torch.autograd.grad(terms.series, generator, g[:, None, None], create_graph=True)
            return grad, None, None, None, None, None
        basis, transform = ctx.tables
        return stacks.pull_gains(g.T @ transform.T, slopes, basis), None, None, None, None, None


def _by_autograd(
    generator: Tensor, source: Tensor, time: Tensor, schedule: AnySchedule, kind: str, count: int, degree: int,
    norm: float = 2.0, increment: bool = False,
) -> Response:  # fmt: skip
    """The same in plain torch, for F x F matrices and with a source; with `increment` only what the source adds.

    P (m + 1, F, F, R), S (q + 1, F, F, R) and time (R,) give series (degree + 1, F, F, R), sizes and gain by rows.
    """
    angle = sample_angles(count, generator.device)
    y = torch.cos(angle) if kind == "chebyshev" else torch.polar(torch.ones_like(angle), angle)
    table = transform_table(kind, count, degree, generator.device)
    p, s = polynomial(generator, y), polynomial(source, y) if len(source) else None
    flow, push = schedule.gain(p, s, time[:, None])
    values = [push] if increment and push is not None else [flow] if push is None else [flow, push]
    series = [expanded(each, table) for each in values]
    sizes = [norms(each.detach(), norm) for each in series]
    total = sum(each.detach() for each in values[1:]) + values[0].detach()
    gain = norms(total.movedim(-1, 0), norm).amax(0)
    if len(series) == 1:
        return Response(series[0], sizes[0], gain)
    return Response(series[0] + series[1], sizes[0] + sizes[1], gain)


def expanded(values: Tensor, table: Tensor) -> Tensor:
    """Coefficients (degree + 1, ...) from the values (..., count) at the sample points."""
    parts = torch.cat([values.real, values.imag], -1) if values.is_complex() else values
    return (parts @ table[: parts.shape[-1]]).movedim(-1, 0)
