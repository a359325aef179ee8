"""Steady states that are the same in all nodes: told ones are, others are looked for, deviations are followed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from tests.adversary import formulas, graphs
from tests.adversary.answers import State, States
from tests.adversary.boxes import numbers
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "states"
Array = np.ndarray
Random = np.random.Generator
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

    def rate(h: float) -> float:
        return float(field(np.full((6, 1), h))[0, 0])

    told: list[tuple[float, float, State]] = []
    for state in answer.states:
        if not all(formulas.holds(c, letters) for c in state.conditions):
            continue
        ends = [formulas.evaluate(text, letters) for text in (state.lower, state.upper)]
        if any(isinstance(end, complex) or not np.isfinite(end) for end in ends):
            return f"{state.lower} = {ends[0]} is no state; {field.told()}"
        told.append((float(ends[0]), float(ends[1]), state))
    for lower, upper, state in told:
        witness = _no_state(rate, lower, upper) or _other_fate(drawn, values, state, rate, (lower + upper) / 2, letters)
        if witness:
            return f"{witness}; {field.told()}"
    missed = _missed(rate, [(low, high) for low, high, _ in told]) if answer.is_complete else None
    return f"{missed}; {field.told()}" if missed else None


def _no_state(rate: Callable[[float], float], lower: float, upper: float) -> str | None:
    """A told place at which the rate is not zero, as far as numbers tell."""
    middle = (lower + upper) / 2
    step = 1e-6 * (1 + abs(middle))
    around = [rate(middle + k * step) for k in (-1, 0, 1)]
    room = max(abs(around[2] - around[1]), abs(around[1] - around[0])) * 1e-2 + 1e-9 * (1 + abs(middle))
    if np.isfinite(around).all() and abs(around[1]) > room:
        return f"the rate is {around[1]:.6g} at the told state {middle:.9g}"
    return None


def _missed(rate: Callable[[float], float], told: list[tuple[float, float]]) -> str | None:
    """A change of sign, or a pair of values of opposite sign, without a told state between them."""
    with np.errstate(all="ignore"):
        values = np.array([rate(h) for h in PLACES])
    for a, b, x, y in zip(PLACES, PLACES[1:], values, values[1:], strict=False):
        if not (np.isfinite(x) and np.isfinite(y)) or not x * y < 0 or min(abs(x), abs(y)) < 1e-12:
            continue
        root = brentq(rate, a, b, xtol=1e-13)
        near = 1e-7 * (1 + abs(root))
        if abs(rate(root)) < 1e-6 * (abs(x) + abs(y)) and not any(u - near <= root <= v + near for u, v in told):
            return f"called complete, but the rate vanishes at {root:.12g}"
    return None


# ---------------------------------------------------------------------- deviations
def _largest(drawn: Drawn, values: Mapping[str, Any], place: float) -> tuple[float, float, float]:
    """The growth of the constant mode, the largest of all modes of regular graphs, and the size of the slopes."""
    found, constant, size = -np.inf, -np.inf, 0.0
    for graph in (graphs.pair(), graphs.cycle(5), graphs.cycle(40), graphs.complete(4)):
        slopes = Field(drawn, graph, "row", values).jacobian(np.full((graph.nodes, 1), place))
        if not np.isfinite(slopes).all():
            return float("nan"), float("nan"), 0.0
        found = max(found, float(np.linalg.eigvals(slopes).real.max()))
        constant = max(constant, float(slopes.sum(1).max()))
        size = max(size, float(np.abs(slopes).max()))
    return constant, found, size


def _other_fate(
    drawn: Drawn, values: Mapping[str, Any], state: State, rate: Callable[[float], float], place: float,
    letters: Mapping[str, Any],
) -> str | None:  # fmt: skip
    constant, largest, size = _largest(drawn, values, place)
    if not np.isfinite(largest) or not state.stability or "undecided" in state.stability:
        return None
    room = 1e-5 * (1 + size)
    claim = state.stability
    if (told := re.fullmatch(r"stable iff (.*) < 0", claim)) is not None:
        worst = formulas.evaluate(told.group(1), letters)
        if abs(worst) <= 0.02 * (1 + size):
            return None
        claim = "stable" if worst < 0 else "unstable for some lam"
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
    if claim == "unstable for some lam" and largest < -0.02 * (1 + size):
        return f"called unstable for some lam, but every mode of a cycle decays at {place:.9g}"
    return None


def _moves_away(rate: Callable[[float], float], place: float) -> bool:
    """Whether constant states at several distances on one side move away from a place."""
    steps = [1e-3, 3e-3, 1e-2]
    return all(rate(place + s) > 1e-12 for s in steps) or all(rate(place - s) < -1e-12 for s in steps)


def _comes_back(rate: Callable[[float], float], place: float) -> bool:
    """Whether constant states at several distances on both sides move towards a place."""
    steps = [1e-3, 3e-3, 1e-2]
    return all(rate(place - s) > 1e-15 and rate(place + s) < -1e-15 for s in steps)
