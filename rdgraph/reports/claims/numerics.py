"""Numbers for the cross-checks: dense right-hand sides, generators and solves that use no symbolic result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.vocabulary.methods import Tableau

Array = Any
#: Draws the graphs of the cross-checks, the same on every run.
_SEED = 20230723
Field = Callable[[Array], Array]


def make_field(system: System | str, operator: Array, **letters: Any) -> Field:
    """The function H -> f(H) of a system for dense numpy arrays, given coefficients, H0, W or M by name."""
    expression = parse(system).expression
    return lambda state: evaluate(expression, {"A": operator, "H": state, **letters})


def generator(system: System | str, operator: Array, **letters: Any) -> Array:
    """The matrix G of a linear H' = G H + ..., column by column from unit vectors; H0 counts as zero."""
    n = len(operator)
    return make_field(system, operator, H0=np.zeros((n, n)), **letters)(np.eye(n))


def modes(operator: Array) -> tuple[Array, Array]:
    """Frequencies and eigenvectors of L = I - A, A symmetric."""
    return np.linalg.eigh(np.eye(len(operator)) - operator)


def connected_graphs(count: int, most: int = 8) -> Iterator[tuple[Array, Any]]:
    """Connected graphs of 2 to `most` nodes with weights 0 and 1, small ones first, each with a random generator.

    >>> [len(weights) for weights, _ in connected_graphs(14)]
    [2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8]
    """
    for index in range(count):
        rng = np.random.default_rng([_SEED, index])
        nodes = 2 + index * (most - 1) // count
        weights = np.triu(rng.random((nodes, nodes)) < rng.random(), 1).astype(float)
        for node in range(1, nodes):
            weights[rng.integers(node), node] = 1.0  # a tree, drawn at random
        yield weights + weights.T, rng


def double_cover(adjacency: Array) -> Array:
    """The bipartite double cover (2n, 2n): it reaches the frequency 2, which few random graphs do."""
    empty = np.zeros_like(adjacency)
    return np.block([[empty, adjacency], [adjacency, empty]])


def solve(field: Field, state: Array, end: float, **options: Any) -> Any:
    """A tight solve of H' = field(H); the state has shape (n, d), the solution is scipy's."""

    def flat(_: float, y: Array) -> Array:
        return field(y.reshape(state.shape)).ravel()

    return solve_ivp(flat, (0.0, end), state.ravel(), **({"method": "DOP853", "rtol": 1e-11, "atol": 1e-12} | options))


def final(field: Field, state: Array, end: float) -> Array:
    """The state at the end of a tight solve."""
    return solve(field, state, end).y[:, -1].reshape(state.shape)


def runge_kutta_step(method: Tableau, field: Field, state: Any, step: Any, number: Callable[[Any], Any] = float) -> Any:
    """One explicit step straight from the tableau, on arrays (`number=float`) or symbols (`number=sympify`)."""
    slopes: list[Any] = []

    def moved(weights: Any) -> Any:
        result = state
        for weight, slope in zip(weights, slopes, strict=True):
            result = result + step * number(weight) * slope
        return result

    for row in method.stages:
        stage = moved(row)
        slopes.append(field(stage))
    return moved(method.weights)
