"""Linear layers of long graphs, which a GPU sums in parts: trainings with them are those with plain products."""

from __future__ import annotations

import pytest
import torch

from gread.datasets.embedded import karate
from gread.datasets.synthetic import csbm
from gread.kernels import linear_layers
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble

NETWORKS = [
    {"reaction": "BS", "adjacency": "soft", "heads": 2, "encoder_mlp": True, "decoder_mlp": True},
    {"reaction": "F", "adjacency": "live", "heads": 1},
    {"reaction": "H'' = -alpha*L@H", "adjacency": "soft", "velocity": "encoded"},
]


def trained(data, values: dict, device: str) -> torch.Tensor:
    base = {"hidden": 8, "epochs": 6, "attention_dim": 8, "method": "rk4", "step": 0.5, "dropout": 0.3}
    trials = [Trial(Config().updated(base | values), split, seed) for split in (0, 1) for seed in (0, 1)]
    ensemble = Ensemble(data, trials, device=device, dtype=torch.float64)
    ensemble.advance(6)
    return ensemble.outcome().history


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_trainings_do_not_depend_on_the_way_of_the_sums(monkeypatch, values):
    """34 nodes in 8 parts of 4 and 2 nodes left over."""
    plain = trained(karate(), values, "cpu")
    monkeypatch.setattr(linear_layers, "_is_long", lambda x: True)
    monkeypatch.setattr(linear_layers, "PART", 4)
    calls = []
    own = linear_layers.gathered_product
    monkeypatch.setattr(linear_layers, "gathered_product", lambda *x: calls.append(1) or own(*x))
    torch.testing.assert_close(trained(karate(), values, "cpu"), plain, rtol=1e-9, atol=1e-9)
    assert calls


@pytest.mark.gpu
@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_long_graphs_are_trained_on_a_gpu_as_on_a_cpu(values):
    data = csbm(0, n=1031)
    torch.testing.assert_close(trained(data, values, "cuda").cpu(), trained(data, values, "cpu"), rtol=1e-6, atol=1e-6)
