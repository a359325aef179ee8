"""GPR-GNN against its rule in numpy, against torch-geometric's APPNP, and what its weights start from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument
from tests.dense_case import NODES, SEEDS, geometric, make_case, symmetric

MEMBERS = pytest.mark.parametrize("member", range(len(SEEDS)))


@MEMBERS
def test_the_rule(member: int) -> None:
    case = make_case("gprgnn", hidden=4, steps=4, alpha=0.3)
    hidden = np.maximum(case.x @ case.part("first_weight", member) + case.part("first_bias", member), 0)
    start = hidden @ case.part("second_weight", member) + case.part("second_bias", member)
    looped = symmetric(case.adjacency + np.eye(NODES))
    weights = case.part("gamma", member)
    expected = sum(weights[k] * np.linalg.matrix_power(looped, k) @ start for k in range(5))
    np.testing.assert_allclose(case.logits(member), expected, rtol=1e-9, atol=1e-9)


@MEMBERS
def test_it_starts_as_appnp(member: int) -> None:
    case = make_case("gprgnn", spread=False, hidden=4, steps=6, alpha=0.15)
    states = case.model.states(Features.make(case.x, dtype=torch.float64), Dropper())
    expected = geometric().APPNP(6, 0.15)(states[0][member], case.edges)
    torch.testing.assert_close(torch.tensor(case.logits(member)), expected.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("alpha", "expected"), [(1.0, [1, 0, 0, 0]), (0.0, [0, 0, 0, 1]), (0.5, [0.5, 0.25, 0.125, 0.125])]
)
def test_where_the_weights_start(alpha: float, expected: list[float]) -> None:
    case = make_case("gprgnn", spread=False, steps=3, alpha=alpha)
    np.testing.assert_array_equal(case.part("gamma", 1), expected)


def test_the_weights_of_the_powers_are_not_decayed() -> None:
    """A decay that takes all else to zero leaves them where their gradient takes them."""
    config = Config.of("gprgnn", hidden=4, epochs=1, learning_rate=0.01, optimiser="adamw")
    trials = [Trial(config.updated({"weight_decay": decay})) for decay in (0.0, 50.0)]
    ensemble = Ensemble(karate(), trials)
    ensemble.advance(1)
    parts = ensemble.parts
    assert torch.equal(parts["gamma"][0], parts["gamma"][1])
    assert not torch.equal(parts["first_weight"][0], parts["first_weight"][1])


def test_alpha_is_a_share() -> None:
    with pytest.raises(InvalidArgument, match="0 <= alpha <= 1"):
        Config.of("gprgnn", alpha=1.5)
