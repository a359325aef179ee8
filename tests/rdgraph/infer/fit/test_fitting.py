"""Coefficients from observed states: derivatives, recovery, intervals against an independent scan, refusals."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import t as student

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.infer.fit.least_squares import Residuals, Unknowns
from rdgraph.infer.fit.observations import read_observations

GRAPH = rd.Graph.from_networkx(nx.path_graph(5))
TIMES = np.array([0.0, 0.3, 0.45, 1.1, 1.6])


def states_of(text: str, values: dict[str, Any], normalisation: str = "symmetric", width: int = 1) -> np.ndarray:
    operator = GRAPH.operator(normalisation, dtype=torch.float64)
    start = torch.linspace(0.1, 0.9, 5 * width, dtype=torch.float64).reshape(5, width)
    field = rd.lower(text, operator, values)
    found = rd.solve(field, start, torch.from_numpy(TIMES), "rk4", step=0.01)
    return found.states.numpy()


@pytest.mark.parametrize(
    ("text", "method"),
    [("BS", {"method": "exact"}), ("F", {"method": "dopri5", "rtol": 1e-8}), ("AC", {"method": "rk4", "step": 0.1})],
)
@pytest.mark.parametrize("known", [True, False])
def test_derivatives_are_those_of_differences(text: str, method: dict[str, Any], known: bool) -> None:
    system = rd.parse(text)
    seen = states_of(text, {"alpha": 0.5, "beta": 1.2})
    observed = read_observations(system, seen, TIMES, 5)
    unknowns = Unknowns.of(system, ["alpha", "beta"], 5, 1, 0 if known else 5)
    operator = GRAPH.operator("symmetric", dtype=torch.float64)
    initial = torch.from_numpy(seen[0]) if known else None
    residuals = Residuals(system, operator, observed, unknowns, {}, initial, method)
    rows = torch.tensor([[-0.7, 0.2], [0.1, -0.4]], dtype=torch.float64)
    if not known:
        rows = torch.cat([rows, torch.from_numpy(seen[0]).ravel().expand(2, -1)], -1)
    found = residuals.derivatives(rows)
    for place in range(unknowns.total):
        moved = torch.zeros_like(rows)
        moved[:, place] = 1e-4
        above, below = residuals.of(rows + moved, observed.values), residuals.of(rows - moved, observed.values)
        torch.testing.assert_close(found[..., place], (above - below) / 2e-4, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "values", "normalisation"),
    [
        ("BS", {"alpha": 0.7, "beta": 1.3}, "symmetric"),
        ("F", {"alpha": 0.4, "beta": 1.5}, "row"),
        ("beta*(1 - H)*(A@H) - gamma*H", {"beta": 0.8, "gamma": 0.3}, "none"),
        ("-alpha*L@H + b*tanh(H) where b real", {"alpha": 0.4, "b": -1.5}, "symmetric"),
    ],
)
def test_without_noise_the_coefficients_come_back(text: str, values: dict[str, float], normalisation: str) -> None:
    seen = states_of(text, values, normalisation)
    found = rd.fit(text, seen, TIMES, graph=GRAPH, normalisation=normalisation, initial=seen[0], starts=4, level=None)
    assert found.values == pytest.approx(values, rel=1e-4)
    assert found.intervals is None
    assert found.settled


def test_an_interval_is_where_the_profile_crosses_the_border() -> None:
    """One coefficient, so that the profile is the sum of squares itself: scanned here with scipy alone."""
    rng = np.random.default_rng(3)
    start = np.array([0.2, 0.5, 1.5, 0.9, 0.05])
    truth = 0.8

    def run(beta: float) -> np.ndarray:
        made = solve_ivp(lambda _t, h: beta * h * (1 - h), (0, TIMES[-1]), start, t_eval=TIMES, rtol=1e-10, atol=1e-12)
        return made.y.T

    seen = run(truth) + 0.05 * rng.standard_normal((5, 5))
    seen[2, 1] = np.nan

    def squares(beta: float) -> float:
        return float(np.nansum((run(beta) - seen) ** 2))

    best = minimize_scalar(squares, bracket=(0.5, 1.2), tol=1e-10)
    freedom = 24 - 1
    border = best.fun * (1 + student.ppf(0.975, freedom) ** 2 / freedom)
    low, high = (brentq(lambda b: squares(b) - border, *sides) for sides in ((0.01, best.x), (best.x, 4.0)))
    found = rd.fit("beta*H*(1 - H)", seen, TIMES, graph=GRAPH, initial=start, starts=2)
    assert found.values["beta"] == pytest.approx(best.x, rel=1e-4)
    assert found.sigma == pytest.approx((best.fun / freedom) ** 0.5, rel=1e-5)
    assert found.intervals is not None
    width = high - low
    assert found.intervals["beta"][0] == pytest.approx(low, abs=0.01 * width)
    assert found.intervals["beta"][1] == pytest.approx(high, abs=0.01 * width)
    assert found.identifiable == {"beta": True}
    known = rd.fit("beta*H*(1 - H)", seen, TIMES, graph=GRAPH, initial=start, starts=2, sigma=0.05)
    border = best.fun + (1.959964 * 0.05) ** 2
    assert known.intervals is not None
    assert squares(known.intervals["beta"][0]) == pytest.approx(border, rel=2e-3)
    assert squares(known.intervals["beta"][1]) == pytest.approx(border, rel=2e-3)


def test_the_start_is_estimated_where_it_is_not_given() -> None:
    seen = states_of("BS", {"alpha": 0.7, "beta": 1.3})
    noisy = seen + 0.001 * np.random.default_rng(0).standard_normal(seen.shape)
    found = rd.fit("BS", noisy, TIMES, graph=GRAPH, starts=3, level=None)
    assert found.values == pytest.approx({"alpha": 0.7, "beta": 1.3}, rel=0.1)
    assert np.abs(found.initial - seen[0]).max() < 0.004
    assert np.square(found.states - noisy).sum() < np.square(seen - noisy).sum()
    hidden = noisy.copy()
    hidden[:, 2] = np.nan
    with pytest.raises(rd.errors.InvalidArgument, match="1 that never are"):
        rd.fit("BS", hidden, TIMES, graph=GRAPH)
    again = rd.fit("BS", hidden, TIMES, graph=GRAPH, initial=seen[0], starts=3, level=None)
    assert again.values == pytest.approx({"alpha": 0.7, "beta": 1.3}, rel=0.1)


@pytest.mark.slow
def test_coefficients_of_channels_and_two_fields() -> None:
    system = rd.parse("-alpha*L@H - beta*H", {"beta": "channel"})
    truth = {"alpha": 0.5, "beta": np.array([0.2, 1.0])}
    operator = GRAPH.operator("symmetric", dtype=torch.float64)
    start = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = rd.solve(rd.lower(system, operator, truth), start, torch.from_numpy(TIMES)).states
    found = rd.fit(system, seen, TIMES, graph=GRAPH, initial=start, starts=4, level=None)
    np.testing.assert_allclose(found.values["beta"], truth["beta"], rtol=1e-4)
    pair = "u' = -a*L@u + u - u**3 - v; v' = b*(u - v)"
    both = rd.solve(rd.lower(pair, operator, {"a": 0.3, "b": 0.6}), start, torch.from_numpy(TIMES), "rk4", step=0.01)
    one = rd.fit(pair, {"u": both["u"]}, TIMES, graph=GRAPH, initial=start, starts=4, level=None)
    assert one.values == pytest.approx({"a": 0.3, "b": 0.6}, rel=1e-3)


def test_unidentifiable_coefficients_are_refused_with_the_identifiable_combinations() -> None:
    seen = states_of("BS", {"alpha": 0.7, "beta": 1.3})
    with pytest.raises(rd.errors.NotApplicable, match=r"a - b, and not a, b"):
        rd.fit("-a*L@H + b*L@H", seen, TIMES, graph=GRAPH)
    found = rd.fit("-a*L@H + b*L@H", seen, TIMES, graph=GRAPH, values={"b": 0.5}, initial=seen[0], level=None, starts=2)
    assert set(found.values) == {"a"}
    triangle = nx.complete_graph(3)
    with pytest.raises(rd.errors.NotApplicable, match=r"2\*alpha \+ beta, and not alpha, beta \(.*eigenvalues"):
        rd.fit("BS", np.zeros((2, 3)), [0, 1], graph=triangle)


def test_unbounded_coefficients_are_reported() -> None:
    """On a constant state of a ring L H = 0, so that alpha leaves no trace in these data."""
    ring = nx.cycle_graph(6)
    times = np.linspace(0, 1, 8)
    seen = 0.2 * np.exp(-0.7 * times)[:, None] * np.ones(6) + 1e-3 * np.random.default_rng(1).standard_normal((8, 6))
    found = rd.fit("-alpha*L@H - beta*H", seen, times, graph=ring, initial=np.full(6, 0.2), starts=2)
    assert found.intervals is not None
    assert found.intervals["alpha"] == (0.0, np.inf)
    assert found.identifiable == {"alpha": False, "beta": True}
    assert set(found.reasons) == {"alpha"}
    assert "-alpha*L@H" in found.reasons["alpha"]
    assert np.isnan(found.values["alpha"])
    assert found.intervals["beta"][0] < 0.7 < found.intervals["beta"][1]


FISHER = "-alpha*L@H + beta*H*(1 - H)"


def fisher(alpha: float, beta: float, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """States on the path of five nodes, by an integrator of scipy's."""
    walk = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    laplacian = np.eye(5) - walk / walk.sum(1, keepdims=True)
    done = solve_ivp(
        lambda _, h: -alpha * laplacian @ h + beta * h * (1 - h),
        (0, times[-1]),
        start,
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
    )
    return done.y.T


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_without_noise_intervals_contain_the_truth_up_to_errors_of_runs(known: bool) -> None:
    start, times = np.linspace(0.1, 0.9, 5), np.linspace(0, 1.5, 9)
    seen = fisher(0.5, 0.8, start, times)
    found = rd.fit(FISHER, seen, times, graph=GRAPH, normalisation="row", initial=start if known else None, starts=2)
    assert found.intervals is not None
    for name, truth in (("alpha", 0.5), ("beta", 0.8)):
        low, high = found.intervals[name]
        assert low < truth < high < low + 1e-4
    assert found.agreeing == found.starts


@pytest.mark.parametrize("state", [0.0, 1.0])
def test_a_state_that_stays_is_refused(state: float) -> None:
    times, given = np.linspace(0, 1.5, 4), {"graph": GRAPH, "normalisation": "row", "starts": 1}
    with pytest.raises(NotApplicable, match="every rate vanishes"):
        rd.fit(FISHER, np.full((4, 5), state), times, initial=np.full(5, state), **given)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, -0.05])
def test_a_coefficient_at_the_end_of_its_sign_is_bounded_on_the_other_side(alpha: float) -> None:
    """The border is that of a scan over alpha, with beta fitted by an optimiser that shares no code."""
    start, times = np.linspace(0.1, 0.9, 5), np.linspace(0, 1.5, 9)
    seen = fisher(alpha, 0.8, start, times) + 0.005 * np.random.default_rng(0).standard_normal((9, 5))
    found = rd.fit(FISHER, seen, times, graph=GRAPH, normalisation="row", initial=start, starts=2)
    assert found.intervals is not None
    low, high = found.intervals["alpha"]

    def least(own: float) -> float:
        def squares(beta: float) -> float:
            return float(np.square(fisher(own, beta, start, times) - seen).sum())

        return float(minimize_scalar(squares, bounds=(0.3, 1.5), method="bounded", options={"xatol": 1e-8}).fun)

    best = least(0.0)
    rise = student.ppf(0.975, 43) ** 2 * best / 43
    expected = brentq(lambda own: least(own) - best - rise, 1e-6, 0.2, xtol=1e-7)
    assert low == 0
    assert high == pytest.approx(expected, rel=0.05)
    assert not found.identifiable["alpha"]
    assert "the data do not bound alpha from below" in found.notes


@pytest.mark.parametrize(("rate", "end"), [(500.0, 0.004), (-300.0, 0.002), (2e4, 1e-4)])
def test_real_coefficients_of_any_size_have_intervals(rate: float, end: float) -> None:
    times, start = np.linspace(0, end, 6), np.linspace(0.5, 1.5, 5)
    seen = np.exp(-rate * times)[:, None] * start + 0.02 * np.random.default_rng(0).standard_normal((6, 5))
    given = {"graph": GRAPH, "initial": start, "start": {"a": rate / 2}, "starts": 1}
    found = rd.fit("-a*H where a real", seen, times, **given)
    assert found.intervals is not None
    low, high = found.intervals["a"]
    assert low < rate < high
    assert high - low < 0.2 * abs(rate)
    assert found.identifiable == {"a": True}


@pytest.mark.slow
def test_an_interval_follows_a_ridge_of_equal_fits_to_its_end() -> None:
    """States that stay positive see alpha + beta alone: alpha may be anything below it, and neither is identifiable."""
    ring, times, start = nx.cycle_graph(5), np.linspace(0, 2, 7), np.linspace(0.2, 0.9, 5)
    seen = start * np.exp(0.7 * times)[:, None] + 0.01 * np.random.default_rng(0).standard_normal((7, 5))
    found = rd.fit("alpha*relu(H) + beta*H", seen, times, graph=ring, normalisation="row", initial=start, starts=2)
    assert found.intervals is not None
    for low, high in found.intervals.values():
        assert low == pytest.approx(0, abs=1e-3)
        assert high > 0.69
    assert found.undetermined == ("alpha", "beta")
    assert found.identifiable == {"alpha": False, "beta": False}


def test_a_coefficient_that_others_make_up_for_is_not_identifiable_where_signs_bound_it() -> None:
    """A of a complete graph has two eigenvalues, so that three coefficients move along a line that signs cut off."""
    text, truth = "-a*H + b*A@H - c*A@A@H", {"a": 1.0, "b": 1.0, "c": 0.1}
    operator = rd.Graph.from_networkx(nx.complete_graph(4)).operator("none", dtype=torch.float64)
    times, start = np.linspace(0, 1, 6), torch.tensor([[0.9], [0.1], [0.4], [0.3]], dtype=torch.float64)
    runs = [
        rd.solve(rd.lower(text, operator, values), start, torch.from_numpy(times)).states.numpy()
        for values in (truth, {"a": 0.7, "b": 1.2, "c": 0.2})
    ]
    np.testing.assert_allclose(*runs, rtol=1e-10)
    for level in (None, 0.95):
        found = rd.fit(text, runs[0], times, graph=operator, initial=start, start=truth, starts=1, level=level)
        assert found.identifiable == {"a": False, "b": False, "c": False}
    with pytest.raises(rd.errors.NotApplicable, match=r"a \+ b \+ c, a - 3\*b \+ 9\*c, and not a, b, c"):
        rd.fit(text, runs[0], times, graph=nx.complete_graph(4), normalisation="none", initial=start)


@pytest.mark.slow
def test_the_laplacian_with_degrees_is_no_sum_of_the_identity_and_the_adjacency() -> None:
    """With L = D - A on a path, L@H, A@H and H are independent, which they are not with L = I - A."""
    text, truth = "-alpha*L@H + beta*A@H - gamma*H", {"alpha": 0.5, "beta": 0.2, "gamma": 0.6}
    seen = states_of(text, truth, "none")
    given = {"graph": GRAPH, "initial": seen[0], "starts": 3, "level": None}
    found = rd.fit(text, seen, TIMES, normalisation="none", **given)
    assert found.values == pytest.approx(truth, rel=1e-3)
    assert found.identifiable == dict.fromkeys(truth, True)
    with pytest.raises(rd.errors.NotApplicable, match=r"alpha \+ beta, alpha \+ gamma, and not alpha, beta, gamma"):
        rd.fit(text, seen, TIMES, normalisation="row", **given)


@pytest.mark.slow
def test_the_answer_is_printed_and_drawn() -> None:
    seen = states_of("F", {"alpha": 0.4, "beta": 1.5}, "row")
    seen = seen + 0.01 * np.random.default_rng(2).standard_normal(seen.shape)
    found = rd.fit("F", seen, TIMES, graph=GRAPH, normalisation="row", initial=seen[0], starts=2)
    assert "beta = 1." in str(found)
    assert "at 95 %" in str(found)
    assert "beta" in found._repr_html_()
    lines = found.plot(nodes=2).axes[0].lines
    np.testing.assert_allclose(lines[1].get_ydata(), seen[:, int(lines[0].get_label().split()[1]), 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": [0.0, 1.0, 0.5, 2, 3]}, "times that rise"),
        ({"states": np.zeros((5, 4))}, r"shape \(5, 5\)"),
        ({"states": np.full((5, 5), np.nan)}, "is NaN"),
        ({"states": np.full((5, 5), np.inf)}, "infinite"),
        ({"initial": np.zeros(4)}, r"start of shape \(5, 1\)"),
        ({"starts": 0}, "at least one start"),
        ({"level": 95}, "between 0 and 1"),
        ({"level": "high"}, "between 0 and 1"),
        ({"starts": 1.5}, "a whole number"),
        ({"initial": "zero"}, "numbers for initial"),
        ({"values": {"alpha": "one"}}, "numbers for alpha"),
        ({"start": {"alpha": "one"}}, "numbers for the start of alpha"),
        ({"start": {"alpha": [1.0, 2.0]}}, r"of shape \(\), got \(2,\)"),
        ({"sigma": 0.0}, "positive sigma"),
        ({"sigma": float("inf")}, "finite, positive sigma"),
        ({"states": np.zeros((5, 5), dtype=complex)}, "real numbers for states, got complex ones"),
        ({"values": {"alpha": 1.0, "beta": 1.0}}, "all coefficients are fixed"),
        ({"values": {"alpha": -1}}, "expected a positive value for alpha, got -1.0; say 'where alpha real'"),
        ({"values": {"alpha": 0.0}}, "expected a positive value for alpha"),
        ({"values": {"alpha": float("nan")}}, "expected a positive value for alpha"),
        ({"seed": "one"}, "a whole number from 0 as seed, got 'one'"),
        ({"seed": -1}, "a whole number from 0 as seed, got -1"),
        ({"start": {"alpha": -1.0}}, "expected positive values to start alpha from"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(change: dict[str, Any], message: str) -> None:
    seen = states_of("BS", {"alpha": 0.7, "beta": 1.3})
    given = {"states": seen, "times": TIMES, "graph": GRAPH, "initial": seen[0], **change}
    with pytest.raises(rd.errors.InvalidArgument, match=message):
        rd.fit("BS", given.pop("states"), given.pop("times"), **given)


@pytest.mark.slow
def test_masks_are_fixed_and_matrices_fixed_or_fitted() -> None:
    mask = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    masked, mixed = "-alpha*L@H - beta*M*H", "-alpha*L@H + H@W"
    seen = states_of(masked, {"alpha": 0.7, "beta": 0.4, "M": torch.from_numpy(mask)})
    given = {"graph": GRAPH, "starts": 2, "level": None}
    found = rd.fit(masked, seen, TIMES, initial=seen[0], values={"M": mask}, **given)
    assert found.values == pytest.approx({"alpha": 0.7, "beta": 0.4}, rel=1e-3)
    with pytest.raises(rd.errors.InvalidArgument, match="zeros and ones for the mask M"):
        rd.fit(masked, seen, TIMES, initial=seen[0], values={"M": 0.5 * mask}, **given)
    matrix = np.array([[-0.3, 0.1], [0.2, -0.5]])
    seen = states_of(mixed, {"alpha": 0.7, "W": torch.from_numpy(matrix)}, width=2)
    found = rd.fit(mixed, seen, TIMES, initial=seen[0], values={"W": matrix}, **given)
    assert found.values == pytest.approx({"alpha": 0.7}, rel=1e-3)
    found = rd.fit(mixed, seen, TIMES, initial=seen[0], values={"alpha": 0.7}, **given)
    np.testing.assert_allclose(found.values["W"], matrix, rtol=1e-3)


@pytest.mark.parametrize("name", ["values", "start"])
def test_unknown_names_are_reported(name: str) -> None:
    seen = states_of("BS", {"alpha": 0.7, "beta": 1.3})
    with pytest.raises(rd.errors.UnknownName, match="alpha"):
        rd.fit("BS", seen, TIMES, graph=GRAPH, **{name: {"alpa": 1.0}})


def test_a_stochastic_system_is_refused() -> None:
    with pytest.raises(rd.errors.NotApplicable, match="stochastic"):
        rd.fit("H' = -H + sigma*xi", np.zeros((2, 5)), [0, 1], graph=GRAPH)


@pytest.mark.slow
def test_a_fit_ends_when_its_effort_is_spent_and_says_what_is_missing() -> None:
    """One of two fields observed; the count of evaluations ends it, so that the answer is the same everywhere."""
    pair = "u' = -a*L@u + u - u**3 - v; v' = b*(u - v)"
    operator = GRAPH.operator("symmetric", dtype=torch.float64)
    start = torch.linspace(0.1, 0.9, 10, dtype=torch.float64).reshape(5, 2)
    both = rd.solve(rd.lower(pair, operator, {"a": 0.3, "b": 0.6}), start, torch.from_numpy(TIMES), "rk4", step=0.01)
    told: list[str] = []

    def fitted(effort: float) -> rd.infer.Fit:
        return rd.fit(
            pair, {"u": both["u"]}, TIMES, graph=GRAPH, initial=start, starts=2, effort=effort, progress=told.append
        )

    whole = fitted(1e6)
    assert not whole.stopped
    assert whole.unfinished == ()
    assert whole.values == pytest.approx({"a": 0.3, "b": 0.6}, rel=1e-3)
    short = fitted(whole.effort / 20)
    assert short.stopped
    assert short.effort < whole.effort / 4
    assert short.unfinished == ("a", "b")
    assert short.intervals is not None
    assert all(np.isnan(ends).all() for ends in short.intervals.values())
    assert any("effort= allows more" in note for note in short.notes)
    assert "nan" not in str(short)
    late = fitted(whole.effort - 1)
    assert late.stopped
    assert late.settled
    assert late.values == whole.values
    assert any(text.startswith("intervals") for text in told)
    with pytest.raises(rd.errors.InvalidArgument, match="effort"):
        fitted(0)
