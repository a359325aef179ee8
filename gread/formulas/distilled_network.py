"""`distil_network`: replaces a learned function by a formula, retrains the network and proves its properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gread.comparison import Comparison, share_ratio
from gread.datasets.node_data import NodeData
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.trainer import Progress, Trained, train
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided, UnknownName
from rdgraph.infer.formulas.formula_finding import Formula, FormulaSearch, find_formula, with_function
from rdgraph.infer.formulas.formula_search import Effort
from rdgraph.infer.formulas.prefix_terms import to_text
from rdgraph.infer.formulas.slopes_and_inverses import FUNCTIONS_USED
from rdgraph.reports.preflight_report import preflight
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.learned_functions import LearnedValues

# ---------------------------------------------------------------------- learned curves
#: Points of a curve; share of the states within its range; times of a flow; trials whose states are used.
POINTS, SHARE, TIMES, MOST_TRIALS = 121, 0.99, 5, 5
#: The share of the mean density added to every weight, so that a formula stays close where states are rare.
FLOOR = 0.1


@dataclass(frozen=True, eq=False)
class LearnedCurves:
    """The function of every trial as `y` (trials, points) at `x` (points,), weighted by the density of states."""

    name: str
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, name: str, functions: Sequence[LearnedValues], points: np.ndarray, density: np.ndarray
    ) -> LearnedCurves:
        """The curves of the functions of all trials, for the density of states at increasing points.

        Without a density the declared range is used. A function per channel has no common formula and is an error.
        """
        if not functions:
            raise InvalidArgument(f"expected trials that did not diverge, got none with {name}; train again")
        declared = functions[0].declaration
        if declared.per_channel:
            raise NotApplicable(
                f"expected one function for all channels, got {name} with one for each; train it without per_channel"
            )
        low, high = (float(end) for end in declared.range)
        if len(points) < 2:
            x, weights = np.linspace(low, high, POINTS), np.ones(POINTS)
        else:
            mass = np.cumsum(density) / np.sum(density)
            rest = (1 - SHARE) / 2
            first, last = (int(np.searchsorted(mass, side).clip(0, len(points) - 1)) for side in (rest, 1 - rest))
            x = np.linspace(float(points[first]), float(points[last]), POINTS)
            weights = np.interp(x, points, density)
            weights = weights + FLOOR * weights.mean()
        return cls(name, x, np.stack([function(x) for function in functions]), weights)


def chosen_name(names: Sequence[str], asked: str | None) -> str:
    """The learned function with that name, or the only one.

    >>> chosen_name(["phi"], None)
    'phi'
    """
    if asked is not None:
        if asked not in names:
            raise UnknownName("learned function", asked, names)
        return asked
    if len(names) != 1:
        got = ", ".join(names) or "none"
        raise InvalidArgument(
            f"expected one learned function, got {got}; name it, or train with phi(H) in the equation"
        )
    return names[0]


def curves_of(run: Trained, name: str | None = None) -> LearnedCurves:
    """The curves of the learned function of a finished training."""
    sound = [k for k, status in enumerate(run.status) if status == "ok"]
    if not sound or not isinstance(run.trials[sound[0]].config.model, GreadSettings):
        raise InvalidArgument("expected trained networks around an equation with a learned function, got none")
    _settings(run.trials)
    each = [run.network(k).functions() for k in sound]
    function = chosen_name(list(each[0]), name)
    states = []
    for k in sound[:MOST_TRIALS]:
        network, data = run.network(k), run.data_of(k)
        times = np.linspace(0.0, network.gread.time, TIMES).tolist()
        states.append(network.states(data.x, data.graph, times).double().cpu().numpy().ravel())
    entries = np.concatenate(states)
    entries = entries[np.isfinite(entries)]
    density, edges = np.histogram(entries, bins=POINTS, range=tuple(np.quantile(entries, [0.001, 0.999])))
    middles = (edges[1:] + edges[:-1]) / 2
    return LearnedCurves.of(function, [functions[function] for functions in each], middles, density)


# ---------------------------------------------------------------------- formula training
# The trained equation of a formula: every constant starts at its mean over the trials.

#: Coefficients whose kinds and links are settings of the network, and which a formula does not use.
TAKEN = ("alpha", "beta")


def scales(formula: Formula) -> dict[str, float]:
    """The factor of each coefficient: one of fixed sign is learned between 0 and 1 and starts at 1/2, so its factor is
    twice the mean over the trials; one of either sign starts anywhere between -1 and 1."""
    columns = zip(formula.names, formula.lettered.signs, formula.constants.T, strict=True)
    return {name: float(2 * np.abs(column.mean()) if sign else np.abs(column).max()) for name, sign, column in columns}


def trained_equation(equation: str, function: str, formula: Formula) -> str:
    """The equation with the formula in place of its function, each coefficient with its factor.

    >>> import numpy as np, rdgraph as rd
    >>> x = np.linspace(-2, 2, 50)
    >>> found = rd.infer.find_formula(x, [1.5*x, 2.5*x], taken=TAKEN, functions=[])
    >>> trained_equation("-alpha*L@H + phi(H) where phi learned knots=12", "phi", found.formula)
    '-alpha*L@H + phi(H) where phi = 4*gamma*H'
    """
    scale = scales(formula)
    signs = formula.lettered.signs
    written = [f"{'-' if sign < 0 else ''}{scale[n]:.4g}*{n}" for n, sign in zip(formula.names, signs, strict=True)]
    body = to_text(formula.lettered.word, written)
    body = body if "H" in body else f"({body})*H**0"
    return with_function(equation, function, body, formula.lettered.statements)


# ---------------------------------------------------------------------- formula proofs
# Proved properties of an equation with a formula in place of a learned function.


@dataclass(frozen=True)
class Proof:
    """A finding on a topic, with its status (ok, info, if, problem, unknown)."""

    topic: str
    status: str
    text: str
    reason: str = ""


def proofs_of(equation: str, settings: GreadSettings, values: Mapping[str, float] | None = None) -> tuple[Proof, ...]:
    """The findings of the preflight check of the equation, for the `values` of coefficients or all positive ones.

    >>> found = proofs_of("-alpha*L@H + phi(H) where phi = gamma*tanh(H)", GreadSettings(method="rk4", step=0.5))
    >>> [proof.text for proof in found if proof.topic == "existence"]
    ['solutions exist for all time']
    """
    normalisation = settings.normalisation if settings.adjacency == "original" else "row"
    try:
        report = preflight(
            parse(equation), normalisation=normalisation, T=settings.time, method=settings.method, step=settings.step,
            values=dict(values) if values else None,
        )  # fmt: skip
    except (NotApplicable, Undecided) as problem:
        return (Proof("preflight", "unknown", str(problem)),)
    return tuple(Proof(f.topic, f.outcome, f.text, f.reason) for f in report.findings)


# ---------------------------------------------------------------------- distilled network
#: The tolerated error of a formula, relative to the root mean square of the function, and its largest size. The formula
#: is retrained, so its constants need not be exact.
TOLERANCE, MAX_SIZE = 0.1, 20


@dataclass(frozen=True, eq=False)
class DistilledNetwork:
    """A formula for a learned function, its cost in accuracy, and the proved properties of the new equation.

    Accuracies are shares of 1, in the order of the trials.

    Args:
        function: The name of the learned function.
        curves: The learned function of every trial, with the density of states.
        search: The formulas found, and the chosen one.
        equation: The equation with the formula and named coefficients; None if no formula is close enough.
        trained_as: The trained equation, in which every coefficient starts at its value in the learned function.
        before: Accuracies with the learned function.
        after: Accuracies with the formula.
        splits: The splits of the trials.
        values: Means of the coefficients of `equation` after training.
        proofs: Proved properties of the equation.
        test_to_train: n_test/n_train of the splits, which share nodes.
        done: The training of the formula.

    >>> import gread
    >>> line = "-alpha*L@H + phi(H) where phi learned knots=5 lipschitz=1"
    >>> config = gread.Config().updated({"reaction": line, "hidden": 2, "epochs": 5, "adjacency": "original"})
    >>> run = gread.train(gread.karate(), gread.make_trials(config, [0, 1]), device="cpu")
    >>> result = gread.distil_network(run, tolerance=0.5, max_size=6, device="cpu")
    >>> result.function, result.after.shape, result.equation.startswith("-alpha*L@H + phi(H) where phi = ")
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
    test_to_train: float = float("nan")
    done: Trained | None = field(repr=False, default=None)

    @property
    def lost(self) -> float:
        """The accuracy in points that the formula costs, the mean over the trials."""
        return float("nan") if self.after is None else float(100 * np.mean(self.before - self.after))

    @property
    def interval(self) -> tuple[float, float]:
        """The corrected 95 % interval of the mean loss over the splits."""
        if self.after is None:
            return float("nan"), float("nan")
        return formula_cost(100 * (self.before - self.after), self.splits, self.test_to_train).interval

    @property
    def diverged(self) -> int:
        """The number of diverged trainings of the formula; their accuracies are those before divergence."""
        return 0 if self.done is None else sum(status != "ok" for status in self.done.status)

    @property
    def answer(self) -> str:
        """The formula with its cost, or that there is none."""
        if self.after is None:
            return f"{self.function}: {self.search.answer_for('trial')}"
        low, high = self.interval
        around = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
        note = divergence_note(self.diverged, len(self.before))
        return f"{self.function}(H) = {self.search.answer}, which costs {self.lost:.2f} points{around}{note}"

    def __str__(self) -> str:
        rows = [self.answer, str(self.search)]
        rows += [f"{proof.topic}: {proof.text} ({proof.status})" for proof in self.proofs]
        return "\n".join(rows)


def divergence_note(count: int, total: int) -> str:
    """The end of a sentence on the number of diverged trainings of a formula; "" for none.

    >>> divergence_note(2, 10), divergence_note(0, 10)
    ('; 2 of 10 trainings with it diverged', '')
    """
    return f"; {count} of {total} trainings with it diverged" if count else ""


def formula_cost(gaps: np.ndarray, splits: Sequence[int], ratio: float) -> Comparison:
    """The accuracy lost with a formula, from the points lost in every trial; `ratio` is n_test/n_train.

    >>> cost = formula_cost(np.array([1.0, 3.0, 2.0, 2.0]), [0, 1, 2, 3], 0.0)
    >>> [round(end, 3) for end in cost.interval]
    [0.701, 3.299]
    """
    numbers = np.asarray(splits)
    means = {split: float(gaps[numbers == split].mean()) for split in dict.fromkeys(splits)}
    return Comparison.of(means, dict.fromkeys(means, 0.0), ratio)


def distil_network(
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
    """Find a formula for a learned function of trained networks, and retrain them with it on the same splits and seeds.

    All trials share the formula, with separate constants. It is the smallest formula whose error, weighted by the
    density of the states, is within the tolerance.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        run: The result of `train` for an equation with a learned function, as in "-alpha*L@H + phi(H)".
        function: The name of the function, if the equation has several.
        tolerance: The tolerated error of the formula, as a share of the root mean square of the function.
        max_size: The largest size of the formula, in the units of `rdgraph.infer.find_formula`.
        functions: The functions of the language that may occur in it.
        effort: The effort of the genetic search.
        seed: The seed of the search.
        device: The device of the training.
        progress: Called with the progress of the training.

    Returns:
        The formula with its front, its cost in accuracy with an interval, and the proofs.

    Raises:
        InvalidArgument: For a training without a learned function, or with several and no name given.
        NotApplicable: For a function that differs between channels.

    >>> import gread
    >>> gread.distil_network("runs/texas")
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
    """Find one formula for the curves of all trials, with separate constants."""
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
    """Retrain the trials with the formula of the search, and compare their accuracies with those of the function."""
    settings, splits = _settings(trials), tuple(trial.split for trial in trials)
    if search.formula is None:
        return DistilledNetwork(curves.name, curves, search, None, None, before, None, splits, {}, ())
    line = trained_equation(settings.reaction, curves.name, search.formula)
    again = [replace(trial, config=trial.config.updated({"reaction": line})) for trial in trials]
    run = train(data, again, device=device, progress=progress)
    equation = search.formula.lettered.within(settings.reaction, curves.name)
    values = trained_values(run, scales(search.formula))
    return DistilledNetwork(
        curves.name, curves, search, equation, line, before, run.test_accuracy, splits, values,
        proofs_of(equation, _settings(run.trials)), share_ratio(data), run,
    )  # fmt: skip


def trained_values(run: Trained, scale: dict[str, float]) -> dict[str, float]:
    """The means over the trials of the scalar coefficients of the formula."""
    values: dict[str, list[float]] = {}
    for k, status in enumerate(run.status):
        coefficients = run.network(k).coefficients() if status == "ok" else {}
        for name, value in coefficients.items():
            if value.ndim == 0:
                values.setdefault(name, []).append(float(value) * scale.get(name, 1.0))
    return {name: float(np.mean(each)) for name, each in values.items()}


def _settings(trials: Sequence[Trial]) -> GreadSettings:
    settings = trials[0].config.model
    if not isinstance(settings, GreadSettings):
        raise InvalidArgument(f"expected a network around an equation, got {settings.model}, which has none")
    if settings.is_stacked:
        raise NotApplicable(
            "expected a network with one flow, whose functions become formulas, got one in blocks; train it with "
            "blocks=1, without mixing, residual and norm"
        )
    return settings
