"""Charts, maps, bars and dots as matplotlib figures, for the files of a run and for pages without a script."""

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
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Names below an axis, which end at their ticks.
SLANTED: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
#: Width of a legend entry without its name and per character, and the largest number of points drawn with marks.
ENTRY_INCHES, LETTER_INCHES, MARKED = 0.75, 0.085, 30
#: Most columns of a map with numbers in its cells, and most rows that its size allows for.
MOST_WRITTEN, MOST_LINES = 16, 60
#: Most values of a logarithmic axis with a tick each.
MOST_NAMED = 10
#: A logarithmic axis over a smaller ratio has plain numbers.
DECADES = 100.0


def drawn_figure(drawn: Chart | FieldMap | Bars | MovingDots) -> Figure:
    """Matplotlib figure of what a page draws."""
    match drawn:
        case Chart():
            return chart_figure(drawn)
        case FieldMap():
            return map_figure(drawn)
        case Bars():
            return bars_figure(drawn)
    return dots_figure(drawn)


def chart_figure(chart: Chart) -> Figure:
    """Figure of a chart, with one legend below all panels."""
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
    """Columns of a legend of this width, with its lines evenly filled.

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
        is_named = label in {line.label for line in panel.lines}
        axis.axhline(value, color=PALETTE[k % len(PALETTE)], ls=":", lw=1.2, label=None if is_named else plain(label))
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
        axis.set_xticks(range(len(panel.names)), [plain(name) for name in panel.names], fontsize=9, **SLANTED)
    axis.set_title(plain(panel.title), fontsize=11)
    axis.grid(color="0.92", lw=0.6, axis="y" if panel.names else "both")


def _draw_line(axis: Axes, line: Line, k: int) -> None:
    """Draw a line, pale where samples were lost, and with a cross where none is left.

    Later lines are thinner with smaller marks, so that overlapping lines stay visible; marks of repeated colours are
    empty.
    """
    position = k % len(PALETTE)
    colour = PALETTE[position]
    is_marked = line.style == "dots" or len(line.x) <= MARKED
    error = None if line.error is None else np.nan_to_num(line.error)
    style: dict[str, Any] = {
        "color": colour, "ls": "" if line.style == "dots" else DASHES[k // len(PALETTE) % len(DASHES)],
        "lw": 2.6 - 0.2 * position,
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
        ms=6.4 - 0.45 * position, mfc=colour if k < len(PALETTE) else "white", capsize=2, label=plain(line.label),
    )  # fmt: skip
    if line.low is not None and line.high is not None:
        axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, lw=0)


def _name_values(axis: Axes, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, with a tick for every value if there are few."""
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    if len(values) > MOST_NAMED:
        if values[-1] < DECADES * values[0]:
            _name_decades(axis.xaxis)
        return
    axis.set_xticks(values, [short_number(x) for x in values], fontsize=9)
    axis.xaxis.set_minor_locator(NullLocator())


def _name_decades(axis: Axis) -> None:
    """Put ticks at 1, 2 and 5 times powers of ten on a logarithmic axis, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())


def short_number(value: float) -> str:
    """Text of a number at a tick, with k or M for long numbers.

    >>> [short_number(x) for x in (0.25, 512, 1200, 254052, 999999, 1921680)]
    ['0.25', '512', '1200', '254k', '1M', '1.92M']
    """
    short = float(f"{value:.3g}")
    for least, letter, digits in ((1e6, "M", 1e6), (1e4, "k", 1e3)):
        if short >= least:
            return f"{short / digits:g}{letter}"
    return f"{value:g}"


def map_figure(field_map: FieldMap) -> Figure:
    """Figure of a table of coloured cells."""
    from matplotlib.figure import Figure

    rows, columns = field_map.rows, field_map.columns
    size = (2.2 + 0.95 * min(len(columns), MOST_WRITTEN), 1.6 + 0.42 * min(len(rows), MOST_LINES))
    figure = Figure(figsize=size, layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(field_map.shades, cmap=field_map.colours, vmin=0.0, vmax=1.0, aspect="auto")
    if len(columns) <= MOST_WRITTEN:
        for i, line in enumerate(field_map.cells()):
            for j, cell in enumerate(line):
                if cell["text"]:
                    weight = "bold" if cell["sure"] else "normal"
                    panel.text(j, i, cell["text"], ha="center", va="center", fontsize=10, color=cell["ink"],
                               fontweight=weight)  # fmt: skip
    panel.set_xticks(range(len(columns)), [plain(c) for c in columns], fontsize=10, **SLANTED)
    panel.set_yticks(range(len(rows)), [plain(r) for r in rows], fontsize=10)
    panel.set_title(field_map.title, fontsize=11)
    lowest = field_map.lowest or (-field_map.limit if field_map.signed else 0.0)
    bar = figure.colorbar(image, ax=panel, shrink=0.8, label=field_map.unit, ticks=[0.0, 1.0])
    bar.ax.set_yticklabels([f"{lowest:g}", f"{field_map.limit:g}"])
    return figure


def dots_figure(dots: MovingDots) -> Figure:
    """Figure of moving dots: a row for every panel with the first, middle and last time on one scale."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(8.4, 2.9 * len(dots.panels)), layout="constrained")
    axes = figure.subplots(len(dots.panels), 3, squeeze=False, sharex="row", sharey="row")
    for line, panel in zip(axes, dots.panels, strict=True):
        last = len(panel.times) - 1
        for axis, k in zip(line, (0, (last + 1) // 2, last), strict=True):
            scatter_classes(axis, panel.places[k], panel.labels)
            axis.set_title(plain(f"{panel.title}, {dots.word} = {panel.times[k]:.3g}"), fontsize=10)
            axis.set(xticks=[], yticks=[])
    if dots.classes:
        known = sorted({int(c) for panel in dots.panels for c in panel.labels})
        names = [plain(dots.classes[c]) if c >= 0 else "unknown" for c in known]
        marks = [Line2D([], [], ls="", color=class_colour(c), marker=class_mark(c)) for c in known]
        figure.legend(marks, names, loc="outside lower center", ncols=min(10, len(names)), frameon=False, fontsize=8)
    return figure


def class_colour(label: int) -> str:
    """Colour of a class, repeated after seven classes; grey for nodes without a class.

    >>> class_colour(0), class_colour(7), class_colour(-1)
    ('#0072B2', '#0072B2', '0.75')
    """
    return PALETTE[label % len(PALETTE)] if label >= 0 else "0.75"


def class_mark(label: int) -> str:
    """Mark of a class: classes that share a colour differ in their marks.

    >>> class_mark(0), class_mark(7), class_mark(-1)
    ('o', 's', 'o')
    """
    return MARKERS[max(label, 0) // len(PALETTE) % len(MARKERS)]


def scatter_classes(
    axis: Axes, points: np.ndarray, labels: Sequence[int] | np.ndarray
) -> list[tuple[np.ndarray, PathCollection]]:
    """Dots of nodes with the colours and marks of their classes; returns the nodes and dots of each mark."""
    classes = [int(label) for label in labels]
    marks = np.array([class_mark(label) for label in classes])
    area = float(np.clip(3000 / len(marks), 5, 40))
    groups = []
    for mark in dict.fromkeys(marks.tolist()):
        nodes = np.flatnonzero(marks == mark)
        colours = [class_colour(classes[k]) for k in nodes.tolist()]
        groups.append((nodes, axis.scatter(points[nodes, 0], points[nodes, 1], s=area, c=colours, marker=mark, lw=0)))
    return groups


def write_frames(path: Path, figure: Figure, frames: Iterable[object]) -> None:
    """Write a gif of a figure that every step of `frames` changes; the last frame stays longest."""
    from PIL import Image

    images = []
    for _ in frames:
        file = io.BytesIO()
        figure.savefig(file, format="png")
        images.append(Image.open(file).convert("RGB").quantize(96))
    durations = [120] * (len(images) - 1) + [1500]
    images[0].save(path, format="GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)


def bars_figure(bars: Bars) -> Figure:
    """Figure of horizontal bars or marks, the first on top."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(7.0, 1.2 + 0.28 * len(bars.bars)), layout="constrained")
    axis = figure.subplots()
    start, end = bars.ends
    for k, bar in enumerate(bars.bars):
        colour = PALETTE[bars.groups.index(bar.group) % len(PALETTE)]
        if bars.from_zero:
            axis.barh(k, bar.value - start, left=start, color=colour)
        if math.isfinite(bar.low) and math.isfinite(bar.high):
            axis.plot([bar.low, bar.high], [k, k], color="black" if bars.from_zero else colour, lw=1.2)
        if not bars.from_zero:
            axis.plot(bar.points, [k] * len(bar.points), "|", color="0.5", ms=7)
            axis.plot(bar.value, k, "o", color=colour, ms=6)
    if bars.zero is not None:
        axis.axvline(0.0, color="0.5", lw=0.8, zorder=0)
    axis.set_yticks(range(len(bars.bars)), [plain(bar.name) for bar in bars.bars], fontsize=9)
    if bars.is_log:
        axis.set_xscale("log")
        _name_decades(axis.xaxis)
    axis.set_xlim(start, None if bars.from_zero else end)
    axis.set_ylim(len(bars.bars) - 0.4, -0.6)
    axis.set_xlabel(bars.unit, fontsize=10)
    named = [Patch(color=PALETTE[k % len(PALETTE)], label=plain(g)) for k, g in enumerate(bars.groups) if g]
    if named:
        figure.legend(handles=named, loc="outside lower center", ncols=len(named), frameon=False, fontsize=10)
    return figure
