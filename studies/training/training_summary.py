"""The result of a training: its accuracy in words and as rows beside the published one, and the verdict on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import ERRORS, FAILS, HOLDS, SPLITS, Estimate, Gap, share_ratio
from gread.models.resolution import divergence_remedy
from gread.settings.presets import PUBLISHED, Published
from gread.training.ensemble import METRICS
from gread.training.trainer import Trained
from rdgraph.errors import FileError
from rdgraph.files import replacing
from rdgraph.wording import counted
from studies.runs.report import ReportVerdict
from studies.runs.tables import Row, read_rows
from studies.training.plan import TrainingPlan
from studies.training.reference_answers import Reference, compare, cut_off, fair_answer

# ---------------------------------------------------------------------- rows
# The numbers of a training as rows: results per trial, metrics per trial and epoch.

RESULT_COLUMNS = ("split", "seed", "best_epoch", "val_accuracy", "test_accuracy", "status")


def result_rows(done: Trained) -> list[Row]:
    """The rows of results.csv, one a trial."""
    return [{name: row[name] for name in RESULT_COLUMNS} for row in done.rows()]  # type: ignore[misc]


def read_results(folder: Path, plan: TrainingPlan) -> list[Row]:
    """The rows of a finished run's results.csv, which must be those of the plan's trials."""
    path = folder / "results.csv"
    rows = read_rows(path)
    trials = [(trial.split, trial.seed) for trial in plan.trials]
    fits = all(tuple(row) == RESULT_COLUMNS and _is_result(row) for row in rows)
    if not fits or [(row["split"], row["seed"]) for row in rows] != trials:
        raise FileError(
            f"expected a row for each of {len(trials)} trials in {path}, got a file that was changed; delete the "
            "folder and train again"
        )
    return list(rows)


def _is_result(row: Row) -> bool:
    """Whether a row holds a text as status and numbers elsewhere."""
    return all(isinstance(value, str) == (name == "status") for name, value in row.items())


def first_sound(done: Trained) -> int | None:
    """The number of the first trial that did not diverge, None if all did."""
    return next(iter(sound_trials(done)), None)


def sound_trials(done: Trained) -> list[int]:
    """The numbers of the trials that did not diverge."""
    return [k for k, status in enumerate(done.status) if status == "ok"]


def metric_columns(done: Trained) -> dict[str, np.ndarray]:
    """Every metric of every trial and epoch as columns of one length; epochs count from 1."""
    members, epochs, _ = done.history.shape
    columns = {
        "split": np.repeat(np.array([t.split for t in done.trials], dtype=np.int32), epochs),
        "seed": np.repeat(np.array([t.seed for t in done.trials], dtype=np.int32), epochs),
        "epoch": np.tile(np.arange(1, epochs + 1, dtype=np.int32), members),
    }
    return columns | {name: done.history[:, :, k].reshape(-1) for k, name in enumerate(METRICS)}


def write_metrics(path: Path, done: Trained) -> None:
    """Write metrics.parquet, one row per trial and epoch, compressed by zstd."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(metric_columns(done))
    with replacing(path) as draft:
        parquet.write_table(table, draft, compression="zstd")


# ---------------------------------------------------------------------- summary
RESULTS_CAPTION = (
    "Every trial: the first epoch with the best validation accuracy, the validation and test accuracy there (as shares "
    "of 1), and whether the loss stayed a number."
)
#: How the names of presets begin that belong to a published number.
AS_PUBLISHED = ("paper/", f"{PUBLISHED}/")
SUMMARY_CAPTION = (
    "Test accuracy in percent: mean, and the standard deviation over the splits, each with the mean of its seeds; of a "
    "single split the one over its seeds."
)


@dataclass(frozen=True)
class Summary:
    """Test accuracy in percent over all trials, and the published one beside it, if any.

    `metric` is what the data are measured by, in words; it stands for the accuracy everywhere. `cut` says how the
    training ended before its time, `preset` names the settings where they are not the published ones; both may be "".
    `std` is the population standard deviation over the splits, each with the mean of its seeds, and over the seeds
    where there is a single split. `gread.comparison` says how the difference from the published mean is judged and how
    references are compared.
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
    #: A difference from the published one of at most so many standard errors is no difference.
    chance: float = ERRORS
    cut: str = ""
    preset: str = ""
    #: What to do where every trial diverged.
    remedy: str = "lower learning_rate"

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
        """From the rows of results.csv, and those of references.csv; `ratio` is n_test/n_train, which these need.

        >>> rows = [dict(split=k, seed=0, test_accuracy=a, status="ok") for k, a in enumerate((0.8, 0.9))]
        >>> found = Summary.of(rows, Published("GREAD-BS", "cora", 86.0, 3.0, "paper"))
        >>> found.text, round(found.difference, 2), round(found.error, 3)
        ('85.00 ± 5.00', -1.0, 5.099)
        """
        accuracy = 100 * np.array([float(row["test_accuracy"]) for row in rows])
        own = Estimate.of(rows)
        std = own.std if own.count > 1 else float(accuracy.std())
        bad = tuple(f"split {r['split']} seed {r['seed']}: {r['status']}" for r in rows if r["status"] != "ok")
        error, chance = math.nan, ERRORS
        if published is not None and published.std is not None:
            gap = Gap.between(own, published.mean, published.std)
            error, chance = gap.error, gap.chance
        return cls(
            own.mean, std, len(rows), own.count, bad, published, error,
            compare(rows, references, ratio, cut), metric, chance, cut, preset,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The mean, with the deviation where there is more than one trial."""
        return f"{self.mean:.2f}" if self.trials == 1 else f"{self.mean:.2f} ± {self.std:.2f}"

    @property
    def spread(self) -> float:
        """The standard deviation; nan for a single trial."""
        return self.std if self.trials > 1 else math.nan

    @property
    def difference(self) -> float:
        return math.nan if self.published is None else self.mean - self.published.mean

    @property
    def with_preset(self) -> str:
        """The settings in words, where they are not the published ones."""
        return f" with the preset {self.preset}" if self.preset else ""

    @property
    def all_diverged(self) -> bool:
        """Whether no trial came to its end."""
        return len(self.diverged) == self.trials

    def sentences(self) -> list[str]:
        """The result in words, a sentence each."""
        over = f"{counted(self.trials, 'trial')} on {counted(self.splits, 'split')}"
        units = "splits" if self.splits > 1 else "seeds"
        what = over if self.trials == 1 else f"{over}; ± is the standard deviation over the {units}"
        found = [f"Test {self.metric} {self.text} % ({what})."]
        if self.all_diverged:
            return [
                f"No test {self.metric}: {self.trials} of {counted(self.trials, 'trial')} diverged: "
                f"{'; '.join(self.diverged)}. Remedy: {self.remedy}."
            ]
        if math.isnan(self.mean):
            found = [f"No test {self.metric}: of {over}, some have no test nodes."]
        if self.published is not None:
            theirs = f"{self.published.mean:.2f}" + (f" ± {self.published.std:.2f}" if self.published.std else "")
            spread = "" if math.isnan(self.error) else f", standard error {self.error:.2f}"
            found.append(
                f"Published for {self.published.method}: {theirs} %; difference {self.difference:+z.2f}"
                f"{self.with_preset}{spread}."
            )
        if self.cut:
            found.append(f"The network was {self.cut}.")
        if self.diverged:
            lost = f"{len(self.diverged)} of {counted(self.trials, 'trial')} diverged"
            found.append(f"{lost}: {'; '.join(self.diverged)}.")
        return found + [
            reference.sentence() for reference in self.references if not math.isnan(reference.estimate.mean)
        ]


def summarise(
    plan: TrainingPlan, rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]] = ()
) -> Summary:
    """The result of a plan, beside the published accuracy of the same network on the same data set, and references."""
    cut = cut_off(rows, plan.config.training, plan.preset_epochs)
    preset = "" if plan.preset.name.startswith(AS_PUBLISHED) else plan.preset.name
    found = Summary.of(
        rows, plan.published, references, plan.data.meta.metric_title, cut, preset, share_ratio(plan.data)
    )
    return replace(found, remedy=divergence_remedy(plan.config, plan.data.x)) if found.all_diverged else found


def summary_rows(plan: TrainingPlan, summary: Summary) -> list[dict[str, Any]]:
    """Ours, the published number where there is one, and the references."""
    ours = f"{plan.title}, preset {plan.preset.name}"
    rows: list[dict[str, Any]] = [_row("here", ours, summary.mean, summary.spread, summary.trials, plan.preset.source)]
    if (other := summary.published) is not None:
        std = math.nan if other.std is None else other.std
        rows.append(_row("published", other.method, other.mean, std, SPLITS, other.source))
    rows += [
        _row("reference", r.method, r.estimate.mean, r.estimate.std, r.estimate.count, "here, on the same splits")
        for r in summary.references
    ]
    return rows


def _row(who: str, method: str, mean: float, std: float, trials: int, source: str) -> dict[str, Any]:
    return {"who": who, "method": method, "mean": round(mean, 4), "std": round(std, 4), "trials": trials,
            "source": source}  # fmt: skip


def verdicts(summary: Summary) -> tuple[ReportVerdict, ...]:
    """Is the accuracy at least the published one, and above the references? Nothing where nothing can be told."""
    own = () if summary.published is None or math.isnan(summary.error) else (_as_published(summary, summary.published),)
    return *own, *(r.verdict() for r in summary.references if not math.isnan(r.paired.difference))


def _as_published(summary: Summary, published: Published) -> ReportVerdict:
    away = abs(summary.difference) / summary.error if summary.error else math.inf
    better = summary.difference > 0
    told = HOLDS if better or away <= summary.chance else FAILS
    answer = fair_answer(told, bool(summary.cut))
    evidence = (
        f"Difference {summary.difference:+z.2f} with a standard error of {summary.error:.2f}: {away:.1f} of them."
    )
    if answer != told:
        evidence += f" The network was {summary.cut}."
    statement = (
        f"The mean test accuracy{summary.with_preset} is at least the published one of {published.method}, "
        f"up to {summary.chance:.3g} standard errors."
    )
    return ReportVerdict(statement, answer, evidence)
