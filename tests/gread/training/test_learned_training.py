"""Networks with learned functions: trained beside the coefficients, never beyond what is declared, saved and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.layers.conv import GREADConv
from gread.layers.exporting import exportable
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import make_trials
from gread.training.checkpoint import load_checkpoint, save_checkpoint
from gread.training.ensemble import Ensemble
from gread.training.trainer import Trained, train
from tests.rdgraph.language.test_learned_function import check_facts

EQUATION = "-alpha*L@H + phi(H) where phi learned knots=6 odd lipschitz=1"
BASE = {"hidden": 4, "epochs": 12, "adjacency": "original", "method": "rk4", "step": 0.5, "learning_rate": 0.05}


def trained(equation: str, splits: range = range(2), **options: object) -> Trained:
    settings = Config().updated(BASE | {"reaction": equation})
    return train(karate(), make_trials(settings, splits), device="cpu", **options)


@pytest.fixture(scope="module")
def done() -> Trained:
    return trained(EQUATION)


def test_phi_is_learned_within_its_declaration(done: Trained) -> None:
    for k in range(2):
        (phi,) = done.network(k).functions().values()
        assert str(phi.declaration) == "phi learned knots=6 range=-3:3 odd lipschitz=1"
        assert np.abs(phi.controls).max() > 1e-3
        check_facts(phi, 1e-5)
    assert done.history[:, -1, 0].max() < done.history[:, 0, 0].min()


def test_a_member_is_the_same_alone(done: Trained) -> None:
    alone = trained(EQUATION, range(1, 2)).network(0)
    np.testing.assert_allclose(
        alone.functions()["phi"].controls, done.network(1).functions()["phi"].controls, atol=1e-6
    )


def test_a_network_is_saved_and_read(done: Trained, tmp_path: Path) -> None:
    data, network = karate(), done.network(0)
    network.save(tmp_path / "network")
    again = Network.load(tmp_path / "network")
    assert again.system == network.system
    torch.testing.assert_close(again.logits(data.x, data.graph), network.logits(data.x, data.graph))
    np.testing.assert_array_equal(again.functions()["phi"].controls, network.functions()["phi"].controls)


def test_a_training_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path: Path) -> None:
    trials = make_trials(Config().updated(BASE | {"reaction": EQUATION}), range(2))

    def fresh() -> Ensemble:
        return Ensemble(karate(), trials, device="cpu")

    whole, cut = fresh(), fresh()
    whole.advance(9)
    for count in (4, 5):
        cut.advance(count)
        save_checkpoint(tmp_path / "c.json", cut, "mark")
        cut = fresh()
        assert load_checkpoint(tmp_path / "c.json", cut, "mark")
    for name, value in whole.state.items():
        assert torch.equal(cut.state[name].nan_to_num(), value.nan_to_num()), name


def test_settings_keep_what_was_declared_in_the_process() -> None:
    text = "-alpha*L@H + gate_1(H)"
    rd.vocabulary.learned("gate_1", knots=5, odd=True)
    try:
        settings = Config().updated(BASE | {"reaction": text})
    finally:
        rd.vocabulary.forget_learned("gate_1")
    assert settings.gread.reaction == f"{text} where gate_1 learned knots=5 range=-3:3 odd"
    assert settings.gread.system.learned["gate_1"].odd
    assert Config().updated({"reaction": "-alpha*L@H + phi(H)"}).gread.reaction == "-alpha*L@H + phi(H)"


def test_one_function_for_each_channel() -> None:
    equation = "-alpha*L@H + beta*phi(H) where phi learned knots=4 nondecreasing bound=1 per_channel"
    (phi,) = trained(equation, range(1)).network(0).functions().values()
    assert phi.controls.shape == (4, 4)
    assert len(np.unique(phi.controls[:, -1])) == 4
    check_facts(phi, 1e-5)


def test_a_layer_has_learned_functions() -> None:
    torch.manual_seed(0)
    layer = GREADConv(4, EQUATION, method="rk4", step=0.5, adjacency="original")
    edges, x = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.randn(3, 4)
    layer(x, edges).square().sum().backward()
    parameter = layer.get_parameter("coefficient_phi")
    assert parameter.shape == (3,)
    assert parameter.grad is not None
    assert parameter.grad.abs().max() > 0
    with torch.no_grad():
        parameter.copy_(torch.tensor([0.4, -0.3, 2.0]))
    torch.testing.assert_close(exportable(layer)(x, edges), layer(x, edges))
