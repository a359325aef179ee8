"""Figures of responses: one panel a data set, and one of the systems that have no published settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import DASHES, PALETTE
from analysis.responses import GAIN_RANGE, ResponseCurve, response_figure
from rdgraph.systems.catalogue import catalogue
from studies.response.rows import FORMS, curve_rows
from studies.runs.chart import Chart, Line, Panel
from studies.runs.published_settings import PublishedSetting, best_settings
from studies.runs.study_run import StudyRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What methods are called in a legend, and how many points a curve of a page has.
TITLES, POINTS = {"exact": "flow", "euler": "Euler", "rk4": "RK4"}, 100


def settings_figure(own: Sequence[PublishedSetting], curves: Sequence[Sequence[ResponseCurve]]) -> Figure:
    """One panel a data set, the solver that the paper used there drawn in full strength."""
    from matplotlib.figure import Figure

    columns = min(3, len(own))
    lines = -(-len(own) // columns)
    figure = Figure(figsize=(3.1 * columns + 0.6, 2.5 * lines + 0.9), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for panel, setting, group in zip(panels.flat, own, curves, strict=False):
        for i, curve in enumerate(group):
            gain = np.maximum(np.abs(curve.gain), np.finfo(float).tiny)
            used = curve.method in ("exact", setting.solver)
            label = TITLES[curve.method]
            style: dict[str, Any] = {"color": PALETTE[i], "alpha": 1.0 if used else 0.45, "label": label}
            panel.plot(curve.lam, gain, DASHES[i], lw=2.4 - 0.5 * i, **style)
        panel.axhline(1, color="0.8", lw=0.8, zorder=0)
        panel.set_title(f"{setting.dataset}: {setting.solver}, T = {setting.time:g}, τ = {setting.step:g}", fontsize=9)
        panel.set(yscale="log", ylim=_limits(curves), xlim=(0, 2))
        panel.minorticks_off()
    for panel in panels.flat[len(own) :]:
        panel.set_visible(False)
    for panel in panels[-1]:
        panel.set_xlabel("λ, eigenvalue of L", fontsize=9)
    for panel in panels[:, 0]:
        panel.set_ylabel("|gain|", fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    for line in legend.get_lines():
        line.set_alpha(1.0)
    return figure


def settings_chart(own: Sequence[PublishedSetting], curves: Sequence[Sequence[ResponseCurve]]) -> Chart:
    """The same for the page, with fewer points; gains beyond the range of the figure are left out."""
    low, high = _limits(curves)
    panels = []
    for setting, group in zip(own, curves, strict=True):
        lines = []
        for curve in group:
            stride = max(1, len(curve.lam) // POINTS)
            gain = np.abs(curve.gain[::stride])
            kept = np.where((gain >= low) & (gain <= high), gain, np.nan)
            lines.append(Line(TITLES[curve.method], curve.lam[::stride], kept))
        title = f"{setting.dataset}: {setting.solver}, T = {setting.time:g}, τ = {setting.step:g}"
        panels.append(Panel(title, lines, {"unchanged": 1.0}))
    return Chart(panels, "λ, eigenvalue of L", "|gain|", y_scale="log", is_shared=True)


def _limits(curves: Sequence[Sequence[ResponseCurve]]) -> tuple[float, float]:
    """A range of gains for all panels: what the curves need within GAIN_RANGE, and a decade around one at least."""
    flows = np.abs([curve.gain for group in curves for curve in group])
    return max(GAIN_RANGE[0], min(0.3, flows.min() / 2)), min(GAIN_RANGE[1], max(3.0, flows.max() * 2))


def draw_others(run: StudyRun) -> None:
    """Linear systems of the catalogue in alpha and beta that the paper has no settings for, at one published one."""
    chosen = run.settings
    reaction, dataset = chosen["others_drawn_at"]
    setting = next(s for s in best_settings() if (s.reaction, s.dataset) == (reaction, dataset))
    covered = {name for names in FORMS.values() for name in names}
    known = {"alpha", "beta"}  # what a setting has values for
    others = [
        s for n, s in catalogue.single.items() if n not in covered and s.has_response and set(s.coefficients) <= known
    ]
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    methods = (("exact", None), ("euler", setting.step), ("rk4", setting.step))
    figure, curves = response_figure(others, T=setting.time, coefficients=numbers, methods=methods)
    rows = curve_rows([setting], [curves])
    run.figure("others", figure, f"The other linear systems of the catalogue, for which the paper prints no settings, "
               f"at those of {reaction} on {dataset}: T = {setting.time:g}, τ = {setting.step:g}.", rows)  # fmt: skip


def file_name(name: str) -> str:
    """The name of a system as that of a file."""
    return name.replace("*", "star")


def settings_caption(name: str, chosen: Mapping[str, Any]) -> str:
    """What the figure of a system shows."""
    system = catalogue[name]
    return (
        f"{name}, dH/dt = {system}, at α = {chosen['alpha']:g} and β = {chosen['beta']:g}: absolute gain of frequency "
        "λ at the end time T, for the flow, for Euler's method and for RK4 with the published step τ. The solver that "
        "the paper used on a data set stands in the title of its panel; in the files the other one is pale."
    )
