"""Training as a whole: batches, progress, results, checkpoints that survive a kill, networks that can be saved."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.datasets.synthetic import csbm
from gread.models.bundle import save_bundle
from gread.models.trained_network import Network
from gread.settings.trials import Trial, make_trials
from gread.training import planner
from gread.training.batch_queue import most_members
from gread.training.ensemble import METRICS, Ensemble
from gread.training.planner import MOST_ON_CPU, Need, check_fit, estimate, make_batches
from gread.training.trainer import Progress, Trained, choose_device, train
from rdgraph.errors import FileError, InvalidArgument
from tests.gread.training.small_trainings import config


# ---------------------------------------------------------------------- results
def test_results_do_not_depend_on_the_batches():
    trials = make_trials(config(), range(2), range(2))
    whole = train(karate(), trials, device="cpu")
    for members in (1, 3):
        parts = train(karate(), trials, device="cpu", members=members)
        np.testing.assert_allclose(parts.history, whole.history, rtol=1e-5, atol=1e-5)
        assert parts.best_epoch.tolist() == whole.best_epoch.tolist()
        np.testing.assert_array_equal(parts.test_accuracy, whole.test_accuracy)


def test_results_come_in_the_order_of_the_trials_whatever_their_shape():
    kinds = [config(), config(hidden=4, epochs=3), config(), config(hidden=4, epochs=3)]
    trials = [Trial(c, split=k) for k, c in enumerate(kinds)]
    done = train(karate(), trials, device="cpu")
    assert done.history.shape == (4, 6, len(METRICS))
    assert np.isnan(done.history[1, 3:]).all()
    assert np.isfinite(done.history[[0, 2]]).all()
    for k, trial in enumerate(trials):
        alone = train(karate(), [trial], device="cpu")
        epochs = trial.config.training.epochs
        np.testing.assert_allclose(done.history[k, :epochs], alone.history[0], rtol=1e-5, atol=1e-5)
        assert done.network(k).parameters["encoder_weight"].shape == (1, 34, trial.config.model.hidden)


def test_means_and_rows():
    done = train(karate(), make_trials(config(), range(3), [4]), device="cpu")
    tests = done.test_accuracy
    assert done.mean == pytest.approx(100 * tests.sum() / 3)
    assert done.std == pytest.approx(100 * np.sqrt(((tests - tests.mean()) ** 2).mean()))
    rows = done.rows()
    assert [(r["split"], r["seed"], r["status"]) for r in rows] == [(0, 4, "ok"), (1, 4, "ok"), (2, 4, "ok")]
    for k, row in enumerate(rows):
        assert row["best_epoch"] == 1 + int(np.argmax(done.history[k, :, 2]))
        assert row["test_accuracy"] == done.history[k, int(done.best_epoch[k]) - 1, 3]
        assert row["val_accuracy"] == done.history[k, :, 2].max()
    assert done.seconds > 0


def test_data_sets_of_their_own_stay_with_their_trials():
    datas = [csbm(k, n=24) for k in range(3)]
    trials = [Trial(config(hidden=h), seed=k) for k, h in enumerate((8, 4, 8))]
    done = train(datas, trials, device="cpu")
    for k in range(3):
        alone = train(datas[k], [trials[k]], device="cpu")
        np.testing.assert_allclose(done.history[k], alone.history[0], rtol=1e-5, atol=1e-5)
        assert done.data_of(k) is datas[k]
    with pytest.raises(InvalidArgument, match="expected one data set or one for each of 3 trials, got 2"):
        train(datas[:2], trials, device="cpu")


@pytest.mark.parametrize("n", [24, 200])
def test_trials_on_several_graphs_are_trained_as_on_each_alone(n):
    """Small graphs share batches with their union, larger ones have batches of their own."""
    datas = [one for k in range(2) for one in [csbm(k, n=n)] * 3]
    trials = [Trial(config(adjacency="original", step=0.125), split=k % 3) for k in range(6)]
    batches: list[Progress] = []
    done = train(datas, trials, device="cpu", progress=batches.append)
    assert batches[-1].batches == (1 if n == 24 else 2)
    for first in (0, 3):
        alone = train(datas[first], trials[first : first + 3], device="cpu")
        np.testing.assert_allclose(done.history[first : first + 3], alone.history, rtol=1e-4, atol=1e-5)


def test_graphs_of_different_sizes_have_batches_of_their_own():
    datas = [csbm(0, n=24), csbm(1, n=30)]
    trials = [Trial(config(), seed=k) for k in range(2)]
    done = train(datas, trials, device="cpu")
    for k in range(2):
        alone = train(datas[k], [trials[k]], device="cpu")
        np.testing.assert_allclose(done.history[k], alone.history[0], rtol=1e-5, atol=1e-5)


def test_a_batch_is_planned_for_the_union_of_its_graphs():
    datas, trial = [csbm(k, n=60) for k in range(8)], Trial(config())
    need = estimate(Ensemble(datas[0], [trial], device="cpu"))
    with planner.planned_for(int(12.5 * need.total) + 100):
        alone, beside = (most_members(datas[0], trial, among=sets, device="cpu") for sets in ((), datas))
    assert alone == 10
    assert beside == int(10 * need.total / (need.parameters + need.states * planner.union_factor(datas[0], datas)))
    assert beside < 8


def test_progress_counts_the_epochs_of_all_batches():
    heard: list[Progress] = []
    trials = [*make_trials(config(epochs=25), range(3)), Trial(config(hidden=4))]
    done = train(karate(), trials, device="cpu", members=2, progress=heard.append)
    assert all(a.epoch < b.epoch for a, b in pairwise(heard))
    heard = [h for h in heard if h.epoch in (20, 25, 45, 50, 56)]  # others where a second has passed
    assert len(heard) == 5
    assert {h.epochs for h in heard} == {56}
    assert [h.batch for h in heard] == [0, 0, 1, 1, 2]
    assert {h.batches for h in heard} == {3}
    assert all(a.seconds <= b.seconds for a, b in pairwise(heard))
    assert heard[0].loss == pytest.approx(done.history[:2, 19, 0].mean(), rel=1e-5)
    assert heard[3].val_accuracy == pytest.approx(done.history[2, 24, 2], rel=1e-5)


def test_progress_leaves_out_members_that_failed():
    heard: list[Progress] = []
    trials = [Trial(config(epochs=20)), Trial(config(epochs=20, learning_rate=1e6))]
    done = train(karate(), trials, device="cpu", progress=heard.append)
    assert done.status[1].startswith("diverged")
    assert heard[-1].loss == pytest.approx(done.history[0, -1, 0], rel=1e-5)


def test_trainings_that_cannot_be_are_refused():
    with pytest.raises(InvalidArgument, match="expected at least one trial, got none"):
        train(karate(), [], device="cpu")
    with pytest.raises(InvalidArgument, match=r"expected a split among 0\.\.9"):
        train(karate(), [Trial(config(), split=10)], device="cpu")
    for members in (0, -1):
        with pytest.raises(InvalidArgument, match="expected batches of at least one member"):
            train(karate(), [Trial(config())], device="cpu", members=members)
    bare = train(karate(), [Trial(config(epochs=1))], device="cpu", keep_best=False)
    with pytest.raises(InvalidArgument, match="keep_best=False"):
        bare.network(0)


def test_the_device_is_chosen():
    assert choose_device() == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cpu") == "cpu"
    with pytest.raises(InvalidArgument, match="expected a CUDA device torch can use, got 'cuda:99'"):
        choose_device("cuda:99")


def test_batches_that_are_done_are_told_of_with_their_results():
    trials = [Trial(c, split=s) for s in range(2) for c in (config(), config(hidden=6, epochs=5))]
    heard: list[list[int]] = []
    early: list[Trained] = []

    def finished(numbers, results):
        heard.append(list(numbers))
        early.append(results(numbers))

    done = train(karate(), trials, device="cpu", finished=finished)
    assert heard == [[0, 2], [1, 3]]
    for numbers, one in zip(heard, early, strict=True):
        assert one.rows() == [done.rows()[k] for k in numbers]
        assert one.trials == tuple(done.trials[k] for k in numbers)
        assert one.history.shape[1] == trials[numbers[0]].config.training.epochs


def test_a_graph_of_its_own_is_trained_on_as_if_it_were_the_only_one():
    """Draws for features that several members share are the same, whether other graphs are trained beside or not."""
    data, other = karate(), csbm(n=20, features=4, classes=4)
    trials = make_trials(config(input_dropout=0.5), range(2))
    alone = train(data, trials, device="cpu")
    beside = train([data, data, other, other], [*trials, *trials], device="cpu")
    np.testing.assert_array_equal(alone.history, beside.history[:2])
    assert [beside.network(k).classes for k in (0, 2)] == [data.num_classes, other.num_classes]
    assert beside.network(0).probabilities(data.x, data.graph).shape[-1] == data.num_classes
    listed = train([data], trials, device="cpu")
    np.testing.assert_array_equal(alone.history, listed.history)
    assert listed.data_of(1) is data


# ---------------------------------------------------------------------- the planner
def test_batches_share_a_shape_and_are_even():
    small, large = config(), config(hidden=16)
    trials = [Trial(c, split=s) for s in range(5) for c in (small, large)]
    assert make_batches(trials, [5, 5]) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert make_batches(trials, [4, 9]) == [[0, 2, 4], [6, 8], [1, 3, 5, 7, 9]]
    assert make_batches(trials, [1, 2]) == [[0], [2], [4], [6], [8], [1, 3], [5, 7], [9]]


def test_as_many_members_as_fit(monkeypatch):
    need = Need(parameters=300, states=700)
    monkeypatch.setattr(planner, "free_memory", lambda device: 100_000)
    assert need.total == 1000
    assert check_fit(need, "cuda", None) == 80
    assert check_fit(need, "cpu", None) == MOST_ON_CPU
    assert check_fit(need, "cuda", 80) == 80
    with pytest.raises(InvalidArgument, match=r"at most 80 members.* of cuda, got 81; pass members=80"):
        check_fit(need, "cuda", 81)
    monkeypatch.setattr(planner, "free_memory", lambda device: 1200)
    with pytest.raises(InvalidArgument, match=r"for one member, got .* GiB free on cpu; lower hidden"):
        check_fit(need, "cpu", None)


def test_too_many_members_are_refused_before_training(monkeypatch):
    trials = make_trials(config(), range(4))
    need = estimate(Ensemble(karate(), trials[:1])).total
    monkeypatch.setattr(planner, "free_memory", lambda device: int(2.6 * need / 0.8))
    with pytest.raises(InvalidArgument, match="at most 2 members"):
        train(karate(), trials, device="cpu", members=3)
    heard: list[Progress] = []
    train(karate(), trials, device="cpu", progress=heard.append)
    assert {h.batches for h in heard} == {2}


def test_estimates_grow_with_what_is_held():
    def total(**values: object) -> int:
        return estimate(Ensemble(karate(), [Trial(config(**values))])).total

    base = total()
    assert base > 0
    for larger in ({"hidden": 16}, {"heads": 8}, {"time": 5.0}, {"encoder_mlp": True}, {"decoder_mlp": True}):
        assert total(**larger) > base, larger
    assert total(adjacency="original") < base
    assert total(reaction="F", method="rk4") > total(reaction="F")
    assert planner.free_memory("cpu") > 0


# ---------------------------------------------------------------------- networks
KINDS = [
    {},
    {"adjacency": "original", "method": "exact", "step": None},
    {"adjacency": "live", "encoder_mlp": True},
    {"reaction": "F", "alpha": "node", "decoder_mlp": True},
    {"reaction": "GRAND++"},
    {"reaction": "GRAFF", "adjacency": "original"},
]


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_a_network_is_the_member_at_its_best_epoch(values, tmp_path):
    data = karate()
    done = train(data, [Trial(config(**values), 1), Trial(config(**values), 2)], device="cpu")
    for k, split in enumerate((1, 2)):
        network = done.network(k)
        hits = network.logits(data.x, data.graph).argmax(-1).numpy() == data.y
        assert hits[data.masks.val[split]].mean() == pytest.approx(done.val_accuracy[k], abs=1e-6)
        assert hits[data.masks.test[split]].mean() == pytest.approx(done.test_accuracy[k], abs=1e-6)
    probabilities = network.probabilities(data.x, data.graph)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(34))
    network.save(tmp_path / "net")
    loaded = Network.load(tmp_path / "net")
    assert (loaded.config, loaded.features, loaded.classes) == (network.config, 34, 2)
    assert torch.equal(loaded.logits(data.x, data.graph), network.logits(data.x, data.graph))
    assert str(loaded.system) == str(network.system)
    for name, value in network.coefficients().items():
        assert torch.equal(loaded.coefficients()[name], value)


@pytest.mark.parametrize("values", KINDS[:4], ids=str)
def test_states_start_at_the_encoder_and_end_before_the_decoder(values):
    data = karate()
    own = config(time=1.3, **values)
    network = train(data, [Trial(own)], device="cpu", dtype=torch.float64).network(0)
    states = network.states(data.x, data.graph, [0.0, 0.5, 1.3])
    assert states.shape == (3, 34, 8)
    model = network.model(data.graph)
    x = torch.tensor(data.x.toarray(), dtype=torch.float64)
    start = x @ network.parameters["encoder_weight"][0] + network.parameters["encoder_bias"][0]
    if not own.model.encoder_mlp:
        torch.testing.assert_close(states[0], start)
    torch.testing.assert_close(
        model.decode(states[None, 2])[0], network.logits(data.x, data.graph), rtol=1e-6, atol=1e-8
    )
    assert not torch.allclose(states[0], states[1])
    for times in ([-0.1, 1.0], [0.0, 1.4], [1.0, 0.5]):
        with pytest.raises(InvalidArgument, match=r"expected rising times between 0 and 1\.3"):
            network.states(data.x, data.graph, times)


def test_coefficients_and_operators_are_shown_as_the_flow_uses_them():
    data = karate()
    network = train(data, [Trial(config(alpha="scalar", beta="channel"))], device="cpu").network(0)
    found = network.coefficients()
    assert {name: tuple(value.shape) for name, value in found.items()} == {"alpha": (), "beta": (8,)}
    assert float(found["alpha"]) == float(torch.sigmoid(network.parameters["coefficient_alpha"][0]))
    assert torch.equal(found["beta"], network.parameters["coefficient_beta"][0])
    operator = network.operator(data.x, data.graph)
    assert operator.num_edges == 156 + 34
    torch.testing.assert_close(operator.dense().sum(-1), torch.ones(34))
    assert len(operator.weights.unique()) > 100


def test_a_network_runs_on_another_graph_unless_it_has_numbers_per_node():
    data = karate()
    smaller = data.subset(np.arange(20))
    network = train(data, [Trial(config())], device="cpu").network(0)
    assert network.logits(smaller.x, smaller.graph).shape == (20, 2)
    for values in ({"alpha": "node"}, {"reaction": "GRAND++"}):
        network = train(data, [Trial(config(**values))], device="cpu").network(0)
        with pytest.raises(InvalidArgument, match="expected the graph of 34 nodes that this network was trained on"):
            network.logits(smaller.x, smaller.graph)


def test_features_that_do_not_fit_are_refused():
    data = karate()
    network = train(data, [Trial(config(epochs=1))], device="cpu").network(0)
    for x in (np.ones((34, 33)), np.ones((33, 34))):
        with pytest.raises(InvalidArgument, match=r"expected features \(34, 34\), one row per node"):
            network.logits(x, data.graph)
    assert torch.allclose(network.logits(data.x.toarray(), data.graph), network.logits(data.x, data.graph))


def test_files_that_hold_no_network_are_refused(tmp_path):
    network = train(karate(), [Trial(config(epochs=1))], device="cpu").network(0)
    with pytest.raises(FileError, match="expected a saved network in"):
        Network.load(tmp_path)
    head = tmp_path / "network.json"
    for text, match in (
        ("{", "not valid JSON"),
        ("[1, 2]", "of the format 'gread network 3'"),
        ('{"format": "gread network 1"}', "got the format 'gread network 1'"),
        ('{"format": "gread network 3"}', "was changed"),
    ):
        network.save(tmp_path)
        head.write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=match):
            Network.load(tmp_path)


def test_words_and_numbers_that_make_no_network_are_refused(tmp_path):
    """Bundles that verify, but were not written by `save`."""
    network = train(karate(), [Trial(config(epochs=1))], device="cpu").network(0)
    words = {"features": 34, "classes": 2, "model": asdict(network.config)}
    numbers = dict(network.parameters)
    save_bundle(tmp_path / "network.json", "gread network 3", words, numbers)
    assert torch.equal(Network.load(tmp_path).parameters["encoder_bias"], numbers["encoder_bias"])
    for changed, others in (
        ({"model": {"hiden": 3}}, {}),
        ({"model": 3}, {}),
        ({"classes": 3}, {}),
        ({"features": None}, {}),
        ({"features": 10**30}, {}),
        ({"model": words["model"] | {"hidden": 10**9}}, {}),
        ({"model": words["model"] | {"attention_dim": 4 * 10**9}}, {}),
        ({}, {"encoder_weight": numbers["encoder_weight"][:, :5]}),
        ({}, {"encoder_weight": numbers["encoder_weight"].int()}),
        ({}, {"decoder_bias": torch.zeros(1, 1)}),
        ({}, {"coefficient_gamma": torch.zeros(1)}),
    ):
        save_bundle(tmp_path / "network.json", "gread network 3", words | changed, numbers | others)
        with pytest.raises(FileError, match="does not describe"):
            Network.load(tmp_path)
    del numbers["decoder_bias"]
    save_bundle(tmp_path / "network.json", "gread network 3", words, numbers)
    with pytest.raises(FileError, match="decoder_bias"):
        Network.load(tmp_path)


def test_a_training_goes_on_in_the_batches_it_began_with(tmp_path):
    trials = make_trials(config(epochs=4), range(3))
    first = train(karate(), trials, device="cpu", members=1, checkpoint=tmp_path)
    assert json.loads((tmp_path / "batches.json").read_text()) == [[0], [1], [2]]
    again = train(karate(), trials, device="cpu", members=3, checkpoint=tmp_path)
    assert np.array_equal(first.history, again.history)
    (tmp_path / "batches.json").write_text("[[0, 1]]")
    for path in tmp_path.glob("batch-*"):
        path.unlink()
    train(karate(), trials, device="cpu", members=3, checkpoint=tmp_path)
    assert json.loads((tmp_path / "batches.json").read_text()) == [[0, 1, 2]]
