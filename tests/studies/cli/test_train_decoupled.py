"""Decoupled training by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdgraph.errors import RdgraphError
from studies.runs.tables import read_rows
from studies.training import study as training
from studies.training.plan import Request, make_plan, read_plan
from tests.studies.cli.train_calls import rdgraph


@pytest.mark.slow
def test_a_decoupled_training_is_reported_like_any_other_and_read_again(tmp_path: Path) -> None:
    settings = ("--set", "adjacency=original", "--set", "input_dropout=0", "--set", "hidden=6", "--epochs", 6)
    whole = rdgraph("train", "--small", *settings, "--splits", 0, "--out", tmp_path / "whole")
    apart = rdgraph("train", "--small", *settings, "--splits", 0, "--decoupled", "--out", tmp_path / "apart")
    assert whole.exit_code == apart.exit_code == 0, apart.output
    (one,), (other,) = (read_rows(tmp_path / name / "results.csv") for name in ("whole", "apart"))
    assert one["best_epoch"] == other["best_epoch"]
    assert float(str(one["test_accuracy"])) == pytest.approx(float(str(other["test_accuracy"])), abs=1e-6)
    assert not (tmp_path / "apart" / training.CHECKPOINTS).exists()
    plan = read_plan(tmp_path / "apart")
    assert plan.decoupled
    assert plan.batch is None
    assert "--decoupled" in plan.command(tmp_path)
    assert "Decoupled" in training.about_method(plan)


def test_batches_are_those_of_decoupled_trainings() -> None:
    request = Request(small=True, settings={"adjacency": "original", "hidden": 6}, decoupled=True, batch=5)
    plan = make_plan(request)
    assert plan.command(Path("x")).endswith("--decoupled --batch 5")
    assert plan.run_config.head["batch"] == 5
    refused = rdgraph("train", "--small", "--batch", 5)
    assert refused.exit_code == 1
    assert "--batch needs --decoupled" in str(refused.exception)
    with pytest.raises(RdgraphError, match="expected the original adjacency"):
        make_plan(Request(small=True, settings={"adjacency": "soft"}, decoupled=True))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch", "0"], "a whole number >= 1 for --batch, got 0"),
        (["--reaction", "AC"], "expected a linear equation"),
        (["--splits", ""], "expected splits as all, 0,1,2 or 0-4, got ''"),
    ],
)
def test_what_cannot_be_decoupled_leaves_no_folder(words: list[str], message: str, tmp_path: Path) -> None:
    start = ["train", "--dataset", "karate", "--decoupled", "--set", "adjacency=original", "--device", "cpu"]
    refused = rdgraph(*start, *words, "--out", tmp_path / "none")
    assert message in str(refused.exception)
    assert not (tmp_path / "none").exists()
