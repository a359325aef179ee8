"""Step limits that speak of every state: Jacobians there must not have damped modes that a step makes grow.

Where distances are limited instead, two states are moved by one step and must not separate by more than is told.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.adversary import formulas, graphs, methods
from tests.adversary.answers import Step
from tests.adversary.lipschitz import bound_at
from tests.adversary.systems import Drawn, Field

Array = np.ndarray
Random = np.random.Generator
CASES = 12


def amplified(drawn: Drawn, method: str, normalisation: str, answer: Step, rng: Random) -> str | None:
    """A damped mode of the Jacobian at some state that a step of the told size makes grow."""
    equal, is_local = answer.keeps == "equal slopes", "R" in formulas.letters(answer.value)
    channels = 2 if drawn.has("channel", "matrix") else 1
    for _ in range(CASES):
        graph = _regular(rng) if equal else graphs.draw(rng, normalisation, one_way=answer.one_way)
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes, channels), channels)
        radius = float(np.exp(rng.uniform(-2, 2)))
        limit = _least(answer.value, field, radius)
        if not limit > 0:
            return f"the limit is {limit}; {field.told()}"
        for _ in range(4):
            # exponentials of larger states drown differences of equal terms in rounding
            size = radius if is_local else float(np.exp(rng.uniform(-3, 2)))
            state = _state(rng, (graph.nodes, channels), size)
            if equal:
                state = np.broadcast_to(state[:1], state.shape).copy()
            jacobian = field.jacobian(state, _state(rng, state.shape, size))
            if not np.isfinite(jacobian).all():
                continue
            step = min(limit, 1e6) * float(rng.choice([1.0, 0.9, 0.3]))
            modes = np.linalg.eigvals(jacobian)
            modes = modes[np.abs(modes.real) > 1e-10 * np.abs(jacobian).max()]  # the rest is rounding
            witness = methods.amplified(method, modes, step)
            if witness:
                return f"{witness}, limit {limit:.9g}, R = {radius}, at {state.tolist()}; {field.told()}"
    return None


def separated(drawn: Drawn, method: str, normalisation: str, answer: Step, rng: Random) -> str | None:
    """Two states that a step of the told size moves further apart than it is told."""
    assert answer.rate is not None
    channels = 2 if drawn.has("channel", "matrix") else 1
    for _ in range(CASES):
        graph = graphs.draw(rng, normalisation)
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes, channels), channels)
        radius = float(np.exp(rng.uniform(-2, 2)))
        limit = _least(answer.value, field, radius)
        rate = max(bound_at(answer.rate, field, radius, c) for c in range(channels))
        if not limit > 0:
            return f"the limit is {limit}; {field.told()}"
        local = "R" in formulas.letters(f"{answer.value} + {answer.rate}")
        for share in (1.0, 0.5, 0.1):
            step, size = min(limit, 1e3) * share, radius if local else float(np.exp(rng.uniform(-3, 4)))
            first = _state(rng, (graph.nodes, channels), size)
            second = np.clip(first + rng.normal(size=first.shape) * size * rng.choice([1e-4, 0.1]), -size, size)
            initial = _state(rng, first.shape, size)
            if local and method != "euler" and not _stays(field, (first, second), initial, step, size):
                continue
            ends = [methods.step(method, partial(field, initial=initial), x, step) for x in (first, second)]
            before, after = (_distance(a - b, normalisation) for a, b in ((first, second), ends))
            allowed = float(methods.stability(method, np.array([step * rate]))[0]) * before
            if after > allowed * (1 + 1e-6) + 1e-9 * (1 + np.abs(ends[0]).max()):
                return f"two states {before:.9g} apart are {after:.9g} apart after a step {step:.9g}; {field.told()}"
    return None


def _stays(field: Field, states: tuple[Array, Array], initial: Array, step: float, size: float) -> bool:
    """Whether the second stage of Heun's method lies in |h| <= size."""
    return all(np.abs(x + step * field(x, initial)).max() <= size for x in states)


def _least(text: str, field: Field, radius: float) -> float:
    """The limit in the channel where it is smallest."""
    found = [bound_at(text, field, radius, c) for c in range(field.channels)]
    return min(abs(v) if np.isinf(v) else v for v in found)


def _distance(difference: Array, normalisation: str) -> float:
    """The norm of a difference of states: of its entries one by one."""
    return float(np.linalg.norm(difference)) if normalisation == "symmetric" else float(np.abs(difference).max())


def _state(rng: Random, shape: tuple[int, ...], size: float) -> Array:
    return size * (rng.uniform(-1, 1, shape) if rng.random() < 0.7 else rng.choice([-1.0, 1.0], shape))


def _regular(rng: Random) -> graphs.Graph:
    return (graphs.pair(), graphs.cycle(int(rng.integers(3, 9))), graphs.complete(5))[int(rng.integers(3))]
