"""The result of a training: its accuracy in words and as rows beside the published one, and the verdict on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gread.settings.presets import PUBLISHED, Published
from rdgraph.wording import counted
from studies.runs.report import ReportVerdict
from studies.runs.uncertainty import ERRORS, FAILS, HOLDS, SPLITS, chance_errors, difference_error
from studies.training.cut_short import cut_off, fair_answer
from studies.training.plan import TrainingPlan
from studies.training.reference_answers import Reference, compare

RESULTS_CAPTION = (
    "Every trial: the first epoch with the best validation accuracy, the validation and test accuracy there (as shares "
    "of 1), and whether the loss stayed a number."
)
#: How the names of presets begin that belong to a published number.
AS_PUBLISHED = ("paper/", f"{PUBLISHED}/")
SUMMARY_CAPTION = "Test accuracy in percent: mean, population standard deviation, and over what."


@dataclass(frozen=True)
class Summary:
    """Test accuracy in percent over all trials, and the published one beside it, if any.

    `metric` is what the data are measured by, in words; it stands for the accuracy everywhere. `cut` says how the
    training ended before its time, `preset` names the settings where they are not the published ones; both may be "".
    std is that of the population. The error of the difference takes the splits as the independent units:
    sqrt(s^2/(k - 1) + p^2/(10 - 1)), s the deviation of the k splits' means over their seeds, p the published one; see
    `studies.runs.uncertainty`.
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

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]],
        published: Published | None = None,
        references: Sequence[Mapping[str, Any]] = (),
        metric: str = "accuracy",
        cut: str = "",
        preset: str = "",
    ) -> Summary:
        """From the rows of results.csv, and those of references.csv.

        >>> rows = [dict(split=k, seed=0, test_accuracy=a, status="ok") for k, a in enumerate((0.8, 0.9))]
        >>> found = Summary.of(rows, Published("GREAD-BS", "cora", 86.0, 3.0, "paper"))
        >>> found.text, round(found.difference, 2), round(found.error, 3)
        ('85.00 ± 5.00', -1.0, 5.099)
        """
        accuracy = 100 * np.array([float(row["test_accuracy"]) for row in rows])
        which = np.array([int(row["split"]) for row in rows])
        means = np.array([accuracy[which == split].mean() for split in np.unique(which)])
        bad = tuple(f"split {r['split']} seed {r['seed']}: {r['status']}" for r in rows if r["status"] != "ok")
        error, chance = math.nan, ERRORS
        if published is not None and published.std is not None:
            both = float(means.std()), len(means), published.std, SPLITS
            error, chance = difference_error(*both), chance_errors(*both)
        return cls(
            float(accuracy.mean()), float(accuracy.std()), len(rows), len(means), bad, published, float(error),
            compare(rows, references, cut), metric, chance, cut, preset,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The mean, with the deviation where there is more than one trial."""
        return f"{self.mean:.2f}" if self.trials == 1 else f"{self.mean:.2f} ± {self.std:.2f}"

    @property
    def spread(self) -> float:
        """The deviation, which one trial has not."""
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
        what = over if self.trials == 1 else f"mean and population standard deviation of {over}"
        found = [f"Test {self.metric} {self.text} % ({what})."]
        if self.all_diverged:
            return [
                f"No test {self.metric}: {self.trials} of {counted(self.trials, 'trial')} diverged: "
                f"{'; '.join(self.diverged)}. A "
                "shorter time (--set time=0.5), a lower rate (--set learning_rate=0.001) or a bounded reaction, as by "
                "tanh(...), may help."
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
        return found + [reference.sentence() for reference in self.references if not math.isnan(reference.mean)]


def summarise(
    plan: TrainingPlan, rows: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]] = ()
) -> Summary:
    """The result of a plan, beside the published accuracy of the same network on the same data set, and references."""
    cut = cut_off(rows, plan.config.training, plan.preset_epochs)
    preset = "" if plan.preset.name.startswith(AS_PUBLISHED) else plan.preset.name
    return Summary.of(rows, plan.published, references, plan.data.meta.metric_title, cut, preset)


def summary_rows(plan: TrainingPlan, summary: Summary) -> list[dict[str, Any]]:
    """Ours, the published number where there is one, and the references."""
    ours = f"{plan.title}, preset {plan.preset.name}"
    rows: list[dict[str, Any]] = [_row("here", ours, summary.mean, summary.spread, summary.trials, plan.preset.source)]
    if (other := summary.published) is not None:
        std = math.nan if other.std is None else other.std
        rows.append(_row("published", other.method, other.mean, std, SPLITS, other.source))
    rows += [
        _row("reference", r.method, r.mean, r.std, r.splits, "here, on the same splits") for r in summary.references
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
