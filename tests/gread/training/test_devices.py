"""Trainings on devices that torch cannot use are refused, where they are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gread import Config, GREADClassifier, discover, karate, make_trials, search, train, train_decoupled
from gread.training import Ensemble
from gread.tuning.searching import Search, SearchPlan
from rdgraph.errors import InvalidArgument
from rdgraph.run.engines.engine import LocalEngine

SMALL = {"hidden": 4, "epochs": 2}


@pytest.mark.parametrize("device", ["tpu", "cuda", "cuda:9", 3, None])
def test_other_devices_are_refused(device: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    data, trials = karate(), make_trials(Config().updated(SMALL), [0])
    linear = make_trials(Config().updated(SMALL | {"adjacency": "original", "input_dropout": 0.0}), [0])
    for work in (
        lambda: train(data, trials, device=device),
        lambda: Ensemble(data, trials, device=device),
        lambda: train_decoupled(data, linear, device=device, folder=tmp_path / "kept"),
        lambda: search(data, trials=1, fixed=SMALL, device=device, folder=tmp_path / "kept"),
        lambda: discover(data, terms="small", size=1, budget=1, device=device, folder=tmp_path / "kept"),
        lambda: GREADClassifier(**SMALL, device=device).fit(data.x, data.y, graph=data.graph),
    ):
        with pytest.raises(InvalidArgument, match=r"expected (the device cpu|a CUDA device).*, got "):
            work()
    assert not list(tmp_path.iterdir())


def test_a_device_of_torch_is_taken() -> None:
    done = train(karate(), make_trials(Config().updated(SMALL), [0]), device=torch.device("cpu"))  # type: ignore[arg-type]
    assert done.status == ("ok",)


def test_a_search_whose_work_is_done_elsewhere_may_name_a_card_that_is_not_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Elsewhere(LocalEngine):
        name = "elsewhere"

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    plan = SearchPlan.make(karate(), trials=1, space="small")
    assert Search(plan, None, device="cuda", engine=Elsewhere()).device == "cuda"
    with pytest.raises(InvalidArgument, match="expected a CUDA device"):
        Search(plan, None, device="cuda")
