"""Cells: who is tried under which budget, what is measured once, what fails, what is joined."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.settings.presets import find_preset
from gread.settings.trials import make_trials
from gread.training.trainer import train
from gread.tuning.candidates import PlannedRound, TrialResult
from gread.tuning.rounds import train_round
from rdgraph.errors import InvalidArgument
from studies.benchmarks import accuracies, discovered, result_files, searched
from studies.benchmarks.accuracies import RELEASED, configurations, row_of
from studies.benchmarks.discovered import DISCOVERED, NAMES, TRANSFER, Budget, cells_to_measure
from studies.benchmarks.result_files import ResultRow, joined_cells, measure_cells, open_cells, present
from studies.benchmarks.searched import CONTESTANTS, make_candidates, searched_line, searched_row
from studies.cells.cell import SETS


def test_a_row_of_accuracies_has_what_was_trained() -> None:
    preset = find_preset("paper", "BS", "cora")
    config = preset.config.updated({"hidden": 8, "epochs": 3})
    done = train(karate(), make_trials(config, range(10), range(2)), device="cpu", keep_best=False)
    row = row_of(replace(preset, config=config), done, 10)
    each = 100 * done.test_accuracy.reshape(2, 10)
    assert row["mean"] == pytest.approx(each.mean())
    assert row["std"] == pytest.approx(each.std(axis=1).mean())
    assert row["by_seed"] == np.round(each.mean(axis=1), 4).tolist()
    assert [row[name] for name in ("preset", "paper", "authors", "diverged")] == ["paper", 88.57, None, 0]


def test_a_data_set_takes_the_place_of_its_old_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = replace(RELEASED["texas"], config=RELEASED["texas"].config.updated({"epochs": 2, "hidden": 8}))
    monkeypatch.setattr(accuracies, "RELEASED", {"texas": quick})
    monkeypatch.setattr(accuracies, "load_dataset", lambda name: karate())
    out = tmp_path / "accuracy.json"
    out.write_text(json.dumps({"authors": {"rows": [{"dataset": "texas", "mean": 0.0}, {"dataset": "film"}]}}))
    accuracies.accuracy(command="the command", seeds=1, device="cpu", sets=["texas"], out=out)
    found = json.loads(out.read_text())["authors"]
    assert [row["dataset"] for row in found["rows"]] == ["film", "texas"]
    assert found["rows"][1]["mean"] > 0
    assert (found["command"], len(found["code"])) == ("the command", 12)


def test_published_settings_are_taken_and_others_searched_around_what_is_known() -> None:
    found, origin = configurations("gat", "cora")
    assert found == [find_preset("published", "gat", "cora").config]
    assert origin == find_preset("published", "gat", "cora").source
    found, origin = configurations("graphsage", "cora")
    assert len(found) == len(set(found)) == 12
    assert {config.training.epochs for config in found} == {accuracies.SEARCH_EPOCHS}
    near, told = configurations("acmp", "citeseer")
    assert "around published/acmp/texas" in told
    assert {config.model.hidden for config in near} == {16}  # type: ignore[attr-defined]
    kin, told = configurations("sheaf", "cora")
    assert {config.model.model for config in kin} == {"sheaf"}
    assert len(kin) == len(set(kin)) == 5
    assert "published/sheaf-diagonal/chameleon" in told


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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_files, "load_dataset", lambda name, offline: karate())
    monkeypatch.setattr(searched, "EPOCHS", {"karate": 40})
    monkeypatch.setattr(searched, "TRIALS", {"karate": 4})


@pytest.mark.usefixtures("small")
def test_a_cell_that_was_cut_off_is_resumed_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(folder: Path | None = None) -> ResultRow:
        return searched_row(CONTESTANTS["mlp"], "karate", karate(), "cpu", trials=2, epochs=10, folder=folder)

    whole = measure()
    monkeypatch.setattr(searched, "EVERY", 0.0)
    heard: list[float] = []

    def resumed(last: float) -> ResultRow:
        def hear(share: float) -> None:
            heard.append(share)
            if share > last:
                raise KeyboardInterrupt

        monkeypatch.setattr(searched, "train_round", partial(train_round, progress=hear))
        return measure(tmp_path / "cells")

    with pytest.raises(KeyboardInterrupt):
        resumed(0.4)
    (left,) = (tmp_path / "cells").iterdir()
    assert left.name == "mlp-karate-2-10-0"
    heard.clear()
    again = resumed(1.0)
    assert heard[0] > 0.3
    assert again | {"seconds": 0.0} == whole | {"seconds": 0.0}
    assert not any((tmp_path / "cells").iterdir())
    assert again["trials"] == sum(again["states"].values())
    assert np.isfinite([again[name] for name in ("mean", "val_mean", "nested", "share")]).all()


@pytest.mark.usefixtures("small")
def test_a_row_is_measured_once_and_again_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Counter[str]()

    def row(contestant: Any, dataset: str, *given: Any, trials: int, epochs: int, **options: Any) -> Any:
        measured[contestant.name] += 1
        results = [TrialResult(0, "complete", epochs, (0.9, 0.6), (0.1, 0.3))]
        monkeypatch.setattr(searched, "train_round", lambda *given, **options: results)
        return searched_row(contestant, "karate", karate(), "cpu", trials=1, epochs=epochs)

    monkeypatch.setattr(searched, "searched_row", row)
    out = tmp_path / "searched.json"
    asked = {"contestants": ["mlp", "gcnii"], "sets": ["karate"], "device": "cpu", "out": out}
    monkeypatch.setattr(searched, "OTHERS", ("karate",))
    searched.searched(**asked)
    searched.searched(**asked)
    assert measured == {"mlp": 1, "gcnii": 1}
    found = json.loads(out.read_text())
    assert [r["contestant"] for r in found["rows"]] == ["mlp", "gcnii"]
    assert (found["command"], len(found["code"])) == ("python -m studies.benchmarks searched --device cuda", 12)
    assert [r["dataset"] for r in open_cells(out, "c", "cpu", [("mlp", "karate")])["rows"]] == ["karate"]


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
    row = searched_row(CONTESTANTS["gcn-tuned"], "karate", karate(), "cpu", trials=4, epochs=40)
    assert (row["chosen"], row["val_mean"], row["mean"], row["std"]) == (1, 80.0, 50.0, pytest.approx(10.0))
    assert row["each"] == [40.0, 60.0]
    assert row["nested"] == pytest.approx(35.0)
    assert row["by_test"] == 90.0
    assert row["share"] == pytest.approx(140 / 160)
    assert row["states"] == {"complete": 3, "pruned": 1}
    assert row["origin"] == "drawn"


@pytest.mark.parametrize(
    ("problem", "noted", "tried"),
    [
        (RuntimeError("no memory\nmore"), "no memory", 2),
        (AssertionError(), "AssertionError", 2),
        (InvalidArgument("expected a graph"), "expected a graph", 2),
        (torch.AcceleratorError("CUDA error: unspecified launch failure"), "CUDA error: unspecified launch failure", 1),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_cell_that_fails_is_noted_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], problem: Exception, noted: str, tried: int
) -> None:
    """After an error of the card nothing more can be done in the process; errors of our own need no traceback."""

    def failing(*given: Any) -> Any:
        raise problem

    found: dict[str, Any] = {"rows": []}
    cells = [("mlp", "karate"), ("FB*", "karate")]
    measure_cells(cells, failing, searched_line, tmp_path / "s.json", found, float("inf"))
    assert found == {"rows": [], "failed": dict.fromkeys(["mlp/karate", "FB*/karate"][:tried], noted)}
    assert ("Traceback" in capsys.readouterr().err) is not isinstance(problem, InvalidArgument)
    measure_cells(cells, pytest.fail, searched_line, tmp_path / "s.json", found, -1.0)


def test_files_measured_side_by_side_become_one(tmp_path: Path) -> None:
    first = {"rows": [{"model": "gcn", "dataset": d, "mean": m} for d, m in (("cora", 1.0), ("texas", 3.0))],
             "failed": {"gcn/film": "too large", "gat/film": "too large"}}  # fmt: skip
    second = {"rows": [{"model": "gcn", "dataset": d, "mean": 2.0} for d in ("cora", "film")], "command": "later"}
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    for path, part in zip(paths, (first, second), strict=True):
        path.write_text(json.dumps(part), encoding="utf-8")
    found = joined_cells([paths[0], tmp_path / "absent.json", paths[1]])
    assert [(r["dataset"], r["mean"]) for r in found["rows"]] == [("cora", 2.0), ("film", 2.0), ("texas", 3.0)]
    assert found["failed"] == {"gat/film": "too large"}
    assert found["command"] == "later"
    with pytest.raises(InvalidArgument, match=r"third\.json does not exist"):
        present([*paths, tmp_path / "third.json"])


# ---------------------------------------------------------------------- discovered equations
def test_transfers_wait_for_all_choices() -> None:
    rows = [{"contestant": DISCOVERED, "dataset": name} for name in SETS]
    cells = cells_to_measure({"rows": rows[:8]}, searched.KEY, NAMES, [*SETS, "minesweeper"])
    assert (DISCOVERED, SETS[8]) in cells
    assert all(name != TRANSFER for name, _ in cells)
    assert all(dataset != "minesweeper" for _, dataset in cells)
    later = cells_to_measure({"rows": rows}, searched.KEY, [DISCOVERED, TRANSFER], [*SETS, "minesweeper"])
    assert later == [(TRANSFER, dataset) for dataset in (*SETS, "minesweeper")]


def test_everybody_has_as_many_trials() -> None:
    assert Budget.of("cora", None, None, None).equations == 500
    assert Budget.of("pubmed", None, None, None).equations == 150
    assert Budget.of("texas", 7, 3, 20).total == 10
    assert [Budget.of(name, None, None, None).epochs for name in ("minesweeper", "tolokers")] == [500, 200]
    assert Budget.few("cora", None, None).total == searched.FEW
    assert Budget.few("texas", None, None).total == searched.TRIALS["texas"]
    assert Budget.few("texas", 2, None).settings == 1
    with pytest.raises(InvalidArgument, match="at least 2 trials"):
        Budget.few("texas", 1, None)


@pytest.mark.deep
@pytest.mark.slow
def test_a_discovered_cell_is_searched_and_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is repeated takes its rounds from the folder."""
    monkeypatch.setattr(discovered, "FRESH", 1)
    settings: dict[str, Any] = {"device": "cpu", "seed": 0, "folder": tmp_path / "runs", "terms": "default"}
    row = discovered.measure_discovered(DISCOVERED, "karate", karate(), Budget(4, 2, 10), **settings)
    assert (row["contestant"], row["trials"], row["counts"]["trained"]) == ("discovered", 6, 4)
    assert row["val_mean"] == max(row["untuned"]["val_mean"], row["tuned"]["val_mean"])
    assert len(row["each"]) == 10
    assert np.isfinite([row["mean"], row["nested"], row["by_test"], row["test_to_train"]]).all()
    assert {kind: set(names) for kind, names in row["fresh"].items()} == {
        "seeds": {"chosen", "BS"}, "splits": {"chosen", "BS"},
    }  # fmt: skip
    rounds = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs" / "rounds").iterdir()}
    again = discovered.measure_discovered(DISCOVERED, "karate", karate(), Budget(4, 2, 10), **settings)
    assert (again["equation"], again["mean"]) == (row["equation"], row["mean"])
    assert {path: path.stat().st_mtime_ns for path in rounds} == rounds
    origin = {"dataset": "texas", "equation": row["equation"]}
    moved = discovered.measure_transfer("karate", karate(), [origin], device="cpu", epochs=10, seed=0)
    assert [one["origin"] for one in moved["results"]] == ["BS", "texas"]


def test_no_round_is_begun_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        results = (1, 2)
        plan = type("Plan", (), {"budget": 5, "data": karate()})

    discovered._in_time(time.monotonic() + 60, Found())  # type: ignore[arg-type]
    with pytest.raises(discovered.OutOfTime):
        discovered._in_time(time.monotonic() - 1, Found())  # type: ignore[arg-type]
    Found.plan.budget = 2
    discovered._in_time(time.monotonic() - 1, Found())  # type: ignore[arg-type]
