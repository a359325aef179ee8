"""The seconds of the paper's table: every reaction with its printed settings, and a clock at every part."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gread.datasets.embedded import karate
from gread.settings.trials import Trial
from studies.benchmarks import printed_speed
from studies.benchmarks.printed_speed import PARTS, measure_set
from studies.benchmarks.search_speed import Measured
from studies.cells.nine_sets import published_config


def test_the_printed_settings_are_trained_on_all_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Trial] = []

    def measured(data: Any, trials: list[Trial], device: str) -> Measured:
        asked.extend(trials)
        return Measured(len(trials), 2, 2, 1.0, 2.0, 3.0, 4.0, trials[0].config.training.epochs)

    monkeypatch.setattr(printed_speed, "load_dataset", lambda name: karate())
    monkeypatch.setattr(printed_speed, "measure_search", measured)
    row = measure_set("texas", "cpu", reactions=("BS", "FB*"))
    splits = min(10, karate().num_splits)
    assert [trial.config for trial in asked[::splits]] == [published_config("paper", r, "texas") for r in ("BS", "FB*")]
    assert (row["dataset"], row["trainings"], row["epochs"]) == ("texas", 2 * splits, 200)
    assert row["seconds"] == pytest.approx(10.0 + row["loading"])


def test_kernels_are_compiled_before_the_clock_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass has one epoch; what its set-up takes longer is told as compiling."""
    passes: list[tuple[str, int]] = []

    def measured(name: str, device: str, epochs: int) -> dict[str, Any]:
        passes.append((name, epochs))
        is_first = epochs == 1
        parts = dict.fromkeys(PARTS, 3.0 if is_first else 1.0)
        return {"dataset": name, **parts, "trainings": 7, "seconds": sum(parts.values())}

    monkeypatch.setattr(printed_speed, "measure_set", measured)
    out = tmp_path / "printed.json"
    monkeypatch.setattr(
        sys, "argv", ["printed_speed", "--device", "cpu", "--set", "texas", "--set", "cora", "--out", str(out)]
    )
    printed_speed.main()
    found = json.loads(out.read_text())
    assert passes == [("texas", 1), ("cora", 1), ("texas", 0), ("cora", 0)]
    assert (found["trainings"], found["seconds"], found["compiling"]) == (14, 10.0, 16.0)
    assert (
        found["command"]
        == "python -m studies.benchmarks.printed_speed --device cpu --set texas --set cora --out printed.json"
    )
