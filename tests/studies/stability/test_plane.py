"""Planes of members: steady states, growth rates and deviations, against closed forms and scipy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rdgraph.errors import InvalidArgument, NotApplicable
from studies.stability.deviations import Deviations, fitted, measure_deviations, noise
from studies.stability.named_graph import named_graph
from studies.stability.plane import Axis, PlaneCase, is_real, read_cases, read_values
from studies.stability.plane_rows import PlanePrediction, disagreements, member_rows

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - sigma*Du*L@v"


@pytest.fixture(scope="module")
def case() -> PlaneCase:
    values = read_values("a=0.1, b=0.9, Du=0.15, sigma=20")
    across, up = Axis("sigma", 2.0, 20.0, 3), Axis("b", 0.4, 1.6, 3)
    return PlaneCase("Schnakenberg", SCHNAKENBERG, "ring:8", "none", values, across, up)


def dense_laplacian(nodes: int) -> np.ndarray:
    shifted = np.roll(np.eye(nodes), 1, axis=1)
    return 2 * np.eye(nodes) - shifted - shifted.T


def jacobian(u: float, v: float, L: np.ndarray, Du: float, Dv: float) -> np.ndarray:
    """The whole Jacobian on the graph, written out."""
    eye = np.eye(len(L))
    return np.block([[(2 * u * v - 1) * eye - Du * L, u**2 * eye], [-2 * u * v * eye, -(u**2) * eye - Dv * L]])


def test_steady_states_are_the_closed_form(case: PlaneCase) -> None:
    a, b = case.values["a"], case.values["b"]
    np.testing.assert_allclose(case.states, np.stack([a + b, b / (a + b) ** 2], axis=1), rtol=1e-12)


def test_growth_rates_are_those_of_the_whole_jacobian(case: PlaneCase) -> None:
    prediction = PlanePrediction(case)
    for k, (u, v) in enumerate(case.states):
        whole = jacobian(u, v, dense_laplacian(8), 0.15, 0.15 * case.values["sigma"][k])
        largest = np.linalg.eigvals(whole).real.max()
        assert max(prediction.at_zero[k], prediction.beyond_zero[k]) == pytest.approx(largest, abs=1e-9)
        assert prediction.at_zero[k] == pytest.approx(
            np.linalg.eigvals(jacobian(u, v, np.zeros((1, 1)), 0, 0)).real.max(), abs=1e-9
        )


def test_members_are_measured_as_predicted(case: PlaneCase) -> None:
    found = measure_deviations(case, noise(case, np.random.default_rng(1)), 30.0, 61)
    rows = member_rows(PlanePrediction(case), found, 1.0)
    assert len(rows) == 9
    assert {row["predicted"] for row in rows} >= {"stable", "Turing", "both"}
    assert sum(int(row["away"]) for row in rows) >= 6
    assert disagreements(rows) == []
    assert not found.blown_up.any()
    turned = [{**row, "measured": "stable", "agrees": 0, "away": 1} for row in rows[:2]]
    assert disagreements([*turned, *rows[2:]]) == turned


def test_deviations_agree_with_scipy(case: PlaneCase) -> None:
    """One member by an adaptive method of scipy, from the same start."""
    deviation = noise(case, np.random.default_rng(1))
    found = measure_deviations(case, deviation, 5.0, 6)
    k = 4
    point, L = case.states[k], dense_laplacian(8)
    a, b, Dv = 0.1, case.values["b"][k], 0.15 * case.values["sigma"][k]

    def field(t: float, y: np.ndarray) -> np.ndarray:
        u, v = y[:8], y[8:]
        return np.concatenate([a - u + u**2 * v - 0.15 * L @ u, b - u**2 * v - Dv * L @ v])

    size = np.sqrt(np.square(point).mean())
    start = (point + 1e-7 * size * deviation).T.ravel()
    end = solve_ivp(field, (0, 5), start, method="DOP853", rtol=1e-12, atol=1e-15).y[:, -1].reshape(2, 8).T - point
    mean = end.mean(0)
    assert found.constant[-1, k] == pytest.approx(np.sqrt(np.square(mean).mean()) / size, rel=2e-3)
    assert found.pattern[-1, k] == pytest.approx(np.sqrt(np.square(end - mean).mean()) / size, rel=2e-3)


def test_the_linear_regime_ends_where_a_part_is_large() -> None:
    times = np.linspace(0, 10, 41)
    growing = 1e-6 * np.exp(times)[:, None]
    found = Deviations(times, 1e-6 * np.exp(-times)[:, None], growing, np.array([False]))
    assert found.is_linear[:, 0].tolist() == [True] * 28 + [False] * 13  # exp(7) 1e-6 > 1e-3
    slope, span = found.rates("pattern")
    assert (slope[0], span[0]) == (pytest.approx(1.0), 3.25)
    driven, _ = found.rates("constant")  # watched while it exceeds a hundred times the square of the pattern
    assert driven[0] == pytest.approx(-1.0)


def test_too_few_times_are_no_fit() -> None:
    slope, span = fitted(np.arange(5.0), np.ones((5, 1)), np.array([[True], [True], [False], [False], [False]]))
    assert np.isnan(slope[0])
    assert span[0] == 0


def test_graphs_by_their_words(tmp_path: Path) -> None:
    assert named_graph("grid:3:4", 0).num_edges == 34
    assert named_graph("torus:3:4", 0).degree.tolist() == [4.0] * 12
    assert named_graph("barabasi-albert:30:2", 1).num_edges == 2 * 2 * 28
    assert named_graph("watts-strogatz:20:4:0.3", 1).num_edges == 80
    file = tmp_path / "edges.csv"
    file.write_text("source,target\n0,1\n1,2\n2,1\n")
    assert named_graph(f"file:{file}", 0).degree.tolist() == [1.0, 2.0, 1.0]
    assert named_graph(str(file), 0).num_edges == 4
    assert (named_graph("ring", 0).num_nodes, named_graph("star:5", 0).num_nodes) == (24, 5)
    for wrong in ("path", "ring:a", "grid:3", "tree:4", "karate:3"):
        with pytest.raises(InvalidArgument, match="expected a graph among"):
            named_graph(wrong, 0)


def test_what_a_case_refuses(case: PlaneCase) -> None:
    values = dict(case.reference)
    with pytest.raises(InvalidArgument, match="expected numbers for the coefficients"):
        PlaneCase("x", SCHNAKENBERG, "ring:8", "none", {"a": 1.0}, case.across, case.up)
    with pytest.raises(InvalidArgument, match="expected an axis among"):
        PlaneCase("x", SCHNAKENBERG, "ring:8", "none", values, Axis("w", 0, 1, 2), case.up)
    with pytest.raises(NotApplicable, match="L@1 is not 0"):
        PlaneCase("x", SCHNAKENBERG, "barabasi-albert:9:2", "symmetric", values, case.across, case.up)
    lists = {name: ["x"] for name in ("labels", "systems", "graphs", "normalisations", "values", "across")}
    with pytest.raises(InvalidArgument, match="one entry a case"):
        read_cases({**lists, "up": [], "points": 2}, 0, "cpu")


def test_a_leading_eigenvalue_is_real_or_not() -> None:
    assert is_real(np.array([-1.0, 2 + 1e-14j, 1j])).tolist() == [True, True, False]
