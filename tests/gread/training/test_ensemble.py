"""Ensembles: every member is trained as if it were alone, by the protocol, through whatever happens to the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from gread.datasets.synthetic import csbm
from gread.models.flow import Flow
from gread.models.gread_model import GREAD
from gread.models.place import Place
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble
from rdgraph.errors import InvalidArgument, NotApplicable, RdgraphError
from tests.gread.training.club_trainings import LOSS, TEST, TRAIN, VAL, config, exact, run, same


# ---------------------------------------------------------------------- members and their batch
@pytest.mark.parametrize("adjacency", ["original", "soft"])
def test_a_member_alone_is_the_member_in_a_batch(adjacency):
    trials = [Trial(config(adjacency=adjacency), split, seed) for split in (0, 3) for seed in (0, 1)]
    together = run(karate(), trials)
    for k, trial in enumerate(trials):
        same(together, k, run(karate(), [trial]))


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    trials = [Trial(config(), 0, 0), Trial(config(), 0, 1), Trial(config(), 0, 0)]
    one, two = run(karate(), trials), run(karate(), trials)
    for name, value in one.state.items():
        assert torch.equal(value.nan_to_num(), two.state[name].nan_to_num()), name
    history = one.outcome().history
    assert torch.equal(history[:, 0], history[:, 2])
    assert not torch.allclose(history[:, 0, LOSS], history[:, 1, LOSS], rtol=1e-3)
    start = Ensemble(karate(), trials).parameters["encoder_weight"]
    assert torch.equal(start[0], start[2])
    assert not bool((start[0] == start[1]).any())


def test_members_may_differ_in_time_dropout_rate_and_decay():
    own = [
        {"time": 1.5, "dropout": 0.0, "learning_rate": 0.01},
        {"time": 1.2, "input_dropout": 0.9, "weight_decay": 0.1},
        {"time": 1.05, "dropout": 0.6, "learning_rate": 0.1, "weight_decay": 0.0},
    ]
    trials = [Trial(config(time=1.5).updated(values), k, k) for k, values in enumerate(own)]
    together = run(karate(), trials)
    assert together.members == 3
    for k, trial in enumerate(trials):
        same(together, k, run(karate(), [trial]))


@pytest.mark.parametrize("adjacency", ["original", "soft", "live"])
@pytest.mark.parametrize("loops", [0.0, 1.0])
def test_members_on_graphs_of_their_own(adjacency, loops):
    datas = [csbm(seed, n=30, homophily=0.5, degree=2) for seed in range(3)]
    assert any(data.graph.isolated.size for data in datas)
    trials = [Trial(config(adjacency=adjacency, self_loops=loops, epochs=6), split=k, seed=k) for k in range(3)]
    together = run(datas, trials)
    for k in range(3):
        same(together, k, run(datas[k], [trials[k]]))
    losses = together.outcome().history[-1, :, LOSS]
    assert len(set(losses.tolist())) == 3


def test_trials_of_different_shapes_and_none_are_refused():
    with pytest.raises(InvalidArgument, match="expected trials of one shape"):
        Ensemble(karate(), [Trial(config()), Trial(config(hidden=4))])
    with pytest.raises(InvalidArgument, match="expected at least one trial"):
        Ensemble(karate(), [])


# ---------------------------------------------------------------------- the protocol
def test_the_best_epoch_is_the_first_with_the_highest_validation_accuracy():
    trials = [Trial(config(epochs=30, learning_rate=0.05), split) for split in range(6)]
    out = run(karate(), trials).outcome()
    assert out.history.shape == (30, 6, 4)
    val, test = out.history[..., VAL].numpy(), out.history[..., TEST].numpy()
    for k in range(6):
        first = int(np.flatnonzero(val[:, k] == val[:, k].max())[0])
        assert int(out.best_epoch[k]) == first + 1
        assert float(out.val_accuracy[k]) == val[first, k]
        assert float(out.test_accuracy[k]) == test[first, k]
        assert out.status(k) == "ok"
    assert any(np.count_nonzero(val[:, k] == val[:, k].max()) > 1 for k in range(6))


def test_the_best_parameters_are_those_of_the_best_epoch():
    ensemble = run(karate(), [Trial(config(epochs=25, learning_rate=0.1), split) for split in range(3)])
    ensemble.use_best()
    (scores, _, _), out = ensemble._scores(), ensemble.outcome()
    torch.testing.assert_close(scores[:, 1], out.val_accuracy)
    torch.testing.assert_close(scores[:, 2], out.test_accuracy)
    bare = Ensemble(karate(), [Trial(config())], keep_best=False)
    with pytest.raises(InvalidArgument, match="keep_best=False"):
        bare.use_best()


def test_accuracies_count_nodes():
    """By hand from the logits of every epoch."""
    data, trial = karate(), Trial(config(), 2)
    ensemble = Ensemble(data, [trial])
    for epoch in range(3):
        ensemble.advance(1)
        chosen = ensemble.logits()[0].argmax(-1).numpy()
        for column, part in ((TRAIN, "train"), (VAL, "val"), (TEST, "test")):
            mask = getattr(data.masks, part)[2]
            expected = (chosen == data.y)[mask].mean()
            assert float(ensemble.outcome().history[epoch, 0, column]) == pytest.approx(expected, abs=1e-6)


def test_the_loss_is_the_mean_cross_entropy_of_the_training_nodes():
    data, trial = karate(), Trial(config(dropout=0.0, input_dropout=0.0), 1)
    ensemble = Ensemble(data, [trial], dtype=torch.float64)
    mask = torch.tensor(data.masks.train[1])
    expected = torch.nn.functional.cross_entropy(ensemble.logits()[0][mask], torch.tensor(data.y)[mask])
    torch.testing.assert_close(ensemble._slopes()[0][0], expected)


def test_labels_of_test_nodes_touch_nothing_but_the_test_accuracy():
    data = karate()
    y = data.y.copy()
    y[data.masks.test[0]] = 1 - y[data.masks.test[0]]
    changed = replace(data, y=y)
    one, two = (run(d, [Trial(config(epochs=25))]) for d in (data, changed))
    a, b = one.outcome(), two.outcome()
    assert torch.equal(a.best_epoch, b.best_epoch)
    assert torch.equal(a.history[..., :TEST], b.history[..., :TEST])
    torch.testing.assert_close(a.history[..., TEST], 1 - b.history[..., TEST])
    for name in one.parameters:
        assert torch.equal(one.state[f"best.{name}"], two.state[f"best.{name}"])


def test_an_epoch_without_a_hit_can_be_the_best_so_far():
    """Validation accuracy 0 throughout: the first epoch counts, as for any other constant."""
    data = karate()
    y = data.y.copy()
    y[data.masks.val[0]] = 2
    data = replace(data, y=y, meta=Meta("odd"))
    train, val, test = (m.copy() for m in (data.masks.train[:1], data.masks.val[:1], data.masks.test[:1]))
    node = int(np.flatnonzero(train[0])[0])
    y = data.y.copy()
    y[node] = 2
    ensemble = run(replace(data, y=y, masks=Masks(train, val, test)), [Trial(config(epochs=4))])
    out = ensemble.outcome()
    assert float(out.history[..., VAL].abs().max()) == 0
    assert out.best_epoch.tolist() == [1]
    torch.testing.assert_close(out.test_accuracy[0], out.history[0, 0, TEST])


# ---------------------------------------------------------------------- gradients
@pytest.mark.parametrize(
    "values",
    [
        {"reaction": "BS", "adjacency": "original"},
        {"reaction": "ST", "adjacency": "soft", "method": "rk4"},
        {"reaction": "F", "adjacency": "soft", "encoder_mlp": True, "decoder_mlp": True, "relu": False},
        {"reaction": "FB*", "adjacency": "live", "alpha": "channel"},
        {"reaction": "BS", "adjacency": "soft", "method": "exact", "heads": 2},
    ],
    ids=str,
)
def test_gradients_of_the_whole_network_are_numerical_derivatives(values):
    graph = rd.Graph.from_dense(rd.generators.erdos_renyi(6, 0.6, 1).adjacency.toarray())
    x = np.random.default_rng(0).standard_normal((6, 3))
    masks = Masks([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1])
    data = NodeData(graph, x, np.array([0, 1, 2, 0, 1, 2]), masks)
    own = {"hidden": 4, "attention_dim": 4, "dropout": 0.0, "input_dropout": 0.0, "time": 1.2}
    ensemble = Ensemble(data, [Trial(config(**{**own, **values}), 0, seed) for seed in (0, 1)], dtype=torch.float64)
    random = torch.Generator().manual_seed(0)
    for p in ensemble.parameters.values():
        p.data.add_(0.3 * torch.randn(p.shape, generator=random, dtype=torch.float64))
    gradients = dict(zip(ensemble.parameters, ensemble._slopes()[1], strict=True))
    for name, p in ensemble.parameters.items():
        found = gradients[name]
        assert found is not None, name
        places = torch.randperm(p[0].numel(), generator=random)[:2]
        for place in places.tolist():
            entries = p.data.view(2, -1)
            old, losses = entries[:, place].clone(), []
            for shift in (1e-5, -1e-5):
                entries[:, place] = old + shift
                losses.append(ensemble._slopes()[0])
            entries[:, place] = old
            slope = (losses[0] - losses[1]) / 2e-5
            torch.testing.assert_close(found.reshape(2, -1)[:, place], slope, rtol=2e-5, atol=2e-8)


def test_members_do_not_touch_each_other():
    ensemble = Ensemble(karate(), [Trial(config(), 0, seed) for seed in (0, 1)])
    loss, gradients = ensemble._slopes()
    for p in ensemble.parameters.values():
        p.data[1] += 0.5
    other, slopes = ensemble._slopes()
    assert float(loss[0]) == float(other[0])
    assert float(loss[1]) != float(other[1])
    for one, two in zip(gradients, slopes, strict=True):
        assert torch.equal(one[0], two[0])


# ---------------------------------------------------------------------- every kind of network
@pytest.mark.parametrize(
    "values",
    [
        {"adjacency": "live"},
        {"adjacency": "soft", "method": "dopri5", "step": None},
        {"reaction": "Z", "method": "strang", "adjacency": "original"},
        {"alpha": "node", "beta": "node"},
        {"reaction": "-alpha*L@H + gamma*tanh(H)"},
        {"reaction": "GRAND++"},
        {"reaction": "GRAFF"},
        {"adjacency": "original", "normalisation": "none", "step": 0.05},
        {"adjacency": "original", "normalisation": "none", "method": "exact", "step": None, "reaction": "diffusion"},
        {"alpha_link": "free", "beta_link": "sigmoid", "alpha": "channel"},
        {"encoder_mlp": True, "decoder_mlp": True, "relu": False},
        {"method": "exact", "step": None, "time": 0.0},
    ],
    ids=str,
)
def test_every_kind_of_network_learns(values):
    trials = [Trial(config(epochs=10, dropout=0.0, input_dropout=0.0, learning_rate=0.03, **values), s) for s in (0, 1)]
    out = run(karate(), trials).outcome()
    losses = out.history[..., LOSS]
    assert bool(torch.isfinite(losses).all())
    assert bool((losses[-1] < 0.95 * losses[0]).all()), losses[[0, -1]]
    assert [out.status(k) for k in range(2)] == ["ok", "ok"]


def test_flows_have_the_cheapest_form_that_is_right():
    op = rd.generators.path(5).operator("row")
    linear, other = (rd.lower(name, op, {"alpha": 1.0, "beta": 1.0}) for name in ("BS", "F"))
    bare = rd.lower("BS", rd.generators.path(5).operator("none"), {"alpha": 1.0, "beta": 1.0})
    found = [
        Flow.choose(linear, "euler", 1.5, 0.5, False),
        Flow.choose(linear, "exact", 1.5, None, False),
        Flow.choose(linear, "rk4", 1.5, 0.5, True),
        Flow.choose(other, "rk4", 1.5, 0.5, False),
        Flow.choose(other, "dopri5", 1.5, None, False),
        Flow.choose(bare, "exact", 1.5, None, False),
    ]
    assert [f.form for f in found] == ["polynomial", "polynomial", "steps", "steps", "solve", "solve"]
    assert [f.is_capturable for f in found] == [True, True, True, True, False, False]
    H, time = torch.ones(5, 2), torch.tensor(1.5).double()
    assert [f.degree(linear, H, time) for f in (found[0], found[3])] == [6, 0]
    with pytest.raises(NotApplicable, match="expected a method with steps for attention that follows the state"):
        Flow.choose(linear, "exact", 1.5, None, True)


@pytest.mark.parametrize("values", [{"method": "adams"}, {"method": "euler", "step": None}, {"reaction": "-alpha*L*H"}])
def test_networks_that_cannot_be_are_refused(values):
    with pytest.raises(RdgraphError, match="expected"):
        Ensemble(karate(), [Trial(config(**values))])


def test_trusted_nodes_are_the_training_nodes():
    ensemble = Ensemble(karate(), [Trial(config(reaction="GRAND++"), 4)])
    assert ensemble.model.coefficients()["M"].tolist() == karate().masks.train[4:5].astype(float).tolist()
    model = GREAD(
        config(reaction="GRAND++").gread, Place.of(karate().graph), features=34, classes=2, seeds=[0]
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match="expected trusted nodes"):
        model.coefficients()


# ---------------------------------------------------------------------- polynomials that have to grow
@pytest.mark.parametrize("time", [1.0, 6.0])
def test_a_polynomial_grows_with_its_coefficients(time):
    """beta is driven up by a large rate; at the end the states are still those of the exact flow."""
    ensemble = Ensemble(karate(), [Trial(exact(time=time, learning_rate=0.2, epochs=25))], dtype=torch.float64)
    degree = ensemble.model.degree
    assert degree < ensemble.model.whole
    ensemble.parameters["coefficient_beta"].data.fill_(4.0)
    ensemble.advance(25)
    assert ensemble.model.degree > degree
    assert ensemble.epoch == 25
    with torch.no_grad():
        whole = ensemble.model(ensemble.problem.features)
    error = (ensemble.logits() - whole).abs().max() / whole.abs().max()
    assert float(error) < 1e-5


@pytest.mark.parametrize("adjacency", ["original", "soft"])
def test_a_start_at_which_nothing_moves_has_the_polynomial_of_its_neighbours(adjacency):
    """At alpha = beta = 1/2 the state stays at H(0), but gradients need the terms from the first epoch on."""
    shape = {
        "reaction": "-alpha*L@H + beta*L@H0", "beta": "scalar", "method": "exact", "time": 0.7, "adjacency": adjacency,
    }  # fmt: skip
    found, longer = (Ensemble(karate(), [Trial(config(**shape))], dtype=torch.float64) for _ in range(2))
    assert found.model.degree >= 8
    longer.model.degree = 30
    for ensemble in (found, longer):
        ensemble.advance(4)
    torch.testing.assert_close(found.outcome().history, longer.outcome().history, rtol=1e-9, atol=1e-9)


def test_a_chunk_is_judged_as_a_whole_unless_it_is_wanted_at_once():
    """Who looks about once a second looks at other epochs on other machines; the terms that are added are the same."""
    ensemble = Ensemble(karate(), [Trial(exact(time=2.0, epochs=60))])
    degree = ensemble.model.degree
    for epochs, at_once, left in ((3, False, 3), (4, True, 0), (20, False, 0), (20, False, 20)):
        ensemble.start(epochs)
        if left < 20:
            ensemble.state["tail"].fill_(1.0)
        ensemble.settle(at_once=at_once)
        assert ensemble.epoch == left
        assert (ensemble.model.degree > degree) == (left == 0)
        degree = ensemble.model.degree


def test_a_chunk_that_is_done_again_leaves_no_trace():
    """With the final degree from the start, the same curve."""
    trial = Trial(exact(time=2.0, learning_rate=0.2, epochs=20))
    grown, long = (Ensemble(karate(), [trial], dtype=torch.float64) for _ in range(2))
    for ensemble in (grown, long):
        ensemble.parameters["coefficient_beta"].data.fill_(4.0)
    grown.advance(20)
    assert grown.model.degree > long.model.degree
    long.model.degree = grown.model.degree
    long.advance(20)
    assert torch.equal(grown.outcome().history, long.outcome().history)
