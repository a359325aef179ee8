"""`train`: trials in, results out; grouped into batches, with progress, checkpoints and the protocol of the papers.

Full batch, a fixed number of epochs, test accuracy at the first epoch with the best validation accuracy; mean and
population standard deviation over the trials.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gread.checkpoint import fingerprint, load_checkpoint, save_checkpoint
from gread.datasets.nodes import NodeData
from gread.ensemble import CHUNK, Ensemble, Outcome
from gread.model import TRUSTED
from gread.network import Network
from gread.planner import check_fit, estimate, make_batches
from gread.trials import Trial, grouped
from rdgraph.errors import NotApplicable


class Progress(NamedTuple):
    """How far a training is: epochs of all batches together, the present batch, means over its living members."""

    epoch: int
    epochs: int
    batch: int
    batches: int
    loss: float
    val_accuracy: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Trained:
    """Results of M trials; accuracies are shares of 1, `history` (M, epochs, 4) has the columns `ensemble.METRICS`."""

    data: NodeData | Sequence[NodeData]
    trials: tuple[Trial, ...]
    best_epoch: np.ndarray
    val_accuracy: np.ndarray
    test_accuracy: np.ndarray
    status: tuple[str, ...]
    history: np.ndarray
    seconds: float
    parameters: tuple[dict[str, Tensor], ...] | None = None

    @property
    def mean(self) -> float:
        """Mean test accuracy in percent."""
        return float(100 * self.test_accuracy.mean())

    @property
    def std(self) -> float:
        """Population standard deviation of the test accuracies in percent."""
        return float(100 * self.test_accuracy.std())

    def rows(self) -> list[dict[str, object]]:
        """One row per trial: split, seed, best_epoch, val_accuracy, test_accuracy, status."""
        return [
            {
                "split": trial.split,
                "seed": trial.seed,
                "best_epoch": int(self.best_epoch[k]),
                "val_accuracy": float(self.val_accuracy[k]),
                "test_accuracy": float(self.test_accuracy[k]),
                "status": self.status[k],
            }
            for k, trial in enumerate(self.trials)
        ]

    def data_of(self, k: int) -> NodeData:
        """The data set of trial k."""
        return self.data if isinstance(self.data, NodeData) else self.data[k]

    def network(self, k: int) -> Network:
        """The network of trial k at its best epoch."""
        if self.parameters is None:
            raise NotApplicable("expected results that kept their parameters, got keep_best=False; train again")
        data = self.data_of(k)
        classes = self.parameters[k]["decoder_bias"].shape[-1]
        return Network(self.trials[k].config.model, self.parameters[k], data.num_features, classes)


def choose_device(device: str = "auto") -> str:
    """cuda where torch can use it, else cpu; anything else as it was given."""
    return device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"


def train(
    data: NodeData | Sequence[NodeData],
    trials: Sequence[Trial],
    *,
    device: str = "auto",
    members: int | None = None,
    checkpoint: Path | None = None,
    every: float = 60.0,
    progress: Callable[[Progress], None] | None = None,
    keep_best: bool = True,
    dtype: torch.dtype = torch.float32,
    weights: np.ndarray | None = None,
) -> Trained:
    """Train every trial, in the fewest batches that fit the memory (`members` sets their size).

    With a `checkpoint` folder the state is written every so many seconds, and a training that was cut off goes on from
    there, to the same results. `progress` hears of every few epochs. `keep_best` holds the parameters of the best
    epoch, which `Trained.network` needs. `weights` (n,) >= 0 are those of the training nodes in the loss.

    >>> from gread.config import Config
    >>> from gread.datasets.embedded import karate
    >>> from gread.trials import make_trials
    >>> done = train(karate(), make_trials(Config().updated({"hidden": 8, "epochs": 10}), range(3)), device="cpu")
    >>> done.history.shape, done.status
    ((3, 10, 4), ('ok', 'ok', 'ok'))
    """
    place = choose_device(device)
    chosen = list(trials)
    datas = [data] if isinstance(data, NodeData) else list(data)
    each = datas * len(chosen) if len(datas) == 1 else datas
    if len(each) != len(chosen):
        raise NotApplicable(f"expected one data set or one for each of {len(chosen)} trials, got {len(datas)}")
    if not chosen:
        raise NotApplicable("expected at least one trial, got none; make some with make_trials")
    if weights is not None and checkpoint is not None:
        raise NotApplicable("expected no checkpoint with weights of nodes, got both; leave one of them out")
    options: dict[str, Any] = {"device": place, "dtype": dtype, "keep_best": keep_best, "weights": weights}
    started = time.monotonic()
    most = []
    for group in grouped(chosen):
        probe = Ensemble(each[group[0]], [chosen[group[0]]], **options)
        most.append(check_fit(estimate(probe), place, members))
        del probe
    batches = _remembered(checkpoint, make_batches(chosen, most))
    report = _Reporter(progress, started, chosen, batches)
    slots: list[_Slot | None] = [None] * len(chosen)
    for number, batch in enumerate(batches):
        own = datas[0] if len(datas) == 1 else [each[k] for k in batch]
        ensemble = Ensemble(own, [chosen[k] for k in batch], **options)
        saver = _Saver(checkpoint, number, ensemble, datas if len(datas) == 1 else [each[k] for k in batch], every)
        while ensemble.epoch < ensemble.epochs:
            ensemble.advance(CHUNK)
            saver.tick()
            report(number, ensemble)
        outcome = ensemble.outcome()
        for member, k in enumerate(batch):
            slots[k] = _slot(ensemble, outcome, member)
    return _gathered(data, chosen, [s for s in slots if s is not None], time.monotonic() - started)


def _remembered(folder: Path | None, batches: list[list[int]]) -> list[list[int]]:
    """The batches that a training in this folder began with, whatever fits the memory now; else these, written down."""
    if folder is None:
        return batches
    path = Path(folder) / "batches.json"
    if path.exists():
        try:
            found = [[int(k) for k in batch] for batch in json.loads(path.read_text(encoding="utf-8"))]
        except (ValueError, TypeError):
            found = []
        if sorted(k for batch in found for k in batch) == sorted(k for batch in batches for k in batch):
            return found
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.part")
    fresh.write_text(json.dumps(batches), encoding="utf-8")
    fresh.replace(path)
    return batches


class _Slot(NamedTuple):
    """The results of one trial."""

    best_epoch: int
    val: float
    test: float
    status: str
    history: np.ndarray
    parameters: dict[str, Tensor] | None


def _slot(ensemble: Ensemble, out: Outcome, member: int) -> _Slot:
    kept = None
    if ensemble.keep_best:
        kept = {name: ensemble.state[f"best.{name}"][member : member + 1].cpu().clone() for name in ensemble.parameters}
        if TRUSTED in ensemble.model.letters and ensemble.model.trusted is not None:
            kept["trusted"] = ensemble.model.trusted[member : member + 1].cpu().clone()
    return _Slot(
        int(out.best_epoch[member]), float(out.val_accuracy[member]), float(out.test_accuracy[member]),
        out.status(member), out.history[:, member].numpy(), kept,
    )  # fmt: skip


def _gathered(data: NodeData | Sequence[NodeData], trials: list[Trial], slots: list[_Slot], seconds: float) -> Trained:
    longest = max(len(s.history) for s in slots)
    history = np.full((len(slots), longest, slots[0].history.shape[1]), np.nan, dtype=np.float32)
    for row, slot in zip(history, slots, strict=True):
        row[: len(slot.history)] = slot.history
    kept = [s.parameters for s in slots if s.parameters is not None]
    return Trained(
        data, tuple(trials), np.array([s.best_epoch for s in slots]), np.array([s.val for s in slots]),
        np.array([s.test for s in slots]), tuple(s.status for s in slots), history, seconds,
        tuple(kept) if kept else None,
    )  # fmt: skip


class _Saver:
    """Writes the state of one batch now and then, and when it is done; starts by looking for an older one."""

    def __init__(
        self, folder: Path | None, number: int, ensemble: Ensemble, datas: list[NodeData], every: float
    ) -> None:
        self.path = None if folder is None else Path(folder) / f"batch-{number}.safetensors"
        self.ensemble, self.every, self.last = ensemble, every, time.monotonic()
        manner = f"{ensemble.learning_rates.dtype} keep_best={ensemble.keep_best}"
        self.mark = "" if self.path is None else fingerprint(datas, ensemble.trials, manner)
        if self.path is not None:
            load_checkpoint(self.path, ensemble, self.mark)

    def tick(self) -> None:
        if self.path is None:
            return
        is_done = self.ensemble.epoch >= self.ensemble.epochs
        if is_done or time.monotonic() - self.last >= self.every:
            save_checkpoint(self.path, self.ensemble, self.mark)
            self.last = time.monotonic()


class _Reporter:
    """Tells the caller how far all batches together are."""

    def __init__(
        self, hears: Callable[[Progress], None] | None, started: float, trials: list[Trial], batches: list[list[int]]
    ) -> None:
        self.hears, self.started = hears, started
        self.lengths = [trials[batch[0]].config.training.epochs for batch in batches]

    def __call__(self, number: int, ensemble: Ensemble) -> None:
        if self.hears is None:
            return
        row = ensemble.state["history"][ensemble.epoch - 1].double()
        alive = ensemble.state["alive"]
        means = row[alive].mean(0).tolist() if bool(alive.any()) else [float("nan")] * row.shape[1]
        done = sum(self.lengths[:number]) + ensemble.epoch
        seconds = time.monotonic() - self.started
        self.hears(Progress(done, sum(self.lengths), number, len(self.lengths), means[0], means[2], seconds))
