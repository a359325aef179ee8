"""The part of the study of oversmoothing about layers of second order and of two fields: rows, figure, verdicts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from studies.oversmoothing.answers import Answer
from studies.oversmoothing.coupled_flows import COUPLED, TOGETHER, CoupledFlow, coupled_rows, growth_rows
from studies.oversmoothing.coupled_verdicts import coupled_verdicts
from studies.oversmoothing.figures import Curve, curves_chart, curves_figure
from studies.oversmoothing.flows import GraphEnsemble
from studies.oversmoothing.rows import TINY, column, select
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

RATES_CAPTION = (
    "Growth rates of the layers of second order and of two fields: the largest real part of an eigenvalue of P(0), of "
    "the fastest other mode, and of the slowest, each with its range over the graphs. Linear layers are decided by "
    "them, nonlinear ones near zero alone."
)


def coupled_part(run: StudyRun, ensemble: GraphEnsemble) -> list[Answer]:
    """Solve the coupled layers, draw their energies, and answer what is proved and measured of them."""
    rows: list[MutableRow] = []
    rates: list[MutableRow] = []
    for _, (found, grown) in each_cell(run, COUPLED, partial(_solved, ensemble=ensemble), "layers of several fields"):
        rows += found
        rates += grown
    curves, used = _curves(rows)
    title = "Layers of second order and of two fields: Dirichlet energy of each field"
    figure = curves_figure(curves, ylabel="energy, normalised energy", title=title, columns=4, xlabel="time t")
    equations = "; ".join(f"{flow.name}: {flow.text} ({flow.values or 'no coefficients'})" for flow in COUPLED)
    caption = (
        f"{title}, and of all fields as a share of their size (dashed). {equations}. Row-stochastic A, RK4 with step "
        f"{run.settings['coupled_step']:g}; lines: geometric mean over the graphs, bands: all graphs."
    )
    chart = curves_chart(curves, y_label="energy, normalised energy", x_label="time t")
    run.figure("coupled", figure, caption, used, chart)
    run.table("coupled_rates", _ranges(rates), RATES_CAPTION)
    return coupled_verdicts(rows, rates)


def _solved(run: StudyRun, flow: CoupledFlow, *, ensemble: GraphEnsemble) -> tuple[list[MutableRow], list[MutableRow]]:
    """Energies and growth rates of one kind of layer."""
    found = run.part(f"coupled-{flow.key}", partial(coupled_rows, flow, ensemble, run.settings))
    return found, run.part(f"rates-{flow.key}", partial(growth_rows, flow, ensemble))


def _ranges(rates: list[MutableRow]) -> list[MutableRow]:
    """One row a flow: every rate from the least graph to the largest."""
    table: list[MutableRow] = []
    for flow in COUPLED:
        own = select(rates, flow=flow.name)
        found: MutableRow = {"flow": flow.name, "graphs": len(own)}
        for label, name in (("constant", "at_0"), ("fastest", "beyond_0"), ("slowest", "slowest")):
            values = column(own, name)
            found |= {f"{label}_least": float(values.min()), f"{label}_largest": float(values.max())}
        table.append(found)
    return table


def _curves(rows: list[MutableRow]) -> tuple[list[Curve], list[MutableRow]]:
    """One panel a flow: the energy of every field, and the normalised energy of all."""
    curves: list[Curve] = []
    used: list[MutableRow] = []
    for flow in COUPLED:
        wanted = [(name, "energy", f"energy of {name}") for name in flow.system.fields]
        wanted.append((TOGETHER, "normalised", "normalised, all fields"))
        for colour, (field, measure, label) in enumerate(wanted):
            own = select(rows, flow=flow.name, field=field)
            times = np.array(sorted({float(row["t"]) for row in own}))
            values = column(own, measure).reshape(-1, len(times))
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
