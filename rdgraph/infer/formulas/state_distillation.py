"""`distil`: the formula of an unknown function in an equation, from observed states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.infer.fit.fitted_values import Fit
from rdgraph.infer.fit.fitting import fit, operator_of
from rdgraph.infer.fit.observations import read_observations
from rdgraph.infer.formulas.constant_fits import Archive, Candidate, Target, rounded
from rdgraph.infer.formulas.flow_fits import (
    FlowFit,
    FlowProblem,
    UnknownFunction,
    WeakForm,
    affine_terms,
    smooth_states,
    spline_function,
    weak_form,
)
from rdgraph.infer.formulas.formula_finding import LITTLE, LetteredFormula, check_search, complexity, lettered, searched
from rdgraph.infer.formulas.formula_search import Effort
from rdgraph.infer.formulas.prefix_terms import evaluate
from rdgraph.infer.formulas.slopes_and_inverses import FUNCTIONS_USED
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.wording import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# ---------------------------------------------------------------------- formula trials
# Formulas of a shortlist, each fitted through the flow of the whole equation.

Array = np.ndarray
#: A start with more entries than this is not fitted; the smoothed one is used.
_MOST_STARTS = 300


@dataclass(frozen=True)
class FittedFormula:
    """A formula fitted through the flow: its size, named constants, residual noise, and criterion."""

    letters: LetteredFormula
    size: int
    sigma: float
    criterion: float
    values: dict[str, Any]

    @property
    def text(self) -> str:
        return self.letters.text


@dataclass(frozen=True)
class Trial:
    """The data of every fit: an equation, its weak form, and observed states (K, n, d) at times (K,)."""

    unknown: UnknownFunction
    operator: Operator
    form: WeakForm
    states: Array
    times: Array
    initial: Any

    def fitted(self, candidate: Candidate) -> FittedFormula | None:
        """The formula through the flow; None where the flow does not reach the last time, or it cannot be fitted."""
        values = evaluate(candidate.word, candidate.constants, self.form.smooth.states.reshape(1, -1))
        coefficients = self.form.coefficients(values)
        if self.problem is None:
            return self._fitted_slowly(candidate, coefficients)
        first = FlowFit(coefficients, candidate.constants[0], self.start, np.inf)
        end = self.problem.fit(candidate.word, first)
        if not np.isfinite(end.squares):
            return None
        letters = lettered(candidate.word, end.constants[None], self.unknown.coefficients)
        by_name = dict(zip(self.unknown.coefficients, end.coefficients.tolist(), strict=True))
        by_name.update(letters.values(end.constants))
        return self._row(candidate, letters, by_name, end.squares)

    @cached_property
    def start(self) -> Array:
        """The start (n, d): given, else the smoothed one."""
        if self.initial is not None:
            return np.asarray(self.initial, dtype=float).reshape(self.states.shape[1:])
        return self.form.smooth.states[0].reshape(self.states.shape[1:])

    @cached_property
    def problem(self) -> FlowProblem | None:
        """The fast fit through matrices, where the terms other than the function are affine; else None."""
        terms = affine_terms(self.unknown, self.operator, self.states.shape[2])
        fixed = self.initial is not None or self.start.size > _MOST_STARTS
        return None if terms is None else FlowProblem(terms, self.states, self.times, fixed)

    def _fitted_slowly(self, candidate: Candidate, coefficients: Array) -> FittedFormula | None:
        letters = lettered(candidate.word, candidate.constants, self.unknown.coefficients)
        start = dict(zip(self.unknown.coefficients, coefficients.tolist(), strict=True))
        try:
            end = self.fit(
                letters, {**start, **letters.values(candidate.constants[0])}, graph=self.operator, level=None
            )
        except NotApplicable:
            return None
        squares = float(np.nansum(np.square(end.observed - end.states)))
        return self._row(candidate, letters, end.values, squares)

    def fit(self, letters: LetteredFormula, start: Mapping[str, Any], **asked: Any) -> Fit:
        """A formula through the flow by `rdgraph.fit`, from the values of `start` that have the declared signs."""
        system = parse(letters.within(self.unknown.equation, self.unknown.name))
        known = {n: v for n, v in start.items() if np.isfinite(v).all()}
        inside = {n: v for n, v in known.items() if system.assumptions.sign(n) == "real" or v > 0}
        return fit(system, self.states, self.times, initial=self.initial, start=inside, starts=1, **asked)

    def _row(
        self, candidate: Candidate, letters: LetteredFormula, values: dict[str, Any], squares: float
    ) -> FittedFormula:
        count = int(np.isfinite(self.states).sum())
        starts = 0 if self.initial is not None else self.start.size
        sigma = float(np.sqrt(squares / max(count - len(values) - starts, 1)))
        criterion = count * np.log(squares / count) + complexity(candidate.size, len(values), count)
        return FittedFormula(letters, candidate.size, sigma, float(criterion), values)


# ---------------------------------------------------------------------- state distillation
#: Formulas that are fitted through the flow.
SHORTLIST = 9
EFFORT = Effort(population=120, generations=20)
#: The share of independent rows of the weak form.
OVERLAP = 0.2


@dataclass(frozen=True)
class Distillation:
    """The formula of an unknown function, found from states.

    `formula` is None where the residuals of every formula exceed the noise. `tried` are the formulas that were fitted
    through the flow, from small to large; `fit` has the values and intervals of the chosen one, `system` is the
    equation with it.
    """

    equation: str
    function: str
    letters: LetteredFormula | None = field(repr=False)
    fit: Fit | None = field(repr=False)
    tried: tuple[FittedFormula, ...]
    noise: float
    within: float
    max_size: int
    #: The function before any formula, as a spline: points and values.
    spline: tuple[Array, Array] = field(repr=False)

    @property
    def formula(self) -> str | None:
        """The formula with named constants."""
        return None if self.letters is None else self.letters.text

    @cached_property
    def system(self) -> System | None:
        """The equation with the formula."""
        return None if self.letters is None else parse(self.letters.within(self.equation, self.function))

    @property
    def values(self) -> dict[str, Any]:
        """The coefficients of the equation, including those of the formula."""
        return {} if self.fit is None else self.fit.values

    @property
    def intervals(self) -> dict[str, Any]:
        """Intervals of the fitted coefficients by profile likelihood."""
        return {} if self.fit is None or self.fit.intervals is None else self.fit.intervals

    @property
    def rule(self) -> str:
        return f"the smallest formula whose criterion, through the flow, is at most {LITTLE:g} above the lowest"

    @property
    def answer(self) -> str:
        """The formula, or a sentence that there is none."""
        if self.formula is not None:
            return f"{self.function} = {self.formula}"
        best = min(self.tried, key=lambda row: row.sigma)
        return (
            f"no formula of size <= {self.max_size} within {self.within:g} times the noise {self.noise:.3g}; "
            f"the nearest leaves {best.sigma:.3g}: {best.text}"
        )

    def __str__(self) -> str:
        rows = [self.answer] if self.fit is None else [self.answer, str(self.fit)]
        table = [f"{row.size:4d}  {row.sigma:9.3g}  {row.criterion:9.1f}  {row.text}" for row in self.tried]
        return "\n".join([*rows, f"({self.rule})", "size   residuals  criterion  formula", *table])

    def _repr_html_(self) -> str:
        rows = [(f"size {row.size}", f"{row.text}  (residuals {row.sigma:.3g})") for row in self.tried]
        return html_table("Distilled", [("answer", self.answer), ("rule", self.rule), *rows])

    def plot(self) -> Figure:
        """Plot the function as a spline, and its formula."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = figure.subplots()
        points, values = self.spline
        axes.plot(points, values, color="0.6", lw=4, label="spline, before any formula")
        if self.formula is not None:
            axes.plot(points, self(points), color="#D55E00", label=self.formula)
        axes.axhline(0, color="0.85", lw=0.8)
        axes.set(xlabel="H", ylabel=f"{self.function}(H)")
        axes.legend(fontsize="small")
        return figure

    def __call__(self, x: Any) -> Array:
        """The values of the formula."""
        if self.letters is None:
            raise NotApplicable(f"expected a formula, got none: {self.answer}")
        return self.letters.at(self.letters.constants(self.values)[None], x)


def distil(
    states: Any,
    times: Any,
    graph: Any,
    equation: str,
    *,
    function: str = "phi",
    normalisation: str = "symmetric",
    initial: Any = None,
    max_size: int = 20,
    functions: Sequence[str] = FUNCTIONS_USED,
    nested: bool = False,
    within: float = 1.25,
    level: float | None = 0.95,
    effort: Effort | None = None,
    seed: int = 0,
) -> Distillation:
    """The formula of an unknown function in an equation, from observed states.

    Candidates come from the weak form of the equation along the smoothed states: sparse regression over a library of
    terms, and a genetic search. The best of them are fitted through the flow, as by `fit`, and the smallest formula
    is chosen whose criterion, K log(squares/K) + coefficients*log(K) + 2*log(4)*size for K observed
    numbers, is at most 6 above the lowest.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        states: observed states (K, n) or (K, n, d), NaN where nothing was observed.
        times: of the observations, rising.
        graph: a Graph, a networkx graph, a scipy sparse matrix or a dense adjacency, or an Operator.
        equation: of one field, with the function added, as in "-alpha*L@H + phi(H)"; linear in its coefficients.
        function: the name of the function.
        normalisation: of the graph.
        initial: the start if it is known exactly; else it is estimated.
        max_size: of the formula, in the units of `find_formula`.
        functions: of the language that may occur.
        nested: whether functions of functions may occur.
        within: the largest residuals of a formula, as a multiple of the noise.
        level: of the intervals; None leaves them out.
        effort: of the genetic search.
        seed: of the search.

    Returns:
        The formula with its values and intervals, and all formulas that were tried.

    Raises:
        NotApplicable: the function is not added, or the equation is not linear in its coefficients.
        InvalidArgument: invalid states or times, or too few of them.
        UnknownName: a function that formulas cannot contain.

    >>> import rdgraph as rd, torch
    >>> grid = rd.generators.grid(4, 5)
    >>> field = rd.lower("F", grid.operator(dtype=torch.float64), {"alpha": 0.3, "beta": 1.2})
    >>> start = torch.linspace(0, 1.4, 20, dtype=torch.float64)[:, None]
    >>> times = torch.linspace(0, 3, 31, dtype=torch.float64)
    >>> seen = rd.solve(field, start, times).states
    >>> seen = seen + 0.005 * torch.randn(seen.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> found = rd.infer.distil(seen, times, grid, "-alpha*L@H + phi(H)", initial=start, functions=[], level=None)
    >>> found.formula
    'beta*H*(1 - H)'
    >>> {name: round(value, 1) for name, value in found.values.items()}
    {'alpha': 0.3, 'beta': 1.2}
    """
    unknown = UnknownFunction.of(equation, function)
    check_search(functions, max_size, seed, within=within)
    operator = operator_of(graph, normalisation)
    observed = read_observations(unknown.system("0*H"), states, times, operator.num_nodes)
    seen, when = torch.where(observed.seen, observed.values, torch.nan).numpy(), observed.times.numpy()
    form = _weak(unknown, operator, seen, when, initial)
    *spline, floor = spline_function(form)
    target = replace(form.target(), noise=max(floor, 1e-9 * form.target().scale))
    archive = searched(target, functions, max_size, 0.01, effort or EFFORT, seed, nested=nested)
    trial = Trial(unknown, operator, form, seen, when, initial)
    tried = ranked(trial, shortlist(archive, target))
    rows = tuple(sorted(tried, key=lambda row: row.size))
    answer = Distillation(
        equation, function, None, None, rows, form.smooth.noise, within, max_size, (spline[0], spline[1])
    )
    for row in tried:
        if row.sigma > within * form.smooth.noise:
            break
        try:
            last = trial.fit(row.letters, row.values, graph=graph, normalisation=normalisation, level=level)
        except NotApplicable:  # constants that are not identifiable: a shorter formula says the same
            continue
        return replace(answer, letters=row.letters, fit=last)
    return answer


def shortlist(archive: Archive, target: Target) -> list[Candidate]:
    """The formulas with the best scores in the weak form, each also with its constants as simple numbers.

    Rows of neighbouring tests overlap, so that few of them count.
    """
    count = target.count * OVERLAP

    def score(c: Candidate) -> float:
        return float(count * np.log(c.squares + np.finfo(float).tiny)) + complexity(c.size, c.parameters, count)

    pool: dict[tuple[int, int], Candidate] = {}
    for candidate in archive:
        simple, notes = rounded(target, candidate, np.inf, 30 * target.noise**2 if target.noise else np.inf)
        for one in (candidate, *([simple] if notes else [])):
            # Formulas with as many constants and the same residuals are the same function: the smallest is kept.
            same = (one.parameters, round(1e4 * np.log(one.squares + np.finfo(float).tiny)))
            if same not in pool or pool[same].size > one.size:
                pool[same] = one
    return sorted(pool.values(), key=score)[:SHORTLIST]


def ranked(trial: Trial, candidates: Sequence[Candidate]) -> list[FittedFormula]:
    """The formulas through the flow, the chosen one first.

    It is the smallest whose criterion is at most 6 above the lowest; the others follow by their criterion.
    """
    tried = [row for row in map(trial.fitted, candidates) if row is not None]
    if not tried:
        raise NotApplicable("expected a formula with which the flow reaches the last time, got none; pass initial=")
    lowest = min(row.criterion for row in tried)
    near = [row for row in tried if row.criterion <= lowest + LITTLE]
    first = min(near, key=lambda row: (row.size, row.criterion))
    return [first, *sorted((row for row in tried if row is not first), key=lambda row: row.criterion)]


def _weak(unknown: UnknownFunction, operator: Operator, seen: Array, when: Array, initial: Any) -> WeakForm:
    smooth = smooth_states(when, seen.reshape(len(when), -1))
    shape = (len(smooth.times), *seen.shape[1:])
    start = smooth.states[0].reshape(shape[1:]) if initial is None else np.asarray(initial, dtype=float)
    known, terms = unknown.terms(operator, smooth.states.reshape(shape), start.reshape(shape[1:]))
    flat = smooth.states.shape
    return weak_form(smooth, known.reshape(flat), terms.reshape(len(terms), *flat))
