"""A search over equations as a study: its folder holds all equations, the chosen one as a preset, and the report.

The folder is valid at any moment, and the same command resumes an interrupted search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gread.discovery.discovering import JOURNAL, ROUNDS, Discovery, usual_jobs
from gread.discovery.discovery_plan import STATE_WORDS, Discovered
from gread.tuning.candidates import COMPLETE
from gread.tuning.selection import chosen, gap_curve
from rdgraph.files import write_text
from studies.discovery import discovery_rows as rows_of
from studies.discovery.discovery_rows import EXPLORER
from studies.discovery.discovery_task import DiscoveryTask
from studies.discovery.discovery_words import (
    SHEET,
    Listener,
    Retraining,
    answer_sentence,
    counted_sentence,
    curse_rows,
    reaction_rows,
    transfer_rows,
    verdicts,
)
from studies.explorer.page_text import page_text
from studies.runs.chart import Bar, Bars, Chart, Line, Panel
from studies.runs.run_config import prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, read_rows, write_rows
from studies.search.study import SHEET as SEARCHED
from studies.search.study import best_in_words, gap_chart, gap_rows, split_rows, write_best

# ---------------------------------------------------------------------- discovery pictures
# Figures: accuracy against size, and effects of terms.

#: Most terms drawn, from both ends of the list.
DRAWN = 24


def front_chart(cloud: Sequence[Row], front: Sequence[Row]) -> Chart:
    """Dots for all equations, a line for the best of each size."""
    ends = {"low": "low", "high": "high"} if all(row["low"] != "" for row in front) else {}
    lines = [
        Line.of("validation, each equation", cloud, "size", "validation", style="dots", look=5),
        Line.of("validation, best of its size", front, "size", "validation", look=0),
        Line.of("test, the same", front, "size", "test", look=8, **ends),
    ]
    return Chart([Panel("accuracy against size", lines)], "terms", "accuracy, percent", columns=1)


def effect_bars(rows: Sequence[Row]) -> Bars:
    """A mark with its interval for each term, the most helpful on top."""
    drawn = list(rows) if len(rows) <= DRAWN else [*rows[: DRAWN // 2], *rows[-DRAWN // 2 :]]
    bars = [Bar(str(row["term"]), float(row["effect"]), float(row["low"]), float(row["high"])) for row in drawn]
    return Bars(bars, "points of validation accuracy", from_zero=False)


# ---------------------------------------------------------------------- discovery study
EQUATIONS, BEST = "equations.csv", "best.toml"
FILES = {
    EQUATIONS: "a row per equation: text, size, state, accuracies, what it was merged into and why",
    BEST: "the chosen equation with its settings; rdgraph train --preset reads it",
    f"{ROUNDS}/": "the results of every round, from which an interrupted search resumes",
    JOURNAL: "the equations drawn by an Optuna sampler",
    EXPLORER: "the explorer with the chosen equation",
    "results.csv": "a row per equation and split",
}


def execute(task: DiscoveryTask, folder: Path, listener: Listener) -> list[Row]:
    """Rows of equations.csv of a search, run in a new folder or resumed in its own.

    Ctrl-C and SIGTERM leave a valid folder and raise KeyboardInterrupt; `kill -9` loses the current round.
    """
    if prepare(folder, task.run_config) != "done":

        def make() -> Discovered:
            return Discovery(
                task.plan, folder, device=task.request.device, progress=listener.progress, tell=listener.tell,
                on_round=partial(write_equations, folder), jobs=usual_jobs(task.plan.budget),
            ).run()  # fmt: skip

        perform(discovery_study(task, make, listener), task.run_config, folder)
    return list(read_rows(folder / EQUATIONS))


def write_equations(folder: Path, result: Discovered) -> None:
    """Write equations.csv and, if an equation can be chosen, best.toml."""
    write_rows(folder / EQUATIONS, result.rows())
    write_best(folder / BEST, result, lambda: result.best_config, "discover", "equation")


def discovery_study(task: DiscoveryTask, make: Callable[[], Discovered], listener: Listener) -> Study:
    """The study of one task; `make()` searches."""
    where = task.dataset
    return Study(
        "discover",
        f"Equations for {where}",
        f"Which equation of the grammar {task.plan.grammar.name} has the best validation accuracy on {where}, what is "
        "proved about it, and does it hold up on fresh splits?",
        partial(run, task=task, make=make, listener=listener),
        extra="gread",
        commands=lambda config, folder: (task.command(folder),) * 2,
    )


def run(run: StudyRun, task: DiscoveryTask, make: Callable[[], Discovered], listener: Listener) -> None:
    """Search, retrain the choice, and write the report."""
    result = make()
    write_equations(run.folder, result)
    run.results(split_rows(result.results, result.plan.splits, "number"))
    if chosen(result.results) is None:
        run.answer(f"{counted_sentence(result)} No equation could be fully trained, so none was chosen.")
        _counted_parts(run, result)
        return
    retraining = Retraining(run, task, result.best, listener)
    reactions, curse, moved = retraining.yardsticks(), retraining.curse(), retraining.transfers()
    write_text(run.folder / EXPLORER, page_text(result.best.text))
    run.answer(answer_sentence(task, result, reactions, curse), "front")
    front = rows_of.front_rows(result)
    run.figure("front", front_chart(rows_of.cloud_rows(result), front), SHEET.text("front"), front)
    run.say("What was tried", counted_sentence(result))
    run.table("choices", rows_of.choice_rows(result), SHEET.text("choices"))
    run.table("reactions", reaction_rows(result, reactions), SHEET.text("reactions"))
    run.table("best_equations", rows_of.best_rows(result), SHEET.text("best"))
    run.table("proofs", rows_of.proof_rows(result), SHEET.text("proofs"))
    if curse.parts:
        run.table("winners_curse", curse_rows(result, curse), SHEET.text("curse"))
    if moved:
        run.table("transfer_results", transfer_rows(moved), SHEET.text("transfer"))
    if effects := rows_of.effect_rows(result):
        run.figure("term_effects", effect_bars(effects), SHEET.text("effects"), effects)
    points = gap_rows(gap_curve(result.results))
    run.figure("selection_gap", gap_chart(points, "equations"), SEARCHED.text("gap", unit="equations"), points)
    _counted_parts(run, result)
    for name, text in FILES.items():
        if (run.folder / name).exists():
            run.describe(name, text)
    for statement, answer, evidence in verdicts(task, result, reactions, curse):
        run.verdict(statement, answer, evidence)


def _counted_parts(run: StudyRun, result: Discovered) -> None:
    """Add the tables of merges and of safety findings."""
    if merges := rows_of.merge_rows(result):
        run.table("merges", merges, SHEET.text("merges"))
    if unsafe := rows_of.safety_rows(result):
        run.table("safety", unsafe, SHEET.text("safety"))


def best_text(folder: Path) -> str:
    """The chosen equation of a finished search, in words."""
    return best_in_words(folder, EQUATIONS, "number", STATE_WORDS[COMPLETE], lambda row: str(row["trained"]))
