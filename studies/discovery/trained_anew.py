"""Trainings after a search over equations: reactions of the paper beside the choice, and the choice anew."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.discovery.discovery_plan import DiscoveryProgress
from gread.discovery.line_training import line_config
from gread.discovery.term_grammar import Line
from gread.discovery.winner_checks import fresh_splits, retrained
from gread.settings.config import Config
from gread.training.trainer import Progress
from studies.cells.corrected_test import share_ratio
from studies.discovery import discovery_rows as rows_of
from studies.discovery.discovery_task import DiscoveryTask
from studies.discovery.discovery_words import CursePart, Yardsticks
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

#: The reactions of the GREAD paper, which the chosen equation is compared with, and the first of them.
REACTIONS = ("BS", "F", "AC", "Z", "ST", "FB", "FB*")
#: What the chosen equation is called among retrained ones.
CHOSEN = "chosen"


class AnewProgress(NamedTuple):
    """How far a training after the search is: what is trained, epochs of all its batches, seconds."""

    what: str
    trials: float
    total: int
    seconds: float


@dataclass(frozen=True)
class Listener:
    """Who hears how far a search and the trainings after it are, and what is worth a sentence."""

    progress: Callable[[DiscoveryProgress | AnewProgress], None] | None = None
    tell: Callable[[str], object] = warnings.warn

    def training(self, what: str) -> Callable[[Progress], None] | None:
        """Who hears of one training."""
        if (hear := self.progress) is None:
            return None
        return lambda now: hear(AnewProgress(what, now.epoch, now.epochs, now.seconds))


@dataclass(frozen=True, eq=False)
class TrainedAnew:
    """The trainings that follow a choice, each a part of the run that is computed once."""

    run: StudyRun
    task: DiscoveryTask
    best: Line
    listener: Listener

    def yardsticks(self) -> Yardsticks:
        """The reactions of the paper on the same splits, with the same seed and settings."""
        plan = self.task.plan
        configs = reaction_configs(plan.base)
        rows = self._part("reactions", "reactions of the paper", plan.data, configs, plan.splits, [plan.seed])
        return Yardsticks(rows_of.read_retrained(rows), share_ratio(plan.data))

    def curse(self) -> CursePart:
        """The choice and BS, trained anew with fresh seeds on the same splits, and on fresh splits."""
        plan, fresh = self.task.plan, self.task.request.fresh
        parts = {}
        if fresh:
            seeds = range(plan.seed + 1, plan.seed + 1 + fresh)
            drawn = fresh_splits(plan.data, len(plan.splits), plan.seed)
            parts = {
                "fresh_seeds": self._part(
                    "fresh_seeds", "the choice and BS, fresh seeds", plan.data, self._pair(), plan.splits, seeds
                ),
                "fresh_splits": self._part(
                    "fresh_splits", "the choice and BS, fresh splits", drawn, self._pair(), range(drawn.num_splits),
                    seeds[:1],
                ),
            }  # fmt: skip
        return CursePart({name: rows_of.read_retrained(rows) for name, rows in parts.items()}, share_ratio(plan.data))

    def transfers(self) -> dict[str, Yardsticks]:
        """The choice, untouched, on other data sets, beside BS there."""
        moved = {}
        for name in self.task.request.transfer:
            data = load_dataset(name, root=self.task.request.root, offline=True)
            rows = self._part(
                f"transfer_{name}", f"the choice and BS on {name}", data, self._pair(), range(data.num_splits),
                [self.task.plan.seed],
            )  # fmt: skip
            moved[name] = Yardsticks(rows_of.read_retrained(rows), share_ratio(data))
        return moved

    def _pair(self) -> dict[str, Config]:
        base = self.task.plan.base
        return {CHOSEN: line_config(base, self.best), **reaction_configs(base, REACTIONS[:1])}

    def _part(
        self, name: str, what: str, data: NodeData, configs: Mapping[str, Config], splits: Sequence[int],
        seeds: Sequence[int],
    ) -> list[Row]:  # fmt: skip
        train = partial(
            retrained, data, configs, splits, seeds, device=self.task.request.device, tell=self.listener.tell,
            progress=self.listener.training(what),
        )  # fmt: skip
        return list(self.run.part(name, lambda: rows_of.retrained_rows(train())))


def reaction_configs(base: Config, names: tuple[str, ...] = REACTIONS) -> dict[str, Config]:
    """Reactions of the paper in the same network: coefficients as the base has them."""
    return {name: base.updated({"reaction": name}) for name in names}
