"""Preflight: growth of modes until T, and the error of the computed map."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.reals.branches import is_above, is_at_least
from rdgraph.reals.condition_words import condition_in_words, in_words
from rdgraph.reports.findings import IF, INFO, OK, PROBLEM, UNKNOWN, Finding
from rdgraph.reports.run_settings import RunSettings
from rdgraph.theory.field_step_limits import REAL_SPECTRUM
from rdgraph.theory.filters import growth_rate, response_values, run_maps

MAX_AMPLIFICATION = 1e6
MAX_RELATIVE_ERROR = 0.1
#: Larger directed graphs are not turned into the matrices of a run.
MAX_MATRIX_NODES = 300


def growth(run: RunSettings) -> list[Finding]:
    """Findings on how much the fastest frequency grows until T."""
    try:
        rate: sp.Expr = growth_rate(run.system)
    except (NotApplicable, Undecided):
        return []
    if run.facts is not None and run.facts.directed:
        return _directed_growth(run)
    where = f" where {REAL_SPECTRUM}" if run.may_be_directed else ""
    remark = _disc_remark(run) if run.may_be_directed else []
    if is_at_least(0, run.internal(rate), run.domain()):
        return [Finding("growth", OK, f"no frequency grows{where}"), *remark]
    if rate.free_symbols:
        return [_conditional_growth(run, rate, where), *remark]
    factor = float(sp.exp(run.end * rate)) if rate * run.end < 700 else float("inf")
    text = f"the fastest frequency grows by exp(T p) = {factor:.3g}{where}"
    return [Finding("growth", PROBLEM if factor > MAX_AMPLIFICATION else INFO, text), *remark]


def _disc_remark(run: RunSettings) -> list[Finding]:
    """Growth on directed graphs, whose eigenvalues fill the disc |1 - lam| <= 1."""
    try:
        rate: sp.Expr = growth_rate(run.system, directed=True)
    except Undecided as problem:
        return [Finding("growth, directed", INFO, f"undecided: {problem}")]
    if is_at_least(0, run.internal(rate), run.domain()):
        return [Finding("growth, directed", INFO, "no frequency grows on directed graphs either")]
    text = f"frequencies of directed graphs grow at rates up to {in_words(rate)}"
    return [Finding("growth, directed", INFO, text, "largest real part of p over the disc |1 - lam| <= 1")]


def _directed_growth(run: RunSettings) -> list[Finding]:
    rate: sp.Expr = growth_rate(run.system, directed=True)
    reason = "eigenvalues; entries of a non-normal flow can grow for a while"
    if is_at_least(0, run.internal(rate), run.domain()):
        return [Finding("growth", OK, "no frequency grows, on directed graphs too", reason)]
    if rate.free_symbols:
        return [_conditional_growth(run, rate, " on directed graphs")]
    maps = _maps(run)
    if maps is None:
        return [
            Finding("growth", UNKNOWN, f"frequencies of directed graphs grow at rates up to {in_words(rate)}", reason)
        ]
    factor = maps[0]
    text = f"the flow multiplies states of this graph by up to {factor:.3g} until T"
    return [Finding("growth", INFO if factor <= MAX_AMPLIFICATION else PROBLEM, text, "measured norm of the flow")]


def _conditional_growth(run: RunSettings, rate: sp.Expr, where: str) -> Finding:
    reason = f"the fastest frequency{where} grows at rate {in_words(rate)}, over T = {run.end}"
    if isinstance(rate, sp.Piecewise):
        conditions = [condition for _, condition in rate.args]
        for k, (value, condition) in enumerate(rate.args):
            region = sp.And(condition, *map(sp.Not, conditions[:k]))
            if is_at_least(0, run.internal(value), run.domain().where(_internal_condition(run, region))):
                return Finding("growth", IF, f"{condition_in_words(region)}, so that no frequency{where} grows", reason)
    elif is_above(run.internal(rate), 0, run.domain()):
        return Finding("growth", IF, f"growth by exp({run.end}*({in_words(rate)})){where} is acceptable", reason)
    needed = condition_in_words(sp.Le(rate, 0, evaluate=False))
    return Finding("growth", IF, f"no frequency{where} grows: {needed}", reason)


def _internal_condition(run: RunSettings, condition: sp.Basic) -> sp.Basic:
    return condition.xreplace({sp.Symbol(name): x for name, x in run.system.algebra.symbols.items()})


# ---------------------------------------------------------------------- fidelity
def fidelity(run: RunSettings) -> list[Finding]:
    """Is the computed map still the flow? Largest error of the response, relative to the largest exact gain."""
    if run.size is None or run.end == 0 or run.record.is_splitting:
        return []
    if run.facts is not None and run.facts.directed:
        maps = _maps(run)
        if maps is None:
            return []
        text = f"the result of {run.method} is off by {maps[1]:.2g} times the norm of the exact flow"
        return [Finding("fidelity", OK if maps[1] <= MAX_RELATIVE_ERROR else PROBLEM, text, "measured")]
    grid = np.array(run.facts.spectrum) if run.facts is not None else np.linspace(0, 2, 201)
    try:
        exact = response_values(run.system, grid, run.end)
        computed = response_values(run.system, grid, run.end, run.method, run.size)
    except NotApplicable:
        return []
    error, where = _largest_gap(exact, computed, grid)
    assumed = f" where {REAL_SPECTRUM}" if run.may_be_directed else ""
    text = (
        f"the result of {run.method} is off by {error:.2g} times the largest exact gain, at lam = {where:.3g}{assumed}"
    )
    return [Finding("fidelity", OK if error <= MAX_RELATIVE_ERROR else PROBLEM, text)]


def _largest_gap(exact: Any, computed: Any, grid: Any) -> tuple[float, float]:
    """Largest |computed - exact| relative to the largest |exact|, and where; infinite where a gain overflows."""
    gap = np.abs(computed - exact)
    gap[~np.isfinite(gap)] = np.inf
    scale = np.abs(exact).max()
    return float(gap.max() / scale if np.isfinite(scale) else np.inf), float(grid[gap.argmax()])


def _maps(run: RunSettings) -> tuple[float, float] | None:
    """Norm of the exact map of a run on a small graph, and the relative error of the computed one; None without."""
    if run.facts is None or run.facts.nodes > MAX_MATRIX_NODES:
        return None
    try:
        exact, computed = run_maps(run.system, run.facts.operator, run.end, run.method, run.size)
    except NotApplicable:
        return None
    order = 1 if run.operator_facts.norm == "1" else np.inf
    if not (np.isfinite(exact).all() and np.isfinite(computed).all()):
        return float("inf"), float("inf")
    size = float(np.linalg.norm(exact, order))
    return size, float(np.linalg.norm(computed - exact, order)) / size
