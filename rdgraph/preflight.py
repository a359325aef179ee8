"""Preflight: before a system is run, one page that says what will happen and whether it is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from rdgraph import symbols
from rdgraph.boxes import Box, invariant_box
from rdgraph.branches import is_above, is_at_least
from rdgraph.conserve import conserved, energy_law
from rdgraph.decide import Domain
from rdgraph.decisions.budget import time_limit
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.existence import GLOBAL, LOCAL, existence
from rdgraph.identify import identify
from rdgraph.lipschitz import check_normalisation, lipschitz_global, lipschitz_local, one_sided
from rdgraph.parse import parse
from rdgraph.spectral import classify, exact_number, growth_rate, symbol
from rdgraph.steps import REAL_SPECTRUM, StepLimit, step_limit
from rdgraph.system import System
from rdgraph.tableaux import tableau
from rdgraph.wording import condition_in_words, in_words

if TYPE_CHECKING:
    from rdgraph.graphs.facts import GraphFacts

SAFE, UNSAFE, CONDITIONAL, UNDECIDED = "safe", "unsafe", "safe if", "undecided"
OK, INFO, IF, PROBLEM, UNKNOWN = "ok", "info", "if", "problem", "unknown"
MAX_AMPLIFICATION = 1e6
MAX_RELATIVE_ERROR = 0.1
#: Larger directed graphs are not turned into the matrices of a run.
MAX_MATRIX_NODES = 300
#: Seconds of the parts of the page, ten together.
SHARES = {
    "graph": 0.5,
    "existence": 3,
    "step": 3,
    "growth": 1,
    "fidelity": 0.5,
    "symbol": 0.5,
    "Lipschitz": 1,
    "observables": 0.5,
}


#: Seconds of the box among those of existence.
BOX_SECONDS = 1.5


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
    """Everything that can be said before a run, within ten seconds.

    `method` is "exact" or a fixed-step method with its `step`; `coefficients` sets numbers; `graph` (a Graph,
    networkx, scipy sparse or dense adjacency) replaces the bounds over all graphs by the spectrum, the row sums and the
    isolated nodes of this one. Without a graph, what a statement assumes of it is part of the statement.

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
    run = _Run(subject, normalisation, end, method, size, _facts(graph, normalisation))
    settings = {"normalisation": normalisation, "T": str(end), "method": method}
    if size is not None:
        settings |= {"step": str(size), "steps": str(sp.ceiling(end / size))}
    return Report(subject, settings, tuple(_within_time(run)))


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


def _facts(graph: Any, normalisation: str) -> GraphFacts | None:
    if graph is None:
        return None
    from rdgraph.graphs.facts import GraphFacts

    return GraphFacts.of(graph, normalisation)


@dataclass(frozen=True)
class _Run:
    """What is about to be run, and what is known of the graph."""

    system: System
    normalisation: str
    end: sp.Expr
    method: str
    size: sp.Expr | None
    facts: GraphFacts | None

    @property
    def may_be_directed(self) -> bool:
        """Nothing says that the spectrum is real."""
        return self.facts.directed if self.facts is not None else self.normalisation != "symmetric"

    @property
    def has_isolated(self) -> bool:
        """The graph is known to have nodes that collect nothing."""
        return self.facts is not None and self.facts.isolated > 0

    def domain(self) -> Domain:
        """Admissible coefficients, with the largest row sum s >= 1."""
        return Domain.of(self.system).where(sp.Ge(symbols.s, 1, evaluate=False))

    def own(self, expression: sp.Expr) -> sp.Expr:
        """A public expression in the package's own symbols, s filled in where the graph is known."""
        known = {sp.Symbol(name): x for name, x in self.system.algebra.symbols.items()}
        known |= {sp.Symbol(x.name): x for x in (symbols.s, symbols.R, symbols.lam)}
        return sp.sympify(expression).xreplace(known).xreplace(self._row_sum())

    def filled(self, expression: sp.Expr) -> sp.Expr:
        """A public expression with s filled in where the graph is known."""
        return sp.sympify(expression).xreplace({sp.Symbol("s"): v for v in self._row_sum().values()})

    def _row_sum(self) -> dict[sp.Symbol, sp.Expr]:
        return {} if self.facts is None else {symbols.s: exact_number(max(1.0, self.facts.row_sum), "row sum")}


def _within_time(run: _Run) -> list[Finding]:
    """All parts of the page; what takes longer than its share of the time is undecided."""
    parts: dict[str, Callable[[_Run], list[Finding]]] = {
        "graph": _graph_findings, "symbol": _nature, "Lipschitz": _constants, "existence": _safety, "step": _stepping,
        "growth": _growth, "fidelity": _fidelity, "observables": _observables,
    }  # fmt: skip
    found: list[Finding] = []
    for topic, part in parts.items():
        try:
            with time_limit(SHARES[topic]):
                found += part(run)
        except Undecided as problem:
            status = UNKNOWN if topic in ("existence", "step", "growth", "fidelity") else INFO
            found.append(Finding(topic, status, f"{topic} is undecided: {problem}"))
    return found


def _graph_findings(run: _Run) -> list[Finding]:
    if run.facts is None:
        return [Finding("graph", INFO, "none given: bounds hold for every graph, lam in [0, 2] where it is undirected")]
    found = [Finding("graph", INFO, str(run.facts))]
    if run.facts.isolated:
        text = f"{run.facts.isolated} nodes have no {'incoming ' if run.facts.directed else ''}edge"
        found.append(Finding("isolated nodes", INFO, f"{text}; L acts on them as the identity"))
    return found


def _nature(run: _Run) -> list[Finding]:
    try:
        found = [Finding("symbol", INFO, f"p(lam) = {symbol(run.system)}")]
        return [*found, Finding("filter", INFO, "; ".join(map(str, classify(run.system))))]
    except (NotApplicable, Undecided) as reason:
        return [Finding("symbol", INFO, str(reason))]


def _constants(run: _Run) -> list[Finding]:
    found = []
    for name, question in (
        ("Lipschitz", lipschitz_global),
        ("Lipschitz, |h|<=R", lipschitz_local),
        ("one-sided", one_sided),
    ):
        constant = question(run.system, run.normalisation)
        value = f"{in_words(constant.value)} ({constant.norm})" if constant.value is not None else "none"
        found.append(Finding(name, INFO, value, constant.note))
    return found


# ---------------------------------------------------------------------- existence and boxes
def _safety(run: _Run) -> list[Finding]:
    lives = existence(run.system)
    detail = "; ".join([lives.reason, *map(str, lives.blow_ups)])
    try:
        with time_limit(BOX_SECONDS):
            box = _box(run)
    except Undecided:
        box = None
    if lives.status == GLOBAL:
        return [Finding("existence", OK, "solutions exist for all time", detail), *_box_finding(box)]
    if lives.status == LOCAL and box is not None and box.exists:
        return [Finding("existence", IF, _inside(run, box), f"outside it solutions can blow up: {detail}")]
    if lives.status == LOCAL:
        return [Finding("existence", PROBLEM, "solutions can blow up", detail)]
    return [Finding("existence", UNKNOWN, "existence for all time is not settled", detail)]


def _box(run: _Run) -> Box | None:
    """The box of this normalisation on this graph; a symmetric A whose rows sum to 1 keeps the row box."""
    if run.normalisation == "column":
        return None
    regular = run.facts is not None and run.facts.is_stochastic
    box = invariant_box(run.system, "row" if regular else run.normalisation)
    return box.allowing_isolated() if run.has_isolated and box.exists else box


def _inside(run: _Run, box: Box) -> str:
    """The condition on H0, and on the graph where none is given, under which a box is kept."""
    radius = " for some R > 0" if "R" in {x.name for e in (box.lower, box.upper) for x in e.free_symbols} else ""  # type: ignore[union-attr]
    assumed = f" and {box.assumes}" if box.assumes and run.facts is None else ""
    return f"H0 lies in {box.inside}{radius}{assumed}"


def _box_finding(box: Box | None) -> list[Finding]:
    if box is None:
        return []
    if not box.exists:
        return [Finding("box", INFO, "none", box.note)]
    given = f" from H0 in {box.inside}" if box.start else ""
    assumed = f" where {box.assumes}" if box.assumes else ""
    return [Finding("box", INFO, f"[{box.lower}, {box.upper}] is invariant{given}{assumed}", box.note)]


# ---------------------------------------------------------------------- steps
def _stepping(run: _Run) -> list[Finding]:
    if run.size is None:
        return [Finding("step", OK, "exact flow: no step size")]
    if run.normalisation == "column" and not run.system.structure.linear:
        return [Finding("step", UNKNOWN, "no step limit for a nonlinear system under the column normalisation")]
    regular = run.facts is not None and run.facts.is_stochastic
    kind = "symmetric" if run.normalisation == "symmetric" and not regular else "row"
    limit = step_limit(run.system, run.method, kind, isolated=run.has_isolated)
    if limit.keeps == "linearised" and _settled(run, run.filled(limit.value)) is not False:
        limit = step_limit(run.system, run.method, kind, isolated=run.has_isolated, everywhere=True)
    if limit.value is None:
        return [Finding("step", UNKNOWN, f"no step limit for {run.method} is known", limit.means)]
    if run.facts is not None and run.facts.directed and limit.keeps == "stability":
        return _directed_stepping(run, limit)
    return _bounded_stepping(run, limit)


def _bounded_stepping(run: _Run, limit: StepLimit) -> list[Finding]:
    """The step against its limit, with what the limit assumes of the graph."""
    value = run.filled(limit.value)
    settled = _settled(run, value)
    bound = f"{run.size} <= {in_words(value)}"
    if limit.keeps in ("slopes", "distances"):
        return _slope_stepping(run, limit, bound, settled)
    if settled is False:
        text = f"the step {run.size} exceeds the limit {in_words(value)} of {run.method}"
        return [Finding("step", PROBLEM, text, limit.means)]
    if limit.keeps == "box":
        box = _box(run)
        assert box is not None
        return [Finding("step", IF, f"{_inside(run, box)} and step {bound}", limit.means)]
    directed = f"; on directed graphs up to {in_words(limit.directed)}" if limit.directed is not None else ""
    assumed = f" where {limit.assumes}" if limit.assumes and run.may_be_directed else ""
    return [
        Finding("step", OK if settled else IF, f"step {bound}{assumed}", limit.means + (directed if assumed else ""))
    ]


def _slope_stepping(run: _Run, limit: StepLimit, bound: str, settled: bool | None) -> list[Finding]:
    """A limit for every state; one with R is a condition on how far the run goes."""
    if settled is False:
        status = PROBLEM if limit.sharp else UNKNOWN
        text = f"the step {run.size} exceeds the limit {in_words(run.filled(limit.value))} of {run.method}"
        return [Finding("step", status, text, limit.means)]
    far = " as long as |h| <= R" if "|h| <= R" in limit.means else ""
    assumed = f" where {limit.assumes}" if limit.assumes and run.may_be_directed else ""
    status = OK if settled and not far else IF
    return [Finding("step", status, f"step {bound}{far}{assumed}", limit.means)]


def _directed_stepping(run: _Run, limit: StepLimit) -> list[Finding]:
    """A directed graph: the limit that holds in the whole disc, else the eigenvalues of this graph."""
    if limit.directed is not None and _settled(run, limit.directed):
        text = f"step {run.size} <= {in_words(limit.directed)}, on directed graphs too"
        return [Finding("step", OK, text, "no eigenvalue of the step's matrix is larger than 1 in modulus")]
    worst = _largest_damped(run)
    if worst is None:
        return [Finding("step", UNKNOWN, f"no step limit for {run.method} on directed graphs is known", limit.means)]
    reason = "measured; eigenvalues of a non-normal A do not bound norms, which the fidelity compares"
    if worst > 1 + 1e-9:
        text = f"{run.method} with step {run.size} multiplies a mode that the flow damps by {worst:.4g} in every step"
        return [Finding("step", PROBLEM, text, reason)]
    return [Finding("step", OK, "every eigenvalue of this graph that the flow damps is damped", reason)]


def _largest_damped(run: _Run) -> float | None:
    """max |R(step p)| over the eigenvalues of the graph that the flow damps; None without numbers."""
    import numpy as np

    p = symbol(run.system)
    if run.facts is None or p.free_symbols - {sp.Symbol("lam")}:
        return None
    spectrum = np.array(run.facts.spectrum)
    rates = sp.lambdify(sp.Symbol("lam"), p, "numpy")(spectrum) * np.ones_like(spectrum)
    damped = rates[rates.real <= 0]
    weights = tableau(run.method)
    factor = sp.lambdify(sorted(weights.stability.free_symbols, key=str), weights.stability, "numpy")
    return float(np.abs(factor(float(run.size) * damped)).max(initial=0.0))  # type: ignore[arg-type]


def _settled(run: _Run, limit: sp.Expr) -> bool | None:
    """True if the step is proved to be at most the limit, False if it is proved to be larger, everywhere."""
    value, domain = run.own(limit), run.domain()
    if is_at_least(value, run.size, domain):
        return True
    return False if is_above(run.size, value, domain) else None


# ---------------------------------------------------------------------- growth
def _growth(run: _Run) -> list[Finding]:
    try:
        rate: sp.Expr = growth_rate(run.system)
    except (NotApplicable, Undecided):
        return []
    if run.facts is not None and run.facts.directed:
        return _directed_growth(run)
    where = f" where {REAL_SPECTRUM}" if run.may_be_directed else ""
    remark = _disc_remark(run) if run.may_be_directed else []
    if is_at_least(0, run.own(rate), run.domain()):
        return [Finding("growth", OK, f"no frequency grows{where}"), *remark]
    if rate.free_symbols:
        return [_conditional_growth(run, rate, where), *remark]
    factor = float(sp.exp(run.end * rate)) if rate * run.end < 700 else float("inf")
    text = f"the fastest frequency grows by exp(T p) = {factor:.3g}{where}"
    return [Finding("growth", PROBLEM if factor > MAX_AMPLIFICATION else INFO, text), *remark]


def _disc_remark(run: _Run) -> list[Finding]:
    """What directed graphs, whose eigenvalues fill the disc |1 - lam| <= 1, add."""
    try:
        rate: sp.Expr = growth_rate(run.system, directed=True)
    except Undecided as problem:
        return [Finding("growth, directed", INFO, f"undecided: {problem}")]
    if is_at_least(0, run.own(rate), run.domain()):
        return [Finding("growth, directed", INFO, "no frequency grows on directed graphs either")]
    text = f"frequencies of directed graphs grow at rates up to {in_words(rate)}"
    return [Finding("growth, directed", INFO, text, "largest real part of p over the disc |1 - lam| <= 1")]


def _directed_growth(run: _Run) -> list[Finding]:
    rate: sp.Expr = growth_rate(run.system, directed=True)
    reason = "eigenvalues; entries of a non-normal flow can grow for a while"
    if is_at_least(0, run.own(rate), run.domain()):
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


def _conditional_growth(run: _Run, rate: sp.Expr, where: str) -> Finding:
    reason = f"the fastest frequency{where} grows at rate {in_words(rate)}, over T = {run.end}"
    if isinstance(rate, sp.Piecewise):
        value, condition = rate.args[0]
        if is_at_least(0, run.own(value), run.domain().where(_own_condition(run, condition))):
            return Finding("growth", IF, f"{condition_in_words(condition)}, so that no frequency{where} grows", reason)
    elif is_above(run.own(rate), 0, run.domain()):
        return Finding("growth", IF, f"growth by exp({run.end}*({rate})){where} is acceptable", reason)
    return Finding("growth", IF, f"no frequency{where} grows: {in_words(rate)} <= 0", reason)


def _own_condition(run: _Run, condition: sp.Basic) -> sp.Basic:
    return condition.xreplace({sp.Symbol(name): x for name, x in run.system.algebra.symbols.items()})


# ---------------------------------------------------------------------- fidelity
def _fidelity(run: _Run) -> list[Finding]:
    """Is the computed map still the flow? Largest error of the response, relative to the largest exact gain."""
    if run.size is None or run.end == 0:
        return []
    from rdgraph.gains import response_values

    if run.facts is not None and run.facts.directed:
        maps = _maps(run)
        if maps is None:
            return []
        text = f"{run.method} differs from the exact flow by {maps[1]:.2g} of its norm"
        return [Finding("fidelity", OK if maps[1] <= MAX_RELATIVE_ERROR else PROBLEM, text, "measured")]
    import numpy as np

    grid = np.array(run.facts.spectrum) if run.facts is not None else np.linspace(0, 2, 201)
    try:
        exact = response_values(run.system, grid, run.end)
        computed = response_values(run.system, grid, run.end, run.method, run.size)
    except NotApplicable:
        return []
    error, where = _largest_gap(exact, computed, grid)
    assumed = f" where {REAL_SPECTRUM}" if run.may_be_directed else ""
    text = (
        f"{run.method} differs from the exact flow by {error:.2g} of the largest gain (at lam = {where:.3g}){assumed}"
    )
    return [Finding("fidelity", OK if error <= MAX_RELATIVE_ERROR else PROBLEM, text)]


def _largest_gap(exact: Any, computed: Any, grid: Any) -> tuple[float, float]:
    """Largest |computed - exact| relative to the largest |exact|, and where; infinite where a gain overflows."""
    import numpy as np

    gap = np.abs(computed - exact)
    gap[~np.isfinite(gap)] = np.inf
    scale = np.abs(exact).max()
    return float(gap.max() / scale if np.isfinite(scale) else np.inf), float(grid[gap.argmax()])


def _maps(run: _Run) -> tuple[float, float] | None:
    """Norm of the exact map of a run on a small graph, and the relative error of the computed one; None without."""
    import numpy as np

    from rdgraph.gains import run_maps

    if run.facts is None or run.facts.nodes > MAX_MATRIX_NODES:
        return None
    try:
        exact, computed = run_maps(run.system, run.facts.operator, run.end, run.method, run.size)
    except NotApplicable:
        return None
    order = 1 if run.normalisation == "column" else np.inf
    if not (np.isfinite(exact).all() and np.isfinite(computed).all()):
        return float("inf"), float("inf")
    size = float(np.linalg.norm(exact, order))
    return size, float(np.linalg.norm(computed - exact, order)) / size


# ---------------------------------------------------------------------- observables
def _observables(run: _Run) -> list[Finding]:
    found = []
    if run.system.coefficients:
        known = identify(run.system)
        text = f"the flow reveals {', '.join(map(str, known.combinations)) or 'nothing'}"
        found.append(Finding("identifiable", INFO, text))
    found.append(Finding("conserved", INFO, _conserved(run)))
    energy = energy_law(run.system)
    symmetric = run.normalisation == "symmetric"
    return [*found, Finding("energy", INFO, energy.text if symmetric else f"symmetric A: {energy.text}", energy.decays)]


def _conserved(run: _Run) -> str:
    """The conserved mean with its weights on this graph, or with what they assume."""
    law = conserved(run.system)
    if not law.exists:
        return "no weighted mean"
    text = f"sum_i w_i H_i with w = {law.weights[run.normalisation]}, d the degree"
    assumed = law.assumes.get(run.normalisation)
    if run.facts is None:
        return text + (f", where {assumed}" if assumed else "")
    if run.facts.directed:
        return "sum_i w_i H_i with w a left eigenvector of A, w A = w; on directed graphs not a function of the degree"
    isolated = " (0 for isolated nodes)" if run.has_isolated and run.normalisation == "column" else ""
    return text.replace(", d the", f"{isolated}, d the")
