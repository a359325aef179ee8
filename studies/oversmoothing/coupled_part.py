"""The part of the study of oversmoothing about layers of second order and of two fields: rows, figure, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from analysis.measures.energies import dirichlet_energy
from rdgraph.errors import NotApplicable
from studies.oversmoothing.energy_figures import Curve, curves_chart
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.rows import GONE, SHEET, TINY, Answer, column, median_text, select
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, agreed
from studies.stability.plane import MemberKinetics, read_values

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- coupled flows
# Layers of second order and of two fields on the ensemble of graphs: energies of each field and of all together.
#
# The operator is D^-1 W, whose kernel of L holds the constants: a Dirichlet energy that tends to zero, as a share of
# the size of the state, is oversmoothing.

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
    result = solve_coupled(flow, ensemble, settings)
    rows: list[MutableRow] = []
    for s in range(len(ensemble)):
        conserved, predicted = _conserved(flow, ensemble, result, s) if flow is UNDAMPED else (np.nan, np.nan)
        for name, energy in result.energies.items():
            share = len(ensemble.members[s].features) / 2 * energy[:, s] / np.maximum(result.sizes[name][:, s], TINY)
            rows += [
                {"flow": flow.name, "field": name, "graph": s, "t": float(t), "energy": float(energy[k, s]),
                 "normalised": float(share[k]), "conserved": conserved, "predicted": predicted}
                for k, t in enumerate(result.times)
            ]  # fmt: skip
    return rows


def _conserved(flow: CoupledFlow, ensemble: GraphEnsemble, result: CoupledTrajectory, s: int) -> tuple[float, float]:
    """Undamped linear GraphCON on one graph: the drift of the modes' energies, and the mean Dirichlet energy of H.

    c'' = -w c with w = gamma - 1 + lam: from rest, c^2 has the mean c(0)^2/2 over a long time, and modes of different
    w do not interfere in it.
    """
    modes = ensemble.walks[s]
    position, velocity = modes.transform(result.states[:, s].cpu()).numpy().swapaxes(1, 2).reshape(
        len(result.times), 2, -1, len(modes.values)
    ).swapaxes(0, 1)  # fmt: skip
    stiffness = flow.numbers["gamma"] - 1 + modes.values
    energy = np.square(velocity) + stiffness * np.square(position)
    drift = np.abs(energy - energy[0]).max() / energy[0].max()
    plain = ensemble.members[s].graph.operator("none", dtype=torch.float64)
    start = position[0]
    places = np.split(np.arange(len(stiffness)), np.flatnonzero(np.diff(stiffness) > 1e-9) + 1)
    apart = torch.as_tensor(np.stack([modes.vectors[:, location] @ start[:, location].T for location in places]))
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


# ---------------------------------------------------------------------- coupled verdicts
# Does a layer of two fields, or of second order, escape oversmoothing? Proofs and measurements.
#
# Proved, for linear equations: a mode of L with eigenvalue lam moves by P(lam) alone. So the energy of every start
# tends to zero exactly where all eigenvalues of P(lam), lam > 0, have negative real parts. Let r be the largest of
# these real parts and r0 that of P(0). For almost every start the energy as a share of the size tends to zero where r <
# r0, and does not where r > r0, or where r = r0 and the eigenvalues of P(0) on that line have no Jordan blocks, so that
# constants do not outgrow the rest by powers of t. For nonlinear equations the same numbers decide only what happens
# near zero; the rest is measured.

#: Real parts that differ by less are equal.
EQUAL_RATES = 1e-9
#: Change of a conserved quantity by rounding and by RK4; difference of a mean over a finite time and its limit.
DRIFT, MEAN = 1e-3, 0.1


def coupled_verdicts(rows: list[MutableRow], rates: list[MutableRow]) -> list[Answer]:
    """Every statement with its answer."""
    return [
        undamped(rows), damped(rows, rates), even(rows, rates), theorem(rows, rates), nonlinear(rows),
        turing(rows, rates), equal(rows, rates),
    ]  # fmt: skip


def remaining_share(rows: list[MutableRow], flow: str, field: str, name: str = "energy") -> np.ndarray:
    """The largest value over the last quarter of the time as a share of the first one, per graph (S,)."""
    group = select(rows, flow=flow, field=field)
    times = sorted({float(row["t"]) for row in group})
    values = column(group, name).reshape(-1, len(times))
    return np.asarray(values[:, np.array(times) >= 0.75 * times[-1]].max(1) / values[:, 0])


def undamped(rows: list[MutableRow]) -> Answer:
    """Linear GraphCON without damping: every mode keeps its energy."""
    group = select(rows, flow=UNDAMPED.name, field="H")
    first = select(group, t=0.0)
    drift = column(first, "conserved")
    times = sorted({float(row["t"]) for row in group})
    mean = column(group, "energy").reshape(-1, len(times)).mean(1)
    ratio = mean / column(first, "predicted")
    close = bool((np.abs(ratio - 1) < MEAN).all())
    return Answer.of(
        SHEET, "undamped", HOLDS if (drift < DRIFT).all() and close else UNDECIDED, most_drift=drift.max(),
        least_ratio=ratio.min(), most_ratio=ratio.max(), graphs=len(drift),
    )  # fmt: skip


def damped(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """Linear GraphCON with damping and gamma = 1 oversmooths as diffusion does."""
    group = select(rates, flow=DAMPED.name)
    proved = bool((column(group, "beyond_0") < 0).all() and (np.abs(column(group, "at_0")) < EQUAL_RATES).all())
    share = remaining_share(rows, DAMPED.name, "H", "normalised")
    return Answer.of(
        SHEET, "damped", FAILS if proved and (share < GONE).all() else UNDECIDED, beyond=_range(group, "beyond_0"),
        median_share=median_text(share), most_share=share.max(),
    )  # fmt: skip


def even(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """Damping with a strong spring: all modes decay alike, so that the shape stays rough while the state vanishes."""
    group = select(rates, flow=EVEN.name)
    spread = np.abs(column(group, "at_0") - column(group, "beyond_0")).max()
    decays = bool((column(group, "beyond_0") < 0).all())
    energy, shape = remaining_share(rows, EVEN.name, "H"), remaining_share(rows, EVEN.name, "H", "normalised")
    holds = decays and spread < EQUAL_RATES and (energy < GONE).all() and (shape > GONE).all()
    return Answer.of(
        SHEET, "even", HOLDS if holds else UNDECIDED, beyond=_range(group, "beyond_0"), most_energy=energy.max(),
        least_shape=shape.min(),
    )  # fmt: skip


def theorem(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """All linear flows on all graphs: the eigenvalues of P decide whether the normalised energy vanishes."""
    right = count = 0
    words = []
    for flow in (flow for flow in COUPLED if flow.is_linear):
        group = select(rates, flow=flow.name)
        vanishes = column(group, "beyond_0") < column(group, "at_0") - EQUAL_RATES
        seen = remaining_share(rows, flow.name, TOGETHER, "normalised") < GONE
        right, count = right + int((vanishes == seen).sum()), count + len(group)
        words.append(f"{flow.name}: vanishes on {int(vanishes.sum())} predicted, {int(seen.sum())} measured")
    return Answer.of(
        SHEET, "theorem", HOLDS if right == count else UNDECIDED, right=right, count=count, words="; ".join(words)
    )


def nonlinear(rows: list[MutableRow]) -> Answer:
    """GraphCON with tanh: measured alone."""
    share = remaining_share(rows, NONLINEAR.name, "H", "normalised")
    return Answer.of(SHEET, "nonlinear", agreed(share > GONE), least_share=share.min(), most_share=share.max())


def turing(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """A Turing-unstable layer of two fields ends in a state that is not constant."""
    group = select(rates, flow=TURING.name)
    unstable = (column(group, "beyond_0") > 0) & (column(group, "at_0") < 0)
    share, settled = remaining_share(rows, TURING.name, TOGETHER), _settled(rows, TURING.name)
    return Answer.of(
        SHEET, "turing", agreed((share > GONE) & (settled < GONE)) if unstable.all() else UNDECIDED,
        at_zero=_range(group, "at_0"), unstable=int(unstable.sum()), graphs=len(group),
        beyond=_range(group, "beyond_0"), least_share=share.min(), most_share=share.max(), most_settled=settled.max(),
    )  # fmt: skip


def equal(rows: list[MutableRow], rates: list[MutableRow]) -> Answer:
    """The same reaction with equal diffusion: P(lam) = P(0) - lam, so that nothing but constants could grow."""
    group = select(rates, flow=EQUAL.name)
    stable = bool((column(group, "beyond_0") < column(group, "at_0")).all() and (column(group, "at_0") < 0).all())
    share = remaining_share(rows, EQUAL.name, TOGETHER)
    return Answer.of(
        SHEET, "equal", FAILS if stable and (share < GONE).all() else agreed(share > GONE),
        at_zero=_range(group, "at_0"), beyond=_range(group, "beyond_0"), most_share=share.max(),
    )  # fmt: skip


def _settled(rows: list[MutableRow], flow: str) -> np.ndarray:
    """How much the energy of all fields still changes in the last quarter, as a share of it, per graph."""
    group = select(rows, flow=flow, field=TOGETHER)
    times = sorted({float(row["t"]) for row in group})
    late = column(group, "energy").reshape(-1, len(times))[:, np.array(times) >= 0.75 * times[-1]]
    return np.asarray((late.max(1) - late.min(1)) / late[:, -1])


def _range(rows: Sequence[MutableRow], name: str) -> str:
    values = column(list(rows), name)
    low, high = float(values.min()), float(values.max())
    return f"{low:.3g}" if np.isclose(low, high) else f"{low:.3g} to {high:.3g}"


# ---------------------------------------------------------------------- coupled part


def coupled_part(run: StudyRun, ensemble: GraphEnsemble) -> list[Answer]:
    """Solve the coupled layers, draw their energies, and answer what is proved and measured of them."""
    rows: list[MutableRow] = []
    rates: list[MutableRow] = []
    for _, (result, grown) in each_cell(run, COUPLED, partial(_solved, ensemble=ensemble), "layers of several fields"):
        rows += result
        rates += grown
    curves, used = _curves(rows)
    title = "Layers of second order and of two fields: Dirichlet energy of each field"
    equations = "; ".join(f"{flow.name}: {flow.text} ({flow.values or 'no coefficients'})" for flow in COUPLED)
    caption = SHEET.text("coupled", title=title, equations=equations, step=run.settings["coupled_step"])
    chart = curves_chart(curves, y_label="energy, normalised energy", x_label="time t")
    run.figure("coupled", chart, caption, used)
    run.table("coupled_rates", _ranges(rates), SHEET.text("rates"))
    return coupled_verdicts(rows, rates)


def _solved(run: StudyRun, flow: CoupledFlow, *, ensemble: GraphEnsemble) -> tuple[list[MutableRow], list[MutableRow]]:
    """Energies and growth rates of one kind of layer."""
    result = run.part(f"coupled-{flow.key}", partial(coupled_rows, flow, ensemble, run.settings))
    return result, run.part(f"rates-{flow.key}", partial(growth_rows, flow, ensemble))


def _ranges(rates: list[MutableRow]) -> list[MutableRow]:
    """One row a flow: every rate from the least graph to the largest."""
    table: list[MutableRow] = []
    for flow in COUPLED:
        group = select(rates, flow=flow.name)
        result: MutableRow = {"flow": flow.name, "graphs": len(group)}
        for label, name in (("constant", "at_0"), ("fastest", "beyond_0"), ("slowest", "slowest")):
            values = column(group, name)
            result |= {f"{label}_least": float(values.min()), f"{label}_largest": float(values.max())}
        table.append(result)
    return table


def _curves(rows: list[MutableRow]) -> tuple[list[Curve], list[MutableRow]]:
    """One panel a flow: the energy of every field, and the normalised energy of all."""
    curves: list[Curve] = []
    used: list[MutableRow] = []
    for flow in COUPLED:
        wanted = [(name, "energy", f"energy of {name}") for name in flow.system.fields]
        wanted.append((TOGETHER, "normalised", "normalised, all fields"))
        for colour, (field, measure, label) in enumerate(wanted):
            group = select(rows, flow=flow.name, field=field)
            times = np.array(sorted({float(row["t"]) for row in group}))
            values = column(group, measure).reshape(-1, len(times))
            values = np.where(values > TINY, values, np.nan)  # a field that starts at zero has no place on this axis
            mean, alive = np.exp(np.log(values).mean(0)), np.full(len(times), len(values))
            low, high = values.min(0), values.max(0)
            curves.append(
                Curve(label, flow.name, times, mean, low, high, alive, len(values), colour, int(field == TOGETHER))
            )
            used += [
                {"flow": flow.name, "field": field, "measure": measure, "t": float(t), "mean": float(m),
                 "low": float(a), "high": float(b)}
                for t, m, a, b in zip(times, mean, low, high, strict=True)
            ]  # fmt: skip
    return curves, used
