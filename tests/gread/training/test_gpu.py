"""Training on a GPU: captured epochs, the curves of the CPU, the same dropped entries, checkpoints."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from tests.equations import random_networks
from tests.equations import random_numbers as random

pytestmark = pytest.mark.gpu


def trained(device: str, use_graph: bool | None = None, dtype: torch.dtype = torch.float32, **values: object):
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    base = {"hidden": 8, "epochs": 15, "attention_dim": 8, "method": "euler", "step": 0.5}
    trials = [Trial(Config().updated(base | values), split, seed) for split in (0, 3) for seed in (0, 1)]
    ensemble = Ensemble(karate(), trials, device=device, dtype=dtype, use_graph=use_graph)
    ensemble.advance(15)
    return ensemble


def test_a_chunk_saved_in_its_midst_goes_on_to_the_same_bits(tmp_path):
    """Polynomials that grow, captured graphs, a checkpoint within a chunk: the same as in one go."""
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.checkpoint import load_checkpoint, save_checkpoint
    from gread.training.ensemble import Ensemble

    values = {"hidden": 8, "epochs": 46, "method": "exact", "step": None, "adjacency": "original", "beta": "scalar",
              "beta_link": "free", "time": 6.0, "learning_rate": 0.2}  # fmt: skip
    trials = [Trial(Config().updated(values))]

    def fresh() -> Ensemble:
        ensemble = Ensemble(karate(), trials, device="cuda")
        ensemble.parameters["coefficient_beta"].data.fill_(4.0)
        return ensemble

    whole, cut = fresh(), fresh()
    whole.advance(46)
    for count in (1, 6, 15, 3, 21):
        cut.advance(count)
        save_checkpoint(tmp_path / "c.json", cut, "mark")
        cut = fresh()
        assert load_checkpoint(tmp_path / "c.json", cut, "mark")
    for name, value in whole.state.items():
        assert torch.equal(cut.state[name].nan_to_num(), value.nan_to_num()), name


def test_the_area_under_the_curve_is_captured():
    """An epoch that is chosen by ROC-AUC asks nothing of the host, and has the values of the CPU."""
    from dataclasses import replace

    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import make_trials
    from gread.training.ensemble import Ensemble

    data = karate()
    data = replace(data, meta=replace(data.meta, metric="roc_auc"))
    trials = make_trials(Config.of("gcn", hidden=8, epochs=15, dropout=0.0, input_dropout=0.0), range(4))
    found = []
    for device in ("cpu", "cuda"):
        ensemble = Ensemble(data, trials, device=device, dtype=torch.float64)
        ensemble.advance(15)
        found.append(ensemble.outcome().history)
    assert ensemble.use_graph
    torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=1e-6)


NETWORKS = [
    {"adjacency": "original"},
    {"adjacency": "soft"},
    {"adjacency": "soft", "method": "exact", "step": None},
    {"adjacency": "live", "reaction": "ST"},
    {"reaction": "F", "encoder_mlp": True, "decoder_mlp": True},
    {"adjacency": "original", "method": "exact", "step": None, "time": 6.0},
    {"reaction": "u' = -Du*L@u + beta*(A@u - A@A@u) - gamma*v; v' = -Dv*L@v + delta*(u - v) + tanh(u)", "readout": "u"},
    {"reaction": "u' = -Du*L@u + tanh(u*v); v' = -Dv*L@v - v + u0", "adjacency": "original", "method": "rk4"},
    {"reaction": "H'' = -gamma*H - alpha*H' + tanh(A@H@W)", "velocity": "encoded", "encoder_mlp": True},
    {"reaction": "H'' = -gamma*cos(t)*L@H - alpha*H'", "adjacency": "live", "method": "rk4"},
]


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_a_captured_epoch_is_the_eager_one_to_the_bit(values):
    captured, eager = trained("cuda", True, **values), trained("cuda", False, **values)
    assert captured._replay is not None
    assert eager._replay is None
    for name, value in captured.state.items():
        assert torch.equal(value, eager.state[name]), name


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_training_on_a_gpu_follows_the_cpu(values):
    """The same initial parameters and the same dropped entries, so the same curves up to rounding."""
    found = [trained(device, **values).outcome().history for device in ("cpu", "cuda")]
    torch.testing.assert_close(found[0][:5, :, 0], found[1][:5, :, 0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("values", NETWORKS[:2], ids=str)
def test_training_in_double_precision_gives_the_curves_of_the_cpu(values):
    found = [trained(device, dtype=torch.float64, **values).outcome() for device in ("cpu", "cuda")]
    torch.testing.assert_close(found[0].history, found[1].history, rtol=1e-8, atol=1e-8)
    assert torch.equal(found[0].best_epoch, found[1].best_epoch)


#: How many random networks are trained; RANDOM_NETWORKS=12 is a quick look.
RANDOM_NETWORKS = int(os.environ.get("RANDOM_NETWORKS", "100"))


@pytest.mark.parametrize("number", range(RANDOM_NETWORKS))
def test_random_networks_train_on_a_gpu_as_on_the_cpu(number):
    """The same flow, the same degree and the same losses; losses that diverge do so on both devices.

    Mostly in double precision, where rounding has no say in Adam's first steps, which divide gradients by their size.
    """
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    config = Config().updated({"epochs": 5, **random_networks(RANDOM_NETWORKS, 20)[number]})
    dtype, rtol = (torch.float32, 2e-3) if number % 4 == 3 else (torch.float64, 1e-6)
    runs = []
    for device in ("cpu", "cuda"):
        runs.append(Ensemble(karate(), [Trial(config, split) for split in (0, 3)], device=device, dtype=dtype))
        runs[-1].advance(5)
    assert runs[0].model.chosen_flow == runs[1].model.chosen_flow
    assert runs[0].model.degree == runs[1].model.degree
    assert (runs[1]._replay is not None) == runs[1].model.is_capturable
    here, there = (run.outcome().history[..., 0].double() for run in runs)
    lost = ((~here.isfinite() | (here > 1e3)) & (~there.isfinite() | (there > 1e3))).cummax(0).values
    torch.testing.assert_close(here[~lost], there[~lost], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("relu", [False, True])
def test_dropout_has_the_same_bits_on_every_device(relu):
    from gread.kernels.training_operations import dropout

    x, seeds, step = random(3, 50, 33, dtype=torch.float32), torch.tensor([1, 5 << 32, 2**62 + 7]), torch.tensor(11)
    rates = torch.tensor([0.0, 0.3, 0.9])
    here = dropout(x, seeds, step, rates, 5, relu=relu)
    there = dropout(*(t.cuda() for t in (x, seeds, step, rates)), 5, relu=relu)
    torch.testing.assert_close(here, there.cpu(), rtol=1e-6, atol=0)
    assert torch.equal(here == 0, there.cpu() == 0)


def test_a_member_that_diverges_changes_no_bit_of_the_others_on_a_gpu():
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    calm = Config().updated({"hidden": 8, "epochs": 15, "method": "euler", "step": 0.5})
    wild = calm.updated({"learning_rate": 1e6})
    runs = []
    for second in (wild, calm):
        ensemble = Ensemble(karate(), [Trial(calm), Trial(second, 1)], device="cuda")
        ensemble.advance(15)
        runs.append(ensemble.outcome())
    assert runs[0].status(0) == "ok"
    assert runs[0].status(1).startswith("diverged in epoch")
    assert torch.equal(runs[0].history[:, 0], runs[1].history[:, 0])


def mixed_trials(reaction: str = "BS", **values: object):
    """Members of many methods, steps, times and kinds of coefficients."""
    from gread.settings.config import Config
    from gread.settings.trials import Trial

    base = {"hidden": 8, "epochs": 40, "attention_dim": 8, "reaction": reaction, **values}
    linear = reaction in ("BS", "ST")
    own = [
        {"method": "rk4", "step": 0.5, "time": 1.3, "beta": "scalar"},
        {"method": "euler" if linear else "rk4", "step": 0.2, "time": 2.3, "alpha": "channel"},
        {"method": "exact" if linear else "rk4", "step": 0.9, "time": 3.1, "dropout": 0.1},
        {"method": "dopri5" if linear else "rk4", "step": 1.0, "time": 0.7, "learning_rate": 0.05},
    ]
    return [Trial(Config().updated(base | one), split=k % 3, seed=k) for k, one in enumerate(own)]


@pytest.mark.parametrize("reaction", ["BS", "ST", "F"])
@pytest.mark.parametrize("adjacency", ["original", "soft"])
def test_a_mixed_batch_is_captured_and_has_the_curves_of_the_cpu(reaction, adjacency):
    from gread.datasets.embedded import karate
    from gread.training.ensemble import Ensemble

    trials = mixed_trials(reaction, adjacency=adjacency)
    made = [
        Ensemble(karate(), trials, device=d, use_graph=g) for d, g in (("cuda", True), ("cuda", False), ("cpu", None))
    ]
    for ensemble in made:
        ensemble.advance(15)
    captured, eager, host = made
    assert captured._replay is not None
    for name, value in captured.state.items():
        assert torch.equal(value.nan_to_num(), eager.state[name].nan_to_num()), name
    ours, theirs = captured.outcome().history[:15], host.outcome().history[:15]
    torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-3, equal_nan=True)  # who diverges does so in one epoch


def test_batches_on_streams_have_the_bits_of_batches_alone(monkeypatch):
    """Several shapes under way at once, each recorded while others run, and the same batches one after the other."""
    from gread.datasets.embedded import karate
    from gread.training import batch_queue
    from gread.training.trainer import train

    shapes = [{"hidden": h, "adjacency": a} for h in (8, 16, 32) for a in ("original", "soft")]
    groups = [mixed_trials(**shape) for shape in shapes] + [mixed_trials("F"), mixed_trials("ST")]
    trials = [t for group in groups for t in group]
    beside = train(karate(), trials, device="cuda", keep_best=False)
    monkeypatch.setattr(batch_queue, "AT_ONCE", 1)
    alone = train(karate(), trials, device="cuda", keep_best=False)
    for trial, ours, theirs in zip(trials, beside.history, alone.history, strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True), trial


def test_a_recording_that_lacks_memory_is_done_again_alone(monkeypatch):
    """The first try ends in the midst of its capture; the second replays as if there had been none."""
    from gread.training import ensemble

    monkeypatch.setattr(ensemble, "ROOM", 0.0)
    values = torch.zeros(1000, device="cuda")
    tries = []

    def work():
        values.add_(1)
        tries.append(len(tries))
        if len(tries) == 1:
            torch.empty(2**50, device="cuda", dtype=torch.uint8)

    graph = ensemble.capture(work, torch.cuda.Stream())
    assert tries == [0, 1]
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert values.tolist() == [3.0] * 1000
