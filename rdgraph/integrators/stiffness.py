"""How fast the two parts of a field are at the start of a run, and the method that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rdgraph.integrators.exponential_steps import Imex
from rdgraph.integrators.scaled_operator import operator_base
from rdgraph.lowering.split_field import SplitField
from rdgraph.theory.method_choice import DEFAULT_STEP, MOST_STEPS, family

if TYPE_CHECKING:
    from rdgraph.lowering.vector_field import VectorField

#: The linear part is stiff where it is so many times faster than the rest, and passes so often within the run: the
#: degree of its polynomial, about 7 sqrt(rate*step), is then well below the explicit steps that it saves.
MUCH_FASTER, MANY_TIMES = 200.0, 1000.0
#: What halving the step of `imex` may change at the end of the run, and how often it is halved.
_CHANGE, _HALVINGS = 1e-3, 5
#: The largest (rate)*(step): of `imex` with the rest alone, of explicit steps with noise, and half of rk4's limit.
_IMEX, _NOISE, _RK4 = 0.1, 0.5, 1.39
#: `imex` is tried with so many steps at least.
_FEWEST = 10
_ITERATIONS = 6


class Rates(NamedTuple):
    """Per member, (*batch): a bound of the linear part of the fields, and the slope of the rest at the start."""

    linear: np.ndarray
    rest: np.ndarray

    @classmethod
    @torch.no_grad()
    def at(cls, field: VectorField, H: Tensor, t: Tensor) -> Rates:
        """At a state H (*batch, n, d) and the time t () or (*batch)."""
        parts = SplitField(field)
        base = operator_base(field.operator, parts.letter)
        size = base.centre.abs() + base.radius
        powers = [c.abs() * size**k for k, c in enumerate(parts.generator(field.blocks.width(H)))]
        linear = torch.stack(torch.broadcast_tensors(*powers)).sum(0)  # type: ignore[no-untyped-call]
        linear = linear.expand(*H.shape[:-2], *linear.shape[-2:]).amax((-2, -1))
        return cls(linear.cpu().numpy(), _slope(parts, H, t).double().cpu().numpy())


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


class FieldChoice(NamedTuple):
    """A method, its steps (*batch), None where it finds them itself, and why."""

    method: str
    step: np.ndarray | None
    reason: str


def choose_for_fields(field: VectorField, H: Tensor, times: Tensor, stepped: bool) -> FieldChoice:
    """The method for several fields, noise, time, or further operators, for states that start at H.

    Noise takes steps; what is linear is evaluated; where the linear part of every member is much faster than the rest
    it is evaluated in every step, if a run with half the step ends nearly the same; all others adapt their steps, or
    take those of rk4 where steps are asked for. Whether the run is stiff is asked of all members together.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(4).operator("row", dtype=torch.float64)
    >>> pair = rd.lower("u' = u*v - Du*L@u; v' = 1 - v - u*v - Dv*L@v", op, {"Du": 0.1, "Dv": 500.0})
    >>> choose_for_fields(pair, torch.ones(4, 2, dtype=torch.float64), torch.tensor([0.0, 8.0]), False).method
    'imex'
    """
    if not field.system.is_noisy and not stepped:
        method, why = family(field.system, has_degrees=field.operator.degree is not None)
        if method == "exact":
            return FieldChoice(method, None, why)
    bound = field.bind(H) if field.uses_initial else field
    rates = Rates.at(bound, H, times[0].to(H.device))
    end = (times[-1] - times[0]).numpy()
    both = rates.linear + rates.rest
    speeds = f"rates at the start: {_largest(rates.linear)} of the linear part, {_largest(rates.rest)} of the rest"
    if field.system.is_noisy:
        step = _steps(_NOISE, both, end, 1)
        return FieldChoice(
            "euler-maruyama", step, f"driven by white noise: explicit steps, {_text(step)} from the {speeds}"
        )
    if stepped:
        step = _steps(_RK4, both, end, 1)
        return FieldChoice("rk4", step, f"Runge-Kutta steps were asked for: {_text(step)} from the {speeds}")
    stiff = (rates.linear > MUCH_FASTER * rates.rest) & (rates.linear * end > MANY_TIMES) & np.isfinite(rates.rest)
    if not stiff.all():
        return FieldChoice("dopri5", None, f"no exact flow is known, and not stiff: adaptive steps; {speeds}")
    count = int((end / _steps(_IMEX, rates.rest, end, _FEWEST)).max().round())
    if not (count := _enough_steps(bound, H, times, count)):
        return FieldChoice("dopri5", None, f"stiff, but the rest grows beyond explicit steps: adaptive steps; {speeds}")
    step = end / count
    why = f"stiff: exact linear part, explicit rest, {_text(step)}, half of which changes little; {speeds}"
    return FieldChoice("imex", step, why)


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


def _steps(product: float, rates: np.ndarray, end: np.ndarray, fewest: int) -> np.ndarray:
    """Steps of at most 0.1 with rate*step <= product, as parts of the time."""
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.fmin(DEFAULT_STEP, product / rates)
        counts = np.clip(np.ceil(end / wanted), fewest, MOST_STEPS)
        found = np.where(end > 0, end / counts, DEFAULT_STEP)
    return np.where(np.isfinite(found) & (found > 0), found, DEFAULT_STEP)


def _largest(rates: np.ndarray) -> str:
    return f"{float(np.nanmax(rates, initial=0.0)):.3g}"


def _text(step: np.ndarray) -> str:
    return f"step {float(step.min()):.4g}"
