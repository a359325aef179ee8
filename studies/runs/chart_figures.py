"""Charts, maps and dots as matplotlib figures: what the files of a run hold, and a page without its script shows."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figure_files import DASHES, PALETTE, plain
from studies.runs.chart import Bars, Chart, FieldMap, Line, MovingDots, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Inches that an entry of a legend takes without its name and with every letter of it, and points up to which each has
#: a mark.
ENTRY_INCHES, LETTER_INCHES, MARKED = 0.75, 0.085, 30
#: Columns of a map whose fields still carry numbers, and lines that it has room for.
MOST_WRITTEN, MOST_LINES = 16, 60
#: Values of a logarithmic axis that have a tick each.
MOST_NAMED = 10
#: A logarithmic axis across a smaller ratio has plain numbers.
DECADES = 100.0


def drawn_figure(drawn: Chart | FieldMap | Bars | MovingDots) -> Figure:
    """Whatever a page draws as a figure."""
    match drawn:
        case Chart():
            return chart_figure(drawn)
        case FieldMap():
            return map_figure(drawn)
        case Bars():
            return bars_figure(drawn)
    return dots_figure(drawn)


def chart_figure(chart: Chart) -> Figure:
    """A panel for every panel of the chart, with one legend for all below them."""
    from matplotlib.figure import Figure

    wide = min(chart.columns, len(chart.panels))
    tall = -(-len(chart.panels) // wide)
    figure = Figure(figsize=(3.6 * wide + 0.6, 2.9 * tall + 1.0), layout="constrained")
    axes = figure.subplots(tall, wide, squeeze=False, sharey=chart.is_shared)
    for k, (axis, panel) in enumerate(zip(axes.flat, chart.panels, strict=False)):
        _draw_panel(axis, panel, chart)
        if k % wide == 0 or panel.y_label:
            axis.set_ylabel(panel.y_label or chart.y_label, fontsize=10)
        if k >= len(chart.panels) - wide or panel.x_label:
            axis.set_xlabel(plain(panel.x_label or chart.x_label), fontsize=10)
    for axis in axes.flat[len(chart.panels) :]:
        axis.set_axis_off()
    handles = {label: h for axis in axes.flat for h, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", frameon=False, fontsize=10,
        ncols=_legend_columns(list(handles), figure.get_figwidth()),
    )  # fmt: skip
    return figure


def _legend_columns(names: Sequence[str], inches: float) -> int:
    """As many entries of a legend beside each other as go into a width, spread evenly over their lines.

    >>> [_legend_columns(["BS"] * 7, inches) for inches in (11.4, 4.2, 0.1)]
    [7, 4, 1]
    """
    if not names:
        return 1
    each = ENTRY_INCHES + LETTER_INCHES * max(map(len, names))
    lines = -(-len(names) // max(1, int(inches / each)))
    return -(-len(names) // lines)


def _draw_panel(axis: Axes, panel: Panel, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    for line in panel.lines:
        _draw_line(axis, line, chart.looks[line.label])
    for label, value in panel.levels.items():
        k = chart.looks[label]
        own = label in {line.label for line in panel.lines}
        axis.axhline(value, color=PALETTE[k % len(PALETTE)], ls=":", lw=1.2, label=None if own else plain(label))
    if chart.x_scale == "linear" and all(np.all(line.x == np.rint(line.x)) for line in panel.lines):
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if chart.x_scale == "log":
        _name_values(axis, sorted({float(x) for line in panel.lines for x in line.x}))
    match panel.y_scale or chart.y_scale:
        case "log":
            axis.set_yscale("log")
            low, high = axis.get_ylim()
            if high < DECADES * low:
                _name_decades(axis.yaxis)
        case "symlog":
            axis.set_yscale("symlog", linthresh=1.0)
    if panel.names:
        axis.set_xticks(range(len(panel.names)), [plain(name) for name in panel.names], fontsize=9, rotation=30)
    axis.set_title(plain(panel.title), fontsize=11)
    axis.grid(color="0.92", lw=0.6, axis="y" if panel.names else "both")


def _draw_line(axis: Axes, line: Line, k: int) -> None:
    """Lines get thinner and marks smaller from first to last, so that one that lies on another does not hide it; marks
    are empty where a colour comes again. Where samples were lost a line is pale; a cross stands where none is left."""
    place = k % len(PALETTE)
    colour = PALETTE[place]
    is_marked = line.style == "dots" or len(line.x) <= MARKED
    error = None if line.error is None else np.nan_to_num(line.error)
    style: dict[str, Any] = {
        "color": colour, "ls": "" if line.style == "dots" else DASHES[k // len(PALETTE) % len(DASHES)],
        "lw": 2.6 - 0.2 * place,
    }  # fmt: skip
    y = line.y
    if line.count is not None:
        axis.plot(line.x, y, **style, alpha=0.35)
        seen = np.flatnonzero(np.isfinite(y))
        if seen.size and not line.count[-1]:
            axis.plot(line.x[seen[-1]], y[seen[-1]], "x", color=colour, ms=11, mew=1.8, zorder=3)
        y = np.where(line.count == line.count.max(), y, np.nan)
    axis.errorbar(
        line.x, y, yerr=error, **style, marker=MARKERS[k % len(MARKERS)] if is_marked else "",
        ms=6.4 - 0.45 * place, mfc=colour if k < len(PALETTE) else "white", capsize=2, label=plain(line.label),
    )  # fmt: skip
    if line.low is not None and line.high is not None:
        axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, lw=0)


def _name_values(axis: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis; with a tick for every value that is drawn, as a plain number, where they are few."""
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    if len(values) > MOST_NAMED:
        if values[-1] < DECADES * values[0]:
            _name_decades(axis.xaxis)
        return
    axis.set_xticks(values, [short_number(x) for x in values], fontsize=9)
    axis.xaxis.set_minor_locator(NullLocator())


def _name_decades(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 of every power of ten on a logarithmic axis, more where it is short, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())


def short_number(value: float) -> str:
    """A number for a tick, with a letter for thousands or millions where it is long.

    >>> [short_number(x) for x in (0.25, 512, 1200, 254052, 999999, 1921680)]
    ['0.25', '512', '1200', '254k', '1M', '1.92M']
    """
    short = float(f"{value:.3g}")
    for least, letter, digits in ((1e6, "M", 1e6), (1e4, "k", 1e3)):
        if short >= least:
            return f"{short / digits:g}{letter}"
    return f"{value:g}"


def map_figure(found: FieldMap) -> Figure:
    """Coloured fields with their numbers; bold where one is sure."""
    from matplotlib.figure import Figure

    is_written = len(found.columns) <= MOST_WRITTEN
    size = (2.2 + 0.95 * min(len(found.columns), MOST_WRITTEN), 1.6 + 0.42 * min(len(found.rows), MOST_LINES))
    figure = Figure(figsize=size, layout="constrained")
    panel = figure.subplots()
    limit = found.limit
    shown = panel.imshow(
        np.clip(found.values, -limit, limit), cmap="PuOr_r" if found.signed else "Blues",
        vmin=-limit if found.signed else 0.0, vmax=limit, aspect="auto",
    )  # fmt: skip
    for i, j in np.ndindex(found.values.shape):
        value = float(found.values[i, j])
        if is_written and math.isfinite(value):
            panel.text(
                j, i, found.text(value), ha="center", va="center", fontsize=10,
                color="w" if abs(value) > 0.6 * limit else "k", fontweight="bold" if found.sure[i, j] else "normal",
            )  # fmt: skip
    panel.set_xticks(range(len(found.columns)), [plain(c) for c in found.columns], rotation=25, fontsize=10)
    panel.set_yticks(range(len(found.rows)), [plain(r) for r in found.rows], fontsize=10)
    panel.set_title(found.title, fontsize=11)
    figure.colorbar(shown, ax=panel, shrink=0.8, label=found.unit, extend="both" if found.signed else "neither")
    return figure


def dots_figure(found: MovingDots) -> Figure:
    """A line of fields for every panel: first, middle and last time, on one scale."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(8.4, 2.9 * len(found.panels)), layout="constrained")
    axes = figure.subplots(len(found.panels), 3, squeeze=False, sharex="row", sharey="row")
    for line, panel in zip(axes, found.panels, strict=True):
        last = len(panel.times) - 1
        for axis, k in zip(line, (0, (last + 1) // 2, last), strict=True):
            axis.scatter(*panel.places[k].T, s=dot_area(len(panel.nodes)), c=class_colours(panel.labels), lw=0)
            axis.set_title(plain(f"{panel.title}, {found.word} = {panel.times[k]:.3g}"), fontsize=10)
            axis.set(xticks=[], yticks=[])
    if found.classes:
        known = sorted({int(c) for panel in found.panels for c in panel.labels})
        names = [plain(found.classes[c]) if c >= 0 else "unknown" for c in known]
        marks = [Line2D([], [], ls="", marker="o", color=colour) for colour in class_colours(known)]
        figure.legend(marks, names, loc="outside lower center", ncols=min(10, len(names)), frameon=False, fontsize=8)
    return figure


def class_colours(labels: Sequence[int] | np.ndarray) -> list[str]:
    """A colour for every node, grey without a class.

    >>> class_colours([0, -1])
    ['#0072B2', '0.75']
    """
    return [PALETTE[int(c) % len(PALETTE)] if c >= 0 else "0.75" for c in labels]


def dot_area(count: int) -> float:
    """The area of a dot, where so many are drawn."""
    return float(np.clip(3000 / count, 5, 40))


def write_frames(path: Path, figure: Figure, frames: Iterable[object]) -> None:
    """A gif of a figure that every step of `frames` changes; the last frame stays longest."""
    from PIL import Image

    drawn = []
    for _ in frames:
        file = io.BytesIO()
        figure.savefig(file, format="png")
        drawn.append(Image.open(file).convert("RGB").quantize(96))
    durations = [120] * (len(drawn) - 1) + [1500]
    drawn[0].save(path, format="GIF", save_all=True, append_images=drawn[1:], duration=durations, loop=0)


def bars_figure(found: Bars) -> Figure:
    """Bars below each other, the first on top."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(7.0, 1.2 + 0.28 * len(found.bars)), layout="constrained")
    axis = figure.subplots()
    for k, bar in enumerate(found.bars):
        colour = PALETTE[found.groups.index(bar.group) % len(PALETTE)]
        axis.barh(k, bar.value - found.ends[0], left=found.ends[0], color=colour)
        if math.isfinite(bar.low) and math.isfinite(bar.high):
            axis.plot([bar.low, bar.high], [k, k], color="black", lw=1.2)
    axis.set_yticks(range(len(found.bars)), [plain(bar.name) for bar in found.bars], fontsize=9)
    if found.is_log:
        axis.set_xscale("log")
        _name_decades(axis.xaxis)
    axis.set_xlim(found.ends[0], None)
    axis.set_ylim(len(found.bars) - 0.4, -0.6)
    axis.set_xlabel(found.unit, fontsize=10)
    named = [Patch(color=PALETTE[k % len(PALETTE)], label=plain(g)) for k, g in enumerate(found.groups) if g]
    if named:
        figure.legend(handles=named, loc="outside lower center", ncols=len(named), frameon=False, fontsize=10)
    return figure
