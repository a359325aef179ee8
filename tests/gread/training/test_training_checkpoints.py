"""Checkpoints: a training that was cut off goes on to the same results, on a clock and a disk that fail too."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.models.bundle import Bundle, load_bundle, save_bundle
from gread.settings.config import Config
from gread.settings.trials import Trial, make_trials
from gread.training import batch_queue, checkpoint
from gread.training import trainer as training
from gread.training.batch_queue import epochs_within
from gread.training.ensemble import CHUNK, Ensemble
from gread.training.trainer import Progress, Trained, train
from rdgraph.errors import FileError
from rdgraph.interrupts import terminable
from tests.gread.training.small_trainings import config


def light(**values: object) -> Config:
    """Without attention and with two channels, where the book-keeping is tested and not the network."""
    return config(adjacency="original", reaction="diffusion", hidden=2, **values)


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


# ---------------------------------------------------------------------- checkpoints
SCRIPT = """
import sys
from pathlib import Path
from gread.settings.config import Config
from gread.datasets.embedded import karate
from gread.training.trainer import train
from gread.settings.trials import make_trials

text, folder = sys.argv[1:]
trials = make_trials(Config.from_toml(text), range(3))
train(karate(), trials, device="cpu", members=2, checkpoint=Path(folder), every=0)
"""


def killed(text: str, folder: Path) -> None:
    """Train in another process and kill it in the midst of the second batch."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, text, str(folder)])
    try:
        deadline = time.monotonic() + 240
        while not (folder / "batch-1.json").exists():
            assert process.poll() is None, "the training ended before it could be killed"
            assert time.monotonic() < deadline, "no checkpoint within four minutes"
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    assert code == -signal.SIGKILL


def saved_epoch(manifest: Path) -> int:
    return int(load_bundle(manifest, checkpoint.FORMAT, "a checkpoint").numbers["step"])


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_bits(tmp_path):
    """The second batch, of one member, is cut off; the first one is done and is not trained again."""
    own = config(epochs=80, learning_rate=0.05)
    trials = make_trials(own, range(3))
    killed(own.toml(), tmp_path)
    halfway = saved_epoch(tmp_path / "batch-1.json")
    assert 0 < halfway < 80
    (tmp_path / ".0123456789abcdef.part.safetensors").write_bytes(b"what a kill left behind")
    heard: list[Progress] = []
    resumed = train(karate(), trials, device="cpu", members=2, checkpoint=tmp_path, every=1e9, progress=heard.append)
    assert 80 + halfway < heard[0].epoch <= 80 + halfway + 20
    assert saved_epoch(tmp_path / "batch-1.json") == 80
    equal(resumed, train(karate(), trials, device="cpu", members=2))
    again = train(karate(), trials, device="cpu", members=2, checkpoint=tmp_path)
    equal(again, resumed)


def test_resuming_at_any_epoch_gives_the_same_bits(tmp_path):
    """Nonlinear, with dropout: moments of Adam, random numbers and the book of the best epoch all go on."""
    from gread.training.checkpoint import load_checkpoint, save_checkpoint

    trials = make_trials(config(reaction="F", epochs=9, learning_rate=0.1), range(2))
    whole = Ensemble(karate(), trials)
    whole.advance(9)
    for stop in (1, 5, 9):
        first, second = Ensemble(karate(), trials), Ensemble(karate(), trials)
        first.advance(stop)
        save_checkpoint(tmp_path / f"{stop}.json", first, "mark")
        assert load_checkpoint(tmp_path / f"{stop}.json", second, "mark")
        assert second.epoch == stop
        second.advance(9 - stop)
        for name, value in whole.state.items():
            assert torch.equal(second.state[name].nan_to_num(), value.nan_to_num()), name
    assert not load_checkpoint(tmp_path / "none.json", second, "mark")


def test_a_resumed_polynomial_keeps_its_length(tmp_path):
    from gread.training.checkpoint import load_checkpoint, save_checkpoint

    trials = [Trial(config(method="exact", step=None, adjacency="original", epochs=3))]
    first, second = Ensemble(karate(), trials), Ensemble(karate(), trials)
    first.parameters["coefficient_beta"].data.fill_(6.0)
    first.advance(2)
    assert first.model.degree > second.model.degree
    save_checkpoint(tmp_path / "long.json", first, "mark")
    load_checkpoint(tmp_path / "long.json", second, "mark")
    assert second.model.degree == first.model.degree
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
        with pytest.raises(FileError, match="got one of another training; remove it, or choose another folder"):
            train(its_data, its_trials, device="cpu", checkpoint=tmp_path, **options)


def test_sparse_features_are_told_apart_by_their_rows(tmp_path):
    """The same entries in the same columns, but in other rows."""
    from gread.training.checkpoint import fingerprint

    data = karate()
    moved = data.x.copy()
    moved.indptr[5] += 1
    assert fingerprint([data], []) != fingerprint([replace(data, x=moved)], [])


@pytest.mark.parametrize("junk", ["truncated", "text", "empty"])
def test_a_broken_checkpoint_is_refused(tmp_path, junk):
    trials = make_trials(config(epochs=2), range(1))
    train(karate(), trials, device="cpu", checkpoint=tmp_path)
    for path in (*tmp_path.glob("batch-0-*.safetensors"), tmp_path / "batch-0.json"):
        whole = path.read_bytes()
        path.write_bytes({"truncated": whole[: len(whole) // 2], "text": b"hello" * 100, "empty": b""}[junk])
        with pytest.raises(FileError, match=r"a checkpoint in .* were changed|was changed; save a|not valid JSON"):
            train(karate(), trials, device="cpu", checkpoint=tmp_path)
        path.write_bytes(whole)
    train(karate(), trials, device="cpu", checkpoint=tmp_path)


def test_a_finished_training_leaves_one_bundle_per_batch(tmp_path):
    train(karate(), make_trials(config(), range(3)), device="cpu", members=2, checkpoint=tmp_path / "deep" / "er")
    names = sorted(p.name for p in (tmp_path / "deep" / "er").iterdir())
    assert [re.sub("[0-9a-f]{16}", "*", name) for name in names] == [
        "batch-0-*.safetensors", "batch-0.json", "batch-1-*.safetensors", "batch-1.json", "batches.json",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Ensemble, dict[str, torch.Tensor]]:
    """A checkpoint after three of six epochs, a fresh ensemble of the same trials, and its state."""
    trials = [Trial(config(reaction="F"))]
    ensemble, fresh = Ensemble(karate(), trials), Ensemble(karate(), trials)
    ensemble.advance(3)
    path = tmp_path_factory.mktemp("halfway") / "batch-0.json"
    checkpoint.save_checkpoint(path, ensemble, "mark")
    assert checkpoint.load_checkpoint(path, Ensemble(karate(), trials), "mark")
    return load_bundle(path, checkpoint.FORMAT, "a checkpoint"), fresh, fresh.snapshot()


@pytest.mark.parametrize(
    ("changed", "others", "needle"),
    [
        ({"epoch": 7}, {}, "the epoch 7 of 6"),
        ({"epoch": -1}, {}, "the epoch -1 of 6"),
        ({"epoch": "3"}, {}, "the epoch '3' of 6"),
        ({"epoch": 5}, {}, "3 steps after epoch 5"),
        ({"degree": 10**9}, {}, "polynomials of degree 1000000000"),
        ({"degree": None}, {}, "polynomials of degree None"),
        ({}, {"step": None}, "step missing"),
        ({}, {"best.decoder_bias": None}, "best.decoder_bias missing"),
        ({}, {"more": torch.zeros(1)}, "more too many"),
        ({}, {"start.step": torch.zeros((), dtype=torch.int64)}, "a state that does not belong there"),
        ({}, {"history": torch.zeros(2, 1, 4)}, r"history of shape \(2, 1, 4\) and torch.float32"),
        ({}, {"alive": torch.ones(1)}, "alive of shape .* and torch.float32"),
        ({}, {"best_epoch": torch.tensor([99])}, "best_epoch outside of 0..3"),
        ({}, {"failed_at": torch.tensor([-2])}, "failed_at outside of -1..3"),
    ],
)
def test_crafted_checkpoints_are_refused(tmp_path, halfway, changed, others, needle):
    """Their hashes fit, what they hold does not."""
    saved, fresh, before = halfway
    path = tmp_path / "batch-0.json"
    numbers = {k: v for k, v in (saved.numbers | others).items() if v is not None}
    save_bundle(path, checkpoint.FORMAT, saved.words | changed, numbers)
    with pytest.raises(FileError, match=f"expected a checkpoint in .*, got one with {needle}; remove it"):
        checkpoint.load_checkpoint(path, fresh, "mark")
    assert all(torch.equal(fresh.state[k].nan_to_num(), v.nan_to_num()) for k, v in before.items())


# ---------------------------------------------------------------------- the clock
@pytest.mark.slow
def test_the_results_do_not_depend_on_how_the_epochs_are_divided(tmp_path):
    """Polynomials that have to grow in the midst of a chunk, saved and resumed within it: the same bits."""
    own = config(method="exact", step=None, adjacency="original", beta="scalar", beta_link="free", time=6.0,
                 learning_rate=0.2, epochs=46, hidden=2)  # fmt: skip
    trials = [Trial(own)]

    def fresh() -> Ensemble:
        ensemble = Ensemble(karate(), trials, dtype=torch.float64)
        ensemble.parameters["coefficient_beta"].data.fill_(4.0)
        return ensemble

    whole, cut = fresh(), fresh()
    first = whole.model.degree
    whole.advance(46)
    assert whole.model.degree > first
    for count in (1, 6, 15, 3, 20, 1):
        cut.advance(count)
        checkpoint.save_checkpoint(tmp_path / "c.json", cut, "mark")
        cut = fresh()
        assert checkpoint.load_checkpoint(tmp_path / "c.json", cut, "mark")
    assert cut.epoch == 46
    assert cut.model.degree == whole.model.degree
    for name, value in whole.state.items():
        assert torch.equal(cut.state[name].nan_to_num(), value.nan_to_num()), name


class Clock:
    """Time that goes by in epochs: every one takes as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now = 0.0
        run = Ensemble._one

        def one(ensemble: Ensemble) -> None:
            run(ensemble)
            self.now += seconds

        monkeypatch.setattr(Ensemble, "_one", one)
        monkeypatch.setattr(training.time, "monotonic", lambda: self.now)


@pytest.mark.parametrize(
    ("seconds", "heard", "saved"),
    [
        (26.0, list(range(1, 41)), [*range(2, 41, 2)]),
        (4.0, list(range(1, 41)), [8, 16, 24, 32, 40]),
        (0.25, [5, 9, 13, 17, 20, 24, 28, 32, 36, 40], [40]),
        (0.001, [20, 40], [40]),
    ],
)
def test_looks_and_checkpoints_follow_the_clock(tmp_path, monkeypatch, seconds, heard, saved):
    """Slow epochs are told of one by one and saved about every half minute, quick ones a chunk at a time."""
    Clock(monkeypatch, seconds)
    epochs: list[int] = []
    written: list[int] = []
    monkeypatch.setattr(checkpoint, "save_checkpoint", lambda path, ensemble, mark: written.append(ensemble.epoch))
    train(karate(), [Trial(light(epochs=40))], device="cpu", checkpoint=tmp_path,
          progress=lambda p: epochs.append(p.epoch))  # fmt: skip
    assert epochs == heard
    assert written == saved


def test_how_many_epochs_go_into_a_look():
    assert [epochs_within(1.0, each) for each in (1e-9, 0.05, 0.051, 0.5, 0.9, 5.0)] == [CHUNK, 20, 19, 2, 1, 1]


# ---------------------------------------------------------------------- disks and interruptions
def full_disk(monkeypatch: pytest.MonkeyPatch, is_full: list[bool]) -> None:
    """Every new file is refused by the system while `is_full` says so."""
    real = os.open

    def refuse(path, flags, *rest, **others):
        if is_full[0] and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, flags, *rest, **others)

    monkeypatch.setattr(os, "open", refuse)


def test_a_full_disk_costs_the_checkpoint_and_not_the_training(tmp_path, monkeypatch):
    trials = [Trial(light(epochs=60))]
    told: list[str] = []
    is_full = [True]

    def hear(progress: Progress) -> None:
        is_full[0] = progress.epoch < 40

    full_disk(monkeypatch, is_full)
    done = train(karate(), trials, device="cpu", checkpoint=tmp_path, every=0, progress=hear, tell=told.append)
    assert len(told) == 3
    assert told[0].startswith("the training cannot be resumed: cannot write")
    assert re.match(r"no checkpoint was written.*batch-0.*No space left.*make room", told[1])
    assert told[2] == "checkpoints are written again"
    assert saved_epoch(tmp_path / "batch-0.json") == 60
    equal(done, train(karate(), trials, device="cpu"))
    is_full[0] = True
    with pytest.warns(UserWarning, match="cannot be resumed|no checkpoint") as caught:
        train(karate(), [Trial(config(epochs=1))], device="cpu", checkpoint=tmp_path / "other")
    assert [str(w.message)[:22] for w in caught] == ["the training cannot be", "no checkpoint was writ"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_waits_for_the_end_of_the_epoch_and_is_saved(tmp_path, monkeypatch, number):
    """The signal comes within the 13th epoch, after the update of the parameters and before the scores."""
    trials = [Trial(config(reaction="F", epochs=30))]
    scores, count, told = Ensemble._scores, [0], []

    def interrupted(ensemble: Ensemble):
        count[0] += 1
        if count[0] == 13:
            signal.raise_signal(number)
        return scores(ensemble)

    monkeypatch.setattr(Ensemble, "_scores", interrupted)
    monkeypatch.setattr(batch_queue, "LOOK", 1e-9)
    before = signal.getsignal(number)
    with terminable(), pytest.raises(KeyboardInterrupt):
        train(karate(), trials, device="cpu", checkpoint=tmp_path, every=1e9, tell=told.append)
    assert signal.getsignal(number) is before
    assert told == ["stopping at the end of this epoch; Ctrl-C again stops at once"]
    assert saved_epoch(tmp_path / "batch-0.json") == 13
    monkeypatch.setattr(Ensemble, "_scores", scores)
    equal(train(karate(), trials, device="cpu", checkpoint=tmp_path), train(karate(), trials, device="cpu"))
