"""Flows that cease to exist before their end: no number, and not the last state that there was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rdgraph as rd
from gread import GREADConv
from gread.datasets.embedded import karate
from gread.models.flow import Flow
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble

ALONE = rd.Graph.from_edges([[], []], num_nodes=2).operator("row", dtype=torch.float64)


def cubic(beta: Any) -> rd.run.VectorField:
    """dH/dt = beta H (1 - H^2), which from 4 with beta < 0 has an end at about 0.04."""
    batch = tuple(beta.shape) if isinstance(beta, torch.Tensor) else ()
    return rd.lower("AC", ALONE, {"alpha": 1.0, "beta": beta}, batch=batch)


@pytest.mark.parametrize(("method", "step"), [("strang", 0.1), ("dopri5", None)])
def test_a_member_without_an_end_has_no_state_there_and_the_others_have_theirs(method: str, step: float | None) -> None:
    start = torch.tensor([[4.0], [0.5]], dtype=torch.float64)
    betas, both = torch.tensor([-0.8, 0.8], dtype=torch.float64), torch.stack([start, start])
    field = cubic(betas)
    flow = Flow.choose(field, method, 1.0, step)
    end, _ = flow.run(lambda H: field, both, torch.ones(2, dtype=torch.float64), 0)
    assert end[0].isnan().all()
    torch.testing.assert_close(end[1], rd.solve(cubic(0.8), start, [0.0, 1.0], method, step=step).final)
    seen = flow.states(lambda H: field, both, 1.0, torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))
    assert seen[:, 1].isfinite().all()
    assert torch.equal(seen[0, 0], start)
    assert seen[1:, 0].isnan().all()


def test_a_layer_whose_flow_has_no_end_says_so() -> None:
    layer = GREADConv(1, "AC", alpha="scalar", beta="scalar", beta_link="free", adjacency="original", method="dopri5")
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(-0.8)
    edges = torch.tensor([[0, 1], [1, 0]])
    assert layer(torch.tensor([[4.0], [5.0]]), edges).isnan().all()
    assert layer(torch.tensor([[0.5], [0.1]]), edges).isfinite().all()


@pytest.mark.slow
def test_a_training_whose_flow_has_no_end_has_diverged() -> None:
    config = Config().updated({
        "reaction": "AC", "method": "dopri5", "hidden": 8, "epochs": 4, "beta_link": "free", "time": 8.0,
        "learning_rate": 2.0, "adjacency": "original",
    })  # fmt: skip
    ensemble = Ensemble(karate(), [Trial(config, seed=seed) for seed in range(2)], keep_best=False)
    ensemble.advance(4)
    outcome = ensemble.outcome()
    assert [outcome.status(k).split()[0] for k in range(2)] == ["diverged", "diverged"]
