"""Preflight of several fields: symbol, slopes, existence and rectangles, the step, growth, sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import T, public
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import in_words
from rdgraph.reports.findings import IF, INFO, OK, PROBLEM, UNKNOWN, Finding, slope_findings
from rdgraph.reports.growth_checks import MAX_AMPLIFICATION
from rdgraph.reports.run_settings import NO_METHOD, RunSettings
from rdgraph.theory.conservation import ConservedSums, conserved
from rdgraph.theory.global_existence import GLOBAL, LOCAL, existence
from rdgraph.theory.identifiability.question import identify
from rdgraph.theory.invariant_boxes import invariant_box
from rdgraph.theory.rate_bounds import rate_bound
from rdgraph.theory.several_fields.rectangles import Rectangle

#: Findings of one part of a page.
Part = Callable[[RunSettings], list[Finding]]

#: Seconds of the rectangle among those of existence.
RECTANGLE_SECONDS = 1.5
#: Frequencies that are tried where no graph is given.
FREQUENCIES = 201


def _nature(run: RunSettings) -> list[Finding]:
    try:
        rows = [f"[{', '.join(map(in_words, row))}]" for row in run.system.symbol().tolist()]
        return [Finding("symbol", INFO, f"P(lam) = [{', '.join(rows)}], in the fields {', '.join(run.system.fields)}")]
    except NotApplicable as reason:
        return [Finding("symbol", INFO, str(reason))]


def _safety(run: RunSettings) -> list[Finding]:
    """Whether solutions exist for all time, and the rectangle that is invariant."""
    lives = existence(run.system)
    detail = "; ".join([lives.reason, *map(str, lives.blow_ups)])
    if lives.value == GLOBAL and not lives.starts:
        first = Finding("existence", OK, "solutions exist for all time", detail)
    elif lives.value == GLOBAL:
        first = Finding(
            "existence", IF, f"the starts have {lives.starts}", f"solutions then exist for all time: {detail}"
        )
    elif lives.value == LOCAL:
        first = Finding("existence", PROBLEM, "solutions can blow up", detail)
    else:
        first = Finding("existence", UNKNOWN, "existence for all time is not settled", detail)
    return [first, *_rectangle(run)]


def _rectangle(run: RunSettings) -> list[Finding]:
    try:
        box = limited(RECTANGLE_SECONDS, invariant_box, run.system, run.normalisation)
    except Undecided as problem:
        return [Finding("box", INFO, f"undecided: {problem}")]
    if not isinstance(box, Rectangle):
        return []
    densities = Finding("non-negative states", INFO, box.nonnegative.outcome, box.nonnegative.reason)
    if not box.exists:
        return [Finding("box", INFO, "none", box.reason), densities]
    assumed = f" where {box.assumes}" if box.assumes else ""
    return [Finding("box", INFO, f"{box.inside} is invariant{assumed}", box.reason), densities]


def _stepping(run: RunSettings) -> list[Finding]:
    """The step against the fastest rate K of the field."""
    if run.method == NO_METHOD:
        return [Finding("step", UNKNOWN, "no method, and so no step, follows from the equation", run.reason)]
    if run.size is None:
        remark = "steps adapt to their error" if run.record.is_adaptive else "no step size"
        return [Finding("step", OK, f"{run.method}: {remark}")]
    if not run.record.is_runge_kutta:
        return [Finding("step", UNKNOWN, f"no step limit for {run.method} is known for several fields")]
    bound = rate_bound(run.system, run.normalisation)
    if not bound.is_finite:
        return [Finding("step", UNKNOWN, "no bound of the slopes is known, and so no step limit")]
    rate = run.filled(public(bound.value.xreplace({T: run.end})))
    reason = f"K = {in_words(rate)} bounds the rates of the field (inf-norm); a step that resolves them need not damp"
    if not rate.free_symbols:
        if run.size * rate <= 1:
            return [Finding("step", OK, f"step {run.size} <= 1/K = {float(1 / rate):.4g}" if rate else "K = 0", reason)]
        return [Finding("step", UNKNOWN, f"step {run.size} exceeds 1/K = {float(1 / rate):.4g}", reason)]
    far = " as long as |u| <= R" if bound.is_local else ""
    return [Finding("step", IF, f"step {run.size} <= 1/({in_words(rate)}){far}", reason)]


def _growth(run: RunSettings) -> list[Finding]:
    """The growth rate of the fastest mode, measured where all coefficients are numbers."""
    lam = sp.Symbol("lam")
    try:
        symbol = run.system.symbol()
    except NotApplicable:
        return []
    if symbol.free_symbols - {lam}:
        return [Finding("growth", INFO, "the growth of modes needs numbers for the coefficients: pass values=")]
    if run.operator_facts.has_degrees:
        return [Finding("growth", INFO, "undecided: eigenvalues of L = D - A have no bound over all graphs")]
    grid = np.array(run.facts.spectrum) if run.facts is not None else np.linspace(0, 2, FREQUENCIES)
    matrices = np.array([np.array(symbol.subs(lam, x).tolist(), dtype=complex) for x in grid.tolist()])
    rate = float(np.linalg.eigvals(matrices).real.max())
    text = f"the fastest mode grows at rate {rate:.4g}" if rate > 1e-9 else "no mode grows"
    factor = float(run.end) * rate
    where = "measured on the spectrum of the graph" if run.facts is not None else "measured for lam in [0, 2]"
    return [Finding("growth", PROBLEM if factor > np.log(MAX_AMPLIFICATION) else INFO, text, where)]


def _observables(run: RunSettings) -> list[Finding]:
    findings = []
    if run.system.coefficients:
        known = identify(run.system)
        text = ", ".join(map(in_words, known.combinations)) or "none found"
        findings.append(Finding("identifiable", INFO, text, known.reason))
    sums = conserved(run.system)
    assert isinstance(sums, ConservedSums)
    return [*findings, Finding("conserved", INFO, "; ".join(map(str, sums.sums)) or "no sum", sums.reason)]


#: The parts of the page of several fields.
FIELD_PARTS: Mapping[str, Part] = {
    "symbol": _nature, "Lipschitz": slope_findings, "existence": _safety, "step": _stepping, "growth": _growth,
    "observables": _observables,
}  # fmt: skip
