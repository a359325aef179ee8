"""The table of compared networks: what is trained in a cell, who chooses, what the page says of it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.datasets.embedded import karate
from gread.settings.presets import find_preset
from rdgraph.errors import InvalidArgument
from studies.benchmarks import cell_file, compared, compared_page
from studies.benchmarks.model_speed import PEERS, peer_seconds


def row(**changes: Any) -> dict[str, Any]:
    given = {
        "model": "gcn", "dataset": "cora", "mean": 86.0, "std": 1.2, "each": [86.0] * 10, "tried": 1, "parameters": 7,
        "seconds": 2.0, "published": 86.5, "published_std": 1.3,
    }  # fmt: skip
    return given | changes


def test_published_settings_are_taken_as_they_are() -> None:
    found, origin = compared.configurations("gat", "cora")
    assert found == [find_preset("published", "gat", "cora").config]
    assert origin == find_preset("published", "gat", "cora").source


def test_others_are_searched_around_what_is_known() -> None:
    found, origin = compared.configurations("graphsage", "cora")
    assert len(found) == len(set(found)) == 12
    assert {config.training.epochs for config in found} == {compared.SEARCH_EPOCHS}
    assert "the defaults" in origin
    near, told = compared.configurations("acmp", "citeseer")
    assert "around published/acmp/texas" in told
    assert {config.model.hidden for config in near} == {16}  # type: ignore[attr-defined]
    assert len(near) == len(set(near)) > 1


def test_networks_of_one_kind_try_what_is_published_for_any_of_them() -> None:
    found, told = compared.configurations("sheaf", "cora")
    assert {config.model.model for config in found} == {"sheaf"}
    assert len(found) == len(set(found)) == 5
    assert {config.model.stalk for config in found} == {3, 4}  # type: ignore[attr-defined]
    assert "published/sheaf/texas" in told
    assert "published/sheaf-diagonal/chameleon" in told


@pytest.mark.slow
def test_a_cell_is_measured_written_and_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "GRID", {"learning_rate": (0.01, 0.05)})
    monkeypatch.setattr(compared, "SEARCH_EPOCHS", 30)
    monkeypatch.setattr(cell_file, "load_dataset", lambda name, offline: karate())
    out, found = tmp_path / "compared.json", {"rows": []}
    cells = cell_file.missing_cells(found, compared.KEY, ["mlp", "sgc"], ["karate"])
    assert cells == [("mlp", "karate"), ("sgc", "karate")]
    cell_file.measure_cells(cells, partial(compared.measure, device="cpu"), compared.told, out, found, float("inf"))
    written = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert [r["model"] for r in written] == ["mlp", "sgc"]
    sgc = written[1]
    assert sgc["tried"] == 2
    assert sgc["mean"] == pytest.approx(np.mean(sgc["each"]), abs=1e-3)
    assert sgc["parameters"] == karate().num_features * 2 + 2
    assert sgc["settings"]["training"]["learning_rate"] in (0.01, 0.05)
    assert cell_file.missing_cells({"rows": written}, compared.KEY, ["mlp", "sgc"], ["karate"]) == []
    cell_file.measure_cells(cells, partial(compared.measure, device="cpu"), compared.told, out, found, -1.0)
    assert len(json.loads(out.read_text(encoding="utf-8"))["rows"]) == 2


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "agrees"), ({"mean": 80.0}, "below"), ({"mean": 92.0}, "above"), ({"published": None}, ""),
        ({"mean": 80.0, "tried": 12}, "underspecified"), ({"tried": 12}, "agrees"),
    ],
)  # fmt: skip
def test_the_status_of_a_cell(changes: dict[str, Any], word: str) -> None:
    assert compared_page.status(row(**changes)) == word


def test_the_page_has_every_cell_and_what_it_comes_to() -> None:
    rows = [row(), row(model="gat", mean=80.0, published=86.3), row(model="smoothed", published=None)]
    page = compared_page.page({"rows": rows, "command": "the command", "environment": {"torch": "2"}})
    assert "| GCN |" in page
    assert "86.0 (86.5)" in page
    assert "**80.0 (86.3)**" in page
    assert "2 of 3 cells have a published number: 1 agrees, 0 above, 1 below, 0 underspecified" in page
    assert "mean absolute difference 3.40" in page


@pytest.mark.parametrize("name", list(PEERS))
def test_the_peer_trains(name: str) -> None:
    pytest.importorskip("torch_geometric")
    config = find_preset("published", name, "cora").config
    assert peer_seconds(name, karate(), config, "cpu", epochs=2) > 0


def test_files_measured_side_by_side_become_one(tmp_path: Path) -> None:
    first = {
        "rows": [row(mean=1.0), row(dataset="texas")],
        "failed": {"gcn/film": "too large", "gat/film": "too large"},
    }
    second = {"rows": [row(mean=2.0), row(dataset="film")], "command": "later"}
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    for path, part in zip(paths, (first, second), strict=True):
        path.write_text(json.dumps(part), encoding="utf-8")
    found = cell_file.joined_cells(paths, compared.KEY)
    assert [(r["dataset"], r["mean"]) for r in found["rows"]] == [("cora", 2.0), ("film", 86.0), ("texas", 86.0)]
    assert found["failed"] == {"gat/film": "too large"}
    assert found["command"] == "later"
    with pytest.raises(InvalidArgument, match=r"third\.json, which is none"):
        cell_file.present([*paths, tmp_path / "third.json"])


def test_outliers_have_their_causes() -> None:
    notes = [{"network": "gat gcn", "sets": "cora texas", "cause": "explained", "note": "Swapped."}]
    rows = [
        row(model="gat", mean=70.0), row(mean=84.0), row(model="sgc", mean=60.0, tried=12),
        row(model="jknet", mean=60.0), row(model="GREAD-AC", dataset="texas", mean=60.0),
    ]  # fmt: skip
    lines = compared_page.outliers(rows, notes)
    told = {line.split(" | ")[0].strip("| "): line.split(" | ")[-1].strip("| ") for line in lines if "86.5" in line}
    assert told == {
        "GAT": "explained (1)", "SGC": "settings were not published", "JKNet": "not explained",
        "GREAD-AC": "the authors' code has 73.0 ± 6.6 on 5 splits",
    }  # fmt: skip
    assert lines[-1] == "1. Swapped."


def test_the_page_has_the_reactions_and_the_epochs() -> None:
    reaction = {
        "reaction": "BS", "dataset": "texas", "mean": 80.0, "std": 4.0, "splits": 10, "paper": 88.9, "paper_std": 3.7,
    }  # fmt: skip
    epochs = {"command": "run", "environment": {}, "epochs": [{"model": "gcn", "milliseconds": 0.35}]}
    found = {"rows": [row()], "environment": {}, "command": "there"}
    text = compared_page.page(found, [reaction], [], epochs)
    assert "| GREAD-BS | **80.0 (88.9)** |" in text
    assert "| GCN | 7 | 0.35 | 2.0 | 1 |" in text
