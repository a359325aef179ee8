"""`train`: trials in, results out; grouped into batches, with progress, checkpoints and the protocol of the papers.

Full batch, a fixed number of epochs, test accuracy at the first epoch with the best validation accuracy; mean and
population standard deviation over the trials.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gread.datasets.node_data import NodeData, read_data_sets
from gread.models.resolution import pole_warning, resolve_trials
from gread.models.trained_network import Network
from gread.settings.trials import Trial
from gread.training.batch_queue import LOOK, make_plan, remembered, run_batches
from gread.training.checkpoint import Saver
from gread.training.ensemble import AUTO, CHUNK, Ensemble, Outcome
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.wording import duration

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


def training_text(p: Progress) -> str:
    """How far a training is, in words; what is not known yet is left out.

    >>> training_text(Progress(20, 40, 0, 1, 0.5, 0.8125, 1.5))
    'epoch 20 of 40, loss 0.5000, validation 81.25 %, 2 s left'
    """
    batch = f", batch {p.batch + 1} of {p.batches}" if p.batches > 1 else ""
    loss = "" if math.isnan(p.loss) else f", loss {p.loss:.4f}"
    right = "" if math.isnan(p.val_accuracy) else f", validation {100 * p.val_accuracy:.2f} %"
    left = p.seconds * (p.epochs - p.epoch) / p.epoch if p.epoch else 0.0
    return f"epoch {p.epoch} of {p.epochs}{batch}{loss}{right}" + (f", {duration(left)} left" if left else "")


@dataclass(frozen=True, eq=False)
class Trained:
    """Results of M trials; accuracies are shares of 1, `history` (M, epochs, 4) has the columns `ensemble.METRICS`.

    Where the metric of the data set is roc_auc, all that is called an accuracy is the area under the ROC curve.
    `epochs` were trained, fewer than were asked for where patience or a loss that diverged ended it. `trials` are those
    that were run: with the method that was chosen where it was left open, and `reasons` say why;
    `classes` counts the classes that each tells apart.
    """

    data: NodeData | Sequence[NodeData]
    trials: tuple[Trial, ...]
    best_epoch: np.ndarray
    val_accuracy: np.ndarray
    test_accuracy: np.ndarray
    status: tuple[str, ...]
    history: np.ndarray
    epochs: np.ndarray
    seconds: float
    parameters: tuple[dict[str, Tensor], ...] | None = None
    reasons: tuple[str, ...] = ()
    classes: tuple[int, ...] = ()

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
        return Network(
            self.trials[k].config.model, self.parameters[k], data.num_features, self.classes[k], reason,
            data.meta.classes if len(data.meta.classes) == self.classes[k] else (), data.preparation,
        )  # fmt: skip


#: What makes results of the trials with these numbers.
Results = Callable[[Sequence[int]], Trained]


def choose_device(device: str = "auto") -> str:
    """For "auto" cuda where torch can use it, else cpu; another one as it was given, if torch can use it here.

    >>> choose_device("cpu")
    'cpu'
    """
    return read_device(device) if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"


def train(
    data: NodeData | Sequence[NodeData],
    trials: Sequence[Trial],
    *,
    device: str = "auto",
    members: int | None = None,
    checkpoint: Path | None = None,
    every: float = EVERY,
    progress: Callable[[Progress], None] | None = None,
    finished: Callable[[Sequence[int], Results], None] | None = None,
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
        finished: Hears the numbers of the trials of a batch that is done, and is given what makes results of any trials
            that are.
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

    >>> import gread
    >>> trials = gread.make_trials(gread.Config().updated({"hidden": 8, "epochs": 10}), range(3))
    >>> done = gread.train(gread.karate(), trials, device="cpu")
    >>> done.history.shape, done.status
    ((3, 10, 4), ('ok', 'ok', 'ok'))
    """
    place = choose_device(device)
    chosen, reasons = resolve_trials(trials)
    datas = read_data_sets(data)
    if len(datas) not in (1, len(chosen)):
        raise InvalidArgument(f"expected one data set or one for each of {len(chosen)} trials, got {len(datas)}")
    if not chosen:
        raise InvalidArgument("expected at least one trial, got none; make some with make_trials")
    if weights is not None and checkpoint is not None:
        raise InvalidArgument("expected no checkpoint with weights of nodes, got both; leave one of them out")
    options: dict[str, Any] = {
        "device": place, "dtype": dtype, "keep_best": keep_best, "weights": weights, "checkpointing": checkpointing,
    }  # fmt: skip
    for warning in dict.fromkeys(filter(None, map(pole_warning, reasons))):
        tell(warning)
    found = _Collection(datas, chosen, reasons, finished)
    hearing = _Hearing(progress, found.add, tell, found.started)
    _train_batches(datas, chosen, options, members, checkpoint, every, hearing)
    return found.results(range(len(chosen)))


class _Hearing(NamedTuple):
    """Who hears of a training: how far it is, what is done, what a user should know; and when it started."""

    progress: Callable[[Progress], None] | None
    done: Callable[[dict[int, _Slot]], None]
    tell: Callable[[str], object]
    started: float


def _train_batches(
    datas: list[NodeData], trials: list[Trial], options: dict[str, Any], members: int | None, checkpoint: Path | None,
    every: float, hearing: _Hearing,
) -> None:  # fmt: skip
    """Train all trials in batches that share a shape and fit the memory."""
    place, tell = options["device"], hearing.tell
    # One training alone is set up once: what is measured is what is trained.
    only = Ensemble(datas[0], trials, **options) if len(trials) == 1 else None
    plan = make_plan(datas, trials, options, members, only)
    plan = replace(plan, batches=remembered(checkpoint, plan.batches, tell))
    report = _Reporter(hearing.progress, hearing.started, trials, plan.batches)

    def begin(number: int) -> tuple[Ensemble, Saver]:
        ensemble = only or plan.ensemble(number, options)
        return ensemble, Saver(checkpoint, number, ensemble, plan.data(number), every, tell)

    def finish(number: int, ensemble: Ensemble, saver: Saver) -> None:
        outcome = ensemble.outcome()
        report.finished(number)
        hearing.done({k: _slot(ensemble, outcome, member) for member, k in enumerate(plan.batches[number])})

    run_batches(plan.queue(begin), place, report, finish, tell)


class _Slot(NamedTuple):
    """The results of one trial."""

    best_epoch: int
    val: float
    test: float
    status: str
    history: np.ndarray
    epochs: int
    parameters: dict[str, Tensor] | None
    classes: int


def _slot(ensemble: Ensemble, out: Outcome, member: int) -> _Slot:
    kept = None
    if ensemble.keep_best:
        own = ensemble.model.own_part
        kept = {name: own(name, ensemble.state[f"best.{name}"], member) for name in ensemble.parts}
        kept = {name: value.cpu().clone() for name, value in {**kept, **ensemble.model.kept(member)}.items()}
    return _Slot(
        int(out.best_epoch[member]), float(out.val_accuracy[member]), float(out.test_accuracy[member]),
        out.status(member), out.history[:, member].numpy(), int(out.epochs[member]), kept,
        ensemble.problem.classes,
    )  # fmt: skip


class _Collection:
    """The results of trials as they come."""

    def __init__(
        self,
        datas: list[NodeData],
        trials: list[Trial],
        reasons: list[str],
        finished: Callable[[Sequence[int], Results], None] | None,
    ) -> None:
        self.datas, self.trials, self.reasons, self.finished = datas, trials, reasons, finished
        self.slots: dict[int, _Slot] = {}
        self.started = time.monotonic()

    def add(self, done: dict[int, _Slot]) -> None:
        """Take in the trials of a batch, and tell of them."""
        self.slots |= done
        if self.finished is not None:
            self.finished(list(done), self.results)

    def results(self, numbers: Sequence[int]) -> Trained:
        """Those of some trials, all of which are done."""
        slots = [self.slots[k] for k in numbers]
        longest = max(len(s.history) for s in slots)
        history = np.full((len(slots), longest, slots[0].history.shape[1]), np.nan, dtype=np.float32)
        for row, slot in zip(history, slots, strict=True):
            row[: len(slot.history)] = slot.history
        kept = [s.parameters for s in slots if s.parameters is not None]
        return Trained(
            self.datas[0] if len(self.datas) == 1 else [self.datas[k] for k in numbers],
            tuple(self.trials[k] for k in numbers), np.array([s.best_epoch for s in slots]),
            np.array([s.val for s in slots]), np.array([s.test for s in slots]), tuple(s.status for s in slots),
            history, np.array([s.epochs for s in slots]), time.monotonic() - self.started,
            tuple(kept) if kept else None, tuple(self.reasons[k] for k in numbers), tuple(s.classes for s in slots),
        )  # fmt: skip


class _Reporter:
    """Tells the caller how far all batches together are."""

    def __init__(
        self, hears: Callable[[Progress], None] | None, started: float, trials: list[Trial], batches: list[list[int]]
    ) -> None:
        self.hears, self.started, self.last = hears, started, time.monotonic()
        self.lengths = [trials[batch[0]].config.training.epochs for batch in batches]
        self.done = [0] * len(batches)

    def __call__(self, number: int, ensemble: Ensemble) -> None:
        epoch, now = ensemble.epoch, time.monotonic()
        self.done[number] = epoch
        is_due = epoch % CHUNK == 0 or epoch >= ensemble.epochs or now - self.last >= LOOK
        if self.hears is None or not is_due:
            return
        self.last = now
        row = ensemble.state["history"][epoch - 1].double()
        alive = ensemble.state["alive"]
        means = row[alive].nanmean(0).tolist() if bool(alive.any()) else [float("nan")] * row.shape[1]
        seconds = time.monotonic() - self.started
        total = sum(self.lengths)
        self.hears(Progress(sum(self.done), total, number, len(self.lengths), means[0], means[2], seconds))

    def finished(self, number: int) -> None:
        """A batch is done, perhaps before its last epoch, or since a checkpoint says so."""
        self.done[number] = self.lengths[number]
