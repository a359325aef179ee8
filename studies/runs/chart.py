"""Figures as data: `Chart`, `FieldMap`, `Bars`, `MovingDots`; matplotlib draws the files, and the page its own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument
from studies.runs.tables import MutableRow, Row

# ---------------------------------------------------------------------- chart
#: Scales of an axis (symlog, for y axes only, is linear between -1 and 1) and styles of a line.
SCALES, STYLES = ("linear", "log", "symlog"), ("line", "dots")
#: Significant digits of a number in a page.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, or separate dots, with error bars or a band.

    Args:
        label: its name in the legend; lines of several panels with the same label share an entry.
        x, y: the points; nan for none.
        error: half lengths of the error bars; nan for none.
        error_name: what the error bars show.
        low, high: the ends of a band.
        style: line or dots.
        count: samples behind each point, if that varies; in files a line is pale where samples are missing and ends in
            a cross where none is left.
        look: index of its colour, plus 7 for each further dash pattern; by default its position in the legend.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None = None
    _: KW_ONLY
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    style: str = "line"
    error_name: str = "standard error"
    count: np.ndarray | None = None
    look: int | None = None

    def __post_init__(self) -> None:
        columns = {name: getattr(self, name) for name in ("x", "y", "error", "low", "high", "count")}
        sizes = {name: np.shape(values) for name, values in columns.items() if values is not None}
        if len(set(sizes.values())) != 1 or len(sizes["x"]) != 1:
            raise InvalidArgument(f"expected arrays of one length for the line {self.label!r}, got the shapes {sizes}")
        if (self.low is None) != (self.high is None):
            raise InvalidArgument(f"expected both low and high for the band of {self.label!r}, got one")
        if self.style not in STYLES:
            raise InvalidArgument(f"expected the style {' or '.join(STYLES)}, got {self.style!r}")

    @classmethod
    def of(
        cls, label: str, rows: Sequence[Row], x: str, y: str, error: str = "", *, low: str = "", high: str = "",
        **more: Any,
    ) -> Line:  # fmt: skip
        """A curve from columns of rows, sorted by x."""
        points = sorted(rows, key=lambda row: float(row[x]))
        columns = {name: np.array([float(row[name]) for row in points]) for name in (x, y, error, low, high) if name}
        ends = (columns.get(low), columns.get(high))
        return cls(label, columns[x], columns[y], columns.get(error), low=ends[0], high=ends[1], **more)

    def spec(self) -> dict[str, Any]:
        """The line for json, with None for nan."""
        spec: dict[str, Any] = {"label": self.label, "x": _numbers(self.x), "y": _numbers(self.y)}
        for name in ("error", "low", "high", "count"):
            values = getattr(self, name)
            if values is not None and np.isfinite(values).any():
                spec[name] = _numbers(values)
        if "error" in spec:
            spec["error_name"] = self.error_name
        return spec | ({"style": self.style} if self.style != STYLES[0] else {})


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines over one pair of axes.

    Args:
        title: above the panel.
        lines: the curves.
        levels: horizontal dotted lines by label; a level with the label of a line has its colour.
        names: labels at 0, 1, ... of the x axis, instead of numbers.
        x_label, y_label, y_scale: of this panel, if they differ from those of the chart.
    """

    title: str
    lines: Sequence[Line]
    levels: Mapping[str, float] = field(default_factory=dict)
    names: Sequence[str] = ()
    y_label: str = ""
    y_scale: str = ""
    x_label: str = ""


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels with a common legend; on the page, readers hover for values and hide lines.

    Args:
        panels: at least one.
        x_label, y_label: of all panels.
        x_scale: linear or log.
        y_scale: linear, log or symlog.
        columns: panels in a row, if the window is wide enough.
        is_shared: whether all panels share the y axis.
    """

    panels: Sequence[Panel]
    x_label: str
    y_label: str = "test accuracy, percent"
    x_scale: str = "linear"
    y_scale: str = "linear"
    columns: int = 3
    is_shared: bool = False

    def __post_init__(self) -> None:
        if not self.panels:
            raise InvalidArgument("expected at least one panel in a chart, got none")
        for scale in (self.x_scale, self.y_scale, *(p.y_scale for p in self.panels if p.y_scale)):
            if scale not in SCALES:
                raise InvalidArgument(f"expected the scale {', '.join(SCALES)}, got {scale!r}")

    @property
    def labels(self) -> list[str]:
        """All entries of the legend in the order of their colours: lines, then levels without a line."""
        lines = [line.label for panel in self.panels for line in panel.lines]
        return list(dict.fromkeys([*lines, *(name for panel in self.panels for name in panel.levels)]))

    @property
    def looks(self) -> dict[str, int]:
        """Colour and dashes of every entry of the legend, as in `Line.look`."""
        chosen = {line.label: line.look for panel in self.panels for line in panel.lines if line.look is not None}
        return {label: chosen.get(label, position) for position, label in enumerate(self.labels)}

    def numbers(self) -> list[MutableRow]:
        """The numbers drawn: a row for each point, and one without x for each level."""
        rows: list[MutableRow] = []
        for panel in self.panels:
            for line in panel.lines:
                nothing = np.full(len(line.x), math.nan)
                columns = (line.x, line.y, line.error, line.low, line.high)
                for point in zip(*(nothing if c is None else c for c in columns), strict=True):
                    x, y, error, low, high = map(float, point)
                    row: MutableRow = {"panel": panel.title, "curve": line.label, "x": x, "y": y, "error": error}
                    rows.append(row if line.low is None else {**row, "low": low, "high": high})
            for label, value in panel.levels.items():
                rows.append({"panel": panel.title, "curve": f"{label}, limit", "x": math.nan, "y": float(value),
                             "error": math.nan})  # fmt: skip
        return rows

    def json(self) -> str:
        """The chart for the script of the page, safe inside an HTML element."""
        panels = [
            {"title": p.title, "lines": [line.spec() for line in p.lines], "names": list(p.names),
             "levels": {label: _number(value) for label, value in p.levels.items()}, "y_label": p.y_label,
             "y_scale": p.y_scale or self.y_scale, "x_label": p.x_label or self.x_label}
            for p in self.panels
        ]  # fmt: skip
        return inlined({
            "panels": panels, "labels": self.labels, "looks": self.looks,
            "y_label": self.y_label, "x_scale": self.x_scale, "columns": self.columns, "shared": self.is_shared,
        })  # fmt: skip


@dataclass(frozen=True, eq=False)
class FieldMap:
    """A table (rows, columns) of coloured cells with a note for each.

    Args:
        rows, columns: their names.
        values: nan for an empty cell.
        sure: whether a number is bold.
        title: above the table.
        limit: the value of the strongest colour.
        unit: of the numbers.
        notes: shown on hovering over a cell; by default its number.
        signed: whether colours are on both sides of zero, and numbers carry a sign.
        lowest: the value of the weakest colour on a logarithmic colour scale; None for a linear scale.
        texts: in the cells, by default the numbers.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    sure: np.ndarray
    title: str
    limit: float = 15.0
    unit: str = "points of accuracy"
    notes: Sequence[Sequence[str]] = ()
    signed: bool = True
    lowest: float | None = None
    texts: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.columns))
        if np.shape(self.values) != shape or np.shape(self.sure) != shape:
            raise InvalidArgument(f"expected numbers of shape {shape}, got {np.shape(self.values)}")

    def text(self, value: float) -> str:
        """Text of a number in its cell.

        >>> field = FieldMap(["a"], ["b"], np.zeros((1, 1)), np.zeros((1, 1)), "")
        >>> field.text(1.26), field.text(-0.01)
        ('+1.3', '+0.0')
        """
        return f"{value:+z.1f}" if self.signed else f"{value:.3g}"

    @property
    def colours(self) -> str:
        """Name of the colour map in matplotlib."""
        return "PuOr_r" if self.signed else "Blues"

    @property
    def shades(self) -> np.ndarray:
        """Position of every cell in the colour map, from 0 to 1; nan for an empty cell."""
        if self.lowest is not None:
            low, high = math.log(self.lowest), math.log(self.limit)
            return np.clip((np.log(np.maximum(self.values, self.lowest)) - low) / (high - low), 0.0, 1.0)
        share = self.values / self.limit
        return np.clip(0.5 + 0.5 * share if self.signed else share, 0.0, 1.0)

    def numbers(self) -> list[MutableRow]:
        """The numbers drawn, each with its row and column."""
        return [
            {"row": row, "column": column, "value": float(self.values[i, j]), "sure": int(self.sure[i, j])}
            for i, row in enumerate(self.rows)
            for j, column in enumerate(self.columns)
            if math.isfinite(self.values[i, j])
        ]

    def cells(self) -> list[list[dict[str, Any]]]:
        """For every row its cells: text, background, text colour, whether bold, and the note."""
        return [[self._cell(i, j) for j in range(len(self.columns))] for i in range(len(self.rows))]

    def _cell(self, i: int, j: int) -> dict[str, Any]:
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        label, value = f"{self.rows[i]}, {self.columns[j]}", float(self.values[i, j])
        if not math.isfinite(value):
            return {"text": "", "back": "", "ink": "", "sure": False, "note": f"{label}: none"}
        colour = colormaps[self.colours](float(self.shades[i, j]))
        light = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
        note = self.notes[i][j] if self.notes else f"{self.text(value)} {self.unit}"
        return {
            "text": self.texts[i][j] if self.texts else self.text(value), "back": to_hex(colour),
            "ink": "#000000" if light > 0.5 else "#ffffff", "sure": bool(self.sure[i, j]), "note": f"{label}: {note}",
        }  # fmt: skip


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(value) for value in np.asarray(values, dtype=float).tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def inlined(value: Any) -> str:
    """Json that cannot close the HTML element around it.

    >>> inlined("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


# ---------------------------------------------------------------------- bars
# `Bars`: named numbers below each other, which a page draws as text that fits any window.


@dataclass(frozen=True)
class Bar:
    """A named number with its range, the values behind it, and the group that determines its colour."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    group: str = ""
    points: tuple[float, ...] = ()


@dataclass(frozen=True)
class Bars:
    """Horizontal bars on one axis, in the order given.

    Args:
        bars: at least one; finite, from zero on also not negative, and on a logarithmic axis positive.
        unit: of the numbers.
        is_log: whether the axis is logarithmic; bars then begin at its left end.
        from_zero: whether bars begin at zero; otherwise a mark shows each value, on an axis that fits all of them.
    """

    bars: Sequence[Bar]
    unit: str
    is_log: bool = False
    from_zero: bool = True

    def __post_init__(self) -> None:
        least = 0.0 if self.from_zero else -math.inf
        bad = [bar.name for bar in self.bars if not math.isfinite(bar.value) or bar.value < least]
        bad += [bar.name for bar in self.bars if self.is_log and bar.value <= 0]
        if bad or not self.bars:
            raise InvalidArgument(f"expected bars with finite, non-negative numbers, got {', '.join(bad) or 'none'}")

    @property
    def groups(self) -> list[str]:
        """The groups in the order of their colours."""
        return list(dict.fromkeys(bar.group for bar in self.bars))

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis."""
        values = [v for bar in self.bars for v in (bar.value, bar.low, bar.high, *bar.points) if math.isfinite(v)]
        if self.is_log:
            return min(v for v in values if v > 0) / 1.3, max(values)
        if self.from_zero:
            return 0.0, max(*values, 1e-300)
        pad = 0.05 * (max(values) - min(values)) or 0.5
        return min(values) - pad, max(values) + pad

    def share(self, value: float) -> float:
        """Position of a number between the ends, in percent.

        >>> Bars([Bar("a", 1.0), Bar("b", 4.0)], "ms").share(1.0)
        25.0
        """
        low, high = self.ends
        if self.is_log:
            return round(100 * math.log(max(value, low) / low) / math.log(high / low), 2)
        return round(100 * (value - low) / (high - low), 2)

    def lines(self) -> list[dict[str, Any]]:
        """Every bar for the page: name, number, positions in percent, the index of its colour."""
        lines = []
        for bar in self.bars:
            has_range = math.isfinite(bar.low) and math.isfinite(bar.high)
            note = f"{bar.value:.4g}" + (f", from {bar.low:.4g} to {bar.high:.4g}" if has_range else "")
            lines.append({
                "name": bar.name, "text": f"{bar.value:.3g}", "width": self.share(bar.value),
                "left": self.share(bar.low) if has_range else None,
                "right": self.share(bar.high) if has_range else None,
                "points": [self.share(point) for point in bar.points if math.isfinite(point)],
                "colour": self.groups.index(bar.group) % 7, "note": f"{bar.name}: {note} {self.unit}",
            })  # fmt: skip
        return lines

    @property
    def zero(self) -> float | None:
        """Position of zero in percent, if it is inside an axis of marks."""
        low, high = self.ends
        return self.share(0.0) if not self.from_zero and low < 0 < high else None

    def numbers(self) -> list[MutableRow]:
        """A row for every bar."""
        return [
            {"name": bar.name, "value": bar.value, "low": bar.low, "high": bar.high, "group": bar.group}
            for bar in self.bars
        ]


# ---------------------------------------------------------------------- moving dots
# `MovingDots`: maps of nodes at several times, which the page animates.

#: Largest coordinate of a dot in a page; coordinates are whole numbers, finer than pixels.
STEPS = 999


@dataclass(frozen=True, eq=False)
class DotPanel:
    """The dots of one graph.

    Args:
        title: above the panel.
        times: ascending.
        places: of shape (times, nodes, 2).
        labels: the class of every node, negative for none.
        nodes: their numbers, shown on hovering.
    """

    title: str
    times: Sequence[float]
    places: np.ndarray
    labels: np.ndarray
    nodes: Sequence[int]

    def __post_init__(self) -> None:
        shape = (len(self.times), len(self.nodes), 2)
        if np.shape(self.places) != shape or len(self.labels) != len(self.nodes) or not np.isfinite(self.places).all():
            raise InvalidArgument(f"expected finite places of shape {shape}, got {np.shape(self.places)}")

    def spec(self) -> dict[str, Any]:
        """The panel for json, with one scale for all times."""
        low, high = self.places.min(axis=(0, 1)), self.places.max(axis=(0, 1))
        span = float(max((high - low).max(), 1e-12))
        corner = (low + high - span) / 2
        whole = np.rint((self.places - corner) / span * STEPS).astype(int)
        return {
            "title": self.title, "times": [float(f"{t:.4g}") for t in self.times],
            "places": whole.reshape(len(self.times), -1).tolist(), "labels": [int(c) for c in self.labels],
            "nodes": [int(n) for n in self.nodes],
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class MovingDots:
    """Panels whose dots move together, from the first time of each to its last.

    `word` precedes the time in titles; `classes` are the names of the labels 0, 1, ..., if they have names.
    """

    panels: Sequence[DotPanel]
    columns: int = 3
    word: str = "t"
    classes: Sequence[str] = ()

    def json(self) -> str:
        """The dots for the script of the page, safe inside an HTML element."""
        panels = [panel.spec() for panel in self.panels]
        shared = {"columns": self.columns, "steps": STEPS, "word": self.word, "classes": list(self.classes)}
        return inlined({"panels": panels, **shared})

    def numbers(self) -> list[MutableRow]:
        """A row for every dot at every time."""
        return [
            {"panel": p.title, "time": float(t), "node": int(n), "label": int(c), "x": float(xy[0]), "y": float(xy[1])}
            for p in self.panels
            for t, frame in zip(p.times, p.places, strict=True)
            for n, c, xy in zip(p.nodes, p.labels, frame, strict=True)
        ]
