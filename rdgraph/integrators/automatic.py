"""`auto`: the method that follows from the equation of a field, with a step for every member from its own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rdgraph.integrators.scaled_operator import row_sums
from rdgraph.integrators.stiffness import choose_for_fields
from rdgraph.integrators.timetable import read_times
from rdgraph.theory.field_methods import DEFAULT_STEP
from rdgraph.theory.method_choice import family, state_size, step_for, step_reason
from rdgraph.theory.rate_bounds import rate_bound

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField


class Automatic(NamedTuple):
    """The method, its steps () or (*batch), None where it has none, and why."""

    method: str
    step: Tensor | None
    reason: str


def automatic(field: VectorField, H0: Tensor, t: Any, *, stepped: bool = False) -> Automatic:
    """The method of a field that starts at H0 (*batch, n, d); `stepped` asks for Runge-Kutta steps.

    A member's step depends on its own coefficients, weights, start and times alone.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(3).operator("row", dtype=torch.float64)
    >>> field = rd.lower("-alpha*L@H + beta*tanh(H)", op, {"alpha": 1.0, "beta": [1.0, 8.0]}, batch=(2,))
    >>> method, step, _ = automatic(field, torch.zeros(2, 3, 1, dtype=torch.float64), [0.0, 1.0])
    >>> method, step
    ('rk4', tensor([0.2500, 0.1000], dtype=torch.float64))
    """
    if not field.system.is_single:
        times = read_times(t, "t", field.batch).detach().cpu().double()
        chosen = choose_for_fields(field, H0, times, stepped)
        return Automatic(chosen.method, None if chosen.step is None else _shared(chosen.step), chosen.reason)
    operator = field.operator
    has_degrees = operator.degree is not None
    method, why = family(field.system, has_degrees=has_degrees)
    if stepped and method != "rk4":
        method, why = "rk4", f"{why}, but Runge-Kutta steps were asked for"
    if method == "exact":
        return Automatic("exact", None, why)
    kind = operator.normalisation if operator.is_normalised else "none" if has_degrees else "free"
    bound = rate_bound(field.system, kind)
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
    reason = step_reason(bound, rate, float(steps.min()), float(np.nanmax(size, initial=0.0)))
    return Automatic(method, _shared(steps), f"{why}; {reason}")


def _shared(steps: np.ndarray) -> Tensor:
    """The step () that all members have, or theirs (*batch)."""
    return torch.as_tensor(steps.flat[0] if (steps == steps.flat[0]).all() else steps, dtype=torch.float64)
