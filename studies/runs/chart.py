"""`Chart` and `FieldMap`: figures as data, drawn by matplotlib for files and by the page itself for a reader."""

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
#: Of an axis; symlog, for the one on the left, is linear between -1 and 1 and logarithmic beyond.
SCALES, STYLES = ("linear", "log", "symlog"), ("line", "dots")
#: Digits of a number on a page.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, or dots that nothing joins; with the errors of its points, or a band around it.

    Args:
        label: its name in the legend; lines of several panels that share it are one for the reader.
        x, y: the points; nan where there is none.
        error: half the lengths of the error bars, nan where there is none.
        error_name: what they are.
        low, high: the ends of a band, which needs both.
        style: line or dots.
        count: how many samples each point stands for, where that changes; in files a line is pale where there are fewer
            than the most, and ends in a cross where none is left.
        look: its place among the colours, and 7 more for each kind of dashes; by default its place in the legend.
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
            raise InvalidArgument(f"expected one number for every point of {self.label!r}, got the shapes {sizes}")
        if (self.low is None) != (self.high is None):
            raise InvalidArgument(f"expected both ends of the band of {self.label!r}, got one; give low and high")
        if self.style not in STYLES:
            raise InvalidArgument(f"expected a style among {', '.join(STYLES)}, got {self.style!r}")

    @classmethod
    def of(
        cls, label: str, rows: Sequence[Row], x: str, y: str, error: str = "", *, low: str = "", high: str = "",
        **more: Any,
    ) -> Line:  # fmt: skip
        """Columns of rows as a curve, in the order of x."""
        points = sorted(rows, key=lambda row: float(row[x]))
        columns = {name: np.array([float(row[name]) for row in points]) for name in (x, y, error, low, high) if name}
        ends = (columns.get(low), columns.get(high))
        return cls(label, columns[x], columns[y], columns.get(error), low=ends[0], high=ends[1], **more)

    def spec(self) -> dict[str, Any]:
        """The line as json; None for what is no number."""
        found: dict[str, Any] = {"label": self.label, "x": _numbers(self.x), "y": _numbers(self.y)}
        for name in ("error", "low", "high", "count"):
            values = getattr(self, name)
            if values is not None and np.isfinite(values).any():
                found[name] = _numbers(values)
        if "error" in found:
            found["error_name"] = self.error_name
        return found | ({"style": self.style} if self.style != STYLES[0] else {})


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines over one pair of axes.

    Args:
        title: what stands above.
        lines: what is drawn.
        levels: horizontal dotted lines by their labels; one that has the label of a line has its colour.
        names: what stands at 0, 1, ... of the axis below, in place of numbers.
        x_label, y_label, y_scale: of this panel, where they differ from those of the chart.
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
    """Panels beside each other that share their legend; a reader hovers for values and takes lines away.

    Args:
        panels: at least one.
        x_label, y_label: of all panels.
        x_scale: linear or log.
        y_scale: linear, log or symlog.
        columns: panels in a row, where the window is wide enough.
        is_shared: whether all panels have the same scale on the left.
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
            raise InvalidArgument("expected at least one panel in a chart, got none; leave the chart out")
        for scale in (self.x_scale, self.y_scale, *(p.y_scale for p in self.panels if p.y_scale)):
            if scale not in SCALES:
                raise InvalidArgument(f"expected a scale among {', '.join(SCALES)}, got {scale!r}")

    @property
    def labels(self) -> list[str]:
        """All names of the legend, in the order of their colours: lines, then levels that have no line."""
        lines = [line.label for panel in self.panels for line in panel.lines]
        return list(dict.fromkeys([*lines, *(name for panel in self.panels for name in panel.levels)]))

    @property
    def looks(self) -> dict[str, int]:
        """Colour and dashes of every name of the legend, see `Line`."""
        chosen = {line.label: line.look for panel in self.panels for line in panel.lines if line.look is not None}
        return {label: chosen.get(label, place) for place, label in enumerate(self.labels)}

    def numbers(self) -> list[MutableRow]:
        """Every number that is drawn: a row for each point, and for each level one without x."""
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
        """The chart as the page's script reads it, safe inside an element of html."""
        panels = [
            {"title": p.title, "lines": [line.spec() for line in p.lines], "names": list(p.names),
             "levels": {label: _number(value) for label, value in p.levels.items()}, "y_label": p.y_label,
             "y_scale": p.y_scale or self.y_scale, "x_label": p.x_label or self.x_label}
            for p in self.panels
        ]  # fmt: skip
        found = {
            "panels": panels, "labels": self.labels, "looks": self.looks,
            "y_label": self.y_label, "x_scale": self.x_scale, "columns": self.columns, "shared": self.is_shared,
        }  # fmt: skip
        return inlined(found)


@dataclass(frozen=True, eq=False)
class FieldMap:
    """Numbers (rows, columns) as coloured fields: a table that a reader scrolls, with what is known of each in words.

    Args:
        rows, columns: their names.
        values: nan where there is none.
        sure: whether a number is written in bold.
        title: what the numbers are.
        limit: the value of the strongest colour.
        unit: of the numbers.
        notes: what a reader is told who points at a field; empty for the number alone.
        signed: whether numbers carry a sign, and colours lie on both sides of zero.
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

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.columns))
        if np.shape(self.values) != shape or np.shape(self.sure) != shape:
            raise InvalidArgument(f"expected numbers of shape {shape}, got {np.shape(self.values)}")

    def text(self, value: float) -> str:
        """A number as it is written in its field.

        >>> field = FieldMap(["a"], ["b"], np.zeros((1, 1)), np.zeros((1, 1)), "")
        >>> field.text(1.26), field.text(-0.01)
        ('+1.3', '+0.0')
        """
        return f"{value:+z.1f}" if self.signed else f"{value:.3g}"

    def numbers(self) -> list[MutableRow]:
        """Every number that is there, with its row and column."""
        return [
            {"row": row, "column": column, "value": float(self.values[i, j]), "sure": int(self.sure[i, j])}
            for i, row in enumerate(self.rows)
            for j, column in enumerate(self.columns)
            if math.isfinite(self.values[i, j])
        ]

    def cells(self) -> list[list[dict[str, Any]]]:
        """A line of fields for every row: text, colours, whether bold, and the words for a reader who points at it."""
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        shades = colormaps["PuOr_r" if self.signed else "Blues"]
        found = []
        for i, name in enumerate(self.rows):
            line = []
            for j, column in enumerate(self.columns):
                value = float(self.values[i, j])
                if not math.isfinite(value):
                    line.append({"text": "", "back": "", "ink": "", "sure": False, "note": f"{name}, {column}: none"})
                    continue
                share = min(max(value / self.limit, -1.0), 1.0)
                colour = shades(0.5 + 0.5 * share if self.signed else max(share, 0.0))
                light = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
                told = self.notes[i][j] if self.notes else f"{self.text(value)} {self.unit}"
                line.append({
                    "text": self.text(value), "back": to_hex(colour), "ink": "#000000" if light > 0.5 else "#ffffff",
                    "sure": bool(self.sure[i, j]), "note": f"{name}, {column}: {told}",
                })  # fmt: skip
            found.append(line)
        return found


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(value) for value in np.asarray(values, dtype=float).tolist()]


def _number(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def inlined(value: Any) -> str:
    """Json without anything that would end the element it stands in.

    >>> inlined("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


# ---------------------------------------------------------------------- bars
# `Bars`: named numbers as bars below each other, which a page draws as text that fits any window.


@dataclass(frozen=True)
class Bar:
    """A number with its name, where known from its least to its largest, and the group that gives it its colour."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    group: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars in the order given, all on one axis.

    Args:
        bars: at least one; finite and, on a logarithmic axis, positive.
        unit: what the numbers are.
        is_log: whether the axis is logarithmic; then bars begin at its left end.
    """

    bars: Sequence[Bar]
    unit: str
    is_log: bool = False

    def __post_init__(self) -> None:
        bad = [bar.name for bar in self.bars if not math.isfinite(bar.value) or bar.value < 0]
        bad += [bar.name for bar in self.bars if self.is_log and bar.value <= 0]
        if bad or not self.bars:
            raise InvalidArgument(f"expected bars with numbers from 0 on, got {', '.join(bad) or 'none'}")

    @property
    def groups(self) -> list[str]:
        """The groups in the order of their colours."""
        return list(dict.fromkeys(bar.group for bar in self.bars))

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis: 0 and the largest, or a little less than the least and the largest."""
        known = [v for bar in self.bars for v in (bar.value, bar.low, bar.high) if math.isfinite(v)]
        return (min(v for v in known if v > 0) / 1.3 if self.is_log else 0.0), max(*known, 1e-300)

    def share(self, value: float) -> float:
        """Where a number lies between the ends, in percent.

        >>> Bars([Bar("a", 1.0), Bar("b", 4.0)], "ms").share(1.0)
        25.0
        """
        low, high = self.ends
        if self.is_log:
            return 100 * math.log(max(value, low) / low) / math.log(high / low)
        return 100 * value / high

    def lines(self) -> list[dict[str, Any]]:
        """Every bar for the page: name, number, width and range in percent, the number of its colour."""
        found = []
        for bar in self.bars:
            has_range = math.isfinite(bar.low) and math.isfinite(bar.high)
            note = f"{bar.value:.4g}" + (f", from {bar.low:.4g} to {bar.high:.4g}" if has_range else "")
            found.append({
                "name": bar.name, "text": f"{bar.value:.3g}", "width": round(self.share(bar.value), 2),
                "left": round(self.share(bar.low), 2) if has_range else None,
                "right": round(self.share(bar.high), 2) if has_range else None,
                "colour": self.groups.index(bar.group) % 7, "note": f"{bar.name}: {note} {self.unit}",
            })  # fmt: skip
        return found

    def numbers(self) -> list[MutableRow]:
        """A row for every bar."""
        return [
            {"name": bar.name, "value": bar.value, "low": bar.low, "high": bar.high, "group": bar.group}
            for bar in self.bars
        ]


# ---------------------------------------------------------------------- moving dots
# `MovingDots`: maps of nodes at several times, which a page moves from one to the next.

#: Places are whole numbers up to this on a page, finer than its pixels.
STEPS = 999


@dataclass(frozen=True, eq=False)
class DotPanel:
    """The dots of one graph.

    Args:
        title: what stands above.
        times: in rising order.
        places: of shape (times, nodes, 2).
        labels: the class of every node, negative for none.
        nodes: what a reader is told who points at a dot.
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
        """The panel as json: one scale for all times, so that frames can be compared."""
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

    `word` stands before the time; `classes` are the names of the labels 0, 1, ..., where they have names.
    """

    panels: Sequence[DotPanel]
    columns: int = 3
    word: str = "t"
    classes: Sequence[str] = ()

    def json(self) -> str:
        """The dots as the page's script reads them, safe inside an element of html."""
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
