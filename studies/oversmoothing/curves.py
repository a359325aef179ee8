"""Which curves each figure of the flows shows, and the rows behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from analysis.measures.registry import MEASURES, find_measure
from studies.oversmoothing.figures import ENERGY, Curve, curves_chart, curves_figure, make_curve, measures_figure
from studies.oversmoothing.flows import BASELINES, BOXED, CLASSICAL, LINEAR, REACTIONS, SCHEMES, GraphFlow
from studies.oversmoothing.rows import select
from studies.runs.tables import MutableRow, Value

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Measures drawn beside the energy.
OTHERS = ("normalised_energy", "mad", "kernel_distance", "effective_rank")
TITLES = {"euler": "Euler", "flow": "flow"}


def draw_all(run: StudyRun, curves: Index) -> None:
    """The four figures, each with its numbers."""
    s = run.settings
    common = (
        f"cSBM of the appendix ({sum(s['sizes'])} nodes, two classes, sigma = {s['sigma']:g}, p = {s['within']:g} and "
        f"{s['between']:g}), {s['graphs']} graphs, T = {s['time']:g}; lines: geometric mean of the members that are "
        "not frozen, bands: 10 to 90 %; pale: some members are frozen, cross: all are; ×k/n in a legend: k of n were "
        "frozen; who points at a curve is told how many are left."
    )
    at = f"alpha = {s['alpha']:g}, beta = {s['beta']:g} (the authors' initial values), diffusion and GRAND alpha = 1"
    schemes = f"solid: Euler, step {s['step']:g}; dashed: the flow (exact, or Strang with step {s['splitting_step']:g})"
    label = find_measure("dirichlet_energy").formula
    for name, make, columns, title, caption in (
        ("energy", _energy_curves, 4, "Dirichlet energy at the initial coefficients", f"{at}; {schemes}."),
        ("sweep", _sweep_curves, 5, "Dirichlet energy over the coefficients", f"alpha = {s['alpha']:g}; {schemes}."),
    ):
        drawn, used = make(run, curves)
        picture = curves_figure(drawn, ylabel=label, title=title, columns=columns)
        run.figure(name, picture, f"{title}. {caption} {common}", used, curves_chart(drawn, y_label=ENERGY))
    drawn, used = _measure_curves(run, curves)
    title = "Other measures of the flows"
    caption = f"{title}. {at}; baselines dashed. Arithmetic mean for the rank. {common}"
    chart = curves_chart(drawn, y_label="measure", measures=MEASURES)
    run.figure("measures", measures_figure(drawn, MEASURES, title=title), caption, used, chart)
    drawn, used = _beta_curves(run, curves)
    shaded = curves_figure(
        drawn,
        ylabel=label,
        title="A scalar beta (SC) against a vector (VC)",
        shaded=True,
    )
    caption = (
        f"Scalar beta {s['beta']:g} against one per channel, drawn from U({s['beta_low']:g}, {s['beta_high']:g}); "
        f"alpha = {s['alpha']:g}, untrained; solid: Euler, step {s['step']:g}; dashed: the flow. Grey: between the two "
        f"Euler lines. {common}"
    )
    run.figure("energy_beta", shaded, caption, used, curves_chart(drawn, y_label=ENERGY))


Drawn = tuple[list[Curve], list[MutableRow]]
#: Rows of one measure of one flow, by flow, normalisation, start, scheme, kind and measure.
Index = Mapping[tuple[Value, ...], list[MutableRow]]


def indexed(curves: Sequence[MutableRow]) -> Index:
    """The rows of all curves, by what they are curves of."""
    index: dict[tuple[Value, ...], list[MutableRow]] = {}
    for row in curves:
        key = (row["flow"], row["normalisation"], row["start"], row["scheme"], row["kind"], row["measure"])
        index.setdefault(key, []).append(row)
    return index


def _chosen(
    curves: Index, flow: GraphFlow, scheme: str, measure: str, kind: str = "SC", **more: Any
) -> list[MutableRow]:
    return select(curves[flow.name, flow.normalisation, flow.start, scheme, kind, measure], **more)


def _initial(run: StudyRun, flow: GraphFlow) -> dict[str, Any]:
    """The authors' first coefficients; plain diffusion is run as a layer A H, with alpha = 1."""
    return {"alpha": run.settings["alpha"], "beta": run.settings["beta"]} if flow.has_reaction else {"alpha": 1.0}


def _energy_curves(run: StudyRun, curves: Index) -> Drawn:
    """Baselines, linear reactions, classical ones on A_sym, classical ones in their box on A_row."""
    groups = {
        "baselines": BASELINES, "linear reactions, symmetric A": LINEAR,
        "F, AC, Z, symmetric A, from features": CLASSICAL, "F, AC, Z, row-stochastic A, from the box": BOXED,
    }  # fmt: skip
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    for group, flows in groups.items():
        for colour, flow in enumerate(flows):
            for dash, scheme in enumerate(SCHEMES):
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", **_initial(run, flow))
                drawn.append(make_curve(rows, f"{flow.name}, {TITLES[scheme]}", group, colour, dash))
                used += rows
    return drawn, used


def _sweep_curves(run: StudyRun, curves: Index) -> Drawn:
    """One panel a reaction, one colour a ratio beta/alpha."""
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    alpha = run.settings["alpha"]
    for flow in chain(REACTIONS, BOXED):
        place = "row, box" if flow.start == "box" else "symmetric, features"
        for colour, ratio in enumerate(run.settings["ratios"]):
            for dash, scheme in enumerate(SCHEMES):
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", alpha=alpha, beta=alpha * ratio)
                label = f"β/α {ratio:g}, {TITLES[scheme]}"
                drawn.append(make_curve(rows, label, f"{flow.name} ({place})", colour, dash))
                used += rows
    return drawn, used


def _measure_curves(run: StudyRun, curves: Index) -> Drawn:
    """Flows (not Euler), one panel a measure."""
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    for measure in OTHERS:
        for k, flow in enumerate((*BASELINES, *REACTIONS)):
            rows = _chosen(curves, flow, "flow", measure, **_initial(run, flow))
            drawn.append(make_curve(rows, flow.name, measure, k, k // 7 * 2 + (k < 3)))
            used += rows
    return drawn, used


def _beta_curves(run: StudyRun, curves: Index) -> Drawn:
    """One panel a reaction: the scalar and the vector, by Euler first."""
    drawn: list[Curve] = []
    used: list[MutableRow] = []
    for flow in REACTIONS:
        for dash, scheme in enumerate(SCHEMES):
            for colour, (kind, beta) in enumerate((("SC", run.settings["beta"]), ("VC", "drawn"))):
                more = {"alpha": run.settings["alpha"], "beta": beta}
                rows = _chosen(curves, flow, scheme, "dirichlet_energy", kind, **more)
                drawn.append(make_curve(rows, f"{kind}, {TITLES[scheme]}", flow.name, colour, dash))
                used += rows
    return drawn, used
