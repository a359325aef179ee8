"""A search as a study: its folder holds all trials, the chosen settings as a preset, and a report on the choice.

The folder is valid at any moment, and the same command resumes an interrupted search.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gread.comparison import mean_interval, share_ratio
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.training.trainer import EVERY
from gread.tuning.candidates import COMPLETE, DIVERGED, PlannedRound, TrialResult, load_plan, load_results, save_results
from gread.tuning.rounds import train_round
from gread.tuning.searching import BEST, JOURNAL, Found, Search, SearchProgress
from gread.tuning.selection import (
    GapPoint,
    best_by_test,
    chosen,
    eligible,
    gap_curve,
    interval_text,
    nested_accuracies,
    searched_interval,
)
from rdgraph.errors import FileError
from rdgraph.files import write_text
from rdgraph.run.engines.engine import Engine
from rdgraph.wording import counted
from studies.runs.chart import Bar, Bars, Chart, Line, Panel
from studies.runs.run_config import locked
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, number_text, read_rows, write_rows
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, interval_cells
from studies.runs.word_sheets import WordSheet
from studies.search.tasks import CONFIG, SearchTask
from studies.training.data_source import DataRequest

# ---------------------------------------------------------------------- pictures
# Figures: the selection gap against the number of trials, and the importance of settings.

SHEET = WordSheet("search", "words")


def gap_rows(points: Sequence[GapPoint]) -> list[dict[str, float | int]]:
    """Rows of the selection gap, in percent."""
    return [
        {"trials": p.trials, "by_validation": 100 * p.by_validation, "by_test": 100 * p.by_test, "gap": 100 * p.gap}
        for p in points
    ]


def gap_chart(rows: Sequence[Mapping[str, float | int]], unit: str = "trials") -> Chart:
    """Chart of the selection gap against the number of trials."""
    lines = [
        Line.of(label, rows, "trials", name)
        for name, label in (("by_test", "best by test"), ("by_validation", "chosen by validation"))
    ]
    return Chart([Panel("selection gap", lines)], unit)


def importance_bars(importance: Mapping[str, float]) -> Bars:
    """Bars of the importance of settings, the largest on top."""
    names = sorted(importance, key=lambda name: -importance[name])
    return Bars([Bar(name.replace("_", " "), max(importance[name], 0.0)) for name in names], "importance")


# ---------------------------------------------------------------------- study
TRIALS = "trials.csv"
#: The files of a search in addition to those of every study.
FILES = {
    TRIALS: "a row per trial: state, epochs, accuracies, settings",
    BEST: "the chosen settings; rdgraph train --preset reads it",
    JOURNAL: "the storage of the trials, for optuna and optuna-dashboard",
    "results.csv": "a row per trial and split",
}
TOP = 10
TOP_CAPTION = f"The best {TOP} trials by mean validation accuracy over the splits; accuracies are fractions."


def execute(
    task: SearchTask,
    folder: Path,
    *,
    progress: Callable[[SearchProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
    every: float = EVERY,
    engine: Engine | None = None,
) -> list[Row]:
    """Rows of trials.csv of a search, run in a new folder or resumed in its own.

    Ctrl-C and SIGTERM leave a valid folder and raise KeyboardInterrupt, Ctrl-C after a checkpoint; `kill -9` leaves the
    last checkpoint.
    """
    if task.prepare(folder) != "done":

        def searched() -> Found:
            return Search(
                task.plan, folder, storage=task.request.storage, device=task.request.device, engine=engine,
                every=every, progress=progress, tell=tell, on_round=partial(write_trials, folder),
            ).run()  # fmt: skip

        perform(search_study(task, searched), task.run_config, folder)
    return list(read_rows(folder / TRIALS))


def write_trials(folder: Path, collected: Found) -> None:
    """Write trials.csv and, if a trial can be chosen, best.toml."""
    write_rows(folder / TRIALS, collected.rows())
    write_best(folder / BEST, collected, lambda: collected.best, "search", "settings")


def write_best(path: Path, collected: Any, config: Callable[[], Config], command: str, what: str) -> None:
    """Write the chosen configuration with its origin, if there is one."""
    if chosen(collected.results) is None:
        return
    origin = {
        "command": command, "what": what, "among": len(collected.results), "dataset": collected.plan.data.meta.name,
        "splits": list(collected.plan.splits), "seed": collected.plan.seed,
    }  # fmt: skip
    write_text(path, config().toml(origin))


def search_study(task: SearchTask, make: Callable[[], Found]) -> Study:
    """The study of a task; `make()` searches."""
    where = task.dataset
    return Study(
        "search",
        f"Settings for {task.subject} on {where}",
        f"Which settings of {task.subject} have the best validation accuracy on {where}, and how large is the "
        "selection bias?",
        partial(run, task=task, make=make),
        extra="search",
        commands=lambda config, folder: (task.command(folder),) * 2,
    )


def run(run: StudyRun, task: SearchTask, make: Callable[[], Found]) -> None:
    """Search, and write the trials, the choice, the figures and the report."""
    collected = make()
    write_trials(run.folder, collected)
    run.results(split_rows(collected.results, collected.plan.splits))
    for name, text in FILES.items():
        if (run.folder / name).exists():
            run.describe(name, text)
    counted, first, *further = sentences(task, collected)
    run.answer(first)
    run.say("Trials", "\n\n".join([counted, *further]))
    if eligible(collected.results):
        run.table("choices", choice_rows(collected.results, share_ratio(collected.plan.data)), SHEET.text("choices"))
        points = gap_rows(gap_curve(collected.results))
        run.figure("selection_gap", gap_chart(points), SHEET.text("gap", unit="trials"), points)
        run.table("best_trials", top_rows(collected), TOP_CAPTION)
        run.say("The chosen settings", f"{BEST}, for rdgraph train --preset:\n\n" + settings_text(collected))
    if collected.importance:
        rows: list[Row] = [{"setting": name, "importance": value} for name, value in collected.importance.items()]
        run.figure("importance", importance_bars(collected.importance), SHEET.text("importance"), rows)
    if isinstance(model := task.plan.base.model, GreadSettings):
        run.equation(model.reaction, task.subject)
    run.say("The space", f"{task.plan.space.source}. Searched around: {task.base_source}.")
    for statement, answer, evidence in verdicts(task, collected):
        run.verdict(statement, answer, evidence)


# ---------------------------------------------------------------------- rows
def split_rows(results: Sequence[TrialResult], splits: Sequence[int], column: str = "trial") -> list[Row]:
    """A row for every trial and split."""
    return [
        {column: r.number, "split": split, "val_accuracy": r.val[k], "test_accuracy": r.test[k]}
        for r in results
        if r.val
        for k, split in enumerate(splits)
    ]


def choice_rows(
    results: Sequence[TrialResult], ratio: float, named: Callable[[int], str] = str, column: str = "trial"
) -> list[Row]:
    """Accuracy by way of choosing: by validation, with the search resampled, per split, by test.

    `ratio` is n_test/n_train; `named` maps the number of a trial to its name in the column.
    """
    rows: list[Row] = []
    best, top = chosen(results), best_by_test(results)
    assert best is not None  # callers check that there is a choice

    def add(choice: str, name: str, values: Sequence[float], ends: tuple[float, float] | None = None) -> None:
        shares = [100 * value for value in values]
        cells = interval_cells(mean_interval(shares, ratio) if ends is None else ends)
        rows.append({"choice": choice, column: name, "test": sum(shares) / len(shares), **cells})

    add("by validation", named(best.number), best.test)
    add("by validation, the search resampled", named(best.number), best.test, searched_interval(results, ratio))
    add("by validation on every split", "several", nested_accuracies(results))
    if top is not None:
        add("by test (no result)", named(top.number), top.test)
    return rows


def top_rows(collected: Found) -> list[Row]:
    """The best ten rows of trials.csv."""
    ranked = sorted(eligible(collected.results), key=lambda r: (-r.val_accuracy, r.number))[:TOP]
    known = {int(row["trial"]): row for row in collected.rows()}
    return [known[r.number] for r in ranked]


def settings_text(collected: Found) -> str:
    """The values of the chosen trial, in one line."""
    values = next(c.values for c in collected.candidates if c.number == collected.chosen.number)
    return "; ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items()
    )


# ---------------------------------------------------------------------- words
def best_text(folder: Path) -> str:
    """The chosen trial of a finished search, in words."""
    return best_in_words(folder, TRIALS, "trial", COMPLETE, lambda row: f"trial {row['trial']}")


def best_in_words(folder: Path, file: str, column: str, complete: str, named: Callable[[Row], str]) -> str:
    """The best trial by validation, among fully trained and diverged ones, in words.

    `column` has their numbers; of equal trials the first is chosen.
    """
    rows = [row for row in read_rows(folder / file) if row["state"] in (complete, DIVERGED)]
    if not rows:
        return "none could be fully trained"
    best = max(rows, key=lambda row: (float(row["val_accuracy"]), -int(row[column])))
    diverged = ", although it diverged" if best["state"] == DIVERGED else ""
    val, test = (number_text(100 * float(best[name])) for name in ("val_accuracy", "test_accuracy"))
    return f"{named(best)} is chosen{diverged}: validation {val} %, test {test} %; settings in {folder / BEST}"


def sentences(task: SearchTask, collected: Found) -> list[str]:
    """The result of a search in sentences: counts, choice, gap, published accuracy."""
    results, best = collected.results, chosen(collected.results)
    counts = {state: sum(r.state == state for r in results) for state in dict.fromkeys(r.state for r in results)}
    outcomes = ", ".join(f"{count} {state}" for state, count in counts.items())
    head = f"{counted(len(results), 'trial')} on {counted(len(task.plan.splits), 'split')}: {outcomes}."
    if (metric := task.plan.data.meta.metric_title) != "accuracy":
        head += f' This data set is scored by {metric}; read "accuracy" as {metric}.'
    if best is None:
        return [head, "No trial could be fully trained, so none was chosen."]
    top = best_by_test(results)
    texts = [
        head,
        f"Trial {best.number} has the best mean validation accuracy, {100 * best.val_accuracy:.2f} %; its test "
        f"accuracy is {100 * best.test_accuracy:.2f} % ({interval_text(best.test, share_ratio(task.plan.data))}).",
    ]
    if top is not None:
        gap = 100 * (top.test_accuracy - best.test_accuracy)
        texts.append(f"The selection gap is {gap:.2f} points: the best trial by test scores that much more.")
    if task.published is not None:
        texts.append(f"Published: {task.published.mean:.2f} % ({task.published.method}, {task.published.source}).")
    return texts


def verdicts(task: SearchTask, collected: Found) -> list[tuple[str, str, str]]:
    """Verdict: does the choice reach the published accuracy, by the corrected interval? Undecided for one split."""
    best, published = chosen(collected.results), task.published
    if best is None or published is None:
        return []
    ratio = share_ratio(task.plan.data)
    statement = f"The settings chosen by validation accuracy reach the published {published.mean:.2f} %."
    if len(best.test) == 1:
        return [(statement, UNDECIDED, f"{100 * best.test_accuracy:.2f} % on {interval_text(best.test, ratio)}.")]
    low, high = mean_interval([100 * value for value in best.test], ratio)
    answer = HOLDS if low >= published.mean else FAILS if high < published.mean else UNDECIDED
    evidence = f"Corrected 95 % interval of the mean over {len(best.test)} splits: {low:.2f} to {high:.2f} %."
    return [(statement, answer, evidence)]


# ---------------------------------------------------------------------- planned trials
# A search in several places: trials are planned to a file, trained anywhere, and their results added.

#: The data set named in a plan.
BY_NAME = DataRequest()


def next_round(task: SearchTask, folder: Path) -> PlannedRound | None:
    """The next trials of the search in a folder; the same ones until their results are added."""
    _open(task, folder)
    with locked(folder):
        return Search(task.plan, folder, storage=task.request.storage).plan_round()


def take_up(task: SearchTask, folder: Path, results: Path) -> int:
    """Number of remaining trials, after adding the results of planned ones."""
    load_results(results)  # an invalid file must not create a folder
    if task.request.storage is None and not (folder / CONFIG).is_file():
        raise FileError(f"{folder} holds no search with planned trials; name its folder with --out")
    _open(task, folder)
    with locked(folder):
        search = Search(task.plan, folder, storage=task.request.storage)
        remaining = search.take_results(results)
        write_trials(folder, search.found(importance=False))
    return remaining


def _open(task: SearchTask, folder: Path) -> None:
    """Prepare the folder of a search; raises FileError if it belongs to another one."""
    if not task.prepare(folder):
        write_text(folder / CONFIG, task.run_config.toml())
        write_text(folder / "state", "running\n")


def run_plan(
    path: Path,
    *,
    device: str,
    request: DataRequest = BY_NAME,
    progress: Callable[[SearchProgress], None] = lambda now: None,
    tell: Callable[[str], object] = warnings.warn,
) -> Path:
    """Path of the results of the trials of a plan, which are trained without optuna.

    `request` names the files of the user's own graph on this machine; other data are read by the name in the plan. An
    interrupted training resumes from checkpoints next to the plan.
    """
    plan, started = load_plan(path), time.monotonic()
    data = (request if request.edges else replace(request, dataset=plan.dataset)).source.read()
    checkpoints = path.with_name(f"{path.stem}-{plan.digest[:16]}.checkpoints")
    total = len(plan.candidates)

    def update(share: float) -> None:
        passed = time.monotonic() - started
        remaining = passed * (1 - share) / share if share else float("nan")
        progress(SearchProgress(share * total, total, float("nan"), -1, passed, remaining))

    done = train_round(data, plan, device=device, checkpoint=checkpoints, progress=update, tell=tell)
    results = path.with_name(f"{path.stem}.results.json")
    save_results(results, plan, done)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return results
