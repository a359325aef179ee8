"""The method for several fields, noise, time or further operators: one decision, from the equation and two rates.

The rates are those of the linear part (what every field does with itself) and of the rest. A run measures them at its
start; before that they are bounded from the equation. Where the linear part is much faster than the rest it is
evaluated in every step (`imex`); all others adapt their steps (`dopri5`), or take those of rk4 where steps are asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rdgraph.syntax.answer_symbols import public
from rdgraph.systems.single_operator import coupled_in_one_operator, coupling_obstacles
from rdgraph.systems.system import System
from rdgraph.theory.rate_bounds import rates_of_parts

#: The step where no bound of the slope is known.
DEFAULT_STEP = 0.1
#: Most steps that are chosen for a run; a field that asks for more is too steep, and shows it by diverging.
MOST_STEPS = 10_000
#: The linear part is stiff where it is so many times faster than the rest, and passes so often within the run: the
#: degree of its polynomial, about 7 sqrt(rate*step), is then well below the explicit steps that it saves.
MUCH_FASTER, MANY_TIMES = 200.0, 1000.0
#: The largest (rate)*(step): of `imex` with the rest alone, of explicit steps with noise, and half of rk4's limit.
_IMEX, _NOISE, _RK4 = 0.1, 0.5, 1.39
#: `imex` is tried with so many steps at least.
_FEWEST = 10


class FieldRates(NamedTuple):
    """Per member, (*batch): a bound of the linear part of the fields, the slope of the rest, and what they are."""

    linear: np.ndarray
    rest: np.ndarray
    source: str

    def __str__(self) -> str:
        return f"{self.source}: {_largest(self.linear)} of the linear part, {_largest(self.rest)} of the rest"


class FieldChoice(NamedTuple):
    """A method, its steps (*batch), None where it finds them itself, and why."""

    method: str
    step: np.ndarray | None
    reason: str


@lru_cache(maxsize=256)
def exact_flow_reason(system: System, *, has_degrees: bool = False) -> str:
    """Why the flow of several fields is known; empty where it is not. `has_degrees` says that L is D - A."""
    if coupling_obstacles(system, has_degrees=has_degrees):
        return ""
    letter, coupling = coupled_in_one_operator(system, has_degrees=has_degrees)
    others = (*coupling.source.values(), *coupling.constant.values(), *coupling.coupled.values())
    forced = " and a forcing" if any(x != 0 for x in others) else ""
    symbol = f"the matrix symbol P(lam) = {public(coupling.linear_symbol()).tolist()}"
    name = f"a matrix polynomial of {letter} as generator" if has_degrees else symbol
    return f"linear in {', '.join(coupling.fields)} with {name}{forced}: exact flow"


def choose_field_method(
    system: System,
    rates: Callable[[], FieldRates],
    end: Any,
    *,
    has_degrees: bool,
    stepped: bool = False,
    enough_steps: Callable[[int], int] | None = None,
) -> FieldChoice:
    """The method of a system of several fields for a run of length `end`, a number or (*batch).

    Noise takes steps; what is linear is evaluated. `rates` are asked for where they matter. Whether the run is stiff is
    asked of all members together; `enough_steps` says how many steps of `imex` will do, 0 for none, where that can be
    tried.

    >>> from rdgraph.systems.parser import parse
    >>> pair = parse("u' = u*v - Du*L@u; v' = 1 - v - u*v - Dv*L@v")
    >>> rates = FieldRates(np.array(1000.0), np.array(2.0), "rates")
    >>> choose_field_method(pair, lambda: rates, 8.0, has_degrees=False).method
    'imex'
    """
    known = exact_flow_reason(system, has_degrees=has_degrees)
    if known and not stepped:
        return FieldChoice("exact", None, known)
    speeds, times = rates(), np.asarray(end, dtype=float)
    both = speeds.linear + speeds.rest
    if system.is_noisy:
        step = _steps(_NOISE, both, times, 1)
        return FieldChoice(
            "euler-maruyama", step, f"driven by white noise: explicit steps, {_text(step)} from the {speeds}"
        )
    if stepped:
        step = _steps(_RK4, both, times, 1)
        return FieldChoice("rk4", step, f"Runge-Kutta steps were asked for: {_text(step)} from the {speeds}")
    why = "; ".join(coupling_obstacles(system, has_degrees=has_degrees))
    is_fast = (speeds.linear > MUCH_FASTER * speeds.rest) & (speeds.linear * times > MANY_TIMES)
    if not (is_fast & np.isfinite(speeds.rest)).all():
        return FieldChoice("dopri5", None, f"no exact flow is known, and not stiff: adaptive steps; {why}; {speeds}")
    count = int((times / _steps(_IMEX, speeds.rest, times, _FEWEST)).max().round())
    if enough_steps is not None and not (count := enough_steps(count)):
        grows = "stiff, but the rest grows beyond explicit steps: adaptive steps"
        return FieldChoice("dopri5", None, f"{grows}; {why}; {speeds}")
    step = times / count
    return FieldChoice("imex", step, f"stiff: exact linear part, explicit rest, {_text(step)}; {why}; {speeds}")


def bounded_rates(
    system: System, normalisation: str, coefficients: Mapping[str, Any], radius: float, row_sum: float, end: float
) -> FieldRates:
    """Bounds of both rates from the equation alone: for all states, or on |u| <= radius."""
    linear, rest = rates_of_parts(system, normalisation)
    numbers = [
        np.max(part.at(coefficients, radius=radius, row_sum=row_sum, end=end)) if part.is_finite else np.inf
        for part in (linear, rest)
    ]
    where = f" on |u| <= {radius:.4g}" if rest.is_local else ""
    return FieldRates(np.asarray(numbers[0]), np.asarray(numbers[1]), f"bounds of the rates{where}")


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
