"""Closed flows of reactions: against an ODE solver, as groups, at rest, and refused where there is none."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.special import lambertw

import rdgraph as rd
from rdgraph.errors import NotApplicable

FLOWS: dict[str, tuple[str, list[float], dict[str, float]]] = {
    "F": ("F", [0.05, 0.5, 0.99, 1.7, 4.0], {"beta": 1.3}),
    "F backwards": ("F", [0.05, 0.5, 0.99], {"beta": -1.3}),
    "AC": ("AC", [-2.0, -0.4, 0.1, 0.9, 3.0], {"beta": 0.8}),
    "Z": ("Z", [0.05, 0.5, 0.99, 1.6, -0.3, -2.0], {"beta": 0.7}),
    "linear": ("-alpha*L@H + beta*H", [-1.0, 0.3], {"beta": 0.7}),
    "fifth power": ("beta*H - gamma*H**5", [-1.5, 0.3, 2.0], {"beta": 0.7, "gamma": 0.4}),
    "fourth power": ("beta*H - gamma*H**4", [0.2, 0.9, 1.5], {"beta": 0.7, "gamma": 0.4}),
    "decay": ("-beta*H - gamma*H**3", [-1.5, 0.3, 2.0], {"beta": 0.7, "gamma": 0.4}),
    "FB*": ("FB*", [0.4], {"beta": 0.6}),
}


@cache
def flow(name: str) -> Any:
    text = FLOWS[name][0]
    return rd.theory.reaction_flow(rd.parse(text, assume="beta<0") if name == "F backwards" else rd.parse(text))


def flow_value(name: str, start: float, time: float) -> float:
    _, _, values = FLOWS[name]
    exact = {n: sp.Rational(repr(v)) for n, v in {**values, "h0": start, "t": time}.items()}
    chosen = next(e for c, e in flow(name).branches if sp.sympify(c).subs(exact) == sp.true)
    value = complex(sp.N(chosen.subs(exact), 30))
    assert abs(value.imag) < 1e-15
    return value.real


@pytest.mark.parametrize("name", FLOWS)
def test_reaction_flows_against_an_ode_solver(name: str) -> None:
    _, starts, values = FLOWS[name]
    rate = sp.lambdify(sp.Symbol("h"), flow(name).rate.subs(values))
    for start in starts:
        solved = solve_ivp(lambda _, y: [rate(y[0])], (0, 1.5), [start], rtol=1e-11, atol=1e-13, method="DOP853").y[
            0, -1
        ]
        assert flow_value(name, start, 1.5) == pytest.approx(solved, rel=1e-9, abs=1e-11)
        assert flow_value(name, start, 0.0) == pytest.approx(start, rel=1e-13)


@pytest.mark.parametrize("name", FLOWS)
def test_reaction_flows_are_groups(name: str) -> None:
    for start in FLOWS[name][1]:
        once = flow_value(name, flow_value(name, start, 0.4), 0.7)
        assert once == pytest.approx(flow_value(name, start, 1.1), rel=1e-11)


def test_rest_states_stay() -> None:
    for name in ("F", "AC", "Z"):
        for rest in (0.0, 1.0):
            assert flow_value(name, rest, 2.0) == pytest.approx(rest, abs=1e-12)


def test_zeldovich_is_lamberts_function() -> None:
    y0 = (1 - 0.3) / 0.3
    expected = 1 / (1 + lambertw(y0 * np.exp(y0 - 0.7 * 1.2)).real)
    assert flow_value("Z", 0.3, 1.2) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("text", ["Nagumo", "ST", "-L@H + tanh(H)", "GRAND++", "-L@H + H**2 + H**3", "H*(A@H)"])
def test_flows_without_closed_form_are_refused(text: str) -> None:
    with pytest.raises(NotApplicable, match="no closed flow"):
        rd.theory.reaction_flow(rd.parse(text))


@pytest.mark.parametrize("text", ["-alpha*L@H + H**2", "-alpha*L@H - H**3", "-alpha*L@H + beta*H - beta*H + H**2"])
def test_pure_powers_are_solved_or_refused(text: str) -> None:
    """h' = c h^m has a closed flow; the answer must solve it."""
    try:
        answer = rd.theory.reaction_flow(rd.parse(text))
    except NotApplicable:
        return
    t, h0 = sp.Symbol("t"), sp.Symbol("h0")
    value = answer.expression.subs(h0, sp.Rational(1, 3))
    rate = answer.rate.subs(sp.Symbol("h"), value)
    assert abs(sp.N((sp.diff(value, t) - rate).subs(t, sp.Rational(1, 2)))) < 1e-12
