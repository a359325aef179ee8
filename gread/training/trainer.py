"""`train`: trains trials in batches, with progress, checkpoints and the protocol of the papers.

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
from gread.training.batch_queue import LOOK, make_plan, recorded_batches, run_batches
from gread.training.checkpoint import Saver
from gread.training.ensemble import AUTO, CHUNK, METRICS, Ensemble, Outcome
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.wording import duration

#: Seconds between two checkpoints: the most work that a kill may lose.
EVERY = 30.0


class Progress(NamedTuple):
    """Progress of a training: epochs of all batches together, the current batch, means over its sound members."""

    epoch: int
    epochs: int
    batch: int
    batches: int
    loss: float
    val_accuracy: float
    seconds: float


def training_text(p: Progress) -> str:
    """Progress of a training in words, without what is not known yet.

    >>> training_text(Progress(20, 40, 0, 1, 0.5, 0.8125, 1.5))
    'epoch 20 of 40, loss 0.5000, validation 81.25 %, 2 s left'
    """
    batch = f", batch {p.batch + 1} of {p.batches}" if p.batches > 1 else ""
    loss = "" if math.isnan(p.loss) else f", loss {p.loss:.4f}"
    right = "" if math.isnan(p.val_accuracy) else f", validation {100 * p.val_accuracy:.2f} %"
    remaining = p.seconds * (p.epochs - p.epoch) / p.epoch if p.epoch else 0.0
    return f"epoch {p.epoch} of {p.epochs}{batch}{loss}{right}" + (f", {duration(remaining)} left" if remaining else "")


@dataclass(frozen=True, eq=False)
class Trained:
    """Results of M trials; accuracies are shares of 1, `history` (M, epochs, 4) has the columns `ensemble.METRICS`.

    If the metric of the data set is roc_auc, read "accuracy" as the area under the ROC curve. `epochs` are those
    trained, fewer than asked for after early stopping or divergence. `trials` have the method that was used; `reasons`
    say why it was chosen if it was "auto". `classes` counts the classes of each network.
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
            raise InvalidArgument("the parameters were not kept (keep_best=False); train again with keep_best=True")
        data = self.data_of(k)
        reason = self.reasons[k] if self.reasons else ""
        return Network(
            self.trials[k].config.model, self.parameters[k], data.num_features, self.classes[k], reason,
            data.meta.classes if len(data.meta.classes) == self.classes[k] else (), data.preparation,
        )  # fmt: skip


#: Returns the results of the trials with these numbers.
Results = Callable[[Sequence[int]], Trained]


class TrialOutcome(NamedTuple):
    """The results of one trial."""

    best_epoch: int
    val_accuracy: float
    test_accuracy: float
    status: str
    history: np.ndarray
    epochs: int
    parameters: dict[str, Tensor] | None
    classes: int


def joined_outcomes(
    data: NodeData | Sequence[NodeData], trials: Sequence[Trial], reasons: Sequence[str],
    outcomes: Sequence[TrialOutcome], seconds: float,
) -> Trained:  # fmt: skip
    """The results of several trials as one `Trained`; shorter histories are padded with nan."""
    history = np.full((len(outcomes), max(len(o.history) for o in outcomes), len(METRICS)), np.nan, dtype=np.float32)
    for row, outcome in zip(history, outcomes, strict=True):
        row[: len(outcome.history)] = outcome.history
    parameters = tuple(o.parameters for o in outcomes if o.parameters is not None)
    return Trained(
        data, tuple(trials), np.array([o.best_epoch for o in outcomes]), np.array([o.val_accuracy for o in outcomes]),
        np.array([o.test_accuracy for o in outcomes]), tuple(o.status for o in outcomes), history,
        np.array([o.epochs for o in outcomes]), seconds, parameters or None, tuple(reasons),
        tuple(o.classes for o in outcomes),
    )  # fmt: skip


def choose_device(device: str = "auto") -> str:
    """The device to use: for "auto" cuda if torch can use it, else cpu; any other name is checked and returned.

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
    """Train every trial, in as few batches as fit into memory.

    Full batch, Adam, cross-entropy on the training nodes; the test accuracy is that of the first epoch with the best
    validation accuracy, or of the last epoch without validation nodes. Ctrl-C waits for the end of the epoch and saves
    a checkpoint; a second Ctrl-C stops at once.

    Args:
        data: One data set, or one for every trial.
        trials: The trials, for example from `make_trials`. The method "auto" is chosen from the equation.
        device: "auto" uses a GPU if there is one.
        members: Trials per batch; by default as many as fit.
        checkpoint: A folder for checkpoints; an interrupted training resumes from it, to the same results.
        every: Approximate seconds between two checkpoints.
        progress: Called with the progress, about once a second or every `CHUNK` epochs.
        finished: Called with the numbers of the trials of a finished batch, and a function that returns the results of
            any finished trials.
        tell: Called with messages for the user, such as a checkpoint that could not be written, which does not stop the
            training.
        keep_best: Whether the parameters of the best epoch are kept, which `Trained.network` needs.
        dtype: The precision of parameters and states.
        weights: Weights >= 0 of the training nodes in the loss (n,); all equal by default.
        checkpointing: Gradient checkpointing of the flow: none keeps all states, a number N keeps a state every N steps
            or terms of a polynomial and recomputes the others; auto recomputes only if memory is short.

    Returns:
        The results, in the order of the trials.

    Raises:
        InvalidArgument: For trials, data or batches that do not match or do not fit into memory.
        FileError: For a checkpoint of another training.

    >>> import gread
    >>> trials = gread.make_trials(gread.Config().updated({"hidden": 8, "epochs": 10}), range(3))
    >>> run = gread.train(gread.karate(), trials, device="cpu")
    >>> run.history.shape, run.status
    ((3, 10, 4), ('ok', 'ok', 'ok'))
    """
    device = choose_device(device)
    chosen, reasons = resolve_trials(trials)
    datas = read_data_sets(data)
    if len(datas) not in (1, len(chosen)):
        raise InvalidArgument(f"expected one data set or one for each of {len(chosen)} trials, got {len(datas)}")
    if not chosen:
        raise InvalidArgument("expected at least one trial, got none; make some with make_trials")
    if weights is not None and checkpoint is not None:
        raise InvalidArgument("a training with node weights cannot be checkpointed; leave out weights or checkpoint")
    options: dict[str, Any] = {
        "device": device, "dtype": dtype, "keep_best": keep_best, "weights": weights, "checkpointing": checkpointing,
    }  # fmt: skip
    for warning in dict.fromkeys(filter(None, map(pole_warning, reasons))):
        tell(warning)
    outcomes = _Outcomes(datas, chosen, reasons, finished)
    # A single trial is set up once: the network whose memory is measured is the one that is trained.
    only = Ensemble(datas[0], chosen, **options) if len(chosen) == 1 else None
    plan = make_plan(datas, chosen, options, members, only)
    plan = replace(plan, batches=recorded_batches(checkpoint, plan.batches, tell))
    report = _Reporter(progress, outcomes.started, chosen, plan.batches)

    def begin(number: int) -> tuple[Ensemble, Saver]:
        ensemble = only or plan.ensemble(number, options)
        return ensemble, Saver(checkpoint, number, ensemble, plan.data(number), every, tell)

    def finish(number: int, ensemble: Ensemble, saver: Saver) -> None:
        outcome = ensemble.outcome()
        report.finished(number)
        outcomes.add({k: _outcome_of(ensemble, outcome, member) for member, k in enumerate(plan.batches[number])})

    run_batches(plan.queue(begin), device, report, finish, tell)
    return outcomes.results(range(len(chosen)))


def _outcome_of(ensemble: Ensemble, out: Outcome, member: int) -> TrialOutcome:
    parameters = None
    if ensemble.keep_best:
        model = ensemble.model
        best = {name: model.member_part(name, ensemble.state[f"best.{name}"], member) for name in ensemble.parts}
        parameters = {name: value.cpu().clone() for name, value in {**best, **model.extra_parts(member)}.items()}
    return TrialOutcome(
        int(out.best_epoch[member]), float(out.val_accuracy[member]), float(out.test_accuracy[member]),
        out.status(member), out.history[:, member].numpy(), int(out.epochs[member]), parameters,
        ensemble.problem.classes,
    )  # fmt: skip


class _Outcomes:
    """The results of the trials that are finished so far."""

    def __init__(
        self,
        datas: list[NodeData],
        trials: list[Trial],
        reasons: list[str],
        finished: Callable[[Sequence[int], Results], None] | None,
    ) -> None:
        self.datas, self.trials, self.reasons, self.finished = datas, trials, reasons, finished
        self.outcomes: dict[int, TrialOutcome] = {}
        self.started = time.monotonic()

    def add(self, outcomes: dict[int, TrialOutcome]) -> None:
        """Record the trials of a batch and report them."""
        self.outcomes |= outcomes
        if self.finished is not None:
            self.finished(list(outcomes), self.results)

    def results(self, numbers: Sequence[int]) -> Trained:
        """The results of some trials, all of them finished."""
        data = self.datas[0] if len(self.datas) == 1 else [self.datas[k] for k in numbers]
        trials, reasons = [self.trials[k] for k in numbers], [self.reasons[k] for k in numbers]
        outcomes = [self.outcomes[k] for k in numbers]
        return joined_outcomes(data, trials, reasons, outcomes, time.monotonic() - self.started)


class _Reporter:
    """Calls `progress` with the progress of all batches together."""

    def __init__(
        self, progress: Callable[[Progress], None] | None, started: float, trials: list[Trial], batches: list[list[int]]
    ) -> None:
        self.progress, self.started, self.last = progress, started, time.monotonic()
        self.lengths = [trials[batch[0]].config.training.epochs for batch in batches]
        self.done = [0] * len(batches)

    def __call__(self, number: int, ensemble: Ensemble) -> None:
        epoch, now = ensemble.epoch, time.monotonic()
        self.done[number] = epoch
        is_due = epoch % CHUNK == 0 or epoch >= ensemble.epochs or now - self.last >= LOOK
        if self.progress is None or not is_due:
            return
        self.last = now
        row = ensemble.state["history"][epoch - 1].double()
        alive = ensemble.state["alive"]
        means = row[alive].nanmean(0).tolist() if bool(alive.any()) else [float("nan")] * row.shape[1]
        seconds = time.monotonic() - self.started
        total = sum(self.lengths)
        self.progress(Progress(sum(self.done), total, number, len(self.lengths), means[0], means[2], seconds))

    def finished(self, number: int) -> None:
        """Record that a batch is finished, possibly before its last epoch."""
        self.done[number] = self.lengths[number]
