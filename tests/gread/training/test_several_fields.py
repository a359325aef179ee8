"""Networks of several fields, of second order and with coefficients of time: against networks written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.checkpoint import load_checkpoint, save_checkpoint
from gread.training.ensemble import Ensemble
from gread.training.planner import estimate
from gread.training.trainer import train
from rdgraph.errors import NotApplicable, UnknownName
from tests.gread.training.test_capture import Recorded

INHIBITED = "u' = -Du*L@u + beta*(A@u - A@A@u) - gamma*v; v' = -Dv*L@v + delta*(u - v)"
OSCILLATORS = "H'' = -gamma*H - alpha*H' + tanh(A@H)"
TIMED = "-alpha*exp(-t)*L@H + beta*sin(omega*t)*H"
#: Networks of every kind: both forms of attention, readouts, encoded velocities, sources, matrices, all together.
NETWORKS: dict[str, dict[str, Any]] = {
    "two fields": {"reaction": INHIBITED},
    "two fields, one read": {"reaction": INHIBITED, "readout": "u", "adjacency": "original", "decoder_mlp": True},
    "reaction": {"reaction": "u' = -Du*L@u + tanh(u*v); v' = -Dv*L@v - sigmoid(u)*v + u0", "adjacency": "original"},
    "second order": {"reaction": OSCILLATORS},
    "velocities": {"reaction": "H'' = -gamma*H - alpha*H' + tanh(A@H@W)", "velocity": "encoded", "encoder_mlp": True},
    "time": {"reaction": TIMED},
    "time and attention": {"reaction": TIMED, "adjacency": "live"},
    "attention": {"reaction": "u'' = -alpha*L@u - c*u' + v; v' = cos(t)*u - v", "adjacency": "live", "readout": "u'"},
}


def config(**values: Any) -> Config:
    base = {"hidden": 4, "epochs": 6, "attention_dim": 4, "heads": 2, "method": "rk4", "step": 0.5, "time": 1.2}
    return Config().updated(base | values)


#: Those that between them have everything.
FEW = ("two fields, one read", "velocities", "attention")


@pytest.fixture(params=NETWORKS, ids=lambda name: name)
def values(request: pytest.FixtureRequest) -> dict[str, Any]:
    return NETWORKS[request.param]


@pytest.fixture(params=FEW, ids=lambda name: name)
def few(request: pytest.FixtureRequest) -> dict[str, Any]:
    return NETWORKS[request.param]


def six_nodes() -> NodeData:
    graph = rd.Graph.from_dense(rd.generators.erdos_renyi(6, 0.6, 1).adjacency.toarray())
    x = np.random.default_rng(0).standard_normal((6, 3))
    masks = Masks([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1])
    return NodeData(graph, x, np.array([0, 1, 2, 0, 1, 2]), masks)


def shaken(ensemble: Ensemble) -> Ensemble:
    """All parameters away from their special starts."""
    random = torch.Generator().manual_seed(0)
    for p in ensemble.parameters.values():
        p.data.add_(0.3 * torch.randn(p.shape, generator=random, dtype=p.dtype))
    return ensemble


# ---------------------------------------------------------------------- by hand
class ByHand:
    """The networks of the tests in plain torch: dense matrices, one member, the stages of rk4 (3/8 rule)."""

    def __init__(self, data: NodeData, model: Any, parameters: dict[str, Tensor]) -> None:
        self.model, self.own = model, parameters
        self.x = torch.tensor(data.x, dtype=torch.float64)
        dense = torch.tensor(data.graph.adjacency.toarray(), dtype=torch.float64) + torch.eye(6, dtype=torch.float64)
        self.joined = dense > 0
        degrees = dense.sum(1)
        self.symmetric = dense / torch.outer(degrees, degrees).sqrt()

    def layer(self, name: str, x: Tensor) -> Tensor:
        return x @ self.own[f"{name}_weight"][0] + self.own[f"{name}_bias"][0]

    def coefficient(self, name: str) -> Tensor:
        value = self.own[f"coefficient_{name}"][0]
        return value if name in ("beta", "W") else torch.sigmoid(value)

    def adjacency(self, seen: Tensor) -> Tensor:
        if self.model.adjacency == "original":
            return self.symmetric
        heads = self.model.heads
        query, key = (self.layer(name, seen).view(6, heads, -1).transpose(0, 1) for name in ("query", "key"))
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
        return torch.softmax(scores.masked_fill(~self.joined, -torch.inf), -1).mean(0)

    def loss(self, field: Callable[..., list[Tensor]], states: list[str]) -> Tensor:
        h = self.layer("encoder", self.x)
        if self.model.encoder_mlp:
            h = h + self.layer("encoder_first", torch.relu(h))
            h = h + self.layer("encoder_second", torch.relu(h))
        encoded = [s for s in states if self.model.velocity == "encoded" or not s.endswith("'")]
        given = dict(zip(encoded, h.split(4, -1), strict=True))
        start = [given.get(s, torch.zeros(6, 4, dtype=torch.float64)) for s in states]
        frozen = self.adjacency(h)

        def f(t: float, now: list[Tensor]) -> list[Tensor]:
            seen = torch.cat([x for s, x in zip(states, now, strict=True) if s in encoded], -1)
            A = self.adjacency(seen) if self.model.adjacency == "live" else frozen
            return field(self, A, t, start, *now)

        now, t = start, 0.0
        for dt in (0.5, 0.5, 1.2 - 1.0):
            k1 = f(t, now)
            k2 = f(t + dt / 3, [x + dt / 3 * a for x, a in zip(now, k1, strict=True)])
            k3 = f(t + 2 * dt / 3, [x + dt * (b - a / 3) for x, a, b in zip(now, k1, k2, strict=True)])
            k4 = f(t + dt, [x + dt * (a - b + c) for x, a, b, c in zip(now, k1, k2, k3, strict=True)])
            now = [x + dt / 8 * (a + 3 * b + 3 * c + d) for x, a, b, c, d in zip(now, k1, k2, k3, k4, strict=True)]
            t += dt
        read = encoded if self.model.readout == "all" else [self.model.readout]
        out = torch.relu(torch.cat([x for s, x in zip(states, now, strict=True) if s in read], -1))
        if self.model.decoder_mlp:
            out = torch.tanh(out + self.layer("decoder_hidden", torch.tanh(out)))
        return functional.cross_entropy(self.layer("decoder", out)[:3], torch.tensor([0, 1, 2]))


def inhibited(net: ByHand, A: Tensor, t: float, start: list[Tensor], u: Tensor, v: Tensor) -> list[Tensor]:
    Du, Dv, beta, gamma, delta = map(net.coefficient, ("Du", "Dv", "beta", "gamma", "delta"))
    return [-Du * (u - A @ u) + beta * (A @ u - A @ A @ u) - gamma * v, -Dv * (v - A @ v) + delta * (u - v)]


def reacting(net: ByHand, A: Tensor, t: float, start: list[Tensor], u: Tensor, v: Tensor) -> list[Tensor]:
    Du, Dv = net.coefficient("Du"), net.coefficient("Dv")
    return [-Du * (u - A @ u) + torch.tanh(u * v), -Dv * (v - A @ v) - torch.sigmoid(u) * v + start[0]]


def oscillating(net: ByHand, A: Tensor, t: float, start: list[Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    mixed = A @ x @ net.coefficient("W") if "coefficient_W" in net.own else A @ x
    return [y, -net.coefficient("gamma") * x - net.coefficient("alpha") * y + torch.tanh(mixed)]


def timed(net: ByHand, A: Tensor, t: float, start: list[Tensor], h: Tensor) -> list[Tensor]:
    alpha, beta, omega = map(net.coefficient, ("alpha", "beta", "omega"))
    now = torch.tensor(t, dtype=torch.float64)
    return [-alpha * torch.exp(-now) * (h - A @ h) + beta * torch.sin(omega * now) * h]


def attentive(net: ByHand, A: Tensor, t: float, start: list[Tensor], u: Tensor, w: Tensor, v: Tensor) -> list[Tensor]:
    alpha, c = net.coefficient("alpha"), net.coefficient("c")
    return [w, -alpha * (u - A @ u) - c * w + v, np.cos(t) * u - v]


WRITTEN: dict[str, tuple[Callable[..., list[Tensor]], list[str]]] = {
    "two fields": (inhibited, ["u", "v"]),
    "two fields, one read": (inhibited, ["u", "v"]),
    "reaction": (reacting, ["u", "v"]),
    "second order": (oscillating, ["H", "H'"]),
    "velocities": (oscillating, ["H", "H'"]),
    "time": (timed, ["H"]),
    "time and attention": (timed, ["H"]),
    "attention": (attentive, ["u", "u'", "v"]),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_loss_and_gradients_are_those_of_a_network_written_by_hand(name: str) -> None:
    data, still = six_nodes(), {"dropout": 0.0, "input_dropout": 0.0}
    ensemble = shaken(Ensemble(data, [Trial(config(**still, **NETWORKS[name]))], dtype=torch.float64))
    loss, gradients = ensemble._slopes()
    own = {k: p.detach().clone().requires_grad_() for k, p in ensemble.parameters.items()}
    expected = ByHand(data, ensemble.trials[0].config.model, own).loss(*WRITTEN[name])
    torch.testing.assert_close(loss[0], expected.detach(), rtol=1e-12, atol=1e-14)
    slopes = torch.autograd.grad(expected, list(own.values()))
    for key, found, slope in zip(own, gradients, slopes, strict=True):
        assert found is not None, key
        torch.testing.assert_close(found, slope, rtol=1e-9, atol=1e-13, msg=lambda m, key=key: f"{key}: {m}")


def test_gradients_are_numerical_derivatives(few: dict[str, Any]) -> None:
    still = {"dropout": 0.0, "input_dropout": 0.0}
    trials = [Trial(config(**still, **few), 0, seed) for seed in (0, 1)]
    ensemble = shaken(Ensemble(six_nodes(), trials, dtype=torch.float64))
    gradients = dict(zip(ensemble.parameters, ensemble._slopes()[1], strict=True))
    for name, p in ensemble.parameters.items():
        found, entries = gradients[name], p.data.view(2, -1)
        assert found is not None, name
        old, losses = entries[:, -1].clone(), []
        for shift in (1e-5, -1e-5):
            entries[:, -1] = old + shift
            losses.append(ensemble._slopes()[0])
        entries[:, -1] = old
        slope = (losses[0] - losses[1]) / 2e-5
        torch.testing.assert_close(found.reshape(2, -1)[:, -1], slope, rtol=2e-5, atol=2e-8)


# ---------------------------------------------------------------------- members
def test_a_member_alone_is_the_member_in_a_batch(few: dict[str, Any]) -> None:
    trials = [Trial(config(epochs=4, **few), split, seed) for split, seed in ((0, 0), (3, 1))]
    together, again = Ensemble(karate(), trials), Ensemble(karate(), trials)
    for ensemble in (together, again):
        ensemble.advance(4)
    for name, value in together.state.items():
        assert torch.equal(value, again.state[name]), name
    for k, trial in enumerate(trials):
        alone = Ensemble(karate(), [trial])
        alone.advance(4)
        one, other = together.outcome(), alone.outcome()
        torch.testing.assert_close(one.history[:, k], other.history[:, 0], rtol=1e-5, atol=1e-5)
        for name in ("best_epoch", "val_accuracy", "test_accuracy"):
            assert getattr(one, name)[k] == getattr(other, name)[0], name


def test_a_member_that_diverges_changes_no_bit_of_the_others() -> None:
    calm = config(reaction=INHIBITED, learning_rate=0.001)
    runs = []
    for rate in (1e6, 0.001):
        ensemble = Ensemble(karate(), [Trial(calm), Trial(calm.updated({"learning_rate": rate}), 1)])
        ensemble.advance(6)
        runs.append(ensemble.outcome())
    assert runs[0].status(1).startswith("diverged in epoch")
    assert runs[0].status(0) == runs[1].status(1) == "ok"
    assert torch.equal(runs[0].history[:, 0], runs[1].history[:, 0])


def test_members_of_several_times_see_their_own_time() -> None:
    trials = [Trial(config(reaction=TIMED, time=time), seed=k) for k, time in enumerate((1.1, 1.2, 1.5))]
    together = Ensemble(karate(), trials)
    together.advance(6)
    for k, trial in enumerate(trials):
        alone = Ensemble(karate(), [trial])
        alone.advance(6)
        torch.testing.assert_close(together.outcome().history[:, k], alone.outcome().history[:, 0])


@pytest.mark.slow
def test_losses_fall(values: dict[str, Any]) -> None:
    own = {"hidden": 8, "epochs": 12, "dropout": 0.0, "input_dropout": 0.0, "learning_rate": 0.03}
    done = train(karate(), [Trial(config(**own | values), split) for split in (0, 1)], device="cpu")
    assert done.status == ("ok", "ok")
    assert (done.history[:, -1, 0] < 0.97 * done.history[:, 0, 0]).all(), done.history[:, [0, -1], 0]


def test_an_epoch_can_be_recorded(values: dict[str, Any]) -> None:
    ensemble = Ensemble(karate(), [Trial(config(**values), split) for split in (0, 3)])
    assert ensemble.model.is_capturable
    ensemble._epoch()
    with Recorded():
        ensemble._epoch()
    assert bool(ensemble.outcome().history[:2, :, 0].isfinite().all())


def test_memory_is_reckoned_for_every_state() -> None:
    one, two = (
        estimate(Ensemble(karate(), [Trial(config(reaction=reaction, adjacency="original"))]))
        for reaction in ("-alpha*L@H + tanh(H)", "u' = -Du*L@u + tanh(v); v' = u - v")
    )
    assert 1.8 < two.states / one.states < 2


# ---------------------------------------------------------------------- the time
@pytest.mark.parametrize(
    ("adjacency", "method"),
    [("original", "rk4"), ("original", "midpoint"), ("original", "dopri5"), ("live", "rk4"), ("live", "midpoint")],
)
def test_the_time_reaches_every_method(adjacency: str, method: str) -> None:
    """-cos(t) H ends in exp(-sin(T)) H(0), attention or not."""
    step = None if method == "dopri5" else 0.05
    shape = {"reaction": "-cos(t)*H", "adjacency": adjacency, "time": 2.0, "method": method, "step": step}
    ensemble = Ensemble(karate(), [Trial(config(**shape))], dtype=torch.float64)
    with torch.no_grad():
        start = ensemble.model.encode(ensemble.problem.features)
        found, _ = ensemble.model.evolve(
            start, ensemble.rates["time"], ensemble.model.chosen_flow, ensemble.model.degree
        )
    torch.testing.assert_close(found, np.exp(-np.sin(2.0)) * start, rtol=2e-3 if method == "midpoint" else 1e-5, atol=0)


# ---------------------------------------------------------------------- files
def test_a_network_of_several_fields_is_saved_and_read(few: dict[str, Any], tmp_path: Path) -> None:
    data = karate()
    network = train(data, [Trial(config(epochs=2, **few))], device="cpu").network(0)
    network.save(tmp_path)
    again = Network.load(tmp_path)
    assert again.config == network.config
    assert torch.equal(again.logits(data.x, data.graph), network.logits(data.x, data.graph))


def test_states_are_told_by_name() -> None:
    data = karate()
    network = train(data, [Trial(config(reaction=OSCILLATORS))], device="cpu").network(0)
    times = [0.0, 0.6, 1.2]
    packed, x, y = (network.states(data.x, data.graph, times, field) for field in (None, "H", "H'"))
    assert torch.equal(packed, torch.cat([x, y], -1))
    assert torch.equal(y[0], torch.zeros(34, 4))
    assert float(y[1].abs().max()) > 0
    model = network.model(data.graph)
    torch.testing.assert_close(model.decode(packed[None, -1])[0], network.logits(data.x, data.graph))


def test_a_training_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path: Path) -> None:
    trials = [Trial(config(reaction=INHIBITED), split) for split in (0, 1)]
    whole, cut = Ensemble(karate(), trials), Ensemble(karate(), trials)
    whole.advance(6)
    cut.advance(2)
    save_checkpoint(tmp_path / "c.json", cut, "mark")
    fresh = Ensemble(karate(), trials)
    assert load_checkpoint(tmp_path / "c.json", fresh, "mark")
    fresh.advance(4)
    for name, value in whole.state.items():
        assert torch.equal(fresh.state[name], value), name


# ---------------------------------------------------------------------- errors
def test_what_cannot_be_trained_is_refused() -> None:
    for reaction, told in (
        ("u' = -L@u + sigma*xi", "without white noise"),
        ("u' = -alpha*L@u + B@v; v' = u where B antisymmetric", "for whose B a network has no graph"),
    ):
        with pytest.raises(NotApplicable, match=told):
            train(karate(), [Trial(config(reaction=reaction))], device="cpu")
    with pytest.raises(UnknownName, match="expected a readout, got 'w'"):
        train(karate(), [Trial(config(reaction=INHIBITED, readout="w"))], device="cpu")
