"""Rounds that are planned here and trained elsewhere; results and plans of something else are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.tuning.candidates import Candidate, PlannedRound, TrialResult, load_plan, load_results, save_results
from gread.tuning.rounds import train_round
from gread.tuning.searching import Search
from rdgraph.errors import FileError, InvalidArgument
from tests.gread.tuning.quick_searches import plan
from tests.paths import ROOT


def test_rounds_are_planned_trained_and_told_in_three_places(tmp_path: Path) -> None:
    expected = Search(plan(4, round_size=2), None, device="cpu").run()
    folder, count = tmp_path / "search", 0
    while (planned := Search(plan(4, round_size=2), folder).plan_round()) is not None:
        planned.save(tmp_path / "plan.json")
        assert Search(plan(4, round_size=2), folder).plan_round() == planned  # asked again, the same
        done = train_round(karate(), load_plan(tmp_path / "plan.json"), device="cpu")
        save_results(tmp_path / "results.json", planned, done)
        for _ in range(2):  # told twice, once
            left = Search(plan(4, round_size=2), folder).take_results(tmp_path / "results.json")
        count += 1
        assert left == 4 - 2 * count
    assert Search(plan(4, round_size=2), folder).found().results == expected.results


@pytest.mark.slow
def test_the_training_half_needs_no_optuna(tmp_path: Path) -> None:
    planned = Search(plan(2), None).plan_round()
    assert planned is not None
    planned.save(tmp_path / "plan.json")
    program = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "optuna":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
from pathlib import Path
from gread import karate, search
from gread.tuning.candidates import load_plan, save_results
from gread.tuning.rounds import train_round
plan = load_plan(Path({str(tmp_path / "plan.json")!r}))
save_results(Path({str(tmp_path / "done.json")!r}), plan, train_round(karate(), plan, device="cpu"))
try:
    search(karate(), trials=2)
except ImportError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "rdgraph[search]" in done.stdout
    assert [r.state for r in load_results(tmp_path / "done.json")[1]] == ["complete", "complete"]


def test_results_and_plans_of_something_else_are_refused(tmp_path: Path) -> None:
    first = Search(plan(2), tmp_path / "first")
    planned, other = first.plan_round(), Search(plan(2, seed=1), None).plan_round()
    assert planned is not None
    assert other is not None
    save_results(tmp_path / "other.json", other, [TrialResult(0, "complete", 20, (0.5, 0.5), (0.5, 0.5))])
    with pytest.raises(FileError, match="those of others"):
        first.take_results(tmp_path / "other.json")
    with pytest.raises(FileError, match="planned trials"):
        load_plan(tmp_path / "other.json")
    (tmp_path / "broken.json").write_text(json.dumps({"format": "rdgraph search plan 1"}))
    with pytest.raises(FileError, match="planned trials"):
        load_plan(tmp_path / "broken.json")
    data = karate()
    with pytest.raises(InvalidArgument, match="other content"):
        train_round(NodeData(data.graph, data.x, 1 - data.y, data.masks, meta=data.meta), planned, device="cpu")
    body = json.loads(planned.text())
    (tmp_path / "bare.json").write_text(json.dumps(body | {"splits": []}))
    with pytest.raises(FileError, match="splits for the trials"):
        load_plan(tmp_path / "bare.json")
    (tmp_path / "far.json").write_text(json.dumps(body | {"splits": [77]}))
    with pytest.raises(InvalidArgument, match=r"a split among 0..9 of karate, got 77"):
        train_round(data, load_plan(tmp_path / "far.json"), device="cpu")


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([(0, 2), (1, 2), (0, 2)], "expected trials, each of them once"),
        ([], "expected trials, each of them once"),
        ([(0, 1), (1, 1)], "those of others"),
    ],
)
def test_results_that_are_not_one_of_every_trial_and_split_are_refused(
    tmp_path: Path, results: list[tuple[int, int]], message: str
) -> None:
    here = Search(plan(2), tmp_path / "run")
    planned = here.plan_round()
    assert planned is not None
    made = [TrialResult(number, "complete", 20, (0.5,) * splits, (0.5,) * splits) for number, splits in results]
    save_results(tmp_path / "told.json", planned, made)
    with pytest.raises(FileError, match=message):
        here.take_results(tmp_path / "told.json")
    assert here.plan_round() == planned


def test_a_plan_may_lie_in_the_folder_of_its_search_under_any_name(tmp_path: Path) -> None:
    planned = Search(plan(2), tmp_path).plan_round()
    assert planned is not None
    planned.save(tmp_path / "round.json")
    assert Search(plan(2), tmp_path).plan_round() == planned


def test_plans_are_read_back(tmp_path: Path) -> None:
    config = Config().updated({"reaction": "-alpha*L@H + beta*tanh(H)", "time": 0.1})
    planned = PlannedRound.of(karate(), [0, 2], 3, True, [Candidate(7, config, {"time": 0.1, "relu": True})])
    planned.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == planned
