"""The seconds of the paper's table: every reaction with its printed settings, and a clock at every part."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.settings.trials import Trial
from studies.benchmarks import printed_speed
from studies.benchmarks.printed_speed import PARTS, measure_sets
from studies.benchmarks.search_speed import Measured
from studies.cells.nine_sets import published_config

SETS = {"texas": karate(), "cora": csbm(n=30, features=5)}


def test_the_printed_settings_are_trained_on_all_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Trial]] = []

    def measured(each: list[NodeData], trials: list[Trial], device: str) -> Measured:
        asked.extend(zip([data.meta.name for data in each], trials, strict=True))
        return Measured(len(trials), 2, 2, 1.0, 2.0, 3.0, 4.0, trials[0].config.training.epochs)

    monkeypatch.setattr(printed_speed, "load_dataset", lambda name: SETS[name])
    monkeypatch.setattr(printed_speed, "measure_search", measured)
    row = measure_sets(list(SETS), "cpu", reactions=("BS", "FB*"))
    wanted = [
        (data.meta.name, Trial(published_config("paper", reaction, name), split))
        for name, data in SETS.items()
        for reaction in ("BS", "FB*")
        for split in range(min(10, data.num_splits))
    ]
    assert asked == wanted
    assert (row["dataset"], row["trainings"], row["epochs"]) == ("all together", len(wanted), 200)
    assert row["seconds"] == pytest.approx(10.0 + row["loading"])


def test_sets_of_different_sizes_are_trained_in_one_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_speed, "load_dataset", lambda name: SETS[name])
    row = measure_sets(list(SETS), "cpu", 1, reactions=("BS",))
    assert (row["trainings"], row["batches"]) == (sum(min(10, data.num_splits) for data in SETS.values()), 2)
    assert min(row[part] for part in ("planning", "setup", "running")) > 0


def test_kernels_are_compiled_before_the_clock_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass has one epoch; what its set-up takes longer is told as compiling."""
    passes: list[tuple[list[str], int]] = []

    def measured(names: list[str], device: str, epochs: int) -> dict[str, Any]:
        passes.append((names, epochs))
        parts = dict.fromkeys(PARTS, 3.0 if epochs == 1 else 1.0)
        return {"dataset": names[0], **parts, "trainings": 7 * len(names), "seconds": sum(parts.values())}

    monkeypatch.setattr(printed_speed, "measure_sets", measured)
    out = tmp_path / "printed.json"
    words = ["printed_speed", "--device", "cpu", "--set", "texas", "--set", "cora", "--by-set", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    printed_speed.main()
    found = json.loads(out.read_text())
    assert passes == [(["texas"], 1), (["cora"], 1), (["texas", "cora"], 0), (["texas"], 0), (["cora"], 0)]
    assert [row["seconds"] for row in found["rows"]] == [5.0, 5.0, 10.0, 5.0]
    assert (found["trainings"], found["seconds"], found["compiling"]) == (14, 5.0, 20.0)
    assert found["command"].endswith("--set texas --set cora --by-set --out printed.json")
