"""The study of oversmoothing: settings, flows against closed forms, rows by hand, figures, and the run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import rdgraph as rd
from analysis.measures.energies import dirichlet_energy, laplacian_energy
from analysis.measures.measure_records import MEASURES
from studies.oversmoothing import study as oversmoothing
from studies.oversmoothing.energy_figures import Curve, curves_chart, make_curve
from studies.oversmoothing.flows import (
    BASELINES,
    BOXED,
    REACTIONS,
    SCHEMES,
    Batch,
    EnsembleTrajectory,
    GraphEnsemble,
    GraphFlow,
    solve_flow,
)
from studies.oversmoothing.rows import curve_rows, end_rows, select, spectrum_rows
from studies.registered_studies import find_study
from studies.runs.chart_figures import chart_figure
from studies.runs.study import execute
from studies.runs.tables import Row, read_rows
from tests.report_pages import code_names

#: The study's own settings on fewer and smaller graphs, measured at fewer times.
TINY = {
    **oversmoothing.settings(True), "graphs": 3, "sizes": [10, 10], "draws": 2, "saves": [0.0, 5.0, 10.0, 20.0, 40.0],
}  # fmt: skip


@pytest.fixture(scope="module")
def ensemble() -> GraphEnsemble:
    return GraphEnsemble.make(TINY, seed=1)


@pytest.fixture(scope="module")
def spectra(ensemble: GraphEnsemble) -> list[Row]:
    return spectrum_rows(ensemble)


def scalar(alpha: float, beta: float) -> Batch:
    return Batch("SC", torch.tensor([alpha], dtype=torch.float64), torch.tensor([beta], dtype=torch.float64), (0,))


def flow_named(name: str) -> GraphFlow:
    return next(f for f in (*BASELINES, *REACTIONS) if f.name == name)


# ---------------------------------------------------------------------- settings and starts
def test_settings_are_the_published_ones() -> None:
    for small in (True, False):
        found = oversmoothing.settings(small)
        assert (found["sizes"], found["sigma"], found["within"], found["between"]) == ([50, 50], 2.0, 0.9, 0.1)
        assert (found["time"], found["step"], found["channels"], found["means"]) == (40.0, 1.0, 2, [-0.5, 0.5])
        assert found["graphs"] >= 20
        assert {0.0, 5.0, 20.0, 40.0} <= set(found["saves"])
        assert found["saves"] == sorted(found["saves"])
        assert 1.0 in found["ratios"]
        assert max(found["ratios"]) >= 4.0
        assert found["alpha"] in found["alphas"]


def test_members_depend_on_the_seed_and_their_number_alone(ensemble: GraphEnsemble) -> None:
    fewer = GraphEnsemble.make({**TINY, "graphs": 2}, seed=1)
    assert torch.equal(fewer.features, ensemble.features[:2])
    assert not torch.equal(GraphEnsemble.make(TINY, seed=2).features, ensemble.features)


def test_starts_are_inside_their_boxes(ensemble: GraphEnsemble) -> None:
    for flow in BOXED:
        start = flow.initial(ensemble.features)
        size = start.abs()
        assert flow.normalisation == "row"
        if flow.system == "AC":
            assert bool(((size >= 0.5) & (size <= 1)).all())
            assert torch.equal(start.sign(), ensemble.features.sign())
        else:
            assert bool(((start > 0) & (start < 1)).all())


def test_coefficients_of_a_sweep_and_of_draws(ensemble: GraphEnsemble) -> None:
    sweep = Batch.scalars(flow_named("BS"), TINY)
    assert list(zip(sweep.alpha.tolist(), sweep.beta.tolist(), strict=True)) == [(0.5, 0.05), (0.5, 0.5), (0.5, 2.0)]
    assert sweep.initial == (1,)
    assert Batch.scalars(flow_named("GCN"), TINY).alpha.tolist() == [1.0]
    drawn = Batch.channels(ensemble, TINY, np.random.default_rng(0))
    assert drawn.beta.shape == (2, 3, 2)
    assert -1 <= float(drawn.beta.min()) < 0 < float(drawn.beta.max()) <= 1
    assert len(drawn.beta.unique()) == 12


# ---------------------------------------------------------------------- flows
@pytest.mark.parametrize("name", ["diffusion", "GCN", "GRAND", "BS", "ST", "FB", "FB*"])
def test_linear_flows_agree_with_eigenvectors(name: str, ensemble: GraphEnsemble) -> None:
    """The energy at every time, against the closed form in the eigenvectors of the first graph's symmetric twin."""
    flow, batch = flow_named(name), scalar(0.5, 2.0)
    found = solve_flow(flow, ensemble, "flow", batch, TINY)
    member = ensemble.members[0]
    degree = member.graph.degree + flow.self_loops
    dense = member.graph.adjacency.toarray() + flow.self_loops * np.eye(20)
    values, vectors = np.linalg.eigh(np.eye(20) - dense / np.sqrt(np.outer(degree, degree)))
    twist = np.sqrt(degree)[:, None] if flow.normalisation == "row" else 1.0
    modes = vectors.T @ (twist * member.features)
    p = {"BS": 1.5 * values - 2 * values**2, "FB": 1.5 * values, "FB*": 1.5 * values + 2}.get(name, -0.5 * values)
    plain = member.graph.operator("none", dtype=torch.float64)
    for k, t in enumerate(found.times):
        gain = np.exp(t * p)
        if name == "ST":
            gain = gain + 2.0 * np.where(np.abs(p) < 1e-12, t, np.expm1(t * p) / np.where(np.abs(p) < 1e-12, 1, p))
        state = torch.as_tensor(vectors @ (gain[:, None] * modes) / twist)
        assert found.values["dirichlet_energy"][k, 0, 0] == pytest.approx(
            float(dirichlet_energy(state, plain)), rel=1e-6
        )
    assert np.isnan(found.failed_at).all()


def test_the_answer_is_not_buried_under_frequencies_the_graph_lacks(ensemble: GraphEnsemble) -> None:
    """FB with beta > alpha grows most at lam = 2, where these graphs have no eigenvalue; `exact` keeps the accuracy."""
    op = ensemble.members[0].graph.operator("symmetric", dtype=torch.float64)
    field = rd.lower("FB", op, {"alpha": 0.5, "beta": 2.0})
    start = torch.as_tensor(ensemble.members[0].features)
    values, vectors = np.linalg.eigh(np.eye(20) - op.dense().numpy())
    expected = vectors @ (np.exp(60 * values)[:, None] * (vectors.T @ start.numpy()))
    found = rd.solve(field, start, [0.0, 40.0], "exact").final.numpy()
    assert np.abs(found / expected - 1).max() < 1e-6


def test_splitting_agrees_with_an_adaptive_method(ensemble: GraphEnsemble) -> None:
    flow = next(f for f in BOXED if f.name == "AC")
    fine = {**TINY, "splitting_step": 0.125, "splitting_rtol": 1e-8, "saves": [0.0, 5.0, 10.0]}
    found = solve_flow(flow, ensemble, "flow", scalar(0.5, 1.0), fine)
    member = ensemble.members[2]
    field = rd.lower("AC", member.graph.operator("row", dtype=torch.float64), {"alpha": 0.5, "beta": 1.0})
    start = flow.initial(torch.as_tensor(member.features))
    solved = rd.solve(field, start, [0.0, 5.0, 10.0], "dopri5")
    energy = dirichlet_energy(solved.states, member.graph.operator("none", dtype=torch.float64))
    np.testing.assert_allclose(found.values["dirichlet_energy"][:, 0, 2], energy.numpy(), rtol=1e-2)


def test_a_member_does_not_depend_on_the_others(ensemble: GraphEnsemble) -> None:
    alone = GraphEnsemble((ensemble.members[1],))
    batch = Batch.scalars(flow_named("AC"), TINY)
    together, single = (solve_flow(flow_named("AC"), e, "euler", batch, TINY) for e in (ensemble, alone))
    np.testing.assert_array_equal(together.failed_at[:, 1], single.failed_at[:, 0])
    for name in ("dirichlet_energy", "kernel_distance", "normalised_energy"):
        np.testing.assert_allclose(together.values[name][:, :, 1], single.values[name][:, :, 0], rtol=1e-9)


def test_normalised_energy_is_the_measure_of_that_name(ensemble: GraphEnsemble) -> None:
    found = solve_flow(flow_named("BS"), ensemble, "euler", scalar(0.5, 0.5), TINY)
    plain = ensemble.operator("none")
    expected = laplacian_energy(ensemble.features, plain) / ensemble.features.square().sum((-2, -1))
    np.testing.assert_allclose(found.values["normalised_energy"][0, 0], expected.numpy(), rtol=1e-12)
    assert np.isnan(found.values["mad"]).all()  # dear measures are taken of flows
    flow = solve_flow(flow_named("BS"), ensemble, "flow", scalar(0.5, 0.5), TINY)
    assert set(MEASURES) <= set(flow.values)
    assert np.isfinite(flow.values["mad"]).all()


# ---------------------------------------------------------------------- rows
def trajectory() -> EnsembleTrajectory:
    """Two members at three times; the second is frozen at t = 1."""
    energy = np.array([[[4.0, 16.0]], [[1.0, 4.0]], [[0.25, 4.0]]])
    values = {name: energy.copy() for name in MEASURES}
    values["kernel_distance"] = np.full((3, 1, 2), 0.5)
    values["mad"] = np.full((3, 1, 2), np.nan)
    return EnsembleTrajectory(np.array([0.0, 1.0, 2.0]), {**values, "size": energy}, np.array([[np.nan, 1.0]]))


def test_curves_average_the_members_that_are_left() -> None:
    rows = curve_rows(flow_named("BS"), "flow", scalar(0.5, 0.5), trajectory())
    energy = select(rows, measure="dirichlet_energy")
    assert [r["alive"] for r in energy] == [2, 2, 1]
    assert [r["mean"] for r in energy] == pytest.approx([8.0, 2.0, 0.25])  # geometric: sqrt(4*16), sqrt(1*4)
    assert energy[0]["low"] == pytest.approx(4 + 0.1 * 12)
    assert [r["mean"] for r in select(rows, measure="effective_rank")] == pytest.approx([10.0, 2.5, 0.25])
    assert not select(rows, measure="mad")


def test_ends_know_rates_and_failures() -> None:
    """|H - PH|^2 = 0.25*energy falls from 1 to 0.25 in the second half of the time, from t = 1 to 2."""
    first, second = end_rows(flow_named("BS"), "flow", scalar(0.5, 0.5), trajectory())
    assert first["rate"] == pytest.approx(math.log(0.25))
    assert (first["energy_0"], first["energy_T"], first["energy_least"]) == (4.0, 0.25, 0.25)
    assert second["failed_at"] == 1.0
    assert math.isnan(float(second["rate"]))
    assert second["energy_least"] == 4.0


def test_spectra_predict_where_diffusion_and_source_end(ensemble: GraphEnsemble, spectra: list[Row]) -> None:
    late = {**TINY, "saves": [0.0, 3000.0]}
    still = solve_flow(flow_named("diffusion"), ensemble, "flow", scalar(1.0, 0.0), late)
    loops = solve_flow(flow_named("GCN"), ensemble, "flow", scalar(1.0, 0.0), late)
    fed = solve_flow(flow_named("ST"), ensemble, "flow", scalar(0.5, 1.0), late)
    for k, row in enumerate(spectra):
        assert still.values["dirichlet_energy"][-1, 0, k] == pytest.approx(row["plateau"], rel=1e-6)
        assert loops.values["dirichlet_energy"][-1, 0, k] == pytest.approx(row["plateau_loops"], rel=1e-6)
        assert fed.values["laplacian_energy"][-1, 0, k] == pytest.approx(4 * float(row["source"]), rel=1e-6)
        signs = torch.as_tensor(ensemble.members[k].features).sign() / 2
        plain = ensemble.members[k].graph.operator("none", dtype=torch.float64)
        assert row["cut"] == pytest.approx(float(dirichlet_energy(signs, plain)))


# ---------------------------------------------------------------------- figures
def test_figures_take_curves_of_any_origin() -> None:
    """A trained network's energies per layer beside a flow's: same panel, own label, a cross where none is left."""
    times = np.arange(4.0)
    trained = Curve(
        "GAT, trained", "networks", times, 10.0**-times, 0.5 * 10.0**-times, 2 * 10.0**-times, np.full(4, 5), 5
    )
    dying = Curve("AC, Euler", "networks", times, np.array([1, 1e9, 1e40, np.nan]), np.ones(4), np.ones(4),
                  np.array([5, 5, 2, 0]), 5, colour=1)  # fmt: skip
    other = Curve("flow", "flows", times, np.ones(4), np.ones(4), np.ones(4), np.full(4, 5), 5)
    chart = curves_chart([trained, dying, other], y_label="E")
    assert chart.labels == ["GAT, trained", "AC, Euler", "flow"]
    figure = chart_figure(chart)
    assert [panel.get_title() for panel in figure.axes] == ["networks", "flows"]
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x" and len(line.get_xdata()) == 1]
    assert [(float(c.get_xdata()[0]), float(c.get_ydata()[0])) for c in crosses] == [(1.0, 1e9)]  # type: ignore[index]
    assert figure.axes[0].get_yscale() == "log"
    whole = figure.axes[0].containers[1].lines[0]
    np.testing.assert_array_equal(whole.get_ydata(), [1.0, 1e9, np.nan, np.nan])  # pale from the first loss on
    assert chart.panels[0].lines[0].count is None
    assert json.loads(chart.json())["panels"][0]["lines"][1]["count"] == [5, 5, 2, 0]


def test_a_curve_is_read_from_rows() -> None:
    rows = select(curve_rows(flow_named("BS"), "flow", scalar(0.5, 0.5), trajectory()), measure="dirichlet_energy")
    curve = make_curve(rows, "BS", "linear")
    assert (int(curve.alive[-1]), curve.members) == (1, 2)
    np.testing.assert_allclose(curve.mean, [8.0, 2.0, 0.25])


# ---------------------------------------------------------------------- the study
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "oversmoothing"
    save = Figure.savefig

    def save_coarsely(figure: Figure, path: Path, **_: Any) -> None:
        """The png alone, and that at few pixels: four large figures take their time."""
        save(figure, path, dpi=40) if path.suffix == ".png" else path.write_bytes(b"%PDF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save_coarsely)
        patch.setattr(oversmoothing, "settings", lambda small: TINY)
        execute(find_study("oversmoothing"), place, small=True, seed=1)
    return place


@pytest.mark.slow
def test_study_writes_curves_figures_and_verdicts(folder: Path) -> None:
    assert (folder / "state").read_text().strip() == "done"
    for name in ("energy", "sweep", "measures", "energy_beta"):
        for ending in ("png", "pdf", "csv"):
            assert (folder / "figures" / f"{name}.{ending}").stat().st_size > 0
    table = read_rows(folder / "results.csv")
    assert {r["flow"] for r in table} == {f.name for f in (*BASELINES, *REACTIONS)}
    assert {r["method"] for r in table} == {"euler", "exact", "strang"}
    assert all(int(r["members"]) == (6 if r["kind"] == "VC" else 3) for r in table)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert code_names(folder) == []
    assert "λ₂ between" in page
    assert "conserves more energy" in page
    assert "row-stochastic" in page


@pytest.mark.slow
def test_study_answers_as_the_theory_does(folder: Path) -> None:
    ends = [row for path in sorted(folder.glob("parts/ends-*.csv")) for row in read_rows(path)]
    graphs = read_rows(folder / "parts" / "spectra.csv")
    found = {a.statement: a.answer for a in oversmoothing.verdicts(ends, graphs, TINY)}
    answers = {statement.split(":")[0]: answer for statement, answer in found.items() if "can be bounded" in statement}
    assert answers["BS"] == answers["FB*"] == answers["F"] == answers["Z"] == "fails"
    assert answers["FB"] == "holds if beta/alpha = 1"
    assert answers["ST"] == "holds"
    assert answers["AC"] == "holds if beta >= 4 alpha"
    assert found["GRAND: diffusion with learned diffusivity can delay the oversmoothing"] == "holds"


@pytest.mark.slow
def test_resumed_and_repeated_runs_have_the_same_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ensemble: GraphEnsemble
) -> None:
    """A part that is missing is computed to the same bytes; the others are not computed again."""
    flow, batch = flow_named("BS"), Batch.scalars(flow_named("BS"), TINY)
    kept = folder / "parts" / f"curves-{flow.key}-euler-SC.csv"
    before = kept.read_bytes()
    kept.unlink()
    calls = []

    def counted(*arguments: Any) -> EnsembleTrajectory:
        calls.append(arguments[0].name)
        return solve_flow(*arguments)

    monkeypatch.setattr(oversmoothing, "settings", lambda small: TINY)
    monkeypatch.setattr(oversmoothing, "solve_flow", counted)
    monkeypatch.setattr(oversmoothing, "draw_all", lambda run, curves: None)
    execute(find_study("oversmoothing"), folder, small=True, seed=1)
    assert calls == ["BS"]
    assert kept.read_bytes() == before
    rows = curve_rows(flow, "euler", batch, solve_flow(flow, ensemble, SCHEMES[0], batch, TINY))
    assert [r["mean"] for r in read_rows(kept)] == [r["mean"] for r in rows]
