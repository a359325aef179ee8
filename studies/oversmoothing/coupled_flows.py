"""Layers of second order and of two fields on the ensemble of graphs: energies of each field and of all together.

The operator is D^-1 W, whose kernel of L holds the constants: a Dirichlet energy that tends to zero, as a share of the
size of the state, is oversmoothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from analysis.measures.energies import dirichlet_energy
from rdgraph.errors import NotApplicable
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.rows import TINY
from studies.runs.tables import MutableRow
from studies.stability.member_growth import MemberKinetics
from studies.stability.plane import read_values

#: All fields together, as rows name them.
TOGETHER = "all"


@dataclass(frozen=True)
class CoupledFlow:
    """A system of one or several fields with numbers for its coefficients; the first field starts at the features.

    `scale` multiplies the features, every other field starts at zero.
    """

    name: str
    text: str
    values: str = ""
    scale: float = 1.0

    @cached_property
    def system(self) -> rd.System:
        return rd.parse(self.text)

    @cached_property
    def _kinetics(self) -> MemberKinetics:
        return MemberKinetics.of(self.system)

    @property
    def numbers(self) -> dict[str, float]:
        return read_values(self.values)

    @property
    def is_linear(self) -> bool:
        return self.system.is_single or self.system.coupling.is_linear

    @property
    def key(self) -> str:
        """A name for files."""
        return "".join(c if c.isascii() and c.isalnum() else "-" for c in self.name.lower())

    def growth(self, lam: np.ndarray) -> np.ndarray:
        """The largest real part of an eigenvalue of P(lam), linearised at zero, (k,)."""
        kinetics = self._kinetics
        values = {name: np.array([number]) for name, number in self.numbers.items()}
        zero = np.zeros((1, len(self.system.fields)))
        if np.abs(kinetics.rates(zero, values)).max() > 0:
            raise NotApplicable(f"expected a flow that rests at zero, got {self.text}")
        return np.asarray(kinetics.leading(zero, values, lam)[0].real)


DIFFUSION = CoupledFlow("diffusion", "-L@H")
UNDAMPED = CoupledFlow("GraphCON, linear, undamped", "H'' = A@H - gamma*H", "gamma=1.5")
DAMPED = CoupledFlow("GraphCON, linear, damped, γ = 1", "H'' = A@H - gamma*H - alpha*H'", "gamma=1, alpha=1")
EVEN = CoupledFlow("GraphCON, linear, damped, γ = 1.5", "H'' = A@H - gamma*H - alpha*H'", "gamma=1.5, alpha=0.5")
NONLINEAR = CoupledFlow("GraphCON, tanh, damped", "H'' = tanh(A@H) - gamma*H - alpha*H'", "gamma=1, alpha=1")
TURING = CoupledFlow(
    "two fields, Turing-unstable", "u' = u - u**3 - v - mu*L@u; v' = 3*u - 2*v - nu*L@v", "mu=0.1, nu=8", scale=0.2
)
EQUAL = CoupledFlow("two fields, equal diffusion", TURING.text, "mu=1, nu=1", scale=0.2)
COUPLED = (DIFFUSION, UNDAMPED, DAMPED, EVEN, NONLINEAR, TURING, EQUAL)


@dataclass(frozen=True, eq=False)
class CoupledTrajectory:
    """States (K, S, n, F*d) at times (K,), and energies (K, S) by field and of all together."""

    times: np.ndarray
    states: Tensor
    energies: Mapping[str, np.ndarray]
    sizes: Mapping[str, np.ndarray]


def solve_coupled(flow: CoupledFlow, ensemble: GraphEnsemble, settings: Mapping[str, Any]) -> CoupledTrajectory:
    """RK4 on all graphs as one batch."""
    op = ensemble.operator("row")
    features = flow.scale * ensemble.features
    others = torch.zeros_like(features)
    start = torch.cat([features, *(others for _ in flow.system.fields[1:])], dim=-1)
    field = rd.lower(flow.system, op, flow.numbers, batch=tuple(start.shape[:-2]))
    times = torch.linspace(0, settings["coupled_time"], settings["coupled_saves"], dtype=torch.float64)
    solution = rd.solve(field, start, times, "rk4", step=settings["coupled_step"])
    blocks = dict(zip(flow.system.fields, solution.states.chunk(len(flow.system.fields), dim=-1), strict=True))
    blocks[TOGETHER] = solution.states
    plain = ensemble.operator("none")
    energies = {n: dirichlet_energy(x, plain).cpu().numpy() for n, x in blocks.items()}
    sizes = {n: x.square().sum((-2, -1)).cpu().numpy() for n, x in blocks.items()}
    return CoupledTrajectory(times.numpy(), solution.states, energies, sizes)


def coupled_rows(flow: CoupledFlow, ensemble: GraphEnsemble, settings: Mapping[str, Any]) -> list[MutableRow]:
    """Energy and energy per size of each field and of all, per graph and time.

    `conserved` is the largest change of a mode's |c'|^2 + (gamma - 1 + lam)|c|^2, as a share of it, where that is
    conserved by the equation; `predicted` is the mean energy over a long time that follows from it. NaN elsewhere.
    """
    found = solve_coupled(flow, ensemble, settings)
    rows: list[MutableRow] = []
    for s in range(len(ensemble)):
        conserved, predicted = _conserved(flow, ensemble, found, s) if flow is UNDAMPED else (np.nan, np.nan)
        for name, energy in found.energies.items():
            share = len(ensemble.members[s].features) / 2 * energy[:, s] / np.maximum(found.sizes[name][:, s], TINY)
            rows += [
                {"flow": flow.name, "field": name, "graph": s, "t": float(t), "energy": float(energy[k, s]),
                 "normalised": float(share[k]), "conserved": conserved, "predicted": predicted}
                for k, t in enumerate(found.times)
            ]  # fmt: skip
    return rows


def _conserved(flow: CoupledFlow, ensemble: GraphEnsemble, found: CoupledTrajectory, s: int) -> tuple[float, float]:
    """Undamped linear GraphCON on one graph: the drift of the modes' energies, and the mean Dirichlet energy of H.

    c'' = -w c with w = gamma - 1 + lam: from rest, c^2 has the mean c(0)^2/2 over a long time, and modes of different
    w do not interfere in it.
    """
    modes = ensemble.walks[s]
    position, velocity = modes.transform(found.states[:, s].cpu()).numpy().swapaxes(1, 2).reshape(
        len(found.times), 2, -1, len(modes.values)
    ).swapaxes(0, 1)  # fmt: skip
    stiffness = flow.numbers["gamma"] - 1 + modes.values
    energy = np.square(velocity) + stiffness * np.square(position)
    drift = np.abs(energy - energy[0]).max() / energy[0].max()
    plain = ensemble.members[s].graph.operator("none", dtype=torch.float64)
    start = position[0]
    places = np.split(np.arange(len(stiffness)), np.flatnonzero(np.diff(stiffness) > 1e-9) + 1)
    apart = torch.as_tensor(np.stack([modes.vectors[:, place] @ start[:, place].T for place in places]))
    return float(drift), 0.5 * float(dirichlet_energy(apart, plain).sum())


def growth_rows(flow: CoupledFlow, ensemble: GraphEnsemble) -> list[MutableRow]:
    """Growth rates on every graph: of constants, and the largest over the other modes."""
    rows: list[MutableRow] = []
    for s, values in enumerate(modes.values for modes in ensemble.walks):
        rates = flow.growth(np.concatenate([[0.0], values[values > 0]]))
        rows.append({
            "flow": flow.name, "graph": s, "at_0": float(rates[0]), "beyond_0": float(rates[1:].max()),
            "slowest": float(rates[1:].min()),
        })  # fmt: skip
    return rows
