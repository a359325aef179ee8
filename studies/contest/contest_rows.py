"""The numbers of a contest: results, learning curves and costs of every contestant, and one table of all."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gread.models.parameter_count import count_parameters
from gread.settings.config import Config
from gread.settings.trials import Trial, make_trials
from gread.training.ensemble import METRICS, Ensemble
from gread.training.trainer import Progress, Trained, train
from studies.contest.contest_plan import ContestPlan
from studies.contest.contestants import Contestant
from studies.runs.pairing import Paired, split_means
from studies.runs.tables import MutableRow, Row
from studies.runs.uncertainty import standard_error
from studies.training.reference_answers import untrained_rows
from studies.training.rows import result_rows

Hears = Callable[[Progress], None]
#: Epochs that a short training is timed over.
TIMED = 5
TABLE_CAPTION = (
    "Test accuracy in percent: mean over all trials, population standard deviation, and the standard error of the mean "
    "over the splits; the difference from the first of them, split by split, with its standard error; parameters of "
    "one network; milliseconds of an epoch, training step and evaluation, of all its trainings together; where the "
    "settings come from; the published accuracy, where there is one."
)


@dataclass(eq=False)
class Pace:
    """Milliseconds of an epoch, from what a training tells of itself; set-up and earlier runs do not count."""

    hears: Hears | None = None
    first: Progress | None = None
    last: Progress | None = None

    def __call__(self, told: Progress) -> None:
        self.first, self.last = self.first or told, told
        if self.hears is not None:
            self.hears(told)

    @property
    def milliseconds(self) -> float:
        """Between the first and the last thing heard; nan where there were not two."""
        if self.first is None or self.last is None or self.last.epoch == self.first.epoch:
            return math.nan
        return 1e3 * (self.last.seconds - self.first.seconds) / (self.last.epoch - self.first.epoch)


def timed(plan: ContestPlan, trials: Sequence[Trial]) -> float:
    """Milliseconds of an epoch of a few, for trainings that were too short to tell."""
    ensemble = Ensemble(plan.data, trials, device=plan.device, keep_best=False)
    ensemble.advance(1)
    done, began = ensemble.epoch, time.perf_counter()
    ensemble.advance(TIMED)
    return 1e3 * (time.perf_counter() - began) / max(1, ensemble.epoch - done)


@dataclass(frozen=True, eq=False)
class Entry:
    """What one contestant did: rows of results, of mean learning curves, and one row of costs."""

    results: list[MutableRow]
    curves: list[MutableRow]
    cost: list[MutableRow]


def enter(
    plan: ContestPlan,
    one: Contestant,
    checkpoint: Path,
    hears: Hears | None = None,
    tell: Callable[[str], object] | None = None,
) -> Entry:
    """Train a network, or let a reference answer, on all splits of the plan."""
    if one.config is None:
        rows = untrained_rows(plan.data, plan.splits, [one.title])
        results: list[MutableRow] = [
            {
                "split": row["split"], "seed": plan.seed, "best_epoch": 0, "val_accuracy": row["val_accuracy"],
                "test_accuracy": row["test_accuracy"], "status": "ok",
            }
            for row in rows
        ]  # fmt: skip
        return Entry(results, [], [{"parameters": 0, "epochs": 0, "ms_per_epoch": math.nan}])
    trials = make_trials(one.config, plan.splits, range(plan.seed, plan.seed + plan.seeds))
    pace = Pace(hears)
    done = train(
        plan.data, trials, device=plan.device, checkpoint=checkpoint, progress=pace, tell=tell or warnings.warn,
        keep_best=False,
    )  # fmt: skip
    cost: MutableRow = {
        "parameters": _parameters(plan, one.config), "epochs": done.history.shape[1],
        "ms_per_epoch": round(timed(plan, trials) if math.isnan(pace.milliseconds) else pace.milliseconds, 3),
    }  # fmt: skip
    return Entry([dict(row) for row in result_rows(done)], curve_rows(done), [cost])


def _parameters(plan: ContestPlan, config: Config) -> int:
    data = plan.data
    return count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)


def curve_rows(done: Trained) -> list[MutableRow]:
    """Mean, least and largest of every metric over the trials that are still numbers, epoch by epoch."""
    rows: list[MutableRow] = []
    for k, metric in enumerate(METRICS):
        values = done.history[:, :, k].astype(float) * (1 if metric == "loss" else 100)
        for epoch, column in enumerate(values.T, start=1):
            there = column[np.isfinite(column)]
            if there.size:
                mean, low, high = float(there.mean()), float(there.min()), float(there.max())
                rows.append({"metric": metric, "epoch": epoch, "mean": mean, "low": low, "high": high})
    return rows


def table_rows(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Row]], costs: Mapping[str, Row]
) -> list[MutableRow]:
    """A row for every contestant, in their order."""
    first = split_means(results[contestants[0].name])
    rows: list[MutableRow] = []
    for one in contestants:
        own = results[one.name]
        accuracy, means = 100 * np.array([float(row["test_accuracy"]) for row in own]), split_means(own)
        gap, cost = Paired.of(means, first), costs[one.name]
        spread = np.array(list(means.values()))
        rows.append({
            "name": one.name, "method": one.title, "mean": round(float(accuracy.mean()), 4),
            "std": round(float(accuracy.std()), 4), "error": standard_error(float(spread.std()), len(spread)),
            "difference": 0.0 if one is contestants[0] else gap.difference,
            "difference_error": math.nan if one is contestants[0] else gap.error,
            "trials": len(own), "diverged": sum(row["status"] != "ok" for row in own),
            "parameters": cost["parameters"], "epochs": cost["epochs"], "ms_per_epoch": cost["ms_per_epoch"],
            "published": math.nan if one.published is None else one.published.mean, "settings": one.source,
        })  # fmt: skip
    return rows
