"""A comparison as a study: every contestant on the same splits, resumed where it was left."""

from __future__ import annotations

import math
import shutil
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import Comparison, Estimate, share_ratio, split_means
from gread.datasets.node_data import NodeData
from gread.models.batched_model import count_parameters
from gread.models.problem import check
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.presets import PUBLISHED
from gread.settings.trials import Trial, make_trials
from gread.training.ensemble import METRICS, Ensemble
from gread.training.trainer import Progress, Trained, train
from rdgraph.errors import InvalidArgument
from rdgraph.files import write_text
from rdgraph.run.engines.engine import Engine
from rdgraph.wording import counted
from studies.contest.contestants import REFERENCES, Contestant, read_contestants
from studies.runs.cell_work import each_cell
from studies.runs.chart import Chart, Line, Panel
from studies.runs.run_config import RunConfig, command_line
from studies.runs.run_folder import prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row, read_rows
from studies.runs.uncertainty import HOLDS, UNDECIDED
from studies.training.choices import parse_splits, read_pairs
from studies.training.data_source import DataSource
from studies.training.plan import MOST_SEEDS, SMALL_EPOCHS, SMALL_SPLITS, Request
from studies.training.reference_answers import article, untrained_rows
from studies.training.training_summary import result_rows

# ---------------------------------------------------------------------- contest figures
# Figures of a comparison: accuracies split by split, learning curves side by side.

#: Panels in a row, and the metrics drawn in each with their words.
COLUMNS, DRAWN = 4, {"train_accuracy": "training", "val_accuracy": "validation", "test_accuracy": "test"}


def accuracy_chart(contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]) -> Chart:
    """A dot for every split of a contestant, the mean over its seeds; and their mean and deviation."""
    each = [split_means(results[one.name]) for one in contestants]
    splits = sorted({split for own in each for split in own})
    places = np.arange(float(len(contestants)))
    means = np.array([np.mean(list(own.values())) for own in each])
    spreads = np.array([np.std(list(own.values())) for own in each])
    lines = [Line("mean", places, means, spreads, style="dots", error_name="standard deviation")]
    for k, split in enumerate(splits):
        shift = 0.5 * (k + 0.5) / len(splits) - 0.25
        values = np.array([own.get(split, np.nan) for own in each])
        lines.append(Line(f"split {split}", places + shift, values, style="dots"))
    return Chart([Panel("every split", lines, names=[one.title for one in contestants])], "network")


def curves_chart(
    contestants: Sequence[Contestant], curves: Mapping[str, Sequence[Row]], table: Sequence[Row]
) -> Chart | None:
    """A panel for every network on one scale, references as levels; None where nothing was trained."""
    flat = {one.title: _mean_of(table, one.name) for one in contestants if not curves[one.name]}
    panels = []
    for one in (one for one in contestants if curves[one.name]):
        lines = []
        for metric, word in DRAWN.items():
            own = [row for row in curves[one.name] if row["metric"] == metric]
            lines.append(Line.of(word, own, "epoch", "mean", low="low", high="high"))
        panels.append(Panel(one.title, lines, flat))
    return Chart(panels, "epoch", "accuracy, percent", columns=COLUMNS, is_shared=True) if panels else None


def _mean_of(table: Sequence[Row], name: str) -> float:
    return next(float(row["mean"]) for row in table if row["name"] == name)


# ---------------------------------------------------------------------- contest plan
# `ContestPlan`: what `rdgraph compare` is to do, with nothing left open.

#: The longest stem of a folder's name.
LONGEST = 60


@dataclass(frozen=True, eq=False)
class ContestPlan:
    """Contestants on every split of a data set with every seed from `seed` on."""

    data: NodeData
    source: DataSource
    contestants: tuple[Contestant, ...]
    splits: tuple[int, ...]
    seed: int
    seeds: int
    device: str
    small: bool = False
    preset: str = PUBLISHED
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise InvalidArgument(f"expected 1 to {MOST_SEEDS:,} seeds, got {self.seeds}")
        for split in self.splits:
            check(self.data, split)

    @property
    def dataset(self) -> str:
        return self.data.meta.name

    @property
    def run_config(self) -> RunConfig:
        """What config.toml holds: the choices, then the settings of every network."""
        head = {
            "dataset": self.dataset,
            **self.source.head(),
            "models": [one.name for one in self.contestants if not one.equation],
            "reactions": [one.equation for one in self.contestants if one.equation],
            "preset": self.preset,
            "changes": list(self.changes),
            "splits": list(self.splits),
            "seeds": self.seeds,
        }
        settings = {name: value for one in self.contestants for name, value in one.settings.items()}
        return RunConfig("compare", self.small, self.seed, self.device, sections={"settings": settings}, head=head)

    def command(self, folder: Path) -> str:
        """The line that makes the run again, which also resumes it."""
        return command_line(
            "compare", *self.source.words(), models=tuple(one.name for one in self.contestants if not one.equation),
            reaction=[one.equation for one in self.contestants if one.equation], preset=self.preset,
            set=list(self.changes), splits=self.splits, seed=self.seed, seeds=self.seeds, device=self.device,
            small=self.small, out=folder,
        )  # fmt: skip


def make_contest(
    request: Request,
    names: list[str],
    preset: str = PUBLISHED,
    changes: tuple[str, ...] = (),
    reactions: tuple[str, ...] = (),
) -> ContestPlan:
    """Resolve a request; every wrong name, split or setting is an error here, before any training.

    >>> plan = make_contest(Request(small=True), ["gcn", "labelprop"])
    >>> plan.dataset, plan.splits, plan.contestants[0].config.training.epochs
    ('karate', (0, 1, 2), 20)
    """
    source = request.source
    data = source.read()
    if request.splits is None and request.small:
        splits = tuple(k for k in SMALL_SPLITS if k < data.num_splits)
    else:
        splits = parse_splits(request.splits, data.num_splits)
    contestants = read_contestants(
        names, data.meta.name, preset=preset, changes=read_pairs(changes),
        epochs=SMALL_EPOCHS if request.small else None, is_own=source.is_own, reactions=reactions,
    )  # fmt: skip
    return ContestPlan(
        data, source, contestants, splits, request.seed, request.seeds, request.device, request.small, preset, changes
    )


def contest_folder(plan: ContestPlan, base: Path = Path("runs/compare")) -> Path:
    """base/DATASET-NAMES, cut where the names are many; the same contest finds its folder again."""
    stem = "-".join([plan.dataset, *(one.key for one in plan.contestants)])[:LONGEST].rstrip("-.")
    return base / (f"{stem}-small" if plan.small else stem)


# ---------------------------------------------------------------------- contest rows
# The numbers of a contest: results, learning curves and costs of every contestant, and one table of all.

Hears = Callable[[Progress], None]
#: Epochs that a short training is timed over.
TIMED = 5
TABLE_CAPTION = (
    "Test accuracy in percent: mean and standard deviation over the splits, each with the mean of its seeds; the "
    "difference from the first of them, split by split, with its corrected standard error (gread.comparison); "
    "parameters of one network; milliseconds of an epoch, training step and evaluation, of all its trainings together; "
    "where the settings come from; the published accuracy, where there is one."
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
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Row]], costs: Mapping[str, Row], ratio: float
) -> list[MutableRow]:
    """A row for every contestant, in their order; `ratio` is n_test/n_train."""
    first = split_means(results[contestants[0].name])
    rows: list[MutableRow] = []
    for one in contestants:
        own = results[one.name]
        score, gap, cost = Estimate.of(own), Comparison.of(split_means(own), first, ratio), costs[one.name]
        rows.append({
            "name": one.name, "method": one.title, "mean": round(score.mean, 4),
            "std": round(score.std, 4) if score.count > 1 else math.nan,
            "difference": 0.0 if one is contestants[0] else gap.difference,
            "difference_error": math.nan if one is contestants[0] else gap.error,
            "trials": len(own), "diverged": sum(row["status"] != "ok" for row in own),
            "parameters": cost["parameters"], "epochs": cost["epochs"], "ms_per_epoch": cost["ms_per_epoch"],
            "published": math.nan if one.published is None else one.published.mean, "settings": one.source,
        })  # fmt: skip
    return rows


# ---------------------------------------------------------------------- contest study
CHECKPOINTS, TABLE, BEST = "checkpoints", "table", "best.toml"


def execute_contest(
    plan: ContestPlan,
    folder: Path,
    *,
    progress: Hears | None = None,
    tell: Callable[[str], object] | None = None,
    engine: Engine | None = None,
) -> list[Row]:
    """Compare what the plan says in a folder, anew or from where it was left; returns the rows of the table.

    `progress` hears of every training, `tell` who is next; neither of what another `engine` does. Ctrl-C leaves a valid
    folder.
    """
    config = plan.run_config
    if prepare(folder, config) != "done":
        perform(contest_study(plan, progress, tell), config, folder, engine=engine)
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return list(read_rows(folder / f"{TABLE}.csv"))


def contest_study(
    plan: ContestPlan, progress: Hears | None = None, tell: Callable[[str], object] | None = None
) -> Study:
    """The study of one plan."""
    names = ", ".join(one.title for one in plan.contestants)
    return Study(
        "compare",
        f"Compared on {plan.dataset}: {names}",
        f"Which of {names} classifies the nodes of {plan.dataset} best, on the same splits, and at what cost?",
        partial(run, plan=plan, progress=progress, tell=tell),
        extra="gread",
        commands=lambda config, folder: (plan.command(folder), plan.command(folder)),
    )


def run(
    run: StudyRun, plan: ContestPlan, progress: Hears | None = None, tell: Callable[[str], object] | None = None
) -> None:
    """Train every network, ask every reference, and write tables, figures and verdicts."""
    results: dict[str, list[MutableRow]] = {}
    curves: dict[str, list[MutableRow]] = {}
    costs: dict[str, MutableRow] = {}
    here = partial(_entered, plan=plan, progress=progress, tell=tell)
    for one, entry in each_cell(run, plan.contestants, here, "contestants", partial(_entered, plan=plan)):
        results[one.name], curves[one.name], costs[one.name] = entry.results, entry.curves, entry.cost[0]
    ratio = share_ratio(plan.data)
    table = table_rows(plan.contestants, results, costs, ratio)
    first, *further = sentences(plan.contestants, results, ratio)
    run.answer(first, "accuracy")
    if further:
        run.say("Result", "\n\n".join(further))
    run.table(TABLE, table, TABLE_CAPTION)
    for one in plan.contestants:
        if one.config is not None and isinstance(one.config.model, GreadSettings):
            run.equation(one.config.model.reaction, one.title)
    caption = (
        "Test accuracy on every split (dots), the mean over its seeds; and the mean and deviation over the splits."
    )
    run.figure("accuracy", accuracy_chart(plan.contestants, results), caption)
    if (chart := curves_chart(plan.contestants, curves, table)) is not None:
        run.figure(
            "learning", chart, "Learning curves side by side: mean accuracy over the trials, band from the least to "
            "the largest; dotted, the references' mean test accuracy.",
        )  # fmt: skip
    for statement, answer, evidence in verdicts(plan.contestants, results, ratio):
        run.verdict(statement, answer, evidence)
    best = best_network(plan.contestants, results)
    if best is not None and best.config is not None:
        write_text(run.folder / BEST, best.config.toml())
        run.describe(
            BEST, f"the settings of {best.title}, the best on validation nodes; rdgraph train --preset reads it"
        )
        run.say("To predict with it", f"{train_command(plan, run.folder)} trains {best.title} and keeps its network.")
    run.results([
        {"name": one.name, **row} for one in plan.contestants for row in results[one.name]
    ])  # fmt: skip


def best_network(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Contestant | None:
    """The network with the highest mean validation accuracy over its trials, None where none has any."""
    means = {
        one.name: statistics.fmean(float(row["val_accuracy"]) for row in results[one.name])
        for one in contestants
        if one.config is not None and results[one.name]
    }
    sound = [one for one in contestants if math.isfinite(means.get(one.name, math.nan))]
    return max(sound, key=lambda one: means[one.name], default=None)


def train_command(plan: ContestPlan, folder: Path) -> str:
    """The line that trains the best network of a comparison, which leaves it for `rdgraph predict`."""
    words = plan.source.words()
    return command_line("train", *words, preset=folder / BEST, splits=plan.splits, device=plan.device)


def _entered(
    run: StudyRun,
    one: Contestant,
    *,
    plan: ContestPlan,
    progress: Hears | None = None,
    tell: Callable[[str], object] | None = None,
) -> Entry:
    """What a contestant did, computed once, and only where a part is missing."""

    @cache
    def made() -> Entry:
        if tell is not None:
            tell(f"{one.title} ({one.source or 'no settings'})")
        return enter(plan, one, run.folder / CHECKPOINTS / one.key, progress, tell)

    results = run.part(f"results-{one.key}", lambda: made().results)
    curves = run.part(f"curves-{one.key}", lambda: made().curves)
    return Entry(results, curves, run.part(f"cost-{one.key}", lambda: made().cost))


# ---------------------------------------------------------------------- words
def sentences(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]], ratio: float
) -> list[str]:
    """Who is ahead, how references and networks are to each other, and who was cut off before its time."""
    means = {one.name: split_means(results[one.name]) for one in contestants}
    average = {one.name: sum(means[one.name].values()) / len(means[one.name]) for one in contestants}
    cut = {one.name: one.cut_off(results[one.name]) for one in contestants}
    best = max(contestants, key=lambda one: average[one.name])
    alike = [one.title for one in contestants if one is not best and _is_open(means[best.name], means[one.name], ratio)]
    apart = f", not significantly different from {', '.join(alike)}" if alike else ""
    found = [f"The highest mean test accuracy is {best.title}'s, {average[best.name]:.2f} %{apart}."]
    for reference in (one for one in contestants if one.name in REFERENCES):
        for one in contestants:
            gap = Comparison.of(means[reference.name], means[one.name], ratio)
            if one.name in REFERENCES or math.isnan(gap.difference) or gap.difference == 0:
                continue
            title = reference.title.capitalize()
            if gap.answer == HOLDS:
                ended = f", {cut[one.name]}" if cut[one.name] else ""
                found.append(f"{title} beats {one.title}{ended}: {gap.text}.")
            elif gap.answer == UNDECIDED:
                found.append(f"{title} against {one.title}: {gap.text}{gap.doubt}.")
    return [*found, *budget_words(contestants, cut)]


def budget_words(contestants: Sequence[Contestant], cut: Mapping[str, str]) -> list[str]:
    """Who was trained for fewer epochs than its settings have, and whether that makes the comparison unfair."""
    short = [one for one in contestants if cut[one.name]]
    epochs = {one.config.training.epochs for one in contestants if one.config is not None}
    if not short:
        return []
    if len(epochs) == 1 and not any(one.is_published for one in short):
        return [f"All networks were trained for {epochs.pop()} epochs; the answers hold for that budget."]
    told = ", ".join(f"{one.title} was {cut[one.name]}" for one in short)
    return [f"{told}: that alone may put {'it' if len(short) == 1 else 'them'} below others."]


def contest_words(plan: ContestPlan, folder: Path) -> list[str]:
    """What a contest that is done says, for the terminal: who is ahead, then an answer for each of the others."""
    rows = read_rows(folder / "results.csv")
    results = {one.name: [row for row in rows if row["name"] == one.name] for one in plan.contestants}
    ratio = share_ratio(plan.data)
    answers = [f"{answer}: {said} {evidence}" for said, answer, evidence in verdicts(plan.contestants, results, ratio)]
    return [*sentences(plan.contestants, results, ratio), *answers]


def _is_open(best: Mapping[int, float], other: Mapping[int, float], ratio: float) -> bool:
    """Whether the difference of two is not significant."""
    return Comparison.of(best, other, ratio).answer == UNDECIDED


def verdicts(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]], ratio: float
) -> list[tuple[str, str, str]]:
    """Is the first of them significantly better than each of the others? `ratio` is n_test/n_train.

    Undecided where the one that is below was cut off before its time: it had fewer epochs than the other one, or than
    its published settings.
    """
    first, *others = contestants
    own, found = split_means(results[first.name]), []
    several = f" Not corrected for the number of comparisons, {len(others)}." if len(others) > 1 else ""
    for one in others:
        gap = Comparison.of(own, split_means(results[one.name]), ratio)
        evidence = f"Mean difference {gap.text} over {counted(gap.splits, 'split')}; {gap.test}.{several}"
        below, above = (one, first) if gap.difference > 0 else (first, one)
        answer, cut = gap.answer, below.handicap(above, results[below.name])
        if cut and answer != UNDECIDED:
            answer, evidence = UNDECIDED, f"{evidence} {below.title} was {cut}."
        statement = f"{first.title} is more accurate than {article(one.title)} on the same splits."
        found.append((statement, answer, evidence))
    return found
