"""The study of energies in trained networks: settings, states by other routes, rows by hand, the run, its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from analysis.measures.distances import mad
from analysis.measures.energies import dirichlet_energy, normalised_energy
from gread.datasets.node_data import NodeData
from gread.models.features import Features
from gread.models.place import Place
from gread.models.randomness import Dropper
from gread.models.trained_network import Network
from gread.settings.model_records import find_model
from gread.settings.trials import Trial
from gread.training.trainer import train
from gread.zoo.neighbour_networks import H2GCN, H2GCNSettings
from rdgraph.errors import InvalidArgument, RdgraphError
from rdgraph.graphs.generators import ring
from studies.oversmoothing.networks_part import dense_features, layer_states
from studies.registered_studies import find_study
from studies.results import pages_folder, read_result
from studies.runs.kept_page import collected, page
from studies.runs.study import execute
from studies.runs.tables import read_rows
from studies.trained_energy import study as trained_energy
from studies.trained_energy.networks import (
    MEASURES,
    STAGES,
    NetworkCourse,
    Subject,
    configuration,
    course,
    layer_rows,
    make_graphs,
    observer,
    stage_states,
)
from tests.studies.trained_energy.tiny_energies import SUBJECTS, TINY

SEEDS = [11, 12]


@pytest.fixture(scope="module")
def datas() -> list[NodeData]:
    return make_graphs(TINY, SEEDS)


# ---------------------------------------------------------------------- settings
def test_settings_are_the_published_ones() -> None:
    full = trained_energy.settings(False)
    assert (full["epochs"], full["learning_rate"], full["weight_decay"]) == (100, 0.001, 5e-4)
    assert (full["dropout"], full["input_dropout"], full["hidden"]) == (0.0, 0.5, 2)
    assert (full["time"], full["step"], full["method"]) == (40.0, 1.0, "euler")
    assert (full["adjacency"], full["alpha"], full["beta"]) == ("original", "scalar", "channel")
    assert (full["sizes"], full["sigma"], full["means"], full["within"]) == ([50, 50], 2.0, [-0.5, 0.5], 0.9)
    assert full["graphs"] >= 20
    small = trained_energy.settings(True)
    assert (small["graphs"], small["epochs"], small["time"]) == (3, 5, 8.0)
    assert small["learning_rate"] == 0.001


def test_the_text_calls_published_what_is_published() -> None:
    full, small = (trained_energy.about(trained_energy.settings(is_small)) for is_small in (False, True))
    assert "as in the paper's appendix, each with one" in full
    assert "every network with the paper's settings: 100 epochs of Adam, learning rate 0.001" in full
    assert "every network with the paper's settings but for layers, epochs: 5 epochs of Adam" in small
    changed = trained_energy.about({**trained_energy.settings(False), "sizes": [5, 5], "weight_decay": 0.1})
    assert "as in the paper's appendix but for sizes of classes, each with one" in changed
    assert "the paper's settings but for weight decay: 100 epochs" in changed


def test_graphs_are_those_of_their_seeds(datas: list[NodeData]) -> None:
    alone = make_graphs(TINY, SEEDS[1:])[0]
    assert np.array_equal(alone.x, datas[1].x)
    assert np.array_equal(alone.masks.train, datas[1].masks.train)
    assert not np.array_equal(datas[0].x, datas[1].x)
    assert datas[0].num_splits == 1
    assert [int(part[0].sum()) for part in (datas[0].masks.train, datas[0].masks.val)] == [10, 6]
    whole = make_graphs(trained_energy.settings(False), [1])[0]
    same = whole.y[whole.graph.edge_index[0]] == whole.y[whole.graph.edge_index[1]]
    assert int(same.sum()) / (2 * 50 * 49) == pytest.approx(0.9, abs=0.02)
    assert int((~same).sum()) / (2 * 50 * 50) == pytest.approx(0.1, abs=0.02)
    assert float(whole.x[whole.y == 1].mean() - whole.x[whole.y == 0].mean()) == pytest.approx(1.0, abs=0.6)


def test_configurations_of_subjects() -> None:
    settings = trained_energy.settings(False)
    model = configuration(Subject("AC", "SC"), settings).model
    assert (model.reaction, model.beta, model.adjacency, model.self_loops) == ("AC", "scalar", "original", 0.0)
    assert configuration(Subject("AC", "VC"), settings).model.beta == "channel"
    grand = configuration(Subject.of("grand"), settings)
    assert (grand.model.reaction, grand.model.adjacency, grand.model.self_loops) == ("diffusion", "soft", 1.0)
    assert (grand.model.hidden, grand.model.time, grand.training.learning_rate) == (2, 40.0, 0.001)
    gcn, gat, rounds = (configuration(Subject.of(name), settings) for name in ("gcn", "gat", "h2gcn"))
    assert (gcn.training.epochs, gcn.model.layers, gcn.model.hidden, gcn.model.dropout) == (100, 40, 2, 0.0)
    assert (gat.model.layers, gat.model.heads, gat.model.attention_dropout) == (40, 1, 0.0)
    assert (rounds.model.rounds, rounds.model.input_dropout) == (10, 0.5)
    assert len(SUBJECTS) == 5 + 2 * 7
    assert len({s.key for s in SUBJECTS}) == 19


# ---------------------------------------------------------------------- states
@pytest.mark.parametrize("subject", [Subject("BS", "VC"), Subject("ST", "SC"), Subject.of("grand")])
def test_states_are_those_of_the_trained_networks(subject: Subject, datas: list[NodeData]) -> None:
    """The best epoch's states, against networks trained one at a time by `gread.training.trainer`."""
    settings = {**TINY, "learning_rate": 0.05, "epochs": 4}
    found = course(subject, settings, datas, SEEDS, "cpu")
    config = configuration(subject, settings)
    for k, data in enumerate(datas):
        network = train(data, [Trial(config, 0, SEEDS[k])], device="cpu").network(0)
        expected = network.states(data.x, data.graph, [0.0, 1.0, 2.0, 3.0]).double()
        torch.testing.assert_close(found.states["best"][:, k], expected, rtol=1e-4, atol=1e-4)
        fresh = find_model(config.model.model).network(
            config.model, Place.of(data.graph), features=2, classes=2, seeds=[Trial(config, 0, SEEDS[k]).member_seed]
        )
        start = Network(config.model, dict(fresh.named_parameters()), 2, 2).states(data.x, data.graph, [0.0, 3.0])
        torch.testing.assert_close(found.states["start"][[0, 3], k], start.double(), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(found.states["end"], found.states["start"], rtol=1e-2)
    assert np.isnan(found.left["end"]).all()
    assert [row["seed"] for row in found.results] == SEEDS
    assert [row["graph"] for row in found.results] == [0, 1]


def test_attention_of_a_graph_does_not_see_the_edges_of_another(datas: list[NodeData]) -> None:
    both = course(Subject.of("grand"), TINY, datas, SEEDS, "cpu")
    alone = course(Subject.of("grand"), TINY, datas[1:], SEEDS[1:], "cpu")
    assert torch.equal(both.states["end"][:, 1], alone.states["end"][:, 0])


def test_a_layer_is_a_step_of_euler(datas: list[NodeData]) -> None:
    found = course(Subject("FB", "SC"), TINY, datas, SEEDS, "cpu")
    for k, data in enumerate(datas):
        A = data.graph.operator("symmetric", dtype=torch.float64).dense()
        alpha, beta = (float(found.results[k][name]) for name in ("alpha", "beta_least"))
        H = found.states["end"][0, k]
        expected = H + (beta - alpha) * (H - A @ H)
        torch.testing.assert_close(found.states["end"][1, k], expected, rtol=1e-6, atol=1e-6)
        assert found.results[k]["beta_least"] == found.results[k]["beta_largest"]


@pytest.mark.parametrize("name", ["gcn", "gat", "h2gcn", "mlp"])
def test_networks_by_name_give_as_many_layers(name: str, datas: list[NodeData]) -> None:
    found = course(Subject.of(name), TINY, datas, SEEDS, "cpu")
    assert all(found.states[stage].shape[:3] == (4, 2, 20) for stage in STAGES)
    assert found.states["end"].dtype == torch.float64
    assert not torch.equal(found.states["end"], found.states["start"])
    assert not torch.allclose(found.states["start"][1, 0], found.states["start"][1, 1])
    if name != "h2gcn":
        for k, data in enumerate(datas):
            torch.testing.assert_close(found.states["start"][0, k], torch.tensor(data.x).double())
    alone = course(Subject.of(name), TINY, datas[1:], SEEDS[1:], "cpu")
    torch.testing.assert_close(alone.states["end"][:, 0], found.states["end"][:, 1])


@pytest.mark.parametrize("name", ["gcn", "h2gcn"])
def test_best_states_of_networks_by_name(name: str, datas: list[NodeData]) -> None:
    """Against networks trained one at a time, whose layers are asked for one by one."""
    settings = {**TINY, "learning_rate": 0.05, "epochs": 4}
    found, config = course(Subject.of(name), settings, datas, SEEDS, "cpu"), configuration(Subject.of(name), settings)
    for k, data in enumerate(datas):
        layers = train(data, [Trial(config, 0, SEEDS[k])], device="cpu").network(0).layers(data.x, data.graph)
        for layer, state in enumerate(layers, start=int(name == "gcn")):
            own, expected = found.states["best"][layer, k], state.double()
            torch.testing.assert_close(own @ own.T, expected @ expected.T, rtol=1e-4, atol=1e-4)


def test_narrow_rounds_keep_inner_products() -> None:
    """Rounds beyond those of the network, against a network that has as many; 5 nodes, so that widths are cut."""
    x = Features.make(np.random.default_rng(0).normal(size=(5, 3)), dtype=torch.float64)
    place = Place.of(ring(5), dtype=torch.float64)
    few, many = (H2GCN(H2GCNSettings(hidden=3, rounds=k), place, features=3, classes=2, seeds=[4, 5]) for k in (1, 4))
    found = layer_states(few, x, 4)
    assert found.shape == (5, 2, 5, 5)
    for own, expected in zip(found, many.states(x, Dropper()), strict=True):
        torch.testing.assert_close(own @ own.mT, expected @ expected.mT, rtol=1e-9, atol=1e-12)


def test_sparse_features_are_written_out(datas: list[NodeData]) -> None:
    x = datas[0].x
    from scipy.sparse import csr_array

    assert torch.equal(dense_features(Features.make(csr_array(x)))[0], Features.make(x).values[0])


def test_networks_that_blow_up_are_marked(datas: list[NodeData]) -> None:
    """A start at 3 leaves Allen-Cahn's bounds with Euler's step 1: cubes until single precision is left."""
    settings = {**TINY, "time": 12.0}
    config = configuration(Subject("AC", "SC"), settings)
    model, problem = observer(datas, [Trial(config, 0, seed) for seed in SEEDS])
    parameters = {name: p.detach().clone().float() for name, p in model.named_parameters()}
    parameters["encoder_weight"] *= 0.01
    parameters["encoder_bias"][:] = torch.tensor([[0.1, 0.1], [4.0, 4.0]])
    states, left = stage_states(model, problem, parameters, settings)
    assert np.isnan(left[0])
    assert 1 <= left[1] <= 8
    kept = int(left[1]) + 1
    assert float(states[:kept, 1].abs().max()) <= torch.finfo(torch.float32).max
    assert not float(states[kept, 1].abs().max()) <= torch.finfo(torch.float32).max
    parameters["decoder_bias"][0, 0] = torch.nan
    again, left = stage_states(model, problem, parameters, settings)
    assert left[0] == -1
    assert torch.equal(again[:kept, 1], states[:kept, 1])


def test_a_failed_training_has_no_trained_states(datas: list[NodeData]) -> None:
    wild = {**TINY, "sigma": 40.0, "time": 8.0, "step": 1.0}
    found = course(Subject("AC", "SC"), wild, make_graphs(wild, SEEDS), SEEDS, "cpu")
    assert [row["status"] for row in found.results] == ["diverged in epoch 1"] * 2
    assert found.left["end"].tolist() == found.left["best"].tolist() == [-1.0, -1.0]
    assert (found.left["start"] >= 0).all()


# ---------------------------------------------------------------------- rows
def test_rows_hold_the_measures_of_the_states(datas: list[NodeData]) -> None:
    generator = torch.Generator().manual_seed(0)
    states = {stage: torch.randn(4, 2, 20, 2, generator=generator, dtype=torch.float64) for stage in STAGES}
    left = {stage: np.array([np.nan, 1.0]) for stage in STAGES}
    rows = layer_rows(Subject("BS", "VC"), NetworkCourse(states, left, []), datas, 1.0)
    assert len(rows) == 3 * 4 * 2
    for row in rows:
        k, layer = int(row["graph"]), int(row["layer"])
        assert row["alive"] == int(k == 0 or layer <= 1)
        H, plain = states[str(row["stage"])][layer, k], datas[k].graph.operator("none", dtype=torch.float64)
        for name, measure in (("energy", dirichlet_energy), ("normalised", normalised_energy), ("mad", mad)):
            expected = float(measure(H, plain)) if row["alive"] else np.nan
            assert row[name] == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_columns_of_zeros_change_no_measure(datas: list[NodeData]) -> None:
    narrow = torch.randn(1, 2, 20, 2, dtype=torch.float64)
    wide = torch.cat([narrow, torch.zeros(1, 2, 20, 3, dtype=torch.float64)], dim=-1)
    left = dict.fromkeys(STAGES, np.full(2, np.nan))
    found = [
        layer_rows(Subject("GCN"), NetworkCourse(dict.fromkeys(STAGES, H), left, []), datas, 1.0)
        for H in (narrow, wide)
    ]
    for one, other in zip(*found, strict=True):
        for name in (*MEASURES, "normalised"):
            assert one[name] == pytest.approx(other[name], rel=1e-9)


# ---------------------------------------------------------------------- the run
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("study") / "run"
    execute(find_study("trained-energy"), place, small=True, seed=2)
    return place


@pytest.mark.slow
def test_the_small_run_is_complete(folder: Path) -> None:
    assert (folder / "state").read_text() == "done\n"
    report = json.loads((folder / "report.json").read_text())
    assert len(report["verdicts"]) == 15
    assert {f"{name}.png" for name in ("energy", "energy_beta", "measures")} <= {
        p.name for p in (folder / "figures").iterdir()
    }
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "settings but for layers, epochs: 5 epochs of Adam" in page
    assert "settings: 5 epochs" not in page
    results = read_rows(folder / "results.csv")
    assert len(results) == 19 * 3
    by = {(row["network"], row["beta"], row["stage"]): row for row in results}
    assert float(by["GCN", "-", "end"]["E_T/E_0"]) < 1e-3
    assert 0.1 < float(by["ST", "SC", "end"]["E_T/E_0"]) < 10
    assert float(by["FB", "SC", "start"]["E_T/E_0"]) == pytest.approx(1.0, abs=1e-4)
    assert by["F", "SC", "start"]["left"] == 3
    assert all(0 <= float(row["accuracy"]) <= 100 or row["failed"] == 3 for row in results)


@pytest.mark.slow
def test_a_finished_run_trains_nothing_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder / "results.csv").read_bytes()

    def refuse(*args: Any) -> NetworkCourse:
        raise AssertionError("trained again")

    monkeypatch.setattr(trained_energy, "course", refuse)
    monkeypatch.setattr(trained_energy, "draw_all", lambda run, table: None)
    execute(find_study("trained-energy"), folder, small=True, seed=2)
    assert (folder / "results.csv").read_bytes() == before


def test_networks_are_chosen_by_name(tmp_path: Path) -> None:
    changes = {"models": ["mlp"], "reactions": [], "graphs": 2, "epochs": 2, "time": 2.0}
    execute(find_study("trained-energy"), tmp_path / "run", small=True, changes=changes)
    results = read_rows(tmp_path / "run" / "results.csv")
    assert [(row["network"], row["stage"]) for row in results] == [("MLP", stage) for stage in STAGES]
    assert {p.name for p in (tmp_path / "run" / "figures").glob("*.png")} == {"energy.png", "measures.png"}


def test_a_run_needs_a_network(tmp_path: Path) -> None:
    changes = {"models": [], "reactions": []}
    with pytest.raises(InvalidArgument, match="expected a network or a reaction, got neither"):
        execute(find_study("trained-energy"), tmp_path / "run", small=True, changes=changes)


# ---------------------------------------------------------------------- the page
def test_the_page_is_made_from_the_run_that_is_kept() -> None:
    found = read_result("trained_energy")
    text = (pages_folder() / "trained_energy.md").read_text(encoding="utf-8")
    assert text == page(found)
    assert "](figures/trained_energy.png)" in text
    assert (pages_folder() / "figures/trained_energy.png").stat().st_size > 10_000
    is_current = found["settings"] == find_study("trained-energy").settings(False)
    assert is_current != ("note" in found)  # a run of other settings says so on the page, one of these does not
    assert {v["answer"] for v in found["verdicts"]} <= {"holds", "fails", "undecided"}


def test_an_unfinished_run_makes_no_page(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"state": "interrupted"}', encoding="utf-8")
    with pytest.raises(RdgraphError, match="interrupted"):
        collected(tmp_path)
