"""Steady states at kinks: their stability, against deviations that are integrated on a graph."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.systems.parser import parse
from rdgraph.theory.patterns.kinetics import system_kinetics
from tests.adversary import graphs
from tests.adversary.systems import Drawn, Field

SIZE = 1e-5


def growth(body: str, values: dict[str, float], start: np.ndarray, time: float = 12.0) -> float:
    """By how much a small deviation from 0 grows on a cycle of six."""
    field = Field(Drawn(body, tuple((n, "scalar") for n in sorted(values))), graphs.cycle(6), "row", values)
    flow = solve_ivp(lambda _, y: field(SIZE * y.reshape(6, 1)).ravel() / SIZE, (0, time), start, rtol=1e-8, atol=1e-10)
    return float(np.abs(flow.y[:, -1]).max() / np.abs(start).max())


@pytest.mark.parametrize(
    ("text", "fate", "values"),
    [
        ("-alpha*L@H - beta*H - abs(H)/2 where beta > 1", "stable", {"alpha": 0.7, "beta": 1.2}),
        ("-alpha*L@H - beta*abs(H)", "unstable", {"alpha": 1.0, "beta": 0.8}),
        ("alpha*L@H + relu(H) - beta*H where beta > 1 + 2*alpha", "stable", {"alpha": 0.4, "beta": 2.1}),
        ("-alpha*L@H + relu(A@H) - beta*H where beta < 1", "unstable", {"alpha": 1.0, "beta": 0.4}),
        ("-alpha*L@H - beta*relu(H)", "marginal", {"alpha": 1.0, "beta": 0.5}),
        ("beta*L@H - 4*(relu(H) - relu(-H)) where beta < 1", "stable", {"beta": 0.9}),
        ("-alpha*L@H + H*(1 - abs(H))", "unstable", {"alpha": 1.0}),
    ],
)
def test_the_stability_agrees_with_simulations(text: str, fate: str, values: dict[str, float]) -> None:
    answer = next(state for state in rd.steady_states(text) if state.values["H"] == 0)
    assert answer.stability == fate
    numeric = next(state for state in rd.steady_states(text, values) if state.values["H"] == 0)
    assert numeric.stability == fate
    rng = np.random.default_rng(0)
    body = text.partition(" where ")[0]
    mixed = max(growth(body, values, rng.normal(size=6)) for _ in range(5))
    equal = max(growth(body, values, np.full(6, side)) for side in (1.0, -1.0))
    if fate == "unstable":
        assert equal > 2
    else:
        assert max(mixed, equal) < (1e-2 if fate == "stable" else 1.01)


def test_the_larger_slope_decides_under_diffusion() -> None:
    """A slope of one half, the mean of both sides, would call the state stable where beta > 1/2."""
    state, family = rd.steady_states("-alpha*L@H + relu(H) - beta*H")
    assert (family.free, [str(c) for c in family.to_dict()["conditions"]]) == (("H",), ["Eq(beta, 1)", "H >= 0"])
    assert state.stability == "stable iff 1 - beta < 0"
    assert growth("-alpha*L@H + relu(H) - beta*H", {"alpha": 1.0, "beta": 0.75}, np.ones(6)) > 2


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("epsilon*L@H + kappa*relu(H/2) - (alpha + b)*H", None),
        ("c*L@H - delta*relu(alpha*H) - gamma*H where delta real", None),
        ("-alpha*L@H + relu(A@H) - beta*H", None),
        ("-alpha*L@H + abs(L@H) - beta*H", None),
        ("alpha*L@H + relu(H) - beta*H", {"alpha": 1, "beta": 2}),
    ],
)
def test_modes_that_have_both_slopes_at_once_are_undecided(text: str, values: dict[str, float] | None) -> None:
    assert rd.steady_states(text, values)[0].stability == "stability undecided"


def test_functions_of_differences_have_no_linearisation_anywhere() -> None:
    for text in ("-alpha*L@H + abs(L@H) - H", "-alpha*H + relu(A@H - H)"):
        assert system_kinetics(parse(text)).matrix[0, 0] is sp.nan
        for question in (lambda t: rd.dispersion(t, {"alpha": 1}), rd.turing):
            with pytest.raises(NotApplicable, match="no linearisation"):
                question(text)
    smooth = system_kinetics(parse("-alpha*L@H + abs(L@H)**2")).matrix[0, 0]
    assert not smooth.has(sp.nan)


def test_states_are_real_numbers_where_their_conditions_hold() -> None:
    answer = rd.steady_states("-a*L@H + b*cos(H) + 1.5 where a > b")
    assert [str(c) for state in answer for c in state.conditions] == ["4*b**2 - 9 >= 0"] * 2
    at = dict.fromkeys(("a", "b"), 4.0)
    for state in answer:
        value = float(state.values["H"].subs(at))
        assert 4.0 * np.cos(value) + 1.5 == pytest.approx(0, abs=1e-12)
