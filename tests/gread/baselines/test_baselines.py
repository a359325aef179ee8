"""The compared methods: layers against dense formulas, second neighbours against distances, the training by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from analysis.measures.energies import dirichlet_energy
from gread.baselines import find_baseline, fit, layered, make_baseline, zoo
from gread.baselines.fitting import fresh, tensors
from gread.baselines.heterophily import H2GCN, H2GCNSettings, narrowed, rings
from gread.baselines.layered import Layered, dropped, pyg
from gread.baselines.registry import Baseline
from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.trainer import train
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, MissingDependency, UnknownName

needs_pyg = pytest.mark.skipif(find_spec("torch_geometric") is None, reason="torch-geometric is not installed")
MODULES = [
    pytest.param(name, marks=needs_pyg) if name in ("GCN", "GAT") else name for name in zoo if zoo[name].build
]  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    "GCN": {"layers": 3}, "GAT": {"layers": 3, "heads": 2, "attention_dropout": 0.0}, "H2GCN": {"rounds": 2},
}  # fmt: skip


def build(name: str, **more: Any) -> Callable[[int, int], Layered]:
    options = {"hidden": 4, "input_dropout": 0.3, "dropout": 0.0, **SMALL[name], **more}
    return lambda features, classes: make_baseline(name, features=features, classes=classes, **options)


def setup(name: str, **more: Any) -> tuple[Any, Tensor, Tensor, np.ndarray]:
    """A network in double precision on a random graph, and its dense adjacency."""
    data = csbm(3, n=14, features=3, within=0.5, between=0.2)
    network = fresh(build(name, **more), data, Trial(seed=5)).double()
    x, edges = tensors(data, dtype=torch.float64)
    return network, x, edges, data.graph.adjacency.toarray()


# ---------------------------------------------------------------------- formulas
@needs_pyg
def test_gcn_is_its_formula() -> None:
    network, x, edges, dense = setup("GCN")
    loops = dense + np.eye(14)
    degree = loops.sum(1)
    A = torch.tensor(loops / np.sqrt(np.outer(degree, degree)))
    states = network.layers(x, edges)
    expected = x
    for k, layer in enumerate(network.convolutions):
        expected = A @ expected @ layer.lin.weight.T + layer.bias
        expected = expected if k == 2 else torch.relu(expected)
        torch.testing.assert_close(states[k + 1], expected, rtol=1e-12, atol=1e-12)
    assert [h.shape[1] for h in states] == [3, 4, 4, 2]
    assert torch.equal(network(x, edges), states[-1])
    assert float(states[1].detach().min()) == 0.0
    assert float(states[-1].detach().min()) < 0.0


@needs_pyg
def test_gat_is_its_formula() -> None:
    network, x, edges, dense = setup("GAT")
    mask = torch.tensor(dense + np.eye(14)) > 0
    states = network.layers(x, edges)
    expected = x
    for k, layer in enumerate(network.convolutions):
        heads = []
        values = (expected @ layer.lin.weight.T).view(14, layer.heads, -1)
        for h in range(layer.heads):
            own = values[:, h]
            scores = (own @ layer.att_dst[0, h])[:, None] + (own @ layer.att_src[0, h])[None, :]
            soft = functional.leaky_relu(scores, 0.2).masked_fill(~mask, -torch.inf).softmax(1)
            heads.append(soft @ own)
        expected = torch.cat(heads, 1) + layer.bias
        expected = expected if k == 2 else functional.elu(expected)
        torch.testing.assert_close(states[k + 1], expected, rtol=1e-12, atol=1e-12)
    assert [h.shape[1] for h in states] == [3, 8, 8, 2]


def test_h2gcn_is_its_formula() -> None:
    network, x, edges, dense = setup("H2GCN")
    distance = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(dense)))
    hops = [np.array([[float(distance[i].get(j) == k) for j in range(14)] for i in range(14)]) for k in (1, 2)]
    first, second = (torch.tensor(h / np.sqrt(np.outer(h.sum(1), h.sum(1)).clip(1))) for h in hops)
    states = [torch.relu(x @ network.encoder.weight.T)]
    for _ in range(2):
        states.append(torch.cat([first @ states[-1], second @ states[-1]], 1))
    for found, expected in zip(network.layers(x, edges), states, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(network(x, edges), torch.cat(states, 1) @ network.decoder.weight.T)
    assert float(second.sum()) > 0


def test_h2gcn_without_relu_is_linear_in_the_features() -> None:
    network, x, edges, _ = setup("H2GCN", relu=False)
    torch.testing.assert_close(network(-2 * x, edges), -2 * network(x, edges))
    with_relu = setup("H2GCN")[0]
    assert not torch.allclose(with_relu(-x, edges), -with_relu(x, edges))


@pytest.mark.parametrize("seed", range(4))
def test_rings_are_the_nodes_at_distance_one_and_two(seed: int) -> None:
    stream = np.random.default_rng(seed)
    given = Graph.from_edges(stream.integers(0, 12, (2, 14)), 13, duplicates="once")
    other = given.to_networkx().to_undirected()
    distance = dict(nx.all_pairs_shortest_path_length(other))
    for k, ring in enumerate(rings(given), start=1):
        expected = {(i, j) for i in range(13) for j in range(13) if distance[i].get(j) == k}
        assert set(zip(*ring.edge_index.tolist(), strict=True)) == expected
        assert (ring.weight == 1).all()
        assert ring.num_nodes == 13


def test_operators_are_kept_for_the_same_edges_alone() -> None:
    network, x, edges, _ = setup("H2GCN")
    assert network.operators(x, edges) is network.operators(x, edges)
    fewer = edges[:, (edges != 0).all(0)]
    torch.testing.assert_close(network.layers(x, fewer)[1][0], torch.zeros(8, dtype=torch.float64))
    assert float(network.layers(x, edges)[1][0].detach().abs().max()) > 0
    assert network.float().layers(x.float(), edges)[1].dtype == torch.float32


# ---------------------------------------------------------------------- narrow states
def test_narrow_layers_have_the_inner_products_of_the_wide_ones() -> None:
    network, x, edges, dense = setup("H2GCN", rounds=5)
    plain = Graph.from_dense(dense).operator("none", dtype=torch.float64)
    wide, narrow = network.layers(x, edges), network.narrow_layers(x, edges, 5)
    assert [h.shape[1] for h in wide] == [4, 8, 16, 32, 64, 128]
    assert [h.shape[1] for h in narrow] == [4, 8, 14, 14, 14, 14]
    for one, other in zip(wide, narrow, strict=True):
        torch.testing.assert_close(other @ other.T, one @ one.T, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(dirichlet_energy(other, plain), dirichlet_energy(one, plain), rtol=1e-10, atol=0)


def test_a_narrow_state_is_left_as_it_is() -> None:
    H = torch.arange(12.0).reshape(4, 3)
    assert narrowed(H) is H


# ---------------------------------------------------------------------- the zoo
def test_the_zoo_knows_its_members() -> None:
    assert list(zoo) == ["GCN", "GAT", "H2GCN", "GRAND"]
    assert all(name == member.name and member.source for name, member in zoo.items())
    assert find_baseline("GRAND").equation == GreadSettings(reaction="diffusion", adjacency="soft")


def test_errors_name_what_is_known() -> None:
    with pytest.raises(UnknownName, match="expected a baseline, got 'GCM'; did you mean 'GCN'"):
        find_baseline("GCM")
    with pytest.raises(UnknownName, match="expected a setting of H2GCN, got 'round'; did you mean 'rounds'"):
        make_baseline("H2GCN", features=2, classes=2, round=2)
    with pytest.raises(InvalidArgument, match="module of its own, got GRAND"):
        make_baseline("GRAND", features=2, classes=2)
    with pytest.raises(InvalidArgument, match="builder with settings or an equation for X"):
        Baseline("X", "none", "nobody")
    with pytest.raises(InvalidArgument, match="builder with settings or an equation for X"):
        Baseline("X", "none", "nobody", None, H2GCN)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("H2GCN", {"rounds": 0}, "rounds >= 1, got 0"),
        ("H2GCN", {"hidden": 2.0}, "hidden >= 1, got 2.0"),
        ("H2GCN", {"dropout": 1.0}, "0 <= dropout < 1, got 1.0"),
        ("GCN", {"layers": -1}, "layers >= 1, got -1"),
        ("GAT", {"heads": 0}, "heads >= 1, got 0"),
        ("GAT", {"attention_dropout": 1.5}, "attention_dropout < 1, got 1.5"),
        ("GAT", {"input_dropout": -0.1}, "input_dropout < 1, got -0.1"),
    ],
)
def test_settings_check_themselves(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        make_baseline(name, features=2, classes=2, **settings)


@pytest.mark.parametrize("name", MODULES)
def test_permuted_nodes_give_permuted_logits(name: str) -> None:
    network, x, edges, dense = setup(name)
    order = np.random.default_rng(0).permutation(14)
    turned = Graph.from_dense(dense).permute(order)
    there = network(x[order], torch.tensor(turned.edge_index))
    torch.testing.assert_close(there, network(x, edges)[order])


@pytest.mark.parametrize("name", MODULES)
def test_dropout_acts_in_training_alone(name: str) -> None:
    network, x, edges, _ = setup(name, input_dropout=0.5)
    assert torch.equal(network(x, edges), network(x, edges))
    network.train()
    assert not torch.equal(network(x, edges), network(x, edges))


def test_dropped_entries_are_made_up_for() -> None:
    x = torch.ones(20000)
    found = dropped(x, 0.25, True)
    assert found.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(found.mean()) == pytest.approx(1.0, abs=0.02)
    assert dropped(x, 0.25, False) is x
    assert dropped(x, 0.0, True) is x


def test_without_pyg_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(layered, "import_module", refuse)
    with pytest.raises(MissingDependency, match=r"pip install 'rdgraph\[pyg\]'"):
        pyg("nn")

    def broken(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'xxhash'", name="xxhash")

    monkeypatch.setattr(layered, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="xxhash"):
        pyg("nn")


# ---------------------------------------------------------------------- training
def config(**values: Any) -> Config:
    return Config().updated({"epochs": 12, "learning_rate": 0.05, "weight_decay": 0.01, **values})


class Scripted(Layered):
    """Logits that a list of epochs decides: which share of the nodes is right after every step."""

    def __init__(self, y: np.ndarray, shares: list[float]) -> None:
        super().__init__()
        self.y, self.shares = torch.tensor(y), shares
        self.register_buffer("step", torch.tensor(0))
        self.weight = nn.Parameter(torch.zeros(1))

    def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        if self.training:
            self.step += 1
        share = self.shares[min(int(self.step), len(self.shares)) - 1] if int(self.step) else 0.0
        right = torch.arange(len(self.y)) % 10 < 10 * share
        said = torch.where(right, self.y, 1 - self.y)
        scale = torch.nan if share < 0 else 1.0
        return [functional.one_hot(said, 2) * scale + self.weight * 0.0]


def scripted(data: NodeData, shares: list[float]) -> Callable[[int, int], Layered]:
    return lambda features, classes: Scripted(data.y, shares)


def test_the_first_of_equally_good_epochs_counts() -> None:
    data = csbm(0, n=200)
    done = fit(scripted(data, [0.2, 0.6, 0.3, 0.6]), data, [Trial(config(epochs=4))], device="cpu")
    results = done.results
    assert results.best_epoch.tolist() == [2]
    assert results.history[0, :, 2].argmax() == 1
    assert results.val_accuracy[0] == pytest.approx(results.history[0, 1, 2])
    assert results.test_accuracy[0] == pytest.approx(results.history[0, 1, 3])
    assert results.history[0, 1, 2] == results.history[0, 3, 2]
    assert int(done.best[0].step) == 2  # type: ignore[arg-type]
    assert int(done.last[0].step) == 4  # type: ignore[arg-type]
    assert not done.best[0].training


def test_a_training_that_leaves_the_numbers_stops_there() -> None:
    data = csbm(0, n=200)
    builds = iter([scripted(data, [0.5, 0.7, -1.0]), scripted(data, [0.5, 0.6, 0.7, 0.8])])
    done = fit(lambda f, c: next(builds)(f, c), data, [Trial(config(epochs=4), seed=s) for s in (0, 1)], device="cpu")
    assert done.results.status == ("diverged in epoch 3", "ok")
    assert done.results.best_epoch.tolist() == [2, 4]
    assert np.isfinite(done.results.history[0, :2]).all()
    assert np.isnan(done.results.history[0, 2:]).all()
    assert np.isfinite(done.results.history[1]).all()


@pytest.mark.parametrize("name", MODULES)
def test_training_is_adam_on_the_training_nodes(name: str) -> None:
    """Every parameter after three steps, against Adam written out; dropout is off so that nothing is drawn."""
    data, rate, decay = karate(), 0.05, 0.01
    make = build(name, input_dropout=0.0)
    trial = Trial(config(epochs=3), split=2, seed=7)
    done = fit(make, data, [trial], device="cpu")
    network = fresh(make, data, trial)
    x, edges = tensors(data)
    train_nodes, y = torch.tensor(data.masks.train[2]), torch.tensor(data.y)
    values = list(network.parameters())
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in values]
    for step in (1, 2, 3):
        logits = network(x, edges)
        picked = logits.log_softmax(-1)[torch.arange(34), y]
        loss = -picked[train_nodes].mean()
        assert done.results.history[0, step - 1, 0] == pytest.approx(float(loss.detach()), rel=1e-4)
        slopes = torch.autograd.grad(loss, values)
        with torch.no_grad():
            for p, g, (m, v) in zip(values, slopes, moments, strict=True):
                g = g + decay * p
                m.mul_(0.9).add_(0.1 * g)
                v.mul_(0.999).add_(0.001 * g * g)
                p -= rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
    for found, expected in zip(done.last[0].parameters(), values, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_results_do_not_depend_on_the_others_and_leave_the_generator_alone() -> None:
    data, make = karate(), build("H2GCN")
    trials = [Trial(config(), split, seed) for split, seed in ((0, 0), (1, 0), (0, 1))]
    before = torch.get_rng_state()
    together, alone = fit(make, data, trials, device="cpu"), fit(make, data, trials[2:], device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(together.results.history[2], alone.results.history[0])
    assert not np.array_equal(together.results.history[0], together.results.history[2])
    assert together.results.history.shape == (3, 12, 4)
    learned = together.results.history[:, :, 0]
    assert (learned[:, -1] < learned[:, 0]).all()
    assert together.results.rows()[1]["split"] == 1


@pytest.mark.parametrize("other", [Trial(seed=6), Trial(split=1, seed=5)])
def test_first_parameters_depend_on_the_seed_and_the_split(other: Trial) -> None:
    data, make = karate(), build("H2GCN")
    one, same, another = (fresh(make, data, trial).encoder.weight for trial in (Trial(seed=5), Trial(seed=5), other))
    assert torch.equal(one, same)  # type: ignore[arg-type]
    assert not (one == another).any()  # type: ignore[union-attr]


def test_dropout_draws_other_numbers_than_the_first_parameters() -> None:
    data = karate()
    drawn: list[Tensor] = []

    class Listening(Layered):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(34, 2))
            drawn.append(torch.rand(5))

        def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
            if self.training:
                drawn.append(torch.rand(5))
            return [self.weight * 1.0]

    fit(lambda features, classes: Listening(), data, [Trial(config(epochs=2))], device="cpu")
    assert len(drawn) == 3
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])


def test_test_labels_do_not_choose_the_epoch() -> None:
    data, make, trial = karate(), build("H2GCN"), Trial(config(), split=1)
    labels = np.where(data.masks.test[1], 1 - data.y, data.y)
    one, other = (fit(make, d, [trial], device="cpu").results for d in (data, replace(data, y=labels)))
    assert one.best_epoch.tolist() == other.best_epoch.tolist()
    assert np.array_equal(one.history[:, :, :3], other.history[:, :, :3])
    assert other.test_accuracy[0] == pytest.approx(1 - one.test_accuracy[0])


def test_every_trial_may_have_its_own_graph() -> None:
    datas = [csbm(k, n=20) for k in range(2)]
    trials = [Trial(config(epochs=3), seed=k) for k in range(2)]
    heard: list[int] = []
    done = fit(build("H2GCN"), datas, trials, device="cpu", progress=heard.append)
    assert heard == [0, 1]
    alone = fit(build("H2GCN"), datas[1], trials[1:], device="cpu")
    assert np.array_equal(done.results.history[1], alone.results.history[0])
    assert not np.array_equal(done.results.history[0], done.results.history[1])


def test_data_that_cannot_be_trained_on_is_refused() -> None:
    data, make = karate(), build("H2GCN")
    with pytest.raises(InvalidArgument, match="one for each, got 2 and 1"):
        fit(make, [data], [Trial(), Trial(seed=1)])
    with pytest.raises(InvalidArgument, match="expected trials"):
        fit(make, data, [])
    with pytest.raises(InvalidArgument, match=r"expected a split among 0\.\.9 of karate, got 10"):
        fit(make, data, [Trial(split=10)])
    weighted = Graph.from_edges(data.graph.edge_index, 34, np.full(156, 2.0))
    with pytest.raises(InvalidArgument, match="expected edges without weights"):
        fit(make, replace(data, graph=weighted), [Trial()])


def test_grand_is_trained_as_an_equation() -> None:
    equation = find_baseline("GRAND").equation
    assert equation is not None
    settings = Config(equation).updated({"hidden": 4, "epochs": 3, "method": "euler", "step": 1.0, "time": 2.0})
    network = train(karate(), [Trial(settings)], device="cpu").network(0)
    data = karate()
    operator, states = network.operator(data.x, data.graph), network.states(data.x, data.graph, [0.0, 1.0])
    alpha = float(network.coefficients()["alpha"])
    assert 0 < alpha < 1
    torch.testing.assert_close(operator.dense().sum(1), torch.ones(34))
    torch.testing.assert_close(states[1], (1 - alpha) * states[0] + alpha * (operator @ states[0]))


def test_settings_of_h2gcn_are_those_its_paper_counts() -> None:
    assert {f.name for f in fields(H2GCNSettings)} == {"hidden", "input_dropout", "dropout", "rounds", "relu"}
