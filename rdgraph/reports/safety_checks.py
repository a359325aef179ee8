"""Preflight: existence for all time, invariant boxes, and the step against its limit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import R, h, public
from rdgraph.reals.branches import is_above, is_at_least
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import in_words
from rdgraph.reports.findings import IF, INFO, OK, PROBLEM, UNKNOWN, Finding
from rdgraph.reports.run_settings import RunSettings
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.field_step_limits import StepLimit
from rdgraph.theory.filters import symbol
from rdgraph.theory.global_existence import GLOBAL, LOCAL, existence
from rdgraph.theory.invariant_boxes import Box, single_box
from rdgraph.theory.reaction_flows import closed_rate
from rdgraph.theory.step_limits import step_limit
from rdgraph.vocabulary.methods import tableau

# ---------------------------------------------------------------------- split steps
# The steps of a splitting, whose parts are solved exactly but one after the other.

STABLE = "both parts are solved exactly, for every step"


def splitting(run: RunSettings) -> Finding:
    """Whether a step can diverge: the reaction exists for all states, or diffusion keeps a state where it does.

    Diffusion exp(t (p(A) - p(1))) with coefficients c_k >= 0 for k >= 1 keeps H >= 0, and finite states finite.
    """
    if run.system.structure.linear:
        return Finding("step", OK, "both parts are solved exactly and commute: no step size")
    try:
        reaction = reaction_alone(run.system)
    except NotApplicable as problem:
        return Finding("step", UNKNOWN, f"{run.method} does not apply", str(problem))
    if existence(reaction).value == GLOBAL:
        return Finding("step", OK, "no step can diverge: the reaction exists for all time from every state", STABLE)
    averages = (c for k, c in run.system.structure.generator.items() if k > 0)
    if all(run.system.domain.is_nonnegative(c) for c in averages) and _keeps_half_line(reaction):
        return Finding("step", IF, "H0 >= 0, where no step can diverge", STABLE)
    return Finding("step", UNKNOWN, "it is not settled whether a step can diverge", STABLE)


def reaction_alone(system: System) -> System:
    """The system h' = r(h) of the reaction, under the same assumptions.

    >>> print(reaction_alone(parse("F")))
    -H**2*beta + H*beta
    """
    rate = public(closed_rate(system)).subs({public(h): "H"})
    kinds = {name: kind for name, kind in system.coefficients.items() if name in {x.name for x in rate.free_symbols}}
    return parse(str(rate), kinds, assume=system.assumptions.about(kinds).texts())


def _keeps_half_line(reaction: System) -> bool:
    """Whether [0, u] is invariant for arbitrarily large u."""
    box = single_box(reaction, "row")
    if not box.exists:
        return False
    intervals = [(box.lower, box.upper), *box.others]
    return any(lower == 0 and upper is not None and upper.has(public(R)) for lower, upper in intervals)


# ---------------------------------------------------------------------- safety checks
#: Seconds of the box among those of existence.
BOX_SECONDS = 1.5


def graph_findings(run: RunSettings) -> list[Finding]:
    """Size, spectrum and isolated nodes of the graph."""
    if run.facts is None:
        return [Finding("graph", INFO, "none given: bounds hold for every graph, lam in [0, 2] where it is undirected")]
    findings = [Finding("graph", INFO, str(run.facts))]
    if run.facts.isolated:
        text = f"{run.facts.isolated} nodes have no {'incoming ' if run.facts.directed else ''}edge"
        findings.append(Finding("isolated nodes", INFO, f"{text}; L acts on them as the identity"))
    return findings


def safety(run: RunSettings) -> list[Finding]:
    """Whether solutions exist for all time, and the box that is invariant."""
    lives = existence(run.system)
    detail = "; ".join([lives.reason, *map(str, lives.blow_ups)])
    box, unsettled = None, ""
    try:
        box = limited(BOX_SECONDS, invariant_box_of, run)
    except Undecided as problem:
        unsettled = str(problem)
    if lives.value == GLOBAL:
        return [Finding("existence", OK, "solutions exist for all time", detail), *_box_finding(box)]
    if lives.value == LOCAL and box is not None and box.exists:
        reason = f"outside it solutions can blow up: {detail}"
        return [Finding("existence", IF, inside(run, box), reason, box=box.starts)]
    if lives.value == LOCAL and unsettled:
        text = f"some solutions blow up, and whether a box keeps others is undecided: {unsettled}"
        return [Finding("existence", UNKNOWN, text, detail)]
    if lives.value == LOCAL:
        return [Finding("existence", PROBLEM, "solutions can blow up", detail)]
    return [Finding("existence", UNKNOWN, "existence for all time is not settled", detail)]


def invariant_box_of(run: RunSettings) -> Box | None:
    """The box of this normalisation on this graph; for a symmetric A whose rows sum to 1 that of row."""
    if not run.operator_facts.averages:
        return None
    regular = run.facts is not None and run.facts.is_stochastic
    box = single_box(run.system, "row" if regular else run.normalisation)
    return box.allowing_isolated() if run.has_isolated and box.exists else box


def inside(run: RunSettings, box: Box) -> str:
    """The condition on H0, and on the graph where none is given, under which a box is kept."""
    radius = " for some R > 0" if "R" in {x.name for e in (box.lower, box.upper) for x in e.free_symbols} else ""  # type: ignore[union-attr]
    assumed = f" and {box.assumes}" if box.assumes and run.facts is None else ""
    return f"H0 lies in {box.inside}{radius}{assumed}"


def _box_finding(box: Box | None) -> list[Finding]:
    if box is None:
        return []
    if not box.exists:
        return [Finding("box", INFO, "none", box.reason)]
    given = f" from H0 in {box.inside}" if box.start else ""
    assumed = f" where {box.assumes}" if box.assumes else ""
    ends = f"[{in_words(box.lower)}, {in_words(box.upper)}]"
    return [Finding("box", INFO, f"{ends} is invariant{given}{assumed}", box.reason)]


# ---------------------------------------------------------------------- steps
def stepping(run: RunSettings) -> list[Finding]:
    """Whether the step is within its limit."""
    if run.size is None:
        return [Finding("step", OK, "exact flow: no step size")]
    if run.record.is_splitting:
        return [splitting(run)]
    if run.record.step_function is not None:
        return [Finding("step", UNKNOWN, f"no step limit for {run.method} is known", "a step function has no tableau")]
    if not run.operator_facts.averages and not run.system.structure.linear:
        text = f"no step limit for a nonlinear system under the {run.normalisation} normalisation"
        return [Finding("step", UNKNOWN, text)]
    regular = run.facts is not None and run.facts.is_stochastic
    kind = "symmetric" if run.operator_facts.is_symmetric and not regular else "row"
    ask = partial(
        step_limit, run.system, run.method, kind, isolated=run.has_isolated,
        directed=run.facts is not None and run.facts.directed,
    )  # fmt: skip
    limit = ask()
    if limit.keeps == "linearised" and is_settled(run, run.filled(limit.value)) is not False:
        limit = ask(everywhere=True)
    if limit.keeps == "equal slopes":
        wider = ask(everywhere=True)
        if wider.keeps == "slopes" and is_settled(run, run.filled(wider.value)):
            limit = wider
    if limit.value is None:
        return [Finding("step", UNKNOWN, f"no step limit for {run.method} is known", limit.reason)]
    if run.facts is not None and run.facts.directed and limit.keeps == "stability":
        return _directed_stepping(run, limit)
    found = _bounded_stepping(run, limit)
    if found.outcome in (OK, IF):
        found = replace(found, limit=run.filled(limit.value), keeps=limit.keeps)
    return [found]


def _bounded_stepping(run: RunSettings, limit: StepLimit) -> Finding:
    """The step against its limit, with what the limit assumes of the graph."""
    value = run.filled(limit.value)
    within = is_settled(run, value)
    bound = f"{run.size}, which has no limit," if value == sp.oo else f"{run.size} <= {in_words(value, -1)}"
    if limit.keeps in ("slopes", "distances"):
        return _slope_stepping(run, limit, bound, within)
    if limit.keeps == "equal slopes":
        return _equal_stepping(run, limit, bound, within)
    if within is False:
        return _beyond(run, limit, PROBLEM)
    if limit.keeps == "box":
        box = invariant_box_of(run)
        assert box is not None
        return Finding("step", IF, f"{inside(run, box)} and step {bound}", limit.reason, box=box.starts)
    directed = f"; on directed graphs up to {in_words(limit.directed, -1)}" if limit.directed is not None else ""
    assumed = f" where {limit.assumes}" if limit.assumes and run.may_be_directed else ""
    reason = limit.reason + (directed if assumed else "")
    return Finding("step", OK if within else IF, f"step {bound}{assumed}", reason)


def _beyond(run: RunSettings, limit: StepLimit, status: str) -> Finding:
    """A step that is too large, or larger than what is proved to be safe."""
    value = in_words(run.filled(limit.value), -1)
    text = f"the step {run.size} exceeds the limit {value} of {run.method}"
    reason = f"only up to the limit: {limit.reason}"
    if status == UNKNOWN:
        text = f"the step {run.size} of {run.method} is above {value}, the largest that a proof covers"
        reason = f"proved up to {value}: {limit.reason}"
    return Finding("step", status, text, reason)


def _slope_stepping(run: RunSettings, limit: StepLimit, bound: str, within: bool | None) -> Finding:
    """A limit for every state; one with R is a condition on how far the run goes."""
    if within is False:
        return _beyond(run, limit, PROBLEM if limit.is_sharp else UNKNOWN)
    if limit.rate is not None and not is_at_least(sp.S.Zero, run.internal(run.filled(limit.rate)), run.domain()):
        text = f"the step bounds how fast errors grow, not that {run.method} damps what the flow damps"
        return Finding("step", UNKNOWN, text, limit.reason)
    far = " as long as |h| <= R" if "|h| <= R" in limit.reason else ""
    assumed = f" where {limit.assumes}" if limit.assumes and run.may_be_directed else ""
    status = OK if within and not far else IF
    return Finding("step", status, f"step {bound}{far}{assumed}", limit.reason)


def _equal_stepping(run: RunSettings, limit: StepLimit, bound: str, within: bool | None) -> Finding:
    """A limit for states that are the same in all nodes: a condition on the run, and on the graph."""
    if within is False:
        return _beyond(run, limit, UNKNOWN)
    if run.facts is not None and not run.facts.is_stochastic:
        text = f"no step limit for {run.method} on this graph is known: {bound} needs one whose A keeps constant states"
        return Finding("step", UNKNOWN, text, limit.reason)
    far = " and |h| <= R" if "|h| <= R" in limit.reason else ""
    assumed = f", where {limit.assumes}" if limit.assumes and run.facts is None else ""
    text = f"step {bound} as long as states are nearly the same in all nodes{far}{assumed}"
    return Finding("step", IF, text, limit.reason)


def _directed_stepping(run: RunSettings, limit: StepLimit) -> list[Finding]:
    """A directed graph: the limit that holds in the whole disc, else the eigenvalues of this graph."""
    if limit.directed is not None and is_settled(run, limit.directed):
        text = f"step {run.size} <= {in_words(limit.directed, -1)}, on directed graphs too"
        return [Finding("step", OK, text, "no eigenvalue of the step's matrix is larger than 1 in modulus")]
    worst = _largest_damped(run)
    if worst is None:
        return [Finding("step", UNKNOWN, f"no step limit for {run.method} on directed graphs is known", limit.reason)]
    reason = "measured; eigenvalues of a non-normal A do not bound norms, which the fidelity compares"
    if worst > 1 + 1e-9:
        text = f"{run.method} with step {run.size} multiplies a mode that the flow damps by {worst:.4g} in every step"
        return [Finding("step", PROBLEM, text, reason)]
    return [Finding("step", OK, "every eigenvalue of this graph that the flow damps is damped", reason)]


def _largest_damped(run: RunSettings) -> float | None:
    """max |R(step p)| over the eigenvalues of the graph that the flow damps; None without numbers."""
    p = symbol(run.system)
    if run.facts is None or p.free_symbols - {sp.Symbol("lam")}:
        return None
    spectrum = np.array(run.facts.spectrum)
    rates = sp.lambdify(sp.Symbol("lam"), p, "numpy")(spectrum) * np.ones_like(spectrum)
    damped = rates[rates.real <= 0]
    weights = tableau(run.method)
    factor = sp.lambdify(sorted(weights.stability.free_symbols, key=str), weights.stability, "numpy")
    return float(np.abs(factor(float(run.size) * damped)).max(initial=0.0))  # type: ignore[arg-type]


def is_settled(run: RunSettings, limit: sp.Expr) -> bool | None:
    """True if the step is proved to be at most the limit, False if it is proved to be larger, everywhere."""
    value, domain = run.internal(limit), run.domain()
    if is_at_least(value, run.size, domain):
        return True
    return False if is_above(run.size, value, domain) else None
