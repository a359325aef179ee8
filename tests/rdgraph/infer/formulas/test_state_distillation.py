"""Formulas from states: the weak form and the flow against the truth, recovery with noise, refusals."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.infer.formulas.flow_fits import (
    FlowFit,
    FlowProblem,
    UnknownFunction,
    affine_terms,
    noise_level,
    smooth_states,
    spline_function,
    weak_form,
)
from rdgraph.infer.formulas.formula_search import Effort

GRAPH = rd.Graph.from_networkx(nx.watts_strogatz_graph(16, 4, 0.3, seed=1))
OPERATOR = GRAPH.operator(dtype=torch.float64)
EQUATION = "-alpha*L@H + phi(H)"
TIMES = np.linspace(0, 3, 31)
QUICK = Effort(population=40, generations=3)


def states_of(formula: str, values: dict[str, float], noise: float = 0.0, width: int = 1) -> np.ndarray:
    start = torch.as_tensor(np.random.default_rng(2).uniform(-1.3, 1.3, (16, width)))
    field = rd.lower(f"-alpha*L@H + {formula}", OPERATOR, values)
    clean = rd.solve(field, start, torch.as_tensor(TIMES), "dopri5", rtol=1e-9, atol=1e-11).states.numpy()
    return clean + noise * np.random.default_rng(3).standard_normal(clean.shape)


def test_the_weak_form_holds_along_clean_states() -> None:
    seen = states_of("beta*H*(1 - H**2)", {"alpha": 0.4, "beta": 1.1})
    smooth = smooth_states(TIMES, seen.reshape(31, -1))
    known, terms = UnknownFunction.of(EQUATION, "phi").terms(OPERATOR, smooth.states[..., None], seen[0])
    form = weak_form(smooth, known[..., 0], terms[..., 0])
    x = smooth.states
    assert form.coefficients(1.1 * x * (1 - x**2)) == pytest.approx([0.4], abs=2e-3)
    points, values, left = spline_function(form)
    inside = np.abs(points) < 1.0
    np.testing.assert_allclose(values[inside], (1.1 * points * (1 - points**2))[inside], atol=0.02)
    assert left < 1e-3


def test_noise_is_measured_from_neighbours_in_time() -> None:
    seen = states_of("beta*H*(1 - H**2)", {"alpha": 0.4, "beta": 1.1}, noise=0.02)
    assert noise_level(TIMES, seen.reshape(31, -1)) == pytest.approx(0.02, rel=0.1)
    uneven = np.sort(np.random.default_rng(0).uniform(0, 3, 60))
    wave = np.sin(uneven)[:, None] + 0.01 * np.random.default_rng(1).standard_normal((60, 30))
    assert noise_level(uneven, wave) == pytest.approx(0.01, rel=0.15)


@pytest.mark.parametrize("width", [2])
def test_the_quick_flow_is_that_of_solve_and_its_slopes_are_differences(width: int) -> None:
    seen = states_of("beta*tanh(gamma*H)", {"alpha": 0.4, "beta": 1.1, "gamma": 1.7}, width=width)
    terms = affine_terms(UnknownFunction.of(EQUATION, "phi"), OPERATOR, width)
    assert terms is not None
    problem = FlowProblem(terms, seen, TIMES, fixed=False)
    word = ("*", "c", "tanh", "*", "c", "x")
    truth = FlowFit(np.array([0.4]), np.array([1.1, 1.7]), seen[0], np.inf)
    made = problem.run(word, truth)
    assert made is not None
    np.testing.assert_allclose(made[0], seen, atol=2e-4)
    for k, step in ((0, FlowFit(np.array([0.4 + 1e-5]), truth.constants, seen[0], np.inf)),
                    (2, FlowFit(truth.coefficients, np.array([1.1, 1.7 + 1e-5]), seen[0], np.inf))):  # fmt: skip
        moved = problem.run(word, step, sensitive=False)
        assert moved is not None
        np.testing.assert_allclose(made[1][..., k], (moved[0] - made[0]) / 1e-5, rtol=1e-3, atol=1e-3)
    away = FlowFit(np.array([0.6]), np.array([0.8, 1.2]), seen[0] + 0.05, np.inf)
    end = problem.fit(word, away)
    assert end.coefficients == pytest.approx([0.4], abs=2e-3)
    assert end.constants == pytest.approx([1.1, 1.7], abs=5e-3)


@pytest.mark.slow
def test_a_reaction_is_recovered_from_noisy_states() -> None:
    seen = states_of("beta*H*(1 - H**2)", {"alpha": 0.3, "beta": 1.2}, noise=0.008)
    found = rd.infer.distil(seen, TIMES, GRAPH, EQUATION, effort=QUICK, functions=("sin",), level=None)
    assert found.formula in ("beta*(H - H**3)", "beta*H*(1 - H**2)")
    assert found.values == pytest.approx({"alpha": 0.3, "beta": 1.2}, rel=0.05)
    assert found.noise == pytest.approx(0.008, rel=0.15)
    assert found.system is not None
    assert rd.existence(found.system).outcome == "global"
    np.testing.assert_allclose(found(np.array([0.5])), [1.2 * 0.375], rtol=0.05)
    assert min(row.size for row in found.tried) <= 10
    assert "phi = " in str(found)


@pytest.mark.slow
def test_the_lack_of_a_small_formula_is_reported() -> None:
    seen = states_of("beta*sin(4*H)*H + beta*H**2", {"alpha": 0.3, "beta": 0.8}, noise=0.004)
    found = rd.infer.distil(seen, TIMES, GRAPH, EQUATION, max_size=5, effort=QUICK, functions=())
    assert found.formula is None
    assert found.values == {}
    assert found.answer.startswith("no formula of size <= 5 within 1.25 times the noise")
    with pytest.raises(NotApplicable, match="expected a formula, got none"):
        found(0.5)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("-alpha*L@H + phi(A@H)", "to be added once"),
        ("-alpha*L@H + phi(H)**2", "to be added once"),
        ("-alpha*L@H + 2*phi(H)", "to be added once"),
        ("-alpha*L@H", r"expected phi\(H\)"),
        ("u' = phi(u) - v; v' = u", "one field"),
        ("-a*L@H + phi(H) where a channel", "scalar coefficients"),
    ],
)
def test_equations_of_another_form_are_refused(equation: str, message: str) -> None:
    with pytest.raises((NotApplicable, InvalidArgument), match=message):
        UnknownFunction.of(equation, "phi")


@pytest.mark.parametrize(
    ("words", "message"),
    [({"functions": ["gelu"]}, "gelu"), ({"max_size": 0}, "max_size >= 1"), ({"within": 0.0}, "within > 0")],
)
def test_searches_that_make_no_sense_are_refused(words: dict[str, Any], message: str) -> None:
    states, times = np.random.default_rng(0).random((12, 4)), np.linspace(0, 1, 12)
    with pytest.raises((InvalidArgument, UnknownName), match=message):
        rd.infer.distil(states, times, nx.path_graph(4), "-alpha*L@H + phi(H)", **words)


def test_too_little_to_smooth_is_refused() -> None:
    seen = states_of("beta*H", {"alpha": 0.4, "beta": 0.1})
    seen[5:, 3] = np.nan
    with pytest.raises(InvalidArgument, match="at least 8 times, got 5"):
        rd.infer.distil(seen, TIMES, GRAPH, EQUATION)
    with pytest.raises(InvalidArgument, match="shape"):
        rd.infer.distil(seen[:, :4], TIMES, GRAPH, EQUATION)
    with pytest.raises(NotApplicable, match="linear in alpha"):
        rd.infer.distil(states_of("beta*H", {"alpha": 0.4, "beta": 0.1}), TIMES, GRAPH, "-alpha**2*L@H + phi(H)")


@pytest.mark.deep
@pytest.mark.slow
def test_terms_that_are_not_affine_are_fitted_the_slow_way() -> None:
    start = torch.as_tensor(np.random.default_rng(2).uniform(0.1, 1.2, (16, 1)))
    field = rd.lower("alpha*H*(A@H) + beta*H*(1 - H)*0 - beta*H**2", OPERATOR, {"alpha": 0.4, "beta": 1.2})
    clean = rd.solve(field, start, torch.as_tensor(TIMES), "dopri5", rtol=1e-9, atol=1e-11).states.numpy()
    seen = clean + 0.003 * np.random.default_rng(3).standard_normal(clean.shape)
    found = rd.infer.distil(seen, TIMES, GRAPH, "alpha*H*(A@H) + phi(H)", effort=QUICK, functions=(), level=None)
    assert found.formula == "-beta*H**2"
    assert found.values == pytest.approx({"alpha": 0.4, "beta": 1.2}, rel=0.1)
