"""`distil`: a learned function of a training becomes a formula, which is trained in its place and proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gread.datasets.node_data import NodeData
from gread.formulas.formula_proofs import Proof, proofs_of
from gread.formulas.formula_training import TAKEN, scales, trained_equation
from gread.formulas.learned_curves import LearnedCurves, curves_of
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.trainer import Progress, Trained, train
from rdgraph.distillation.formula_finding import find_formula
from rdgraph.distillation.found_formula import FormulaSearch
from rdgraph.distillation.function_slopes import FUNCTIONS_USED
from rdgraph.distillation.genetic_search import Effort
from rdgraph.errors import InvalidArgument

#: What a formula may miss of a learned function, relative to its root mean square, and how large it may be. The
#: formula is trained in its place, so that its constants need not be exact.
TOLERANCE, MAX_SIZE = 0.1, 20


@dataclass(frozen=True, eq=False)
class DistilledNetwork:
    """A formula for a learned function, what it costs to use it, and what is proved of it.

    Accuracies are shares of 1, in the order of the trials.

    Args:
        function: the name of the learned function.
        curves: what was learned, of every trial, and the states it was seen at.
        search: the formulas that were found, and the one that was chosen.
        equation: the line with the formula in letters; None where no formula is near enough.
        trained_as: the line that was trained, in which every letter starts where the learned function left it.
        before: accuracies with the learned function.
        after: accuracies with the formula.
        splits: of the trials.
        values: means of the coefficients after training, in the letters of `equation`.
        proofs: what is proved of the equation.
        done: the training of the formula.

    >>> from gread import Config, karate, make_trials
    >>> line = "-alpha*L@H + phi(H) where phi learned knots=5 lipschitz=1"
    >>> config = Config().updated({"reaction": line, "hidden": 2, "epochs": 5, "adjacency": "original"})
    >>> done = train(karate(), make_trials(config, [0, 1]), device="cpu")
    >>> found = distil(done, tolerance=0.5, max_size=6, device="cpu")
    >>> found.function, found.after.shape, found.equation.startswith("-alpha*L@H + phi(H) where phi = ")
    ('phi', (2,), True)
    """

    function: str
    curves: LearnedCurves = field(repr=False)
    search: FormulaSearch
    equation: str | None
    trained_as: str | None
    before: np.ndarray
    after: np.ndarray | None
    splits: tuple[int, ...]
    values: dict[str, float]
    proofs: tuple[Proof, ...]
    done: Trained | None = field(repr=False, default=None)

    @property
    def lost(self) -> float:
        """Points of accuracy that the formula costs, the mean over the trials."""
        return float("nan") if self.after is None else float(100 * np.mean(self.before - self.after))

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval of the mean loss at 95 %, trial by trial over the splits."""
        if self.after is None:
            return float("nan"), float("nan")
        return paired_interval(100 * (self.before - self.after), self.splits)

    @property
    def diverged(self) -> int:
        """How many trainings of the formula diverged; their accuracies are those before they did."""
        return 0 if self.done is None else sum(status != "ok" for status in self.done.status)

    @property
    def answer(self) -> str:
        """The formula with what it costs, or that there is none."""
        if self.after is None:
            return f"{self.function}: {self.search.answer_for('trial')}"
        low, high = self.interval
        around = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
        told = told_diverged(self.diverged, len(self.before))
        return f"{self.function}(H) = {self.search.answer}, which costs {self.lost:.2f} points{around}{told}"

    def __str__(self) -> str:
        rows = [self.answer, str(self.search)]
        rows += [f"{proof.topic}: {proof.text} ({proof.status})" for proof in self.proofs]
        return "\n".join(rows)


def told_diverged(count: int, total: int) -> str:
    """The end of a sentence where trainings of a formula diverged.

    >>> told_diverged(2, 10), told_diverged(0, 10)
    ('; 2 of 10 trainings with it diverged', '')
    """
    return f"; {count} of {total} trainings with it diverged" if count else ""


def paired_interval(gaps: np.ndarray, splits: Sequence[int]) -> tuple[float, float]:
    """Student's interval at 95 % of a mean difference, from its means over each split; nan for one split.

    >>> [round(end, 3) for end in paired_interval(np.array([1.0, 3.0, 2.0, 2.0]), [0, 1, 2, 3])]
    [0.701, 3.299]
    """
    from scipy.stats import t

    numbers = np.asarray(splits)
    means = np.array([gaps[numbers == split].mean() for split in dict.fromkeys(splits)])
    if len(means) < 2:
        return float("nan"), float("nan")
    reach = float(t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)))
    return float(means.mean()) - reach, float(means.mean()) + reach


def distil(
    run: Trained,
    *,
    function: str | None = None,
    tolerance: float = TOLERANCE,
    max_size: int = MAX_SIZE,
    functions: Sequence[str] = FUNCTIONS_USED,
    effort: Effort | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Callable[[Progress], None] | None = None,
) -> DistilledNetwork:
    """A formula for a learned function of trained networks, trained in its place on the same splits and seeds.

    All trials have the formula in common, each its own constants. The formula is the smallest whose error, weighted
    by the density of the states, is within the tolerance.

    Args:
        run: what `train` returned for an equation with a learned function, as in "-alpha*L@H + phi(H)".
        function: its name, where the equation has several.
        tolerance: the error that a formula may have, as a share of the root mean square of the function.
        max_size: of the formula, in the units of `rdgraph.find_formula`.
        functions: of the language that may occur in it.
        effort: of the genetic search.
        seed: of the search.
        device: where it is trained.
        progress: hears how far the training is.

    Returns:
        The formula with its front, the accuracy that it costs with its interval, and the proofs.

    Raises:
        InvalidArgument: a training without a learned function, or with several and none named.
        NotApplicable: a function that differs from channel to channel.

    >>> distil("runs/texas")
    Traceback (most recent call last):
    ...
    rdgraph.errors.InvalidArgument: expected what gread.train returned, got str; for a run folder: rdgraph distil FOLDER
    """
    if not isinstance(run, Trained):
        raise InvalidArgument(
            f"expected what gread.train returned, got {type(run).__name__}; for a run folder: rdgraph distil FOLDER"
        )
    sound = [k for k, status in enumerate(run.status) if status == "ok"]
    curves = curves_of(run, function)
    search = search_formula(curves, tolerance, max_size, functions, effort, seed)
    trials = [run.trials[k] for k in sound]
    data = run.data if isinstance(run.data, NodeData) else [run.data[k] for k in sound]
    return retrained(data, trials, curves, search, run.test_accuracy[sound], device=device, progress=progress)


def search_formula(
    curves: LearnedCurves,
    tolerance: float = TOLERANCE,
    max_size: int = MAX_SIZE,
    functions: Sequence[str] = FUNCTIONS_USED,
    effort: Effort | None = None,
    seed: int = 0,
) -> FormulaSearch:
    """One formula for the curves of all trials, with constants of each."""
    return find_formula(
        curves.x, curves.y, weights=curves.weights, tolerance=tolerance, max_size=max_size, functions=functions,
        taken=TAKEN, effort=effort, seed=seed,
    )  # fmt: skip


def retrained(
    data: NodeData | Sequence[NodeData],
    trials: Sequence[Trial],
    curves: LearnedCurves,
    search: FormulaSearch,
    before: np.ndarray,
    *,
    device: str = "auto",
    progress: Callable[[Progress], None] | None = None,
) -> DistilledNetwork:
    """The trials once more with the formula of the search, their accuracies beside those of the learned function."""
    settings, splits = _settings(trials), tuple(trial.split for trial in trials)
    if search.formula is None:
        return DistilledNetwork(curves.name, curves, search, None, None, before, None, splits, {}, ())
    line = trained_equation(settings.reaction, curves.name, search.formula)
    again = [replace(trial, config=trial.config.updated({"reaction": line})) for trial in trials]
    done = train(data, again, device=device, progress=progress)
    equation = search.formula.lettered.within(settings.reaction, curves.name)
    values = trained_values(done, scales(search.formula))
    return DistilledNetwork(
        curves.name, curves, search, equation, line, before, done.test_accuracy, splits, values,
        proofs_of(equation, _settings(done.trials)), done,
    )  # fmt: skip


def trained_values(done: Trained, scale: dict[str, float]) -> dict[str, float]:
    """The means over the trials of coefficients that are numbers, in the letters of the formula."""
    found: dict[str, list[float]] = {}
    for k, status in enumerate(done.status):
        own = done.network(k).coefficients() if status == "ok" else {}
        for name, value in own.items():
            if value.ndim == 0:
                found.setdefault(name, []).append(float(value) * scale.get(name, 1.0))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _settings(trials: Sequence[Trial]) -> GreadSettings:
    settings = trials[0].config.model
    if not isinstance(settings, GreadSettings):
        raise InvalidArgument(f"expected a network around an equation, got {settings.model}, which has none")
    return settings
