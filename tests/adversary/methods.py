"""Explicit Runge-Kutta methods, written out: one step of a field, and the stability polynomial by one step of z."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray

#: Stage weights and final weights.
TABLEAUX: dict[str, tuple[list[list[float]], list[float]]] = {
    "euler": ([[]], [1.0]),
    "midpoint": ([[], [0.5]], [0.0, 1.0]),
    "heun": ([[], [1.0]], [0.5, 0.5]),
    "rk4": ([[], [1 / 3], [-1 / 3, 1.0], [1.0, -1.0, 1.0]], [1 / 8, 3 / 8, 3 / 8, 1 / 8]),
    "rk4-classical": ([[], [0.5], [0.0, 0.5], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
}


def step(method: str, field: Callable[[Any], Any], state: Any, size: float) -> Any:
    """One step of length `size` from a state (an array, or a number for stability)."""
    stages, weights = TABLEAUX[method]
    slopes: list[Any] = []
    for row in stages:
        at = state + sum((size * a * k for a, k in zip(row, slopes, strict=True)), 0.0 * state)
        slopes.append(field(at))
    return state + sum((size * b * k for b, k in zip(weights, slopes, strict=True)), 0.0 * state)


def stability(method: str, z: Array) -> Array:
    """R(z): the factor of one step of h' = z h."""
    return step(method, lambda x: z * x, np.ones_like(z), 1.0)


def run(method: str, field: Callable[[Array], Array], state: Array, end: float, size: float) -> Array:
    """ceil(end/size) steps, the last one shortened."""
    done = 0.0
    with np.errstate(all="ignore"):
        while done < end - 1e-12 * max(1.0, end):
            length = min(size, end - done)
            state = step(method, field, state, length)
            done += length
    return state


def amplified(method: str, modes: Array, step: float) -> str | None:
    """A mode with Re p < 0 that a step makes grow."""
    damped = modes[modes.real < -1e-9 * (1 + np.abs(modes))]
    gains = np.abs(stability(method, step * damped))
    if not (gains > 1 + 1e-7).any():
        return None
    worst = int(gains.argmax())
    return f"the mode {damped[worst]:.9g} is damped by the flow and grows by {gains[worst]:.9g} in a step of {step:.9g}"
