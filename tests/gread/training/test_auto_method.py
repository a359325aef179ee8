"""The method follows from the equation: what is chosen, where it is written down, and that any line trains."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gread import Config, GREADClassifier, GREADConv, Network, Trial, karate, make_trials, train
from gread.models.resolution import resolve_method
from gread.settings.gread_settings import AUTO, GreadSettings
from gread.settings.presets import presets
from gread.training.ensemble import Ensemble
from rdgraph.systems.catalogue import catalogue
from studies.cli import app as cli

#: Lines of every kind: linear, with sources, with closed reactions, bounded and unbounded ones.
LINES = (
    "-alpha*L@H",
    "-alpha*L@H + beta*tanh(H)",
    "-alpha*L@L@H + beta*H",
    "-alpha*L@H + beta*(H0 - H)",
    "-alpha*L@H + beta*H*(1 - H)",
    "-alpha*L@H + beta*H*(1 - H*H)",
    "-alpha*L@H + beta*(H - H**3)",
    "-alpha*L@H + beta*sin(H)",
    "-alpha*L@H + beta*(A@H)*(1 - H)",
    "-alpha*L@H - beta*H*(A@H)",
    "-alpha*L@tanh(H)",
    "alpha*(A@H - H) + beta*relu(H)",
    "-alpha*L@H + beta*sigmoid(A@H)",
    "-alpha*L@H + beta*abs(H)",
    "-alpha*L@H + 1 - H",
    "-alpha*L@(H*H*H) - beta*H",
    "-alpha*L@H + beta*tanh(A@H) + gamma*H0",
    "-alpha*A@L@H + beta*(A@A@H - H)",
    "-alpha*L@H + beta*exp(-H*H)",
    "-alpha*L@H + beta*cos(H) - delta*H",
)


def config(**values: Any) -> Config:
    return Config().updated({"hidden": 8, "epochs": 4, "attention_dim": 8} | values)


def test_auto_is_the_default_everywhere() -> None:
    assert GreadSettings().method == AUTO
    assert GREADClassifier().method == AUTO
    assert Config.from_toml("[model]\nhidden = 8\n").model.method == AUTO
    assert resolve_method(GreadSettings())[0].method == GREADConv(4).config.method == "exact"


def test_what_names_a_method_keeps_it() -> None:
    assert AUTO not in {preset.config.gread.method for preset in presets() if preset.config.model.model == "gread"}
    given = GreadSettings(method="midpoint", step=0.25)
    assert resolve_method(given) == (given, "")
    assert Config.from_toml('[model]\nmethod = "euler"\nstep = 0.5\n').model.method == "euler"


def test_the_choice_follows_the_equation_and_the_adjacency() -> None:
    linear, reason = resolve_method(GreadSettings(reaction="BS"))
    assert (linear.method, linear.step) == ("exact", None)
    assert "exact flow" in reason
    live, reason = resolve_method(GreadSettings(reaction="BS", adjacency="live"))
    assert live.method == "rk4"
    assert live.step is not None
    assert reason
    curved, _ = resolve_method(GreadSettings(reaction="-alpha*L@H + beta*tanh(H)", time=3.0))
    assert curved.method == "rk4"
    assert curved.step is not None
    assert 0 < curved.step < 3.0
    shorter, _ = resolve_method(GreadSettings(reaction="-alpha*L@H + beta*tanh(H)", step=0.01))
    assert (shorter.method, shorter.step) == ("rk4", 0.01)
    assert resolve_method(GreadSettings(reaction="BS", step=0.01))[0].step is None


def test_a_free_sign_is_left_to_equations_that_cannot_blow_up() -> None:
    bounded = ("Nagumo", "-alpha*L@H + beta*H*(1 - H)*(H - a)", "F", "AC", "Z")
    assert {resolve_method(GreadSettings(reaction=r))[0].beta_link for r in bounded} == {"sigmoid"}
    free = ("BS", "-alpha*L@H + beta*tanh(H)")
    assert {resolve_method(GreadSettings(reaction=r))[0].beta_link for r in free} == {"auto"}
    assert resolve_method(GreadSettings(reaction="Nagumo", beta_link="free"))[0].beta_link == "free"
    assert resolve_method(GreadSettings(reaction="Nagumo", beta="scalar"))[0].beta_link == "auto"
    assert resolve_method(GreadSettings(reaction="Nagumo", method="rk4", step=0.1))[0].beta_link == "auto"


def test_the_method_and_the_reason_are_in_the_network_and_its_files(tmp_path: Path) -> None:
    done = train(karate(), [Trial(config(reaction="-alpha*L@H + beta*tanh(H)"))], device="cpu")
    network = done.network(0)
    assert network.config.method == done.trials[0].config.model.method == "rk4"
    assert network.reason == done.reasons[0] != ""
    network.save(tmp_path / "network")
    again = Network.load(tmp_path / "network")
    assert (again.config, again.reason) == (network.config, network.reason)
    data = karate()
    assert torch.equal(again.logits(data.x, data.graph), network.logits(data.x, data.graph))
    given = train(karate(), [Trial(network_config(network))], device="cpu")
    assert np.array_equal(given.history, done.history)
    assert given.network(0).reason == ""


def network_config(network: Network) -> Config:
    """The settings that name what was chosen."""
    return config(reaction=network.config.reaction, method=network.config.method, step=network.config.step)


@pytest.mark.slow
def test_the_promise_of_the_readme(tmp_path: Path) -> None:
    data = karate()
    clf = GREADClassifier(reaction="-alpha*L@H + beta*tanh(H)", epochs=30, device="cpu")
    clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    assert clf.score(None, data.y, mask=data.masks.test[0]) > 0.5
    assert clf.history_[-1, 0] < clf.history_[0, 0]
    clf.save(tmp_path)
    loaded = GREADClassifier.load(tmp_path)
    assert (loaded.method, loaded.network_.config.method) == (AUTO, "rk4")
    assert loaded.network_.reason == clf.network_.reason != ""
    assert np.array_equal(loaded.predict_proba(), clf.predict_proba())


def test_trials_of_several_times_are_grouped_by_what_was_chosen() -> None:
    """A step that follows from the time is no reason to refuse them."""
    trials = [Trial(config(reaction="-alpha*L@H + beta*tanh(H)", time=time), seed=0) for time in (0.5, 3.0)]
    done = train(karate(), trials, device="cpu")
    assert done.status == ("ok", "ok")
    alone = train(karate(), trials[1:], device="cpu")
    np.testing.assert_allclose(done.history[1], alone.history[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("adjacency", ["original", "soft", "live"])
def test_layers_of_any_adjacency_choose_for_themselves(adjacency: str) -> None:
    torch.manual_seed(0)
    layer = GREADConv(4, "-alpha*L@H + beta*tanh(H)", adjacency=adjacency, normalisation="row")
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x = torch.randn(3, 4, requires_grad=True)
    layer(x, edges).square().sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert layer.config.method == "rk4"
    assert layer.reason


@pytest.mark.slow_cases(16)
@pytest.mark.slow
@pytest.mark.parametrize("reaction", [*catalogue, *LINES])
def test_any_equation_trains_with_the_defaults(reaction: str) -> None:
    """Every entry of the catalogue and twenty other lines: finite losses that fall, a method and a reason."""
    assert len(LINES) == 20
    own = Config().updated({"reaction": reaction, "epochs": 4})
    done = train(karate(), make_trials(own, range(2)), device="cpu")
    assert done.status == ("ok", "ok")
    assert np.isfinite(done.history).all()
    assert (done.history[:, 1:, 0].min(axis=1) < done.history[:, 0, 0]).all()
    network = done.network(0)
    assert network.config.method in ("exact", "strang", "rk4")
    assert network.reason
    assert Ensemble(karate(), [Trial(config(reaction=reaction, adjacency="live"))]).model.config.method == "rk4"


@pytest.mark.slow_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("reaction", ["-alpha*L@H + beta*tanh(H)", "BS", "AC"])
def test_the_command_trains_it_to_a_written_report(reaction: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = [
        "train",
        "--dataset",
        "karate",
        "--reaction",
        reaction,
        "--preset",
        "defaults",
        "--small",
        "--out",
        str(folder),
    ]
    run = CliRunner(env={"NO_COLOR": "1"}).invoke(cli.app, [*words, "--epochs", "4"])
    assert run.exit_code == 0, run.output
    written = tomllib.loads((folder / "config.toml").read_text())
    assert written["model"]["method"] in ("exact", "strang", "rk4")
    assert written["method_reason"]
    page = (folder / "report.html").read_text()
    assert "chosen from the equation" in page
    network = Network.load(folder / "network")
    assert (network.config.method, network.reason) == (written["model"]["method"], written["method_reason"])
    assert (folder / "state").read_text() == "done\n"
