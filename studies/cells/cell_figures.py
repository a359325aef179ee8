"""Figures of cells: a map of differences, means beside published ones, panels of curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures import PALETTE, plain
from studies.runs.tables import MutableRow
from studies.training.figures import empty_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "8", "p")
DASHES = ("-", "--", "-.", ":")
#: Panels in a row, and the room that an entry of a legend takes.
COLUMNS, LEGEND_INCHES = 3, 1.9


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with the standard errors of its points; nan where there is none."""

    label: str
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray


def difference_map(
    rows: Sequence[str], columns: Sequence[str], values: np.ndarray, sure: np.ndarray, title: str, limit: float = 15.0
) -> Figure:
    """Differences (rows, columns) as coloured fields with their numbers; bold where a difference is beyond chance."""
    figure = empty_figure(2.2 + 0.95 * len(columns), 1.6 + 0.42 * len(rows))
    panel = figure.subplots()
    shown = panel.imshow(np.clip(values, -limit, limit), cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto")
    for i, j in np.ndindex(values.shape):
        if math.isfinite(values[i, j]):
            dark = abs(values[i, j]) > 0.6 * limit
            panel.text(
                j, i, f"{values[i, j]:+.1f}", ha="center", va="center", fontsize=10, color="w" if dark else "k",
                fontweight="bold" if sure[i, j] else "normal",
            )  # fmt: skip
    panel.set_xticks(range(len(columns)), [plain(c) for c in columns], rotation=25, fontsize=10)
    panel.set_yticks(range(len(rows)), [plain(r) for r in rows], fontsize=10)
    panel.set_title(title, fontsize=11)
    figure.colorbar(shown, ax=panel, shrink=0.8, label="points of accuracy", extend="both")
    return figure


def curve_panels(
    panels: Mapping[str, Sequence[Line]],
    x_label: str,
    y_label: str = "test accuracy, percent",
    *,
    limits: Mapping[str, float] | None = None,
    scale: str = "linear",
    columns: int = COLUMNS,
) -> tuple[Figure, list[MutableRow]]:
    """A panel for every key with its curves; `limits` are horizontal dotted lines by label prefix, in all panels."""
    wide = min(columns, max(1, len(panels)))
    tall = -(-len(panels) // wide)
    figure = empty_figure(3.6 * wide + 0.6, 2.9 * tall + 1.0)
    axes = figure.subplots(tall, wide, squeeze=False)
    labels = list(dict.fromkeys(line.label for lines in panels.values() for line in lines))
    rows: list[MutableRow] = []
    for axis, (name, lines) in zip(axes.flat, panels.items(), strict=False):
        for line in lines:
            k = labels.index(line.label)
            axis.errorbar(
                line.x, line.y, yerr=np.nan_to_num(line.error), color=PALETTE[k % len(PALETTE)],
                ls=DASHES[k // len(PALETTE) % len(DASHES)], marker=MARKERS[k % len(MARKERS)], ms=4.5, lw=1.4,
                capsize=2, label=plain(line.label),
            )  # fmt: skip
            rows += [
                {"panel": name, "curve": line.label, "x": float(x), "y": float(y), "error": float(e)}
                for x, y, e in zip(line.x, line.y, line.error, strict=True)
            ]
        for label, value in (limits or {}).items():
            if label.startswith(f"{name}/"):
                curve = label.removeprefix(f"{name}/")
                k = labels.index(curve) if curve in labels else 0
                axis.axhline(value, color=PALETTE[k % len(PALETTE)], ls=":", lw=1.2)
                rows.append({"panel": name, "curve": f"{curve}, limit", "x": math.nan, "y": value, "error": math.nan})
        if scale == "log":
            _name_values(axis, sorted({float(x) for line in lines for x in line.x}))
        axis.set_title(plain(name), fontsize=11)
        axis.grid(color="0.92", lw=0.6)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for line_of_axes in axes:
        line_of_axes[0].set_ylabel(y_label, fontsize=10)
    for axis in axes.flat[max(0, len(panels) - wide) : len(panels)]:
        axis.set_xlabel(x_label, fontsize=10)
    handles = {label: h for axis in axes.flat for h, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", frameon=False, fontsize=10,
        ncols=max(1, min(len(handles), int(figure.get_figwidth() / LEGEND_INCHES))),
    )  # fmt: skip
    return figure, rows


def _name_values(axis: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis with a tick for every value that is drawn, as a plain number."""
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    axis.set_xticks(values, [f"{x:g}" for x in values], fontsize=9)
    axis.xaxis.set_minor_locator(NullLocator())


def beside_figure(
    panels: Mapping[str, Sequence[tuple[str, float, float, float, float]]],
) -> tuple[Figure, list[MutableRow]]:
    """For every panel and method: (name, ours, its error, the paper's, its error), dots beside each other."""
    wide = min(COLUMNS, max(1, len(panels)))
    tall = -(-len(panels) // wide)
    figure = empty_figure(3.6 * wide + 0.6, 2.9 * tall + 0.9)
    axes = figure.subplots(tall, wide, squeeze=False)
    rows: list[MutableRow] = []
    for axis, (name, points) in zip(axes.flat, panels.items(), strict=False):
        places = np.arange(len(points))
        for k, (word, value, error) in enumerate((("the paper", 3, 4), ("here", 1, 2))):
            y = np.array([float(p[value]) for p in points])
            spread = np.nan_to_num(np.array([float(p[error]) for p in points]))
            axis.errorbar(places + 0.12 * (2 * k - 1), y, yerr=spread, fmt=MARKERS[k], ms=5.5, capsize=2.5,
                          color=PALETTE[1 - k], label=word)  # fmt: skip
        axis.set_xticks(places, [plain(str(p[0])) for p in points], fontsize=9, rotation=30)
        axis.set_title(plain(name), fontsize=11)
        axis.grid(axis="y", color="0.92", lw=0.6)
        rows += [
            {"panel": name, "method": p[0], "mean": p[1], "error": p[2], "paper": p[3], "paper_error": p[4]}
            for p in points
        ]
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for line in axes:
        line[0].set_ylabel("test accuracy, percent", fontsize=10)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure, rows
