"""Members of an ensemble that fail, are chosen, or go on elsewhere; what can be trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import rdgraph as rd
from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from gread.datasets.synthetic import csbm
from gread.models.gread_model import make_operator
from gread.models.place import Place
from gread.models.problem import Problem, check
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.ensemble import Ensemble, MemberState
from rdgraph.errors import InvalidArgument
from tests.gread.training.club_trainings import LOSS, TEST, VAL, config, exact, run, same


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
    with pytest.raises(InvalidArgument, match="got none of class 1; train on some of its nodes"):
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


@pytest.mark.slow
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
    joined.resume(MemberState.joined([half.member_state(range(2)) for half in halves]).chosen([3, 0]))
    joined.advance(20)
    whole = run(karate(), trials)
    same(whole, 3, joined, 0)
    same(whole, 0, joined, 1)
    halves[0].advance(1)
    with pytest.raises(InvalidArgument, match="one number of epochs, got 20, 21"):
        MemberState.joined([half.member_state([0]) for half in halves])
    with pytest.raises(InvalidArgument, match="take the same trials"):
        joined.resume(halves[1].member_state([0]))


def test_a_state_in_a_chunk_that_may_be_done_again_is_refused() -> None:
    exact = config(adjacency="original", method="exact", step=None, time=60.0, epochs=40)
    ensemble = Ensemble(karate(), [Trial(exact)])
    assert ensemble.model.is_cut
    ensemble.advance(3)
    with pytest.raises(InvalidArgument, match="multiple of 20, got 3"):
        ensemble.subset([0])
    ensemble.advance(17)
    assert ensemble.subset([0]).model.degree == ensemble.model.degree


@pytest.mark.slow
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
