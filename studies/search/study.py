"""A search as a study: its folder holds all trials, the chosen settings as a preset, and a report on the choice.

The folder is valid at any moment. The same command goes on with a search that was cut off; a finished one is read.
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
from gread.tuning.candidates import (
    COMPLETE,
    DIVERGED,
    PlannedRound,
    TrialResult,
    load_plan,
    load_results,
    save_results,
)
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
from studies.runs.run_folder import locked
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, number_text, read_rows, write_rows
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, interval_cells
from studies.search.tasks import CONFIG, SearchTask
from studies.training.data_source import DataRequest

# ---------------------------------------------------------------------- pictures
# Figures of a search: the selection gap as it grows with the number of trials, and which settings mattered.

GAP_CAPTION = (
    "The selection gap: expected test accuracy (percent) of the best of n trials, chosen by mean validation accuracy, "
    "and chosen by a look at the test labels, which no result here was. Exact means over all ways to take n of the "
    "trials that were trained to their ends. The distance of the two lines is what a report of the best by test would "
    "have added."
)
IMPORTANCE_CAPTION = (
    "How much each setting matters for being among the best tenth of the trials by validation (PED-ANOVA, Watanabe, "
    "Bansal, Hutter, IJCAI 2023); the bars add up to 1. Settings that count only under a condition are left out."
)


def gap_rows(points: Sequence[GapPoint]) -> list[dict[str, float | int]]:
    """The numbers of the gap, in percent."""
    return [
        {
            "trials": p.trials,
            "by_validation": 100 * p.by_validation,
            "by_test": 100 * p.by_test,
            "gap": 100 * p.gap,
        }
        for p in points
    ]


def gap_chart(rows: Sequence[Mapping[str, float | int]], unit: str = "trials") -> Chart:
    """Two lines over the number of trials."""
    lines = [
        Line.of(label, rows, "trials", name)
        for name, label in (("by_test", "best by test"), ("by_validation", "chosen by validation"))
    ]
    return Chart([Panel("selection gap", lines)], unit)


def importance_bars(importance: Mapping[str, float]) -> Bars:
    """A bar for every setting, the largest on top."""
    names = sorted(importance, key=lambda name: -importance[name])
    return Bars([Bar(name.replace("_", " "), max(importance[name], 0.0)) for name in names], "importance")


# ---------------------------------------------------------------------- study
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
    "Test accuracy in percent, with corrected 95 % intervals over the splits, if there are several. What counts "
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
    write_best(folder / BEST, found, lambda: found.best, "search", "settings")


def write_best(path: Path, found: Any, config: Callable[[], Config], command: str, what: str) -> None:
    """Write the chosen configuration with its origin, where something could be chosen."""
    if chosen(found.results) is None:
        return
    origin = {
        "command": command, "what": what, "among": len(found.results), "dataset": found.plan.data.meta.name,
        "splits": list(found.plan.splits), "seed": found.plan.seed,
    }  # fmt: skip
    write_text(path, config().toml(origin))


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
    run.results(split_rows(found.results, found.plan.splits))
    for name, text in FILES.items():
        if (run.folder / name).exists():
            run.describe(name, text)
    counted, first, *further = sentences(task, found)
    run.answer(first)
    run.say("Result", "\n\n".join([counted, *further]))
    if eligible(found.results):
        run.table("choices", choice_rows(found.results, share_ratio(found.plan.data)), CHOICES_CAPTION)
        points = gap_rows(gap_curve(found.results))
        run.figure("selection_gap", gap_chart(points), GAP_CAPTION, points)
        run.table("best_trials", top_rows(found), TOP_CAPTION)
        run.say("The chosen settings", f"{BEST}, for rdgraph train --preset:\n\n" + settings_text(found))
    if found.importance:
        rows: list[Row] = [{"setting": name, "importance": value} for name, value in found.importance.items()]
        run.figure("importance", importance_bars(found.importance), IMPORTANCE_CAPTION, rows)
    if isinstance(model := task.plan.base.model, GreadSettings):
        run.equation(model.reaction, task.subject)
    run.say("The space", f"{task.plan.space.source}. Searched around: {task.base_source}.")
    for statement, answer, evidence in verdicts(task, found):
        run.verdict(statement, answer, evidence)


# ---------------------------------------------------------------------- rows
def split_rows(results: Sequence[TrialResult], splits: Sequence[int], column: str = "trial") -> list[Row]:
    """A row per trial and split."""
    return [
        {column: r.number, "split": split, "val_accuracy": r.val[k], "test_accuracy": r.test[k]}
        for r in results
        if r.val
        for k, split in enumerate(splits)
    ]


def choice_rows(
    results: Sequence[TrialResult], ratio: float, named: Callable[[int], str] = str, column: str = "trial"
) -> list[Row]:
    """What the choices give: by validation, with the search resampled, per split, by test.

    `ratio` is n_test/n_train; `named` says in the column who was chosen, from its number.
    """
    rows: list[Row] = []
    own, top = chosen(results), best_by_test(results)
    assert own is not None  # nobody asks for the choices of a search without one

    def add(choice: str, name: str, values: Sequence[float], ends: tuple[float, float] | None = None) -> None:
        shares = [100 * value for value in values]
        cells = interval_cells(mean_interval(shares, ratio) if ends is None else ends)
        rows.append({"choice": choice, column: name, "test": sum(shares) / len(shares), **cells})

    add("by validation", named(own.number), own.test)
    add("by validation, the search resampled", named(own.number), own.test, searched_interval(results, ratio))
    add("by validation on every split", "several", nested_accuracies(results))
    if top is not None:
        add("by test (no result)", named(top.number), top.test)
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
    return best_in_words(folder, TRIALS, "trial", COMPLETE, lambda row: f"trial {row['trial']}")


def best_in_words(folder: Path, file: str, column: str, complete: str, named: Callable[[Row], str]) -> str:
    """The best row of a table of trials by validation, of those that went to their end or diverged.

    `column` has their numbers; of equal ones the first is chosen.
    """
    rows = [row for row in read_rows(folder / file) if row["state"] in (complete, DIVERGED)]
    if not rows:
        return "none could be trained to its end"
    best = max(rows, key=lambda row: (float(row["val_accuracy"]), -int(row[column])))
    diverged = ", although it diverged" if best["state"] == DIVERGED else ""
    val, test = (number_text(100 * float(best[name])) for name in ("val_accuracy", "test_accuracy"))
    return f"{named(best)} is chosen{diverged}: validation {val} %, test {test} %; settings in {folder / BEST}"


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
        f"accuracy is {100 * best.test_accuracy:.2f} % ({interval_text(best.test, share_ratio(task.plan.data))}).",
    ]
    if top is not None:
        gap = 100 * (top.test_accuracy - best.test_accuracy)
        said.append(f"The selection gap is {gap:.2f} points: so much more the best trial by test has.")
    if task.published is not None:
        said.append(f"Published: {task.published.mean:.2f} % ({task.published.method}, {task.published.source}).")
    return said


def verdicts(task: SearchTask, found: Found) -> list[tuple[str, str, str]]:
    """Whether the choice reaches what was published, judged by the corrected interval; one split decides nothing."""
    best, published = chosen(found.results), task.published
    if best is None or published is None:
        return []
    ratio = share_ratio(task.plan.data)
    statement = f"The settings that validation chooses reach the published {published.mean:.2f} %."
    if len(best.test) == 1:
        return [(statement, UNDECIDED, f"{100 * best.test_accuracy:.2f} % on {interval_text(best.test, ratio)}.")]
    low, high = mean_interval([100 * value for value in best.test], ratio)
    answer = HOLDS if low >= published.mean else FAILS if high < published.mean else UNDECIDED
    evidence = f"Corrected 95 % interval of the mean over {len(best.test)} splits: {low:.2f} to {high:.2f} %."
    return [(statement, answer, evidence)]


# ---------------------------------------------------------------------- remote
# Parts of a search done in several places: trials planned to a file, trained anywhere, told of afterwards.

#: The data set that a plan names, wherever data sets are kept.
BY_NAME = DataRequest()


def next_round(task: SearchTask, folder: Path) -> PlannedRound | None:
    """The next trials of the search in a folder; asked again before they are told of, the same ones."""
    _open(task, folder)
    with locked(folder):
        return Search(task.plan, folder, storage=task.request.storage).plan_round()


def take_up(task: SearchTask, folder: Path, results: Path) -> int:
    """Note what became of planned trials; returns how many are still to come."""
    load_results(results)  # a file that is none leaves no folder behind
    if task.request.storage is None and not (folder / CONFIG).is_file():
        raise FileError(f"expected the folder of a search with planned trials, got {folder}; name it with --out")
    _open(task, folder)
    with locked(folder):
        search = Search(task.plan, folder, storage=task.request.storage)
        left = search.take_results(results)
        write_trials(folder, search.found(importance=False))
    return left


def _open(task: SearchTask, folder: Path) -> None:
    """Make the folder of a search, or refuse another one's."""
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
    """Train the trials of a plan's file; needs no optuna. Returns the file of their results, beside it.

    Its data are read as `request` says, by the name in the plan where that names no files: a plan for a graph of one's
    own has to be told where it lies here.

    One that was cut off goes on from its checkpoints, which lie beside it too.
    """
    plan, started = load_plan(path), time.monotonic()
    data = (request if request.edges else replace(request, dataset=plan.dataset)).source.read()
    checkpoints = path.with_name(f"{path.stem}-{plan.digest[:16]}.checkpoints")
    total = len(plan.candidates)

    def hear(share: float) -> None:
        passed = time.monotonic() - started
        left = passed * (1 - share) / share if share else float("nan")
        progress(SearchProgress(share * total, total, float("nan"), -1, passed, left))

    done = train_round(data, plan, device=device, checkpoint=checkpoints, progress=hear, tell=tell)
    results = path.with_name(f"{path.stem}.results.json")
    save_results(results, plan, done)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return results
