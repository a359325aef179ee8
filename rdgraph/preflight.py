"""Preflight: before a system is run, one page that says what will happen and whether it is safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import sympy as sp

from rdgraph.boxes import Box, invariant_box
from rdgraph.conserve import conserved, energy_law
from rdgraph.decide import NEGATIVE, NONNEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.existence import GLOBAL, LOCAL, existence
from rdgraph.identify import identify
from rdgraph.lipschitz import check_normalisation, lipschitz_global, lipschitz_local, one_sided
from rdgraph.parse import parse
from rdgraph.spectral import classify, exact_number, growth_rate, response, symbol
from rdgraph.steps import step_limit
from rdgraph.system import System
from rdgraph.tableaux import tableau
from rdgraph.wording import condition_in_words, in_words

SAFE, UNSAFE, CONDITIONAL, UNDECIDED = "safe", "unsafe", "safe if", "undecided"
OK, INFO, IF, PROBLEM, UNKNOWN = "ok", "info", "if", "problem", "unknown"
MAX_AMPLIFICATION = 1e6
MAX_RELATIVE_ERROR = 0.1
_LAM = sp.Symbol("lam")


@dataclass(frozen=True)
class Finding:
    """One line of the page: a topic, how it stands (ok, info, if, problem, unknown), the text and its reason."""

    topic: str
    status: str
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """The page: settings, findings and the verdict."""

    system: System
    settings: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def status(self) -> str:
        """safe, unsafe, safe if (conditions), undecided."""
        present = {f.status for f in self.findings}
        for status, verdict in ((PROBLEM, UNSAFE), (UNKNOWN, UNDECIDED), (IF, CONDITIONAL)):
            if status in present:
                return verdict
        return SAFE

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the verdict rests on."""
        wanted = {UNSAFE: PROBLEM, UNDECIDED: UNKNOWN, CONDITIONAL: IF, SAFE: OK}[self.status]
        return tuple(f.text for f in self.findings if f.status == wanted)

    @property
    def verdict(self) -> str:
        joined = "; ".join(self.reasons)
        words = {SAFE: "safe: ", UNSAFE: "unsafe because ", CONDITIONAL: "safe if ", UNDECIDED: "undecided: "}
        return words[self.status] + joined

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": str(self.system), "settings": self.settings, "status": self.status, "verdict": self.verdict,
            "findings": [asdict(f) for f in self.findings],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"preflight of dH/dt = {self.system}",
            "  " + ", ".join(f"{k} = {v}" for k, v in self.settings.items()),
            "",
        ]
        width = max(len(f.topic) for f in self.findings)
        for f in self.findings:
            reason = f" ({f.reason})" if f.reason else ""
            lines.append(f"  {f.topic:<{width}}  [{f.status:^7}]  {f.text}{reason}")
        return "\n".join([*lines, "", f"verdict: {self.verdict}"])


def preflight(
    system: System | str,
    *,
    normalisation: str = "symmetric",
    T: Any = 1,
    method: str = "euler",
    step: Any = None,
    graph: Any = None,
    coefficients: Mapping[str, Any] | None = None,
) -> Report:
    """Everything that can be said before a run.

    `method` is "exact" or a fixed-step method with its `step`; `coefficients` sets numbers; `graph` (a Graph,
    networkx, scipy sparse or dense adjacency) replaces the bounds over all graphs by the spectrum and row sums of this
    one.

    >>> preflight("BS", T=40, method="euler", step=1).status
    'safe if'
    >>> preflight("BS", T=40, method="euler", step=1, coefficients={"alpha": 1, "beta": 1}).status
    'unsafe'
    """
    check_normalisation(normalisation)
    subject = parse(system)
    if coefficients:
        subject = subject.replace(**coefficients)
    end, size = _settings(T, method, step)
    facts = _graph_facts(graph, normalisation) if graph is not None else None
    settings = {"normalisation": normalisation, "T": str(end), "method": method}
    if size is not None:
        settings |= {"step": str(size), "steps": str(sp.ceiling(end / size))}
    findings = [*_graph_findings(facts), *_nature(subject, normalisation), *_safety(subject, normalisation)]
    findings += [*_stepping(subject, normalisation, method, size, facts), *_growth(subject, end)]
    findings += [*_fidelity(subject, end, method, size, facts), *_observables(subject, normalisation)]
    return Report(subject, settings, tuple(findings))


def _settings(T: Any, method: str, step: Any) -> tuple[sp.Expr, sp.Expr | None]:
    end = exact_number(T, "T")
    if not (end.is_number and end.is_nonnegative):
        raise NotApplicable(f"expected a number T >= 0, got {T}")
    if method == "exact":
        return end, None
    tableau(method)
    if step is None:
        raise NotApplicable(f"expected a step for the method {method}, got none; pass step=, or method='exact'")
    size = exact_number(step, "step")
    if not (size.is_number and size.is_positive):
        raise NotApplicable(f"expected a step > 0, got {step}")
    return end, size


@dataclass(frozen=True)
class GraphFacts:
    """What a concrete graph adds: spectrum of L, largest row sum of A, size, components, isolated nodes."""

    nodes: int
    edges: int
    components: int
    isolated: int
    spectrum: tuple[float, ...]
    row_sum: float


def _graph_facts(graph: Any, normalisation: str) -> GraphFacts:
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    from rdgraph.graphs.operators import dense_adjacency, dense_operator

    weights = dense_adjacency(graph)
    if not np.allclose(weights, weights.T):
        raise NotApplicable(
            "expected an undirected graph (symmetric adjacency), got a directed one; symmetrise it: Graph.undirected()"
        )
    weights = (weights + weights.T) / 2
    symmetric = dense_operator(weights, "symmetric")
    spectrum = 1 - np.linalg.eigvalsh(symmetric)[::-1]
    row_sum = float(dense_operator(weights, normalisation).sum(axis=1).max())
    isolated = int((weights.sum(axis=1) == 0).sum())
    components = int(connected_components(weights)[0])
    return GraphFacts(
        len(weights), int((np.triu(weights, 1) > 0).sum()), components, isolated, tuple(map(float, spectrum)), row_sum
    )


def _graph_findings(facts: GraphFacts | None) -> list[Finding]:
    if facts is None:
        return [Finding("graph", INFO, "none given: bounds hold for every graph, lam in [0, 2]")]
    size = f"{facts.nodes} nodes, {facts.edges} edges, {facts.components} components"
    spectrum = f"lam in [{facts.spectrum[0]:.4g}, {facts.spectrum[-1]:.4g}], largest row sum {facts.row_sum:.4g}"
    found = [Finding("graph", INFO, f"{size}, {spectrum}")]
    if facts.isolated:
        found.append(
            Finding("isolated nodes", INFO, f"{facts.isolated} nodes have no edge; L acts on them as the identity")
        )
    return found


def _nature(system: System, normalisation: str) -> list[Finding]:
    found = []
    try:
        found.append(Finding("symbol", INFO, f"p(lam) = {symbol(system)}"))
        found.append(Finding("filter", INFO, "; ".join(map(str, classify(system)))))
    except (NotApplicable, Undecided) as reason:
        found.append(Finding("symbol", INFO, str(reason)))
    for name, question in (
        ("Lipschitz", lipschitz_global),
        ("Lipschitz, |h|<=R", lipschitz_local),
        ("one-sided", one_sided),
    ):
        constant = question(system, normalisation)
        value = f"{in_words(constant.value)} ({constant.norm})" if constant.value is not None else "none"
        found.append(Finding(name, INFO, value, constant.note))
    return found


def _safety(system: System, normalisation: str) -> list[Finding]:
    lives = existence(system)
    detail = "; ".join([lives.reason, *map(str, lives.blow_ups)])
    if lives.status == GLOBAL:
        return [Finding("existence", OK, "solutions exist for all time", detail), *_box_finding(system, normalisation)]
    box = _box(system, normalisation)
    if lives.status == LOCAL and box is not None and box.exists:
        inside = f"H0 lies in [{box.lower}, {box.upper}]"
        return [Finding("existence", IF, inside, f"outside it solutions can blow up: {detail}")]
    if lives.status == LOCAL:
        return [Finding("existence", PROBLEM, "solutions can blow up", detail)]
    return [Finding("existence", UNKNOWN, "existence for all time is not settled", detail)]


def _box(system: System, normalisation: str) -> Box | None:
    return None if normalisation == "column" else invariant_box(system, normalisation)


def _box_finding(system: System, normalisation: str) -> list[Finding]:
    box = _box(system, normalisation)
    if box is None:
        return []
    text = f"[{box.lower}, {box.upper}] is invariant" if box.exists else "none"
    return [Finding("box", INFO, text, box.note)]


def _stepping(
    system: System, normalisation: str, method: str, size: sp.Expr | None, facts: GraphFacts | None
) -> list[Finding]:
    if size is None:
        return [Finding("step", OK, "exact flow: no step size")]
    if normalisation == "column" and not system.structure.linear:
        return [Finding("step", UNKNOWN, "no step limit for a nonlinear system under the column normalisation")]
    limit = step_limit(system, method, "row" if normalisation == "row" else "symmetric")
    if limit.value is None:
        return [Finding("step", UNKNOWN, f"no step limit for {method} is known", limit.means)]
    value = limit.value.subs(sp.Symbol("s"), facts.row_sum) if facts is not None else limit.value
    settled = _settled(system, value - size)
    if settled is False:
        return [
            Finding("step", PROBLEM, f"the step {size} exceeds the limit {in_words(value)} of {method}", limit.means)
        ]
    bound = f"{size} <= {in_words(value)}"
    if limit.keeps == "linearised":
        return [Finding("step", UNKNOWN, f"the step meets {bound}, but only near constant states", limit.means)]
    if limit.keeps == "box":
        box = _box(system, normalisation)
        assert box is not None
        return [Finding("step", IF, f"H0 lies in [{box.lower}, {box.upper}] and step {bound}", limit.means)]
    return [Finding("step", OK if settled else IF, f"step {bound}", limit.means)]


def _settled(system: System, margin: sp.Expr) -> bool | None:
    """True if the margin is >= 0 on the whole domain, False if it is negative on all of it."""
    own = margin.xreplace({sp.Symbol(n): x for n, x in system.algebra.symbols.items()})
    domain = Domain.of(system)
    branches = [sp.sympify(b.expr) for b in own.args] if isinstance(own, sp.Piecewise) else [own]
    if any(isinstance(b, sp.Add) and b.has(sp.Piecewise) for b in branches):
        own = sp.piecewise_fold(own)
        branches = [b.expr for b in own.args] if isinstance(own, sp.Piecewise) else [own]
    signs = [domain.sign(b) for b in branches]
    if all(s in (POSITIVE, NONNEGATIVE, ZERO) for s in signs):
        return True
    return False if all(s is NEGATIVE for s in signs) else None


def _growth(system: System, end: sp.Expr) -> list[Finding]:
    try:
        rate = growth_rate(system)
    except (NotApplicable, Undecided):
        return []
    if _settled(system, -rate):
        return [Finding("growth", OK, "no frequency grows")]
    if rate.free_symbols:
        return [_conditional_growth(system, rate, end)]
    factor = float(sp.exp(end * rate)) if rate * end < 700 else float("inf")
    text = f"the fastest frequency grows by exp(T p) = {factor:.3g}"
    return [Finding("growth", PROBLEM if factor > MAX_AMPLIFICATION else INFO, text)]


def _conditional_growth(system: System, rate: sp.Expr, end: sp.Expr) -> Finding:
    reason = f"the fastest frequency grows at rate {in_words(rate)}, over T = {end}"
    if isinstance(rate, sp.Piecewise) and _settled(system, -rate.args[0].expr):
        return Finding("growth", IF, f"{condition_in_words(rate.args[0].cond)}, so that no frequency grows", reason)
    if _settled(system, rate) and not isinstance(rate, sp.Piecewise):
        return Finding("growth", IF, f"growth by exp({end}*({rate})) is acceptable", reason)
    return Finding("growth", IF, f"no frequency grows: {in_words(rate)} <= 0", reason)


def _fidelity(
    system: System, end: sp.Expr, method: str, size: sp.Expr | None, facts: GraphFacts | None
) -> list[Finding]:
    """Is the computed map still the flow? Largest error of the response, relative to the largest exact gain."""
    if size is None or end == 0:
        return []
    try:
        exact, computed = response(system, end), response(system, end, method, size)
    except NotApplicable:
        return []
    if (exact.free_symbols | computed.free_symbols) - {_LAM}:
        return []
    import numpy as np

    grid = np.array(facts.spectrum) if facts is not None else np.linspace(0, 2, 201)
    values = [
        np.broadcast_to(np.asarray(sp.lambdify(_LAM, e, "numpy")(grid), dtype=float), grid.shape)
        for e in (exact, computed)
    ]
    gap = np.abs(values[1] - values[0])
    error, where = float(gap.max() / np.abs(values[0]).max()), float(grid[gap.argmax()])
    text = f"{method} differs from the exact flow by {error:.2g} of the largest gain (at lam = {where:.3g})"
    return [Finding("fidelity", OK if error <= MAX_RELATIVE_ERROR else PROBLEM, text)]


def _observables(system: System, normalisation: str) -> list[Finding]:
    found = []
    known = identify(system)
    if system.coefficients:
        text = f"the flow reveals {', '.join(map(str, known.combinations)) or 'nothing'}"
        found.append(Finding("identifiable", INFO, text))
    law = conserved(system)
    text = f"sum_i w_i H_i with w = {law.weights[normalisation]}, d the degree" if law.exists else "no weighted mean"
    found.append(Finding("conserved", INFO, text))
    energy = energy_law(system)
    found.append(Finding("energy", INFO, energy.text, energy.decays))
    return found
