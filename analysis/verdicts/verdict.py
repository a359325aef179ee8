"""Does a system oversmooth on a graph? Predicted by spectrum or theorem, and compared with a measured trajectory.

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
from analysis.verdicts.energy_fates import (
    GROWS,
    EnergyFate,
    MeasuredFate,
    check_symbol,
    energy_fates_of,
    energy_measures,
)
from analysis.verdicts.statements import (
    STAYS,
    VANISHES,
    EnergyStatement,
    EnergyTrajectory,
    Hypothesis,
    Reaction,
    StatementGraph,
)
from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.vector_field import VectorField, lower
from rdgraph.run.solvers.solution import Solution
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- theorems
# Proven statements about H' = -alpha L H + f(H), f entrywise: hypotheses checked for given numbers, outcome measured.
#
# With E the Dirichlet energy of the graph and A row-stochastic:
#
#     contraction   E(t) <= E(0) e^{2 (sup f' - alpha lam2) t}: E -> 0 where sup f' < alpha lam2;
#     pattern       Allen-Cahn, f = beta h (1 - h^2): where alpha/beta <= c (1 - c), signs with c <= |h| <= 1 stay
#                   and E >= (2/N) (2c)^2 cut; c = 1/2 is the weakest demand on alpha/beta, beta >= 4 alpha;
#     collapse      Zeldovich, f = beta h^2 (1 - h), on a connected graph: every trajectory tends to the constant 0 or
# 1;
#                   Fisher, f = beta h (1 - h), from h0 >= 0, h0 != 0: to the constant 1.


def statements(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> tuple[EnergyStatement, ...]:
    """Every energy statement that applies to this reaction, with its hypotheses checked and compared with the run."""
    applicable = [contraction(reaction, setting, run)]
    match reaction.name:
        case "AC":
            applicable.append(pattern(reaction, setting, run))
        case "Z":
            applicable.append(collapse_zeldovich(reaction, setting, run))
        case "F":
            applicable.append(collapse_fisher(reaction, setting, run))
    return tuple(applicable)


def contraction(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """E(t) <= E(0) e^{2 (sup f' - alpha lam2) t}."""
    H0 = run.states[0]
    above_zero = bool(H0.min() >= 0 and reaction.f(0.0) >= 0)
    steepest = reaction.steepest(0.0 if above_zero else -np.inf)
    rate = 2 * (steepest - reaction.alpha * setting.gap)
    where = "on h >= 0" if above_zero else "everywhere"
    hypotheses = (
        _stochastic(setting),
        Hypothesis(f"alpha > 0 (alpha = {reaction.alpha:g})", reaction.alpha > 0),
        Hypothesis(
            f"sup f' < alpha lam2 ({steepest:.6g} {where}, against {reaction.alpha * setting.gap:.6g})", rate < 0
        ),
    )
    ratio = np.nan
    if np.isfinite(rate) and run.energy[0] > 0:
        trusted = run.energy > 1e-14 * run.energy[0]
        ratio = float((run.energy / run.energy[0] * np.exp(-rate * run.times))[trusted].max())
    return _statement(
        "contraction", f"E(t) <= E(0) exp({rate:.6g} t), so E -> 0", hypotheses, VANISHES,
        f"largest E(t) over its bound {ratio:.6g}", ratio <= 1 + 1e-6, {"rate": rate, "over_bound": ratio},
    )  # fmt: skip


def pattern(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """Allen-Cahn keeps signs: |h_i| >= c for ever where alpha/beta <= c (1 - c), and E >= (2/N) (2c)^2 cut."""
    H0 = run.states[0]
    ratio = reaction.alpha / reaction.beta if reaction.beta > 0 else np.inf
    root = np.sqrt(max(1 - 4 * ratio, 0.0)) if ratio <= 0.25 else 0.0
    low, high = (1 - root) / 2, (1 + root) / 2
    smallest, largest = float(np.abs(H0).min()), float(np.abs(H0).max())
    level = min(smallest, high)
    source, target = setting.edges
    split = (np.sign(H0[source]) != np.sign(H0[target])).sum(axis=1)
    cut = float((setting.weight * split).sum() / 2)
    bound = 2 / setting.num_nodes * (2 * level) ** 2 * cut
    hypotheses = (
        _stochastic(setting),
        Hypothesis(f"alpha >= 0 and beta >= 4 alpha (alpha = {reaction.alpha:g}, beta = {reaction.beta:g})",
                   reaction.alpha >= 0 and ratio <= 0.25),
        Hypothesis(f"{low:.6g} <= |h0| <= 1 (|h0| in [{smallest:.6g}, {largest:.6g}])",
                   bool(smallest >= low - 1e-12 and largest <= 1 + 1e-12)),
    )  # fmt: skip
    stays = bool((np.sign(run.states) == np.sign(H0)).all())
    least = float(run.energy.min())
    return _statement(
        "sign pattern", f"every sign stays, |h| >= {level:.6g} and E >= {bound:.6g} (cut {cut:g})", hypotheses,
        STAYS if bound > 0 else None,
        f"smallest E {least:.6g}, smallest |h| {np.abs(run.states).min():.6g}, signs {'kept' if stays else 'lost'}",
        stays and least >= bound * (1 - 1e-6), {"level": level, "cut": cut, "bound": bound, "smallest": least},
    )  # fmt: skip


def collapse_zeldovich(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """Zeldovich: every trajectory tends to the constant 0 or 1."""
    end = run.states[-1]
    distance = max(min(float(np.abs(channel - c).max()) for c in (0.0, 1.0)) for channel in end.T)
    share = float(run.energy[-1] / run.energy[0]) if run.energy[0] > 0 else 0.0
    return _statement(
        "collapse", "every channel tends to the constant 0 or 1, so E -> 0", _collapsing(reaction, setting), VANISHES,
        f"E(T)/E(0) = {share:.3g}, distance to 0 or 1 at T {distance:.3g}", share < 1e-2,
        {"share": share, "distance": distance},
    )  # fmt: skip


def collapse_fisher(reaction: Reaction, setting: StatementGraph, run: EnergyTrajectory) -> EnergyStatement:
    """Fisher: from h0 >= 0 every channel that is not zero tends to 1; with negative entries it may blow up."""
    H0, end = run.states[0], run.states[-1]
    hypotheses = (
        *_collapsing(reaction, setting),
        Hypothesis(f"h0 >= 0 (smallest entry {float(H0.min()):.6g})", bool(H0.min() >= 0)),
        Hypothesis("every channel of h0 differs from 0", bool((np.abs(H0).max(axis=0) > 0).all())),
    )
    distance = float(np.abs(end - 1).max())
    return _statement(
        "collapse", "h tends to 1 everywhere, so E -> 0", hypotheses, VANISHES,
        "blew up" if run.blew_up else f"distance to 1 at T {distance:.3g}", distance < 1e-2 and not run.blew_up,
        {"distance": distance},
    )  # fmt: skip


def _collapsing(reaction: Reaction, setting: StatementGraph) -> tuple[Hypothesis, ...]:
    return (
        _stochastic(setting),
        Hypothesis("the graph is connected", setting.is_connected),
        Hypothesis(
            f"alpha > 0 and beta > 0 (alpha = {reaction.alpha:g}, beta = {reaction.beta:g})",
            reaction.alpha > 0 and reaction.beta > 0,
        ),
    )


def _stochastic(setting: StatementGraph) -> Hypothesis:
    return Hypothesis("A is row-stochastic (row normalisation, or a regular graph)", setting.is_stochastic)


def _statement(
    name: str, conclusion: str, hypotheses: tuple[Hypothesis, ...], implies: str | None, evidence: str, observed: bool,
    numbers: Mapping[str, float],
) -> EnergyStatement:  # fmt: skip
    if not all(h.holds for h in hypotheses):
        return EnergyStatement(name, conclusion, hypotheses, None, evidence, None, numbers)
    return EnergyStatement(name, conclusion, hypotheses, implies, evidence, bool(observed), numbers)


# ---------------------------------------------------------------------- verdict
SAMPLES = 129
#: A state this many times larger than the initial one counts as a blow-up.
LOST = 1e4


@dataclass(frozen=True, eq=False, repr=False)
class OversmoothingVerdict(Answer):
    """The answer for one system on one graph: `fates` for linear systems, `statements` for reactions.

    `status` says whether the answer is proved or was measured on the trajectory alone.

    Attributes:
        system: The equation.
        operator: The operator of the graph.
        values: The numbers of its coefficients.
        lam2: The spectral gap.
        times: (K,) of the measured trajectory, up to a blow-up.
        energies: (K,) values by name.
        fates: The fate of each energy of a linear system.
        statements: The proven statements about a reaction, with their hypotheses checked.
        blew_up: Whether the run ended before T.

    Example:
        See `oversmoothing`.
    """

    system: System
    operator: Operator
    values: Mapping[str, Any]
    lam2: float
    times: np.ndarray
    energies: Mapping[str, np.ndarray]
    fates: tuple[EnergyFate, ...]
    statements: tuple[EnergyStatement, ...]
    blew_up: bool

    @property
    def answer(self) -> str:
        """What becomes of the Dirichlet energy: vanishes, stays positive, grows without bound, or undecided."""
        return self._proved or (GROWS if self.blew_up else self.measured.answer)

    @property
    def value(self) -> str | None:
        """The answer to "does it oversmooth?"; None if undecided."""
        return None if self.answer == Status.UNDECIDED else self.answer

    @property
    def status(self) -> Status:
        """proved by modes or a statement, measured on the trajectory up to T, or undecided."""
        if self._proved:
            return Status.PROVED
        return Status.UNDECIDED if self.value is None else Status.MEASURED

    @property
    def reason(self) -> str:
        """What becomes of the energies, and what the run shows."""
        parts = (*self.fates, *self.statements)
        return "; ".join(map(str, parts if self._proved else (*parts, self.measured)))

    def __str__(self) -> str:
        return self.text

    @property
    def _proved(self) -> str | None:
        implied = [fate.answer for fate in self.fates] or [s.implies for s in self.statements if s.implies]
        return implied[0] if implied else None

    @property
    def measured(self) -> MeasuredFate:
        """What the trajectory shows of the Dirichlet energy."""
        return MeasuredFate.of(self.times, self.energies["dirichlet"])

    @property
    def text(self) -> str:
        """The verdict in words, one sentence a line."""
        how = "" if self._proved else f" ({self.status})"
        head = f"{self.system.name or self.system} on {self.operator!r}, lam2 = {self.lam2:.6g}: E {self.answer}{how}."
        parts = (*self.fates, *self.statements)
        return "\n".join([head, *(f"{part}." for part in (parts if self._proved else (*parts, self.measured)))])

    def rows(self) -> list[dict[str, float]]:
        """The measured trajectory, one row a time."""
        return [
            {"t": float(t), **{name: float(values[k]) for name, values in self.energies.items()}}
            for k, t in enumerate(self.times)
        ]


def oversmoothing(
    system: System | str,
    graph: Graph,
    values: Mapping[str, Any],
    H0: Tensor,
    *,
    T: float = 40.0,
    normalisation: str = "symmetric",
    self_loops: float = 0.0,
) -> OversmoothingVerdict:
    """Verdict for a system from H0 (n, channels) on an undirected graph, with a trajectory up to time T.

    E(t) ~ c t^power e^{rate t} in a linear system, with numbers from p(lam) and the modes of H0; such systems may have
    scalar or channel coefficients and run by `exact`. Others are run by dopri5: those of the form -alpha L H + f(H)
    with scalars are decided where a proven statement applies, and of all others the answer is what the run shows, with
    the status "measured".

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        graph: An undirected graph with positive weights.
        values: A value for every coefficient, or one per channel for a linear system.
        H0: The start (n, channels).
        T: The end time.
        normalisation: The normalisation of the operator, as in `graph.operator`.
        self_loops: The weight of self-loops.

    Returns:
        The `OversmoothingVerdict`.

    Raises:
        InvalidArgument: For an invalid start or time, or missing values.
        NotApplicable: For a directed or signed graph, and several fields.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H0 = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)
        >>> v = analysis.oversmoothing("diffusion", rd.generators.path(3), {"alpha": 1.0}, H0, T=8.0)
        >>> v.answer, round(v.fates[0].limit, 6)  # sqrt(degree) is not constant
        ('stays positive', 0.014298)
        >>> path = rd.generators.path(3)
        >>> analysis.oversmoothing("diffusion", path, {"alpha": 1.0}, H0, T=8.0, normalisation="row").answer
        'vanishes'
        >>> gated = "-alpha*L@H + sigmoid(H)*(A@H - H)"
        >>> v = analysis.oversmoothing(gated, rd.generators.path(3), {"alpha": 1.0}, H0, T=8.0, normalisation="row")
        >>> v.answer, v.status
        ('vanishes', 'measured')
    """
    system = parse(system)
    if not system.is_single:
        raise NotApplicable(f"expected an equation of one field, got {len(system.fields)}: {system}")
    _check_input(graph, H0, T)
    op = graph.operator(normalisation, self_loops=self_loops, dtype=torch.float64)
    plain = graph.operator("none", dtype=torch.float64)
    H0 = H0.detach().to("cpu", torch.float64)
    is_linear = system.structure.is_polynomial_in_operator
    reaction = None if is_linear else _reaction(system, values)
    if is_linear or reaction is not None:
        check_symbol(system, op)
    field = lower(system, op, values)
    solution = _run(field, H0, float(T), is_linear)
    is_sound = solution.times.numpy() <= np.nan_to_num(solution.failed_at.numpy(), nan=np.inf)
    times, states = solution.times.numpy()[is_sound], solution.states[torch.as_tensor(is_sound)]
    measures = energy_measures(op, plain)
    energies = {name: measure(states).numpy() for name, measure in measures.items()}
    gap = spectral_gap(op)
    fates: tuple[EnergyFate, ...] = ()
    proved: tuple[EnergyStatement, ...] = ()
    if is_linear:
        fates = energy_fates_of(field, op, plain, H0, times, energies)
    elif reaction is not None:
        run = EnergyTrajectory(times, states.numpy(), energies["dirichlet"], not solution.ok)
        proved = statements(reaction, _setting(graph, op, gap), run)
    return OversmoothingVerdict(system, op, dict(values), gap, times, energies, fates, proved, not solution.ok)


def _run(field: VectorField, H0: Tensor, T: float, is_linear: bool) -> Solution:
    options: dict[str, Any] = {"method": "exact", "rtol": 1e-13}
    if not is_linear:
        options = {"method": "dopri5", "rtol": 1e-8, "atol": 1e-11, "limit": LOST * max(1.0, float(H0.abs().max()))}
    return solve(field, H0, np.linspace(0.0, T, SAMPLES).tolist(), **options)


# ---------------------------------------------------------------------- reactions
def _reaction(system: System, values: Mapping[str, Any]) -> Reaction | None:
    """The form that the proven statements are about, None for another one."""
    missing = [name for name in system.coefficients if name not in values]
    if missing:
        raise InvalidArgument(
            f"expected a number for every coefficient of {system.text}, got none for {missing[0]}; add it"
        )
    is_scalar = all(
        kind is Kind.SCALAR and not torch.as_tensor(values[name]).ndim for name, kind in system.coefficients.items()
    )
    if not is_scalar:
        return None
    try:
        return Reaction.read(system, {name: float(values[name]) for name in system.coefficients})
    except NotApplicable:
        return None


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
