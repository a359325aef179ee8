"""Training as a whole: batches, progress, results, checkpoints that survive a kill, networks that can be saved."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gread import planner
from gread.config import Config
from gread.datasets.embedded import karate
from gread.datasets.synthetic import csbm
from gread.ensemble import METRICS, Ensemble
from gread.network import Network
from gread.planner import MOST_ON_CPU, Need, check_fit, estimate, make_batches
from gread.train import Progress, Trained, choose_device, train
from gread.trials import Trial, make_trials
from rdgraph.errors import NotApplicable


def config(**values: object) -> Config:
    base = {"hidden": 8, "epochs": 6, "attention_dim": 8, "method": "euler", "step": 0.5}
    return Config().updated(base | values)


def equal(one: Trained, two: Trained) -> None:
    """The same bits in all results."""
    for name in ("best_epoch", "val_accuracy", "test_accuracy", "history"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name
    assert one.status == two.status
    assert one.parameters is not None
    assert two.parameters is not None
    for mine, other in zip(one.parameters, two.parameters, strict=True):
        assert mine.keys() == other.keys()
        assert all(torch.equal(mine[name], other[name]) for name in mine)


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
    with pytest.raises(NotApplicable, match="expected one data set or one for each of 3 trials, got 2"):
        train(datas[:2], trials, device="cpu")


def test_progress_counts_the_epochs_of_all_batches():
    heard: list[Progress] = []
    trials = [*make_trials(config(epochs=25), range(3)), Trial(config(hidden=4))]
    done = train(karate(), trials, device="cpu", members=2, progress=heard.append)
    assert [h.epoch for h in heard] == [20, 25, 45, 50, 56]
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
    with pytest.raises(NotApplicable, match="expected at least one trial, got none"):
        train(karate(), [], device="cpu")
    with pytest.raises(NotApplicable, match=r"expected a split among 0\.\.9"):
        train(karate(), [Trial(config(), split=10)], device="cpu")
    for members in (0, -1):
        with pytest.raises(NotApplicable, match="expected batches of at least one member"):
            train(karate(), [Trial(config())], device="cpu", members=members)
    bare = train(karate(), [Trial(config(epochs=1))], device="cpu", keep_best=False)
    with pytest.raises(NotApplicable, match="keep_best=False"):
        bare.network(0)


def test_the_device_is_chosen():
    assert choose_device() == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cuda:1") == "cuda:1"


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
    with pytest.raises(NotApplicable, match=r"at most 80 members.* of cuda, got 81; pass members=80"):
        check_fit(need, "cuda", 81)
    monkeypatch.setattr(planner, "free_memory", lambda device: 1200)
    with pytest.raises(NotApplicable, match=r"for one member, got .* GiB free on cpu; lower hidden"):
        check_fit(need, "cpu", None)


def test_too_many_members_are_refused_before_training(monkeypatch):
    trials = make_trials(config(), range(4))
    need = estimate(Ensemble(karate(), trials[:1])).total
    monkeypatch.setattr(planner, "free_memory", lambda device: int(2.6 * need / 0.8))
    with pytest.raises(NotApplicable, match="at most 2 members"):
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


# ---------------------------------------------------------------------- checkpoints
SCRIPT = """
import sys
from pathlib import Path
from gread.config import Config
from gread.datasets.embedded import karate
from gread.train import train
from gread.trials import make_trials

text, folder = sys.argv[1:]
trials = make_trials(Config.from_toml(text), range(3))
train(karate(), trials, device="cpu", members=2, checkpoint=Path(folder), every=0)
"""


def killed(text: str, folder: Path) -> None:
    """Train in another process and kill it in the midst of the second batch."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, text, str(folder)])
    try:
        deadline = time.monotonic() + 60
        while not (folder / "batch-1.safetensors").exists():
            assert process.poll() is None, "the training ended before it could be killed"
            assert time.monotonic() < deadline, "no checkpoint within a minute"
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    assert code == -signal.SIGKILL


def test_a_killed_training_goes_on_to_the_same_bits(tmp_path):
    """The second batch, of one member, is cut off; the first one is done and is not trained again."""
    own = config(epochs=80, learning_rate=0.05)
    trials = make_trials(own, range(3))
    killed(own.toml(), tmp_path)
    halfway = int(load_file(tmp_path / "batch-1.safetensors")["step"])
    assert 0 < halfway < 80
    (tmp_path / "batch-1.77.part").write_bytes(b"what a kill left behind")
    heard: list[Progress] = []
    resumed = train(karate(), trials, device="cpu", members=2, checkpoint=tmp_path, every=1e9, progress=heard.append)
    assert heard[0].epoch == 80 + halfway + 20
    assert int(load_file(tmp_path / "batch-1.safetensors")["step"]) == 80
    equal(resumed, train(karate(), trials, device="cpu", members=2))
    again = train(karate(), trials, device="cpu", members=2, checkpoint=tmp_path)
    equal(again, resumed)


def test_resuming_at_any_epoch_gives_the_same_bits(tmp_path):
    """Nonlinear, with dropout: moments of Adam, random numbers and the book of the best epoch all go on."""
    from gread.checkpoint import load_checkpoint, save_checkpoint

    trials = make_trials(config(reaction="F", epochs=9, learning_rate=0.1), range(2))
    whole = Ensemble(karate(), trials)
    whole.advance(9)
    for stop in (1, 5, 9):
        first, second = Ensemble(karate(), trials), Ensemble(karate(), trials)
        first.advance(stop)
        save_checkpoint(tmp_path / f"{stop}.safetensors", first, "mark")
        assert load_checkpoint(tmp_path / f"{stop}.safetensors", second, "mark")
        assert second.epoch == stop
        second.advance(9 - stop)
        for name, value in whole.state.items():
            assert torch.equal(second.state[name].nan_to_num(), value.nan_to_num()), name
    assert not load_checkpoint(tmp_path / "none.safetensors", second, "mark")


def test_a_resumed_polynomial_keeps_its_length(tmp_path):
    from gread.checkpoint import load_checkpoint, save_checkpoint

    trials = [Trial(config(method="exact", step=None, adjacency="original", epochs=3))]
    first, second = Ensemble(karate(), trials), Ensemble(karate(), trials)
    first.parameters["coefficient_beta"].data.fill_(6.0)
    first.advance(2)
    assert first.degree > second.degree
    save_checkpoint(tmp_path / "long.safetensors", first, "mark")
    load_checkpoint(tmp_path / "long.safetensors", second, "mark")
    assert second.degree == first.degree
    for ensemble in (first, second):
        ensemble.advance(1)
    assert torch.equal(first.outcome().history, second.outcome().history)


def test_checkpoints_of_something_else_are_refused(tmp_path):
    trials = make_trials(config(), range(2))
    data = karate()
    train(data, trials, device="cpu", checkpoint=tmp_path)
    other_x = data.x.copy()
    other_x.data[3] = 2.0
    others = [
        (data, make_trials(config(), range(2), [1]), {}),
        (data, make_trials(config(), [1, 0]), {}),
        (data, make_trials(config(weight_decay=0.0), range(2)), {}),
        (data, trials, {"keep_best": False}),
        (data, trials, {"dtype": torch.float64}),
        (replace(data, x=other_x), trials, {}),
        (replace(data, y=1 - data.y), trials, {}),
        (data.stratified(10, seed=5), trials, {}),
        (data.subset(np.arange(33)), trials, {}),
    ]
    for its_data, its_trials, options in others:
        with pytest.raises(NotApplicable, match="got one of another training; remove it, or choose another folder"):
            train(its_data, its_trials, device="cpu", checkpoint=tmp_path, **options)


def test_sparse_features_are_told_apart_by_their_rows(tmp_path):
    """The same entries in the same columns, but in other rows."""
    from gread.checkpoint import fingerprint

    data = karate()
    moved = data.x.copy()
    moved.indptr[5] += 1
    assert fingerprint([data], []) != fingerprint([replace(data, x=moved)], [])


@pytest.mark.parametrize("junk", ["truncated", "text", "empty"])
def test_a_broken_checkpoint_is_refused(tmp_path, junk):
    trials = make_trials(config(epochs=2), range(1))
    train(karate(), trials, device="cpu", checkpoint=tmp_path)
    path = tmp_path / "batch-0.safetensors"
    whole = path.read_bytes()
    path.write_bytes({"truncated": whole[: len(whole) // 2], "text": b"hello" * 100, "empty": b""}[junk])
    with pytest.raises(NotApplicable, match=r"expected a checkpoint in .*, got a file that is none.*remove it"):
        train(karate(), trials, device="cpu", checkpoint=tmp_path)


def test_a_finished_training_leaves_one_file_per_batch(tmp_path):
    train(karate(), make_trials(config(), range(3)), device="cpu", members=2, checkpoint=tmp_path / "deep" / "er")
    assert sorted(p.name for p in (tmp_path / "deep" / "er").iterdir()) == [
        "batch-0.safetensors",
        "batch-1.safetensors",
        "batches.json",
    ]


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
        with pytest.raises(NotApplicable, match=r"expected rising times between 0 and 1\.3"):
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
        with pytest.raises(NotApplicable, match="expected the graph of 34 nodes that this network was trained on"):
            network.logits(smaller.x, smaller.graph)


def test_features_that_do_not_fit_are_refused():
    data = karate()
    network = train(data, [Trial(config(epochs=1))], device="cpu").network(0)
    for x in (np.ones((34, 33)), np.ones((33, 34))):
        with pytest.raises(NotApplicable, match=r"expected features \(34, 34\), one row per node"):
            network.logits(x, data.graph)
    assert torch.allclose(network.logits(data.x.toarray(), data.graph), network.logits(data.x, data.graph))


def test_files_that_hold_no_network_are_refused(tmp_path):
    network = train(karate(), [Trial(config(epochs=1))], device="cpu").network(0)
    with pytest.raises(NotApplicable, match="expected a saved network in"):
        Network.load(tmp_path)
    head = tmp_path / "network.json"
    for text, match in (
        ("{", "expected a saved network"),
        ("[1, 2]", "of the format 'gread network 1'"),
        ('{"format": "other"}', "of the format 'gread network 1'"),
        ('{"format": "gread network 1"}', "expected the files of one saved network"),
        ('{"format": "gread network 1", "model": {"hiden": 3}, "features": 1, "classes": 2}', "hiden"),
        ('{"format": "gread network 1", "model": 3, "features": 1, "classes": 2}', "expected the files"),
    ):
        network.save(tmp_path)
        head.write_text(text, encoding="utf-8")
        with pytest.raises(NotApplicable, match=match):
            Network.load(tmp_path)
    network.save(tmp_path)
    known = json.loads(head.read_text(encoding="utf-8"))
    head.write_text(json.dumps(known | {"classes": 3}), encoding="utf-8")
    with pytest.raises(NotApplicable, match="expected the files of one saved network"):
        Network.load(tmp_path)
    network.save(tmp_path)
    weights = tmp_path / "network.safetensors"
    save_file({"some": torch.zeros(1)}, weights)
    with pytest.raises(NotApplicable, match="expected the files of one saved network"):
        Network.load(tmp_path)
    weights.write_bytes(b"junk")
    with pytest.raises(NotApplicable, match="expected the files of one saved network"):
        Network.load(tmp_path)


def test_a_training_goes_on_in_the_batches_it_began_with(tmp_path):
    trials = make_trials(config(epochs=4), range(3))
    first = train(karate(), trials, device="cpu", members=1, checkpoint=tmp_path)
    assert json.loads((tmp_path / "batches.json").read_text()) == [[0], [1], [2]]
    again = train(karate(), trials, device="cpu", members=3, checkpoint=tmp_path)
    assert np.array_equal(first.history, again.history)
    (tmp_path / "batches.json").write_text("[[0, 1]]")
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    train(karate(), trials, device="cpu", members=3, checkpoint=tmp_path)
    assert json.loads((tmp_path / "batches.json").read_text()) == [[0, 1, 2]]
