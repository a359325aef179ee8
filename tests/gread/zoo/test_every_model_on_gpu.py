"""Every network on a GPU: an epoch is recorded, and trains as on the CPU."""

from __future__ import annotations

import pytest
import torch

from gread.datasets.embedded import karate
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.presets import PUBLISHED, presets
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


def configurations() -> dict[str, Config]:
    """The defaults of every network, and its first published settings where they differ."""
    found = {name: Config.of(name) for name in models}
    for preset in presets():
        kind, name, *_ = preset.name.split("/")
        if kind == PUBLISHED:
            found.setdefault(f"{name} as published", preset.config)
    return {name: config.updated({"epochs": 4}) for name, config in found.items()}


@pytest.mark.parametrize("name", list(configurations()))
def test_an_epoch_is_recorded_and_trains_as_on_the_cpu(name: str) -> None:
    config, runs = configurations()[name], []
    for device in ("cpu", "cuda"):
        runs.append(Ensemble(karate(), [Trial(config, split) for split in (0, 3)], device=device, dtype=torch.float64))
        runs[-1].advance(4)
    assert (runs[1]._replay is not None) == runs[1].model.is_capturable
    here, there = (run.outcome().history[..., 0] for run in runs)
    torch.testing.assert_close(here, there, rtol=1e-5, atol=1e-6)
