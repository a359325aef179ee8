"""A search as a study: its folder holds all trials, the chosen settings as a preset, and a report on the choice.

The folder is valid at any moment. The same command goes on with a search that was cut off; a finished one is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gread.settings.gread_settings import GreadSettings
from gread.training.trainer import EVERY
from gread.tuning.candidates import COMPLETE, DIVERGED
from gread.tuning.search_progress import SearchProgress
from gread.tuning.searching import BEST, JOURNAL, Found, Search
from gread.tuning.selection import (
    best_by_test,
    chosen,
    eligible,
    gap_curve,
    mean_interval,
    nested_accuracies,
    searched_interval,
    told_interval,
)
from rdgraph.engines.engine import Engine
from rdgraph.files import write_text
from rdgraph.wording import counted
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, number_text, read_rows, write_rows
from studies.runs.uncertainty import interval_cells
from studies.search.pictures import GAP_CAPTION, IMPORTANCE_CAPTION, gap_chart, gap_figure, gap_rows, importance_bars
from studies.search.tasks import SearchTask

TRIALS = "trials.csv"
#: What the files of a search hold beside those of every study.
FILES = {
    TRIALS: "a row per trial: state, epochs, accuracies, settings",
    BEST: "the chosen settings; rdgraph train --preset reads it",
    JOURNAL: "the storage of the trials, which optuna and optuna-dashboard read",
    "results.csv": "a row per trial and split",
}
TOP = 10
CHOICES_CAPTION = (
    "Test accuracy in percent, with Student's 95 % intervals over the splits, if there are several. What counts "
    "is the first row: one trial, chosen by its mean validation accuracy over the splits. The interval of the second "
    "is that of the search: it chooses anew on every sample of splits. The third chooses on every split for itself. "
    "The last looked at the test labels and is no result: it shows what such a choice would have reported."
)
TOP_CAPTION = f"The best {TOP} trials by mean validation accuracy over the splits; accuracies are shares of 1."


def execute(
    task: SearchTask,
    folder: Path,
    *,
    progress: Callable[[SearchProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
    every: float = EVERY,
    engine: Engine | None = None,
) -> list[Row]:
    """Search in a folder, anew or from where it was left; returns the rows of trials.csv.

    Ctrl-C and SIGTERM leave a valid folder and end in a KeyboardInterrupt, the first after a checkpoint; `kill -9`
    leaves the last checkpoint.
    """
    if task.prepare(folder) != "done":

        def make() -> Found:
            return Search(
                task.plan, folder, storage=task.request.storage, device=task.request.device, engine=engine,
                every=every, progress=progress, tell=tell, on_round=partial(write_trials, folder),
            ).run()  # fmt: skip

        perform(search_study(task, make), task.run_config, folder)
    return list(read_rows(folder / TRIALS))


def write_trials(folder: Path, found: Found) -> None:
    """Write trials.csv and, where a trial can be chosen, best.toml."""
    write_rows(folder / TRIALS, found.rows())
    if chosen(found.results) is not None:
        write_text(folder / BEST, found.best.toml())


def search_study(task: SearchTask, make: Callable[[], Found]) -> Study:
    """The study of one task; `make()` searches."""
    where = task.dataset
    return Study(
        "search",
        f"Settings for {task.subject} on {where}",
        f"Which settings of {task.subject} do the validation nodes of {where} choose, and what does the choice cost?",
        partial(run, task=task, make=make),
        extra="search",
        commands=lambda config, folder: (task.command(folder),) * 2,
    )


def run(run: StudyRun, task: SearchTask, make: Callable[[], Found]) -> None:
    """Search, and write the trials, the choice, the figures and what they say."""
    found = make()
    write_trials(run.folder, found)
    run.results(split_rows(found))
    for name, text in FILES.items():
        if (run.folder / name).exists():
            run.describe(name, text)
    counted, first, *further = sentences(task, found)
    run.answer(first)
    run.say("Result", "\n\n".join([counted, *further]))
    if eligible(found.results):
        run.table("choices", choice_rows(found), CHOICES_CAPTION)
        points = gap_rows(gap_curve(found.results))
        run.figure("selection_gap", gap_figure(points), GAP_CAPTION, points, gap_chart(points))
        run.table("best_trials", top_rows(found), TOP_CAPTION)
        run.say("The chosen settings", f"{BEST}, for rdgraph train --preset:\n\n" + settings_text(found))
    if found.importance:
        rows: list[Row] = [{"setting": name, "importance": value} for name, value in found.importance.items()]
        run.chart("importance", importance_bars(found.importance), IMPORTANCE_CAPTION, rows)
    if isinstance(model := task.plan.base.model, GreadSettings):
        run.equation(model.reaction, task.subject)
    run.say("The space", f"{task.plan.space.source}. Searched around: {task.base_source}.")
    for statement, answer, evidence in verdicts(task, found):
        run.verdict(statement, answer, evidence)


# ---------------------------------------------------------------------- rows
def split_rows(found: Found) -> list[Row]:
    """A row per trial and split."""
    return [
        {"trial": r.number, "split": split, "val_accuracy": r.val[k], "test_accuracy": r.test[k]}
        for r in found.results
        if r.val
        for k, split in enumerate(found.plan.splits)
    ]


def choice_rows(found: Found) -> list[Row]:
    """What the choices give: by validation, per split, by test."""
    results = found.results
    rows: list[Row] = []
    own, top = found.chosen, best_by_test(results)
    per_split = nested_accuracies(results)

    def add(choice: str, trial: str, values: tuple[float, ...] | list[float], interval: tuple[float, float]) -> None:
        mean = sum(values) / len(values)
        rows.append({"choice": choice, "trial": trial, "test": 100 * mean, **interval_cells(values, interval)})

    add("by validation", str(own.number), own.test, mean_interval(own.test))
    add("by validation, the search resampled", str(own.number), own.test, searched_interval(results))
    add("by validation on every split", "several", per_split, mean_interval(per_split))
    if top is not None:
        add("by test (no result)", str(top.number), top.test, mean_interval(top.test))
    return rows


def top_rows(found: Found) -> list[Row]:
    """The best ten of trials.csv."""
    ranked = sorted(eligible(found.results), key=lambda r: (-r.val_accuracy, r.number))[:TOP]
    known = {int(row["trial"]): row for row in found.rows()}
    return [known[r.number] for r in ranked]


def settings_text(found: Found) -> str:
    """The values of the chosen trial, in one line."""
    values = next(c.values for c in found.candidates if c.number == found.chosen.number)
    return "; ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items()
    )


# ---------------------------------------------------------------------- words
def told_best(folder: Path) -> str:
    """The chosen trial of a finished folder, in words."""
    rows = [row for row in read_rows(folder / TRIALS) if row["state"] in (COMPLETE, DIVERGED)]
    if not rows:
        return "none could be trained to its end"
    best = max(rows, key=lambda row: (float(row["val_accuracy"]), -int(row["trial"])))
    diverged = ", although it diverged" if best["state"] == DIVERGED else ""
    val, test = (number_text(100 * float(best[name])) for name in ("val_accuracy", "test_accuracy"))
    return f"trial {best['trial']} is chosen{diverged}: validation {val} %, test {test} %; settings in {folder / BEST}"


def sentences(task: SearchTask, found: Found) -> list[str]:
    """The result in words."""
    results, best = found.results, chosen(found.results)
    counts = {state: sum(r.state == state for r in results) for state in dict.fromkeys(r.state for r in results)}
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    head = f"{counted(len(results), 'trial')} on {counted(len(task.plan.splits), 'split')}: {told}."
    if (metric := task.plan.data.meta.metric_title) != "accuracy":
        head += f" Whatever is called accuracy here is {metric}, the metric of this data set."
    if best is None:
        return [head, "No trial could be trained to its end, so none was chosen."]
    top = best_by_test(results)
    said = [
        head,
        f"Trial {best.number} has the best mean validation accuracy, {100 * best.val_accuracy:.2f} %; its test "
        f"accuracy is {100 * best.test_accuracy:.2f} % ({told_interval(best.test)}).",
    ]
    if top is not None:
        gap = 100 * (top.test_accuracy - best.test_accuracy)
        said.append(f"The selection gap is {gap:.2f} points: so much more the best trial by test has.")
    if task.published is not None:
        said.append(f"Published: {task.published.mean:.2f} % ({task.published.method}, {task.published.source}).")
    return said


def verdicts(task: SearchTask, found: Found) -> list[tuple[str, str, str]]:
    """Whether the choice reaches what was published, as the interval over the splits tells; one split does not."""
    best, published = chosen(found.results), task.published
    if best is None or published is None:
        return []
    low, high = (100 * end for end in mean_interval(best.test))
    statement = f"The settings that validation chooses reach the published {published.mean:.2f} %."
    if len(best.test) == 1:
        return [(statement, "undecided", f"{100 * best.test_accuracy:.2f} % on {told_interval(best.test)}.")]
    answer = "holds" if low >= published.mean else "fails" if high < published.mean else "undecided"
    evidence = f"95 % interval of the mean over {len(best.test)} splits, Student's: {low:.2f} to {high:.2f} %."
    return [(statement, answer, evidence)]
