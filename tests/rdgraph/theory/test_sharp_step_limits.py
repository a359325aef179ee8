"""Step limits: Euler steps that keep the box and linear stability, every limit shown to be sharp."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

import rdgraph as rd
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.vocabulary.methods import methods
from tests.rdgraph.theory.simulated_cases import BOXES, at, box_of, coefficients_of

# ---------------------------------------------------------------------- Euler steps that keep the box
STEPPED = ["F", "AC", "Z", "F, beta<0", "AC, beta<0", "Z, beta<0", "Nagumo", "shifted", "two hops", "cubic"]


@cache
def euler_limit(name: str, normalisation: str) -> Any:
    text, assume = BOXES[name]
    return rd.step_limit(rd.parse(text, assume=assume), "euler", normalisation)


def overshoot(
    system: System, values: dict[str, float], lower: float, upper: float, step: float, reach: float = 1.0
) -> float:
    """Largest exit of one Euler step over own values h and neighbour averages in the box (scaled by row sums)."""
    own = np.linspace(lower, upper, 2001)[None, :]
    worst = -np.inf
    for average in (lower, upper, (lower + upper) / 2):
        # Two rows: a node with value h and no self-loop, and the neighbour it sees through A = [[0, reach], ...].
        H = np.vstack([own, np.full_like(own, average)])
        A = np.array([[0.0, reach], [0.0, 1.0]])
        after = (H + step * dense.evaluate(system.expression, {"A": A, "H": H, "H0": H, **values}))[0]
        worst = max(worst, float((after - upper).max()), float((lower - after).max()))
    return worst


@pytest.mark.parametrize("name", STEPPED)
def test_euler_limits_keep_the_box_and_are_sharp(name: str) -> None:
    text, assume = BOXES[name]
    system, limit, box = rd.parse(text, assume=assume), euler_limit(name, "row"), box_of(name, "row")
    assert limit.value is not None, limit.reason
    assert limit.keeps == "box"
    generator = np.random.default_rng(8)
    for _ in range(6):
        values = coefficients_of(system, generator)
        lower, upper, step = at(box.lower, values), at(box.upper, values), at(limit.value, values)
        assert step > 0
        assert overshoot(system, values, lower, upper, step) < 1e-9
        assert overshoot(system, values, lower, upper, 1.02 * step) > 1e-7


@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_symmetric_euler_limits_keep_the_box(name: str) -> None:
    system, limit, box = catalogue[name], euler_limit(name, "symmetric"), box_of(name, "symmetric")
    assert limit.value is not None, limit.reason
    generator = np.random.default_rng(9)
    for s in (1.0, 1.5, 3.0, 8.0):
        values = coefficients_of(system, generator)
        known = {**values, "s": s}
        lower, upper, step = at(box.lower, known), at(box.upper, known), at(limit.value, known)
        assert overshoot(system, values, lower, upper, step, reach=s) < 1e-9
        assert overshoot(system, values, lower, upper, 1.02 * step, reach=s) > 1e-7


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("F", lambda a, b: a + b), ("Z", lambda a, b: a + b), ("AC", lambda a, b: a + 2 * b),
        ("F, beta<0", lambda a, b: a - b), ("Z, beta<0", lambda a, b: a - b / 4),
        ("AC, beta<0", lambda a, b: a - b / 4),
    ],
)  # fmt: skip
def test_known_euler_limits(name: str, rate: Callable[[float, float], float]) -> None:
    sign = -1 if "<" in name else 1
    for alpha, beta in ((1.0, 1.0), (0.3, 2.0), (2.0, 0.1)):
        got = at(euler_limit(name, "row").value, {"alpha": alpha, "beta": sign * beta})
        assert 1 / got == pytest.approx(rate(alpha, sign * beta))


def test_trajectories_stay_inside_at_the_limit() -> None:
    """On K2, stepping for long at the limit; just above it some state leaves at once."""
    K2 = np.array([[0.0, 1.0], [1.0, 0.0]])
    for name in ("F", "AC", "Z"):
        system, values = catalogue[name], {"alpha": 0.7, "beta": 1.1}
        step, box = at(euler_limit(name, "row").value, values), box_of(name, "row")
        lower, upper = float(box.lower), float(box.upper)
        H = np.random.default_rng(2).uniform(lower, upper, (2, 4000))
        for _ in range(50):
            H = H + step * dense.evaluate(system.expression, {"A": K2, "H": H, **values})
            assert lower - 1e-9 <= H.min() <= H.max() <= upper + 1e-9


# ---------------------------------------------------------------------- linear stability
LINEAR = {
    "diffusion": {"alpha": 0.7}, "BS": {"alpha": 1.0, "beta": 0.6}, "FB": {"alpha": 1.2, "beta": 0.3},
    "FB*": {"alpha": 1.2, "beta": 0.1}, "APPNP": {"alpha": 0.4, "beta": 0.9},
    "SGC": {}, "GRAND-l": {}, "ST": {"alpha": 0.5, "beta": 1.0},
    "-alpha*L@L@H": {"alpha": 0.8}, "-alpha*L@H - beta*H": {"alpha": 0.8, "beta": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("method", methods)
@pytest.mark.parametrize("text", LINEAR)
def test_linear_limits_are_sharp_on_two_nodes(text: str, method: str) -> None:
    """K2 has the eigenvalues 0 and 2: modes that the flow damps are damped up to the limit, not beyond."""
    system, values = rd.parse(text), LINEAR[text]
    limit = rd.step_limit(system, method)
    assert limit.value is not None
    size = at(limit.value, values)
    K2, unit, zero = np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2), np.zeros((2, 2))
    G = dense.evaluate(system.expression, {"A": K2, "H": unit, "H0": zero, **values})
    damped = np.array([g for g in np.linalg.eigvalsh(G) if g <= 1e-12])
    polynomial = methods[method].stability
    R = sp.lambdify(sorted(polynomial.free_symbols, key=str), polynomial)
    assert np.abs(R(size * damped)).max() <= 1 + 1e-9
    assert np.abs(R(1.01 * size * damped)).max() > 1


@pytest.mark.parametrize(("ratio", "stable"), [(0.5, True), (1.0, True), (1.5, False)])
def test_growth_of_the_flow_is_reported(ratio: float, stable: bool) -> None:
    limit = rd.step_limit(rd.parse("BS", assume="beta <= alpha") if stable else rd.parse("BS"))
    assert ("grows" in limit.reason) == (not stable)
    assert at(limit.value, {"alpha": 1.0, "beta": ratio}) == pytest.approx(1 / (1 + ratio))


def test_nothing_to_damp_is_no_limit() -> None:
    assert rd.step_limit(rd.parse("alpha*L@H")).value == sp.oo
    backward = rd.step_limit(rd.parse("FB")).value
    assert backward.subs({"alpha": 1, "beta": 2}) == sp.oo
    assert backward.subs({"alpha": 1, "beta": 1}) == sp.oo
    assert backward.subs({"alpha": 2, "beta": 1}) == 1


@pytest.mark.parametrize("method", ["midpoint", "rk4", "dopri5"])
@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_limits_at_the_constant_states(name: str, method: str) -> None:
    """The step map's Jacobian on K2 at the attracting states: spectral radius 1 at the limit, more beyond it."""
    system, values = catalogue[name], {"alpha": 0.9, "beta": 0.7}
    limit = rd.step_limit(system, method, "row")
    assert limit.value is not None
    size = at(limit.value, values)
    K2, polynomial = np.array([[0.0, 1.0], [1.0, 0.0]]), methods[method].stability
    R = sp.lambdify(sorted(polynomial.free_symbols, key=str), polynomial)
    rates = []
    for state in {"F": [1.0], "AC": [1.0, -1.0], "Z": [0.0, 1.0]}[name]:
        bumps = [
            dense.evaluate(system.expression, {"A": K2, "H": state + e * np.eye(2), **values}) for e in (1e-6, -1e-6)
        ]
        rates += list(np.linalg.eigvalsh((bumps[0] - bumps[1]) / 2e-6))
    rates = np.minimum(np.array(rates), 0)
    assert np.abs(R(size * rates)).max() <= 1 + 1e-7
    assert np.abs(R(1.01 * size * rates)).max() > 1


def test_no_stability_limit_without_a_symbol() -> None:
    limit = rd.step_limit(rd.parse("-L@H + H@W"))
    assert limit.keeps == "distances"
    assert str(limit.rate) == "norm_W"
    undecided = rd.step_limit(rd.parse("-L@H + H@W"), "midpoint")
    assert undecided.value is None
    assert "midpoint does not damp" in undecided.reason or "generator plus entrywise" in undecided.reason
