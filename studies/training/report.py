"""The report of a training: the result beside the published one, figures, results, as one html page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import save_figure
from gread.settings.presets import Published, find_published
from rdgraph.errors import NotApplicable
from rdgraph.files import write_text
from studies.runs import report
from studies.runs.config import Config
from studies.runs.tables import Row, write_rows
from studies.runs.uncertainty import difference_error
from studies.training import figures as training_figures
from studies.training import states as training_states

if TYPE_CHECKING:
    from gread.training.trainer import Trained
    from studies.training.figures import Drawing
    from studies.training.plan import Plan

TITLE = "Training {reaction} on {dataset}"
QUESTION = "How well does the reaction {reaction} classify the nodes of {dataset}, and what did the network learn?"
#: Splits behind every published number.
PUBLISHED_SPLITS = 10
#: A difference of at most so many standard errors is no difference.
FEW_ERRORS = 2.0
RESULTS_CAPTION = (
    "Every trial: the first epoch with the best validation accuracy, the validation and test accuracy there (as shares "
    "of 1), and whether the loss stayed a number."
)


@dataclass(frozen=True)
class Summary:
    """Test accuracy in percent over all trials, and the published one beside it, if any.

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

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], published: Published | None = None) -> Summary:
        """From the rows of results.csv.

        >>> rows = [dict(split=k, seed=0, test_accuracy=a, status="ok") for k, a in enumerate((0.8, 0.9))]
        >>> found = Summary.of(rows, Published("GREAD-BS", "cora", 86.0, 3.0, "paper"))
        >>> found.text, round(found.difference, 2), round(found.error, 3)
        ('85.00 ± 5.00', -1.0, 5.099)
        """
        accuracy = 100 * np.array([float(row["test_accuracy"]) for row in rows])
        which = np.array([int(row["split"]) for row in rows])
        means = np.array([accuracy[which == split].mean() for split in np.unique(which)])
        bad = tuple(f"split {r['split']} seed {r['seed']}: {r['status']}" for r in rows if r["status"] != "ok")
        error = math.nan
        if published is not None and published.std is not None:
            error = difference_error(float(means.std()), len(means), published.std, PUBLISHED_SPLITS)
        return cls(
            float(accuracy.mean()), float(accuracy.std()), len(rows), len(means), bad, published, float(error)
        )  # fmt: skip

    @property
    def text(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}"

    @property
    def difference(self) -> float:
        return math.nan if self.published is None else self.mean - self.published.mean

    def sentences(self) -> list[str]:
        """The result in words, a sentence each."""
        over = f"{_count(self.trials, 'trial')} on {_count(self.splits, 'split')}"
        found = [f"Test accuracy {self.text} % (mean and population standard deviation of {over})."]
        if math.isnan(self.mean):
            found = [f"No test accuracy: of {over}, some have no test nodes."]
        if self.published is not None:
            theirs = f"{self.published.mean:.2f}" + (f" ± {self.published.std:.2f}" if self.published.std else "")
            spread = "" if math.isnan(self.error) else f", standard error {self.error:.2f}"
            found.append(
                f"Published for {self.published.method}: {theirs} %; difference {self.difference:+.2f}{spread}."
            )
        if self.diverged:
            found.append(f"{len(self.diverged)} of {self.trials} trials diverged: {'; '.join(self.diverged)}.")
        return found


def summarise(plan: Plan, rows: Sequence[Mapping[str, Any]]) -> Summary:
    """The result of a plan, beside the published accuracy of the same reaction on the same data set."""
    published = None if plan.files else find_published(f"GREAD-{plan.reaction}", plan.preset.dataset)
    return Summary.of(rows, published)


def write(folder: Path, plan: Plan, done: Trained, rows: Sequence[Row], environment: Mapping[str, Any]) -> None:
    """Write figures/, summary.csv, report.json and report.html."""
    summary = summarise(plan, rows)
    pictures, missing = draw_all(done, folder / "figures")
    table = summary_rows(plan, summary)
    write_rows(folder / "summary.csv", table)
    items: list[report.Item] = [
        report.Passage("Result", "\n\n".join(summary.sentences())),
        report.Table("summary", "Test accuracy in percent: mean, population standard deviation, and over what.", table),
        *pictures,
        *([report.Passage("Not drawn", "\n\n".join(missing))] if missing else []),
        report.Table("results", RESULTS_CAPTION, rows),
        *_about_data(plan),
    ]
    words = {"reaction": plan.reaction, "dataset": plan.preset.dataset}
    page = report.Page(
        title=TITLE.format(**words), question=QUESTION.format(**words), state="done", problem="",
        config=Config("train", plan.small, plan.seed, plan.device), environment=environment, items=tuple(items),
        verdicts=_verdicts(summary), command=plan.command(folder),
    )  # fmt: skip
    write_text(folder / "report.json", report.contents(page))
    html = report.templates().get_template("training.html").render(page=page, settings=settings(plan))
    write_text(folder / "report.html", html)


def summary_rows(plan: Plan, summary: Summary) -> list[dict[str, Any]]:
    """Ours, and the published number where there is one."""
    ours = f"GREAD-{plan.reaction}, preset {plan.preset.name}"
    rows: list[dict[str, Any]] = [_row("here", ours, summary.mean, summary.std, summary.trials, plan.preset.source)]
    if (other := summary.published) is not None:
        std = math.nan if other.std is None else other.std
        rows.append(_row("published", other.method, other.mean, std, PUBLISHED_SPLITS, other.source))
    return rows


def _row(who: str, method: str, mean: float, std: float, trials: int, source: str) -> dict[str, Any]:
    return {"who": who, "method": method, "mean": round(mean, 4), "std": round(std, 4), "trials": trials,
            "source": source}  # fmt: skip


def draw_all(done: Trained, folder: Path) -> tuple[list[report.Picture], list[str]]:
    """Every figure that can be drawn, saved; and in words why others cannot."""
    sound = [k for k, status in enumerate(done.status) if status == "ok"]
    makers: dict[str, Callable[[], Drawing | None]] = {
        "Learning curves": lambda: training_figures.learning_curves(done)
    }
    if sound:
        data, network = done.data_of(sound[0]), done.network(sound[0])
        makers |= {
            "Coefficients": lambda: training_figures.coefficient_bars(done, sound),
            "Filter response": lambda: training_figures.response_lines(done, sound, data),
            "Confusion matrix": lambda: training_states.confusion_matrix(done, sound),
            "States": lambda: training_states.embedded_states(network, data),
        }
    pictures, missing = [], [] if sound else ["Every trial diverged, so there is no network to draw."]
    for name, make in makers.items():
        try:
            drawing = make()
        except NotApplicable as reason:
            missing.append(f"{name}: {reason}.")
            continue
        if drawing is not None:
            drawing.figure.draw_without_rendering()
            drawing.figure.set_layout_engine("none")  # laid out once, not for every format
            path, *_ = save_figure(drawing.figure, folder, drawing.name, drawing.rows)
            pictures.append(report.Picture(drawing.name, path, drawing.caption))
    return pictures, missing


def settings(plan: Plan) -> list[tuple[str, str]]:
    """Name and value of every setting, as text."""
    head = {k: v for k, v in plan.head().items() if k not in ("study", "small", "version", "reaction")}
    parts = [dataclasses.asdict(part) for part in (plan.config.model, plan.config.training)]
    every = head | {k: v for part in parts for k, v in part.items() if v is not None}
    return [(name.replace("_", " "), report.shown(value)) for name, value in every.items()]


def _about_data(plan: Plan) -> list[report.Item]:
    meta = plan.data.meta
    splits = f"Splits: {meta.split}." if meta.split else ""
    told = [t for t in (splits, *meta.notes, *plan.data.warnings()) if t]
    return [report.Passage("The data", "\n\n".join([f"{meta.title or meta.name}: {_size(plan)}.", *told]))]


def _size(plan: Plan) -> str:
    data = plan.data
    return (
        f"{data.num_nodes:,} nodes, {data.graph.num_edges:,} directed edges, {data.num_features:,} features, "
        f"{data.num_classes} classes"
    )


def _verdicts(summary: Summary) -> tuple[report.Verdict, ...]:
    if summary.published is None or math.isnan(summary.error):
        return ()
    away = abs(summary.difference) / summary.error if summary.error else math.inf
    better = summary.difference > 0
    answer = "holds" if better or away <= FEW_ERRORS else "fails"
    evidence = f"Difference {summary.difference:+.2f} with a standard error of {summary.error:.2f}: {away:.1f} of them."
    statement = (
        f"The mean test accuracy is at least the published one of {summary.published.method}, up to {FEW_ERRORS:g} "
        "standard errors."
    )
    return (report.Verdict(statement, answer, evidence),)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
