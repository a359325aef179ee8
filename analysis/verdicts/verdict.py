"""Does a system oversmooth on a graph? Predicted by spectrum or theorem, with a measured trajectory beside it.

Energies: the Dirichlet energy E = (1/N) sum_i sum_{j in N_i} w_ij |h_i - h_j|^2, tr(H' L H) of the symmetric
normalisation, and the normalised energy tr(H' (D - W) H)/|H|^2. In a linear system each is, as t -> inf,
c t^power e^{rate t} with numbers that follow from p(lam), the source and the modes of H0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analysis.spectra.eigenvalues import spectral_gap
from analysis.verdicts.asymptotics import check_symbol
from analysis.verdicts.energy_fates import GROWS, UNDECIDED, EnergyFate, energy_fates_of, energy_measures
from analysis.verdicts.statements import EnergyStatement, EnergyTrajectory, Reaction, StatementGraph
from analysis.verdicts.theorems import statements
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.solution import Solution
from rdgraph.integrators.solver import solve
from rdgraph.lowering.vector_field import VectorField, lower
from rdgraph.syntax.tree import Kind
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

SAMPLES = 129
#: A reaction that has carried the state this many times beyond its start is taken to blow up.
LOST = 1e4


@dataclass(frozen=True, eq=False)
class OversmoothingVerdict:
    """The answer for one system on one graph: `fates` for linear systems, `statements` for reactions.

    Attributes:
        system: the equation.
        operator: that of the graph.
        coefficients: its numbers.
        lam2: the spectral gap.
        times: (K,) of the measured trajectory, up to a blow-up.
        energies: (K,) values by name.
        fates: what becomes of each energy of a linear system.
        statements: the proven statements about a reaction, with their hypotheses checked.
        blew_up: whether the run ended before its time.
    """

    system: System
    operator: Operator
    coefficients: Mapping[str, Any]
    lam2: float
    times: np.ndarray
    energies: Mapping[str, np.ndarray]
    fates: tuple[EnergyFate, ...]
    statements: tuple[EnergyStatement, ...]
    blew_up: bool

    @property
    def answer(self) -> str:
        """What becomes of the Dirichlet energy: vanishes, stays positive, grows without bound, or undecided."""
        if self.fates:
            return self.fates[0].answer
        implied = [s.implies for s in self.statements if s.implies]
        if implied:
            return implied[0]
        if self.blew_up:
            return GROWS
        return UNDECIDED

    @property
    def text(self) -> str:
        """The verdict in words, one sentence a line."""
        head = f"{self.system.name or self.system} on {self.operator!r}, lam2 = {self.lam2:.6g}: E {self.answer}."
        return "\n".join([head, *(f"{part}." for part in (*self.fates, *self.statements))])

    def rows(self) -> list[dict[str, float]]:
        """The measured trajectory, one row a time."""
        return [
            {"t": float(t), **{name: float(values[k]) for name, values in self.energies.items()}}
            for k, t in enumerate(self.times)
        ]


def oversmoothing(
    system: System | str,
    graph: Graph,
    coefficients: Mapping[str, Any],
    H0: Tensor,
    *,
    T: float = 40.0,
    normalisation: str = "symmetric",
    self_loops: float = 0.0,
) -> OversmoothingVerdict:
    """Verdict for a system from H0 (n, channels) on an undirected graph, with a trajectory up to time T.

    E(t) ~ c t^power e^{rate t} in a linear system, with numbers from p(lam) and the modes of H0; such systems may have
    scalar or channel coefficients and run by `exact`. Others need the form -alpha L H + f(H) with scalars, run by
    dopri5, and are decided where a proven statement applies.

    Args:
        system: a `System`, a name of the catalogue, or a line of text.
        graph: undirected, with weights > 0.
        coefficients: a number for every coefficient, or one per channel where the system is linear.
        H0: the start (n, channels).
        T: the end time.
        normalisation: of the operator, as `graph.operator` takes it.
        self_loops: the weight of self-loops.

    Returns:
        The `OversmoothingVerdict`.

    Raises:
        InvalidArgument: for a start, a time or missing numbers that cannot be used.
        NotApplicable: for a directed or signed graph, and an equation of neither form.

    Example:
        >>> import rdgraph as rd
        >>> H0 = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)
        >>> v = oversmoothing("diffusion", rd.generators.path(3), {"alpha": 1.0}, H0, T=8.0)
        >>> v.answer, round(v.fates[0].limit, 6)  # sqrt(degree) is not constant
        ('stays positive', 0.014298)
        >>> oversmoothing("diffusion", rd.generators.path(3), {"alpha": 1.0}, H0, T=8.0, normalisation="row").answer
        'vanishes'
    """
    system = parse(system)
    _check_input(graph, H0, T)
    op = graph.operator(normalisation, self_loops=self_loops, dtype=torch.float64)
    plain = graph.operator("none", dtype=torch.float64)
    H0 = H0.detach().to("cpu", torch.float64)
    is_linear = system.structure.is_polynomial_in_operator
    reaction = None if is_linear else _reaction(system, coefficients)
    check_symbol(system, op)
    field = lower(system, op, coefficients)
    solution = _run(field, H0, float(T), is_linear)
    kept = solution.times.numpy() <= np.nan_to_num(solution.failed_at.numpy(), nan=np.inf)
    times, states = solution.times.numpy()[kept], solution.states[torch.as_tensor(kept)]
    measures = energy_measures(op, plain)
    energies = {name: measure(states).numpy() for name, measure in measures.items()}
    gap = spectral_gap(op)
    fates: tuple[EnergyFate, ...] = ()
    found: tuple[EnergyStatement, ...] = ()
    if reaction is None:
        fates = energy_fates_of(field, op, plain, H0, times, energies)
    else:
        run = EnergyTrajectory(times, states.numpy(), energies["dirichlet"], not solution.ok)
        found = statements(reaction, _setting(graph, op, gap), run)
    return OversmoothingVerdict(system, op, dict(coefficients), gap, times, energies, fates, found, not solution.ok)


def _run(field: VectorField, H0: Tensor, T: float, is_linear: bool) -> Solution:
    options: dict[str, Any] = {"method": "exact", "rtol": 1e-13}
    if not is_linear:
        options = {"method": "dopri5", "rtol": 1e-8, "atol": 1e-11, "limit": LOST * max(1.0, float(H0.abs().max()))}
    return solve(field, H0, np.linspace(0.0, T, SAMPLES).tolist(), **options)


# ---------------------------------------------------------------------- reactions
def _reaction(system: System, coefficients: Mapping[str, Any]) -> Reaction:
    numbers = {}
    for name, kind in system.coefficients.items():
        if name not in coefficients:
            raise InvalidArgument(
                f"expected a number for every coefficient of {system.text}, got none for {name}; add it"
            )
        if kind is not Kind.SCALAR or torch.as_tensor(coefficients[name]).ndim:
            raise NotApplicable(
                f"expected scalar coefficients in {system.text}, got {name} with several values; the statements about "
                "reactions are for scalars"
            )
        numbers[name] = float(coefficients[name])
    return Reaction.read(system, numbers)


def _setting(graph: Graph, op: Operator, gap: float) -> StatementGraph:
    sums = op @ torch.ones(op.num_nodes, 1, dtype=op.dtype)
    is_stochastic = op.degree is None and bool((op.weights >= 0).all()) and bool((sums - 1).abs().max() < 1e-12)
    connected = int(graph.components().max()) == 0
    return StatementGraph(gap, connected, is_stochastic, graph.edge_index, graph.weight, graph.num_nodes)


def _check_input(graph: Graph, H0: Any, T: float) -> None:
    if not graph.is_undirected or graph.is_signed:
        raise NotApplicable(
            f"expected an undirected graph with weights > 0, got {graph!r}; the energies are sums of squares there "
            "only, see Graph.undirected()"
        )
    if not isinstance(H0, Tensor) or H0.ndim != 2 or len(H0) != graph.num_nodes or not bool(torch.isfinite(H0).all()):
        got = f"shape {tuple(H0.shape)}" if isinstance(H0, Tensor) else type(H0).__name__
        raise InvalidArgument(f"expected a finite start tensor ({graph.num_nodes}, channels), got {got}")
    if not (np.isfinite(T) and T > 0):
        raise InvalidArgument(f"expected a time T > 0, got {T}")
