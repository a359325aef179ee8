"""Pictures of the study of Turing patterns: planes, dispersion, patterns on lattices and networks, an animation."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures import DASHES, PALETTE, plain
from studies.runs.tables import Row
from studies.stability.named_graph import lattice_shape
from studies.stability.plane import PlaneCase
from studies.stability.plane_pictures import COLOURS, hatch_members, mesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plane_figure(case: PlaneCase, rows: Sequence[Row]) -> Figure:
    """Predicted classes, simulated ones with the members near a border hatched and disagreements marked, and rates."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(13.5, 4.9), layout="constrained")
    panels = figure.subplots(1, 3)
    for panel, name in zip(panels, ("predicted", "measured"), strict=False):
        mesh(panel, case, [str(row[name]) for row in rows])
        panel.set_title("predicted from P(λ) on the graph" if name == "predicted" else "simulated", fontsize=11)
    near = np.array([1.0 - float(row["away"]) for row in rows]).reshape(case.shape)
    hatch_members(panels[1], case, near > 0)
    wrong = [row for row in rows if row["away"] and not row["agrees"]]
    panels[1].plot(
        [float(row[case.across.name]) for row in wrong], [float(row[case.up.name]) for row in wrong], "kx", ms=5
    )
    _rates(panels[2], rows)
    shown = [name for name in COLOURS if any(name in (row["predicted"], row["measured"]) for row in rows)]
    handles: list[Patch | Line2D] = [Patch(color=COLOURS[name], label=name) for name in shown]
    handles.append(Patch(facecolor="none", edgecolor="black", hatch="////", label="near a border, left out"))
    handles.append(Line2D([], [], color="black", marker="x", ls="", label=f"disagrees ({len(wrong)})"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.suptitle(plain(f"{case.label} on {case.graph_text}, L of normalisation {case.normalisation}"), fontsize=12)
    return figure


def _rates(panel: Axes, rows: Sequence[Row]) -> None:
    """Measured against predicted rates of the part that is not constant."""
    away = [row for row in rows if row["away"]]
    pairs = np.array([(float(r["rate_beyond_0"]), float(r["measured_beyond_0"])) for r in away]).reshape(-1, 2)
    panel.plot(pairs[:, 0], pairs[:, 1], ".", ms=3, color=PALETTE[0], rasterized=True)
    if len(pairs):
        ends = [float(np.nanmin(pairs)), float(np.nanmax(pairs))]
        panel.plot(ends, ends, "-", lw=0.8, color="black")
    panel.axhline(0, color="0.7", lw=0.8, zorder=0)
    panel.axvline(0, color="0.7", lw=0.8, zorder=0)
    panel.set_xlabel("predicted rate of the fastest mode, λ > 0")
    panel.set_ylabel("measured rate of the deviation outside the kernel")
    panel.set_title("growth while small, all modes together", fontsize=11)


def dispersion_figure(case: PlaneCase, rows: Sequence[Row]) -> Figure:
    """Growth over lam, one curve per value of the first axis, the eigenvalues of the graph marked on it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    panel = figure.subplots()
    name = case.across.name
    lowest = 0.0
    for k, value in enumerate(dict.fromkeys(float(row[name]) for row in rows)):
        own = [row for row in rows if float(row[name]) == value]
        curve, marks = (
            np.array([(float(r["lam"]), float(r["rate"])) for r in own if r["is_eigenvalue"] == flag])
            for flag in (0, 1)
        )
        panel.plot(*curve.T, DASHES[k % 4], color=PALETTE[k % 7], lw=1.4, label=plain(f"{name} = {value:.4g}"))
        panel.plot(*marks.T, "o", ms=3.2, color=PALETTE[k % 7], mfc="white", mew=0.8)
        lowest = min(lowest, float(np.quantile(curve[:, 1], 0.6)))
    top = max(float(row["rate"]) for row in rows)
    panel.axhline(0, color="black", lw=0.8)
    panel.set(xlabel="λ, eigenvalue of L (circles: those of the graph)", ylabel="growth rate, largest Re of P(λ)")
    panel.set_ylim(min(-1.5 * abs(top), -0.2 * abs(lowest)), 1.25 * top if top > 0 else 0.1)
    panel.set_title(plain(f"{case.label} on {case.graph_text}"), fontsize=11)
    panel.legend(frameon=False)
    return figure


def pattern_figure(case: PlaneCase, rows: Sequence[Row]) -> Figure:
    """The final state: an image on a lattice; on a network the nodes in the order of their degrees, and a mode."""
    from matplotlib.figure import Figure

    shape, fields = lattice_shape(case.graph_text), case.system.fields
    if shape is not None:
        figure = Figure(figsize=(4.3 * len(fields), 4.0), layout="constrained")
        for panel, name in zip(figure.subplots(1, len(fields), squeeze=False)[0], fields, strict=True):
            values = np.reshape([float(row[name]) for row in rows], shape)
            image = panel.imshow(values, cmap="viridis", interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            panel.set_title(plain(f"{name} at the end"), fontsize=11)
            figure.colorbar(image, ax=panel, shrink=0.85)
        return figure
    ordered = sorted(rows, key=lambda row: (-float(row["degree"]), int(row["node"])))
    figure = Figure(figsize=(11.5, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=[1, 1])
    position = np.arange(len(ordered))
    columns = (
        ("degree", "degree"),
        ("mode", "fastest growing mode"),
        *((name, f"{name} at the end") for name in fields[:2]),
    )
    for k, (panel, (name, title)) in enumerate(zip(panels.flat, columns, strict=False)):
        panel.plot(position, [float(row[name]) for row in ordered], ".", ms=3, color=PALETTE[k])
        panel.set_title(plain(title), fontsize=11)
        panel.set_xlabel("node, in falling order of its degree")
    if len(columns) < panels.size:
        panels.flat[-1].set_visible(False)
    panels.flat[0].set_yscale("log")
    return figure


def write_pattern_animation(path: Path, case: PlaneCase, times: Iterable[float], states: np.ndarray) -> None:
    """A gif of the first field: the lattice, or the nodes in the order of their degrees; one scale for all frames."""
    from matplotlib.figure import Figure
    from PIL import Image

    shape, first = lattice_shape(case.graph_text), states[:, :, 0]
    low, high = float(first.min()), float(first.max())
    order = np.argsort(-case.graph.degree, kind="stable")
    figure = Figure(figsize=(4.6, 4.2) if shape else (6.4, 3.6), dpi=90)
    panel = figure.subplots()
    frames = []
    for t, state in zip(times, first, strict=True):
        panel.clear()
        if shape:
            panel.imshow(state.reshape(shape), cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
        else:
            panel.plot(state[order], ".", ms=3, color=PALETTE[0])
            panel.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
            panel.set_xlabel("node, in falling order of its degree")
        panel.set_title(plain(f"{case.label}: {case.system.fields[0]} at t = {t:.3g}"), fontsize=11)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
        frames.append(Image.open(drawn).convert("RGB").quantize(96))
    durations = [120] * (len(frames) - 1) + [1500]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0)
