"""Identifiability: which coefficients the right-hand side, and with it the flow, determines.

A flow determines exactly the function f(.; theta). The number of identifiable combinations is the generic rank of
df/dtheta over all states and graphs. A minor that is nonzero in ball arithmetic bounds the rank from below; gauges,
directions in which theta can change without any change of f, bound it from above, proved symbolically. Where both
bounds agree the answer is proved, else measured. A coefficient can be determined locally but not globally, as alpha by
alpha**2; the values in `single` and `combinations` are determined globally.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy as sp

from rdgraph.answers import Status
from rdgraph.errors import Undecided
from rdgraph.language.normal_form import State
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import within_budget
from rdgraph.systems.canonical.cancelled_parts import where_defined
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.identifiability.examination import Identifiability

if TYPE_CHECKING:
    from rdgraph.theory.identifiability.on_graph import Place

__all__ = ["Identifiability", "identify"]


def _undecided(problem: Undecided) -> Identifiability:
    return Identifiability((), (), (), rank=None, status=Status.UNDECIDED, reason=str(problem))


@reads_system
@within_budget(_undecided)
def identify(system: System, graph: Any = None, normalisation: str = "symmetric") -> Identifiability:
    """Which combinations of the coefficients the flow of a system determines: on all graphs, or on one.

    Args:
        system: the system with the coefficients.
        graph: a Graph, a networkx graph, a scipy sparse matrix or a dense adjacency; without one, all graphs.
        normalisation: of the graph.

    Returns:
        The combinations that are determined, and whether that is proved or measured; the reason says what is lost on
        the graph.

    Raises:
        NotApplicable: the normalisation does not apply to the graph, or the equation has both A and L where L = D - A.
        UnknownName: no normalisation has that name.

    >>> import rdgraph as rd
    >>> rd.theory.identify(rd.parse("-alpha*L@H + beta*L@H")).combinations
    (alpha - beta,)
    >>> answer = rd.theory.identify(rd.parse("alpha**2*H where alpha real"))
    >>> answer.combinations, answer.single, answer.local
    ((alpha**2,), (), ('alpha',))
    >>> rd.theory.identify(rd.parse("BS"), graph=[[0, 1, 1], [1, 0, 1], [1, 1, 0]]).combinations
    (2*alpha + beta,)
    """
    from rdgraph.theory.identifiability.examination import examined

    if system.learned:
        raise Undecided(f"not supported with learned functions such as {next(iter(system.learned))}, which are free")
    if not system.is_single:
        return _of_fields(system, graph)
    everywhere = examined(system, where_defined(system.normal))
    if graph is None or not everywhere.rank:
        return everywhere
    from rdgraph.theory.identifiability.on_graph import Place, degree

    placed = Place.of(graph, normalisation, system.letters)
    if not (system.structure.is_pointwise and placed.has_modes):
        return _measured(system, everywhere, placed)
    needed = degree(system.structure) + 1
    distance = placed.eccentricity()
    if distance + 1 >= needed:
        reason = f"two nodes are {distance} steps apart, so L has at least {distance + 1} eigenvalues; {needed} suffice"
        return _noted(everywhere, f"on this graph nothing is lost: {reason}")
    return _on_spectrum(system, everywhere, placed, needed)


def _of_fields(system: System, graph: Any) -> Identifiability:
    """The answer for several fields on all graphs, from the sum of e_i f_i with given e_i."""
    from rdgraph.theory.identifiability.examination import examined

    further = [name for name in system.operators.names if name in system.letters]
    if further:
        raise Undecided(f"not supported with operators in addition to A: {', '.join(further)}")
    if system.is_noisy:
        raise Undecided("not supported with noise")
    if graph is not None:
        raise Undecided("several fields are supported on all graphs together, not on one graph")
    marks = {name: State(f"mark of {name}") for name in system.fields}
    return examined(
        system, sp.expand(sp.Add(*(mark * where_defined(system.normals[name]) for name, mark in marks.items())))
    )


def _noted(answer: Identifiability, note: str) -> Identifiability:
    return replace(answer, reason="; ".join(text for text in (note, answer.reason) if text))


def _on_spectrum(system: System, everywhere: Identifiability, graph: Place, needed: int) -> Identifiability:
    """The answer on a graph with few distinct eigenvalues; proved where these are known exactly."""
    from rdgraph.theory.identifiability.examination import examined
    from rdgraph.theory.identifiability.on_graph import EIGENVALUE_TOLERANCE, modal_form

    eigenvalues = graph.eigenvalues()
    exact = graph.is_spectrum(eigenvalues)
    precision = "exactly" if exact else f"up to {EIGENVALUE_TOLERANCE:g}"
    shown = ", ".join(str(lam) if exact else f"{float(lam):.4g}" for lam in eigenvalues)
    reason = f"L has the eigenvalues {shown} ({precision})"
    if len(eigenvalues) >= needed:
        return _noted(everywhere, f"on this graph nothing is lost: {reason}, {needed} suffice")
    answer = examined(system, modal_form(system.structure, eigenvalues))
    if not exact and answer.status == Status.PROVED:
        answer = replace(answer, status=Status.MEASURED)
    return _noted(answer, f"{_losses(everywhere, answer)}: {reason}")


def _losses(everywhere: Identifiability, here: Identifiability) -> str:
    """The combinations that one graph does not determine, as text."""
    lost = [str(c) for c in everywhere.combinations if c not in here.combinations]
    if everywhere.rank == here.rank and not lost:
        return "on this graph nothing is lost"
    if everywhere.rank is None or here.rank is None:
        return f"on this graph f no longer determines {', '.join(lost)}"
    names = f": {', '.join(lost)} are no longer determined" if lost else ""
    return f"on this graph {everywhere.rank - here.rank} of {everywhere.rank} combinations are lost{names}"


def _measured(system: System, everywhere: Identifiability, graph: Place) -> Identifiability:
    """The answer on a graph for any system: which combinations stay determined, measured at random states."""
    from rdgraph.theory.identifiability.entries import ExaminedForm, FieldEntries, admissible_points, is_unknown
    from rdgraph.theory.identifiability.on_graph import measure, unknown_values

    letters = {n: kind for n, kind in system.letters.items() if is_unknown(n, kind) and n not in everywhere.hidden}
    symbols = [_symbol_of(system, name) for name in letters]
    form = ExaminedForm(system, where_defined(system.normal), system.letters)
    point = next(admissible_points(form, symbols, 1), None)
    if point is None:
        raise Undecided("none of 200 random choices of the coefficients satisfies the assumptions")
    start = {x.name: float(value) for x, value in point.items()}
    measurement = measure(system, graph, unknown_values(system, start, len(graph.operator)))
    combinations = tuple(c for c in everywhere.combinations if measurement.reveals_formula(c))
    near = [name for name in (*everywhere.single, *everywhere.local) if measurement.reveals_formula(sp.Symbol(name))]
    scalars = all(kind is Kind.SCALAR for kind in letters.values())
    rank = everywhere.rank if len(combinations) == everywhere.rank else measurement.rank if scalars else None
    single = near if FieldEntries(form).is_affine else []
    here = Identifiability(
        combinations, tuple(single), everywhere.hidden, tuple(name for name in near if name not in single), rank,
        Status.MEASURED,
        "measured by differences of f, at random states and nearby coefficients",
    )  # fmt: skip
    return _noted(here, _losses(everywhere, here))


def _symbol_of(system: System, name: str) -> sp.Symbol:
    return sp.Symbol(name, real=True) if system.letters[name] is Kind.MATRIX else system.algebra.symbols[name]
