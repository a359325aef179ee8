"""Cases of speed run in their small form: rows of finite numbers, peers that compute the same, files that grow."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.discovery.equation_batches import EquationResult
from gread.settings.config import Config
from gread.settings.presets import find_preset
from gread.settings.trials import grouped, make_trials
from gread.training.ensemble import Ensemble
from gread.training.planner import Costs
from gread.tuning.random_draws import draw_candidates
from gread.tuning.space import find_space
from rdgraph.errors import InvalidArgument, UnknownName
from studies.benchmarks import epochs, equation_rates, kernels, large_graphs, peers, rates, scale
from studies.benchmarks.equation_rates import CURVED, LINEAR, draw_equations, read_equations, work_done
from studies.benchmarks.kernels import gather_scatter, lattice, random_operator
from studies.benchmarks.rates import SearchTimes, evenly, measure_search, paper_hours, rate_alone
from studies.benchmarks.timing import Case, Peer, SpeedRow, median_seconds
from studies.results import read_result

SMALL = {"hidden": 4, "attention_dim": 4, "epochs": 2}


# ---------------------------------------------------------------------- cases
@pytest.mark.parametrize("make", kernels.TOPICS)
def test_every_case_gives_finite_rows(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "median_seconds", lambda call, *given, **options: _once(call))
    monkeypatch.setattr("studies.benchmarks.timing.median_seconds", lambda call, *given, **options: _once(call))
    monkeypatch.setattr(kernels, "SIZES", {"Cora": (40, 200, 4)})
    sizes = kernels.Sizes("cpu", 1e9, 60, 400, 6, 10_000)
    rows = [row for case in make(sizes, kernels.sample_graphs(None, "cpu")) for row in case.rows("cpu")]
    assert bool(rows) is (make is not kernels.huge_cases)
    for row in rows:
        assert np.isfinite([row.seconds, row.ratio]).all(), row
        assert min(row.seconds, row.ratio) > 0
        assert (row.met is None) is (row.target == "")


def _once(call: Any) -> float:
    return median_seconds(call, "cpu", seconds=0.0, most=3)


def test_a_ratio_is_to_the_peer_or_times_faster() -> None:
    clock = {"own": 2.0, "peer": 8.0}.__getitem__
    peers = (Peer("known", 4.0, "<= 1"), Peer("called", "peer".__str__, ">= 3", is_slower=True))
    case = Case("topic", lambda: "what", "own".__str__, peers, rounds=2, clock=lambda call: clock(call()))  # type: ignore[arg-type, return-value]
    first, second = case.rows("cpu")
    assert (first.what, first.ratio, first.met, first.peer) == ("what", 0.5, True, "known 4 s")
    assert (second.seconds, second.ratio, second.met) == (2.0, 4.0, True)


@pytest.mark.parametrize(("target", "ratio", "met"), [("<= 2", 2.0, True), ("<= 2", 2.1, False), (">= 3", 2.9, False)])
def test_targets_are_compared(target: str, ratio: float, met: bool) -> None:
    assert SpeedRow.against("t", "w", 1.0, "p", ratio, target).met is met


def test_samples_are_what_they_are_called() -> None:
    op = random_operator(50, 300, "cpu", torch.float64)
    torch.testing.assert_close(op.dense(), op.dense().T)
    assert torch.linalg.matrix_norm(op.dense(), 2) == pytest.approx(1.0, abs=1e-12)
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(gather_scatter(op, x)(), op @ x)
    graph = lattice(8)
    assert set(graph.degree.tolist()) == {20.0}
    local = graph.permute(graph.local_order())
    spread = [abs(g.edge_index[0] - g.edge_index[1]).mean() for g in (local, graph)]
    assert spread[0] < 0.8 * spread[1]


def test_times_are_medians_of_real_calls() -> None:
    calls: list[int] = []
    assert median_seconds(lambda: calls.append(1), "cpu", seconds=0.01, most=50) >= 0
    assert len(calls) >= 6


def test_functions_take_turns() -> None:
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers, "TURN", 0.0)
        patch.setattr(peers, "_seconds", lambda function, count: (function(), 1.0)[1])
        found = peers.take_turns([lambda: calls.append("a"), lambda: calls.append("b")], 1)
    assert found == [math.inf, math.inf]  # no time, no measurement
    assert calls == ["a"] * 20 + ["b"] * 20


# ---------------------------------------------------------------------- epochs


def test_the_plain_program_computes_the_same_network():
    """The peer of the speed on a CPU has the same logits as our network with the same parameters."""
    config = find_preset("authors", "BS", "cora").config.updated({"hidden": 8, "attention_dim": 8})
    data = karate()
    ensemble = Ensemble(data, make_trials(config, [0]))
    peer = epochs.GatherScatter(data, config)
    ours = dict(ensemble.model.named_parameters())
    names = {"encoder": "encoder", "query": "query", "key": "key", "hidden": "decoder_hidden", "decoder": "decoder"}
    with torch.no_grad():
        for layer, name in names.items():
            getattr(peer, layer).weight.copy_(ours[f"{name}_weight"][0].T)
            getattr(peer, layer).bias.copy_(ours[f"{name}_bias"][0])
        peer.alpha.copy_(ours["coefficient_alpha"][0])
        peer.beta.copy_(ours["coefficient_beta"][0])
        torch.testing.assert_close(peer.eval()(), ensemble.logits()[0], rtol=1e-4, atol=1e-5)


def test_the_sweep_has_members_that_share_a_batch():
    trials = epochs.sweep_trials(4)
    assert len(trials) == 40
    assert len({t.shape for t in trials}) == 1
    assert len({t.config.model.time for t in trials}) == 4


def test_the_floor_counts_gathers_entries_and_parameters():
    config = find_preset("authors", "BS", "cora").config.updated({"hidden": 8, "attention_dim": 8})
    ensemble = Ensemble(karate(), make_trials(config, [0, 1]))
    edges, entries = ensemble.model.operator.num_edges, ensemble.problem.features.values.numel()
    weights = sum(p.numel() for p in ensemble.parameters.values())
    row = 4 * 8 * 2
    expected = (ensemble.model.degree * edges * row * 5 + entries * row * 3 + weights * 28) / 1e9
    assert epochs.floor(ensemble, 1e9) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(epochs.NETWORK_TARGETS))
def test_the_peer_trains(name: str) -> None:
    pytest.importorskip("torch_geometric")
    config = find_preset("published", name, "cora").config
    assert epochs.peer_seconds(name, karate(), config, "cpu", epochs=2) > 0


def test_epochs_of_networks_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "load_dataset", lambda name, offline: karate())
    (row,) = epochs.epoch_rows(["sgc"], "cpu", "karate", epochs=1)
    assert (row["model"], row["settings"]) == ("sgc", "defaults")
    assert row["parameters"] == karate().num_features * 2 + 2
    assert min(row["milliseconds"], row["setup_seconds"]) > 0


# ---------------------------------------------------------------------- searches
def small_configs(count: int) -> list[Config]:
    drawn = draw_candidates(find_space("paper").of(Config()), Config(), count)
    return [candidate.config.updated(SMALL) for candidate in drawn]


def test_a_search_is_measured_by_its_parts() -> None:
    configs = small_configs(4)
    trials = [t for c in configs for t in make_trials(c, range(2))]
    found = measure_search(karate(), trials, "cpu")
    assert (found.trainings, found.shapes, found.epochs) == (8, len(grouped(trials)), 2)
    assert min(found.planning, found.setup, found.running) > 0
    assert found.seconds == pytest.approx(found.planning + 100 * (found.setup + found.recording + found.running))
    assert found.rate == pytest.approx(8 / found.seconds)


def test_a_sample_is_even_in_the_costs() -> None:
    space = find_space("paper").restricted("method", ("euler", "rk4")).of(Config())
    configs, costs = [c.config for c in draw_candidates(space, Config(), 60)], Costs.of(karate(), "cpu")

    def cost(config: Config) -> float:
        beside, product = costs.member(config.model)
        return beside + product * config.model.effort

    bounds = sorted(map(cost, configs))[::10]
    assert [sum(cost(c) >= bound for bound in bounds) for c in evenly(configs, costs, 6)] == [1, 2, 3, 4, 5, 6]
    assert len(evenly(configs, costs, 100)) == 60
    assert evenly(configs, costs, 0) == []


def test_one_configuration_fills_the_card_alone() -> None:
    config = Config().updated({**SMALL, "method": "rk4", "step": 0.5, "epochs": 20})
    found = rate_alone(karate(), config, "cpu", full=1e5)
    assert 1 <= found["members"] <= 16
    assert found["rate"] == pytest.approx(found["members"] / (200 * found["seconds_per_epoch"]))


def test_hours_follow_from_the_rates_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a line through three rates the six other sets have the seconds of their size; a set that was measured has its
    own."""
    monkeypatch.setattr(rates, "load_dataset", lambda name: karate())
    size = karate().num_nodes + karate().graph.edge_index.shape[1]
    found: dict[str, Any] = {
        name: {"nodes": size * scale, "entries": 0, "rate": 1 / scale}
        for name, scale in (("texas", 0.5), ("cora", 2.0), ("pubmed", 8.0))
    }
    assert paper_hours({"texas": found["texas"]}) is None
    hours = paper_hours(found)
    assert hours is not None
    assert hours["trainings"] == 315_000
    assert hours["hours"] == pytest.approx(35_000 * (0.5 + 2.0 + 8.0 + 6 * 1.0) / 3600)
    more = paper_hours(found | {"squirrel": {"nodes": size, "entries": 0, "rate": 4.0}})
    assert more is not None
    assert more["seconds_per_training"]["squirrel"] == 0.25
    assert more["measured"] == ["texas", "squirrel", "cora", "pubmed"]
    assert 0.1 < hours["hours_with_halving"] / hours["hours"] < 1 / 3


def test_a_data_set_is_added_to_the_file_of_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "load_dataset", lambda name: karate())
    monkeypatch.setattr(rates, "measure_search", lambda *given: SearchTimes(20, 2, 3, 2.0, 1.0, 1.0, 6.0, 200))
    monkeypatch.setattr(rates, "rate_alone", lambda *given: {"rate": 4.0})
    out = tmp_path / "speed.json"
    for name, samples in (("texas", 2), ("film", 0)):
        rates.search_speed(command=f"the command of {name}", dataset=name, trials=2, samples=samples, out=out)
    found = json.loads(out.read_text())
    assert [found["texas"][k] for k in ("rate", "share", "command")] == [2.0, 0.5, "the command of texas"]
    assert [found["film"][k] for k in ("rate", "rate_alone", "share", "alone")] == [2.0, None, None, []]


def test_the_parts_of_the_table_sum_to_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "load_dataset", lambda name: karate())
    monkeypatch.setattr(rates, "SPLITS", 1)
    monkeypatch.setattr(rates, "published_config", lambda *given: Config().updated(SMALL))
    found = rates.table_seconds(["texas"], "cpu", 1)
    (row,) = found["rows"]
    assert row["dataset"] == "texas"
    assert row["seconds"] == found["seconds"] == pytest.approx(sum(row[part] for part in rates.PARTS))
    assert found["trainings"] == len(rates.REACTIONS)
    assert found["compiling"] >= 0


# ---------------------------------------------------------------------- many equations


def test_lines_are_drawn_once_and_half_of_a_mixed_draw_is_not_linear() -> None:
    lines = draw_equations(60, "mixed")
    assert len(set(lines)) == 60
    assert lines != draw_equations(60, "mixed", seed=1)
    is_linear = [not any(term in line for term in CURVED) for line in lines]
    assert sum(is_linear) == 30
    for line, linear in list(zip(lines, is_linear, strict=True))[:12]:
        assert rd.parse(line).structure.is_polynomial_in_operator == linear
    assert not any(term in line for line in draw_equations(60, "linear") for term in CURVED)
    with pytest.raises(InvalidArgument, match="among linear, mixed"):
        draw_equations(2, "odd")


def test_no_more_lines_are_drawn_than_there_are() -> None:
    words = len(LINEAR) - 1
    there = sum(math.comb(words, k) * 2**k for k in (1, 2, 3))
    assert len(set(draw_equations(there, "linear"))) == there
    with pytest.raises(InvalidArgument, match=f"at most {there} equations"):
        draw_equations(there + 1, "linear")


def test_equations_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("# two lines\n-alpha*L@H\n\n  -alpha*L@H + beta*H0\n")
    assert read_equations(str(path), "mixed") == ["-alpha*L@H", "-alpha*L@H + beta*H0"]
    assert len(read_equations("3", "linear")) == 3


def test_what_was_cut_off_does_not_count() -> None:
    half = (0.5,)
    found = [
        EquationResult(0, "complete", 60, half, half), EquationResult(1, "pruned", 60, half, half),
        EquationResult(2, "pruned", 37, half, half), EquationResult(3, "failed", 0),
    ]  # fmt: skip
    assert work_done(found, 60) == 0.5


def test_a_row_has_the_rate_of_the_whole_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equation_rates, "load_dataset", lambda name: karate())
    monkeypatch.setattr(sys, "argv", ["benchmarks", "discover-speed", "--kind", "linear"])
    small: dict[str, Any] = {"equations": "3", "splits": 1, "epochs": 3, "command": "the command"}
    caches: list[str] = []

    def run(line: list[str], *, env: dict[str, str], check: bool) -> subprocess.CompletedProcess[bytes]:
        assert line[1:6] == ["-m", "studies.benchmarks", "discover-speed", "--kind", "linear"]
        caches.append(env["TRITON_CACHE_DIR"])
        equation_rates.discover_speed(**small, kind="linear", part=Path(line[-1]))
        return subprocess.CompletedProcess(line, 0)

    monkeypatch.setattr("subprocess.run", run)
    out = tmp_path / "speed.json"
    for _ in range(2):
        equation_rates.discover_speed(**small, kind="linear", out=out)
    first, second = json.loads(out.read_text())
    assert (first["kind"], first["target"], first["met"], second["states"]) == (
        "linear",
        1500.0,
        False,
        {"finished": 3},
    )
    assert first["rate"] == pytest.approx(60 * 3 / first["seconds"])
    assert first["best"]["equation"].startswith("-alpha*L@H")
    assert caches[0] != caches[1]
    with pytest.raises(InvalidArgument, match="--out"):
        equation_rates.discover_speed(**small)


# ---------------------------------------------------------------------- large graphs and many cards
@pytest.mark.slow
def test_every_network_gives_a_row_and_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "large.json"
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the peer's own imports
            large_graphs.large_graphs(device="cpu", size="tiny", epochs=2, out=out)
        found = json.loads(out.read_text())["tiny"]
        assert [row["what"] for row in found["rows"]] == large_graphs.chosen_parts("tiny", [])
        assert not found["failed"]
        monkeypatch.setattr(large_graphs, "measure", pytest.fail)
    for row in found["rows"]:
        assert np.isfinite([row["ms_per_epoch"], row["seconds_before"]]).all()
        assert row["ms_per_epoch"] > 0


def test_rows_of_large_graphs_are_chosen_by_their_beginning() -> None:
    assert large_graphs.chosen_parts("tiny", ["AC"]) == ["AC rk4", "AC rk4 in bfloat16"]
    assert large_graphs.DECOUPLED not in large_graphs.chosen_parts("ten-million", [])
    with pytest.raises(UnknownName, match="row of the large graphs"):
        large_graphs.chosen_parts("tiny", ["nosuch"])


def test_the_rounds_of_a_card_are_those_that_were_measured() -> None:
    seconds = scale.card_seconds(read_result("training_speed"))
    assert set(seconds) == set(scale.SPEEDS)
    assert seconds["texas"] == pytest.approx(500 / 662, rel=0.01)
    assert seconds["texas"] < seconds["cora"] < seconds["pubmed"]
    found = read_result("scale")
    assert found["card_seconds_per_round"] == pytest.approx(seconds)
