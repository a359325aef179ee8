"""Batches trained side by side: one after the other on a CPU, several at once on a GPU, each on a stream of its own.

An epoch of a small batch leaves most of a GPU idle while it waits for the next launch; others then run in the gaps. A
batch is given epochs for about a second. Once they are done it is looked at and begins its next ones, while the others
are still under way, and further batches are set up in the meantime, so that one thread of the host keeps all of them
busy. What a batch computes does not depend on the others.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
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
#: Seconds between two looks at a training: whether to tell of it, to save it, or to stop.
LOOK = 1.0
#: Seconds between two questions whether a batch on a GPU has done its epochs.
PAUSE = 0.0005
#: Most batches that are under way at once on a GPU.
AT_ONCE = 16


class Batch(NamedTuple):
    """A batch to be trained: how it is begun, up to which epoch, and what it takes.

    `begin` makes the ensemble and its checkpoint, `end` ends the training, at most at the ensemble's own end, `share`
    is the part of the free memory that it takes, `cost` what it costs, to begin with the longest. After the time
    `until` of the monotonic clock no further epochs are begun.
    """

    begin: Callable[[], tuple[Ensemble, Saver]]
    end: int
    share: float = 1.0
    cost: float = 0.0
    until: float = math.inf


@dataclass(eq=False)
class _Running:
    """A batch under way; `begun` epochs were begun at the time `since` and not looked at yet, `mark` is their end."""

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
        """The stream of the batch, where there is one."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    @property
    def is_under_way(self) -> bool:
        """Whether the epochs that were begun are not done yet."""
        return self.mark is not None and not self.mark.query()

    def look(self, report: Callable[[int, Ensemble], None]) -> None:
        """Wait for the epochs that were begun, and tell of them."""
        if not self.begun:
            return
        self.ensemble.settle()
        _ = self.ensemble.epoch  # waits for the device
        self.count = epochs_within(LOOK, (time.monotonic() - self.since) / self.begun)
        self.begun = 0
        self.saver.tick()
        report(self.number, self.ensemble)

    def go_on(self) -> bool:
        """Begin the next epochs; False where nothing is left to do."""
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
    """Train batches to their ends, as many at once as the memory holds on a GPU.

    One that finds less memory than was planned, as other programs took it, waits until another batch has ended.

    Args:
        batches: What is trained.
        device: Where.
        report: Hears the number of a batch and its ensemble at every look.
        finish: Hears of a batch that is done, which is then forgotten.
        tell: Hears that an interruption came, which waits for the end of the epochs and their checkpoints.
    """
    waiting = list(range(len(batches)))
    if device.startswith("cuda"):
        waiting.sort(key=lambda k: -batches[k].cost)
    streams = _streams(device, len(batches))
    running: list[_Running] = []
    most = len(streams)
    with patient(lambda: tell("stopping at the end of this epoch; Ctrl-C again stops at once")) as interruption:
        while waiting or running:
            taken = sum(batches[run.number].share for run in running)
            if waiting and len(running) < most and (not running or taken + batches[waiting[0]].share <= 1):
                try:
                    running.append(_begun(waiting[0], batches, streams[-1]))
                except torch.OutOfMemoryError:
                    if not running:
                        raise
                    most = len(running)
                else:
                    waiting.pop(0)
                    streams.pop()
            elif all(run.is_under_way for run in running):
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
    """Look at every batch that has done its epochs, and let it go on; all but those that are at their end, and the
    streams of these, of which nothing is kept.

    Once an interruption waits, no further epochs are begun.
    """
    going, free = [], []
    for run in running:
        if run.is_under_way:
            going.append(run)
            continue
        with run.within():
            run.look(report)
            if interruption.is_waiting or run.go_on():
                going.append(run)
                continue
            finish(run.number, run.ensemble, run.saver)
        free.append(run.stream)
    return going, free


def _streams(device: str, count: int) -> list[Any]:
    """One place for every batch that may be under way at once: a stream of a GPU, and one of a CPU, which has none."""
    if not device.startswith("cuda"):
        return [None]
    torch.cuda.synchronize(torch.device(device))  # what was made for all so far is there
    return [torch.cuda.Stream(torch.device(device)) for _ in range(min(AT_ONCE, count))]


def _begun(number: int, batches: Sequence[Batch], stream: Any) -> _Running:
    """A batch set up on its stream; others may then use what it left in memory for all."""
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
# `Plan`: how trials become batches that are trained beside each other, and the batches of a training that goes on.
#
# How many trainings like one the memory holds is measured on that training, set up with one member.


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
    """The batches recorded when the training in this folder began, even if they no longer fit; else these, recorded."""
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
