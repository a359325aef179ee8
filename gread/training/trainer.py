"""`train`: trials in, results out; grouped into batches, with progress, checkpoints and the protocol of the papers.

Full batch, a fixed number of epochs, test accuracy at the first epoch with the best validation accuracy; mean and
population standard deviation over the trials.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gread.datasets.node_data import NodeData
from gread.models.resolution import resolve_trials
from gread.models.trained_network import Network
from gread.settings.trials import Trial, grouped
from gread.training.checkpoint import Saver
from gread.training.ensemble import CHUNK, Ensemble, Outcome
from gread.training.planner import check_fit, estimate, make_batches
from gread.training.recomputation import AUTO
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text, write_text
from rdgraph.interrupts import patient

#: Seconds between two looks at a training: whether to tell of it, to save it, or to stop.
LOOK = 1.0
#: Seconds of work that a kill may cost.
EVERY = 30.0


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
    """Results of M trials; accuracies are shares of 1, `history` (M, epochs, 4) has the columns `ensemble.METRICS`.

    Where the metric of the data set is roc_auc, all that is called an accuracy is the area under the ROC curve.
    `trials` are those that were run: with the method that was chosen where it was left open, and `reasons` say why.
    """

    data: NodeData | Sequence[NodeData]
    trials: tuple[Trial, ...]
    best_epoch: np.ndarray
    val_accuracy: np.ndarray
    test_accuracy: np.ndarray
    status: tuple[str, ...]
    history: np.ndarray
    seconds: float
    parameters: tuple[dict[str, Tensor], ...] | None = None
    reasons: tuple[str, ...] = ()
    classes: int = 0

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
            raise InvalidArgument("expected results that kept their parameters, got keep_best=False; train again")
        data = self.data_of(k)
        reason = self.reasons[k] if self.reasons else ""
        return Network(self.trials[k].config.model, self.parameters[k], data.num_features, self.classes, reason)


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
    every: float = EVERY,
    progress: Callable[[Progress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
    keep_best: bool = True,
    dtype: torch.dtype = torch.float32,
    weights: np.ndarray | None = None,
    checkpointing: str | int = AUTO,
) -> Trained:
    """Train every trial, in the fewest batches that fit the memory.

    Full batch, Adam, cross-entropy on the training nodes; the test accuracy is that at the first epoch with the best
    validation accuracy, or at the last one without validation nodes. Ctrl-C waits for the end of the epoch, so that
    what is left is saved; a second one stops at once.

    Args:
        data: One data set, or one for every trial.
        trials: What is trained; `make_trials` makes some. A method that is left open is chosen from the equation.
        device: "auto" takes a GPU where there is one.
        members: Trials per batch; by default as many as fit.
        checkpoint: A folder for the state, from which a training that was cut off goes on to the same results.
        every: Seconds between two checkpoints, about.
        progress: Hears of the epochs, about once a second or every `CHUNK` epochs.
        tell: Hears sentences about what a user should know, such as a checkpoint that could not be written, which does
            not end the training.
        keep_best: Whether the parameters of the best epoch are kept, which `Trained.network` needs.
        dtype: The precision of parameters and states.
        weights: Weights >= 0 of the training nodes in the loss (n,); all equal by default.
        checkpointing: What a gradient keeps of the way to H(T): none keeps all of it, a number N a state every N steps
            or terms of a polynomial, and computes the others again; auto does that where memory asks for it.

    Returns:
        The results, in the order of the trials.

    Raises:
        InvalidArgument: For trials, data or batches that do not fit together or into the memory.
        FileError: For a checkpoint of another training.

    >>> from gread.settings.config import Config
    >>> from gread.datasets.embedded import karate
    >>> from gread.settings.trials import make_trials
    >>> done = train(karate(), make_trials(Config().updated({"hidden": 8, "epochs": 10}), range(3)), device="cpu")
    >>> done.history.shape, done.status
    ((3, 10, 4), ('ok', 'ok', 'ok'))
    """
    place = choose_device(device)
    chosen, reasons = resolve_trials(trials)
    datas = [data] if isinstance(data, NodeData) else list(data)
    each = datas * len(chosen) if len(datas) == 1 else datas
    if len(each) != len(chosen):
        raise InvalidArgument(f"expected one data set or one for each of {len(chosen)} trials, got {len(datas)}")
    if not chosen:
        raise InvalidArgument("expected at least one trial, got none; make some with make_trials")
    if weights is not None and checkpoint is not None:
        raise InvalidArgument("expected no checkpoint with weights of nodes, got both; leave one of them out")
    options: dict[str, Any] = {
        "device": place, "dtype": dtype, "keep_best": keep_best, "weights": weights, "checkpointing": checkpointing,
    }  # fmt: skip
    started = time.monotonic()
    # One training alone is set up once: what is measured is what is trained.
    only = Ensemble(datas[0], chosen, **options) if len(chosen) == 1 else None
    most = [check_fit(estimate(only), place, members)] if only is not None else [
        most_members(each[group[0]], chosen[group[0]], members, **options) for group in grouped(chosen)
    ]  # fmt: skip
    batches = remembered(checkpoint, make_batches(chosen, most), tell)
    report = _Reporter(progress, started, chosen, batches)
    slots: list[_Slot | None] = [None] * len(chosen)
    for number, batch in enumerate(batches):
        own = datas[0] if len(datas) == 1 else [each[k] for k in batch]
        ensemble = only or Ensemble(own, [chosen[k] for k in batch], **options)
        saver = Saver(checkpoint, number, ensemble, datas if len(datas) == 1 else [each[k] for k in batch], every, tell)
        run_to(ensemble.epochs, ensemble, saver, partial(report, number), tell)
        outcome = ensemble.outcome()
        for member, k in enumerate(batch):
            slots[k] = _slot(ensemble, outcome, member)
    done = [s for s in slots if s is not None]
    return _gathered(data, chosen, reasons, done, max(one.num_classes for one in datas), time.monotonic() - started)


def most_members(data: NodeData, trial: Trial, asked: int | None = None, **options: Any) -> int:
    """How many trainings like this one a batch gets; one that cannot be trained at all is an error."""
    return check_fit(estimate(Ensemble(data, [trial], **options)), options["device"], asked)


def run_to(
    end: int, ensemble: Ensemble, saver: Saver, report: Callable[[Ensemble], None], tell: Callable[[str], object]
) -> None:
    """Train an ensemble up to an epoch, or until nothing is left to do, with a look about every `LOOK` seconds."""
    count, epoch = 1, ensemble.epoch
    with patient(lambda: tell("stopping at the end of this epoch; Ctrl-C again stops at once")) as interruption:
        while epoch < end and not ensemble.is_done:
            began, chunk = time.monotonic(), min(count, CHUNK - epoch % CHUNK, end - epoch)
            ensemble.advance(chunk)
            epoch = ensemble.epoch  # waits for the device
            count = epochs_within(LOOK, (time.monotonic() - began) / chunk)
            saver.tick()
            report(ensemble)
            if interruption.is_waiting:
                saver.tick(must_save=True)
                interruption.hear()


def epochs_within(seconds: float, each: float) -> int:
    """How many epochs of so many seconds each go into some seconds: one at least, a chunk at most.

    >>> epochs_within(1.0, 26.0), epochs_within(1.0, 0.3), epochs_within(1.0, 0.0)
    (1, 3, 20)
    """
    return CHUNK if each * CHUNK <= seconds else max(1, int(seconds / each))


def remembered(folder: Path | None, batches: list[list[int]], tell: Callable[[str], object]) -> list[list[int]]:
    """The batches that a training in this folder began with, whatever fits the memory now; else these, written down."""
    if folder is None:
        return batches
    path = Path(folder) / "batches.json"
    if path.exists():
        try:
            found = [[int(k) for k in batch] for batch in json.loads(read_text(path, "a list of batches"))]
        except (ValueError, TypeError, RecursionError):
            found = []
        if all(found) and sorted(k for batch in found for k in batch) == sorted(k for batch in batches for k in batch):
            return found
    try:
        write_text(path, json.dumps(batches), durable=True)
    except FileError as problem:
        tell(f"the training cannot be resumed: {problem}")
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
        kept = {name: ensemble.state[f"best.{name}"][member : member + 1] for name in ensemble.parts}
        kept = {name: value.cpu().clone() for name, value in {**kept, **ensemble.model.kept(member)}.items()}
    return _Slot(
        int(out.best_epoch[member]), float(out.val_accuracy[member]), float(out.test_accuracy[member]),
        out.status(member), out.history[:, member].numpy(), kept,
    )  # fmt: skip


def _gathered(
    data: NodeData | Sequence[NodeData],
    trials: list[Trial],
    reasons: list[str],
    slots: list[_Slot],
    classes: int,
    seconds: float,
) -> Trained:
    longest = max(len(s.history) for s in slots)
    history = np.full((len(slots), longest, slots[0].history.shape[1]), np.nan, dtype=np.float32)
    for row, slot in zip(history, slots, strict=True):
        row[: len(slot.history)] = slot.history
    kept = [s.parameters for s in slots if s.parameters is not None]
    return Trained(
        data, tuple(trials), np.array([s.best_epoch for s in slots]), np.array([s.val for s in slots]),
        np.array([s.test for s in slots]), tuple(s.status for s in slots), history, seconds,
        tuple(kept) if kept else None, tuple(reasons), classes,
    )  # fmt: skip


class _Reporter:
    """Tells the caller how far all batches together are."""

    def __init__(
        self, hears: Callable[[Progress], None] | None, started: float, trials: list[Trial], batches: list[list[int]]
    ) -> None:
        self.hears, self.started, self.last = hears, started, time.monotonic()
        self.lengths = [trials[batch[0]].config.training.epochs for batch in batches]

    def __call__(self, number: int, ensemble: Ensemble) -> None:
        epoch, now = ensemble.epoch, time.monotonic()
        is_due = epoch % CHUNK == 0 or epoch >= ensemble.epochs or now - self.last >= LOOK
        if self.hears is None or not is_due:
            return
        self.last = now
        row = ensemble.state["history"][epoch - 1].double()
        alive = ensemble.state["alive"]
        means = row[alive].nanmean(0).tolist() if bool(alive.any()) else [float("nan")] * row.shape[1]
        done = sum(self.lengths[:number]) + epoch
        seconds = time.monotonic() - self.started
        self.hears(Progress(done, sum(self.lengths), number, len(self.lengths), means[0], means[2], seconds))
