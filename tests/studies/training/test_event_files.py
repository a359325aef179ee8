"""Event files of TensorBoard: the curves of every trial, epoch by epoch; the extra is named where it is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.ensemble import METRICS
from gread.training.trainer import train
from rdgraph.errors import MissingDependency, UnknownName
from studies.cli import app as cli
from studies.runs import libraries
from studies.training.study import EventFiles, both, check_log


@pytest.mark.filterwarnings("ignore")
def test_event_files_hold_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events, heard = EventFiles(tmp_path), []
    trials = make_trials(Config().updated({"hidden": 4, "epochs": 5}), [0, 1], [7])
    done = train(karate(), trials, device="cpu", progress=both(heard.append, events.hear))
    events.write(done)
    for k, split in enumerate((0, 1)):
        read = EventAccumulator(str(tmp_path / f"split{split}-seed7")).Reload()
        assert set(read.Tags()["scalars"]) == set(METRICS)
        for j, name in enumerate(METRICS):
            points = read.Scalars(name)
            assert [point.step for point in points] == [1, 2, 3, 4, 5]
            np.testing.assert_allclose([point.value for point in points], done.history[k, :, j], rtol=1e-6)
    live = EventAccumulator(str(tmp_path / "batches")).Reload()
    assert [point.step for point in live.Scalars("loss/batch 0")] == [progress.epoch for progress in heard]


def test_what_is_missing_is_said_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_log(None)
    with pytest.raises(UnknownName, match="did you mean 'tensorboard'"):
        check_log("tensorbord")
    monkeypatch.setattr(libraries, "is_installed", lambda name: name != "tensorboard")
    done = CliRunner().invoke(cli.app, ["train", "--small", "--log", "tensorboard", "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, MissingDependency)
    assert "pip install 'rdgraph[tensorboard]'" in str(done.exception)
    assert not (tmp_path / "run").exists()
