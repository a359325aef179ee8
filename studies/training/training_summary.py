"""The result of a training: its accuracy in words and rows, compared with the published one, and the verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import ERRORS, FAILS, HOLDS, SPLITS, Estimate, Gap, share_ratio
from gread.models.resolution import divergence_remedy
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import ModelSettings
from gread.settings.presets import PUBLISHED, Published
from gread.training.ensemble import METRICS
from gread.training.trainer import Trained
from rdgraph.errors import FileError
from rdgraph.files import replacing
from rdgraph.wording import counted
from studies.runs.report import ReportVerdict
from studies.runs.tables import Row, read_rows
from studies.runs.word_sheets import WordSheet
from studies.training.plan import TrainingPlan
from studies.training.reference_answers import NETWORKS, Reference, compare, cut_off, fair_answer

# ---------------------------------------------------------------------- rows
# Rows of a training: results by trial, metrics by trial and epoch.

RESULT_COLUMNS = ("split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status")


def result_rows(done: Trained) -> list[Row]:
    """Rows of results.csv, one per trial."""
    return [{name: row[name] for name in RESULT_COLUMNS} for row in done.rows()]  # type: ignore[misc]


def read_results(folder: Path, plan: TrainingPlan) -> list[Row]:
    """Rows of results.csv of a finished run, checked against the trials of the plan."""
    path = folder / "results.csv"
    rows = read_rows(path)
    trials = [(trial.split, trial.seed) for trial in plan.trials]
    fits = all(tuple(row) == RESULT_COLUMNS and _is_result(row) for row in rows)
    if not fits or [(row["split"], row["seed"]) for row in rows] != trials:
        raise FileError(
            f"{path} was changed and does not match the {len(trials)} trials of the run; delete the folder and train "
            "again"
        )
    return list(rows)


def _is_result(row: Row) -> bool:
    """Whether a row has a text as status and numbers elsewhere."""
    return all(isinstance(value, str) == (name == "status") for name, value in row.items())


def first_sound(done: Trained) -> int | None:
    """Index of the first trial that did not diverge; None if all did."""
    return next(iter(sound_trials(done)), None)


def sound_trials(done: Trained) -> list[int]:
    """Indices of the trials that did not diverge."""
    return [k for k, status in enumerate(done.status) if status == "ok"]


def in_percent(row: Row) -> dict[str, Any]:
    """A row with its accuracies in percent.

    >>> in_percent({"split": 0, "test_accuracy": 0.5})
    {'split': 0, 'test_accuracy': 50.0}
    """
    return {name: 100 * float(value) if name.endswith("_accuracy") else value for name, value in row.items()}


def metric_columns(done: Trained) -> dict[str, np.ndarray]:
    """All metrics by trial and epoch, as columns of one length; epochs count from 1."""
    members, epochs, _ = done.history.shape
    columns = {
        "split": np.repeat(np.array([t.split for t in done.trials], dtype=np.int32), epochs),
        "seed": np.repeat(np.array([t.seed for t in done.trials], dtype=np.int32), epochs),
        "epoch": np.tile(np.arange(1, epochs + 1, dtype=np.int32), members),
    }
    return columns | {name: done.history[:, :, k].reshape(-1) for k, name in enumerate(METRICS)}


def write_metrics(path: Path, done: Trained) -> None:
    """Write metrics.parquet with a row for every trial and epoch."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(metric_columns(done))
    with replacing(path) as draft:
        parquet.write_table(table, draft, compression="zstd")


# ---------------------------------------------------------------------- summary
SHEET = WordSheet("training", "words")
#: Prefixes of presets that belong to a published number.
AS_PUBLISHED = ("paper/", f"{PUBLISHED}/")


@dataclass(frozen=True)
class Summary:
    """Test accuracy in percent over all trials, the published one if any, and the baselines.

    `metric` names the metric of the data set, which replaces accuracy everywhere. `cut` says how the training was
    shortened, `preset` names settings that are not published; both may be "". `std` is the population standard
    deviation over the splits (mean over seeds within a split), or over the seeds for a single split. `gread.comparison`
    explains the comparisons.
    """

    mean: float
    std: float
    trials: int
    splits: int
    diverged: tuple[str, ...]
    published: Published | None
    error: float
    references: tuple[Reference, ...] = ()
    metric: str = "accuracy"
    #: Number of standard errors up to which a difference from the published accuracy counts as chance.
    chance: float = ERRORS
    cut: str = ""
    preset: str = ""
    #: What to try next, or "".
    advice: str = ""

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]],
        published: Published | None = None,
        references: Sequence[Mapping[str, Any]] = (),
        metric: str = "accuracy",
        cut: str = "",
        preset: str = "",
        ratio: float = math.nan,
    ) -> Summary:
        """Summary of the rows of results.csv and references.csv; baselines need `ratio`, n_test/n_train.

        >>> rows = [dict(split=k, seed=0, test_accuracy=a, status="ok") for k, a in enumerate((0.8, 0.9))]
        >>> found = Summary.of(rows, Published("GREAD-BS", "cora", 86.0, 3.0, "paper"))
        >>> found.text, round(found.difference, 2), round(found.error, 3)
        ('85.00 ± 5.00', -1.0, 5.099)
        """
        accuracy = 100 * np.array([float(row["test_accuracy"]) for row in rows])
        group = Estimate.of(rows)
        std = group.std if group.count > 1 else float(accuracy.std())
        bad = tuple(f"split {r['split']} seed {r['seed']}: {r['status']}" for r in rows if r["status"] != "ok")
        error, chance = math.nan, ERRORS
        if published is not None and published.std is not None:
            gap = Gap.between(group, published.mean, published.std)
            error, chance = gap.error, gap.chance
        return cls(
            group.mean, std, len(rows), group.count, bad, published, error,
            compare(rows, references, ratio, cut), metric, chance, cut, preset,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The mean, with the standard deviation if there are several trials."""
        return f"{self.mean:.2f}" if self.trials == 1 else f"{self.mean:.2f} ± {self.std:.2f}"

    @property
    def difference(self) -> float:
        return math.nan if self.published is None else self.mean - self.published.mean

    @property
    def with_preset(self) -> str:
        """The settings in words, if they are not published."""
        return f" with the preset {self.preset}" if self.preset else ""

    @property
    def all_diverged(self) -> bool:
        """Whether every trial diverged."""
        return len(self.diverged) == self.trials

    def sentences(self) -> list[str]:
        """The result in sentences."""
        over = f"{counted(self.trials, 'trial')} on {counted(self.splits, 'split')}"
        units = "splits" if self.splits > 1 else "seeds"
        what = over if self.trials == 1 else f"{over}; ± is the standard deviation over the {units}"
        texts = [f"Test {self.metric} {self.text} % ({what})."]
        if self.all_diverged:
            return [
                f"No test {self.metric}: {self.trials} of {counted(self.trials, 'trial')} diverged: "
                f"{'; '.join(self.diverged)}. Remedy: {self.advice or 'lower learning_rate'}."
            ]
        if math.isnan(self.mean):
            texts = [f"No test {self.metric}: of {over}, some have no test nodes."]
        if self.published is not None:
            theirs = f"{self.published.mean:.2f}" + (f" ± {self.published.std:.2f}" if self.published.std else "")
            spread = "" if math.isnan(self.error) else f", standard error {self.error:.2f}"
            texts.append(
                f"Published for {self.published.method}: {theirs} %; difference {self.difference:+z.2f}"
                f"{self.with_preset}{spread}."
            )
        if self.cut:
            texts.append(f"The network was {self.cut}.")
        if self.diverged:
            lost = f"{len(self.diverged)} of {counted(self.trials, 'trial')} diverged"
            texts.append(f"{lost}: {'; '.join(self.diverged)}.")
        texts += [r.sentence() for r in self.references if not math.isnan(r.estimate.mean)]
        return [*texts, self.advice] if self.advice else texts


def summarise(
    plan: TrainingPlan, rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]] = ()
) -> Summary:
    """Summary of a plan, with the published accuracy of the same network on the same data set, and baselines."""
    cut = cut_off(rows, plan.config.training, plan.preset_epochs)
    preset = "" if plan.preset.name.startswith(AS_PUBLISHED) else plan.preset.name
    collected = Summary.of(
        rows, plan.published, references, plan.data.meta.metric_title, cut, preset, share_ratio(plan.data)
    )
    if collected.all_diverged:
        return replace(collected, advice=divergence_remedy(plan.config, plan.data.x))
    return replace(collected, advice="" if cut else block_advice(plan.config.model, rows, references))


def block_advice(
    model: ModelSettings, rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]]
) -> str:
    """What to put around one bare flow if an MLP or a GCN has better validation scores; test nodes have no say."""
    bare = isinstance(model, GreadSettings) and (model.blocks, model.residual, model.norm) == (1, "none", "none")
    ours = np.mean([float(row.get("val_accuracy", math.nan)) for row in rows])
    theirs = {t: [float(r["val_accuracy"]) for r in references if r["method"] == t] for t in NETWORKS if bare}
    gaps = [(100 * (np.mean(scores) - ours), title) for title, scores in theirs.items() if scores]
    points, title = max(gaps, default=(0.0, ""))
    return SHEET.text({"MLP": "advice MLP", "GCN": "advice GCN"}[title], points=points) if points > 0 else ""


def summary_rows(plan: TrainingPlan, summary: Summary) -> list[dict[str, Any]]:
    """Rows of the network, the published accuracy if any, and the baselines."""
    ours = f"{plan.title}, preset {plan.preset.name}"
    spread = summary.std if summary.trials > 1 else math.nan
    rows: list[dict[str, Any]] = [_row("here", ours, summary.mean, spread, summary.trials, plan.preset.source)]
    if (other := summary.published) is not None:
        std = math.nan if other.std is None else other.std
        rows.append(_row("published", other.method, other.mean, std, SPLITS, other.source))
    rows += [
        _row("baseline", r.method, r.estimate.mean, r.estimate.std, r.estimate.count, "here, on the same splits")
        for r in summary.references
    ]
    return rows


def _row(who: str, method: str, mean: float, std: float, trials: int, source: str) -> dict[str, Any]:
    return {"who": who, "method": method, "mean": round(mean, 4), "std": round(std, 4), "trials": trials,
            "source": source}  # fmt: skip


def verdicts(summary: Summary) -> tuple[ReportVerdict, ...]:
    """Verdicts: is the accuracy at least the published one, and above the baselines? Only where both are known."""
    group = (
        () if summary.published is None or math.isnan(summary.error) else (_as_published(summary, summary.published),)
    )
    return *group, *(r.verdict() for r in summary.references if not math.isnan(r.paired.difference))


def _as_published(summary: Summary, published: Published) -> ReportVerdict:
    away = abs(summary.difference) / summary.error if summary.error else math.inf
    better = summary.difference > 0
    outcome = HOLDS if better or away <= summary.chance else FAILS
    answer = fair_answer(outcome, bool(summary.cut))
    evidence = f"Difference {summary.difference:+z.2f}, {away:.1f} times its standard error of {summary.error:.2f}."
    if answer != outcome:
        evidence += f" The network was {summary.cut}."
    statement = (
        f"The mean test accuracy{summary.with_preset} is at least the published one of {published.method}, "
        f"up to {summary.chance:.3g} standard errors."
    )
    return ReportVerdict(statement, answer, evidence)
