"""`Plan`: how trials become batches that are trained beside each other, and the batches of a training that goes on.

How many trainings like one the memory holds is measured on that training, set up with one member.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gread.datasets.node_data import NodeData
from gread.settings.trials import Trial, grouped
from gread.training.batch_queue import Batch
from gread.training.checkpoint import Saver
from gread.training.ensemble import Ensemble
from gread.training.planner import Costs, check_fit, cut_by_set, estimate, largest, make_batches, union_factor
from rdgraph.errors import FileError
from rdgraph.files import read_text, write_text


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
