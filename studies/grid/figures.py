"""Pictures of flows on a grid: panels at chosen times, an animation, energies over time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rdgraph as rd
from analysis.figures import DASHES, PALETTE
from studies.runs.chart import Chart, Line, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

#: Rows of the figure from top to bottom, as in the paper; names of the catalogue.
FLOWS = ("BS", "diffusion")
COLOURS = "viridis"


def still(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Figure:
    """Two flows at the chosen times, each panel on a colour scale of its own."""
    from matplotlib.figure import Figure

    times, shape = chosen["times"], (chosen["rows"], chosen["columns"])
    figure = Figure(figsize=(2.6 * len(times) + 0.6, 5.9), layout="constrained")
    panels = figure.subplots(len(FLOWS), len(times), squeeze=False)
    for across, name in zip(panels, FLOWS, strict=True):
        for panel, t in zip(across, times, strict=True):
            values = [row["value"] for row in rows if row["flow"] == name and row["t"] == t]
            _paint(panel, np.reshape(values, shape), f"t = {t:g}" if name == FLOWS[0] else "")
        across[0].set_ylabel(label(name, chosen), fontsize=11)
    return figure


def label(name: str, chosen: Mapping[str, Any]) -> str:
    """A flow with its coefficients."""
    beta = f", β = {chosen['beta']:g}" if "beta" in rd.catalogue[name].coefficients else ""
    return f"{name}\nα = {chosen['alpha']:g}{beta}"


def _paint(panel: Axes, values: np.ndarray, title: str) -> AxesImage:
    image = panel.imshow(values, cmap=COLOURS, interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    panel.set_title(title, fontsize=11)
    panel.set_xlabel(_range(values), fontsize=9)
    return image


def _range(values: np.ndarray) -> str:
    return f"{values.min():.3g} to {values.max():.3g}"


def still_caption(chosen: Mapping[str, Any]) -> str:
    """What the panels show."""
    return (
        f"Blurring-sharpening (top, α = {chosen['alpha']:g}, β = {chosen['beta']:g}) and diffusion (bottom, α = "
        f"{chosen['alpha']:g}) on a {chosen['rows']} x {chosen['columns']} grid from the same start, exact flows. Each "
        "panel has its own colour scale, from dark (least) to bright (largest); the range of values stands below it."
    )


def animation_caption(chosen: Mapping[str, Any]) -> str:
    """What the animation shows."""
    return (
        f"The same flows from t = 0 to {chosen['times'][-1]:g} in {chosen['frames']} frames; the colours of every "
        "frame are scaled to the range printed below it."
    )


def write_animation(path: Path, times: Iterable[float], states: Mapping[str, np.ndarray]) -> None:
    """A gif of all flows side by side; states per flow (frames, rows, columns)."""
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(3.1 * len(states), 3.6), dpi=90)
    panels = figure.subplots(1, len(states), squeeze=False)[0]
    figure.subplots_adjust(left=0.03, right=0.97, bottom=0.1, top=0.9, wspace=0.08)
    frames = []
    images = [_paint(panel, values[0], name) for panel, (name, values) in zip(panels, states.items(), strict=True)]
    for k, t in enumerate(times):
        for panel, image, (name, values) in zip(panels, images, states.items(), strict=True):
            image.set_data(values[k])
            image.set_clim(values[k].min(), values[k].max())
            panel.set_title(f"{name}, t = {t:.0f}", fontsize=11)
            panel.set_xlabel(_range(values[k]), fontsize=9)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
        frames.append(Image.open(drawn).convert("RGB").quantize(96))
    durations = [120] * (len(frames) - 1) + [1500]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0)


def energy_figure(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Figure:
    """Energy and normalised energy over time, one line per beta."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    columns = (("laplacian_energy", "energy tr(HᵀLH)"), ("normalised_energy", "normalised energy tr(HᵀLH)/‖H‖²"))
    for panel, (column, title) in zip(panels, columns, strict=True):
        for k, beta in enumerate(chosen["beta_sweep"]):
            line = [(row["t"], row[column]) for row in rows if row["beta"] == beta]
            name = "β = 0 (diffusion)" if beta == 0 else f"β = {beta:g}"
            panel.plot(*zip(*line, strict=True), DASHES[k % 4], color=PALETTE[k % 7], label=name)
        panel.set(yscale="log", xlabel="t", xlim=(0, chosen["times"][-1]))
        panel.set_title(title, fontsize=11)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    return figure


def energy_chart(rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Chart:
    """The same for the page."""
    panels = []
    for column, title in (("laplacian_energy", "energy"), ("normalised_energy", "normalised energy")):
        lines = []
        for beta in chosen["beta_sweep"]:
            own = [row for row in rows if row["beta"] == beta]
            name = "β = 0 (diffusion)" if beta == 0 else f"β = {beta:g}"
            lines.append(Line(name, *(np.array([float(row[c]) for row in own]) for c in ("t", column))))
        panels.append(Panel(title, lines, y_label="tr(HᵀLH)" if column == "laplacian_energy" else "tr(HᵀLH)/‖H‖²"))
    return Chart(panels, "t", y_scale="log", columns=2)


def energy_caption(chosen: Mapping[str, Any]) -> str:
    """What the energies over time show."""
    return (
        f"Energy and normalised energy of BS over time for α = {chosen['alpha']:g} and several β, symmetric L, exact "
        "flow, logarithmic axes. Lines with β ≤ α fall for ever; those with β > α drawn here rise in the end without "
        "bound, and their normalised energy settles at the frequency that grows fastest."
    )
