"""Trainings on small graphs in the eigenbasis of A: those with sparse products."""

from __future__ import annotations

import pytest
import torch

from gread.datasets.embedded import karate
from gread.models.gread_model import GREAD
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph.graphs.eigenbasis import Eigenbasis


def test_a_training_in_the_eigenbasis_is_the_training(monkeypatch):
    """Made to take it on a CPU, where sparse products are used otherwise."""
    config = Config().updated({"hidden": 8, "epochs": 12, "adjacency": "original", "method": "rk4", "step": 0.5})
    trials = [Trial(config.updated({"time": time}), split) for split, time in enumerate((1.0, 2.0))]
    expected = Ensemble(karate(), trials, dtype=torch.float64)
    assert not isinstance(expected.model.shortcut, Eigenbasis)
    monkeypatch.setattr(GREAD, "shortcut", property(lambda self: Eigenbasis.of(self.operator)))
    found = Ensemble(karate(), trials, dtype=torch.float64)
    for ensemble in (expected, found):
        ensemble.advance(12)
    assert isinstance(found.model.shortcut, Eigenbasis)
    torch.testing.assert_close(found.outcome().history, expected.outcome().history, rtol=1e-8, atol=1e-9)


@pytest.mark.gpu
def test_on_a_gpu_a_small_graph_is_trained_in_its_eigenbasis():
    config = Config().updated({"hidden": 16, "epochs": 40, "adjacency": "original", "method": "rk4", "step": 0.25})
    trials = [Trial(config.updated({"time": 2.0}), split) for split in range(3)]
    ensemble = Ensemble(karate(), trials, device="cuda", dtype=torch.float64)
    ensemble.advance(40)
    assert isinstance(ensemble.model.shortcut, Eigenbasis)
    expected = Ensemble(karate(), trials, dtype=torch.float64)
    expected.advance(40)
    torch.testing.assert_close(ensemble.outcome().history, expected.outcome().history, rtol=1e-6, atol=1e-7)
