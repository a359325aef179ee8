"""`rdgraph compare`: who is compared, with what settings; numbers against single trainings; resuming."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gread.comparison import share_ratio
from gread.datasets.embedded import karate
from gread.models.label_propagation import accuracies, best_propagation
from gread.settings.presets import find_preset
from gread.settings.trials import make_trials
from gread.training.trainer import Progress, train
from rdgraph.errors import FileError, InvalidArgument, UnknownName
from rdgraph.systems.catalogue import catalogue
from studies.cli import app as cli
from studies.contest import study
from studies.contest.contestants import Contestant, read_contestants
from studies.contest.study import (
    Pace,
    contest_folder,
    enter,
    execute_contest,
    make_contest,
    sentences,
    table_rows,
    verdicts,
)
from studies.runs.tables import read_rows
from studies.training.plan import Request, make_plan

#: n_test/n_train of the public splits.
RATIO = 20 / 48

TINY = ("hidden=4", "epochs=3")


# ---------------------------------------------------------------------- who
def test_published_settings_are_taken_where_there_are_some() -> None:
    gcn, bs, star, spread, usual = read_contestants(["gcn", "gread-bs", "GREAD-FB*", "labelprop", "majority"], "cora")
    assert gcn.config == find_preset("published", "gcn", "cora").config
    assert (gcn.source, gcn.published.mean) == ("published/gcn/cora", 86.98)  # type: ignore[union-attr]
    assert bs.config == find_preset("paper", "BS", "cora").config
    assert (bs.title, bs.published.mean, bs.key) == ("GREAD-BS", 88.57, "gread-BS")  # type: ignore[union-attr]
    assert (star.name, star.key) == ("gread-FB*", "gread-FBstar")
    assert (spread.title, spread.config, usual.title) == ("label propagation", None, "majority class")
    (plain,) = read_contestants(["gcn"], "cora", preset="defaults")
    assert plain.source == "defaults"
    (own,) = read_contestants(["gcn"], "cora", is_own=True)
    assert (own.source, own.published) == ("defaults", None)


@pytest.mark.parametrize(
    ("dataset", "preset"), [("texas", "published"), ("texas", "defaults"), ("karate", "published")]
)
def test_an_equation_has_the_settings_of_gread(dataset: str, preset: str) -> None:
    named, written = read_contestants(["gread"], dataset, preset=preset, reactions=[catalogue.entry("BS").equation])
    assert named.config is not None
    assert written.config == named.config.updated({"reaction": written.equation})
    assert written.source == f"{named.source}, with another reaction"
    if (dataset, preset) == ("texas", "published"):
        assert named.source == "paper/BS/texas"


def test_settings_of_one_and_of_all() -> None:
    changes = {"hidden": "4", "gcn.layers": "3", "heads": "2"}
    gcn, gat = read_contestants(["gcn", "gat"], "karate", changes=changes, epochs=7)
    assert (gcn.config.model.hidden, gcn.config.model.layers) == (4, 3)  # type: ignore[union-attr]
    assert (gat.config.model.hidden, gat.config.model.heads, gat.config.model.layers) == (4, 2, 2)  # type: ignore[union-attr]
    assert gat.config.training.epochs == 7  # type: ignore[union-attr]
    assert gcn.source == "defaults; changed: epochs, hidden, layers"
    (longer,) = read_contestants(["gcn"], "karate", changes={"epochs": "9"}, epochs=7)
    assert longer.config.training.epochs == 9  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (["gatt"], {}, "did you mean 'gat'"),
        (["gread-xy"], {}, "expected a reaction after gread-"),
        ([], {}, "no networks to compare; write --models"),
        (["gcn"], {"preset": "paper"}, "expected a preset, got 'paper'"),
        (["gcn"], {"changes": {"heads": "2"}}, "expected a setting of these networks, got 'heads'"),
        (["gcn"], {"changes": {"gat.heads": "2"}}, "expected a network of a setting, got 'gat'"),
        (["gcn"], {"changes": {"gcn.heads": "2"}}, "expected a setting of gcn, got 'heads'"),
    ],
)
def test_wrong_names(names: list[str], options: dict[str, Any], words: str) -> None:
    with pytest.raises((UnknownName, InvalidArgument), match=words):
        read_contestants(names, "karate", **options)


# ---------------------------------------------------------------------- numbers
@pytest.mark.slow
def test_numbers_are_those_of_single_trainings(tmp_path: Path) -> None:
    plan = make_contest(Request("karate", splits="0-2", seeds=2), ["gcn", "labelprop", "mlp"], changes=TINY)
    rows = execute_contest(plan, tmp_path / "run")
    assert [row["method"] for row in rows] == ["GCN", "label propagation", "MLP"]
    data, each = karate(), {}
    for one in plan.contestants:
        if one.config is None:
            right = [accuracies(data, k, best_propagation(data, k).scores).test for k in range(3)]
        else:
            done = train(data, make_trials(one.config, range(3), range(2)), device="cpu")
            right = done.test_accuracy.reshape(2, 3).mean(0).tolist()
        each[one.title] = 100 * np.array(right)
    for row in rows:
        own, gap = each[str(row["method"])], each[str(row["method"])] - each["GCN"]
        assert row["mean"] == pytest.approx(own.mean(), abs=1e-3)
        assert row["std"] == pytest.approx(own.std(), abs=1e-3)
        if row["method"] != "GCN":
            assert row["difference"] == pytest.approx(gap.mean(), abs=1e-3)
            assert row["difference_error"] == pytest.approx(
                gap.std(ddof=1) * math.sqrt(1 / 3 + share_ratio(data)), abs=1e-3
            )
    features = data.num_features
    assert [row["parameters"] for row in rows] == [4 * features + 4 + 8 + 2, 0, 4 * features + 4 + 8 + 2]
    assert all(row["ms_per_epoch"] > 0 for row in rows if row["parameters"])
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert [v["statement"] for v in report["verdicts"]] == [
        "GCN is more accurate than label propagation on the same splits.",
        "GCN is more accurate than an MLP, which does not see the graph, on the same splits.",
    ]
    assert {p.name for p in (tmp_path / "run" / "figures").glob("*.png")} == {"accuracy.png", "learning.png"}
    assert len(read_rows(tmp_path / "run" / "results.csv")) == 6 + 3 + 6
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_reference_that_beats_a_network_is_named() -> None:
    pair = (Contestant("gcn", "GCN"), Contestant("labelprop", "label propagation"))
    results = {"gcn": rows(0.7, 0.71, 0.69), "labelprop": rows(0.8, 0.8, 0.8)}
    assert sentences(pair, results, RATIO) == [
        "Label propagation has the highest mean test accuracy (80.00 %).",
        "Label propagation beats GCN: +10.00 (standard error 0.87).",
    ]
    assert [answer for _, answer, _ in verdicts(pair, results, RATIO)] == ["fails"]
    costs = {name: {"parameters": 0, "epochs": 0, "ms_per_epoch": math.nan} for name in results}
    first, second = (row["difference"] for row in table_rows(pair, results, costs, RATIO))
    assert math.isnan(first)
    assert second == pytest.approx(10.0)


def rows(*values: float, best: int = 20) -> list[dict[str, Any]]:
    """Test accuracies split by split."""
    return [
        {"split": k, "seed": 0, "best_epoch": best, "test_accuracy": v, "status": "ok"} for k, v in enumerate(values)
    ]


def test_a_network_that_was_cut_off_is_not_told_to_be_worse() -> None:
    changes = {"gcn.epochs": "20", "gcn.patience": "0"}
    gcn, mlp, spread = read_contestants(["gcn", "mlp", "labelprop"], "cora", changes=changes)
    planned = find_preset("published", "gcn", "cora").config.training.epochs
    cut = f"GCN was trained for only 20 of {planned} epochs"
    low, high = rows(0.7, 0.71, 0.69), rows(0.8, 0.8, 0.8)
    results = {"gcn": low, "mlp": high, "labelprop": high}
    for order in ((gcn, mlp), (mlp, gcn), (gcn, spread)):
        ((_, answer, evidence),) = verdicts(order, results, RATIO)
        assert answer == "undecided"
        assert evidence.endswith(f"{cut}.")
        assert sentences(order, results, RATIO)[-1].startswith(f"{cut}: ")
    for order, answer in (((mlp, gcn), "fails"), ((gcn, mlp), "holds")):  # the other one, which had its time, loses
        ((_, told, evidence),) = verdicts(order, {"gcn": high, "mlp": low}, RATIO)
        assert told == answer
        assert "cut off" not in evidence
    both = read_contestants(["gat", "gcn"], "cora", epochs=2)
    assert sentences(both, {"gat": low, "gcn": low}, RATIO)[-1].endswith("lower accuracy.")


def test_the_same_budget_decides_where_nothing_is_published() -> None:
    low, high = rows(0.7, 0.71, 0.69), rows(0.8, 0.8, 0.8)
    pair = read_contestants(["gread", "gcn", "labelprop"], "mine", changes={"epochs": "100"}, is_own=True)
    results = {"gread": low, "gcn": high, "labelprop": high}
    assert [answer for _, answer, _ in verdicts(pair, results, RATIO)] == ["fails", "fails"]
    assert "100 epochs" in sentences(pair, results, RATIO)[-1]
    uneven = read_contestants(["gread", "gcn"], "mine", changes={"gread.epochs": "100"}, is_own=True)
    assert [answer for _, answer, _ in verdicts(uneven, results, RATIO)] == ["undecided"]
    assert "trained for only 100 of 200" in sentences(uneven, results, RATIO)[-1]


def test_equal_differences_are_decided_by_a_sign_test() -> None:
    pair = (Contestant("gcn", "GCN"), Contestant("gat", "GAT"))
    results = {"gcn": rows(0.75, 0.65), "gat": rows(0.7, 0.6)}
    ((_, answer, evidence),) = verdicts(pair, results, RATIO)
    assert answer == "undecided"
    assert "sign test, p = 0.5" in evidence
    assert "Student" not in evidence


def test_nothing_beats_what_the_splits_do_not_tell_from_it() -> None:
    three = (Contestant("gcn", "GCN"), Contestant("gat", "GAT"), Contestant("labelprop", "label propagation"))
    results = {"gcn": rows(0.75, 0.66, 0.72), "gat": rows(0.3, 0.32, 0.29), "labelprop": rows(0.70, 0.71, 0.69)}
    assert sentences(three, results, RATIO) == [
        "GCN has the highest mean test accuracy (71.00 %), not significantly different from label propagation.",
        "Label propagation beats GAT: +39.67 (standard error 0.50).",
        "Label propagation is not significantly different from GCN.",
    ]
    tied = {"gcn": results["labelprop"], "labelprop": results["labelprop"]}
    (only,) = sentences((three[0], three[2]), tied, RATIO)
    assert "70.00 %" in only
    assert "no difference is significant" in only


def test_patience_is_an_end_of_its_own() -> None:
    (one,) = read_contestants(["gcn"], "karate", changes={"epochs": "50", "patience": "10"})
    assert one.cut_off(rows(0.5, 0.5, best=40)) == ""
    assert one.cut_off([*rows(0.5, best=40), *rows(0.5, best=41)]).startswith("trained for only 50 of ")


def test_several_comparisons_are_said_not_to_be_corrected() -> None:
    three = tuple(Contestant(name, name.upper()) for name in ("gcn", "gat", "mlp"))
    results = {one.name: rows(0.7, 0.71, 0.69) for one in three}
    assert ["Not corrected" in evidence for _, _, evidence in verdicts(three, results, RATIO)] == [True, True]
    assert ["Not corrected" in evidence for _, _, evidence in verdicts(three[:2], results, RATIO)] == [False]


def test_time_per_epoch_leaves_the_first_out() -> None:
    pace = Pace()
    assert math.isnan(pace.milliseconds)
    pace(Progress(1, 40, 0, 1, 1.0, 0.5, 5.0))
    assert math.isnan(pace.milliseconds)
    pace(Progress(21, 40, 0, 1, 1.0, 0.5, 5.4))
    assert pace.milliseconds == pytest.approx(20.0)


# ---------------------------------------------------------------------- runs
@pytest.mark.slow
def test_an_interrupted_contest_trains_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_contest(Request("karate", splits="0-1"), ["gcn", "mlp"], changes=TINY)
    whole = execute_contest(plan, tmp_path / "whole")
    entered: list[str] = []

    def stopped(*args: Any) -> Any:
        entered.append(args[1].name)
        if args[1].name == "mlp" and len(entered) < 3:
            raise KeyboardInterrupt
        return enter(*args)

    monkeypatch.setattr(study, "enter", stopped)
    with pytest.raises(KeyboardInterrupt):
        execute_contest(plan, tmp_path / "run")
    assert (tmp_path / "run" / "state").read_text() == "interrupted\n"
    rows = execute_contest(plan, tmp_path / "run")
    assert entered == ["gcn", "mlp", "mlp"]
    kept = ("method", "mean", "std", "parameters")
    assert [[row[name] for name in kept] for row in rows] == [[row[name] for name in kept] for row in whole]
    before = (tmp_path / "run" / "table.csv").read_bytes()
    execute_contest(plan, tmp_path / "run")
    assert (tmp_path / "run" / "table.csv").read_bytes() == before
    assert entered == ["gcn", "mlp", "mlp"]
    with pytest.raises(FileError, match="other settings: models = "):
        execute_contest(make_contest(Request("karate", splits="0"), ["gcn"]), tmp_path / "run")


def test_on_the_command_line(tmp_path: Path) -> None:
    words = ["compare", "--small", "--models", "gcn, labelprop", "--set", "hidden=4", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    assert "label propagation" in done.stdout
    assert done.stdout.splitlines()[-1] == f"wrote {tmp_path / 'run' / 'report.html'}"
    assert CliRunner().invoke(cli.app, words).stdout == done.stdout
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "rdgraph compare --dataset karate --models gcn,labelprop --preset published --set hidden=4" in page


def test_the_best_network_is_chosen_on_validation_nodes() -> None:
    rows = {"gcn": [(0.5, 0.9), (0.5, 0.9)], "mlp": [(0.7, 0.1), (0.6, 0.1)], "labelprop": [(1.0, 1.0), (1.0, 1.0)]}
    contestants = read_contestants(list(rows), "karate")
    results = {
        name: [{"val_accuracy": val, "test_accuracy": test} for val, test in found] for name, found in rows.items()
    }
    assert study.best_network(contestants, results).name == "mlp"  # type: ignore[union-attr]
    results["mlp"][0]["val_accuracy"] = math.nan
    assert study.best_network(contestants, results).name == "gcn"  # type: ignore[union-attr]
    assert study.best_network(contestants[2:], results) is None


def test_a_comparison_says_how_its_best_network_is_trained(tmp_path: Path) -> None:
    words = ["compare", "--models", "gcn,labelprop", "--dataset", "karate", "--splits", "0,1", "--epochs", "2",
             "--set", "hidden=4", "--device", "cpu", "--out", str(tmp_path / "run")]  # fmt: skip
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    (line,) = [text for text in done.stdout.splitlines() if "rdgraph train" in text]
    command = shlex.split(line.strip().removeprefix("rdgraph "))
    plan = make_plan(Request("karate", preset=command[command.index("--preset") + 1], splits="0,1"))
    assert (plan.config.model.model, plan.config.model.hidden, plan.config.training.epochs) == ("gcn", 4, 2)
    assert command[:3] == ["train", "--dataset", "karate"]


def test_folders_are_named_after_the_contest() -> None:
    plan = make_contest(Request(small=True), ["gread-fb*", "labelprop"])
    assert contest_folder(plan) == Path("runs/compare/karate-gread-FBstar-labelprop-small")
