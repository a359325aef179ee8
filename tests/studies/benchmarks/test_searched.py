"""Searches under one budget: what is tried in a cell, who chooses, which files there are."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.settings.presets import find_preset
from gread.tuning.candidates import PlannedRound, TrialResult
from gread.tuning.rounds import train_round
from rdgraph.errors import InvalidArgument, UnknownName
from studies.benchmarks import cell_file, searched
from studies.benchmarks.searched import CONTESTANTS, make_candidates


def test_the_trials_of_a_reaction_begin_with_its_published_settings() -> None:
    found, names = make_candidates(CONTESTANTS["BS"], "cora", 12, 200, seed=0)
    assert names == {0: "paper/BS/cora", 1: "authors/BS/cora"}
    assert found[0].config == find_preset("paper", "BS", "cora").config
    assert [c.number for c in found] == list(range(12))
    drawn = [c.config.gread for c in found[2:]]
    assert {m.reaction for m in drawn} == {"BS"}
    assert {m.method for m in drawn} <= {"euler", "rk4"}
    assert len({m.time for m in drawn}) == 10
    # what the paper leaves open is as released for this set
    assert {m.encoder_mlp for m in drawn} == {find_preset("authors", "BS", "cora").config.gread.encoder_mlp}


def test_tanh_stands_around_the_reaction_in_published_and_drawn_settings() -> None:
    found, names = make_candidates(CONTESTANTS["Z-tanh"], "texas", 3, 200, seed=0)
    assert names == {0: "paper/Z/texas"}
    assert {c.config.gread.reaction for c in found} == {"-alpha*L@H + beta*tanh(H*(H - H**2))"}
    plain = find_preset("paper", "Z", "texas").config
    assert found[0].config.training == plain.training
    assert found[0].config.gread.time == plain.gread.time


def test_everybody_has_as_many_trials_of_as_many_epochs() -> None:
    for name, contestant in CONTESTANTS.items():
        for dataset in ("texas", "minesweeper"):
            found, _ = make_candidates(contestant, dataset, 4, 77, seed=1)
            assert len(found) == 4, name
            assert {
                (c.config.training.epochs, c.config.training.select, c.config.training.patience) for c in found
            } == {(77, "accuracy", 0)}
            assert {c.config.model.model for c in found} == {contestant.model}


def test_the_same_seed_draws_the_same_trials() -> None:
    first, second, other = (make_candidates(CONTESTANTS["gcn-tuned"], "film", 5, 9, seed=s)[0] for s in (3, 3, 4))
    assert [c.config for c in first] == [c.config for c in second] != [c.config for c in other]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_file, "load_dataset", lambda name, offline: karate())
    monkeypatch.setattr(searched, "EPOCHS", {"karate": 40})
    monkeypatch.setattr(searched, "TRIALS", {"karate": 4})


@pytest.mark.usefixtures("small")
@pytest.mark.slow
def test_a_cell_is_measured_written_and_not_measured_again(tmp_path: Path) -> None:
    out, found = tmp_path / "searched.json", {"rows": []}
    cells = cell_file.missing_cells(found, searched.KEY, ["gprgnn", "F-tanh"], ["karate"])
    cell_file.measure_cells(cells, partial(searched.measured, device="cpu"), searched.told, out, found, float("inf"))
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert [r["contestant"] for r in rows] == ["gprgnn", "F-tanh"]
    for row in rows:
        assert row["trials"] == 4 == sum(row["states"].values())
        assert row["epochs"] == 40
        assert row["by_test"] >= row["mean"]
        assert len(row["each"]) == 10
        assert 0 < row["share"] <= 1
    assert cell_file.missing_cells({"rows": rows}, searched.KEY, ["gprgnn", "F-tanh"], ["karate"]) == []
    cell_file.measure_cells(cells, partial(searched.measured, device="cpu"), searched.told, out, found, -1.0)
    assert len(json.loads(out.read_text(encoding="utf-8"))["rows"]) == 2


@pytest.mark.usefixtures("small")
def test_a_cell_that_was_cut_off_goes_on_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = searched.measured("gprgnn", "karate", karate(), device="cpu")
    monkeypatch.setattr(searched, "EVERY", 0.0)
    heard: list[float] = []

    def measure(last: float) -> searched.SearchedRow:
        def hear(share: float) -> None:
            heard.append(share)
            if share > last:
                raise KeyboardInterrupt

        monkeypatch.setattr(searched, "train_round", partial(train_round, progress=hear))
        return searched.measured("gprgnn", "karate", karate(), device="cpu", folder=tmp_path / "cells")

    with pytest.raises(KeyboardInterrupt):
        measure(0.4)
    (left,) = (tmp_path / "cells").iterdir()
    assert left.name == "gprgnn-karate-4-40-0"
    heard.clear()
    again = measure(1.0)
    assert heard[0] > 0.3
    assert replace(again, seconds=0.0) == replace(whole, seconds=0.0)
    assert not any((tmp_path / "cells").iterdir())


@pytest.mark.usefixtures("small")
def test_validation_chooses_and_test_is_only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = [
        TrialResult(0, "complete", 40, (0.9, 0.6), (0.1, 0.3)),
        TrialResult(1, "complete", 40, (0.8, 0.8), (0.4, 0.6)),
        TrialResult(2, "complete", 40, (0.5, 0.5), (0.9, 0.9)),
        TrialResult(3, "pruned", 20, (1.0, 1.0), (1.0, 1.0)),
    ]

    def trained(data: Any, plan: PlannedRound, **options: Any) -> list[TrialResult]:
        assert plan.halving
        return planted

    monkeypatch.setattr(searched, "train_round", trained)
    row = searched.measure(CONTESTANTS["gcn-tuned"], "karate", karate(), "cpu", trials=4, epochs=40)
    assert (row.chosen, row.val_mean, row.mean, row.std) == (1, 80.0, 50.0, pytest.approx(10.0))
    assert row.each == (40.0, 60.0)
    assert row.nested == pytest.approx(35.0)
    assert row.by_test == 90.0
    assert row.share == pytest.approx(140 / 160)
    assert row.states == {"complete": 3, "pruned": 1}
    assert row.origin == "drawn"


@pytest.mark.parametrize(
    ("problem", "noted", "is_traced"),
    [
        (RuntimeError("no memory\nmore"), "no memory", True),
        (np.linalg.LinAlgError("Singular matrix"), "Singular matrix", True),
        (AssertionError(), "AssertionError", True),
        (InvalidArgument("expected a graph"), "expected a graph", False),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_cell_that_fails_is_noted_and_the_others_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    problem: Exception,
    noted: str,
    is_traced: bool,
) -> None:
    def failing(*args: Any, **options: Any) -> Any:
        raise problem

    monkeypatch.setattr(searched, "measure", failing)
    found: dict[str, Any] = {"rows": []}
    cell_file.measure_cells(
        [("mlp", "karate"), ("FB*", "karate")],
        partial(searched.measured, device="cpu"),
        searched.told,
        tmp_path / "s.json",
        found,
        float("inf"),
    )
    assert found == {"rows": [], "failed": {"mlp/karate": noted, "FB*/karate": noted}}
    assert ("Traceback" in capsys.readouterr().err) is is_traced


@pytest.mark.usefixtures("small")
def test_after_an_error_of_the_card_no_other_cell_is_begun(tmp_path: Path) -> None:
    """Whatever else such a process asks of the card fails, too."""
    tried = list[str]()

    def failing(name: str, dataset: str, data: Any) -> Any:
        tried.append(name)
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")

    found: dict[str, Any] = {"rows": []}
    out = tmp_path / "s.json"
    cell_file.measure_cells([("mlp", "karate"), ("F", "karate")], failing, str, out, found, float("inf"))
    assert tried == ["mlp"]
    assert json.loads(out.read_text(encoding="utf-8"))["failed"] == {
        "mlp/karate": "CUDA error: unspecified launch failure"
    }


def test_files_measured_side_by_side_become_one(tmp_path: Path) -> None:
    first = {"rows": [{"contestant": "BS", "dataset": "cora", "mean": 1.0}], "failed": {"F/film": "no memory"}}
    second = {
        "rows": [{"contestant": name, "dataset": d, "mean": 2.0} for name, d in (("BS", "cora"), ("F", "film"))],
        "failed": {"Z/film": "no memory"},
    }
    paths = [tmp_path / "1.json", tmp_path / "absent.json", tmp_path / "2.json"]
    for path, part in zip((paths[0], paths[2]), (first, second), strict=True):
        path.write_text(json.dumps(part), encoding="utf-8")
    found = cell_file.joined_cells(paths, searched.KEY)
    assert [(r["contestant"], r["mean"]) for r in found["rows"]] == [("BS", 2.0), ("F", 2.0)]
    assert found["failed"] == {"Z/film": "no memory"}


def test_a_name_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownName, match="contestant"):
        cell_file.checked(["GCN"], tuple(CONTESTANTS), "contestant")
