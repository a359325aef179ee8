"""`RunSettings`: a planned run with its method, and `GraphFacts`, the facts about its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from scipy.sparse.csgraph import connected_components

from rdgraph.answers import Status
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.normalisation import dense_adjacency, dense_operator
from rdgraph.language import answer_symbols as symbols
from rdgraph.reals.domain import Domain
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import check_normalisation
from rdgraph.theory.method_choice import choose_method
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.methods import find_method
from rdgraph.vocabulary.normalisations import find_normalisation

if TYPE_CHECKING:
    from rdgraph.vocabulary.methods import Method
    from rdgraph.vocabulary.normalisations import Normalisation


# ---------------------------------------------------------------------- graph facts
# The facts about a concrete graph that a verdict needs: spectrum, row sums, isolated nodes, directions.

#: Row sums that differ from 1 by less are 1.
ROW_SUM_TOLERANCE = 1e-12


@dataclass(frozen=True)
class GraphFacts:
    """Size, components, nodes that no edge enters, eigenvalues of L = I - A, largest and smallest row sum of A.

    The spectrum of an undirected graph is real and exact at zero; that of a directed one is complex, measured, and does
    not bound the transient growth of norms under a non-normal A. `operator` is A itself (n, n).
    """

    nodes: int
    edges: int
    components: int
    isolated: int
    directed: bool
    spectrum: tuple[complex, ...]
    row_sum: float
    least_row_sum: float
    operator: np.ndarray = field(compare=False, repr=False)

    @classmethod
    def of(cls, graph: Any, normalisation: str) -> GraphFacts:
        """The facts of a Graph, networkx graph, scipy sparse matrix or dense adjacency with weights >= 0."""
        weights = dense_adjacency(graph)
        directed = not np.allclose(weights, weights.T)
        record = find_normalisation(normalisation)
        if directed and record.is_symmetric:
            raise NotApplicable(
                f"expected an undirected graph (symmetric adjacency) for the {normalisation} normalisation, got a "
                "directed one; symmetrise it: Graph.undirected(), or choose row or column"
            )
        weights = weights if directed else (weights + weights.T) / 2
        operator = dense_operator(weights, normalisation)
        components = int(connected_components(weights, connection="weak")[0])
        isolated = int((weights.sum(axis=1) == 0).sum())
        edges = int((weights > 0).sum()) if directed else int((np.triu(weights, 1) > 0).sum())
        if not directed and record.is_similar:
            spectrum = _real_spectrum(weights, components - isolated)
        elif record.is_symmetric:
            spectrum = 1 - np.linalg.eigvalsh(operator)[::-1]
        else:  # not known to be real
            spectrum, directed = 1 - np.linalg.eigvals(operator), True
        sums = operator.sum(axis=1)
        return cls(
            len(weights), edges, components, isolated, directed, tuple(spectrum.tolist()), float(sums.max()),
            float(sums.min()), operator,
        )  # fmt: skip

    @property
    def is_stochastic(self) -> bool:
        """Every row of A sums to 1."""
        return max(abs(self.row_sum - 1), abs(self.least_row_sum - 1)) < ROW_SUM_TOLERANCE

    def __str__(self) -> str:
        size = f"{self.nodes} nodes, {self.edges} edges, {self.components} components"
        values = np.array(self.spectrum)
        if self.directed:
            radius = float(np.abs(1 - values).max())
            return f"{size}, directed, |1 - lam| <= {radius:.4g} (measured), largest row sum {self.row_sum:.4g}"
        return f"{size}, lam in [{values.min():.4g}, {values.max():.4g}], largest row sum {self.row_sum:.4g}"


def _real_spectrum(weights: np.ndarray, kernel: int) -> np.ndarray:
    """Eigenvalues of L of an undirected graph from small to large; one is zero for every component with edges."""
    spectrum = 1 - np.linalg.eigvalsh(dense_operator(weights, "symmetric"))[::-1]
    spectrum[:kernel] = 0.0
    return spectrum


# ---------------------------------------------------------------------- run settings
#: The method where none follows from the equation.
NO_METHOD = str(Status.UNDECIDED)


@dataclass(frozen=True)
class RunSettings:
    """A planned run, and the facts about its graph."""

    system: System
    normalisation: str
    end: sp.Expr
    method: str
    size: sp.Expr | None
    facts: GraphFacts | None
    reason: str = ""

    @property
    def record(self) -> Method:
        """The record of the method."""
        return find_method(self.method)

    def shown(self) -> dict[str, str]:
        """The settings for a page."""
        texts = {"normalisation": self.normalisation, "T": str(self.end), "method": self.method}
        if self.size is not None:
            texts |= {"step": str(self.size), "steps": str(sp.ceiling(self.end / self.size))}
        return texts

    @property
    def may_be_directed(self) -> bool:
        """Whether the spectrum may be complex."""
        return self.facts.directed if self.facts is not None else not self.operator_facts.is_symmetric

    @property
    def operator_facts(self) -> Normalisation:
        """The record of the normalisation."""
        return find_normalisation(self.normalisation)

    @property
    def has_isolated(self) -> bool:
        """Whether the graph is known to have nodes without incoming edges."""
        return self.facts is not None and self.facts.isolated > 0

    def domain(self) -> Domain:
        """Admissible coefficients, with the largest row sum s >= 1."""
        return self.system.domain.where(sp.Ge(symbols.s, 1, evaluate=False))

    def internal(self, expression: sp.Expr) -> sp.Expr:
        """A public expression in internal symbols, with the value of s where the graph is known."""
        known = {sp.Symbol(name): x for name, x in self.system.algebra.symbols.items()}
        known |= {sp.Symbol(x.name): x for x in (symbols.s, symbols.R, symbols.lam)}
        return sp.sympify(expression).xreplace(known).xreplace(self._row_sum())

    def filled(self, expression: sp.Expr) -> sp.Expr:
        """A public expression with the value of s where the graph is known."""
        return sp.sympify(expression).xreplace({sp.Symbol("s"): v for v in self._row_sum().values()})

    def _row_sum(self) -> dict[sp.Symbol, sp.Expr]:
        return {} if self.facts is None else {symbols.s: exact_number(max(1.0, self.facts.row_sum), "row sum")}


def read_run(
    system: System | str, normalisation: str, T: Any, method: str, step: Any, graph: Any,
    values: Mapping[str, Any] | None,
) -> RunSettings:  # fmt: skip
    """The checked settings of a run; "auto" selects the method from the equation."""
    subject = parse(system)
    if subject.is_single:
        check_normalisation(normalisation)
    numbers = {name: value for name, value in (values or {}).items() if not isinstance(value, str)}
    written = subject.replace(**{name: text for name, text in (values or {}).items() if name not in numbers})
    subject = subject.replace(**(values or {}))
    end = exact_number(T, "T")
    if not (end.is_number and end.is_nonnegative):
        raise InvalidArgument(f"expected a number T >= 0, got {T}")
    facts = _facts(graph, normalisation)
    size = None if step is None else _step(step)
    if method == "auto":
        return replace(_automatic(written, numbers, normalisation, end, size, facts), system=subject)
    record = find_method(method)
    if not record.takes_step:
        if size is not None:
            raise InvalidArgument(f"expected no step for the method {method}, got {step}; leave it out")
        return RunSettings(subject, normalisation, end, method, None, facts)
    if size is None:
        raise InvalidArgument(f"expected a step for the method {method}, got none; pass step=, or method='auto'")
    return RunSettings(subject, normalisation, end, method, size, facts)


def _step(step: Any) -> sp.Expr:
    size = exact_number(step, "step")
    if not (size.is_number and size.is_positive):
        raise InvalidArgument(f"expected a step > 0, got {step}")
    return size


def _automatic(
    system: System, values: Mapping[str, Any], normalisation: str, end: sp.Expr, size: sp.Expr | None,
    facts: GraphFacts | None,
) -> RunSettings:  # fmt: skip
    """The settings with the method selected from the equation, as `solve` does; a given step is used."""
    directed = facts.directed if facts is not None else not find_normalisation(normalisation).is_symmetric
    row_sum = 1.0 if facts is None else max(1.0, facts.row_sum)
    choose = partial(
        choose_method,
        system,
        float(end),
        normalisation=normalisation,
        values=values,
        undirected=not directed,
        row_sum=row_sum,
    )
    try:
        choice = choose()
    except NotApplicable as reason:
        return RunSettings(system, normalisation, end, NO_METHOD, size, facts, str(reason))
    if size is not None and choice.step is None:
        choice = choose(stepped=True)
    if size is None and choice.step is not None:
        # T over a whole number, as the choice has it but for rounding
        size = end / max(1, round(float(end) / choice.step)) if end else exact_number(choice.step, "step")
    return RunSettings(system, normalisation, end, choice.method, size, facts, choice.reason)


def _facts(graph: Any, normalisation: str) -> GraphFacts | None:
    if graph is None:
        return None

    return GraphFacts.of(graph, normalisation)
