"""A distillation as a study: the formula, what it costs, what is proved of it, in a run folder."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gread.formulas.distilled_network import (
    DistilledNetwork,
    paired_interval,
    retrained,
    search_formula,
    told_diverged,
)
from gread.formulas.formula_proofs import Proof, proofs_of
from gread.formulas.learned_curves import LearnedCurves
from gread.settings.gread_settings import GreadSettings
from gread.training.trainer import Progress
from rdgraph.distillation.formula_letters import range_words
from rdgraph.distillation.found_formula import FormulaSearch
from studies.distilling.distil_figures import formula_figure
from studies.distilling.distil_plan import DistilPlan, FormulaChoices
from studies.runs.config import RunConfig
from studies.runs.run_folder import prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED

#: Points of accuracy that a formula may cost.
MOST_LOST = 0.5
Hears = Callable[[Progress], None]


def execute_distillation(plan: DistilPlan, folder: Path, progress: Hears | None = None) -> Path:
    """Distil what the plan says in a folder, anew or from where it was left; returns the path of the report."""
    words = ["rdgraph", "distil", str(plan.run), *_words(plan.choices), "--out", str(folder)]
    study = Study(
        "distil",
        f"A formula for {plan.curves.name} on {plan.training.preset.dataset}",
        f"Which formula stands for the learned function {plan.curves.name} of {plan.training.reaction}, and what does "
        "it cost?",
        partial(run_training, plan=plan, progress=progress),
        extra="gread",
        commands=lambda config, where: (shlex.join(words), shlex.join(words)),
    )
    return _performed(study, plan.run_config, folder)


def execute_layer(layer: str, curves: LearnedCurves, choices: FormulaChoices, folder: Path) -> Path:
    """Distil the function of a layer in a folder; returns the path of the report."""
    span = f"{curves.x[0]:g}:{curves.x[-1]:g}"
    words = ["rdgraph", "distil", "--layer", layer, f"--range={span}", *_words(choices), "--out", str(folder)]
    study = Study(
        "distil",
        f"A formula for {layer}",
        f"Which formula stands for the function of one entry that {layer} computes on {span}?",
        partial(run_layer, curves=curves, choices=choices),
        extra="torch",
        commands=lambda config, where: (shlex.join(words), shlex.join(words)),
    )
    head = {"layer": layer, "range": span}
    config = RunConfig("distil", False, choices.seed, "cpu", sections={"settings": choices.section()}, head=head)
    return _performed(study, config, folder)


def _performed(study: Study, config: RunConfig, folder: Path) -> Path:
    return folder / "report.html" if prepare(folder, config) == "done" else perform(study, config, folder)


def _words(choices: FormulaChoices) -> list[str]:
    return [
        "--tolerance", f"{choices.tolerance:g}", "--max-size", str(choices.max_size), "--functions",
        ",".join(choices.functions), "--seed", str(choices.seed),
    ]  # fmt: skip


def searched(curves: LearnedCurves, choices: FormulaChoices) -> FormulaSearch:
    return search_formula(curves, choices.tolerance, choices.max_size, choices.functions, seed=choices.seed)


# ---------------------------------------------------------------------- a training
def run_training(run: StudyRun, plan: DistilPlan, progress: Hears | None) -> None:
    """Find the formula, train it on the same splits, prove what can be proved, and write it all down."""
    search = searched(plan.curves, plan.choices)
    made: list[DistilledNetwork] = []

    def trained() -> list[Row]:
        made.append(
            retrained(
                plan.training.data, plan.trials, plan.curves, search, plan.before, device=plan.device, progress=progress
            )
        )
        return accuracy_rows(plan, made[0].after, made[0].done.status if made[0].done else ())

    rows = run.part("accuracies", trained) if search.formula is not None else accuracy_rows(plan, None)
    run.results(rows)
    gaps = 100 * np.array([float(row["learned"]) - float(row["formula"]) for row in rows])
    splits, diverged = [int(row["split"]) for row in rows], sum(row.get("status", "ok") != "ok" for row in rows)
    run.answer(answered(plan.curves, search, gaps, splits, diverged), "formula")
    _write_search(run, plan.curves, search)
    if search.formula is None:
        return
    run.show("accuracies", "Test accuracy with the learned function and with the formula, split by split.", rows)
    _judge(run, gaps, splits, diverged)
    settings = plan.training.config.model
    equation = search.formula.lettered.within(plan.training.reaction, plan.curves.name)
    if isinstance(settings, GreadSettings):
        _write_proofs(run, equation, proofs_of(equation, settings))


def accuracy_rows(plan: DistilPlan, after: np.ndarray | None, status: Sequence[str] = ()) -> list[Row]:
    """A row for each trial: split, seed, both accuracies as shares of 1, and how the training of the formula ended."""
    found = np.full(len(plan.before), np.nan) if after is None else after
    ended = status or ["ok"] * len(plan.before)
    return [
        {"split": trial.split, "seed": trial.seed, "learned": float(a), "formula": float(b), "status": own}
        for trial, a, b, own in zip(plan.trials, plan.before, found, ended, strict=True)
    ]


def answered(
    curves: LearnedCurves, search: FormulaSearch, gaps: np.ndarray, splits: list[int], diverged: int = 0
) -> str:
    """The answer in a sentence."""
    if search.formula is None:
        return f"{curves.name}: {search.answer_for('trial')}."
    low, high = paired_interval(gaps, splits)
    around = "" if np.isnan(low) else f", interval from {low:.2f} to {high:.2f}"
    own = ""
    if len(curves.y) > 1 and search.formula.names:
        own = f" with constants of every trial ({range_words(search.formula.ranges)})"
    return (
        f"{curves.name}(H) = {search.formula.text}, of size {search.formula.size}, misses the learned function by "
        f"{100 * search.formula.relative_error:.2g} %{own}; trained in its place it costs {gaps.mean():.2f} "
        f"points{around}{told_diverged(diverged, len(gaps))}."
    )


def _judge(run: StudyRun, gaps: np.ndarray, splits: list[int], diverged: int) -> None:
    """Whether the formula costs little: trainings that diverged leave it undecided."""
    low, high = paired_interval(gaps, splits)
    if diverged:
        answer, evidence = UNDECIDED, f"{gaps.mean():.2f} points{told_diverged(diverged, len(gaps))}."
    elif np.isnan(low):
        answer, evidence = UNDECIDED, f"{gaps.mean():.2f} points on one split."
    else:
        answer = HOLDS if high <= MOST_LOST else FAILS if low > MOST_LOST else UNDECIDED
        evidence = f"{gaps.mean():.2f} points, Student's interval from {low:.2f} to {high:.2f} over the splits."
    run.verdict(f"The formula costs at most {MOST_LOST:g} points of accuracy.", answer, evidence)


# ---------------------------------------------------------------------- a layer
def run_layer(run: StudyRun, curves: LearnedCurves, choices: FormulaChoices) -> None:
    """Find the formula of a layer, and prove what can be proved of a diffusion with it."""
    search = searched(curves, choices)
    if search.formula is None:
        run.answer(f"{search.answer}.", "formula")
    else:
        told = f"The function is {search.formula.with_numbers()}, up to {100 * search.formula.relative_error:.2g} %."
        run.answer(told, "formula")
    run.results(front_rows(search))
    _write_search(run, curves, search)
    if search.formula is not None:
        equation = search.formula.lettered.within("-alpha*L@H + phi(H)", "phi")
        _write_proofs(run, equation, proofs_of(equation, GreadSettings()))


# ---------------------------------------------------------------------- pieces of the page
def front_rows(search: FormulaSearch) -> list[Row]:
    """The front; where several trials were fitted, with the ranges of their constants beside the letters."""
    rows: list[Row] = [
        {"size": row.size, "relative_error": row.error / search.scale, "fitted": row.parameters, "formula": row.text}
        for row in search.front
    ]
    if any(row.ranges for row in search.front):
        words = [range_words(row.ranges) for row in search.front]
        rows = [{**row, "constants": own} for row, own in zip(rows, words, strict=True)]
    return rows


def _write_search(run: StudyRun, curves: LearnedCurves, search: FormulaSearch) -> None:
    drawing = formula_figure(curves, search)
    run.figure(drawing.name, drawing.figure, drawing.caption, drawing.rows)
    own = ", with constants of every trial" if len(curves.y) > 1 else ""
    run.table("front", front_rows(search), f"The best formula of every size{own}; chosen: {search.rule}.")
    if search.formula is None:
        return
    formula = search.formula
    rows: list[Row] = [
        {"letter": name, "mean": float(column.mean()) * (sign or 1), "std": float(column.std()),
         "smallest": formula.ranges[name][0], "largest": formula.ranges[name][1]}
        for name, sign, column in zip(formula.names, formula.lettered.signs, formula.constants.T, strict=True)
    ]  # fmt: skip
    if rows:
        run.table("constants", rows, f"The letters of {formula.text} over the trials.")
    for note in formula.rounded:
        run.say("", f"The number {note.number} in the formula was fitted as {note.was} and rounded.")


def _write_proofs(run: StudyRun, equation: str, proofs: tuple[Proof, ...]) -> None:
    rows: list[Row] = [{"topic": p.topic, "status": p.status, "finding": p.text, "reason": p.reason} for p in proofs]
    run.table("proofs", rows, f"What is known of {equation} before it runs, for all values of its letters.")
    for proof in proofs:
        if proof.topic == "existence":
            answer = HOLDS if proof.status == "ok" else FAILS if proof.status == "problem" else UNDECIDED
            run.verdict("Solutions exist for all time.", answer, proof.text)
