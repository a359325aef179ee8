"""Ensembles of a moment, for the tests of what their members do."""

from __future__ import annotations

import torch

from gread.datasets.node_data import NodeData
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import METRICS, Ensemble

LOSS, TRAIN, VAL, TEST = range(len(METRICS))


def config(**values: object) -> Config:
    """Small and quick."""
    base = {"hidden": 8, "epochs": 12, "attention_dim": 8, "method": "euler", "step": 0.5}
    return Config().updated(base | values)


def run(data: NodeData | list[NodeData], trials: list[Trial], dtype: torch.dtype = torch.float32) -> Ensemble:
    ensemble = Ensemble(data, trials, dtype=dtype)
    ensemble.advance(ensemble.epochs)
    return ensemble


def same(one: Ensemble, member: int, other: Ensemble, position: int = 0, tolerance: float = 1e-5) -> None:
    """Whether a member has the curve and the outcome of another ensemble's."""
    left, right = one.outcome(), other.outcome()
    torch.testing.assert_close(
        left.history[:, member], right.history[:, position], rtol=tolerance, atol=tolerance, equal_nan=True
    )
    for name in ("best_epoch", "val_accuracy", "test_accuracy", "failed_at"):
        assert getattr(left, name)[member] == getattr(right, name)[position], name


def exact(**values: object) -> Config:
    return config(method="exact", step=None, adjacency="original", beta="scalar", beta_link="free", **values)
