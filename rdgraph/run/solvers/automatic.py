"""`auto`: the method chosen from the equation of a field, with a step for every member."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rdgraph.run.lowering.split_field import SplitField
from rdgraph.run.solvers.fixed_steps import read_times
from rdgraph.run.solvers.operator_filters import operator_base, row_sums
from rdgraph.run.solvers.splitting import Imex
from rdgraph.theory.method_choice import (
    ADAPTIVE,
    DEFAULT_STEP,
    RK4_PRODUCT,
    FieldChoice,
    FieldRates,
    adaptive_reason,
    choose_field_method,
    family,
    state_size,
    step_for,
    step_reason,
)
from rdgraph.theory.rate_bounds import rate_bound

if TYPE_CHECKING:
    from rdgraph.run.lowering.vector_field import VectorField


# ---------------------------------------------------------------------- stiffness
# The rates of the two parts of a field at the start of a run, and the method chosen from them.

#: How much halving the step of `imex` may change the end of the run, and how often it is halved.
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
    """The largest growth rate of the rest at H, by a few steps of power iteration on differences."""
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
    """A number of steps of `imex` after which half as many end nearly the same; 0 if there is none."""
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


# ---------------------------------------------------------------------- automatic
class Automatic(NamedTuple):
    """The method, its steps () or (*batch), None where it has none, why, and which saved states (K, *batch, n, d)
    contain one for which a step that follows from the start is too long, (*batch)."""

    method: str
    step: Tensor | None
    reason: str
    outgrown: Callable[[Tensor], Tensor] | None = None


def automatic(field: VectorField, H0: Tensor, t: Any, *, stepped: bool = False) -> Automatic:
    """The method of a field that starts at H0 (*batch, n, d); `stepped` requires Runge-Kutta steps.

    The step of a member depends only on its coefficients, weights, start and times.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(3).operator("row", dtype=torch.float64)
    >>> field = rd.lower("-alpha*L@H + beta*tanh(H)", op, {"alpha": 1.0, "beta": [1.0, 8.0]}, batch=(2,))
    >>> found = automatic(field, torch.zeros(2, 3, 1, dtype=torch.float64), [0.0, 1.0])
    >>> found.method, found.step
    ('rk4', tensor([0.2500, 0.1000], dtype=torch.float64))
    """
    if not field.system.is_single:
        times = read_times(t, "t", field.batch).detach().cpu().double()
        chosen = choose_for_fields(field, H0, times, stepped)
        if chosen.step is None:
            return Automatic(chosen.method, None, chosen.reason)
        shared = _shared(chosen.step)
        grows = partial(_outgrown, field, H0, shared, times[-1]) if chosen.method == "rk4" else None
        return Automatic(chosen.method, shared, chosen.reason, grows)
    operator = field.operator
    has_degrees = operator.degree is not None
    method, why = family(field.system, has_degrees=has_degrees)
    if stepped and method != "rk4":
        method, why = "rk4", f"{why}, but Runge-Kutta steps were requested"
    if method == "exact":
        return Automatic("exact", None, why)
    kind = operator.normalisation if operator.is_normalised else "none" if has_degrees else "free"
    bound = rate_bound(field.system, kind)
    if method == "rk4" and not stepped and not bound.holds_everywhere:
        return Automatic(ADAPTIVE, None, adaptive_reason(why))
    values = {name: value.detach().cpu().double().numpy() for name, value in field.coefficients.items()}
    start = H0.detach().abs().amax((-2, -1), keepdim=True).cpu().double().numpy()
    size = state_size(bound, values, start)
    times = read_times(t, "t", field.batch).detach().cpu().double()
    end = (times[-1] - times[0]).numpy()
    rates = None
    if bound.is_finite:
        sums = row_sums(operator).amax(-2, keepdim=True).cpu().numpy()
        rates = np.asarray(bound.at(values, radius=size, row_sum=sums))
        rates = np.broadcast_to(rates, np.broadcast_shapes(rates.shape, (*field.batch, 1, 1))).max((-2, -1))
    steps = step_for(method, rates, end, undirected=operator.is_symmetric)
    steps = np.where(np.isfinite(steps) & (steps > 0), steps, DEFAULT_STEP)
    rate = None if rates is None else float(np.nanmax(rates, initial=0.0))
    reason = f"{why}; {step_reason(bound, rate, float(steps.min()), float(np.nanmax(size, initial=0.0)))}"
    most = 2 * torch.as_tensor(size).amax((-2, -1))
    is_beyond = (lambda states: states.detach().abs().amax((0, -2, -1)).cpu() > most) if bound.is_local else None
    return Automatic(method, _shared(steps), reason, is_beyond if stepped else None)


def _outgrown(field: VectorField, H0: Tensor, steps: Tensor, end: Tensor, states: Tensor) -> Tensor:
    """The members (*batch) whose rates at their last state are beyond the stability limit of their steps of rk4."""
    rates = measured_rates(field.bind(H0) if field.uses_initial else field, states[-1].detach(), end.to(H0.device))
    return torch.as_tensor(rates.linear + rates.rest) * steps > 2 * RK4_PRODUCT


def _shared(steps: np.ndarray) -> Tensor:
    """The step () of all members, or one for each (*batch)."""
    return torch.as_tensor(steps.flat[0] if (steps == steps.flat[0]).all() else steps, dtype=torch.float64)
