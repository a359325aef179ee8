"""Flows of several linear fields as one polynomial of A with matrix coefficients: H(T) = sum_k C_k b_k(A) H0.

As for one field (`flow_coefficients`, `polynomial_flow`), but every C_k mixes the fields. Nothing asks the host, so
that training can be captured as one graph; everything is differentiable, twice where that is asked for.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rdgraph.graphs.operator import Operator
from rdgraph.run.solvers.flow_coefficients import (
    Response,
    Schedule,
    expanded,
    sample_angles,
    stability,
    transform_table,
)
from rdgraph.run.solvers.matrix_filters import (
    CoupledLinear,
    exponentials,
    identity_like,
    norms,
    plus_identity,
    polynomial,
    power_sums,
    product,
)

#: Squarings of the exponential, enough for the longest flow that is expanded; larger exponents are marked as infinite.
_SQUARINGS = 11


def coupled_coefficients(linear: CoupledLinear, schedule: Schedule, time: Tensor, degree: int) -> Response:
    """The terms up to `degree` of the flow of several fields; time (*batch) or ().

    Args:
        linear: the fields, on a normalised operator.
        schedule: how the time is cut.
        time: when the flow ends.
        degree: the last term.

    Returns:
        `series` (degree + 1, F, F, *batch, 1, 1 or d), `sizes` (degree + 1, *batch, 1, 1 or d) of the terms and the
        largest gain (*batch, 1, 1 or d), both in the norm of the state.
    """
    filters, shape = linear.filters(time.double()[None, ..., None, None])
    count = 1 << max(3, degree.bit_length())
    kind, device = linear.base.kind, time.device
    angle = sample_angles(count, device)
    y = torch.cos(angle) if kind == "chebyshev" else torch.polar(torch.ones_like(angle), angle)
    x = filters.centre[:, None] + filters.radius[:, None] * y
    table = transform_table(kind, count, degree, device)
    p = polynomial(filters.generator, x)
    s = polynomial(filters.source, x) if len(filters.source) else None
    flow, push = _gains(schedule, p, s, filters.elapsed[:, None])
    parts = [_terms(values, table) for values in (flow, push) if values is not None]
    series = torch.stack(parts).sum(0)
    sizes = torch.stack([norms(part.detach(), linear.base.norm) for part in parts]).sum(0)
    total = flow.detach() if push is None else (flow + push).detach()
    gain = norms(total.movedim(-1, 0), linear.base.norm).amax(0)
    fields = linear.fields
    return Response(
        series.reshape(degree + 1, fields, fields, *shape[1:]),
        sizes.reshape(degree + 1, *shape[1:]),
        gain.reshape(shape[1:]),
    )


def apply_coupled(operator: Operator, series: Tensor, x: Tensor, kind: str) -> Tensor:
    """sum_k series[k] b_k(A) x with as many products as the degree: series (K + 1, F, F, *batch, 1, 1 or d).

    Horner's rule, or Clenshaw's, over all fields at once: C x is the sum over j of a factor for every channel times
    the state whose blocks are moved on by j places, so that one pass takes a product and all of C_k x.

    >>> op = Operator.from_csr([0, 1, 2], [1, 0], torch.ones(2, dtype=torch.float64), normalisation="row")
    >>> swap = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)
    >>> apply_coupled(op, swap[..., None, None], torch.tensor([[1.0, 5.0], [0.0, 0.0]], dtype=torch.float64), "taylor")
    tensor([[ 5.,  1.],
            [ 2., 10.]], dtype=torch.float64)
    """
    fields = series.shape[1]
    width = x.shape[-1] // fields
    moved = [x.roll(-j * width, -1) if j else x for j in range(fields)]
    factors = _factors(series.to(torch.promote_types(x.dtype, torch.float32)), width)
    two, minus = x.new_full((), 2.0), x.new_full((), -1.0)
    terms = [list(zip(row, moved, strict=True)) for row in factors]
    newest = torch.stack([factor * state for factor, state in terms[-1]]).sum(0).to(x.dtype)
    older = None
    for k in range(len(series) - 2, -1, -1):
        doubled = kind == "chebyshev"
        others = [*terms[k], *([] if older is None else [(minus, older)])]
        scale = two if doubled and k > 0 else None
        newest, older = operator.product(newest, scale, others), newest if doubled else None
    return newest


def coupled_terms(series: Tensor, x: Tensor) -> Tensor:
    """C_k x for every k, (K + 1, *batch, n, F*d); series (K + 1, F, F, *batch, 1, 1 or d).

    >>> swap = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]])
    >>> coupled_terms(swap[..., None, None], torch.tensor([[1.0, 5.0]])).squeeze(1)
    tensor([[ 5.,  1.],
            [ 2., 10.]])
    """
    fields = series.shape[1]
    width = x.shape[-1] // fields
    moved = [x.roll(-j * width, -1) if j else x for j in range(fields)]
    factors = _factors(series, width)
    return torch.stack([torch.stack([f * y for f, y in zip(row, moved, strict=True)]).sum(0) for row in factors])


def _factors(series: Tensor, width: int) -> list[list[Tensor]]:
    """By degree and by j, the factors (*batch, 1, F*d) of the state moved on by j blocks: entries (i, i + j)."""
    fields = series.shape[1]
    spread = series.expand(*series.shape[:-1], width)
    found = []
    for j in range(fields):
        entries = torch.stack([spread[:, i, (i + j) % fields] for i in range(fields)], -2)
        found.append(entries.flatten(-2).unbind(0))
    return [list(row) for row in zip(*found, strict=True)]


def _terms(values: Tensor, table: Tensor) -> Tensor:
    """Coefficients (degree + 1, F, F, R) from the values (F, F, R, J) at the sample points."""
    shape = values.shape[:-1]
    return expanded(values.reshape(-1, values.shape[-1]), table).reshape(-1, *shape)


def _gains(schedule: Schedule, p: Tensor, s: Tensor | None, time: Tensor) -> tuple[Tensor, Tensor | None]:
    """h(T) of h' = P h + S h(0) at every sample point: what the flow makes of h(0), and what the source adds."""
    if schedule.is_exact:
        exp, phi1 = exponentials(time * p, _SQUARINGS)
        return exp, None if s is None else time * product(phi1, s)
    last = time - (schedule.steps - 1) * schedule.step
    value, push = _step(schedule.method, last, p)
    if schedule.steps > 1:
        factor, before = _step(schedule.method, torch.full_like(last, schedule.step), p)
        power, sums = power_sums(factor, schedule.steps - 1)
        # All of these are polynomials of P, which commute.
        value, push = product(value, power), push + product(value, product(before, sums))
    return value, None if s is None else product(push, s)


def _step(method: str, dt: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """One Runge-Kutta step h -> R(z) h + dt (R(z) - 1)/z s, with z = dt P: the factors of h and of a constant s."""
    weights = stability(method)
    z = dt * p
    push = torch.zeros_like(z) + weights[-1] * identity_like(z)
    for weight in reversed(weights[1:-1]):
        push = product(push, z) + weight * identity_like(z)
    return plus_identity(product(z, push)), dt * push
