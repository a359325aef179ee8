"""An epoch of every network takes nothing from the host and asks nothing of the device: a CUDA graph can record it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from tests.gread.training.test_capture import Recorded

#: Choices that add operations to a network, beside its defaults.
CHOICES = [
    ("acmgcn", {"structure": True}),
    ("linkx", {"layers": 3, "edge_layers": 2, "node_layers": 2}),
    ("glognn", {"gamma": 0.5, "alpha": 1.0, "delta": 0.0}),
    ("pairnorm", {"individually": True, "normalisation": "symmetric"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), CHOICES, ids=str)
def test_an_epoch_is_recorded(name: str, values: dict[str, object]) -> None:
    known = {f.name for f in fields(models[name].settings)}
    small = {k: v for k, v in {"hidden": 4, "heads": 2, "attention_dim": 4}.items() if k in known}
    config = Config.of(name, **small, **values, epochs=4, select="loss", patience=2)
    ensemble = Ensemble(karate(), [Trial(config, split) for split in (0, 3)])
    assert ensemble.model.is_capturable
    ensemble.advance(1)
    with Recorded():
        ensemble._epoch()
    assert ensemble.epoch == 2
