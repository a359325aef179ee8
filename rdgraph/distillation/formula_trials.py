"""Formulas of a shortlist, each fitted through the flow of the whole equation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rdgraph.distillation.flow_fits import FlowFit, FlowProblem
from rdgraph.distillation.formula_archive import Candidate
from rdgraph.distillation.formula_finding import UNIT_COST
from rdgraph.distillation.formula_letters import LetteredFormula, lettered
from rdgraph.distillation.prefix_terms import Word, evaluate
from rdgraph.distillation.unknown_function import UnknownFunction, affine_terms
from rdgraph.distillation.weak_form import WeakForm
from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.inverse.fitting import fit
from rdgraph.systems.parser import parse

Array = np.ndarray
#: Entries of the start up to which they are fitted with the constants; else the smoothed start is taken.
_MOST_STARTS = 300


@dataclass(frozen=True)
class FittedFormula:
    """A formula that was fitted through the flow: its size, its letters, the noise it leaves, its criterion."""

    text: str
    size: int
    sigma: float
    criterion: float
    values: dict[str, Any]
    word: Word = field(repr=False, default=())


@dataclass(frozen=True)
class Trial:
    """What every formula is fitted to: an equation, its weak form, and observed states (K, n, d) at times (K,)."""

    unknown: UnknownFunction
    operator: Operator
    form: WeakForm
    states: Array
    times: Array
    initial: Any

    def fitted(self, candidate: Candidate) -> tuple[FittedFormula, LetteredFormula] | None:
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
        found = dict(zip(self.unknown.coefficients, end.coefficients.tolist(), strict=True))
        found.update(letters.values(end.constants))
        return self._row(candidate, letters, found, end.squares), letters

    @cached_property
    def start(self) -> Array:
        """The start (n, d): what is known, else the smoothed one."""
        if self.initial is not None:
            return np.asarray(self.initial, dtype=float).reshape(self.states.shape[1:])
        return self.form.smooth.states[0].reshape(self.states.shape[1:])

    @cached_property
    def problem(self) -> FlowProblem | None:
        """The quick way, where the terms beside the function are affine."""
        terms = affine_terms(self.unknown, self.operator, self.states.shape[2])
        fixed = self.initial is not None or self.start.size > _MOST_STARTS
        return None if terms is None else FlowProblem(terms, self.states, self.times, fixed)

    def _fitted_slowly(self, candidate: Candidate, coefficients: Array) -> tuple[FittedFormula, LetteredFormula] | None:
        letters = lettered(candidate.word, candidate.constants, self.unknown.coefficients)
        system = parse(letters.within(self.unknown.equation, self.unknown.name))
        start = dict(zip(self.unknown.coefficients, coefficients.tolist(), strict=True))
        start.update(letters.values(candidate.constants[0]))
        inside = {n: v for n, v in start.items() if system.assumptions.sign(n) == "real" or v > 0}
        try:
            end = fit(
                system, self.states, self.times, graph=self.operator, initial=self.initial, start=inside, starts=1,
                level=None,
            )  # fmt: skip
        except NotApplicable:
            return None
        squares = float(np.nansum(np.square(end.observed - end.states)))
        return self._row(candidate, letters, end.values, squares), letters

    def _row(
        self, candidate: Candidate, letters: LetteredFormula, values: dict[str, Any], squares: float
    ) -> FittedFormula:
        count = int(np.isfinite(self.states).sum())
        starts = 0 if self.initial is not None else self.start.size
        sigma = float(np.sqrt(squares / max(count - len(values) - starts, 1)))
        criterion = count * np.log(squares / count) + len(values) * np.log(count) + UNIT_COST * candidate.size
        return FittedFormula(letters.text, candidate.size, sigma, float(criterion), values, candidate.word)
