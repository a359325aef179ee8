"""A distillation as a study: the formula, its cost in accuracy, and proofs about it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gread.comparison import Comparison, share_ratio
from gread.formulas.distilled_network import (
    DistilledNetwork,
    LearnedCurves,
    Proof,
    chosen_name,
    divergence_note,
    formula_cost,
    proofs_of,
    retrained,
    search_formula,
)
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.trainer import Progress
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text
from rdgraph.infer.formulas.formula_finding import FormulaSearch, check_search, range_words
from studies.runs.chart import Chart, Line, Panel
from studies.runs.run_config import RunConfig, prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED
from studies.training.learned_tables import FILE, read_functions
from studies.training.plan import TrainingPlan, read_plan
from studies.training.training_summary import read_results

# ---------------------------------------------------------------------- distil figures
# Figures: the learned function with its spread and its formula, and error against size.


def formula_chart(curves: LearnedCurves, search: FormulaSearch) -> tuple[Chart, list[Row]]:
    """Chart of the function with its formula and of the best formulas by size, and the numbers of the first panel."""
    x, mean, spread = curves.x, curves.y.mean(0), curves.y.std(0)
    lines = [Line("mean", x, mean, low=mean - spread, high=mean + spread)]
    sizes, errors = np.array([(float(row.size), row.error / search.scale) for row in search.front]).reshape(-1, 2).T
    front = [Line("best formula of its size", sizes, errors)]
    columns = {"x": x, "mean": mean, "std": spread}
    if (formula := search.formula) is not None:
        columns["formula"] = np.atleast_2d(formula(x)).mean(0)
        lines.append(Line(formula.text, x, columns["formula"], look=8))
        front.append(Line("chosen", np.array([float(formula.size)]), np.array([formula.relative_error]), style="dots"))
    panels = [
        Panel(curves.name, lines, y_label=curves.name),
        Panel("error of formulas", front, x_label="size of the formula", y_label="error, relative", y_scale="log"),
    ]
    rows: list[Row] = [
        dict(zip(columns, map(float, point), strict=True)) for point in zip(*columns.values(), strict=True)
    ]
    return Chart(panels, "entry of the state", columns=2), rows


# ---------------------------------------------------------------------- distil plan
# What to distil: a training with a learned function, or a layer; and the options of the search.

#: Default tolerance for a layer; it is smaller because nothing is retrained.
LAYER_TOLERANCE = 0.05


@dataclass(frozen=True)
class FormulaChoices:
    """The options of the search for a formula; invalid ones raise before a folder is made."""

    tolerance: float
    max_size: int
    functions: tuple[str, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        check_search(self.functions, self.max_size, self.seed, tolerance=self.tolerance)

    def section(self) -> dict[str, Any]:
        """The section of config.toml."""
        return {"tolerance": self.tolerance, "max_size": self.max_size, "functions": list(self.functions)}


@dataclass(frozen=True, eq=False)
class DistilPlan:
    """A training with a learned function: the trials that did not diverge, and their accuracies."""

    run: Path
    training: TrainingPlan
    curves: LearnedCurves
    trials: tuple[Trial, ...]
    before: np.ndarray
    choices: FormulaChoices
    device: str

    @property
    def run_config(self) -> RunConfig:
        head = {"run": str(self.run), "function": self.curves.name, "dataset": self.training.preset.dataset}
        sections = {"settings": self.choices.section()}
        return RunConfig("distil", False, self.choices.seed, self.device, sections=sections, head=head)


def read_run(run: Path, function: str | None, choices: FormulaChoices, device: str, root: Path | None) -> DistilPlan:
    """The plan for a run folder of `rdgraph train` with a learned function."""
    training = read_plan(run, root)
    functions = read_functions(run)
    name = chosen_name(list(functions), function)
    trials, places, density = _states(run, name)
    rows = {(int(row["split"]), int(row["seed"])): row for row in read_results(run, training)}
    known = {(trial.split, trial.seed): trial for trial in training.trials}
    lost = [pair for pair in trials if pair not in rows or pair not in known]
    if lost:
        raise FileError(f"{run} has no results of split {lost[0][0]}; train again")
    curves = LearnedCurves.of(name, functions[name], places, density)
    before = np.array([float(rows[pair]["test_accuracy"]) for pair in trials])
    here = replace(training, device=device)
    return DistilPlan(run, here, curves, tuple(known[pair] for pair in trials), before, choices, device)


def _states(run: Path, name: str) -> tuple[list[tuple[int, int]], np.ndarray, np.ndarray]:
    """Splits and seeds of the trials with a function, and the density of its states."""
    try:
        function = json.loads(read_text(run / FILE, "the learned functions of a training"))[name]
        trials = [(int(trial["split"]), int(trial["seed"])) for trial in function["trials"]]
        places, density = (np.array(function["states"][key], dtype=float) for key in ("x", "density"))
    except (ValueError, KeyError, TypeError) as problem:
        raise FileError(f"{run / FILE} has no trials and states of {name} ({problem!r}); train again") from None
    return trials, places, density


def layer_curves(layer: Any, span: str, name: str = "phi") -> LearnedCurves:
    """The function of one entry that a layer computes, on a range such as -3:3."""
    from rdgraph.infer.layers.layer_call import node_function

    ends = span.split(":")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        raise InvalidArgument(f"expected a range as LOWER:UPPER, got {span!r}; write --range=-3:3") from None
    if not low < high:
        raise InvalidArgument(f"expected a range as LOWER:UPPER, got {span!r}; swap the ends")
    x = np.linspace(low, high, 241)
    return LearnedCurves(name, x, node_function(layer, x)[None], np.ones_like(x))


# ---------------------------------------------------------------------- distil study
#: Points of accuracy that a formula may cost.
MOST_LOST = 0.5
OnProgress = Callable[[Progress], None]


def execute_distillation(plan: DistilPlan, folder: Path, progress: OnProgress | None = None) -> Path:
    """Path of the report of a distillation, run in a new folder or resumed in its own."""
    words = ["rdgraph", "distil", str(plan.run), *_words(plan.choices), "--out", str(folder)]
    study = Study(
        "distil",
        f"A formula for {plan.curves.name} on {plan.training.preset.dataset}",
        f"Which formula can replace the learned function {plan.curves.name} of {plan.training.reaction}, and what does "
        "it cost in accuracy?",
        partial(run_training, plan=plan, progress=progress),
        extra="gread",
        commands=lambda config, where: (shlex.join(words), shlex.join(words)),
    )
    return _performed(study, plan.run_config, folder)


def execute_layer(layer: str, curves: LearnedCurves, choices: FormulaChoices, folder: Path) -> Path:
    """Path of the report of a distilled layer."""
    span = f"{curves.x[0]:g}:{curves.x[-1]:g}"
    words = ["rdgraph", "distil", "--layer", layer, f"--range={span}", *_words(choices), "--out", str(folder)]
    study = Study(
        "distil",
        f"A formula for {layer}",
        f"Which formula describes the function of one entry that {layer} computes on {span}?",
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
def run_training(run: StudyRun, plan: DistilPlan, progress: OnProgress | None) -> None:
    """Find the formula, retrain with it on the same splits, analyse the equation, and write the report."""
    search = searched(plan.curves, plan.choices)
    networks: list[DistilledNetwork] = []

    def trained() -> list[Row]:
        networks.append(
            retrained(
                plan.training.data, plan.trials, plan.curves, search, plan.before, device=plan.device, progress=progress
            )
        )
        return accuracy_rows(plan, networks[0].after, networks[0].done.status if networks[0].done else ())

    rows = run.part("accuracies", trained) if search.formula is not None else accuracy_rows(plan, None)
    run.results(rows)
    gaps = 100 * np.array([float(row["learned"]) - float(row["formula"]) for row in rows])
    cost = formula_cost(gaps, [int(row["split"]) for row in rows], share_ratio(plan.training.data))
    diverged = sum(row.get("status", "ok") != "ok" for row in rows)
    run.answer(answered(plan.curves, search, cost, len(gaps), diverged), "formula")
    _write_search(run, plan.curves, search)
    if search.formula is None:
        return
    run.show("accuracies", "Test accuracy with the learned function and with the formula, by split.", rows)
    _judge(run, cost, len(gaps), diverged)
    settings = plan.training.config.model
    equation = search.formula.lettered.within(plan.training.reaction, plan.curves.name)
    if isinstance(settings, GreadSettings):
        _write_proofs(run, equation, proofs_of(equation, settings))


def accuracy_rows(plan: DistilPlan, after: np.ndarray | None, status: Sequence[str] = ()) -> list[Row]:
    """A row for each trial: split, seed, both accuracies as fractions, and the status of the training with the "
    "formula."""
    retrained_accuracies = np.full(len(plan.before), np.nan) if after is None else after
    ended = status or ["ok"] * len(plan.before)
    return [
        {"split": trial.split, "seed": trial.seed, "learned": float(a), "formula": float(b), "status": group}
        for trial, a, b, group in zip(plan.trials, plan.before, retrained_accuracies, ended, strict=True)
    ]


def answered(curves: LearnedCurves, search: FormulaSearch, cost: Comparison, trials: int, diverged: int = 0) -> str:
    """The answer in one sentence."""
    if search.formula is None:
        return f"{curves.name}: {search.answer_for('trial')}."
    low, high = cost.interval
    around = "" if np.isnan(low) else f" (95 % interval {low:.2f} to {high:.2f})"
    constants = ""
    if len(curves.y) > 1 and search.formula.names:
        constants = f" with constants fitted to every trial ({range_words(search.formula.ranges)})"
    return (
        f"{curves.name}(H) = {search.formula.text}, of size {search.formula.size}, differs from the learned function "
        f"by {100 * search.formula.relative_error:.2g} %{constants}; retraining with it costs {cost.difference:.2f} "
        f"points{around}{divergence_note(diverged, trials)}."
    )


def _judge(run: StudyRun, cost: Comparison, trials: int, diverged: int) -> None:
    """Add the verdict on the cost of the formula; undecided if trainings diverged."""
    low, high = cost.interval
    if diverged:
        answer, evidence = UNDECIDED, f"{cost.difference:.2f} points{divergence_note(diverged, trials)}."
    elif np.isnan(low):
        answer, evidence = UNDECIDED, f"{cost.difference:.2f} points on one split."
    else:
        answer = HOLDS if high <= MOST_LOST else FAILS if low > MOST_LOST else UNDECIDED
        evidence = f"{cost.difference:.2f} points, corrected 95 % interval {low:.2f} to {high:.2f} over the splits."
    run.verdict(f"The formula costs at most {MOST_LOST:g} points of accuracy.", answer, evidence)


# ---------------------------------------------------------------------- a layer
def run_layer(run: StudyRun, curves: LearnedCurves, choices: FormulaChoices) -> None:
    """Find the formula of a layer, and analyse a diffusion with it."""
    search = searched(curves, choices)
    if search.formula is None:
        run.answer(f"{search.answer}.", "formula")
    else:
        error = f"{100 * search.formula.relative_error:.2g} %"
        run.answer(f"The function is {search.formula.with_numbers()}, with an error of {error}.", "formula")
    run.results(front_rows(search))
    _write_search(run, curves, search)
    if search.formula is not None:
        equation = search.formula.lettered.within("-alpha*L@H + phi(H)", "phi")
        _write_proofs(run, equation, proofs_of(equation, GreadSettings()))


# ---------------------------------------------------------------------- pieces of the page
def front_rows(search: FormulaSearch) -> list[Row]:
    """The best formula of every size; with the ranges of its constants if several trials were fitted."""
    rows: list[Row] = [
        {"size": row.size, "relative_error": row.error / search.scale, "fitted": row.parameters, "formula": row.text}
        for row in search.front
    ]
    if any(row.ranges for row in search.front):
        words = [range_words(row.ranges) for row in search.front]
        rows = [{**row, "constants": text} for row, text in zip(rows, words, strict=True)]
    return rows


def _write_search(run: StudyRun, curves: LearnedCurves, search: FormulaSearch) -> None:
    chart, drawn = formula_chart(curves, search)
    trials = f", the mean of {len(curves.y)} trials with one standard deviation," if len(curves.y) > 1 else ""
    caption = (
        f"The function{trials} on the range of the states; dashed: the mean of the formula. Right: the smallest "
        "error of a formula of every size, and the chosen formula."
    )
    run.figure("formula", chart, caption, drawn)
    fitted = ", with constants fitted to every trial" if len(curves.y) > 1 else ""
    run.table("front", front_rows(search), f"The best formula of every size{fitted}; chosen: {search.rule}.")
    if search.formula is None:
        return
    formula = search.formula
    rows: list[Row] = [
        {"constant": name, "mean": float(column.mean()) * (sign or 1), "std": float(column.std()),
         "smallest": formula.ranges[name][0], "largest": formula.ranges[name][1]}
        for name, sign, column in zip(formula.names, formula.lettered.signs, formula.constants.T, strict=True)
    ]  # fmt: skip
    if rows:
        run.table("constants", rows, f"The constants of {formula.text} over the trials.")
    for note in formula.rounded:
        run.say("", f"The number {note.number} in the formula is rounded from {note.was}.")


def _write_proofs(run: StudyRun, equation: str, proofs: tuple[Proof, ...]) -> None:
    rows: list[Row] = [{"topic": p.topic, "status": p.status, "finding": p.text, "reason": p.reason} for p in proofs]
    run.table("proofs", rows, f"Analysis of {equation}, valid for all values of its coefficients.")
    for proof in proofs:
        if proof.topic == "existence":
            answer = HOLDS if proof.status == "ok" else FAILS if proof.status == "problem" else UNDECIDED
            run.verdict("Solutions exist for all time.", answer, proof.reason or proof.text)
