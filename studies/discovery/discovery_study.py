"""A search over equations as a study: its folder holds all equations, the chosen one as a preset, and the report.

The folder is valid at any moment. The same command goes on with a search that was cut off; a finished one is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.discovery.discovering import JOURNAL, ROUNDS, Discovery, usual_jobs
from gread.discovery.discovery_plan import Discovered, DiscoveryProgress
from gread.discovery.line_training import line_config
from gread.discovery.winner_checks import fresh_splits, retrained
from gread.settings.config import Config
from gread.tuning.selection import chosen, gap_curve
from rdgraph.files import write_text
from studies.cells.corrected_test import share_ratio
from studies.discovery import discovery_rows as rows_of
from studies.discovery.discovery_pictures import EFFECTS_CAPTION, FRONT_CAPTION, effects_figure, front_figure
from studies.discovery.discovery_task import DiscoveryTask
from studies.discovery.discovery_words import (
    BEST_CAPTION,
    CHOICES_CAPTION,
    CURSE_CAPTION,
    MERGES_CAPTION,
    PROOFS_CAPTION,
    REACTIONS_CAPTION,
    SAFETY_CAPTION,
    TRANSFER_CAPTION,
    CursePart,
    Yardsticks,
    answer_sentence,
    counted_sentence,
    curse_rows,
    reaction_rows,
    transfer_rows,
    verdicts,
)
from studies.discovery.line_proofs import EXPLORER
from studies.explorer.page_text import page_text
from studies.runs.run_folder import prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, number_text, read_rows, write_rows
from studies.search.pictures import GAP_CAPTION, gap_figure, gap_rows

EQUATIONS, BEST = "equations.csv", "best.toml"
FILES = {
    EQUATIONS: "a row per equation: text, size, state, accuracies, what it was merged into and why",
    BEST: "the chosen equation with its settings; rdgraph train --preset reads it",
    f"{ROUNDS}/": "what became of every round, which a search that was cut off goes on from",
    JOURNAL: "the equations that a sampler of Optuna's drew",
    EXPLORER: "the explorer, opened on the chosen equation",
    "results.csv": "a row per equation and split",
}
#: The reactions of the GREAD paper, which the chosen equation is compared with, and the first of them.
REACTIONS = ("BS", "F", "AC", "Z", "ST", "FB", "FB*")
#: What the chosen equation is called among retrained ones.
CHOSEN = "chosen"


def execute(
    task: DiscoveryTask,
    folder: Path,
    *,
    progress: Callable[[DiscoveryProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
) -> list[Row]:
    """Search in a folder, anew or from where it was left; returns the rows of equations.csv.

    Ctrl-C and SIGTERM leave a valid folder and end in a KeyboardInterrupt; `kill -9` costs the round under way.
    """
    if prepare(folder, task.run_config) != "done":

        def make() -> Discovered:
            return Discovery(
                task.plan, folder, device=task.request.device, progress=progress, tell=tell,
                on_round=partial(write_equations, folder), jobs=usual_jobs(task.plan.budget),
            ).run()  # fmt: skip

        perform(discovery_study(task, make, tell), task.run_config, folder)
    return list(read_rows(folder / EQUATIONS))


def write_equations(folder: Path, found: Discovered) -> None:
    """Write equations.csv and, where an equation can be chosen, best.toml."""
    write_rows(folder / EQUATIONS, found.rows())
    if chosen(found.results) is not None:
        write_text(folder / BEST, found.best_config.toml())


def discovery_study(
    task: DiscoveryTask, make: Callable[[], Discovered], tell: Callable[[str], object] = warnings.warn
) -> Study:
    """The study of one task; `make()` searches."""
    where = task.dataset
    return Study(
        "discover",
        f"Equations for {where}",
        f"Which equation of the terms {task.plan.grammar.name} do the validation nodes of {where} choose, what is "
        "proved of it, and what is the choice worth?",
        partial(run, task=task, make=make, tell=tell),
        extra="gread",
        commands=lambda config, folder: (task.command(folder),) * 2,
    )


def run(run: StudyRun, task: DiscoveryTask, make: Callable[[], Discovered], tell: Callable[[str], object]) -> None:
    """Search, then train the choice anew, and write what they say: the answer first."""
    found = make()
    write_equations(run.folder, found)
    run.results(_split_rows(found))
    if chosen(found.results) is None:
        run.answer(f"{counted_sentence(found)} No equation could be trained to its end, so none was chosen.")
        _counted_parts(run, found)
        return
    beside = _yardsticks(run, task, found, tell)
    curse = _curse(run, task, found, tell)
    moved = _transfers(run, task, found, tell)
    write_text(run.folder / EXPLORER, page_text(found.best.text))
    run.answer(answer_sentence(task, found, beside, curse), "front")
    front = rows_of.front_rows(found)
    run.figure("front", front_figure(rows_of.cloud_rows(found), front), FRONT_CAPTION, front)
    run.say("What was tried", counted_sentence(found))
    run.table("choices", rows_of.choice_rows(found), CHOICES_CAPTION)
    run.table("reactions", reaction_rows(found, beside), REACTIONS_CAPTION)
    run.table("best_equations", rows_of.best_rows(found), BEST_CAPTION)
    run.table("proofs", rows_of.proof_rows(found), PROOFS_CAPTION)
    if curse.parts:
        run.table("winners_curse", curse_rows(found, curse), CURSE_CAPTION)
    if moved:
        run.table("transfer_results", transfer_rows(moved), TRANSFER_CAPTION)
    if effects := rows_of.effect_rows(found):
        run.figure("term_effects", effects_figure(effects), EFFECTS_CAPTION, effects)
    points = gap_rows(gap_curve(found.results))
    run.figure("selection_gap", gap_figure(points), GAP_CAPTION.replace("trials", "equations"), points)
    _counted_parts(run, found)
    for name, text in FILES.items():
        if (run.folder / name).exists():
            run.describe(name, text)
    for statement, answer, evidence in verdicts(task, found, beside, curse):
        run.verdict(statement, answer, evidence)


def _counted_parts(run: StudyRun, found: Discovered) -> None:
    """Merges by rule, and what was unsafe by reason."""
    if merges := rows_of.merge_rows(found):
        run.table("merges", merges, MERGES_CAPTION)
    if unsafe := rows_of.safety_rows(found):
        run.table("safety", unsafe, SAFETY_CAPTION)


def _split_rows(found: Discovered) -> list[Row]:
    return [
        {"number": r.number, "split": split, "val_accuracy": r.val[k], "test_accuracy": r.test[k]}
        for r in found.results
        if r.val
        for k, split in enumerate(found.plan.splits)
    ]


# ---------------------------------------------------------------------- trained beside, and anew
def reaction_configs(base: Config, names: tuple[str, ...] = REACTIONS) -> dict[str, Config]:
    """Reactions of the paper in the same network: coefficients as the base has them."""
    return {name: base.updated({"reaction": name}) for name in names}


def _yardsticks(run: StudyRun, task: DiscoveryTask, found: Discovered, tell: Callable[[str], object]) -> Yardsticks:
    """The reactions of the paper on the same splits, with the same seed and settings."""
    plan = task.plan

    def compute() -> list[Row]:
        configs = reaction_configs(plan.base)
        done = retrained(plan.data, configs, plan.splits, [plan.seed], device=task.request.device, tell=tell)
        return rows_of.retrained_rows(done)

    return Yardsticks(rows_of.read_retrained(run.part("reactions", compute)), share_ratio(plan.data))


def _curse(run: StudyRun, task: DiscoveryTask, found: Discovered, tell: Callable[[str], object]) -> CursePart:
    """The choice and BS, trained anew with fresh seeds on the same splits, and on fresh splits."""
    plan, fresh, device = task.plan, task.request.fresh, task.request.device
    configs = {CHOSEN: line_config(plan.base, found.best), **reaction_configs(plan.base, REACTIONS[:1])}
    if not fresh:
        return CursePart({}, share_ratio(plan.data))
    seeds = range(plan.seed + 1, plan.seed + 1 + fresh)

    def on_same() -> list[Row]:
        return rows_of.retrained_rows(retrained(plan.data, configs, plan.splits, seeds, device=device, tell=tell))

    def on_fresh() -> list[Row]:
        data = fresh_splits(plan.data, len(plan.splits), plan.seed)
        return _trained_rows(data, configs, seeds[0], device, tell)

    parts = {"fresh_seeds": on_same, "fresh_splits": on_fresh}
    read = {name: rows_of.read_retrained(run.part(name, compute)) for name, compute in parts.items()}
    return CursePart(read, share_ratio(plan.data))


def _transfers(
    run: StudyRun, task: DiscoveryTask, found: Discovered, tell: Callable[[str], object]
) -> dict[str, Yardsticks]:
    """The choice, untouched, on other data sets, beside BS there."""
    plan, moved = task.plan, {}
    configs = {CHOSEN: line_config(plan.base, found.best), **reaction_configs(plan.base, REACTIONS[:1])}
    for name in task.request.transfer:
        data = load_dataset(name, root=task.request.root, offline=True)
        compute = partial(_trained_rows, data, configs, plan.seed, task.request.device, tell)
        moved[name] = Yardsticks(rows_of.read_retrained(run.part(f"transfer_{name}", compute)), share_ratio(data))
    return moved


def _trained_rows(
    data: NodeData, configs: dict[str, Config], seed: int, device: str, tell: Callable[[str], object]
) -> list[Row]:
    """Configurations on all splits of a data set, with one seed."""
    done = retrained(data, configs, range(data.num_splits), [seed], device=device, tell=tell)
    return rows_of.retrained_rows(done)


def told_best(folder: Path) -> str:
    """The chosen equation of a finished folder, in words."""
    known = [row for row in read_rows(folder / EQUATIONS) if row["state"] in ("finished", "diverged")]
    if not known:
        return "none could be trained to its end"
    best = max(known, key=lambda row: (float(row["val_accuracy"]), -int(row["number"])))
    return (
        f"{best['trained']} is chosen: validation {number_text(100 * float(best['val_accuracy']))} %, test "
        f"{number_text(100 * float(best['test_accuracy']))} %; settings in {folder / BEST}"
    )
