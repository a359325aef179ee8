"""Figures of measures over time: any list of named curves, one panel a group, mean line and band.

Nothing here knows where a curve comes from: a trained network's energies per layer are drawn as a flow's are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figure_files import DASHES, PALETTE
from analysis.measures.measure_records import MEASURES, Measure, find_measure
from studies.oversmoothing.flows import BASELINES, BOXED, CLASSICAL, LINEAR, REACTIONS, SCHEMES, GraphFlow
from studies.oversmoothing.rows import select
from studies.runs.chart import Chart, Line, Panel
from studies.runs.tables import MutableRow, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- figures
#: Logarithmic axes show no more than this range; what leaves it is as good as zero, or as good as lost.
SHOWN = (1e-12, 1e20)
#: What the Dirichlet energy is called on the axis of a page.
ENERGY = "Dirichlet energy"


@dataclass(frozen=True, eq=False)
class Curve:
    """A measure over time: mean, low and high (K,) over the members not frozen, of which `alive` (K,) are left.

    Curves of one `group` share a panel. `colour` and `dash` count through the palette and the line styles.

    >>> line = Curve("GCN", "baselines", np.arange(3.0), np.ones(3), np.ones(3), np.ones(3), np.array([20, 20, 15]), 20)
    >>> line.label
    'GCN (×5/20)'
    """

    name: str
    group: str
    times: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    alive: np.ndarray
    members: int
    colour: int = 0
    dash: int = 0

    @property
    def label(self) -> str:
        """The name, and after a cross how many members were frozen by the end."""
        lost = self.members - int(self.alive[-1])
        return f"{self.name} (×{lost}/{self.members})" if lost else self.name


def make_curve(rows: Sequence[MutableRow], name: str, group: str, colour: int = 0, dash: int = 0) -> Curve:
    """The rows of one measure of one flow, in order of time, as a curve."""
    columns: dict[str, Any] = {c: np.array([row[c] for row in rows], dtype=float) for c in ("t", "mean", "low", "high")}
    alive = np.array([row["alive"] for row in rows], dtype=int)
    members = int(rows[0]["members"])
    return Curve(
        name, group, columns["t"], columns["mean"], columns["low"], columns["high"], alive, members, colour, dash
    )  # fmt: skip


def curves_figure(
    curves: Sequence[Curve],
    *,
    ylabel: str,
    title: str,
    is_log: bool = True,
    columns: int = 4,
    shaded: bool = False,
    xlabel: str = "time t (Euler: layers)",
) -> Figure:
    """One panel a group, in the order in which the groups appear; a cross where the last member was frozen.

    While some members are frozen the line is pale, since the mean is that of the survivors. `shaded` fills the area
    between the first two curves of a panel instead of drawing bands.
    """
    groups = list(dict.fromkeys(curve.group for curve in curves))
    columns = min(columns, len(groups))
    rows = -(-len(groups) // columns)
    entries = max(sum(curve.group == group for curve in curves) for group in groups)
    figure, panels = _panels(rows, columns, below=0.55 + 0.14 * -(-entries // 2))
    for panel, group in zip(panels.flat, groups, strict=False):
        own = [curve for curve in curves if curve.group == group]
        for curve in own:
            draw_curve(panel, curve, has_band=not shaded)
        if shaded:
            _shade(panel, own[0], own[1])
        panel.set_title(group, fontsize=9, y=1.0)  # at a given height: nothing is measured to find one
        panel.set_xlim(0, max(curve.times[-1] for curve in own))
        panel.set_xlabel(xlabel, fontsize=8)
        panel.grid(alpha=0.25, which="major", linewidth=0.6)
        panel.tick_params(labelsize=8)
        panel.legend(
            fontsize=6.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, handlelength=2.2,
            columnspacing=1.0,
        )  # fmt: skip
    for panel in panels.flat[len(groups) :]:
        panel.set_visible(False)
    if is_log:
        panels.flat[0].set(yscale="log", ylim=_range(curves))
    for row in panels:
        row[0].set_ylabel(ylabel, fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def curves_chart(
    curves: Sequence[Curve],
    *,
    y_label: str,
    x_label: str = "time t (Euler: layers)",
    is_log: bool = True,
    measures: Mapping[str, Measure] | None = None,
) -> Chart:
    """The same curves for the page; with `measures`, a panel has the name and the scale of its own."""
    panels = []
    for group in dict.fromkeys(curve.group for curve in curves):
        own = [curve for curve in curves if curve.group == group]
        measure = None if measures is None else measures[group]
        logarithmic = is_log if measure is None else measure.is_log
        lines = [
            Line(c.name, c.times, _within(c.mean, logarithmic), low=_within(c.low, logarithmic),
                 high=_within(c.high, logarithmic), count=None if (c.alive == c.members).all() else c.alive,
                 look=c.colour % len(PALETTE) + len(PALETTE) * c.dash)
            for c in own
        ]  # fmt: skip
        title = group if measure is None else measure.label
        panels.append(Panel(title, lines, y_scale="log" if logarithmic else "linear"))
    return Chart(panels, x_label, y_label, is_shared=measures is None)


def _within(values: np.ndarray, is_log: bool) -> np.ndarray:
    """What a logarithmic axis shows; nan for what leaves its range."""
    if not is_log:
        return np.where(np.isfinite(values), values, np.nan)
    with np.errstate(invalid="ignore"):
        return np.where((values >= SHOWN[0]) & (values <= SHOWN[1]), values, np.nan)


def _panels(rows: int, columns: int, below: float) -> tuple[Figure, Any]:
    """Panels of fixed size that share their vertical axis, with room `below` each for a legend, in inches."""
    from matplotlib.figure import Figure

    width, height, left, top, gap, between = 3.1, 2.3, 0.8, 0.6, 0.35, 0.25
    size = left + columns * (width + between), top + rows * (height + below) + (rows - 1) * gap
    figure = Figure(figsize=size)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    figure.subplots_adjust(
        left=left / size[0], right=1 - between / size[0], top=1 - top / size[1], bottom=below / size[1],
        wspace=between / width, hspace=(below + gap) / height,
    )  # fmt: skip
    return figure, panels


def draw_curve(panel: Axes, curve: Curve, has_band: bool = True) -> None:
    """The mean as a line, pale where members are missing, the band around it, a cross where none is left."""
    colour, dash = PALETTE[curve.colour % len(PALETTE)], DASHES[curve.dash % len(DASHES)]
    whole = curve.alive == curve.members
    some = curve.alive > 0
    width = 1.8 if curve.dash == 0 else 1.4
    panel.plot(curve.times[some], curve.mean[some], dash, color=colour, linewidth=width, alpha=0.35)
    panel.plot(np.where(whole, curve.times, np.nan), curve.mean, dash, color=colour, linewidth=width, label=curve.label)
    if has_band:
        panel.fill_between(curve.times[some], curve.low[some], curve.high[some], color=colour, alpha=0.12, linewidth=0)
    if not some.all() and some.any():
        last = np.clip(curve.mean[some][-1], *SHOWN)
        panel.plot(curve.times[some][-1], last, "x", color=colour, markersize=6, clip_on=False, zorder=3)


def _shade(panel: Axes, first: Curve, second: Curve) -> None:
    both = (first.alive > 0) & (second.alive > 0)
    panel.fill_between(first.times[both], first.mean[both], second.mean[both], color="0.6", alpha=0.35, linewidth=0)


def _range(curves: Sequence[Curve]) -> tuple[float, float]:
    """The values that are drawn, within what is shown, with a little room."""
    values = np.concatenate([np.concatenate([c.mean, c.low, c.high]) for c in curves])
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return SHOWN
    low, high = np.clip([values.min(), values.max()], *SHOWN)
    return low / 3, high * 3


def measures_figure(
    curves: Sequence[Curve], measures: Mapping[str, Measure], *, title: str, xlabel: str = "time t"
) -> Figure:
    """One panel a measure, named by the group of its curves, each with its own axis; one legend for all."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(curve.group for curve in curves))
    width, height = 3.4 * len(groups), 4.0
    figure = Figure(figsize=(width, height))
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    figure.subplots_adjust(left=0.65 / width, right=1 - 0.1 / width, bottom=1.1 / height, top=0.8, wspace=0.24)
    for panel, group in zip(panels, groups, strict=True):
        own = [curve for curve in curves if curve.group == group]
        for curve in own:
            draw_curve(panel, curve)
        if measures[group].is_log:
            panel.set(yscale="log", ylim=_range(own))
        panel.set_title(f"{measures[group].label}\n{measures[group].formula}", fontsize=9, y=1.0, pad=10)
        panel.set_xlabel(xlabel, fontsize=8)
        panel.grid(alpha=0.25, which="major", linewidth=0.6)
        panel.tick_params(labelsize=8)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=min(5, len(labels)), frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure


# ---------------------------------------------------------------------- curves
# Which curves each figure of the flows shows, and the rows behind them.

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
