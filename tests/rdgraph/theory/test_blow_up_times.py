"""Blow-up and global existence: every claim held in simulation, every time of blow-up met by an ODE solver."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad, solve_ivp

import rdgraph as rd
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.theory.blowup import _quadrature
from rdgraph.theory.equality import dense_oracle as dense
from tests.rdgraph.theory.simulated_cases import at


def scalar_rate(system: System, values: dict[str, float]) -> Callable[[float], float]:
    """h' on states equal in all nodes, from the dense interpreter on one node with A = 1."""
    one = np.ones((1, 1))

    def rate(h: float) -> float:
        return float(
            np.asarray(dense.evaluate(system.expression, {"A": one, "H": h * one, "H0": one, **values})).item()
        )

    return rate


def escape_time(rate: Callable[[float], float], start: float, horizon: float, wall: float = 50.0) -> float:
    """Time to reach infinity: to the wall by an ODE solver, from there by quadrature; infinite beyond the horizon."""

    def beyond(_: float, y: np.ndarray) -> float:
        return wall - abs(y[0])

    beyond.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(lambda _, y: [rate(y[0])], (0, horizon), [start], rtol=1e-10, atol=1e-12, events=beyond)
    if not len(found.t_events[0]):
        return np.inf
    way = np.sign(found.y_events[0][0][0])
    # With u = 1/h the rest is an integral over (0, 1/wall].
    rest, _ = quad(lambda u: 1 / (u**2 * way * rate(way / u)), 0, 1 / wall)
    return float(found.t_events[0][0] + rest)


# ---------------------------------------------------------------------- blow-up
BLOW_UP: dict[str, tuple[str, tuple[str, ...], dict[str, float], list[float]]] = {
    "F": ("F", (), {"beta": 1.3}, [-0.2, -1.0, -3.0]),
    "F, beta<0": ("F", ("beta<0",), {"beta": -0.8}, [1.1, 2.0, 5.0]),
    "AC, beta<0": ("AC", ("beta<0",), {"beta": -0.8}, [1.2, -1.2, 3.0, -4.0]),
    "Z, beta<0": ("Z", ("beta<0",), {"beta": -0.8}, [1.2, 3.0, -0.4, -2.0]),
    "square": ("-alpha*L@H + H**2", (), {}, [0.5, 2.0]),
    "cube": ("-alpha*L@H + H**3 - H", (), {}, [1.3, -1.3, 4.0]),
    "three zeros": ("-alpha*L@H + (H - 1)*(H - 2)*(H - 3)", (), {}, [3.2, 5.0, 0.7, -2.0]),
    "square minus one": ("-alpha*L@H + H**2 - 1", (), {}, [1.2, 3.0]),
    "scaled": ("-alpha*L@H + gamma*H**2 - beta*H", (), {"beta": 0.7, "gamma": 1.9}, [0.5, 2.0]),
    "fourth": ("-alpha*L@H + beta*H**4", (), {"beta": 0.5}, [0.8, 2.0]),
    "through A": ("-H + A@(H**2)", (), {}, [1.3, 4.0]),
    "quintic": ("-alpha*L@H + beta*H**5", (), {"beta": 0.5}, [0.9, -0.9]),
}


@cache
def lives(name: str) -> Any:
    text, assume, _, _ = BLOW_UP[name]
    return rd.existence(rd.parse(text, assume=assume))


@pytest.mark.parametrize("name", BLOW_UP)
def test_blow_up_times_against_an_ode_solver(name: str) -> None:
    text, assume, values, starts = BLOW_UP[name]
    answer = lives(name)
    assert answer.outcome == "local"
    rate = scalar_rate(rd.parse(text, assume=assume), {"alpha": 1.0, **values})
    for start in starts:
        exact = {**values, "h0": start}
        fitting = [b for b in answer.blow_ups if b.condition is not None and bool(b.condition.subs(exact))]
        assert len(fitting) == 1, (start, [str(b) for b in answer.blow_ups])
        assert fitting[0].time is not None
        claimed = at(fitting[0].time, exact)
        assert claimed > 0
        assert escape_time(rate, start, 2 * claimed + 1) == pytest.approx(claimed, rel=1e-7)


@pytest.mark.parametrize("name", BLOW_UP)
def test_nothing_blows_up_outside_the_conditions(name: str) -> None:
    text, assume, values, _ = BLOW_UP[name]
    rate = scalar_rate(rd.parse(text, assume=assume), {"alpha": 1.0, **values})
    for start in np.linspace(-4, 4, 17):
        exact = {**values, "h0": float(start)}
        claimed = any(b.condition is not None and bool(b.condition.subs(exact)) for b in lives(name).blow_ups)
        if not claimed:
            assert escape_time(rate, float(start), 20.0) == np.inf, start


def test_known_blow_up_times() -> None:
    values = {"beta": 2.0, "h0": -0.5}
    assert at(lives("F").blow_ups[0].time, values) == pytest.approx(np.log(1 + 1 / 0.5) / 2)
    times = {b.way: b.time for b in lives("Z, beta<0").blow_ups}
    x, y = 1 / 0.5, 1 / 3.0
    assert at(times[-1], {"beta": -2.0, "h0": -0.5}) == pytest.approx((x - np.log(1 + x)) / 2)
    assert at(times[1], {"beta": -2.0, "h0": 3.0}) == pytest.approx((-y - np.log(1 - y)) / 2)
    times = {b.way: b.time for b in lives("AC, beta<0").blow_ups}
    for way in (1, -1):
        assert at(times[way], {"beta": -2.0, "h0": way * 1.5}) == pytest.approx(np.log(2.25 / 1.25) / 4)


# ---------------------------------------------------------------------- global existence
GLOBAL = [
    *(n for n in catalogue.single if n != "F"),
    "-alpha*L@H + beta*tanh(H)",
    "-alpha*L@H - beta*H**5 + gamma*H**2",
    "-alpha*L@H + beta*sin(H) + H",
    "-alpha*L@H + H/(1 + H**2)",
    "-alpha*L@H - beta*exp(H)",
    "-alpha*L@H + beta*H**2/(1 + H**2)",
    "tanh(A@H) - H",
    "H*tanh(A@H)",
    "-L@H + relu(H)",
    "-L@H + abs(H)*tanh(H)",
    "-alpha*L@H + beta*H*(1 - H)*(H - 2)",
    "-alpha*L@H - beta*relu(H)*H",
    "H0*(A@H)",
    "-L@H + H0*H",
]


@pytest.mark.parametrize("text", GLOBAL)
def test_global_is_never_contradicted(text: str) -> None:
    system = rd.parse(text)
    if rd.existence(system).outcome != "global":
        return
    generator = np.random.default_rng(1)
    graph = np.array([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]], dtype=float)
    for normalisation in ("row", "symmetric"):
        values: dict[str, Any] = dict.fromkeys(system.coefficients, 0.8)
        values |= {"A": dense_operator(graph, normalisation)}
        values |= {name: generator.normal(size=(1, 1)) * 0.3 for name in ("W", "V")}
        values["M"] = np.array([[1.0], [0.0], [1.0], [0.0]])
        for spread in (1.0, 10.0):
            start = generator.uniform(-spread, spread, (4, 1))

            def f(_: float, y: np.ndarray, values: Any = values, start: np.ndarray = start) -> np.ndarray:
                H = y.reshape(4, 1)
                return np.broadcast_to(
                    dense.evaluate(system.expression, {**values, "H": H, "H0": start}), H.shape
                ).ravel()

            solved = solve_ivp(f, (0, 2.0), start.ravel(), method="LSODA", rtol=1e-6, atol=1e-8)
            assert solved.success
            assert np.isfinite(solved.y).all()
            assert np.abs(solved.y[:, -1]).max() < 1e12


@pytest.mark.parametrize("text", ["AC", "Z", "Nagumo", "ACMP", "BS", "ST", "-alpha*L@H + beta*tanh(H)", "H*tanh(A@H)"])
def test_what_must_be_proved_global(text: str) -> None:
    assert rd.existence(rd.parse(text)).outcome == "global"


def test_exponential_reactions() -> None:
    answer = rd.existence(rd.parse("-alpha*L@H + beta*exp(H)"))
    assert answer.outcome == "local"
    path = solve_ivp(lambda _, y: 0.5 * np.exp(y), (0, 2 - 1e-3), [0.0], rtol=1e-10, atol=1e-12).y[0]
    assert path[-1] == pytest.approx(np.log(2000), rel=1e-6)
    assert answer.blow_ups[0].way == 1


@pytest.mark.parametrize("text", ["-L@H + sqrt(H)", "-L@H + 1/H", "-L@H + H/(1 - H)"])
def test_singular_fields_are_not_called_global(text: str) -> None:
    assert rd.existence(rd.parse(text)).outcome == "undecided"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("H**2 - H0**2", "global"),  # rests at its start
        ("exp(H) - exp(H0)", "global"),
        ("-L@H + H**2 - H0**2", "undecided"),  # states equal in all nodes rest
        ("-alpha*L@H + beta*H*(1 - H) + gamma*H0", "local"),
        ("H**3 - H0**2", "local"),
    ],
)
def test_a_source_starts_where_the_state_starts(text: str, status: str) -> None:
    assert rd.existence(rd.parse(text)).outcome == status


def test_quadrature_goes_beyond_the_largest_double() -> None:
    """The time from 1 under h' = c h**31 is 1/(30 c); the largest h of the rule overflows when raised to 31."""
    x = sp.Symbol("x", positive=True)
    assert _quadrature(sp.Rational(1, 8) * x**31, x, 1.0) == pytest.approx(8 / 30, rel=1e-6)
