"""Existence of random equations and on graphs: blow-up exactly where it is predicted, against ODE solvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad, solve_ivp

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.systems.system import System
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.theory.global_existence import Existence
from tests.rdgraph.theory.existence_answers import applies, existence, texts

# ---------------------------------------------------------------------- random equations against an ODE solver
WALL, FAR = 40.0, 300.0


def scalar_rate(system: System, values: dict[str, float], start: float) -> Callable[[float], float]:
    """h' of one entry, from the dense interpreter."""
    one = np.ones((1, 1))
    filled = {"A": one, "H0": start * one, **values}

    def rate(state: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.asarray(dense.evaluate(system.expression, {**filled, "H": state * one})).item())

    return rate


def escape(rate: Callable[[float], float], start: float, horizon: float) -> tuple[int, float]:
    """(way, time) of the escape to infinity, (0, inf) where the wall is not reached."""

    def beyond(_: float, y: np.ndarray) -> float:
        return max(WALL, 2 * abs(start)) - abs(y[0])

    beyond.terminal = True  # type: ignore[attr-defined]
    path = solve_ivp(
        lambda _, y: [rate(y[0])], (0, horizon), [start], method="LSODA", rtol=1e-9, atol=1e-11, events=beyond
    )
    if not len(path.t_events[0]):
        return 0, np.inf
    end = path.y_events[0][0][0]
    way = int(np.sign(end))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rest, _ = quad(lambda u: abs(end) / (u**2 * way * rate(end / u)), 0, 1)
    return way, float(path.t_events[0][0] + rest)


POLYNOMIAL = ["H", "H**2", "H**3", "1", "H**4"]
OTHERS = [
    "exp(H)", "exp(-H)", "tanh(H)", "relu(H)**2", "H*abs(H)", "sqrt(1 + H**2)", "H*sqrt(1 + H**2)",
    "H**3/(1 + H**2)", "softplus(H)", "H**4/(1 + H**2)",
]  # fmt: skip
SIGNS = ["positive", "real", "nonnegative", "negative"]


@cache
def random_system(seed: int) -> System:
    """A sum of two or three terms, coefficients of random signs, every third one not a polynomial."""
    generator = np.random.default_rng(seed)
    pool = list(generator.choice(POLYNOMIAL, size=2, replace=False))
    if seed % 3 == 0:
        pool[0] = str(generator.choice(OTHERS))
    if seed % 2 == 0:
        pool.append(str(generator.choice([term for term in ["H", "H**2", "1"] if term not in pool])))
    letters = ["beta", "gamma", "1/2"][: len(pool)]
    notes = [f"{x} {generator.choice(SIGNS)}" for x in letters if x != "1/2"]
    body = " + ".join(f"{c}*{term}" for c, term in zip(letters, pool, strict=True))
    return rd.parse(f"{body} + 0*H where {', '.join(notes)}")


def random_values(system: System, generator: np.random.Generator) -> dict[str, float]:
    values = {}
    for name in system.coefficients:
        size = float(np.round(generator.uniform(0.3, 2.0), 2))
        sign = system.assumptions.sign(name)
        values[name] = {"negative": -size, "real": float(generator.choice([-1, 1])) * size}.get(sign, size)
    return values


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_random_scalar_equations(seed: int) -> None:
    system = random_system(seed)
    answer = rd.existence(system)
    generator = np.random.default_rng(1000 + seed)
    for _ in range(2):
        values = random_values(system, generator)
        for start in generator.uniform(-3, 3, 4).round(2):
            check_start(system, answer, values, float(start))
        for u in answer.blow_ups:
            if u.condition is None and applies(u, values):
                assert escape(scalar_rate(system, values, u.way * FAR), u.way * FAR, 5.0)[0] == u.way, str(system)


def check_start(system: System, found: Existence, values: dict[str, float], start: float) -> None:
    rate = scalar_rate(system, values, start)
    named = {**values, "h0": start}
    claims = [u for u in found.blow_ups if u.condition is not None and applies(u, named)]
    open_ways = {u.way for u in found.blow_ups if u.condition is None and applies(u, values)}
    reason = (str(system), values, start, texts(found))
    assert len(claims) <= 1, reason
    if not claims:
        way, _ = escape(rate, start, 8.0)
        # Large values that grow no faster than exponentially reach the wall too: their integral does not converge.
        assert way == 0 or way in open_ways or found.outcome != "local" or not diverges(rate, way), reason
        assert found.outcome != "global" or way == 0 or not diverges(rate, way), reason
        return
    (claim,) = claims
    if claim.time is not None:
        expected = float(
            sp.N(claim.time.subs({sp.Symbol(k): sp.nsimplify(v, rational=True) for k, v in named.items()}))
        )
        assert escape(rate, start, 2 * expected + 1) == (claim.way, pytest.approx(expected, rel=1e-5)), reason
    else:
        path = start + claim.way * np.geomspace(1e-9, 30, 400)
        assert all(claim.way * rate(x) > 0 for x in (start, *path)), reason


def diverges(rate: Callable[[float], float], way: int) -> bool:
    """Whether the rate outgrows every line: its value over h rises without end."""
    quotients = [way * rate(way * x) / x for x in (1e2, 1e3)]
    return bool(quotients[1] > 3 * max(quotients[0], 0.1))


# ---------------------------------------------------------------------- graphs
GRAPHS = {
    "isolated node": np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=float),
    "directed": np.array([[0, 3, 0, 0], [0, 0, 1, 0], [1, 0, 0, 2], [0, 0, 0.5, 0]], dtype=float),
}
GLOBAL = [
    "-alpha*L@H + M*H**3 - H**3", "-H**3 + A@(H**2)", "-H**3 + H*(A@H)", "alpha*L@H + k*H - H**5 where k node, k real",
    "H*(A@H)/(1 + H**2)", "-alpha*L@H - relu(H)**2 + relu(-H)**2", "exp(tanh(A@H)) + H0*H", "(A@H0)*H - H**3",
]  # fmt: skip


@pytest.mark.parametrize("text", GLOBAL)
@pytest.mark.parametrize("graph", GRAPHS)
def test_global_holds_on_graphs(text: str, graph: str) -> None:
    system = rd.parse(text)
    assert rd.existence(system).outcome == "global"
    generator = np.random.default_rng(5)
    for normalisation in ("row", "column"):
        start = generator.uniform(-6, 6, (4, 1))
        values: dict[str, Any] = {
            "A": dense_operator(GRAPHS[graph], normalisation), "H0": start, "alpha": 0.7,
            "M": np.array([[1.0], [0.0], [0.0], [1.0]]), "k": generator.normal(size=(4, 1)),
        }  # fmt: skip

        def f(_: float, y: np.ndarray, values: dict[str, Any] = values) -> np.ndarray:
            return np.asarray(dense.evaluate(system.expression, {**values, "H": y.reshape(4, 1)})).ravel()

        solved = solve_ivp(f, (0, 3.0), start.ravel(), method="LSODA", rtol=1e-6, atol=1e-8)
        assert solved.success
        assert np.abs(solved.y[:, -1]).max() < 1e10


def test_an_isolated_node_blows_up_at_the_predicted_time() -> None:
    found = existence("L@(H**2)")
    operator = dense_operator(GRAPHS["isolated node"], "row")
    start = np.array([[0.1], [0.1], [0.1], [0.5]])
    assert [u.time.subs(sp.Symbol("h0"), sp.Rational(1, 2)) for u in found.blow_ups if u.time is not None] == [2]

    def f(_: float, y: np.ndarray) -> np.ndarray:
        values = {"A": operator, "H": y.reshape(4, 1)}
        return np.asarray(dense.evaluate(rd.parse("L@(H**2)").expression, values)).ravel()

    path = solve_ivp(f, (0, 2 - 1e-3), start.ravel(), rtol=1e-10, atol=1e-12).y
    assert path[3, -1] == pytest.approx(1000, rel=1e-5)


def test_states_equal_in_all_nodes_blow_up_as_predicted() -> None:
    found = existence("-alpha*L@H + k*H*(A@H) - H where k node")
    operator = dense_operator(GRAPHS["directed"], "row")
    (claim,) = found.blow_ups
    expected = float(claim.time.subs({sp.Symbol("k"): 2, sp.Symbol("h0"): sp.Rational(3, 4)}))  # type: ignore[union-attr]
    system = rd.parse("-alpha*L@H + k*H*(A@H) - H where k node")

    def f(_: float, y: np.ndarray) -> np.ndarray:
        values = {"A": operator, "H": y.reshape(4, 1), "alpha": 1.3, "k": np.full((4, 1), 2.0)}
        return np.asarray(dense.evaluate(system.expression, values)).ravel()

    path = solve_ivp(f, (0, expected - 1e-4), np.full(4, 0.75), rtol=1e-11, atol=1e-12).y
    assert path[:, -1] == pytest.approx(np.full(4, 1 / 2e-4), rel=1e-2)
