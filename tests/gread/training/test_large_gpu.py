"""What large graphs rely on, on a GPU: operators made there, gradients in segments inside a captured epoch, powers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread import Config, Trial, karate, train, train_decoupled
from gread.datasets.community_graph import community_graph
from gread.training import Ensemble

pytestmark = pytest.mark.gpu


def test_graphs_and_operators_made_on_the_card_are_those_of_the_host() -> None:
    made = community_graph(3000, 40_000, features=4, classes=5)
    host = rd.Graph.from_edges(made.edges, 3000)
    for given in (made.edges, torch.from_numpy(made.edges).cuda()):
        found = rd.Graph.from_edges(given, 3000, device="cuda")
        np.testing.assert_array_equal(found.edge_index, host.edge_index)
        np.testing.assert_array_equal(found.weight, host.weight)
    for normalisation in ("symmetric", "row", "column"):
        own = host.operator(normalisation, self_loops=1.0, device="cuda")
        other = host.operator(normalisation, self_loops=1.0)
        assert torch.equal(own.weights.cpu(), other.weights)
        assert torch.equal(own.pattern.indices.cpu(), other.pattern.indices)


@pytest.mark.parametrize(
    "values",
    [
        {"adjacency": "original"},
        {"adjacency": "soft"},
        {"reaction": "F", "method": "euler", "step": 0.25},
        {"reaction": "AC", "method": "rk4", "step": 0.5, "adjacency": "original"},
    ],
)
def test_segments_are_captured_and_change_nothing(values: dict[str, Any]) -> None:
    config = Config().updated({"hidden": 8, "epochs": 12, "time": 2.0} | values)
    whole, parts = (
        Ensemble(karate(), [Trial(config, split) for split in range(2)], device="cuda", checkpointing=kept)
        for kept in ("none", 2)
    )
    assert parts.use_graph
    for ensemble in (whole, parts):
        ensemble.advance(12)
    torch.testing.assert_close(parts.state["history"], whole.state["history"], rtol=1e-3, atol=1e-3)


def test_decoupled_training_on_the_card_is_training_on_the_whole_graph(tmp_path: Path) -> None:
    config = Config().updated({"adjacency": "original", "input_dropout": 0.0, "hidden": 8, "epochs": 10})
    whole = train(karate(), [Trial(config)], device="cuda")
    apart = train_decoupled(karate(), [Trial(config)], device="cuda", folder=tmp_path)
    np.testing.assert_allclose(apart.history, whole.history, rtol=1e-3, atol=1e-4)
