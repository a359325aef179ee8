"""Ensembles: every member is trained as if it were alone, by the protocol, through whatever happens to the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.datasets.masks import Masks
from gread.datasets.meta import Meta
from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm
from gread.models.flow import Flow
from gread.models.gread_model import GREAD
from gread.models.place import Place
from gread.models.place_operator import make_operator
from gread.models.problem import Problem, check
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import METRICS, Ensemble, MemberState
from rdgraph.errors import InvalidArgument, NotApplicable, RdgraphError

LOSS, TRAIN, VAL, TEST = range(len(METRICS))


def config(**values: object) -> Config:
    """Small and quick."""
    base = {"hidden": 8, "epochs": 12, "attention_dim": 8, "method": "euler", "step": 0.5}
    return Config().updated(base | values)


def run(data: NodeData | list[NodeData], trials: list[Trial], dtype: torch.dtype = torch.float32) -> Ensemble:
    ensemble = Ensemble(data, trials, dtype=dtype)
    ensemble.advance(ensemble.epochs)
    return ensemble


def same(one: Ensemble, member: int, other: Ensemble, position: int = 0, tolerance: float = 1e-5) -> None:
    """Whether a member has the curve and the outcome of another ensemble's."""
    left, right = one.outcome(), other.outcome()
    torch.testing.assert_close(
        left.history[:, member], right.history[:, position], rtol=tolerance, atol=tolerance, equal_nan=True
    )
    for name in ("best_epoch", "val_accuracy", "test_accuracy", "failed_at"):
        assert getattr(left, name)[member] == getattr(right, name)[position], name


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
def exact(**values: object) -> Config:
    return config(method="exact", step=None, adjacency="original", beta="scalar", beta_link="free", **values)


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


# ---------------------------------------------------------------------- members that fail
def logistic(**values: object) -> Config:
    return config(reaction="-alpha*L@H + beta*H*(1-H)", beta="scalar", time=6.0, step=1.0, **values)


@pytest.mark.parametrize(
    ("calm", "wild"),
    [
        (config(), {"learning_rate": 1e6}),
        (logistic(learning_rate=0.001), {"learning_rate": 20.0}),
        (exact(learning_rate=0.001), {"learning_rate": 1e6}),
    ],
    ids=["rate", "logistic", "exact"],
)
def test_a_member_that_diverges_is_marked_and_changes_no_bit_of_the_others(calm, wild):
    trials = [Trial(calm, 0), Trial(calm.updated(wild), 1), Trial(calm, 2)]
    mixed = run(karate(), trials)
    quiet = run(karate(), [trials[0], Trial(calm, 1), trials[2]])
    out, other = mixed.outcome(), quiet.outcome()
    assert [out.status(k) for k in (0, 2)] == ["ok", "ok"]
    failed = int(out.failed_at[1])
    assert 1 < failed < 12
    assert out.status(1) == f"diverged in epoch {failed}"
    assert bool(torch.isfinite(out.history[: failed - 1, 1]).all())
    assert not bool(torch.isfinite(out.history[failed - 1, 1, LOSS]))
    for k in (0, 2):
        assert torch.equal(out.history[:, k], other.history[:, k])
        for name in mixed.parameters:
            assert torch.equal(mixed.state[name][k], quiet.state[name][k])
    val = out.history[:, 1, VAL]
    best = int(out.best_epoch[1])
    assert 0 <= best < failed
    if best:
        assert float(out.val_accuracy[1]) == float(val[best - 1]) == float(val[: failed - 1].max())
        assert float(out.test_accuracy[1]) == float(out.history[best - 1, 1, TEST])
    else:  # the first update already diverged, and such an epoch is never the best
        assert float(out.val_accuracy[1]) == float(out.test_accuracy[1]) == 0.0


def test_accuracies_are_shares_of_the_nodes_of_each_mask():
    data, splits = karate(), (0, 4)
    ensemble = run(data, [Trial(config(), split) for split in splits])
    right = ensemble.logits().argmax(-1).numpy() == data.y
    parts = (data.masks.train, data.masks.val, data.masks.test)
    expected = [[hits[mask[split]].mean() for mask in parts] for hits, split in zip(right, splits, strict=True)]
    np.testing.assert_allclose(ensemble._scores()[0].numpy(), expected, rtol=1e-6)


def test_numbers_that_are_none_hit_nothing():
    """A member whose update diverged must not count as predicting class 0."""
    ensemble = Ensemble(karate(), [Trial(config()), Trial(config(), 1)])
    ensemble.parameters["decoder_bias"].data[1] = torch.nan
    scores, _, sound = ensemble._scores()
    assert scores[1].tolist() == [0.0, 0.0, 0.0]
    assert bool((scores[0] > 0).any())
    assert sound.tolist() == [True, False]


def test_a_failed_member_stands_still():
    ensemble = run(karate(), [Trial(config()), Trial(config(learning_rate=1e30))])
    assert ensemble.state["alive"].tolist() == [True, False]
    before = {name: p.detach().clone() for name, p in ensemble.parameters.items()}
    ensemble.epochs += 1
    ensemble.state["history"] = torch.cat([ensemble.state["history"], torch.zeros(1, 2, 4)])
    ensemble.advance(1)
    for name, p in ensemble.parameters.items():
        assert torch.equal(p[1].nan_to_num(), before[name][1].nan_to_num())
        assert not torch.equal(p[0], before[name][0])


# ---------------------------------------------------------------------- what can be trained on
def small(train: list[int], val: list[int], test: list[int], y: list[int]) -> NodeData:
    n = len(y)
    masks = Masks(*(np.isin(np.arange(n), part) for part in (train, val, test)))
    return NodeData(rd.generators.ring(n), np.eye(n), np.array(y), masks)


def test_splits_that_cannot_be_trained_on_are_refused():
    with pytest.raises(InvalidArgument, match=r"expected a split among 0..9 of karate, got 10"):
        check(karate(), 10)
    bare = replace(karate(), masks=Masks.none(34))
    with pytest.raises(InvalidArgument, match="make some with stratified_splits"):
        check(bare, 0)
    missing = small([0, 1], [2, 3], [4, 5], [0, 0, 1, 1, 1, 0])
    with pytest.raises(InvalidArgument, match="got none of class 1; make splits with stratified_splits"):
        check(missing, 0)
    with pytest.raises(InvalidArgument, match="got none of class 1"):
        Ensemble(missing, [Trial(config())])
    check(small([0, 1], [2, 3], [4, 5], [0, 1, 0, 1, 0, 2]), 0)
    check(small([0, 1], [2, 3], [4, 5], [0, 1, 0, 2, 0, 2]), 0)


def test_parts_of_a_split_may_be_empty():
    """Accuracies on no node are nan; without validation nodes the last epoch is kept; the rest is as it was."""
    y = [0, 1, 0, 1, 0, 1]
    whole, untested, unvalidated = (
        Ensemble(small([0, 1], val, test, y), [Trial(config(epochs=7))])
        for val, test in (([2, 3], [4, 5]), ([2, 3], []), ([], []))
    )
    for ensemble in (whole, untested, unvalidated):
        ensemble.advance(7)
    outcomes = [ensemble.outcome() for ensemble in (whole, untested, unvalidated)]
    assert torch.equal(outcomes[0].history[..., :3], outcomes[1].history[..., :3])
    assert torch.equal(outcomes[0].history[..., :2], outcomes[2].history[..., :2])
    assert outcomes[1].history[..., 3].isnan().all()
    assert outcomes[2].history[..., 2:].isnan().all()
    assert torch.equal(outcomes[0].best_epoch, outcomes[1].best_epoch)
    assert [o.test_accuracy.isnan().item() for o in outcomes] == [False, True, True]
    assert outcomes[2].best_epoch.item() == 7
    unvalidated.use_best()
    assert all(torch.equal(unvalidated.state[n], unvalidated.state[f"best.{n}"]) for n in unvalidated.parameters)


def test_data_sets_for_members_have_to_be_alike_and_one_each():
    trials = [Trial(config(), seed=k) for k in range(2)]
    with pytest.raises(InvalidArgument, match=r"expected one data set or one for each of 2 trials, got 3"):
        Problem.make([csbm(k, n=20) for k in range(3)], trials)
    with pytest.raises(InvalidArgument, match="expected data sets with equal numbers of nodes and features"):
        Problem.make([csbm(0, n=20), csbm(1, n=22)], trials)


def test_targets_and_shares_are_weights():
    problem = Problem.make(karate(), [Trial(config(), split) for split in (0, 5)], dtype=torch.float64)
    ones: Tensor = torch.ones(2, dtype=torch.float64)
    torch.testing.assert_close(problem.targets.sum((1, 2)), ones)
    torch.testing.assert_close(problem.masks.sum(-1), problem.sizes)
    chosen = problem.targets[1].nonzero()
    assert chosen[:, 0].tolist() == np.flatnonzero(karate().masks.train[5]).tolist()
    assert chosen[:, 1].tolist() == karate().y[karate().masks.train[5]].tolist()


def test_operators_are_what_the_model_asks_for():
    graph = karate().graph
    original = config(adjacency="original", normalisation="column", self_loops=0.5).model
    expected = graph.operator("column", self_loops=0.5).dense()
    torch.testing.assert_close(make_operator(Place.of(graph), original).dense(), expected)
    soft = make_operator(Place.of(graph), config(adjacency="soft", self_loops=0.5).gread)
    assert soft.num_edges == graph.num_edges + 34
    assert make_operator(Place.of(graph), config(adjacency="soft", self_loops=0.0).gread).num_edges == graph.num_edges


# ---------------------------------------------------------------------- how the epoch is chosen, and other optimisers
def test_the_least_validation_loss_chooses_the_epoch():
    """By hand, from the logits after every epoch."""
    data, trial = karate(), Trial(config(epochs=12, learning_rate=0.1, select="loss"), 3)
    ensemble, losses = Ensemble(data, [trial], dtype=torch.float64), []
    for _ in range(12):
        ensemble.advance(1)
        logits, nodes = ensemble.logits()[0], np.flatnonzero(data.masks.val[3])
        losses.append(float(torch.nn.functional.cross_entropy(logits[nodes], torch.tensor(data.y[nodes]))))
    assert int(ensemble.outcome().best_epoch[0]) == 1 + int(np.argmin(losses))
    assert float(ensemble.state["merit"][0]) == pytest.approx(-min(losses))


def test_patience_ends_a_training_as_if_it_were_alone():
    """A member that waits no longer keeps what it had, whatever the others do; the training ends with the last."""
    shape = {"epochs": 60, "patience": 4, "learning_rate": 0.2}
    trials = [Trial(config(**shape), split) for split in range(4)]
    together = Ensemble(karate(), trials, dtype=torch.float64)
    while not together.is_done:
        together.advance(1)
    found = together.outcome()
    lengths = (~found.history[..., 0].isnan()).sum(0)
    assert together.epoch == int(lengths.max()) < 60
    assert (lengths == found.best_epoch + 4).all()
    for k, trial in enumerate(trials):
        alone = Ensemble(karate(), [trial], dtype=torch.float64)
        while not alone.is_done:
            alone.advance(1)
        assert alone.epoch == int(lengths[k])
        assert int(alone.outcome().best_epoch[0]) == int(found.best_epoch[k])
        assert float(alone.outcome().test_accuracy[0]) == float(found.test_accuracy[k])
    together.advance(60)  # nobody looked
    assert torch.equal(together.outcome().epochs, lengths)


def test_a_loss_that_diverges_after_the_end_of_patience_is_none_of_the_training():
    """Where nobody looks a training runs on past its end, to epochs that do not count."""
    ensemble = Ensemble(karate(), [Trial(config(epochs=60, patience=4, learning_rate=0.2), 0)], dtype=torch.float64)
    while not ensemble.is_done:
        ensemble.advance(1)
    length = ensemble.epoch
    for parameter in ensemble.parameters.values():
        parameter.data.fill_(torch.nan)
    ensemble.advance(5)
    out = ensemble.outcome()
    assert (out.status(0), int(out.epochs[0])) == ("ok", length)


def test_epochs_of_a_training_that_diverges_end_there():
    wild = config(epochs=20, learning_rate=1e30)
    out = run(karate(), [Trial(wild, 0)]).outcome()
    assert int(out.epochs[0]) == int(out.failed_at[0]) < 20


@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_steps_are_those_of_torchs_optimisers(optimiser):
    values = {"dropout": 0.0, "input_dropout": 0.0, "epochs": 5, "weight_decay": 0.05, "learning_rate": 0.03}
    ensemble = Ensemble(karate(), [Trial(config(optimiser=optimiser, **values))], dtype=torch.float64)
    peer = Ensemble(karate(), [Trial(config(optimiser=optimiser, **values))], dtype=torch.float64)
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimiser]
    steps = make(peer.parameters.values(), lr=0.03, weight_decay=0.05)
    for _ in range(5):
        _, slopes = peer._slopes()
        for parameter, slope in zip(peer.parameters.values(), slopes, strict=True):
            parameter.grad = slope
        steps.step()
        peer.state["step"].add_(1)
    ensemble.advance(5)
    for name, parameter in peer.parameters.items():
        torch.testing.assert_close(ensemble.state[name], parameter.detach(), rtol=1e-9, atol=1e-11)


def test_parameters_without_decay_are_left_alone():
    """With a rate of the decay alone: what is decayed shrinks, the other stays."""
    trial = Trial(Config.of("gcn", epochs=3, hidden=4, optimiser="adamw", weight_decay=1.0, learning_rate=0.1))
    plain, spared = (Ensemble(karate(), [trial], dtype=torch.float64) for _ in range(2))
    spared.model.undecayed.add("layer_0_weight")
    for ensemble in (plain, spared):
        ensemble.advance(3)
    assert float(plain.state["layer_0_weight"].norm()) < 0.9 * float(spared.state["layer_0_weight"].norm())


# ---------------------------------------------------------------------- some of the members
@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, {"adjacency": "original", "method": "exact", "step": None, "time": 3.0}])
@pytest.mark.parametrize("keep_best", [True, False])
def test_a_part_of_an_ensemble_goes_on_as_in_the_whole(values: dict[str, object], keep_best: bool) -> None:
    trials = [Trial(config(epochs=60, **values), split, seed) for split in (0, 3, 5) for seed in (0, 1)]
    whole = Ensemble(karate(), trials, keep_best=keep_best)
    whole.advance(20)
    part = whole.subset([4, 1])
    assert part.trials == [trials[4], trials[1]]
    before = part.snapshot()
    whole.advance(20)
    for name, value in part.state.items():
        assert torch.equal(value.nan_to_num(), before[name].nan_to_num()), f"{name} is shared with the whole"
    part.advance(20)
    last = part.subset([1])
    for ensemble in (whole, part, last):
        ensemble.advance(60)
    for ensemble, places in ((part, {0: 4, 1: 1}), (last, {0: 1})):
        for place, member in places.items():
            same(whole, member, ensemble, place)
            for name in ensemble.parts:
                torch.testing.assert_close(ensemble.state[name][place], whole.state[name][member], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_part_with_data_of_its_own_goes_on_as_in_the_whole() -> None:
    datas = [csbm(k, n=40) for k in range(3)]
    trials = [Trial(config(epochs=40)) for _ in datas]
    whole = Ensemble(datas, trials)
    whole.advance(20)
    part = whole.subset([2, 0])
    whole.advance(20)
    part.advance(20)
    same(whole, 2, part, 0)
    same(whole, 0, part, 1)


@pytest.mark.slow
def test_states_of_several_ensembles_are_joined() -> None:
    trials = [Trial(config(epochs=40), split) for split in range(4)]
    halves = [Ensemble(karate(), trials[:2]), Ensemble(karate(), trials[2:])]
    for half in halves:
        half.advance(20)
    joined = Ensemble(karate(), [trials[3], trials[0]])
    joined.take_up(MemberState.joined([half.member_state(range(2)) for half in halves]).chosen([3, 0]))
    joined.advance(20)
    whole = run(karate(), trials)
    same(whole, 3, joined, 0)
    same(whole, 0, joined, 1)
    halves[0].advance(1)
    with pytest.raises(InvalidArgument, match="one number of epochs, got \\[20, 21\\]"):
        MemberState.joined([half.member_state([0]) for half in halves])
    with pytest.raises(InvalidArgument, match="take the same trials"):
        joined.take_up(halves[1].member_state([0]))


def test_a_state_in_a_chunk_that_may_be_done_again_is_refused() -> None:
    exact = config(adjacency="original", method="exact", step=None, time=60.0, epochs=40)
    ensemble = Ensemble(karate(), [Trial(exact)])
    assert ensemble.model.is_cut
    ensemble.advance(3)
    with pytest.raises(InvalidArgument, match="multiple of 20, got 3"):
        ensemble.subset([0])
    ensemble.advance(17)
    assert ensemble.subset([0]).model.degree == ensemble.model.degree


def test_members_with_short_polynomials_take_them_whole_once_the_long_ones_have_left() -> None:
    short, long = (
        config(epochs=40, method="rk4", step=0.1, time=0.3),
        config(epochs=40, method="rk4", step=0.1, time=4.0),
    )
    whole = Ensemble(karate(), [Trial(short), Trial(long)])
    whole.advance(20)
    part = whole.subset([0])
    assert whole.model.member_degrees[0] < part.model.whole, "the short one was cut beside the long one"
    assert not part.model.is_cut
    for ensemble in (whole, part):
        ensemble.advance(20)
    same(whole, 0, part, 0)


def test_a_part_keeps_the_terms_that_its_members_were_given() -> None:
    trials = [Trial(config(epochs=40, method="exact", time=time)) for time in (3.0, 6.0)]
    whole = Ensemble(karate(), trials)
    whole.advance(20)
    whole.model.lengthen(whole.problem.features, whole.rates, torch.ones(2))
    part = whole.subset([0])
    assert part.model.member_degrees[0] >= whole.model.member_degrees[0]
