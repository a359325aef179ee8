"""A comparison as a study: every contestant on the same splits, resumable."""

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
from studies.runs.chart import Bar, Bars, Chart, Line, Panel
from studies.runs.run_config import RunConfig, command_line, prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row, read_rows
from studies.runs.uncertainty import HOLDS, UNDECIDED
from studies.runs.word_sheets import WordSheet
from studies.training.choices import parse_splits, read_pairs
from studies.training.data_source import DataSource
from studies.training.plan import MOST_SEEDS, SMALL_EPOCHS, SMALL_SPLITS, Request
from studies.training.reference_answers import BOTH_WAYS, article, data_seen_by, untrained_rows
from studies.training.training_summary import result_rows

# ---------------------------------------------------------------------- contest figures
# Figures of a comparison: accuracies by split, and learning curves side by side.

SHEET = WordSheet("contest", "words")
#: Panels in a row, and the metrics drawn in each with their labels.
COLUMNS, DRAWN = 4, {"train_accuracy": "training", "val_accuracy": "validation", "test_accuracy": "test"}


def accuracy_bars(contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]) -> Bars:
    """For every contestant its mean accuracy, a line of one standard deviation over the splits, and the splits."""
    bars = []
    for one in contestants:
        values = np.array(list(split_means(results[one.name]).values()))
        mean, std = float(values.mean()), float(values.std())
        bars.append(Bar(one.title, mean, mean - std, mean + std, points=tuple(values.tolist())))
    return Bars(bars, "test accuracy, percent", from_zero=False)


def curves_chart(
    contestants: Sequence[Contestant], curves: Mapping[str, Sequence[Row]], table: Sequence[Row]
) -> Chart | None:
    """A panel for every network on one scale, with baselines as levels; None if nothing was trained."""
    means = {row["name"]: row["mean"] for row in reversed(table)}
    flat = {one.title: float(means[one.name]) for one in contestants if not curves[one.name]}
    panels = []
    for one in (one for one in contestants if curves[one.name]):
        lines = []
        for metric, word in DRAWN.items():
            rows = [row for row in curves[one.name] if row["metric"] == metric]
            lines.append(Line.of(word, rows, "epoch", "mean", low="low", high="high"))
        panels.append(Panel(one.title, lines, flat))
    return Chart(panels, "epoch", "accuracy, percent", columns=COLUMNS, is_shared=True) if panels else None


# ---------------------------------------------------------------------- contest plan
# `ContestPlan`: a fully resolved comparison.

#: Largest length of the stem of a folder's name.
LONGEST = 60


@dataclass(frozen=True, eq=False)
class ContestPlan:
    """Contestants on every split of a data set, with `seeds` seeds from `seed` on."""

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
        """Contents of config.toml: the choices, then the settings of every network."""
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
        """The command that repeats the run, and also resumes it."""
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
    """Plan of a request; wrong names, splits and settings raise here, before any training.

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
    """base/DATASET-NAMES, shortened for many names; the same comparison has the same folder."""
    stem = "-".join([plan.dataset, *(one.key for one in plan.contestants)])[:LONGEST].rstrip("-.")
    return base / (f"{stem}-small" if plan.small else stem)


# ---------------------------------------------------------------------- contest rows
# Rows of a comparison: results, learning curves and costs of every contestant, and one table.

OnProgress = Callable[[Progress], None]
#: Number of epochs that time a short training.
TIMED = 5


@dataclass(eq=False)
class Pace:
    """Milliseconds of an epoch, from the progress of a training; set-up and earlier runs do not count."""

    callback: OnProgress | None = None
    first: Progress | None = None
    last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self.first, self.last = self.first or progress, progress
        if self.callback is not None:
            self.callback(progress)

    @property
    def milliseconds(self) -> float:
        """Mean time of an epoch between the first and the last progress; nan without two."""
        if self.first is None or self.last is None or self.last.epoch == self.first.epoch:
            return math.nan
        return 1e3 * (self.last.seconds - self.first.seconds) / (self.last.epoch - self.first.epoch)


def timed(plan: ContestPlan, data: NodeData, trials: Sequence[Trial]) -> float:
    """Milliseconds of an epoch, measured separately for very short trainings."""
    ensemble = Ensemble(data, trials, device=plan.device, keep_best=False)
    ensemble.advance(1)
    done, began = ensemble.epoch, time.perf_counter()
    ensemble.advance(TIMED)
    return 1e3 * (time.perf_counter() - began) / max(1, ensemble.epoch - done)


@dataclass(frozen=True, eq=False)
class Entry:
    """Rows of one contestant: results, mean learning curves, and one row of costs."""

    results: list[MutableRow]
    curves: list[MutableRow]
    cost: list[MutableRow]


def enter(
    plan: ContestPlan,
    one: Contestant,
    checkpoint: Path,
    progress: OnProgress | None = None,
    tell: Callable[[str], object] | None = None,
) -> Entry:
    """Rows of a network or a baseline on all splits of the plan."""
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
    pace, data = Pace(progress), data_seen_by(one.config.model, plan.data)
    done = train(
        data, trials, device=plan.device, checkpoint=checkpoint, progress=pace, tell=tell or warnings.warn,
        keep_best=False,
    )  # fmt: skip
    cost: MutableRow = {
        "parameters": _parameters(data, one.config), "epochs": done.history.shape[1],
        "ms_per_epoch": round(timed(plan, data, trials) if math.isnan(pace.milliseconds) else pace.milliseconds, 3),
        "both_ways": int(data is not plan.data),
    }  # fmt: skip
    return Entry([dict(row) for row in result_rows(done)], curve_rows(done), [cost])


def _parameters(data: NodeData, config: Config) -> int:
    return count_parameters(config.model, data.graph, features=data.num_features, classes=data.num_classes)


def curve_rows(done: Trained) -> list[MutableRow]:
    """Mean, least and largest finite value of every metric over the trials, by epoch."""
    rows: list[MutableRow] = []
    for k, metric in enumerate(METRICS):
        values = done.history[:, :, k].astype(float) * (1 if metric == "loss" else 100)
        for epoch, column in enumerate(values.T, start=1):
            finite = column[np.isfinite(column)]
            if finite.size:
                mean, low, high = float(finite.mean()), float(finite.min()), float(finite.max())
                rows.append({"metric": metric, "epoch": epoch, "mean": mean, "low": low, "high": high})
    return rows


def table_rows(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Row]], costs: Mapping[str, Row], ratio: float
) -> list[MutableRow]:
    """A row for every contestant; `ratio` is n_test/n_train."""
    first = split_means(results[contestants[0].name])
    rows: list[MutableRow] = []
    for one in contestants:
        trials = results[one.name]
        score, gap, cost = Estimate.of(trials), Comparison.of(split_means(trials), first, ratio), costs[one.name]
        rows.append({
            "method": one.title, "mean": round(score.mean, 4),
            "std": round(score.std, 4) if score.count > 1 else math.nan,
            "difference": math.nan if one is contestants[0] else round(gap.difference, 6) + 0.0,
            "difference_error": math.nan if one is contestants[0] else gap.error,
            "parameters": cost["parameters"], "ms_per_epoch": cost["ms_per_epoch"], "epochs": cost["epochs"],
            "published": math.nan if one.published is None else one.published.mean,
            "trials": len(trials), "diverged": sum(row["status"] != "ok" for row in trials), "name": one.name,
            "settings": one.source + BOTH_WAYS * int(cost.get("both_ways", 0)),
        })  # fmt: skip
    return rows


# ---------------------------------------------------------------------- contest study
CHECKPOINTS, TABLE, BEST = "checkpoints", "table", "best.toml"


def execute_contest(
    plan: ContestPlan,
    folder: Path,
    *,
    progress: OnProgress | None = None,
    tell: Callable[[str], object] | None = None,
    engine: Engine | None = None,
) -> list[Row]:
    """Rows of the table of a comparison, run in a new folder or resumed in its own.

    `progress` is called with the progress of every training and `tell` with the next contestant, unless another
    `engine` computes them. Ctrl-C leaves a valid folder.
    """
    config = plan.run_config
    if prepare(folder, config) != "done":
        perform(contest_study(plan, progress, tell), config, folder, engine=engine)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # also those of a run killed after its last file
    return list(read_rows(folder / f"{TABLE}.csv"))


def contest_study(
    plan: ContestPlan, progress: OnProgress | None = None, tell: Callable[[str], object] | None = None
) -> Study:
    """The study of one plan."""
    names = ", ".join(one.title for one in plan.contestants)
    return Study(
        "compare",
        f"{len(plan.contestants)} methods compared on {plan.dataset}",
        f"Which of {names} classifies the nodes of {plan.dataset} best, on the same splits, and at what cost?",
        partial(run, plan=plan, progress=progress, tell=tell),
        extra="gread",
        commands=lambda config, folder: (plan.command(folder), plan.command(folder)),
    )


def run(
    run: StudyRun, plan: ContestPlan, progress: OnProgress | None = None, tell: Callable[[str], object] | None = None
) -> None:
    """Train the networks, evaluate the baselines, and write tables, figures and verdicts."""
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
        run.say("Baselines and budgets", "\n\n".join(further))
    run.table(TABLE, table, SHEET.text("table"))
    for one in plan.contestants:
        if one.config is not None and isinstance(one.config.model, GreadSettings):
            run.equation(one.config.model.reaction, one.title)
    caption = SHEET.text("accuracy")
    run.figure("accuracy", accuracy_bars(plan.contestants, results), caption)
    if (chart := curves_chart(plan.contestants, curves, table)) is not None:
        run.figure("learning", chart, SHEET.text("learning"))
    for statement, answer, evidence in verdicts(plan.contestants, results, ratio):
        run.verdict(statement, answer, evidence)
    best = best_network(plan.contestants, results)
    if best is not None and best.config is not None:
        write_text(run.folder / BEST, best.config.toml())
        run.describe(
            BEST, f"the settings of {best.title}, the best by validation accuracy; rdgraph train --preset reads it"
        )
        run.say("Train the best network", f"`{train_command(plan, run.folder)}` trains {best.title} and stores it.")
    run.results([
        {"name": one.name, **row} for one in plan.contestants for row in results[one.name]
    ])  # fmt: skip


def best_network(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Contestant | None:
    """The network with the highest mean validation accuracy over its trials; None without one."""
    means = {
        one.name: statistics.fmean(float(row["val_accuracy"]) for row in results[one.name])
        for one in contestants
        if one.config is not None and results[one.name]
    }
    sound = [one for one in contestants if math.isfinite(means.get(one.name, math.nan))]
    return max(sound, key=lambda one: means[one.name], default=None)


def train_command(plan: ContestPlan, folder: Path) -> str:
    """The command that trains the best network of a comparison, for `rdgraph predict`."""
    words = plan.source.words()
    return command_line("train", *words, preset=folder / BEST, splits=plan.splits, device=plan.device)


def _entered(
    run: StudyRun,
    one: Contestant,
    *,
    plan: ContestPlan,
    progress: OnProgress | None = None,
    tell: Callable[[str], object] | None = None,
) -> Entry:
    """Rows of a contestant, computed once, and only if a part is missing."""

    @cache
    def computed() -> Entry:
        if tell is not None:
            tell(f"{one.title}, settings: {one.source}" if one.source else one.title)
        return enter(plan, one, run.folder / CHECKPOINTS / one.key, progress, tell)

    results = run.part(f"results-{one.key}", lambda: computed().results)
    curves = run.part(f"curves-{one.key}", lambda: computed().curves)
    return Entry(results, curves, run.part(f"cost-{one.key}", lambda: computed().cost))


# ---------------------------------------------------------------------- words
def sentences(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]], ratio: float
) -> list[str]:
    """The best method, how baselines compare with networks, and whose training was shortened."""
    means = {one.name: split_means(results[one.name]) for one in contestants}
    average = {one.name: sum(means[one.name].values()) / len(means[one.name]) for one in contestants}
    cut = {one.name: one.cut_off(results[one.name]) for one in contestants}
    best = max(contestants, key=lambda one: average[one.name])
    alike = [one.title for one in contestants if one is not best and _is_open(means[best.name], means[one.name], ratio)]
    if alike and len(alike) == len(contestants) - 1:
        apart = f", but no difference is significant over {counted(len(means[best.name]), 'split')}"
    else:
        apart = f", not significantly different from {', '.join(alike)}" if alike else ""
    first = best.title[:1].upper() + best.title[1:]
    texts = [f"{first} has the highest mean test accuracy ({average[best.name]:.2f} %){apart}."]
    for reference in (one for one in contestants if one.name in REFERENCES):
        title, undecided = reference.title.capitalize(), []
        for one in contestants:
            gap = Comparison.of(means[reference.name], means[one.name], ratio)
            if one.name in REFERENCES or math.isnan(gap.difference) or gap.difference == 0:
                continue
            if gap.answer == HOLDS:
                ended = f", {cut[one.name]}" if cut[one.name] else ""
                texts.append(f"{title} beats {one.title}{ended}: {gap.text}.")
            elif gap.answer == UNDECIDED:
                undecided.append(one.title)
        if undecided:
            texts.append(f"{title} is not significantly different from {', '.join(undecided)}.")
    return [*texts, *budget_words(contestants, cut)]


def budget_words(contestants: Sequence[Contestant], cut: Mapping[str, str]) -> list[str]:
    """Which networks were trained for fewer epochs than planned, and whether that makes the comparison unfair."""
    short = [one for one in contestants if cut[one.name]]
    epochs = {one.config.training.epochs for one in contestants if one.config is not None}
    if not short:
        return []
    if len(epochs) == 1 and not any(one.is_published for one in short):
        return [f"All networks were trained for {epochs.pop()} epochs; the verdicts hold for that budget."]
    listed = ", ".join(f"{one.title} was {cut[one.name]}" for one in short)
    return [f"{listed}: that alone may explain a lower accuracy."]


def contest_words(plan: ContestPlan, folder: Path) -> list[str]:
    """Results of a finished comparison for the terminal: the best method, then a verdict for each of the others."""
    rows = read_rows(folder / "results.csv")
    results = {one.name: [row for row in rows if row["name"] == one.name] for one in plan.contestants}
    ratio = share_ratio(plan.data)
    answers = [f"{answer}: {text}" for text, answer, _ in verdicts(plan.contestants, results, ratio)]
    return [*sentences(plan.contestants, results, ratio), *answers]


def _is_open(best: Mapping[int, float], other: Mapping[int, float], ratio: float) -> bool:
    """Whether the difference of two is not significant."""
    return Comparison.of(best, other, ratio).answer == UNDECIDED


def verdicts(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]], ratio: float
) -> list[tuple[str, str, str]]:
    """Verdicts: is the first method significantly better than each of the others? `ratio` is n_test/n_train.

    Undecided if the worse method was trained for fewer epochs than the other, or than its published settings.
    """
    first, *others = contestants
    accuracies, answers = split_means(results[first.name]), []
    several = f" Not corrected for the number of comparisons, {len(others)}." if len(others) > 1 else ""
    for one in others:
        gap = Comparison.of(accuracies, split_means(results[one.name]), ratio)
        evidence = f"Mean difference {gap.text} over {counted(gap.splits, 'split')}; {gap.test}.{several}"
        below, above = (one, first) if gap.difference > 0 else (first, one)
        answer, cut = gap.answer, below.handicap(above, results[below.name])
        if cut and answer != UNDECIDED:
            answer, evidence = UNDECIDED, f"{evidence} {below.title} was {cut}."
        statement = f"{first.title} is more accurate than {article(one.title)} on the same splits."
        answers.append((statement, answer, evidence))
    return answers
