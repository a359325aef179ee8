"""Steady states that are the same in all nodes: told ones are, others are looked for, deviations are followed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tests.adversary import formulas, graphs
from tests.adversary.answers import State, States
from tests.adversary.boxes import numbers
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "states"
Array = np.ndarray
Random = np.random.Generator
Rate = Callable[[float], float]
CASES = 6
#: Within this distance from zero states are looked for; told ones may lie farther out.
REACH = 90.0
#: Shifted, so that no place is a state by chance.
PLACES = np.unique(np.concatenate([np.linspace(-REACH, REACH, 501), np.sinh(np.linspace(-5, 5, 601))])) + 1.7e-4


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    if drawn.has("channel", "node", "matrix") or drawn.has_source:
        return []
    values = {n: float(np.round(np.ravel(v)[0], 4)) for n, v in drawn.values(rng).items() if n in dict(drawn.kinds)}
    with_numbers = bool(rng.random() < 0.7) and all(values.values())
    return [Question(FAMILY, "steady_states", {"values": values if with_numbers else None})]


def check(drawn: Drawn, question: Question, answer: States, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    given = question.arguments["values"]
    for _ in range(1 if given else CASES):
        values = {n: np.asarray(v) for n, v in given.items()} if given else drawn.values(rng)
        witness = _refuted(drawn, answer, values)
        if witness:
            return witness
    return None


def _refuted(drawn: Drawn, answer: States, values: Mapping[str, Any]) -> str | None:
    field = Field(drawn, graphs.cycle(6), "row", values)
    letters = numbers(field, 1.0)
    told: list[tuple[float, float, State]] = []
    for state in answer.states:
        about_state = [c for c in state.conditions if "H" in formulas.letters(c)]
        if not all(formulas.holds(c, letters) for c in state.conditions if c not in about_state):
            continue
        if state.free:
            return _no_family(field, about_state, letters)
        ends = [formulas.evaluate(text, letters) for text in (state.lower, state.upper)]
        if any(isinstance(end, complex) or not np.isfinite(end) for end in ends):
            return f"{state.lower} = {ends[0]} is no state; {field.told()}"
        told.append((float(ends[0]), float(ends[1]), state))
    rate, precise_rate = _rate(field), _rate(field, precise=True)
    for lower, upper, state in told:
        place = (lower + upper) / 2
        witness = _no_state(rate, place) and _no_state(precise_rate, place)
        witness = witness or _other_fate(drawn, values, state, precise_rate, place, letters)
        if witness:
            return f"{witness}; {field.told()}"
    missed = _missed(rate, precise_rate, [(low, high) for low, high, _ in told]) if answer.is_complete else None
    return f"{missed}; {field.told()}" if missed else None


def _no_family(field: Field, conditions: list[str], letters: Mapping[str, Any]) -> str | None:
    """A state at which a family of all states is not steady."""
    rate = _rate(field)
    for place in (-2.3, -0.7, 0.0, 0.4, 1.0, 3.1):
        if all(formulas.holds(c, {**letters, "H": place}) for c in conditions) and (why := _no_state(rate, place)):
            return f"{why}; {field.told()}"
    return None


def _rate(field: Field, *, precise: bool = False) -> Rate:
    """The speed of constant states, with many digits if `precise`."""
    shape = (field.graph.nodes, 1)
    speed = field.precisely if precise else field
    return lambda h: float(speed(np.full(shape, h))[0, 0])


def _no_state(rate: Rate, middle: float) -> str | None:
    """A told place at which the rate is not zero, as far as numbers tell."""
    step = 1e-6 * (1 + abs(middle))
    around = [rate(middle + k * step) for k in (-1, 0, 1)]
    room = max(abs(around[2] - around[1]), abs(around[1] - around[0])) * 1e-2 + 1e-9 * (1 + abs(middle))
    if np.isfinite(around).all() and abs(around[1]) > room:
        return f"the rate is {around[1]:.6g} at the told state {middle:.9g}"
    return None


def _missed(rate: Rate, precise_rate: Rate, told: list[tuple[float, float]]) -> str | None:
    """A change of sign, or a pair of values of opposite sign, without a told state between them."""
    with np.errstate(all="ignore"):
        values = np.array([rate(h) for h in PLACES])
    for a, b, x, y in zip(PLACES, PLACES[1:], values, values[1:], strict=False):
        if not (np.isfinite(x) and np.isfinite(y)) or not x * y < 0:
            continue
        if _is_told(_halved(rate, a, b), told):
            continue
        x, y = precise_rate(a), precise_rate(b)
        if not x * y < 0 or min(abs(x), abs(y)) < 1e-12:
            continue  # differences of large numbers change their sign by rounding
        root = _halved(precise_rate, a, b)
        if abs(precise_rate(root)) < 1e-6 * (abs(x) + abs(y)) and not _is_told(root, told):
            return f"called complete, but the rate vanishes at {root:.12g}"
    return None


def _is_told(root: float, told: list[tuple[float, float]]) -> bool:
    near = 1e-7 * (1 + abs(root))
    return any(u - near <= root <= v + near for u, v in told)


def _halved(rate: Rate, lower: float, upper: float) -> float:
    """Where a rate changes its sign between two places, by halving."""
    rises = rate(upper) > 0
    for _ in range(60):
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if (rate(middle) > 0) == rises else (middle, upper)
    return (lower + upper) / 2


# ---------------------------------------------------------------------- deviations
@dataclass(frozen=True)
class _Slopes:
    """Growth near a constant state on regular graphs: of the constant mode, and the least and largest of all modes.

    At a kink there is no one Jacobian, but several beside it; the largest is then that of their symmetric parts, which
    bounds the growth of every deviation.
    """

    constant: float
    largest: float
    size: float
    is_kinked: bool


def _slopes_at(drawn: Drawn, values: Mapping[str, Any], place: float) -> _Slopes | None:
    """None where a slope is infinite."""
    largest, constant, size, is_kinked = -np.inf, -np.inf, 0.0, False
    for graph in (graphs.pair(), graphs.cycle(5), graphs.cycle(40), graphs.complete(4)):
        field, state = Field(drawn, graph, "row", values), np.full((graph.nodes, 1), place)
        slopes = field.jacobians(state)
        if not np.isfinite(slopes).all():
            return None
        size = max(size, float(np.abs(slopes).max()))
        if len(slopes) > 1:
            is_kinked = True
            largest = max(largest, *(float(np.linalg.eigvalsh((j + j.T) / 2).max()) for j in slopes))
            continue
        largest = max(largest, float(np.linalg.eigvals(slopes[0]).real.max()))
        constant = max(constant, float(slopes[0].sum(1).max()))
    return _Slopes(constant, largest, size, is_kinked)


def _other_fate(
    drawn: Drawn, values: Mapping[str, Any], state: State, rate: Rate, place: float, letters: Mapping[str, Any]
) -> str | None:
    slopes = _slopes_at(drawn, values, place)
    if slopes is None or not state.stability or "undecided" in state.stability:
        return None
    claim = state.stability
    if (told := re.fullmatch(r"stable iff (.*) < 0", claim)) is not None:
        worst = formulas.evaluate(told.group(1), letters)
        if abs(worst) <= 0.02 * (1 + slopes.size):
            return None
        claim = "stable" if worst < 0 else "unstable for some lam"
    if slopes.is_kinked:
        return _other_fate_at_kink(drawn, values, claim, rate, place, slopes)
    room = 1e-5 * (1 + slopes.size)
    constant, largest = slopes.constant, slopes.largest
    if claim == "stable" and largest > room:
        return f"called stable, but a mode grows at the rate {largest:.6g} at {place:.9g}"
    if claim == "stable" and abs(constant) <= room and _moves_away(rate, place):
        return f"called stable, but constant states beside {place:.9g} move away"
    if claim == "marginal" and largest > room:
        return f"called marginal, but a mode grows at the rate {largest:.6g} at {place:.9g}"
    if claim == "unstable" and constant < -room:
        return f"called unstable, but constant states come back at the rate {constant:.6g} at {place:.9g}"
    if claim == "unstable" and abs(constant) <= room and _comes_back(rate, place):
        return f"called unstable, but constant states come back to {place:.9g} from both sides"
    if claim == "unstable for some lam" and largest < -0.02 * (1 + slopes.size):
        return f"called unstable for some lam, but every mode of a cycle decays at {place:.9g}"
    return None


def _other_fate_at_kink(
    drawn: Drawn, values: Mapping[str, Any], claim: str, rate: Rate, place: float, slopes: _Slopes
) -> str | None:
    """One-sided slopes of constant states, and small deviations that are followed."""
    step, room = 1e-7 * (1 + abs(place)), 1e-4 * (1 + slopes.size)
    outward = (rate(place + step) / step, -rate(place - step) / step)
    if claim in ("stable", "marginal"):
        if max(outward) > room:
            return f"called {claim}, but constant states on one side of {place:.9g} move away at {max(outward):.6g}"
        return _grows(drawn, values, place, 0.05 * (1 + slopes.size), claim)
    if claim == "unstable" and max(outward) < -room:
        return f"called unstable, but constant states come back to the kink {place:.9g} from both sides"
    if claim == "unstable for some lam" and slopes.largest < -0.02 * (1 + slopes.size):
        return f"called unstable for some lam, but every deviation from the kink {place:.9g} decays"
    return None


def _grows(drawn: Drawn, values: Mapping[str, Any], place: float, least: float, claim: str) -> str | None:
    """A small deviation, on a graph without directions, that grows at a noticeable rate."""
    rng = np.random.default_rng(1)
    for graph in (graphs.pair(), graphs.cycle(5), graphs.complete(4)):
        field, shape, size = Field(drawn, graph, "row", values), (graph.nodes, 1), 1e-6 * (1 + abs(place))
        for _ in range(4):
            start = rng.normal(size=shape)
            flow = solve_ivp(
                lambda _, y, field=field, shape=shape, size=size: field(place + size * y.reshape(shape)).ravel() / size,
                (0, 4 / least), start.ravel(), rtol=1e-6, atol=1e-9,
            )  # fmt: skip
            end = float(np.abs(flow.y[:, -1]).max()) if np.isfinite(flow.y).all() else np.inf
            if end > 10 * float(np.abs(start).max()):
                return f"called {claim}, but a small deviation from the kink {place:.9g} grows on {field.told()}"
    return None


def _moves_away(rate: Rate, place: float) -> bool:
    """Whether constant states at several distances on one side move away from a place."""
    steps = [1e-3, 3e-3, 1e-2]
    return all(rate(place + s) > 1e-12 for s in steps) or all(rate(place - s) < -1e-12 for s in steps)


def _comes_back(rate: Rate, place: float) -> bool:
    """Whether constant states at several distances on both sides move towards a place."""
    steps = [1e-3, 3e-3, 1e-2]
    return all(rate(place - s) > 1e-15 and rate(place + s) < -1e-15 for s in steps)
