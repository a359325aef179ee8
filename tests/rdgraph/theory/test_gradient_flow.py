"""Gradient flows: f = -grad U by differences, U falls along trajectories, and what is not symmetric is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.normal_form import Act, Mix
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.gradient_flow import gradient_flow
from tests.rdgraph.theory.equality.small_graph import GRAPH

A = dense_operator(GRAPH, "symmetric")
FLOWS = [
    "GRAFF",
    "A@H@W - omega*H where W symmetric",
    "-alpha*L@H + H@W@W - beta*H**3 + M*H0 where W symmetric",
    "omega*(H@W) + (omega*H)@W + A@H where omega channel, W symmetric",
    "k*(A@(k*H)) - H where k node",
    "H@W@V + H@V@W - H + H0@V where V matrix, V symmetric, W symmetric",
    "-alpha*L@H + tanh(H)",
    "-alpha*L@L@H + H/(1 + H**2) + H0*H",
    "AC",
]
OTHERS = {
    "A@H@W - omega*H": "W is symmetric",
    "omega*(H@W) where omega channel, W symmetric": "not self-adjoint",
    "-k*L@H where k node": "not self-adjoint",
    "H0*(H@W) where W symmetric": "not self-adjoint",
    "H@W@V where V matrix, V symmetric, W symmetric": "not self-adjoint",
    "tanh(A@H)": "couples nodes",
    "H/(A@H)": "couples nodes",
}


def numbers(system: rd.System, generator: np.random.Generator) -> dict[str, Any]:
    """Random values for everything but H, with symmetric matrices where they are declared."""
    shapes = {"channel": (2,), "node": (7, 1), "matrix": (2, 2)}
    values = {n: generator.uniform(0.3, 1.2, shapes.get(k, ())) for n, k in system.letters.items() if n not in "HAL"}
    values = {n: v for n, v in values.items() if n not in ("H0", "I")}
    for name in system.assumptions.symmetric:
        values[name] = generator.normal(size=(2, 2))
        values[name] = values[name] + values[name].T
    return {**values, "A": A, "H0": generator.normal(size=(7, 2))}


def evaluated(expression: sp.Expr, H: np.ndarray, values: dict[str, Any]) -> np.ndarray:
    """A normal form by numpy alone: operators from the left, matrices from the right."""
    match expression:
        case Act():
            return np.linalg.multi_dot(
                [*[values[w.name] for w in expression.word], evaluated(expression.inner, H, values)]
            )
        case Mix():
            answer = evaluated(expression.inner, H, values)
            for w in expression.word:
                answer = answer @ values[w.name]
            return answer
        case sp.Symbol():
            return H if expression.name == "H" else values[expression.name]
        case sp.Add():
            return sum(evaluated(a, H, values) for a in expression.args)
        case sp.Mul():
            return np.prod(np.broadcast_arrays(*(evaluated(a, H, values) for a in expression.args)), axis=0)
        case sp.Pow():
            return evaluated(expression.base, H, values) ** float(expression.exp)
        case sp.Number():
            return np.full((7, 2), float(expression))
    function = {sp.log: np.log, sp.tanh: np.tanh}[expression.func]
    return function(evaluated(expression.args[0], H, values))


def energy(flow: Any, H: np.ndarray, values: dict[str, Any]) -> float:
    linear, forcing, potential = (
        np.broadcast_to(evaluated(part, H, values), H.shape) for part in (flow.linear, flow.forcing, flow.potential)
    )
    return float(-np.sum(H * linear) / 2 - np.sum(H * forcing) - np.sum(potential))


@pytest.mark.parametrize("text", FLOWS)
def test_the_field_is_minus_the_gradient_and_the_energy_falls(text: str) -> None:
    system = rd.parse(text)
    flow = gradient_flow(system)
    assert flow.energy is not None
    generator = np.random.default_rng(8)
    values = numbers(system, generator)

    def f(H: np.ndarray) -> np.ndarray:
        return np.broadcast_to(dense.evaluate(system.expression, {**values, "H": H}), H.shape)

    H = generator.normal(size=(7, 2))
    for _ in range(4):
        way = generator.normal(size=H.shape)
        slope = (energy(flow, H + 1e-5 * way, values) - energy(flow, H - 1e-5 * way, values)) / 2e-5
        assert slope == pytest.approx(-np.sum(f(H) * way), rel=1e-6, abs=1e-7)
    run = solve_ivp(
        lambda _, h: f(h.reshape(7, 2)).ravel(), (0, 0.4), H.ravel(), t_eval=np.linspace(0, 0.4, 30), rtol=1e-9
    )
    energies = np.array([energy(flow, h.reshape(7, 2), values) for h in run.y.T])
    assert (np.diff(energies) < 0).all()


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_gradient_says_why(text: str) -> None:
    flow = rd.theory.energy_law(text).gradient
    assert flow.energy is None
    assert OTHERS[text] in flow.reason


def test_a_matrix_that_is_not_symmetric_has_no_energy() -> None:
    """The Jacobian of A H W is symmetric for symmetric W alone."""
    W = np.array([[0.0, 1.0], [0.0, 0.0]])
    jacobian = np.kron(A, W.T)
    assert np.abs(jacobian - jacobian.T).max() > 0.1
    assert np.abs(np.kron(A, W + W.T) - np.kron(A, W + W.T).T).max() < 1e-12


def test_integrals_without_a_closed_form_are_named() -> None:
    flow = gradient_flow(rd.parse("-alpha*L@H + phi(H)"))
    assert flow.potential is None
    assert "integrals of phi(H)" in str(flow.energy)
