"""Filters of Runge-Kutta methods, against steps of dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import RK45

import rdgraph as rd
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import systems
from rdgraph.vocabulary.methods import Tableau, methods, tableau, z
from tests.property_examples import examples
from tests.rdgraph.theory.filter_cases import (
    END,
    GRAPHS,
    LAM,
    LINEAR,
    TAU,
    VALUES,
    dense_generators,
    draw_values,
    gains,
    operator,
    per_channel,
    unit_of_time,
)

INDEPENDENT: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "euler": (np.zeros((1, 1)), np.array([1.0])),
    "midpoint": (np.array([[0, 0], [0.5, 0]]), np.array([0.0, 1.0])),
    "heun": (np.array([[0, 0], [1.0, 0]]), np.array([0.5, 0.5])),
    "rk4": (
        np.array([[0, 0, 0, 0], [1 / 3, 0, 0, 0], [-1 / 3, 1, 0, 0], [1, -1, 1, 0]]),
        np.array([1, 3, 3, 1]) / 8,
    ),
    "rk4-classical": (
        np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]]),
        np.array([1, 2, 2, 1]) / 6,
    ),
    "dopri5": (np.hstack([RK45.A, np.zeros((6, 1))]), RK45.B),
}
ENDS = [(1.3, 0.4), (0.3, 0.5), (1.2, 0.4), (1.0, 0.3)]


def rk_step(field: Callable[[Any], Any], state: Any, size: float, weights: tuple[np.ndarray, np.ndarray]) -> Any:
    A, b = weights
    slopes: list[Any] = []
    for row in A:
        inner = sum((a * k for a, k in zip(row, slopes, strict=False)), 0 * state)
        slopes.append(field(state + size * inner))
    return state + size * sum(w * k for w, k in zip(b, slopes, strict=True))


def stepped(field: Callable[[Any], Any], state: Any, end: float, size: float, weights: Any) -> Any:
    """ceil(end/size) steps, the last shortened."""
    time = 0.0
    while end - time > 1e-12:
        now = min(size, end - time)
        state = rk_step(field, state, now, weights)
        time += now
    return state


def test_every_method_is_tested() -> None:
    assert set(INDEPENDENT) == set(methods)


@pytest.mark.parametrize("method", INDEPENDENT)
@pytest.mark.parametrize("name", LINEAR)
def test_runge_kutta_responses_are_what_stepping_gives(name: str, method: str) -> None:
    system = catalogue[name]
    values = {n: VALUES[n] for n in system.coefficients}
    for (end, size), graph in zip(ENDS, ("tree", "star", "grid", "random"), strict=True):
        A = operator(graph)
        n = len(A)
        mu, V = np.linalg.eigh(A)
        G, S = dense_generators(system, A, values)[0]
        expected = stepped(lambda H, G=G, S=S: G @ H + S, np.eye(n), end, size, INDEPENDENT[method])
        got = V @ np.diag(gains(system.response(T=end, method=method, step=size), 1 - mu, values)) @ V.T
        np.testing.assert_allclose(got, expected, atol=1e-11 * (1 + np.abs(expected).max()))


@settings(max_examples=examples(40))
@given(
    systems(linear=True),
    st.sampled_from(sorted(GRAPHS)),
    st.sampled_from(sorted(INDEPENDENT)),
    st.integers(0, 2**20),
    st.sampled_from([(0.7, 0.2), (0.05, 0.1), (0.6, 0.2)]),
)
def test_runge_kutta_responses_of_random_systems(
    system: System, graph: str, method: str, seed: int, times: tuple[float, float]
) -> None:
    A = operator(graph)
    values = draw_values(system, seed)
    end, size = (float(f"{t * unit_of_time(system, A, values):.6g}") for t in times)
    mu, V = np.linalg.eigh(A)
    symbolic = system.response(T=end, method=method, step=size)
    for channel, (G, S) in enumerate(dense_generators(system, A, values)):
        expected = stepped(lambda H, G=G, S=S: G @ H + S, np.eye(len(A)), end, size, INDEPENDENT[method])
        got = V @ np.diag(gains(symbolic, 1 - mu, per_channel(system, values, channel))) @ V.T
        scale = 1 + np.abs(expected).max()
        np.testing.assert_allclose(got / scale, expected / scale, atol=1e-10)


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
@pytest.mark.parametrize("name", ["BS", "ST", "FB*", "APPNP"])
def test_runge_kutta_responses_are_those_of_torchdiffeq(name: str, method: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no torchdiffeq to compare with")
    torchdiffeq = pytest.importorskip("torchdiffeq", reason="torchdiffeq is not installed")
    system = catalogue[name]
    values = {n: VALUES[n] for n in system.coefficients}
    A = operator("tree")
    mu, V = np.linalg.eigh(A)
    G, S = (torch.tensor(x, dtype=torch.float64) for x in dense_generators(system, A, values)[0])
    for end, size in ENDS:
        times = torch.tensor([0.0, end], dtype=torch.float64)
        start = torch.eye(len(A), dtype=torch.float64)
        field = lambda t, H: G @ H + S  # noqa: E731  torchdiffeq wants (t, H)
        answer = torchdiffeq.odeint(field, start, times, method=method, options={"step_size": size})[-1]
        got = V @ np.diag(gains(system.response(T=end, method=method, step=size), 1 - mu, values)) @ V.T
        np.testing.assert_allclose(got, answer.numpy(), atol=1e-11)


def test_symbolic_step_agrees_with_numbers() -> None:
    for name in ("BS", "ST"):
        general = catalogue[name].response(method="rk4")
        special = catalogue[name].response(T=sp.Rational(3, 2), method="rk4", step=sp.Rational(1, 2))
        point = {"alpha": sp.Rational(1, 2), "beta": sp.Rational(2, 3), "lam": sp.Rational(5, 4)}
        settled = general.subs({END: sp.Rational(3, 2), TAU: sp.Rational(1, 2)}).subs(point)
        assert sp.simplify(settled - special.subs(point)) == 0


def test_blur_then_sharpen_is_one_euler_step_not_the_flow() -> None:
    system = rd.parse("BS").replace(alpha=1, beta=1)
    assert sp.expand(system.response(T=1, method="euler", step=1)) == 1 - LAM**2
    assert system.response(T=1).subs(LAM, 2) == sp.exp(-4)


def order_residuals(method: Tableau) -> dict[str, sp.Expr]:
    """The rooted trees with at most four nodes: sum b_i Phi_i(tree) - 1/gamma(tree)."""
    s = len(method.weights)
    A = sp.Matrix(s, s, lambda i, j: method.stages[i][j] if j < i else 0)
    b, one = sp.Matrix(method.weights).T, sp.ones(s, 1)
    c = A * one
    square, cube = c.multiply_elementwise(c), c.multiply_elementwise(c).multiply_elementwise(c)
    elementary = {
        "1": (one, 1),
        "2": (c, 2),
        "3 bush": (square, 3),
        "3 chain": (A * c, 6),
        "4 bush": (cube, 4),
        "4 mixed": (c.multiply_elementwise(A * c), 8),
        "4 fork": (A * square, 12),
        "4 chain": (A * A * c, 24),
    }
    return {name: (b * weight)[0] - sp.Rational(1, gamma) for name, (weight, gamma) in elementary.items()}


@pytest.mark.parametrize("method", methods.values(), ids=lambda m: m.name)
def test_order_conditions_up_to_the_declared_order(method: Tableau) -> None:
    residuals = order_residuals(method)
    due = {name: r for name, r in residuals.items() if int(name[0]) <= method.order}
    assert set(due.values()) == {0}
    if method.order < 4:
        assert any(r != 0 for name, r in residuals.items() if int(name[0]) == method.order + 1)


@pytest.mark.parametrize("method", methods.values(), ids=lambda m: m.name)
def test_observed_order_on_a_nonlinear_equation(method: Tableau) -> None:
    """y' = y(1 - y) from 1/5, stepped with the package's own tableau."""
    s = len(method.weights)
    A = np.array([[float(method.stages[i][j]) if j < i else 0.0 for j in range(s)] for i in range(s)])
    weights = (A, np.array([float(w) for w in method.weights]))
    exact = 0.2 / (0.2 + 0.8 * np.exp(-2.0))
    errors = [abs(stepped(lambda y: y * (1 - y), 0.2, 2.0, size, weights) - exact) for size in (0.25, 0.125, 0.0625)]
    observed = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert abs(observed[-1] - method.order) < 0.35, observed


def test_the_declared_order_of_a_tableau_is_checked() -> None:
    half = sp.Rational(1, 2)
    with pytest.raises(rd.errors.RdgraphError, match="declares order 2"):
        Tableau("wrong", ((), (half,)), (half, half), 2)
    with pytest.raises(rd.errors.RdgraphError, match="stage i"):
        Tableau("implicit", ((half,),), (sp.S.One,), 1)


@pytest.mark.parametrize(
    ("name", "polynomial", "limit"),
    [
        ("euler", "1 + z", 2.0),
        ("midpoint", "1 + z + z**2/2", 2.0),
        ("heun", "1 + z + z**2/2", 2.0),
        ("rk4", "1 + z + z**2/2 + z**3/6 + z**4/24", 2.785293563405282),
        ("rk4-classical", "1 + z + z**2/2 + z**3/6 + z**4/24", 2.785293563405282),
        ("dopri5", "1 + z + z**2/2 + z**3/6 + z**4/24 + z**5/120 + z**6/600", 3.306567892634),
    ],
)
def test_stability_polynomials_and_real_limits(name: str, polynomial: str, limit: float) -> None:
    method = tableau(name)
    assert sp.expand(method.stability - sp.sympify(polynomial, locals={"z": z})) == 0
    assert float(method.real_limit) == pytest.approx(limit, abs=1e-11)
    R = sp.lambdify(z, method.stability)
    assert np.abs(R(-np.linspace(0, limit, 100_001))).max() <= 1 + 1e-10
    assert abs(R(-limit * 1.0001)) > 1


@pytest.mark.parametrize("name", methods)
def test_monotone_radius_makes_every_power_of_the_step_nonnegative(name: str) -> None:
    """R(-x + y) and (R - 1)/z have Taylor coefficients >= 0 at -x: for x up to the radius, not beyond."""
    method = tableau(name)
    radius = float(method.monotone_radius)
    pieces = [method.stability, sp.cancel((method.stability - 1) / z)]

    def lowest(x: float) -> float:
        shifted = [sp.Poly(sp.expand(piece.subs(z, z - sp.Rational(x))), z) for piece in pieces]
        return min(float(c) for polynomial in shifted for c in polynomial.all_coeffs())

    assert lowest(radius) >= -1e-12
    assert lowest(radius + 1e-3) < 0
