"""The queue of batches: trained one after the other on a CPU, several at once on a GPU, each on its own stream.

An epoch of a small batch leaves most of a GPU idle while it waits for the next launch; other batches run in the gaps. A
batch is given epochs for about a second. When they are done it is checked and starts its next ones while the others are
still running, and further batches are set up in the meantime, so that one host thread keeps all of them busy. The
result of a batch does not depend on the others.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gread.datasets.node_data import NodeData
from gread.settings.trials import Trial, grouped
from gread.training.checkpoint import Saver
from gread.training.ensemble import CHUNK, Ensemble
from gread.training.planner import Costs, check_fit, cut_by_set, estimate, largest, make_batches, union_factor
from rdgraph.errors import FileError
from rdgraph.files import read_text, write_text
from rdgraph.interrupts import Interruption, patient

# ---------------------------------------------------------------------- batch queue
#: Seconds between two checks of a training: whether to report it, to save it, or to stop.
LOOK = 1.0
#: Seconds between two checks whether a batch on a GPU has finished its epochs.
PAUSE = 0.0005
#: The most batches that run at once on a GPU.
AT_ONCE = 16


class Batch(NamedTuple):
    """A batch to be trained: how to set it up, its last epoch, its memory and cost.

    `begin` returns the ensemble and its checkpoint, `end` is the last epoch, at most that of the ensemble, `share` the
    part of the free memory that it uses, `cost` its estimated cost, by which the longest start first. After the time
    `until` of the monotonic clock no further epochs start.
    """

    begin: Callable[[], tuple[Ensemble, Saver]]
    end: int
    share: float = 1.0
    cost: float = 0.0
    until: float = math.inf


@dataclass(eq=False)
class _Running:
    """A running batch; `begun` epochs were started at the time `since` and not checked yet, `mark` is their end."""

    number: int
    ensemble: Ensemble
    saver: Saver
    end: int
    stream: Any
    until: float = math.inf
    count: int = 1
    begun: int = 0
    since: float = field(default_factory=time.monotonic)
    mark: Any = None

    def within(self) -> AbstractContextManager[Any]:
        """The stream of the batch, if it has one."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    @property
    def is_busy(self) -> bool:
        """Whether the started epochs are still running."""
        return self.mark is not None and not self.mark.query()

    def look(self, report: Callable[[int, Ensemble], None]) -> None:
        """Wait for the started epochs, save if it is time, and report them."""
        if not self.begun:
            return
        self.ensemble.settle()
        _ = self.ensemble.epoch  # waits for the device
        self.count = epochs_within(LOOK, (time.monotonic() - self.since) / self.begun)
        self.begun = 0
        self.saver.tick()
        report(self.number, self.ensemble)

    def go_on(self) -> bool:
        """Start the next epochs; False if none is left."""
        if time.monotonic() >= self.until:
            self.ensemble.settle(at_once=True)
            return False
        epoch = self.ensemble.epoch
        if epoch >= self.end or self.ensemble.is_done:
            return False
        self.since = time.monotonic()
        self.begun = min(self.count, CHUNK - epoch % CHUNK, self.end - epoch)
        self.ensemble.start(self.begun)
        self.mark = None if self.stream is None else self.stream.record_event()
        return True


def run_batches(
    batches: Sequence[Batch],
    device: str,
    report: Callable[[int, Ensemble], None],
    finish: Callable[[int, Ensemble, Saver], None],
    tell: Callable[[str], object],
) -> None:
    """Train all batches, on a GPU as many at once as fit into memory.

    A batch that finds less memory than planned, because other programs use it, waits until another batch has ended.

    Args:
        batches: The batches.
        device: The device.
        report: Called with the number of a batch and its ensemble at every check.
        finish: Called with a finished batch, which is then released.
        tell: Called when an interruption arrives; it takes effect after the current epochs and their checkpoints.
    """
    waiting = list(range(len(batches)))
    if device.startswith("cuda"):
        waiting.sort(key=lambda k: -batches[k].cost)
    streams = _streams(device, len(batches))
    running: list[_Running] = []
    most = len(streams)
    with patient(lambda: tell("stopping at the end of this epoch; Ctrl-C again stops at once")) as interruption:
        while waiting or running:
            used = sum(batches[run.number].share for run in running)
            if waiting and len(running) < most and (not running or used + batches[waiting[0]].share <= 1):
                try:
                    running.append(_begun(waiting[0], batches, streams[-1]))
                except torch.OutOfMemoryError:
                    if not running:
                        raise
                    most = len(running)
                else:
                    waiting.pop(0)
                    streams.pop()
            elif all(run.is_busy for run in running):
                time.sleep(PAUSE)
            running, free = _once_round(running, report, finish, interruption)
            streams += free
            if interruption.is_waiting:
                for run in running:
                    with run.within():
                        run.look(report)
                        run.saver.tick(must_save=True)
                interruption.hear()


def _once_round(
    running: list[_Running],
    report: Callable[[int, Ensemble], None],
    finish: Callable[[int, Ensemble, Saver], None],
    interruption: Interruption,
) -> tuple[list[_Running], list[Any]]:
    """Check every batch whose epochs are done and start its next ones; returns the unfinished batches and the streams
    of the finished ones, which keep no reference to them.

    While an interruption is waiting, no further epochs start.
    """
    unfinished, free = [], []
    for run in running:
        if run.is_busy:
            unfinished.append(run)
            continue
        with run.within():
            run.look(report)
            if interruption.is_waiting or run.go_on():
                unfinished.append(run)
                continue
            finish(run.number, run.ensemble, run.saver)
        free.append(run.stream)
    return unfinished, free


def _streams(device: str, count: int) -> list[Any]:
    """One entry for every batch that may run at once: a stream on a GPU; a single None on a CPU."""
    if not device.startswith("cuda"):
        return [None]
    torch.cuda.synchronize(torch.device(device))  # shared tensors are complete
    return [torch.cuda.Stream(torch.device(device)) for _ in range(min(AT_ONCE, count))]


def _begun(number: int, batches: Sequence[Batch], stream: Any) -> _Running:
    """A batch set up on its stream; other batches may then use the shared tensors it created."""
    with nullcontext() if stream is None else torch.cuda.stream(stream):
        ensemble, saver = batches[number].begin()
        if stream is not None:
            ensemble.record()
            stream.synchronize()
    batch = batches[number]
    return _Running(number, ensemble, saver, min(batch.end, ensemble.epochs), stream, batch.until)


def epochs_within(seconds: float, each: float) -> int:
    """How many epochs of `each` seconds fit into `seconds`: at least one, at most a chunk.

    >>> epochs_within(1.0, 26.0), epochs_within(1.0, 0.3), epochs_within(1.0, 0.0)
    (1, 3, 20)
    """
    return CHUNK if each * CHUNK <= seconds else max(1, int(seconds / each))


# ---------------------------------------------------------------------- batch plan
# `Plan`: how trials are divided into batches, and the batches of a training that is resumed.
#
# How many trainings of a kind fit into memory is measured on that training, set up with one member.


@dataclass(frozen=True, eq=False)
class Plan:
    """Trials, each with its data set, in batches; the cost of every trial, and how many of its kind fit into memory."""

    each: list[NodeData]
    trials: Sequence[Trial]
    batches: list[list[int]]
    costs: list[Costs]
    fits: dict[int, int]

    def data(self, number: int) -> list[NodeData]:
        """The data sets of the members of a batch; a single one if all members share it, so that it is not copied."""
        datas = [self.each[k] for k in self.batches[number]]
        return datas[:1] if all(data is datas[0] for data in datas) else datas

    def ensemble(self, number: int, options: Mapping[str, Any]) -> Ensemble:
        """The ensemble of a batch."""
        return Ensemble(self.data(number), [self.trials[k] for k in self.batches[number]], **options)

    def queue(self, begin: Callable[[int], tuple[Ensemble, Saver]]) -> list[Batch]:
        """The batches for `run_batches`."""
        return make_queue(self.trials, self.batches, self.fits, self.costs, begin)


def make_plan(
    datas: Sequence[NodeData],
    trials: Sequence[Trial],
    options: Mapping[str, Any],
    members: int | None = None,
    only: Ensemble | None = None,
) -> Plan:
    """The fewest batches for trials on one data set or on one each; `only` is the ensemble of a single trial."""
    device = options["device"]
    each = list(datas) * len(trials) if len(datas) == 1 else list(datas)
    groups = cut_by_set(trials, grouped(trials), each, device)
    costs = Costs.each(each, device)
    heaviest = [largest(trials, group) for group in groups]
    most = [check_fit(estimate(only), device, members)] if only is not None else [
        most_members(each[k], trials[k], members, among=[each[j] for j in group], **options)
        for k, group in zip(heaviest, groups, strict=True)
    ]  # fmt: skip
    fits = {k: fit for group, fit in zip(groups, most, strict=True) for k in group}
    return Plan(each, trials, make_batches(trials, most, costs, groups), costs, fits)


def most_members(
    data: NodeData, trial: Trial, asked: int | None = None, among: Sequence[NodeData] = (), **options: Any
) -> int:
    """The most trainings of this kind in a batch whose members have the graphs of `among`; an error if none fits."""
    need = estimate(Ensemble(data, [trial], **options)).times(union_factor(data, among))
    return check_fit(need, options["device"], asked)


def make_queue(
    trials: Sequence[Trial],
    batches: Sequence[Sequence[int]],
    fits: Mapping[int, int],
    costs: Sequence[Costs],
    begin: Callable[[int], tuple[Ensemble, Saver]],
    end: int | None = None,
) -> list[Batch]:
    """The batches for `run_batches`, trained to their last epoch or to `end`.

    `fits` says how many trainings like that of a number fit into memory, `costs` what each trial costs.
    """
    queue = []
    for number, batch in enumerate(batches):
        first, efforts = trials[batch[0]].config, [trials[k].effort for k in batch]
        products = len(batch) * max(efforts) if first.model.is_padded else sum(efforts)
        costs_of = costs[batch[0]]
        fixed, product = costs_of.member(first.model)
        epochs = first.training.epochs if end is None else min(end, first.training.epochs)
        cost = epochs * (costs_of.batch + len(batch) * fixed + product * products)
        queue.append(Batch(partial(begin, number), epochs, len(batch) / fits[batch[0]], cost))
    return queue


def recorded_batches(folder: Path | None, batches: list[list[int]], tell: Callable[[str], object]) -> list[list[int]]:
    """The batches recorded when the training in this folder started; records these if there are none."""
    if folder is None:
        return batches
    path = Path(folder) / "batches.json"
    if path.exists():
        try:
            recorded = [[int(k) for k in batch] for batch in json.loads(read_text(path, "a list of batches"))]
        except (ValueError, TypeError, RecursionError):
            recorded = []
        if all(recorded) and sorted(chain(*recorded)) == sorted(chain(*batches)):
            return recorded
    try:
        write_text(path, json.dumps(batches), durable=True)
    except FileError as problem:
        tell(f"the training cannot be resumed: {problem}")
    return batches
