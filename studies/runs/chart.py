"""`Chart` and `FieldMap`: figures as data, drawn by matplotlib for files and by the page itself for a reader."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from rdgraph.errors import InvalidArgument
from studies.runs.tables import MutableRow

SCALES, STYLES = ("linear", "log"), ("line", "dots")
#: Digits of a number on a page.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, or dots that nothing joins; with the standard errors of its points, or a band around it.

    Args:
        label: its name in the legend; lines of several panels that share it are one for the reader.
        x, y: the points; nan where there is none.
        error: standard errors, nan where there is none.
        low, high: the ends of a band, which needs both.
        style: line or dots.
        count: how many samples each point stands for, where that changes.
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

    def spec(self) -> dict[str, Any]:
        """The line as json; None for what is no number."""
        found: dict[str, Any] = {"label": self.label, "x": _numbers(self.x), "y": _numbers(self.y)}
        for name in ("error", "low", "high", "count"):
            values = getattr(self, name)
            if values is not None and np.isfinite(values).any():
                found[name] = _numbers(values)
        return found | ({"style": self.style} if self.style != STYLES[0] else {})


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines over one pair of axes.

    Args:
        title: what stands above.
        lines: what is drawn.
        levels: horizontal dotted lines by their labels; one that has the label of a line has its colour.
        names: what stands at 0, 1, ... of the axis below, in place of numbers.
        y_label, y_scale: of this panel, where they differ from those of the chart.
    """

    title: str
    lines: Sequence[Line]
    levels: Mapping[str, float] = field(default_factory=dict)
    names: Sequence[str] = ()
    y_label: str = ""
    y_scale: str = ""


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels beside each other that share their legend; a reader hovers for values and takes lines away.

    Args:
        panels: at least one.
        x_label, y_label: of all panels.
        x_scale, y_scale: linear or log.
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
             "y_log": (p.y_scale or self.y_scale) == "log"}
            for p in self.panels
        ]  # fmt: skip
        found = {
            "panels": panels, "labels": self.labels, "looks": self.looks, "x_label": self.x_label,
            "y_label": self.y_label, "x_log": self.x_scale == "log", "columns": self.columns, "shared": self.is_shared,
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
