"""The speed of a search: its trials, its parts, and the hours that follow from rates; on a small set, in seconds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.trials import grouped, make_trials
from gread.training.planner import Costs
from gread.tuning.space import find_space, read_space
from studies.benchmarks import search_speed
from studies.benchmarks.rate_tables import search_part
from studies.benchmarks.search_speed import (
    Measured,
    draw_configs,
    evenly,
    measure_search,
    on_lines,
    paper_hours,
    rate_alone,
)

SMALL = {"hidden": 4, "attention_dim": 4, "epochs": 2}


def test_trials_are_drawn_from_the_whole_space() -> None:
    configs = draw_configs(find_space("paper"), Config(), 200)
    assert configs == draw_configs(find_space("paper"), Config(), 200)
    assert {c.gread.method for c in configs} == {"euler", "rk4", "dopri5"}
    assert {c.gread.hidden for c in configs} == {32, 64, 128, 256}
    assert all((c.gread.step is None) == (c.gread.method == "dopri5") for c in configs)
    assert all(0.1 <= c.gread.time <= 6 and c.training.epochs == 200 for c in configs)
    assert len({c.gread.time for c in configs}) == 200
    assert len(grouped([t for c in configs for t in make_trials(c, range(10))])) == 8
    text = "[settings]\nheads = {low = 1, high = 2}\ntime = {low = 0.1, high = 10.0, log = true}"
    drawn = draw_configs(read_space(text, "own"), Config(), 40)
    assert {c.gread.heads for c in drawn} == {1, 2}
    assert sum(c.gread.time < 1 for c in drawn) in range(10, 31)


def test_a_search_is_measured_by_its_parts() -> None:
    configs = [c.updated(SMALL) for c in draw_configs(find_space("paper"), Config(), 4)]
    found = measure_search(karate(), [t for c in configs for t in make_trials(c, range(2))], "cpu")
    assert (found.trainings, found.shapes, found.epochs) == (8, 2, 2)
    assert min(found.planning, found.setup, found.running) > 0
    assert found.seconds == pytest.approx(found.planning + 100 * (found.setup + found.recording + found.running))
    assert found.rate == pytest.approx(8 / found.seconds)


def test_a_sample_is_even_in_the_costs() -> None:
    configs = draw_configs(find_space("paper").restricted("method", ("euler", "rk4")), Config(), 60)
    costs = Costs.of(karate(), "cpu")

    def cost(config: Config) -> float:
        beside, product = costs.member(config.model)
        return beside + product * config.model.effort

    chosen = evenly(configs, costs, 6)
    bounds = sorted(map(cost, configs))[::10]
    assert [sum(cost(c) >= bound for bound in bounds) for c in chosen] == [1, 2, 3, 4, 5, 6]
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
    monkeypatch.setattr(search_speed, "load_dataset", lambda name: karate())
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
    assert on_lines([(0.0, 0.0), (1.0, 1.0), (2.0, 5.0)], 1.5) == 3.0


def test_the_command_adds_a_data_set_to_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_speed, "load_dataset", lambda name: karate())
    monkeypatch.setattr(search_speed, "measure_search", lambda *given: Measured(20, 2, 3, 2.0, 1.0, 1.0, 6.0, 200))
    monkeypatch.setattr(search_speed, "rate_alone", lambda *given: {"rate": 4.0})
    out = tmp_path / "speed.json"
    for name in ("texas", "cora"):
        monkeypatch.setattr(sys, "argv", ["search_speed", "--dataset", name, "--trials", "2", "--out", str(out)])
        search_speed.main()
    found = json.loads(out.read_text())
    assert set(found) == {"texas", "cora"}
    assert found["texas"]["rate"] == 2.0
    assert found["texas"]["share"] == 0.5
    given = ["search_speed", "--dataset", "film", "--trials", "2", "--samples", "0", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", given)
    search_speed.main()
    row = json.loads(out.read_text())["film"]
    assert (row["rate"], row["rate_alone"], row["share"], row["alone"]) == (2.0, None, None, [])
    assert "| film | euler, rk4 | 20 | 2 | 2 |  |  |  |  |  |  |" in search_part({"film": row})
    assert found["texas"]["command"].endswith(f"--dataset texas --trials 2 --out {out.name}")
