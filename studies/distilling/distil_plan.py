"""What `rdgraph distil` is to do: a training with a learned function, or a layer, and how a formula is looked for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gread.formulas.learned_curves import LearnedCurves, chosen_name
from gread.settings.trials import Trial
from rdgraph.distillation.formula_finding import check_search
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text
from studies.runs.config import RunConfig
from studies.training.learned_functions import FILE, read_functions
from studies.training.plan import TrainingPlan, read_plan
from studies.training.rows import read_results

#: What a formula may miss of a layer, where nothing is said: nothing is trained in its place.
LAYER_TOLERANCE = 0.05


@dataclass(frozen=True)
class FormulaChoices:
    """How a formula is looked for; what no search can follow is refused, before there is a folder."""

    tolerance: float
    max_size: int
    functions: tuple[str, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        check_search(self.functions, self.max_size, self.seed, tolerance=self.tolerance)

    def section(self) -> dict[str, Any]:
        """As config.toml holds it."""
        return {"tolerance": self.tolerance, "max_size": self.max_size, "functions": list(self.functions)}


@dataclass(frozen=True, eq=False)
class DistilPlan:
    """A training whose learned function becomes a formula: the trials that did not diverge, and their accuracies."""

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
    kept, places, density = _told(run, name)
    rows = {(int(row["split"]), int(row["seed"])): row for row in read_results(run, training)}
    known = {(trial.split, trial.seed): trial for trial in training.trials}
    lost = [pair for pair in kept if pair not in rows or pair not in known]
    if lost:
        raise FileError(f"expected results of split {lost[0][0]} in {run}, got none; train anew")
    curves = LearnedCurves.of(name, functions[name], places, density)
    before = np.array([float(rows[pair]["test_accuracy"]) for pair in kept])
    here = replace(training, device=device)
    return DistilPlan(run, here, curves, tuple(known[pair] for pair in kept), before, choices, device)


def _told(run: Path, name: str) -> tuple[list[tuple[int, int]], np.ndarray, np.ndarray]:
    """Splits and seeds of the trials with a function, and the density of its states at rising places."""
    try:
        told = json.loads(read_text(run / FILE, "the learned functions of a training"))[name]
        kept = [(int(own["split"]), int(own["seed"])) for own in told["trials"]]
        places, density = (np.array(told["states"][key], dtype=float) for key in ("x", "density"))
    except (ValueError, KeyError, TypeError) as problem:
        raise FileError(f"expected trials and states of {name} in {run / FILE}, got {problem!r}; train anew") from None
    return kept, places, density


def layer_curves(layer: Any, span: str, name: str = "phi") -> LearnedCurves:
    """The function of one entry that a layer computes, on a range such as -3:3."""
    from rdgraph.conformance.node_function import node_function

    ends = span.split(":")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        raise InvalidArgument(f"expected a range as LOWER:UPPER, got {span!r}; write --range=-3:3") from None
    if not low < high:
        raise InvalidArgument(f"expected a range as LOWER:UPPER, got {span!r}; exchange the ends")
    x = np.linspace(low, high, 241)
    return LearnedCurves(name, x, node_function(layer, x)[None], np.ones_like(x))
