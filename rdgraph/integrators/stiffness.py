"""How fast the two parts of a field are at the start of a run, and the method that follows from it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rdgraph.integrators.exponential_steps import Imex
from rdgraph.integrators.scaled_operator import operator_base
from rdgraph.lowering.split_field import SplitField
from rdgraph.theory.field_methods import FieldChoice, FieldRates, choose_field_method

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField

#: What halving the step of `imex` may change at the end of the run, and how often it is halved.
_CHANGE, _HALVINGS = 1e-3, 5
_ITERATIONS = 6


@torch.no_grad()
def measured_rates(field: VectorField, H: Tensor, t: Tensor) -> FieldRates:
    """The rates at a state H (*batch, n, d) and the time t () or (*batch)."""
    parts = SplitField(field)
    base = operator_base(field.operator, parts.letter)
    size = base.centre.abs() + base.radius
    powers = [c.abs() * size**k for k, c in enumerate(parts.generator(field.blocks.width(H)))]
    linear = torch.stack(torch.broadcast_tensors(*powers)).sum(0)  # type: ignore[no-untyped-call]
    linear = linear.expand(*H.shape[:-2], *linear.shape[-2:]).amax((-2, -1))
    return FieldRates(linear.cpu().numpy(), _slope(parts, H, t).double().cpu().numpy(), "rates at the start")


def _slope(parts: SplitField, H: Tensor, t: Tensor) -> Tensor:
    """The largest growth that a few steps of power iteration find, by differences of the rest at H."""
    start = parts.remainder(t, H)
    way = torch.ones_like(H)
    way[..., ::2, :] = -0.5
    way[..., ::2] *= 1.5
    step = torch.finfo(H.dtype).eps ** 0.5 * (1 + torch.linalg.vector_norm(H, dim=(-2, -1), keepdim=True))
    rate = H.new_zeros(H.shape[:-2])
    for _ in range(_ITERATIONS):
        way = way / torch.linalg.vector_norm(way, dim=(-2, -1), keepdim=True).clamp(min=torch.finfo(H.dtype).tiny)
        way = (parts.remainder(t, H + step * way) - start) / step
        rate = torch.maximum(rate, torch.linalg.vector_norm(way, dim=(-2, -1)))
    return rate


def choose_for_fields(field: VectorField, H: Tensor, times: Tensor, stepped: bool) -> FieldChoice:
    """The method for several fields, noise, time, or further operators, for states that start at H.

    The rates are measured at the start, and `imex` is taken if a run with half the step ends nearly the same.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(4).operator("row", dtype=torch.float64)
    >>> pair = rd.lower("u' = u*v - Du*L@u; v' = 1 - v - u*v - Dv*L@v", op, {"Du": 0.1, "Dv": 500.0})
    >>> choose_for_fields(pair, torch.ones(4, 2, dtype=torch.float64), torch.tensor([0.0, 8.0]), False).method
    'imex'
    """

    @cache
    def bound() -> VectorField:
        return field.bind(H) if field.uses_initial else field

    return choose_field_method(
        field.system,
        lambda: measured_rates(bound(), H, times[0].to(H.device)),
        (times[-1] - times[0]).numpy(),
        has_degrees=field.operator.degree is not None,
        stepped=stepped,
        enough_steps=lambda count: _enough_steps(bound(), H, times, count),
    )


@torch.no_grad()
def _enough_steps(field: VectorField, H: Tensor, times: Tensor, count: int) -> int:
    """A number of steps of `imex` after which half as many end nearly the same; 0 where none is found."""
    coarse = None
    for _ in range(_HALVINGS):
        fine = _end_of_run(field, H, times, count)
        if coarse is not None:
            change = ((fine - coarse).abs() / fine.abs().clamp(min=1)).amax()
            if bool(change <= _CHANGE):
                return count
        coarse, count = fine, 2 * count
    return 0


def _end_of_run(field: VectorField, H: Tensor, times: Tensor, count: int) -> Tensor:
    stepper = Imex(field.prepared(), H)
    start = times[0].to(H.device, H.dtype)
    dt = (times[-1] - times[0]).to(H.device, H.dtype) / count
    start, dt = (x[..., None, None] if x.ndim else x for x in (start, dt))
    for k in range(count):
        H = stepper.advance(H, dt, start + k * dt).state
        if not bool(torch.isfinite(H).all()):
            break
    return H
