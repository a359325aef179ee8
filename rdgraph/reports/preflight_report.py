"""`preflight`: one page before a run, with what will happen and whether it is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.reals.budget import limited, spent
from rdgraph.reals.condition_words import in_words
from rdgraph.reports.field_checks import FIELD_PARTS, Part
from rdgraph.reports.findings import IF, INFO, OK, PROBLEM, UNKNOWN, Finding, Report, slope_findings
from rdgraph.reports.growth_checks import fidelity, growth
from rdgraph.reports.run_settings import NO_METHOD, RunSettings, read_run
from rdgraph.reports.safety_checks import graph_findings, safety, stepping
from rdgraph.run.engines.engine import silent
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.conservation import energy_law, single_mean
from rdgraph.theory.filters import classify, symbol
from rdgraph.theory.identifiability.question import identify
from rdgraph.theory.patterns.kinetics import admissible_numbers

#: Seconds of the parts of the page, ten together, in the order of the page.
SHARES = {
    "graph": 0.5,
    "symbol": 0.5,
    "Lipschitz": 1,
    "existence": 3,
    "step": 3,
    "growth": 1,
    "fidelity": 0.5,
    "observables": 0.5,
}


def preflight(
    system: System | str,
    *,
    normalisation: str = "symmetric",
    T: Any = 1,
    method: str = "auto",
    step: Any = None,
    graph: Any = None,
    values: Mapping[str, Any] | None = None,
    tell: Callable[[str], object] = silent,
) -> Report:
    """Check a run before it starts, within ten seconds: its safety, its step, and what the flow does.

    Args:
        system: the system, a name of the catalogue or a line of text.
        normalisation: of the operator: symmetric, row or column.
        T: the end time of the run.
        method: "auto" selects a method as `solve` does and says why; any other method needs a step.
        step: the step size; optional with "auto".
        graph: a Graph, networkx graph, scipy sparse matrix or dense adjacency. Its spectrum, row sums and isolated
            nodes replace the bounds over all graphs. Without a graph, each statement names what it assumes of it.
        values: values of coefficients; for an automatic step the others count as 1.
        tell: called with the name of each part of the page before it is worked on.

    Returns:
        The findings and the verdict.

    Raises:
        InvalidArgument: T, the step or the method is invalid, or the values contradict the signs that are assumed.
        NotApplicable: no bounds are known under this normalisation.

    >>> import rdgraph as rd
    >>> rd.preflight("BS", T=40, method="euler", step=1).outcome
    'safe if'
    >>> rd.preflight("BS", T=40, method="euler", step=1, values={"alpha": 1, "beta": 1}).outcome
    'unsafe'
    >>> rd.preflight("BS", T=4, values={"alpha": 1, "beta": 1}).settings["method"]
    'exact'
    """
    system = parse(system)
    letters = {name: system.algebra.symbols[name] for name in system.coefficients}
    admissible_numbers(letters, system.domain, {n: v for n, v in (values or {}).items() if not isinstance(v, str)})
    run = read_run(system, normalisation, T, method, step, graph, values)
    findings = _within_time(run, PARTS if run.system.is_single else {**FIELD_PARTS, "graph": graph_findings}, tell)
    return Report(run.system, run.shown(), tuple(findings if run.operator_facts.is_sharp else _cautious(run, findings)))


def _cautious(run: RunSettings, findings: list[Finding]) -> list[Finding]:
    """Findings under a registered normalisation: what holds for lam in [0, 2] may not happen on its graphs.

    Where its spectrum is not known to be real, findings that rest on frequencies become unknown as well.
    """
    remark = f"shown for lam in [0, 2]; graphs of the normalisation {run.normalisation} may not have such frequencies"
    unknown = {PROBLEM} if run.operator_facts.spectrum is not None else {PROBLEM, OK, IF}
    checked = []
    for finding in findings:
        by_frequency = finding.topic in ("growth", "fidelity") or (finding.topic == "step" and run.size is not None)
        if finding.outcome == PROBLEM or (by_frequency and finding.outcome in unknown):
            reason = "; ".join(part for part in (finding.reason, remark) if part)
            finding = replace(finding, outcome=UNKNOWN, reason=reason)
        checked.append(finding)
    return checked


def _within_time(run: RunSettings, parts: Mapping[str, Part], tell: Callable[[str], object]) -> list[Finding]:
    """All parts of the page; a part that takes longer than its share and the time left before it is undecided."""
    status = UNKNOWN if run.method == NO_METHOD else INFO
    findings = [Finding("method", status, run.method, run.reason)] if run.reason else []
    began, end = spent(), 0.0
    for topic in sorted(parts, key=list(SHARES).index):
        end += SHARES[topic]
        tell(topic)
        try:
            findings += limited(began + end - spent(), parts[topic], run)
        except Undecided as problem:
            status = UNKNOWN if topic in ("existence", "step", "growth", "fidelity") else INFO
            findings.append(Finding(topic, status, f"{topic} is undecided: {problem}"))
    return findings


def _nature(run: RunSettings) -> list[Finding]:
    try:
        findings = [Finding("symbol", INFO, f"p(lam) = {in_words(symbol(run.system))}")]
        return [*findings, Finding("filter", INFO, "; ".join(map(str, classify(run.system))))]
    except (NotApplicable, Undecided) as reason:
        return [Finding("symbol", INFO, str(reason))]


def _observables(run: RunSettings) -> list[Finding]:
    findings = []
    if run.system.coefficients:
        known = identify(run.system)
        text = ", ".join(map(in_words, known.combinations)) or "none"
        findings.append(Finding("identifiable", INFO, text))
    findings.append(Finding("conserved", INFO, _conserved(run)))
    energy = energy_law(run.system)
    symmetric = run.operator_facts.is_symmetric
    findings.append(
        Finding("energy", INFO, energy.text if symmetric else f"symmetric A: {energy.text}", energy.verdict)
    )
    return [*findings, Finding("gradient flow", INFO, str(energy.gradient))] if energy.gradient.energy else findings


def _conserved(run: RunSettings) -> str:
    """The conserved mean with its weights on this graph, or with what they assume."""
    try:
        law = single_mean(run.system)
    except Undecided as problem:
        return f"undecided: {problem}"
    if not law.exists or (law.is_undirected and run.facts is not None and run.facts.directed):
        return "no weighted mean"
    if run.normalisation not in law.weights:
        return f"sum_i w_i H_i for every w with w A = w; none is known for the normalisation {run.normalisation}"
    text = f"sum_i w_i H_i with w = {law.weights[run.normalisation]}, d the degree"
    assumed = law.assumes.get(run.normalisation)
    if run.facts is None:
        return text + (f", where {assumed}" if assumed else "")
    if run.facts.directed:
        return "sum_i w_i H_i with w a left eigenvector of A, w A = w; on directed graphs not a function of the degree"
    isolated = " (0 for isolated nodes)" if run.has_isolated and run.operator_facts.column_stochastic else ""
    return text.replace(", d the", f"{isolated}, d the")


#: The parts of the page of one field.
PARTS: Mapping[str, Part] = {
    "graph": graph_findings, "symbol": _nature, "Lipschitz": slope_findings, "existence": safety, "step": stepping,
    "growth": growth, "fidelity": fidelity, "observables": _observables,
}  # fmt: skip
