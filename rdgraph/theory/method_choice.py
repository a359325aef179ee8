"""The method that follows from the equation: exact if linear, a splitting if the reaction has a closed flow, else rk4
where the slope is bounded and dopri5 where it is not.

Several fields have a separate decision (`choose_field_method`).

The steps come from a bound K of the slope of the field: rk4 takes half its stability limit, which is K step <= 2.785,
on directed graphs no more than K step <= 1; the splitting, which is stable for any step, takes K step <= 1/2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.tree import Kind
from rdgraph.reals.condition_words import factored, in_words
from rdgraph.reals.judge import remembered
from rdgraph.reals.line_extents import in_decimals
from rdgraph.systems.parser import parse
from rdgraph.systems.single_operator import (
    coupled_in_one_operator,
    coupling_obstacles,
    in_one_operator,
    terms_beyond_generator,
)
from rdgraph.systems.system import System
from rdgraph.theory.rate_bounds import RateBound, equilibrium_size, rate_bound, rates_of_parts
from rdgraph.theory.reaction_flows import closed_rate
from rdgraph.vocabulary.methods import find_method, tableau
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- field methods
# The method for several fields, noise, time or further operators: one decision, from the equation and two rates.
#
# The rates are those of the linear part (the linear terms of every field in itself) and of the rest. A run measures
# them at its start; before that they are bounded from the equation. Where the linear part is much faster than the rest,
# it is evaluated exactly in every step (`imex`); otherwise steps are adaptive (`dopri5`), or of rk4 on request.

#: The method of steps that follow the state, where no bound of the slope holds for all states.
ADAPTIVE = "dopri5"
#: The step where no bound of the slope is known.
DEFAULT_STEP = 0.1
#: Characters of a bound that is shown as a formula.
LONGEST_FORMULA = 200
#: Most steps that are chosen for a run; a field that needs more is too steep, and diverges.
MOST_STEPS = 10_000
#: The linear part is stiff where its rate exceeds the first number times that of the rest, and the second number
#: divided by the length of the run: the degree of its polynomial, about 7 sqrt(rate*step), is then well below the
#: explicit steps that it saves.
MUCH_FASTER, MANY_TIMES = 200.0, 1000.0
#: The largest (rate)*(step): of `imex` with the rest alone, of explicit steps with noise, and half of rk4's limit.
_IMEX, _NOISE, RK4_PRODUCT = 0.1, 0.5, 1.39
#: Fewest steps with which `imex` is tried.
_FEWEST = 10


class FieldRates(NamedTuple):
    """Per member, (*batch): a bound of the linear part of the fields, the slope of the rest, and their source."""

    linear: np.ndarray
    rest: np.ndarray
    source: str

    def __str__(self) -> str:
        return f"{self.source}: {_largest(self.linear)} of the linear part, {_largest(self.rest)} of the rest"


class FieldChoice(NamedTuple):
    """A method, its steps (*batch), None for adaptive steps, and the reason."""

    method: str
    step: np.ndarray | None
    reason: str


@remembered(256)
def exact_flow_reason(system: System, *, has_degrees: bool = False) -> str:
    """Why the exact flow of several fields is known; empty where it is not. `has_degrees` says that L is D - A."""
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

    With noise the method is explicit; linear systems are evaluated exactly. `rates` is called only where they matter.
    A run counts as stiff only if all members are. `enough_steps`, if given, returns how many steps of `imex` suffice, 0
    if no number does.

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
        step = _steps(RK4_PRODUCT, both, times, 1)
        return FieldChoice("rk4", step, f"Runge-Kutta steps as requested: {_text(step)} from the {speeds}")
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
    system: System, normalisation: str, values: Mapping[str, Any], radius: float, row_sum: float, end: float
) -> FieldRates:
    """Bounds of both rates from the equation alone: for all states, or on |u| <= radius."""
    linear, rest = rates_of_parts(system, normalisation)
    numbers = [
        np.max(part.at(values, radius=radius, row_sum=row_sum, end=end)) if part.is_finite else np.inf
        for part in (linear, rest)
    ]
    where = f" on |u| <= {radius:.4g}" if rest.is_local else ""
    return FieldRates(np.asarray(numbers[0]), np.asarray(numbers[1]), f"bounds of the rates{where}")


def _steps(product: float, rates: np.ndarray, end: np.ndarray, fewest: int) -> np.ndarray:
    """Steps of at most 0.1 with rate*step <= product that divide the time into equal parts."""
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.fmin(DEFAULT_STEP, product / rates)
        counts = np.clip(np.ceil(end / wanted), fewest, MOST_STEPS)
        steps = np.where(end > 0, end / counts, DEFAULT_STEP)
    return np.where(np.isfinite(steps) & (steps > 0), steps, DEFAULT_STEP)


def _largest(rates: np.ndarray) -> str:
    return f"{float(np.nanmax(rates, initial=0.0)):.3g}"


def _text(step: np.ndarray) -> str:
    return f"step {float(step.min()):.4g}"


# ---------------------------------------------------------------------- method choice
#: The smallest radius for which a bound is taken, since small states grow.
DEFAULT_RADIUS = 1.0
#: The end of a run for coefficients that depend on the time, where none is given.
DEFAULT_END = 1.0


@dataclass(frozen=True, repr=False)
class MethodChoice(Answer):
    """A method ("undecided" if none follows from the equation), its step (None where it needs none) and the reason."""

    method: str
    step: float | None
    reason: str

    @property
    def value(self) -> str | None:
        """The method; None where none follows from the equation."""
        return None if self.method == Status.UNDECIDED else self.method

    @property
    def status(self) -> Status:
        """proved where a method follows from the equation, else undecided."""
        return Status.UNDECIDED if self.value is None else Status.PROVED

    def __str__(self) -> str:
        if self.value is None:
            return self.remark
        return f"{self.method}{'' if self.step is None else f', step {self.step:g}'} ({self.reason})"


def choose_method(
    system: System | str,
    T: float | None = None,
    *,
    normalisation: str = "symmetric",
    values: Mapping[str, Any] | None = None,
    undirected: bool = True,
    radius: float | None = None,
    row_sum: float = 1.0,
    stepped: bool = False,
) -> MethodChoice:
    """The method that fits a system, with a step for its coefficients.

    Linear systems with a generator p(A), with or without a forcing independent of H, are evaluated exactly
    ("exact"). Entrywise reactions with a closed flow are split ("strang"). All other equations use "rk4" where one
    bound of the slope holds for all states, else adaptive steps ("dopri5"). Several fields are evaluated exactly
    where they are linear in A alone; stiff ones have their linear part evaluated exactly in every step ("imex"),
    all others adaptive steps ("dopri5"), and noise takes "euler-maruyama". `solve` makes the same choice with the
    rates at the start instead of bounds.

    Args:
        system: the system, a name of the catalogue or a line of text.
        T: the time of the run; the step is then T divided by a whole number, which is at most 10000.
        normalisation: of the operator: symmetric, row, column, none (L = D - A) or free.
        values: numbers, or arrays of shape (channels,) or (nodes,); 1 for each that is not given.
        undirected: whether the spectrum of A is known to be real.
        radius: the largest modulus of an entry of the start, for reactions whose slope grows with the state; at least 1
            and the largest constant steady state are used.
        row_sum: the largest sum of |A| over a row, for bounds that depend on it; 1 on regular graphs.
        stepped: whether the method must take Runge-Kutta steps, as for the adjoint.

    Returns:
        The choice, with the reason in one sentence.

    Raises:
        InvalidArgument: T, radius or row_sum is not a finite number >= 0.
        UnknownName: a coefficient does not occur in the system.

    >>> import rdgraph as rd
    >>> print(rd.theory.choose_method("BS"))
    exact (linear with symbol p(lam) = lam*(beta - alpha) - beta*lam**2: exact flow)
    >>> rd.theory.choose_method("-alpha*L@H + beta*tanh(H)", T=4).step
    0.4444444444444444
    """
    subject = parse(system)
    _check(subject, T, values or {}, radius, row_sum)
    if not subject.is_single:
        return _of_fields(subject, T, normalisation, _shaped(subject, values or {}), radius, row_sum, stepped)
    method, why = family(subject, has_degrees=find_normalisation(normalisation).has_degrees)
    if stepped and method != "rk4":
        method, why = "rk4", f"{why}, but Runge-Kutta steps were requested"
    if method == "exact":
        return MethodChoice(method, None, why)
    bound = rate_bound(subject, normalisation)
    if method == "rk4" and not stepped and not bound.holds_everywhere:
        return MethodChoice(ADAPTIVE, None, adaptive_reason(why))
    shaped = _shaped(subject, values or {})
    size = float(np.max(state_size(bound, shaped, radius or 0.0)))
    rate = float(np.max(bound.at(shaped, radius=size, row_sum=row_sum))) if bound.is_finite else None
    rate = None if rate == np.inf else rate
    step = float(step_for(method, rate, T, undirected=undirected))
    unknown = " = ".join(sorted({x.name for x in bound.value.free_symbols} & set(subject.coefficients) - set(shaped)))
    assumed = f" with {unknown} = 1" if unknown else ""
    return MethodChoice(method, step, f"{why}; {step_reason(bound, rate, step, size)}{assumed}")


def _of_fields(
    system: System, T: float | None, normalisation: str, values: Mapping[str, np.ndarray], radius: float | None,
    row_sum: float, stepped: bool,
) -> MethodChoice:  # fmt: skip
    """The choice that `solve` makes, from bounds of the rates; requested Runge-Kutta steps come from a bound K."""
    has_degrees = find_normalisation(normalisation).has_degrees
    size, end = max(radius or 0.0, DEFAULT_RADIUS), DEFAULT_END if T is None else T
    if stepped and not system.is_noisy:
        bound = rate_bound(system, normalisation)
        rate = float(np.max(bound.at(values, radius=size, row_sum=row_sum, end=end))) if bound.is_finite else None
        step = float(step_for("rk4", rate, T, undirected=False))
        return MethodChoice("rk4", step, f"Runge-Kutta steps as requested; {step_reason(bound, rate, step, size)}")
    rates = partial(bounded_rates, system, normalisation, values, size, row_sum, end)
    choice = choose_field_method(system, rates, end, has_degrees=has_degrees)
    return MethodChoice(choice.method, None if choice.step is None else float(choice.step), choice.reason)


def adaptive_reason(why: str) -> str:
    """Why steps adapt to the state, as text; `why` says why there is no closed form.

    >>> adaptive_reason("the reaction h**3 is nonlinear")
    'the reaction h**3 is nonlinear; no bound of the slope holds for all states: adaptive steps'
    """
    return f"{why}; no bound of the slope holds for all states: adaptive steps"


@remembered(256)
def family(system: System, *, has_degrees: bool = False) -> tuple[str, str]:
    """exact, strang or rk4 for one equation dH/dt = f(H), and the reason; `has_degrees` says that L is D - A."""
    try:
        letter, written = in_one_operator(system, has_degrees=has_degrees)
    except NotApplicable:
        return "rk4", "A and L = D - A do not commute"
    structure = written.structure
    if not terms_beyond_generator(structure):
        forced = " and a forcing" if structure.has_source or structure.constant != 0 or structure.coupled != 0 else ""
        return "exact", f"linear with {_symbol_text(written, letter, has_degrees)}{forced}: exact flow"
    try:
        rate = closed_rate(system)
    except NotApplicable:
        return "rk4", "; ".join(structure.obstacles)
    return "strang", f"the reaction h' = {public(factored(rate))} has a closed flow"


def _symbol_text(system: System, letter: str, has_degrees: bool) -> str:
    if not has_degrees:
        return f"symbol p(lam) = {in_words(public(system.generator_symbol))}"
    x = lam if letter == "L" else sp.Symbol("A")
    polynomial = sp.collect(sp.Add(*(c * x**k for k, c in system.structure.generator.items())), x)
    return f"{'symbol p(lam)' if letter == 'L' else 'generator p(A)'} = {in_words(public(polynomial))}"


# ---------------------------------------------------------------------- steps
@cache
def largest_product(method: str, undirected: bool) -> float:
    """The largest product K*step for a method."""
    if find_method(method).is_splitting:
        return 0.5
    weights = tableau(method)
    half = float(weights.real_limit) / 2
    return half if undirected else min(half, float(weights.monotone_radius))


def step_for(method: str, rate: Any, T: Any = None, *, undirected: bool = True) -> np.ndarray:
    """Steps for bounds K, numbers or arrays, None for no bound; with T, steps divide T into equal parts.

    >>> step_for("rk4", np.array([3.0, 30.0]), 1.0)
    array([0.33333333, 0.04545455])
    """
    if rate is None:
        steps = np.asarray(DEFAULT_STEP)
    else:
        with np.errstate(divide="ignore"):
            steps = _two_digits(largest_product(method, undirected) / np.asarray(rate, dtype=float))
    uncut = np.where(np.isfinite(steps), steps, 1.0)
    if T is None:
        return uncut
    end = np.asarray(T, dtype=float)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(end > 0, end / np.clip(np.ceil(end / steps), 1, MOST_STEPS), uncut)


def _two_digits(steps: np.ndarray) -> np.ndarray:
    """The steps rounded down to two digits, which are easy to read and to reproduce."""
    finite = np.isfinite(steps) & (steps > 0)
    unit = 10.0 ** (np.floor(np.log10(np.where(finite, steps, 1.0))) - 1)
    return np.where(finite, np.floor(steps / unit + 1e-9) * unit, steps)


def state_size(bound: RateBound, values: Mapping[str, Any], start: Any) -> np.ndarray:
    """R of a local bound: the largest of the start, the constant steady states, and 1."""
    rests = equilibrium_size(bound.system, values) if bound.is_local else 0.0
    return np.maximum(np.maximum(rests, start), DEFAULT_RADIUS)


def step_reason(bound: RateBound, rate: float | None, step: float, radius: float) -> str:
    """How the step was chosen, as text."""
    if rate is None:
        return f"no bound of its slope is known: the default step {step:.4g}"
    letter = "h" if bound.system.is_single else "u"
    where = f" on |{letter}| <= {radius:.4g}" if bound.is_local else ""
    formula = in_words(in_decimals(public(bound.value))) if bound.value.free_symbols else ""
    shown = f"{formula} = " if 0 < len(formula) <= LONGEST_FORMULA else ""
    return f"step {step:.4g} from the Lipschitz bound K = {shown}{rate:.4g}{where}"


# ---------------------------------------------------------------------- arguments
def _shaped(system: System, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Coefficients in shapes that broadcast against (nodes, channels)."""
    shaped = {}
    for name, value in given.items():
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise InvalidArgument(f"expected a number or an array for {name}, got {value!r}") from None
        shaped[name] = array[:, None] if system.letters[name] is Kind.NODE and array.ndim == 1 else array
    return shaped


def _check(system: System, T: Any, given: Mapping[str, Any], radius: Any, row_sum: Any) -> None:
    for name in given:
        if name not in system.letters or system.letters[name] in (Kind.FIELD, Kind.OPERATOR):
            raise UnknownName(f"coefficient of {system.text}", name, system.coefficients)
    for name, value in (("T", T), ("radius", radius), ("row_sum", row_sum)):
        if value is not None and not (isinstance(value, Real) and 0 <= float(value) < float("inf")):
            raise InvalidArgument(f"expected a finite number {name} >= 0, got {value!r}")
