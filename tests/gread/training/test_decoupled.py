"""Decoupled training against training on the whole graph, in one batch and in many; and what it refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread import Config, Masks, Trial, karate, load_dataset, make_trials, train, train_decoupled
from gread.datasets.node_data import NodeData
from gread.kernels import counters
from gread.models.randomness import Randomness
from gread.settings.gread_settings import GreadSettings
from gread.training.decoupled import DecoupledNetwork, DecoupledTraining, RowStore, check_decoupled
from rdgraph.errors import InvalidArgument, NotApplicable


def make_config(**values: Any) -> Config:
    start = {"adjacency": "original", "input_dropout": 0.0, "dropout": 0.4, "hidden": 6, "epochs": 12, "time": 1.7}
    return Config().updated(start | values)


def assert_alike(data: NodeData, config: Config, rtol: float = 1e-4) -> None:
    trials = make_trials(config, range(2))
    whole, apart = train(data, trials, device="cpu"), train_decoupled(data, trials, device="cpu")
    # Members that have stopped may leave empty rows behind, up to the next look at the clock.
    done = apart.history.shape[1]
    assert np.isnan(whole.history[:, done:]).all()
    np.testing.assert_allclose(apart.history[..., 0], whole.history[:, :done, 0], rtol=1e-5)
    np.testing.assert_allclose(apart.history[..., 1:], whole.history[:, :done, 1:], atol=1e-6)
    np.testing.assert_array_equal(apart.best_epoch, whole.best_epoch)
    np.testing.assert_allclose(apart.test_accuracy, whole.test_accuracy, atol=1e-6)
    assert whole.parameters is not None
    assert apart.parameters is not None
    for one, other in zip(apart.parameters, whole.parameters, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            torch.testing.assert_close(one[name], other[name], rtol=rtol, atol=2e-5)
    torch.testing.assert_close(
        apart.network(1).logits(data.x, data.graph), whole.network(1).logits(data.x, data.graph), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"reaction": "ST"},
        {"method": "rk4", "step": 0.5, "normalisation": "row"},
        {"normalisation": "column", "optimiser": "adamw", "alpha": "channel"},
        {"reaction": "H'' = -alpha*L@H", "velocity": "encoded"},
        {"reaction": "u' = -Du*L@u - beta*v; v' = -Dv*L@v + u"},
        {"select": "loss", "patience": 3, "learning_rate": 0.3, "epochs": 40},
        {"decoder_mlp": True, "row_features": True},
    ],
)
def test_one_batch_is_training_on_the_whole_graph(values: dict[str, Any]) -> None:
    assert_alike(karate(), make_config(**values))


@pytest.mark.skipif("RDGRAPH_DATA" not in os.environ, reason="needs a copy of Cora")
@pytest.mark.slow
def test_one_batch_is_training_on_the_whole_graph_of_cora() -> None:
    assert_alike(load_dataset("cora", offline=True).component(), make_config(epochs=4), rtol=1e-3)


def test_batches_do_not_change_what_a_network_answers() -> None:
    """A step of the loss over two halves, weighted by their sizes, is that over all nodes: dropout goes by node."""
    data, config = karate(), make_config(dropout=0.5)
    training = self_made(data, config)
    nodes = training.training_nodes
    random = Randomness(training.model.seeds, torch.tensor(3), torch.from_numpy(nodes))
    weights = training.network.weights(random)
    whole = training.network.logits(training.rows.take(nodes), weights, random)
    for part in (nodes[:5], nodes[5:], nodes[::-1].copy()):
        own = Randomness(training.model.seeds, torch.tensor(3), torch.from_numpy(part))
        logits = training.network.logits(training.rows.take(part), weights, own)
        torch.testing.assert_close(logits, whole[np.searchsorted(nodes, part)], rtol=1e-5, atol=1e-6)


def self_made(data: NodeData, config: Config, folder: Path | None = None, **options: Any) -> DecoupledTraining:
    import tempfile

    out = folder or Path(tempfile.mkdtemp())
    settings = check_decoupled(config.model)
    powers = rd.run.propagate(
        data.graph, data.x, degree=30, out=out, normalisation=settings.normalisation, self_loops=settings.self_loops
    )
    return DecoupledTraining(powers, data.y, data.masks, Trial(config), classes=data.num_classes, **options)


@pytest.mark.slow
def test_mini_batches_learn_and_visit_every_training_node() -> None:
    data, config = karate(), make_config(epochs=30, dropout=0.0)
    training = self_made(data, config, batch=4)
    seen: list[np.ndarray] = []
    step = training._step
    training._step = lambda nodes: (seen.append(nodes), step(nodes))[1]  # type: ignore[method-assign, func-returns-value]
    training.epoch()
    assert sorted(np.concatenate(seen)) == sorted(training.training_nodes)
    assert [len(part) for part in seen] == [4] * (len(training.training_nodes) // 4) + (
        [len(training.training_nodes) % 4] if len(training.training_nodes) % 4 else []
    )
    done = train_decoupled(data, [Trial(config)], batch=4, device="cpu")
    assert done.history[0, -1, 0] < 0.5 * done.history[0, 0, 0]
    again = train_decoupled(data, [Trial(config)], batch=4, device="cpu")
    np.testing.assert_array_equal(done.history, again.history)


def test_rows_come_from_the_disk_where_memory_is_short() -> None:
    data, config = karate(), make_config(epochs=5)
    plenty = train_decoupled(data, [Trial(config)], batch=5, device="cpu")
    short = train_decoupled(data, [Trial(config)], batch=5, device="cpu", memory=0)
    np.testing.assert_array_equal(plenty.history, short.history)
    store = RowStore(self_made(data, config).powers, np.arange(10), 3, "cpu", torch.float32, memory=0)
    assert store.cached is None
    assert store.take(np.array([3, 1])).shape == (2, 4 * (data.num_features + 1))


def test_input_dropout_takes_whole_columns_which_commutes_with_the_graph() -> None:
    """The network on rows of the powers is the network on the graph whose features have lost those columns."""
    data, config = karate(), make_config(input_dropout=0.5, dropout=0.0)
    training = self_made(data, config)
    random = Randomness(training.model.seeds, torch.tensor(2), torch.arange(data.num_nodes))
    found = training.network.logits(
        torch.from_numpy(training.powers.rows(np.arange(data.num_nodes), training.network.degree))
        .transpose(0, 1)
        .flatten(1),
        training.network.weights(random),
        random,
    )
    kept = counters.uniform(training.model.seeds, counters.DROPOUT + 1, data.num_features, torch.tensor(2))[0] >= 0.5
    assert 0 < int(kept.sum()) < data.num_features
    x = (data.x.toarray() if data.is_sparse else data.x) * np.where(kept.numpy(), 2.0, 0.0)  # type: ignore[union-attr]
    from gread.models.trained_network import Network

    network = Network(
        training.model.config, {k: p.detach() for k, p in training.parameters.items()}, data.num_features, 2
    )
    torch.testing.assert_close(found.detach(), network.logits(x, data.graph), rtol=1e-4, atol=1e-5)


def test_the_degree_grows_with_the_coefficients(tmp_path: Path) -> None:
    data, config = karate(), make_config(beta="channel", beta_link="free", epochs=1)
    training = self_made(data, config, tmp_path)
    start = training.network.degree
    with torch.no_grad():
        training.parameters["coefficient_beta"].fill_(4.0)
    assert training.network.needed() > start
    training.epoch()
    assert training.network.degree > start
    assert training.network.truncation() < 1e-6
    with torch.no_grad():
        training.parameters["coefficient_beta"].fill_(20.0)
    with pytest.raises(NotApplicable, match="propagate further with degree="):
        training.epoch()


def test_powers_are_kept_in_a_folder_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, config = karate(), make_config(epochs=2)
    train_decoupled(data, make_trials(config, range(2)), device="cpu", folder=tmp_path)
    (only,) = tmp_path.iterdir()
    before = {p.name: p.stat().st_mtime_ns for p in only.glob("*.npy")}
    train_decoupled(data, make_trials(config, range(2)), device="cpu", folder=tmp_path)
    assert {p.name: p.stat().st_mtime_ns for p in only.glob("*.npy")} == before


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"adjacency": "soft"}, "expected the original adjacency"),
        ({"adjacency": "live", "method": "euler", "step": 0.5}, "expected the original adjacency"),
        ({"encoder_mlp": True}, "expected a linear encoder"),
        ({"beta": "node"}, "got beta of kind node"),
        ({"reaction": "H@W - alpha*L@H"}, "got W of kind matrix"),
        ({"reaction": "F"}, "expected a linear equation"),
        ({"reaction": "-alpha*L@H + beta"}, "train it on the whole graph"),
        ({"normalisation": "none", "self_loops": 0.0}, "expected one normalised operator"),
    ],
)
def test_what_is_not_linear_in_the_features_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(NotApplicable, match=words):
        train_decoupled(karate(), [Trial(make_config(**values))], device="cpu")


def test_other_networks_and_wrong_batches_are_refused() -> None:
    with pytest.raises(NotApplicable, match="expected the network gread"):
        check_decoupled(Config.of("gcn").model)
    wrong: list[Any] = [0, 2.5, "4", True]
    for batch in wrong:
        with pytest.raises(InvalidArgument, match=f"expected batches of one node at least, got {batch!r}"):
            train_decoupled(karate(), [Trial(make_config())], batch=batch, device="cpu")
    with pytest.raises(InvalidArgument, match="expected at least one trial"):
        train_decoupled(karate(), [], device="cpu")
    config: Any = make_config()
    for trials in (config, [config], Trial(config), None):
        for trained in (train, train_decoupled):
            with pytest.raises(InvalidArgument, match=r"expected a list of trials, got .*; make some"):
                trained(karate(), trials, device="cpu")


def test_areas_under_curves_are_measured_on_the_whole_graph() -> None:
    data = karate()
    measured = replace(data, meta=replace(data.meta, metric="roc_auc"))
    with pytest.raises(NotApplicable, match="expected data that are measured by their accuracy"):
        train_decoupled(measured, [Trial(make_config())], device="cpu")


def test_a_training_that_diverges_says_when() -> None:
    config = make_config(learning_rate=1e30, epochs=8, dropout=0.0)
    done = train_decoupled(karate(), [Trial(config)], device="cpu", tell=lambda text: None)
    assert done.status[0].startswith("diverged in epoch")


def test_without_validation_nodes_the_last_epoch_counts() -> None:
    data = karate()
    masks = Masks(data.masks.train[0], np.zeros(34, bool), np.zeros(34, bool))
    bare = NodeData(data.graph, data.x, data.y, masks)
    done = train_decoupled(bare, [Trial(make_config(epochs=3))], device="cpu")
    assert done.best_epoch[0] == 3
    assert np.isnan(done.val_accuracy[0])


def test_a_network_alone_needs_no_graph() -> None:
    network = DecoupledNetwork(check_decoupled(GreadSettings("BS", adjacency="original", hidden=4)), 3, 2, seed=0)
    rows = torch.zeros(5, (network.degree + 1) * 4)
    assert network.logits(rows, network.weights()).shape == (5, 2)
