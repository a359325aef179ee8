"""`train`: trials in, results out; grouped into batches, with progress, checkpoints and the protocol of the papers.

Full batch, a fixed number of epochs, test accuracy at the first epoch with the best validation accuracy; mean and
population standard deviation over the trials.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gread.datasets.given_data import read_data_sets
from gread.datasets.node_data import NodeData
from gread.models.resolution import resolve_trials
from gread.models.trained_network import Network
from gread.settings.trials import Trial, grouped
from gread.training.batch_queue import LOOK, Batch, run_batches
from gread.training.checkpoint import Saver
from gread.training.ensemble import CHUNK, Ensemble, Outcome
from gread.training.planner import Costs, check_fit, cut_by_set, estimate, largest, make_batches, union_factor
from gread.training.recomputation import AUTO
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text, write_text
from rdgraph.kernels.device_names import read_device

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

    >>> from gread.settings.config import Config
    >>> from gread.datasets.embedded import karate
    >>> from gread.settings.trials import make_trials
    >>> done = train(karate(), make_trials(Config().updated({"hidden": 8, "epochs": 10}), range(3)), device="cpu")
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


@dataclass(frozen=True, eq=False)
class Plan:
    """Trials on a data set each, in batches; what every trial costs, and how many like it the memory holds."""

    each: list[NodeData]
    trials: Sequence[Trial]
    batches: list[list[int]]
    costs: list[Costs]
    fits: dict[int, int]

    def data(self, number: int) -> list[NodeData]:
        """The data sets of the members of a batch; one alone where all have the same, so that it is drawn from as it
        is."""
        own = [self.each[k] for k in self.batches[number]]
        return own[:1] if all(one is own[0] for one in own) else own

    def ensemble(self, number: int, options: Mapping[str, Any]) -> Ensemble:
        """A batch, set up."""
        own = self.data(number)
        return Ensemble(own[0] if len(own) == 1 else own, [self.trials[k] for k in self.batches[number]], **options)

    def queue(self, begin: Callable[[int], tuple[Ensemble, Saver]]) -> list[Batch]:
        """The batches as they are trained."""
        return queued(self.trials, self.batches, self.fits, self.costs, begin)


def make_plan(
    datas: Sequence[NodeData],
    trials: Sequence[Trial],
    options: Mapping[str, Any],
    members: int | None = None,
    only: Ensemble | None = None,
) -> Plan:
    """The fewest batches for trials on one data set or on one each; `only` is that of the one trial, if it is there."""
    place = options["device"]
    each = list(datas) * len(trials) if len(datas) == 1 else list(datas)
    groups = cut_by_set(trials, grouped(trials), each, place)
    costs = Costs.each(each, place)
    heaviest = [largest(trials, group) for group in groups]
    most = [check_fit(estimate(only), place, members)] if only is not None else [
        most_members(each[k], trials[k], members, among=[each[j] for j in group], **options)
        for k, group in zip(heaviest, groups, strict=True)
    ]  # fmt: skip
    fits = {k: fit for group, fit in zip(groups, most, strict=True) for k in group}
    return Plan(each, trials, make_batches(trials, most, costs, groups), costs, fits)


def most_members(
    data: NodeData, trial: Trial, asked: int | None = None, among: Sequence[NodeData] = (), **options: Any
) -> int:
    """How many trainings like this one a batch gets, whose members may have the graphs of `among`; one that cannot be
    trained at all is an error."""
    need = estimate(Ensemble(data, [trial], **options)).times(union_factor(data, among))
    return check_fit(need, options["device"], asked)


def queued(
    trials: Sequence[Trial],
    batches: Sequence[Sequence[int]],
    fits: Mapping[int, int],
    costs: Sequence[Costs],
    begin: Callable[[int], tuple[Ensemble, Saver]],
    end: int | None = None,
) -> list[Batch]:
    """Batches of trials as they are trained: to their ends or another one, with what they take of the memory, where
    `fits` says of how many trainings like that of a number it holds, and `costs` what each trial costs."""
    found = []
    for number, batch in enumerate(batches):
        first, efforts = trials[batch[0]].config, [trials[k].effort for k in batch]
        products = len(batch) * max(efforts) if first.model.is_padded else sum(efforts)
        own = costs[batch[0]]
        beside, product = own.member(first.model)
        epochs = first.training.epochs if end is None else min(end, first.training.epochs)
        cost = epochs * (own.batch + len(batch) * beside + product * products)
        found.append(Batch(partial(begin, number), epochs, len(batch) / fits[batch[0]], cost))
    return found


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
