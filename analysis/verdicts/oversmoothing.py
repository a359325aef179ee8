"""Does a system oversmooth on a graph? Predicted by spectrum or theorem, with a measured trajectory beside it.

Energies: the Dirichlet energy E = (1/N) sum_i sum_{j in N_i} w_ij |h_i - h_j|^2, tr(H' L H) of the symmetric
normalisation, and the normalised energy tr(H' (D - W) H)/|H|^2. In a linear system each is, as t -> inf,
c t^power e^{rate t} with numbers that follow from p(lam), the source and the modes of H0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analysis.measures.state_measures import dirichlet_energy, laplacian_energy, normalised_energy
from analysis.spectra.eigenvalues import Spectrum, spectral_gap, spectrum
from analysis.verdicts.asymptotics import Growth, check_symbol, growth, make_symbols
from analysis.verdicts.theorems import STAYS, VANISHES, Reaction, Setting, Statement, Trajectory, statements
from rdgraph.errors import NotApplicable
from rdgraph.graphs.graph import Graph
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.solution import Solution
from rdgraph.integrators.solver import solve
from rdgraph.lowering.vector_field import VectorField, lower
from rdgraph.syntax.tree import Kind
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

GROWS, UNDECIDED = "grows without bound", "undecided"
TITLES = {"dirichlet": "Dirichlet energy", "laplacian": "tr(H' L H)", "normalised": "normalised energy"}
SAMPLES = 129
#: Parts of a state smaller than this, relative to the largest, are rounding.
ROUNDING = 1e-11
TINY = np.finfo(float).tiny
#: A reaction that has carried the state this many times beyond its start is taken to blow up.
LOST = 1e4


@dataclass(frozen=True)
class Fate:
    """An energy ~ limit * t^power * e^{rate t} as predicted, and what the trajectory shows.

    `limit` is the factor in front, the limit itself where rate = power = 0. measured_rate is the slope of log E over
    the last quarter of what rounding lets through, measured_power the slope against log t, final the value at T.
    """

    energy: str
    rate: float
    power: float
    limit: float
    measured_rate: float
    measured_power: float
    final: float

    @property
    def answer(self) -> str:
        if self.rate == self.power == 0:
            return STAYS
        return GROWS if self.rate > 0 or (self.rate == 0 and self.power > 0) else VANISHES

    def __str__(self) -> str:
        title = TITLES[self.energy]
        if self.rate != 0:
            how = f"like exp({self.rate:.6g} t)" if np.isfinite(self.rate) else "at once: it is zero"
            return f"{title} {self.answer} {how}; measured rate {self.measured_rate:.6g}"
        if self.power != 0:
            return f"{title} {self.answer} like t^{self.power:g}; measured power {self.measured_power:.4g}"
        return f"{title} {self.answer}, with the limit {self.limit:.6g}; at T {self.final:.6g}"


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer for one system on one graph: `fates` for linear systems, `statements` for reactions.

    times (K,), energies name -> (K,): the measured trajectory, up to a blow-up; lam2 the spectral gap.
    """

    system: System
    operator: Operator
    coefficients: Mapping[str, Any]
    lam2: float
    times: np.ndarray
    energies: Mapping[str, np.ndarray]
    fates: tuple[Fate, ...]
    statements: tuple[Statement, ...]
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
) -> Verdict:
    """Verdict for a system from H0 (n, channels) on an undirected graph, with a trajectory up to time T.

    Linear systems may have scalar or channel coefficients and run by `exact`. Others need the form -alpha L H + f(H)
    with scalars, run by dopri5, and are decided where a proven statement applies.

    >>> import rdgraph as rd
    >>> H0 = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)
    >>> v = oversmoothing("diffusion", rd.generators.path(3), {"alpha": 1.0}, H0, T=8.0)
    >>> v.answer, round(v.fates[0].limit, 6)  # sqrt(degree) is not constant
    ('stays positive', 0.014298)
    >>> oversmoothing("diffusion", rd.generators.path(3), {"alpha": 1.0}, H0, T=8.0, normalisation="row").answer
    'vanishes'
    """
    system = parse(system) if isinstance(system, str) else system
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
    measures = _measures(op, plain)
    energies = {name: measure(states).numpy() for name, measure in measures.items()}
    gap = spectral_gap(op)
    fates: tuple[Fate, ...] = ()
    found: tuple[Statement, ...] = ()
    if reaction is None:
        fates = _fates(field, op, plain, H0, times, energies)
    else:
        run = Trajectory(times, states.numpy(), energies["dirichlet"], not solution.ok)
        found = statements(reaction, _setting(graph, op, gap), run)
    return Verdict(system, op, dict(coefficients), gap, times, energies, fates, found, not solution.ok)


def _measures(op: Operator, plain: Operator) -> dict[str, Callable[[Tensor], Tensor]]:
    found: dict[str, Callable[[Tensor], Tensor]] = {"dirichlet": lambda H: dirichlet_energy(H, plain)}
    if op.record.is_symmetric and op.record.is_similar:
        found["laplacian"] = lambda H: laplacian_energy(H, op)
    return {**found, "normalised": lambda H: normalised_energy(H, plain)}


def _run(field: VectorField, H0: Tensor, T: float, is_linear: bool) -> Solution:
    options: dict[str, Any] = {"method": "exact", "rtol": 1e-13}
    if not is_linear:
        options = {"method": "dopri5", "rtol": 1e-8, "atol": 1e-11, "limit": LOST * max(1.0, float(H0.abs().max()))}
    return solve(field, H0, np.linspace(0.0, T, SAMPLES).tolist(), **options)


# ---------------------------------------------------------------------- linear systems
def _fates(
    field: VectorField, op: Operator, plain: Operator, H0: Tensor, times: np.ndarray, energies: Mapping[str, np.ndarray]
) -> tuple[Fate, ...]:
    modes = spectrum(op)
    values = {name: np.atleast_1d(v.numpy()) for name, v in field.coefficients.items()}
    symbols = make_symbols(field.system)
    p, q = symbols(modes.values[:, None], values)
    shape = (len(modes.values), H0.shape[1])
    found = growth(np.broadcast_to(p, shape), np.broadcast_to(q, shape))
    # The error of the run is relative to the largest gain on the whole interval that the spectrum may fill.
    wide, forced = symbols(np.linspace(0.0, modes.bound, 129)[:, None], values)
    log_gain = max(0.0, float(wide.max())) * times + np.log1p(float(np.abs(forced).max()) * times)
    reach = 1.0 if plain.degree is None else max(1.0, float(plain.degree.max()))
    log_floor = 2 * (np.log(ROUNDING * float(torch.linalg.vector_norm(H0)) + TINY) + log_gain) + np.log(reach)
    fates: list[Fate] = []
    for name, measure in _measures(op, plain).items():
        log_energy = np.log(np.maximum(energies["dirichlet" if name == "normalised" else name], TINY))
        trusted = np.isfinite(log_energy) & (log_energy > log_floor)
        if name == "normalised":
            raw, size = fates[0], _leading(modes, found, H0, lambda S: torch.linalg.vector_norm(S) ** 2)
            order = (raw.rate - size[0], raw.power - size[1], raw.limit / size[2] * op.num_nodes / 2)
        else:
            order = _leading(modes, found, H0, measure)
        fates.append(Fate(name, *order, *_slopes(times, energies[name], trusted)))
    return tuple(fates)


def _leading(
    modes: Spectrum, found: Growth, H0: Tensor, measure: Callable[[Tensor], Tensor]
) -> tuple[float, float, float]:
    """Rate, power and factor of a quadratic measure: those of the strongest modes that it does not overlook."""
    content = modes.transform(H0).numpy()
    left = np.abs(content) > ROUNDING * np.abs(content).max(initial=0.0)
    while left.any():
        top = Growth(*(x.ravel() for x in (found.rate, found.power, found.factor))).largest(left.ravel())
        rate, power = float(top.rate), float(top.power)
        here = left & np.isclose(found.rate, rate, rtol=1e-9, atol=1e-9) & (found.power == power)
        state = modes.inverse(torch.as_tensor(np.where(here, found.factor * content, 0.0)))
        value = float(measure(state))
        if value > (ROUNDING * float(torch.linalg.vector_norm(state))) ** 2:
            return 2 * rate, 2 * power, value
        left &= ~here
    return -np.inf, 0.0, 0.0


def _slopes(times: np.ndarray, energy: np.ndarray, trusted: np.ndarray) -> tuple[float, float, float]:
    """Slope of log E against t and against log t over the last quarter of the trusted times, and the last value."""
    count = int(np.logical_and.accumulate(trusted & (energy > 0)).sum())
    first = max(count - 1 - max(count // 4, 1), 1)
    if count < 3:
        return float("nan"), float("nan"), float(energy[-1])
    t, height = times[first:count], np.log(energy[first:count])
    slope, power = (float((height[-1] - height[0]) / (x[-1] - x[0])) for x in (t, np.log(t)))
    return slope, power, float(energy[-1])


# ---------------------------------------------------------------------- reactions
def _reaction(system: System, coefficients: Mapping[str, Any]) -> Reaction:
    numbers = {}
    for name, kind in system.coefficients.items():
        if kind is not Kind.SCALAR or name not in coefficients or torch.as_tensor(coefficients[name]).ndim:
            raise NotApplicable(
                f"expected a number for every coefficient of {system.text}, got none for {name}; the statements about "
                "reactions are for scalar coefficients"
            )
        numbers[name] = float(coefficients[name])
    return Reaction.read(system, numbers)


def _setting(graph: Graph, op: Operator, gap: float) -> Setting:
    sums = op @ torch.ones(op.num_nodes, 1, dtype=op.dtype)
    is_stochastic = op.degree is None and bool((op.weights >= 0).all()) and bool((sums - 1).abs().max() < 1e-12)
    connected = int(graph.components().max()) == 0
    return Setting(gap, connected, is_stochastic, graph.edge_index, graph.weight, graph.num_nodes)


def _check_input(graph: Graph, H0: Any, T: float) -> None:
    if not graph.is_undirected or graph.is_signed:
        raise NotApplicable(
            f"expected an undirected graph with weights > 0, got {graph!r}; the energies are sums of squares there "
            "only, see Graph.undirected()"
        )
    if not isinstance(H0, Tensor) or H0.ndim != 2 or len(H0) != graph.num_nodes or not bool(torch.isfinite(H0).all()):
        got = f"shape {tuple(H0.shape)}" if isinstance(H0, Tensor) else type(H0).__name__
        raise NotApplicable(f"expected a finite start tensor ({graph.num_nodes}, channels), got {got}")
    if not (np.isfinite(T) and T > 0):
        raise NotApplicable(f"expected a time T > 0, got {T}")
